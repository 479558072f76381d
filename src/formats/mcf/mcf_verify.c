/* Verified reads: the chunks that a read touches are compared with the Checksums section, each once. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdio.h>

struct coffer__mcf_verifier {
    coffer__mcf_sums sums;
    atomic_uchar *verified; /* by sum */
};

void coffer__mcf_verifier_free(coffer__mcf_verifier *verifier)
{
    if (!verifier)
        return;
    coffer__mcf_sums_free(&verifier->sums);
    coffer__free(verifier->verified);
    coffer__free(verifier);
}

const coffer__mcf_sums *coffer__mcf_verifier_sums(const coffer__mcf_verifier *verifier)
{
    return &verifier->sums;
}

coffer__mcf_names coffer__mcf_names_in(const coffer__mcf_index *index, uint64_t start, uint64_t end)
{
    coffer__mcf_names names = { "" };
    size_t len = 0, more = 0;
    for (size_t i = 0; i < index->count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(index, i);
        if (entry.size == 0 || entry.offset >= end ||
            (entry.offset < start && entry.size <= start - entry.offset))
            continue;
        coffer__mcf_name name = coffer__mcf_entry_name(index, i);
        /* Room for " and 4294967295 more" stays free. */
        if (more > 0 || len + strlen(name.text) + 22 > sizeof names.text)
            more++;
        else
            len += (size_t)snprintf(names.text + len, sizeof names.text - len, "%s%s", len ? ", " : "",
                                    name.text);
    }
    if (more > 0)
        snprintf(names.text + len, sizeof names.text - len, "%s%zu more", len ? " and " : "", more);
    return names;
}

static coffer_status fail_chunk(const coffer_mcf *model, uint64_t start, size_t size, uint32_t found,
                                uint32_t stored, coffer_error *err)
{
    coffer__mcf_names names = coffer__mcf_names_in(&model->index, start, start + size);
    const char *what = names.text[0] ? "tensor " : "";
    if (strchr(names.text, ','))
        what = "tensors ";
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, start,
                        "%s%s%s%zu bytes are damaged: their CRC-32 is %08" PRIx32 " instead of %08" PRIx32,
                        what, names.text, what[0] ? ": " : "", size, found, stored);
}

static coffer_status verify_chunk(const coffer_mcf *model, size_t sum, const uint8_t *bytes, uint64_t start,
                                  size_t size, coffer_error *err)
{
    coffer__mcf_verifier *verifier = model->verifier;
    uint32_t found = coffer__crc32(0, bytes, size);
    coffer_status status = coffer_source_intact(model->source, err);
    if (status)
        return status;
    if (found != verifier->sums.sums[sum])
        return fail_chunk(model, start, size, found, verifier->sums.sums[sum], err);
    atomic_store(&verifier->verified[sum], 1);
    return COFFER_OK;
}

/* accept : damage that the caller of the library accepts is reported, and the next chunk is verified. */
static coffer_status verify_chunks(const coffer_mcf *model, uint64_t offset, uint64_t len,
                                   const uint8_t *have, bool accept, coffer_error *err)
{
    coffer__mcf_verifier *verifier = model->verifier;
    coffer_error cause = COFFER_ERROR_INIT;
    uint64_t end = offset + len;
    uint8_t *scratch = NULL;
    coffer_status status = COFFER_OK;
    if (!verifier)
        return COFFER_OK;
    for (uint64_t at = offset; !status && at < end;) {
        const coffer__mcf_range *range = coffer__mcf_sums_find(&verifier->sums, at);
        uint64_t start;
        size_t size;
        if (!range) {
            status = coffer__fail(&cause, COFFER_E_BAD_CHECKSUM, at,
                                  "the bytes at %" PRIu64 " are outside of what Checksums covers", at);
            if (accept)
                status = coffer__source_accept_damage(model->source, &cause, &cause);
            break;
        }
        size_t sum = range->first_sum + (size_t)((at - range->offset) / COFFER__MCF_CHUNK);
        coffer__mcf_sums_chunk(&start, &size, &verifier->sums, sum);
        at = start + size;
        if (atomic_load(&verifier->verified[sum]))
            continue;
        const uint8_t *bytes = have && start >= offset && at <= end ? have + (start - offset) : NULL;
        if (!bytes && !scratch && !(scratch = coffer__malloc(COFFER__MCF_CHUNK)))
            status = coffer__fail_no_memory(&cause, COFFER__MCF_CHUNK);
        else if (!bytes)
            status = coffer__source_fetch(&bytes, model->source, start, size, scratch, &cause);
        if (!status)
            status = verify_chunk(model, sum, bytes, start, size, &cause);
        if (status == COFFER_E_BAD_CHECKSUM && accept)
            status = coffer__source_accept_damage(model->source, &cause, &cause);
    }
    coffer__free(scratch);
    return status ? coffer__fail_copy(err, &cause) : COFFER_OK;
}

coffer_status coffer__mcf_verify_range(const coffer_mcf *model, uint64_t offset, uint64_t len,
                                       const uint8_t *have, coffer_error *err)
{
    return verify_chunks(model, offset, len, have, false, err);
}

coffer_status coffer__mcf_verify_read(const coffer_mcf *model, uint64_t offset, uint64_t len,
                                      const uint8_t *have, coffer_error *err)
{
    return verify_chunks(model, offset, len, have, true, err);
}

coffer_status coffer__mcf_verify_section(const coffer_mcf *model, const coffer_mcf_section *section,
                                         coffer_error *err)
{
    coffer_error cause = COFFER_ERROR_INIT;
    if (!model->verifier || section->size == 0 ||
        !coffer__mcf_sums_find(&model->verifier->sums, section->offset))
        return COFFER_OK;
    coffer_status status = coffer__mcf_verify_range(model, section->offset, section->size, NULL, &cause);
    if (status != COFFER_E_BAD_CHECKSUM)
        return status ? coffer__fail_copy(err, &cause) : COFFER_OK;
    return coffer__fail(err, status, cause.offset, "%s: %s", coffer__mcf_section_label(section->type).text,
                        cause.text);
}

coffer_status coffer__mcf_verify_section_read(const coffer_mcf *model, const coffer_mcf_section *section,
                                              coffer_error *err)
{
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer__mcf_verify_section(model, section, &cause);
    if (!status)
        status = coffer__mcf_check_section_damage(model, section, &cause);
    if (status == COFFER_E_BAD_CHECKSUM)
        return coffer__source_accept_damage(model->source, &cause, err);
    return status ? coffer__fail_copy(err, &cause) : COFFER_OK;
}

/* ---- Start ---- */

/* Verifies the parts that opening a model reads. */
static coffer_status verify_opened(const coffer_mcf *model, coffer_error *err)
{
    static const uint32_t types[] = { COFFER_MCF_TENSOR_INDEX, COFFER_MCF_QUANT_INFO, COFFER_MCF_QUALITY,
                                      COFFER_MCF_DAMAGE };
    const coffer_mcf_section header = { 0, 0, 0, COFFER__MCF_HEADER_SIZE };
    const coffer_mcf_section directory = {
        0, 0, model->header.directory, (uint64_t)model->header.section_count * COFFER__MCF_DIRECTORY_ENTRY
    };
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    if (model->verifier->sums.version > 1) {
        status = coffer__mcf_verify_range(model, header.offset, header.size, NULL, &cause);
        if (!status)
            status = coffer__mcf_verify_range(model, directory.offset, directory.size, NULL, &cause);
        if (status)
            return coffer__fail(err, status, cause.offset, "header or directory: %s", cause.text);
    }
    for (size_t i = 0; !status && i < sizeof types / sizeof *types; i++) {
        const coffer_mcf_section *section = coffer_mcf_find_section(model, types[i]);
        if (section)
            status = coffer__mcf_verify_section(model, section, err);
    }
    return status;
}

static coffer_status new_verifier(coffer_mcf *model, coffer__mcf_sums *sums, coffer_error *err)
{
    coffer__mcf_verifier *verifier = coffer__calloc(1, sizeof *verifier);
    atomic_uchar *verified = coffer__calloc(sums->sum_count ? sums->sum_count : 1, sizeof *verified);
    if (!verifier || !verified) {
        coffer__free(verifier);
        coffer__free(verified);
        return coffer__fail_no_memory(err, sums->sum_count);
    }
    *verifier = (coffer__mcf_verifier){ *sums, verified };
    *sums = (coffer__mcf_sums){ 0 };
    model->verifier = verifier;
    return COFFER_OK;
}

coffer_status coffer__mcf_start_verifying(coffer_mcf *model, bool required, bool lenient, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS);
    coffer__mcf_sums sums = { 0 };
    coffer_error cause = COFFER_ERROR_INIT;
    if (!section)
        return required ? coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                                       "section missing: Checksums; the payloads cannot be verified")
                        : COFFER_OK;
    coffer_status status = coffer__mcf_sums_load(&sums, model->source, section, &model->limits, &cause);
    if (status && !required &&
        (status == COFFER_E_UNSUPPORTED_VERSION || (coffer__is_about_file(status) && lenient)))
        return COFFER_OK;
    if (status)
        return coffer__fail_copy(err, &cause);
    if (!coffer__mcf_sums_stale(&sums, &model->header, coffer_source_size(model->source), section->offset,
                                model->has_data ? &model->data : NULL))
        status = new_verifier(model, &sums, err);
    else if (required)
        status = coffer__fail(err, COFFER_E_MISSING, section->offset,
                              "Checksums is stale: another program changed the file after it was written");
    coffer__mcf_sums_free(&sums);
    if (!status && model->verifier && !lenient)
        status = verify_opened(model, err);
    return status;
}

coffer_status coffer_mcf_verify(const coffer_mcf *model, size_t tensor, uint64_t begin, uint64_t len,
                                coffer_error *err)
{
    coffer_status status = coffer__mcf_check_range(model, tensor, err);
    if (status)
        return status;
    coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, tensor);
    if (!coffer__range_fits(begin, len, entry.size))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " bytes at %" PRIu64 " of tensor %s requested, it has %" PRIu64, len,
                            begin, coffer__mcf_entry_name(&model->index, tensor).text, entry.size);
    if (model->allow_damaged)
        return COFFER_OK;
    status = coffer__mcf_check_known_damage(model, tensor, begin, len, err);
    return status ? status : coffer__mcf_verify_read(model, entry.offset + begin, len, NULL, err);
}
