/* Scans made in memory for the tests: chosen names, sequences and records, with the records at an odd offset.
 */
#ifndef COFFER_TESTS_MSCAN_SAMPLE_H
#define COFFER_TESTS_MSCAN_SAMPLE_H

#include "base/buffer.h"
#include "coffer/mscan.h"
#include "formats/mscan/mscan_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct sample {
    coffer_mscan_record *records;
    size_t count;
    uint8_t *bytes; /* exactly as long as the file, so that a read past the end is seen by the sanitizer */
    size_t size;
    coffer_source *source;
    coffer_mscan *scan;
} sample;

static inline uint64_t sample_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* params_json : "{\"0\": \"name\", …}"; sequences_json : "[{…}, …]". The sample owns records (malloc). */
static inline void sample_open(sample *out, const char *params_json, const char *sequences_json,
                               coffer_mscan_record *records, size_t count)
{
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer_fill(&buffer, 0, COFFER__MSCAN_HEADER_SIZE);
    coffer__buffer_printf(&buffer,
                          "{\"format_version\": \"1.1\", \"id_to_param_name_map\": %s, \"sequences\": %s}",
                          params_json, sequences_json);
    coffer__buffer_fill(&buffer, ' ', buffer.len % 2 ? 2 : 1);
    size_t header_len = buffer.len;
    for (size_t i = 0; i < count; i++)
        coffer__mscan_store(coffer__buffer_extend(&buffer, COFFER__MSCAN_RECORD_SIZE), &records[i]);
    assert_false(buffer.failed);
    out->bytes = malloc(buffer.len);
    memcpy(out->bytes, buffer.data, buffer.len);
    out->size = buffer.len;
    coffer__buffer_free(&buffer);
    coffer__mscan_write_header(out->bytes, (uint32_t)header_len, (uint32_t)count);
    out->records = records;
    out->count = count;
    assert_int_equal(coffer_source_from_memory(&out->source, out->bytes, out->size, &err), COFFER_OK);
    if (coffer_mscan_open(&out->scan, out->source, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

static inline coffer_status sample_read_at(void *context, void *out, uint64_t offset, size_t len,
                                           coffer_error *err)
{
    sample *from = context;
    (void)err;
    memcpy(out, from->bytes + offset, len);
    return COFFER_OK;
}

/* The same bytes through a source without views. */
static inline void sample_reopen_without_view(sample *out)
{
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = sample_read_at };
    coffer_mscan_close(out->scan);
    coffer_source_close(out->source);
    assert_int_equal(coffer_source_new(&out->source, &ops, out, out->size, "sample", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_open(&out->scan, out->source, NULL, NULL), COFFER_OK);
}

static inline void sample_close(sample *done)
{
    coffer_mscan_close(done->scan);
    coffer_source_close(done->source);
    free(done->bytes);
    free(done->records);
}

#endif
