/* A check of GGUF files reports more than a reader refuses: bytes that belong to no tensor, and texts that
 * are not UTF-8. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/utf8.h"
#include "outside/models/gguf.h"

#include <inttypes.h>
#include <string.h>

/* The bytes that align what follows are zeros: others may be the rest of something. */
static coffer_status check_padding(coffer_report *out, const coffer__gguf *gguf, uint64_t begin, uint64_t end,
                                   coffer_error *err)
{
    uint8_t bytes[256];
    while (begin < end) {
        size_t len = end - begin < sizeof bytes ? (size_t)(end - begin) : sizeof bytes;
        coffer_status status = coffer_source_read_at(bytes, gguf->src, begin, len, err);
        if (status)
            return status;
        for (size_t i = 0; i < len; i++) {
            if (bytes[i] == 0)
                continue;
            coffer__report_add(out, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, begin + i,
                               "padding has the byte %02x, it should be 00", (unsigned)bytes[i]);
            return COFFER_OK;
        }
        begin += len;
    }
    return COFFER_OK;
}

/* covered : end of the tensors so far. */
static coffer_status check_before(coffer_report *out, const coffer__gguf *gguf, uint64_t covered,
                                  const coffer__gguf_tensor *tensor, coffer_error *err)
{
    uint64_t padded;
    if (!coffer__align_up(&padded, covered, gguf->alignment) || padded >= tensor->offset)
        return check_padding(out, gguf, covered, tensor->offset, err);
    coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, covered,
                       "%" PRIu64
                       " bytes before tensor \"%s\" belong to no tensor; llama.cpp refuses the file",
                       tensor->offset - covered, tensor->name);
    return COFFER_OK;
}

static coffer_status check_end(coffer_report *out, const coffer__gguf *gguf, uint64_t covered,
                               coffer_error *err)
{
    uint64_t padded, size = coffer_source_size(gguf->src);
    if (covered >= size)
        return COFFER_OK;
    if (!coffer__align_up(&padded, covered, gguf->alignment) || padded >= size)
        return check_padding(out, gguf, covered, size, err);
    coffer__report_add(out, COFFER_E_TRAILING_BYTES, COFFER_ERROR, padded,
                       "%" PRIu64 " bytes after the last tensor", size - padded);
    return check_padding(out, gguf, covered, padded, err);
}

static coffer_status check_places(coffer_report *out, const coffer__gguf *gguf, coffer_error *err)
{
    const coffer__gguf_tensor *last = NULL;
    uint64_t covered = gguf->payloads;
    coffer__gguf_tensor **sorted = NULL;
    coffer_status status = coffer__gguf_sort_by_offset(&sorted, gguf, err);
    if (!status)
        status = check_padding(out, gguf, gguf->front, gguf->payloads, err);
    for (size_t i = 0; !status && i < gguf->tensor_count; i++) {
        const coffer__gguf_tensor *tensor = sorted[i];
        if (tensor->size == 0)
            continue;
        if (last && tensor->offset < covered)
            coffer__report_add(out, COFFER_E_OVERLAP, COFFER_ERROR, tensor->offset,
                               "tensors \"%s\" and \"%s\" are the same bytes; llama.cpp refuses the file",
                               last->name, tensor->name);
        else
            status = check_before(out, gguf, covered, tensor, err);
        covered = tensor->offset + tensor->size;
        last = tensor;
    }
    if (!status)
        status = check_end(out, gguf, covered, err);
    coffer__free(sorted);
    return status;
}

/* Items of arrays are not looked at: vocabularies may contain parts of characters. */
static coffer_status check_text(coffer_report *out, const coffer__gguf *gguf, const coffer__gguf_key *key,
                                coffer_error *err)
{
    uint8_t *text;
    size_t len;
    coffer_error found = COFFER_ERROR_INIT;
    if (coffer__gguf_read_value(&text, &len, gguf, key, &found))
        return coffer__report_take(out, COFFER_WARNING, &found, err);
    if (!coffer__utf8_valid((const char *)text, len))
        coffer__report_add(out, COFFER_E_BAD_TEXT, COFFER_WARNING, key->offset,
                           "the value of %s is not UTF-8", key->name);
    coffer__free(text);
    return COFFER_OK;
}

coffer_status coffer__gguf_check(coffer_report *out, const coffer__gguf *gguf, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < gguf->key_count; i++) {
        const coffer__gguf_key *key = &gguf->keys[i];
        if (key->name[0] == '\0')
            coffer__report_add(out, COFFER_E_BAD_VALUE, COFFER_WARNING, key->offset,
                               "key %zu does not have a name", i + 1);
        if (key->type == COFFER__GGUF_STRING)
            status = check_text(out, gguf, key, err);
    }
    return status ? status : check_places(out, gguf, err);
}
