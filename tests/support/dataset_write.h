/* Training sets for tests, written by the library: the fields and values of dataset_small. */
#ifndef SUPPORT_DATASET_WRITE_H
#define SUPPORT_DATASET_WRITE_H

#include "support/dataset.h"

extern const uint8_t dataset_key[COFFER_MLDF_KEY_SIZE];

coffer_mldf_field dataset_field_of(const char *name, uint16_t type, uint16_t flags);
/* flags : of the fields "caption" and "blob". */
void dataset_usual_fields(coffer_mldf_field fields[SMALL_FIELDS], uint16_t flags);
/* Small pages, the key; files are overwritten. */
coffer_mldf_writer_opts dataset_small_pages(void);
coffer_mldf_update_opts dataset_update_opts(void);
/* samples and fields : NULL = all. */
coffer_status dataset_extract(const char *path, const coffer_mldf *set, const uint64_t *samples,
                              uint64_t sample_count, const size_t *fields, size_t field_count,
                              const coffer_mldf_writer_opts *write, coffer_error *err);
/* Sets the values of a sample of the small set; it is not ended. */
coffer_status dataset_set_sample(coffer_mldf_writer *writer, uint64_t as, coffer_error *err);
/* Writes samples [first, first + count) of the small set. */
coffer_status dataset_write_samples(coffer_mldf_writer *writer, uint64_t first, uint64_t count,
                                    coffer_error *err);
/* Writes a set, or appends to one. */
coffer_status dataset_create(const char *path, uint64_t samples, uint16_t flags,
                             const coffer_mldf_writer_opts *opts, coffer_error *err);
coffer_status dataset_append(const char *path, uint64_t first, uint64_t count, coffer_error *err);

/* Fails the test unless sample i of the file is sample which[i] of the small set (NULL = i). */
void dataset_expect(const char *path, const uint64_t *which, uint64_t count);
/* Fails the test unless check --full finds nothing. */
void dataset_expect_clean(const char *path);

#endif
