/* The state of a repair, shared by mcf_repair*.c. */
#ifndef COFFER_FORMATS_MCF_REPAIR_H
#define COFFER_FORMATS_MCF_REPAIR_H

#include "base/report.h"
#include "formats/mcf/mcf_writer.h"

typedef struct coffer__mcf_rescue {
    coffer_report *report;
    coffer_source *source;
    const coffer_repair_opts *opts;
    coffer_mcf *model; /* assembled from the parts that could be read */
    bool directory_lost;
    bool index_lost; /* the directory has one, but not inside the file */
    bool *left_out;  /* by tensor */
    size_t kept;
    bool has_sums;  /* the checksums of the file as it was written */
    bool sums_lost; /* the file has some, but they are damaged */
    coffer__mcf_sums sums;
    bool has_shift; /* bytes were inserted or removed: what follows may have moved */
    bool shift_reported;
    int64_t shift;
    coffer_mcf *copy;           /* of --from; NULL = none */
    coffer__mcf_patch *patches; /* bytes of tensors that are taken from elsewhere */
    size_t patch_count, patch_capacity;
    coffer__mcf_moved *moved; /* sections that are taken from elsewhere */
    size_t moved_count, moved_capacity;
    coffer__mcf_damages damages; /* that the new file records; `names` is not used */
    coffer_error failure;        /* the first failure to read, reported when all are judged */
    coffer_error first;          /* the first thing that check found and repair corrects */
    bool *from_copy;             /* by tensor: the whole payload is from the copy; NULL = none */
} coffer__mcf_rescue;

/* ---- mcf_repair_verify.c ---- */

/* Finds the checksums, also without a directory, and opens the copy. */
coffer_status coffer__mcf_gather_evidence(coffer__mcf_rescue *work, coffer_error *err);
/* Takes the whole payload of a tensor from the copy, when that has an intact one. */
bool coffer__mcf_take_from_copy(coffer__mcf_rescue *work, size_t tensor);
/* Whether Checksums says that the bytes of a section are other ones. */
bool coffer__mcf_is_damaged_section(coffer__mcf_rescue *work, const coffer_mcf_section *section);
/* Verifies all tensors and sections that are kept: damaged ones are taken from elsewhere or recorded. */
coffer_status coffer__mcf_verify_rescued(coffer__mcf_rescue *work, coffer_error *err);
/* Has the new file record that it lacks a tensor, or with a type a section, unless it has one in the end.
 * name : stays there until the file is written. */
void coffer__mcf_record_lost(coffer__mcf_rescue *work, uint32_t section, const char *name, size_t name_len);
void coffer__mcf_rescue_free(coffer__mcf_rescue *work);

#endif
