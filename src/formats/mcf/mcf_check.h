/* A check under way: what its parts share. Each part adds findings and fails only when it cannot go on. */
#ifndef COFFER_FORMATS_MCF_CHECK_H
#define COFFER_FORMATS_MCF_CHECK_H

#include "base/report.h"
#include "formats/mcf/mcf_private.h"

typedef struct coffer__mcf_checker {
    coffer_report *report;
    coffer_source *source;
    const coffer_check_opts *opts;
    coffer_limits limits;
    coffer__mcf_header header;
    coffer_mcf_section *sections; /* those that lie where they may */
    size_t section_count;
    bool has_index;
    coffer__mcf_index index;
    bool has_data;
    coffer_mcf_section data;
    coffer__mcf_quant_record *quants;
    size_t quant_count;
    uint64_t quants_at; /* place of the first record in the file */
    uint32_t *quant_of; /* by tensor: 1 + number of its first record; NULL when there is no index */
} coffer__mcf_checker;

/* The tensor's record says that it holds activations; only int8 and int4 can. */
const coffer_mcf_section *coffer__mcf_checker_section(const coffer__mcf_checker *check, uint32_t type);
bool coffer__mcf_checker_activations(const coffer__mcf_checker *check, size_t tensor);

/* Entries, names and where payloads lie. */
coffer_status coffer__mcf_check_index(coffer__mcf_checker *check, coffer_error *err);
/* What shares bytes with what, and bytes that belong to nothing. */
coffer_status coffer__mcf_check_places(coffer__mcf_checker *check, coffer_error *err);
/* Loads the records; says what is wrong with them. */
coffer_status coffer__mcf_check_quants(coffer__mcf_checker *check, coffer_error *err);
/* What quantizing is said to have cost. */
coffer_status coffer__mcf_check_quality(coffer__mcf_checker *check, coffer_error *err);
/* Sums and the bytes of quantized payloads: all of them, or what costs next to nothing. */
coffer_status coffer__mcf_check_payloads(coffer__mcf_checker *check, coffer_error *err);

#endif
