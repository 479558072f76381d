/* What may not stand in a quantized payload, found piece by piece, in any number of threads. */
#ifndef COFFER_FORMATS_MCF_SCAN_H
#define COFFER_FORMATS_MCF_SCAN_H

#include "coffer/source.h"
#include "quant/quant.h"

#include <stdatomic.h>

typedef enum coffer__mcf_fault {
    COFFER__MCF_FAULT_CODE,    /* the most negative one */
    COFFER__MCF_FAULT_TAIL,    /* past the last column of a row */
    COFFER__MCF_FAULT_SUB,     /* sub-scale over 63 */
    COFFER__MCF_FAULT_SCALE,   /* NaN or infinite */
    COFFER__MCF_FAULT_PADDING, /* between regions */
    COFFER__MCF_FAULT_HALF,    /* int4: behind the last code */
    COFFER__MCF_FAULT_COUNT
} coffer__mcf_fault;

typedef struct coffer__mcf_faults {
    atomic_uint_least64_t count[COFFER__MCF_FAULT_COUNT];
    atomic_uint_least64_t first[COFFER__MCF_FAULT_COUNT]; /* place in the payload; UINT64_MAX = none */
} coffer__mcf_faults;

#define COFFER__MCF_SCAN_PIECE ((uint64_t)768 << 10) /* whole blocks of every type, whole words of codes */
#define COFFER__MCF_SCAN_SCRATCH ((size_t)COFFER__MCF_SCAN_PIECE + 8)

void coffer__mcf_faults_init(coffer__mcf_faults *faults);
/* How many pieces a payload has: those of its codes, and one for all that stands before them. */
uint64_t coffer__mcf_scan_pieces(const coffer__quant_layout *layout);
/* offset : of the payload. scratch : COFFER__MCF_SCAN_SCRATCH bytes. */
coffer_status coffer__mcf_scan_piece(coffer__mcf_faults *faults, coffer_source *src, uint64_t offset,
                                     const coffer__quant_layout *layout, uint64_t piece, uint8_t *scratch,
                                     coffer_error *err);

#endif
