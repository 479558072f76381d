/* The state of a check. Each part adds findings and fails only when it cannot continue. */
#ifndef COFFER_FORMATS_MCF_CHECK_H
#define COFFER_FORMATS_MCF_CHECK_H

#include "base/report.h"
#include "formats/mcf/mcf_private.h"
#include "quant/quant.h"

typedef struct coffer__mcf_checker {
    coffer_report *report;
    coffer_source *source;
    const coffer_check_opts *opts;
    coffer_limits limits;
    coffer__mcf_header header;
    coffer_mcf_section *sections; /* those with a valid range */
    size_t section_count;
    bool has_index;
    coffer__mcf_index index;
    bool has_data;
    coffer_mcf_section data;
    coffer__mcf_quant_record *quants;
    size_t quant_count;
    uint64_t quants_at; /* place of the first record in the file */
    uint32_t *quant_of; /* by tensor: 1 + number of its first record; NULL without an index */
} coffer__mcf_checker;

const coffer_mcf_section *coffer__mcf_checker_section(const coffer__mcf_checker *check, uint32_t type);
bool coffer__mcf_checker_activations(const coffer__mcf_checker *check, size_t tensor);

/* Checks entries, names and the places of payloads. */
coffer_status coffer__mcf_check_index(coffer__mcf_checker *check, coffer_error *err);
/* Reports overlaps and unreferenced bytes. */
coffer_status coffer__mcf_check_places(coffer__mcf_checker *check, coffer_error *err);
/* Loads and checks the records. */
coffer_status coffer__mcf_check_quants(coffer__mcf_checker *check, coffer_error *err);
/* Checks the QuantQuality section. */
coffer_status coffer__mcf_check_quality(coffer__mcf_checker *check, coffer_error *err);
/* Checks checksums and quantized payloads: all of them, or only small files. */
coffer_status coffer__mcf_check_payloads(coffer__mcf_checker *check, coffer_error *err);

/* Without `full`, only this many bytes of payloads are read: they take no noticeable time. */
#define COFFER__MCF_FREE_OF_COST ((uint64_t)64 << 20)

/* ---- Checksums, DirectoryCopy and Damage (mcf_check_sums.c) ---- */

/* Compares header and directory with their copy. */
coffer_status coffer__mcf_check_copy(coffer__mcf_checker *check, coffer_error *err);
coffer_status coffer__mcf_check_sums(coffer__mcf_checker *check, coffer_error *err);
/* Reports recorded damage that is still there. */
coffer_status coffer__mcf_check_damage(coffer__mcf_checker *check, coffer_error *err);

/* ---- Invalid values in quantized payloads, found in pieces on any number of threads (mcf_scan.c) ---- */

typedef enum coffer__mcf_fault {
    COFFER__MCF_FAULT_CODE,    /* the most negative one */
    COFFER__MCF_FAULT_TAIL,    /* past the last column of a row */
    COFFER__MCF_FAULT_SUB,     /* sub-scale over 63 */
    COFFER__MCF_FAULT_SCALE,   /* NaN or infinite */
    COFFER__MCF_FAULT_PADDING, /* between regions */
    COFFER__MCF_FAULT_HALF,    /* int4: after the last code */
    COFFER__MCF_FAULT_COUNT
} coffer__mcf_fault;

typedef struct coffer__mcf_faults {
    atomic_uint_least64_t count[COFFER__MCF_FAULT_COUNT];
    atomic_uint_least64_t first[COFFER__MCF_FAULT_COUNT]; /* place in the payload; UINT64_MAX = none */
} coffer__mcf_faults;

#define COFFER__MCF_SCAN_PIECE ((uint64_t)768 << 10) /* whole blocks of every type, whole words of codes */
#define COFFER__MCF_SCAN_SCRATCH ((size_t)COFFER__MCF_SCAN_PIECE + 8)

void coffer__mcf_faults_init(coffer__mcf_faults *faults);
/* How many pieces a payload has: those of its codes, and one for everything before them. */
uint64_t coffer__mcf_scan_pieces(const coffer__quant_layout *layout);
/* offset : of the payload. scratch : COFFER__MCF_SCAN_SCRATCH bytes. */
coffer_status coffer__mcf_scan_piece(coffer__mcf_faults *faults, coffer_source *src, uint64_t offset,
                                     const coffer__quant_layout *layout, uint64_t piece, uint8_t *scratch,
                                     coffer_error *err);

#endif
