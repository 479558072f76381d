/* Where a set is written: into a new file, or after the end of one that is changed in place. */
#ifndef COFFER_FORMATS_MLDF_OUTPUT_H
#define COFFER_FORMATS_MLDF_OUTPUT_H

#include "formats/mldf/mldf_private.h"
#include "io/journal.h"
#include "io/sink.h"

typedef struct coffer__mldf_output {
    coffer__sink *sink;
    coffer__update *update;
    uint64_t position; /* in the file */
    bool summed;
    uint32_t crc;          /* of what was written since the caller set it, when summed */
    bool guarded, payload; /* the file gets a guard; a payload is being written */
    uint32_t tail_crc;     /* of what was written since the last payload, when guarded */
} coffer__mldf_output;

coffer_status coffer__mldf_out_write(coffer__mldf_output *out, const void *bytes, size_t len,
                                     coffer_error *err);
/* The same, as a callback of coffer__mldf_spill_each. */
coffer_status coffer__mldf_out_take(void *output, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer__mldf_out_zeros(coffer__mldf_output *out, uint64_t count, coffer_error *err);
/* Zeros up to a multiple of alignment, a power of two. */
coffer_status coffer__mldf_out_align(coffer__mldf_output *out, uint64_t alignment, coffer_error *err);
/* Changes bytes that were written before; of an update, also those that it was begun for. */
coffer_status coffer__mldf_out_patch(coffer__mldf_output *out, uint64_t offset, const void *bytes, size_t len,
                                     coffer_error *err);

/* Magic and header. */
void coffer__mldf_compose_head(uint8_t out[COFFER__MLDF_HEAD_SIZE], const coffer__mldf_header *head);
/* The descriptor of a field, without the bytes that only one of the strides has. arguments : of a type that
 * is unknown; may be NULL. */
void coffer__mldf_compose_field(uint8_t out[COFFER__MLDF_STRIDE_TUTORIAL], const coffer_mldf_field *field,
                                const uint8_t *arguments);

#endif
