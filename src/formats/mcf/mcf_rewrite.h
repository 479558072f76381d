/* A model written anew from what another file has: compact and repair. */
#ifndef COFFER_FORMATS_MCF_REWRITE_H
#define COFFER_FORMATS_MCF_REWRITE_H

#include "formats/mcf/mcf_writer.h"

typedef struct coffer__mcf_rewrite {
    const coffer_mcf *model;
    const bool *left_out; /* by tensor; NULL = all are taken over */
    const coffer_progress *progress;
} coffer__mcf_rewrite;

/* The alignment that all payloads share, as a writer's option. */
uint32_t coffer__mcf_common_alignment(const coffer_mcf *model);
/* Takes over the sections but those that the writer makes, then the tensors in the order in which they stand.
 * Names for one payload share it again. */
coffer_status coffer__mcf_take_over(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                    coffer_error *err);

#endif
