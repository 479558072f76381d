/* The account of a pack. */
#ifndef COFFER_CONVERT_DATASET_ACCOUNT_H
#define COFFER_CONVERT_DATASET_ACCOUNT_H

#include "convert/datasets/dataset_input.h"

/* A sample that was left out before the pack was interrupted. */
typedef struct coffer__earlier_skip {
    uint64_t index;
    const char *name;
    size_t name_len;
    const char *code, *text;
} coffer__earlier_skip;

typedef struct coffer__dataset_account {
    coffer_node *out, *list;  /* may be NULL */
    uint64_t packed, skipped; /* files, members or lines of samples */
    uint64_t unexpected;      /* left out without being asked to */
    char *path;               /* of the notes for a resumed pack; NULL = none */
    int fd;
    coffer__arena texts;
    coffer__earlier_skip *earlier;
    size_t earlier_count, earlier_capacity;
} coffer__dataset_account;

/* out_path : NULL when the pack cannot be resumed. */
coffer_status coffer__dataset_account_open(coffer__dataset_account *account, coffer_node *out,
                                           const char *out_path, bool resumed, coffer_error *err);
/* done : nothing is left to be resumed. */
void coffer__dataset_account_close(coffer__dataset_account *account, bool done);
/* A sample that an interrupted pack has handled. */
void coffer__dataset_account_resumed(coffer__dataset_account *account, const coffer__dataset_sample *sample);
/* A sample that is left out now. */
coffer_status coffer__dataset_account_skip(coffer__dataset_account *account,
                                           const coffer__dataset_sample *sample, coffer_error *err);
/* The members of coffer_mldf_pack's report that are about the account. of_part : without what the input
 * leaves out. */
void coffer__dataset_account_describe(coffer__dataset_account *account, const coffer__dataset_input *input,
                                      const uint64_t changes[COFFER__CHANGE_COUNT], bool of_part);

#endif
