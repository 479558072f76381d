/* Names of samples and fields in a command line. */
#ifndef COFFER_CLI_SAMPLE_PLACE_H
#define COFFER_CLI_SAMPLE_PLACE_H

#include "cli.h"
#include "mldf/sample_value.h"

#define MLDF_ALL_FIELDS SIZE_MAX

/* "42", "42.image", "40..50", "40..50.caption", "caption" for a whole column. */
typedef struct sample_place {
    uint64_t first, end; /* samples; end is not among them */
    bool is_one;         /* a single sample was named */
    size_t field;        /* MLDF_ALL_FIELDS when none was named */
} sample_place;

/* what : NULL = all. 0, or CLI_USAGE after a message that says what there is. */
int sample_place_read(sample_place *out, const cli_args *args, const coffer_mldf *set, const char *what);
/* The field of that name; messages as above. */
int sample_field_find(size_t *out, const cli_args *args, const coffer_mldf *set, const char *name);
/* Reads every --field into the reader's selection; none = all fields. Messages as above. */
int sample_fields_read(sample_reader *out, const cli_args *args);
/* Selects one field. */
int sample_field_choose(sample_reader *out, const cli_args *args, size_t field);

/* Numbers of samples, ascending, each once. */
typedef struct sample_list {
    uint64_t *at;
    size_t count;
} sample_list;

/* Parses the operands from `first` on: "3", "7..9". 0, or the exit status after a message; to be freed in
 * both cases. */
int sample_list_read(sample_list *out, const cli_args *args, size_t first, uint64_t sample_count);
void sample_list_free(sample_list *list);

#define MLDF_WHERE_OPTION                                                                            \
    {                                                                                                \
        "where", 0, "CONDITION", NULL,                                                               \
            "only samples that meet it, such as label=3, score>=0.5, 'path~cat/*', image.width<64; " \
            "repeatable"                                                                             \
    }
/* Reads every --where: the samples that meet all of them. *given is false, and the list empty, without one.
 * 0, or the exit status after a message; to be freed in both cases. */
int sample_where_read(sample_list *out, bool *given, const cli_args *args, const coffer_mldf *set);
/* Leaves the samples of the list that are in the place, and makes the place one of positions in the list. */
void sample_list_cut(sample_list *list, sample_place *place);

#endif
