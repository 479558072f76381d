#include "support/scan.h"

#include "formats/mscan/mscan_private.h"

#include <stdlib.h>
#include <string.h>

uint8_t *scan_bytes(size_t *len, const char *json, const coffer_mscan_record *records, size_t count)
{
    size_t json_len = strlen(json), area = COFFER__MSCAN_HEADER_SIZE + json_len;
    uint8_t *bytes;
    *len = area + count * COFFER__MSCAN_RECORD_SIZE;
    bytes = malloc(*len);
    assert_non_null(bytes);
    coffer__mscan_write_header(bytes, (uint32_t)area, (uint32_t)count);
    memcpy(bytes + COFFER__MSCAN_HEADER_SIZE, json, json_len);
    for (size_t i = 0; i < count; i++)
        coffer__mscan_store(bytes + area + i * COFFER__MSCAN_RECORD_SIZE, &records[i]);
    return bytes;
}

coffer_status scan_add_sequence(coffer_mscan_writer *writer, const char *source, uint32_t tokens,
                                coffer_error *err)
{
    uint16_t a, b;
    coffer_status status;
    if ((status = coffer_mscan_writer_add_param(&a, writer, "a", err)) ||
        (status = coffer_mscan_writer_add_param(&b, writer, "b", err)) ||
        (status = coffer_mscan_writer_begin_sequence(writer, source, err)))
        return status;
    for (uint32_t token = 0; token < tokens; token++) {
        coffer_mscan_record records[2] = { { token, a, 0, (uint16_t)(token + 1), 7 },
                                           { token, b, 1, (uint16_t)(token + 2), 9 } };
        if ((status = coffer_mscan_writer_put_records(writer, records, 2, err)))
            return status;
    }
    return coffer_mscan_writer_end_sequence(writer, tokens, err);
}

static coffer_status finish(coffer_mscan_writer *writer, coffer_status status, coffer_error *err)
{
    if (status == COFFER_OK)
        return coffer_mscan_writer_commit(writer, err);
    coffer_mscan_writer_discard(writer);
    return status;
}

coffer_status scan_create(const char *path, const coffer_mscan_writer_opts *opts, size_t sequences,
                          uint32_t tokens, coffer_error *err)
{
    coffer_mscan_writer *writer;
    coffer_status status = coffer_mscan_writer_create(&writer, path, opts, err);
    if (status)
        return status;
    for (size_t i = 0; status == COFFER_OK && i < sequences; i++)
        status = scan_add_sequence(writer, "made for a test", tokens, err);
    return finish(writer, status, err);
}

coffer_status scan_append(const char *path, const char *source, uint32_t tokens, coffer_error *err)
{
    coffer_mscan_writer *writer;
    coffer_status status = coffer_mscan_writer_append_to(&writer, path, NULL, err);
    if (status)
        return status;
    return finish(writer, scan_add_sequence(writer, source, tokens, err), err);
}

coffer_source *scan_source(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    if (coffer_source_open(&src, path, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return src;
}

coffer_source *scan_source_of(const void *bytes, size_t len)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    return src;
}

coffer_mscan *scan_open(coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan *scan = NULL;
    if (coffer_mscan_open(&scan, src, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return scan;
}

void scan_assert_clean(const char *path)
{
    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    coffer_report *report = scan_check(src, true);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (coffer_report_at(report, i)->severity == COFFER_ERROR)
            fail_msg("%s: %s", path, coffer_report_at(report, i)->text);
    }
    coffer_report_free(report);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}
