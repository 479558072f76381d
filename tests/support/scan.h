/* Scans for tests: written with the library, or put together byte by byte. */
#ifndef SUPPORT_SCAN_H
#define SUPPORT_SCAN_H

#include "coffer/format.h"
#include "coffer/mscan.h"
#include "support/acts.h"
#include "support/temp.h"

/* A file with this JSON and these records; free(). */
uint8_t *scan_bytes(size_t *len, const char *json, const coffer_mscan_record *records, size_t count);

/* Two parameters, "a" and "b", with a record of each for every token. */
coffer_status scan_add_sequence(coffer_mscan_writer *writer, const char *source, uint32_t tokens,
                                coffer_error *err);
coffer_status scan_create(const char *path, const coffer_mscan_writer_opts *opts, size_t sequences,
                          uint32_t tokens, coffer_error *err);
coffer_status scan_append(const char *path, const char *source, uint32_t tokens, coffer_error *err);

/* Opens, or fails the test. */
coffer_source *scan_source(const char *path);
coffer_source *scan_source_of(const void *bytes, size_t len);
coffer_mscan *scan_open(coffer_source *src);

/* See acts.h. */
static inline coffer_report *scan_check(coffer_source *src, bool full)
{
    return acts_check(src, full);
}
static inline bool scan_has(const coffer_report *report, coffer_status code, coffer_severity severity)
{
    return acts_found(report, code, severity);
}
static inline const char *scan_text(const coffer_report *report, coffer_status code)
{
    return acts_text(report, code);
}
/* Fails the test unless the file opens and check --full finds no error in it. */
void scan_assert_clean(const char *path);

#endif
