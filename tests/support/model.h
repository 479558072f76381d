/* Models for tests: written with the library, or put together byte by byte. */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include "coffer/format.h"
#include "coffer/mcf.h"
#include "support/acts.h"
#include "support/temp.h"

/* A tensor of bytes, in one call. */
/* Options of a writer that replaces an existing file. */
extern const coffer_mcf_writer_opts model_overwrite;

coffer_status model_add(coffer_mcf_writer *writer, const char *name, coffer_dtype dtype, uint32_t rank,
                        const uint64_t *dims, const void *bytes, coffer_error *err);
/* A small model: "a" 2×3 f32 of 0…5, "b" u8 of 4, "c" the same bytes as "a", a config and a ModelInfo. */
coffer_status model_create(const char *path, const coffer_mcf_writer_opts *opts, coffer_error *err);

/* Opens, or fails the test. */
coffer_source *model_source(const char *path);
coffer_source *model_source_of(const void *bytes, size_t len);
coffer_mcf *model_open(coffer_source *src);

/* See acts.h. */
static inline coffer_report *model_check(coffer_source *src, bool full)
{
    return acts_check(src, full);
}
static inline bool model_has(const coffer_report *report, coffer_status code, coffer_severity severity)
{
    return acts_found(report, code, severity);
}
static inline const char *model_text(const coffer_report *report, coffer_status code)
{
    return acts_text(report, code);
}
/* Fails the test unless the file opens and check --full finds nothing in it. */
void model_assert_clean(const char *path);

#endif
