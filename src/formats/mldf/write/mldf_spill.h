/* Bytes that grow at the end and are read back once: in memory up to a limit, then in a file without a name.
 */
#ifndef COFFER_FORMATS_MLDF_SPILL_H
#define COFFER_FORMATS_MLDF_SPILL_H

#include "coffer/error.h"

typedef struct coffer__mldf_spill {
    uint8_t *memory; /* what is not in the file */
    size_t buffered, capacity;
    size_t limit; /* of the memory */
    uint64_t in_file;
    bool has_file;
    int fd;
} coffer__mldf_spill;

/* limit : at least one piece is always held. */
void coffer__mldf_spill_init(coffer__mldf_spill *spill, size_t limit);
void coffer__mldf_spill_free(coffer__mldf_spill *spill);
uint64_t coffer__mldf_spill_size(const coffer__mldf_spill *spill);
coffer_status coffer__mldf_spill_add(coffer__mldf_spill *spill, const void *bytes, size_t len,
                                     coffer_error *err);

/* Reads bytes that were added; the range is there. */
coffer_status coffer__mldf_spill_read(const coffer__mldf_spill *spill, uint64_t offset, void *out, size_t len,
                                      coffer_error *err);

/* Hands out all bytes in order, piece by piece. */
typedef coffer_status (*coffer__mldf_spill_take)(void *context, const void *bytes, size_t len,
                                                 coffer_error *err);
coffer_status coffer__mldf_spill_each(const coffer__mldf_spill *spill, coffer__mldf_spill_take take,
                                      void *context, coffer_error *err);

#endif
