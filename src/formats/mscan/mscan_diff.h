/* Shared by the report and the comparison of metadata (mscan_diff.c) and that of records
 * (mscan_diff_records.c). */
#ifndef COFFER_FORMATS_MSCAN_DIFF_H
#define COFFER_FORMATS_MSCAN_DIFF_H

#include "base/node_diff.h"
#include "base/table.h"
#include "formats/mscan/mscan_private.h"

/* For a param_id of b: the id that the same parameter has in a. Parameters are matched by name, those that
 * are left by id, and one that only b has is COFFER__MSCAN_ONLY_B. */
#define COFFER__MSCAN_ONLY_B UINT32_MAX
typedef struct coffer__mscan_id_map {
    uint32_t to_a[COFFER__MSCAN_PARAM_IDS];
    bool identity; /* every id means the same in both */
} coffer__mscan_id_map;

/* A record with its token, parameter (the id in a) and block in one number. */
typedef struct coffer__mscan_keyed {
    uint64_t key;
    uint16_t value[2]; /* by coffer_mscan_metric */
} coffer__mscan_keyed;

typedef struct coffer__mscan_diff_side {
    const coffer_mscan *scan;
    uint64_t next; /* first record that was not compared */
    coffer__mscan_keyed *records, *scratch;
    size_t count;
} coffer__mscan_diff_side;

typedef enum coffer__mscan_difference_kind {
    COFFER__MSCAN_DIFF_CHANGED,
    COFFER__MSCAN_DIFF_ONLY_IN_A,
    COFFER__MSCAN_DIFF_ONLY_IN_B,
    COFFER__MSCAN_DIFF_PARAM_ONLY_IN_B /* a does not have the parameter: the id is that of b */
} coffer__mscan_difference_kind;

/* A difference to list. */
typedef struct coffer__mscan_difference {
    coffer__mscan_difference_kind kind;
    uint32_t token;
    uint16_t param, block;
    uint16_t value[2][2]; /* of a and b */
} coffer__mscan_difference;

/* Differences of the records with one key. */
typedef struct coffer__mscan_diff_group {
    uint64_t key; /* as in coffer_mscan_by; parameters have their id in a, those that only b has 65536 + id */
    uint64_t changed, only_in_a, only_in_b;
    int64_t sum[2]; /* by metric: b − a, of the stored integers of changed records */
    uint16_t largest[2];
} coffer__mscan_diff_group;

typedef struct coffer__mscan_diff_groups {
    coffer_mscan_by by;
    coffer__mscan_diff_group *list;
    size_t count, capacity, most; /* most : what the memory limit allows */
    coffer__table table;          /* indices by key */
} coffer__mscan_diff_groups;

typedef struct coffer__mscan_comparison {
    coffer__mscan_diff_groups groups;
    coffer__mscan_diff_side a, b;
    size_t capacity; /* of each of the four arrays */
    const coffer__mscan_id_map *ids;
    coffer_diff_opts opts;
    coffer_limits limits;

    uint64_t equal, changed, only_in_a, only_in_b;
    uint64_t differing[2], sum[2]; /* by metric: records that differ by more than the tolerance; |a − b| */
    uint16_t largest[2];
    coffer__mscan_difference *shown;
    size_t shown_count, shown_capacity;
} coffer__mscan_comparison;

/* by : "param" (or NULL), "layer", "token" or "sequence". */
coffer_status coffer__mscan_diff_groups_init(coffer__mscan_diff_groups *out, const char *by,
                                             const coffer_limits *limits, coffer_error *err);
void coffer__mscan_diff_groups_free(coffer__mscan_diff_groups *groups);
/* Adds a difference. */
coffer_status coffer__mscan_diff_groups_take(coffer__mscan_diff_groups *groups, const coffer_mscan *a,
                                             const coffer__mscan_difference *what, coffer_error *err);
/* Puts the largest differences first. */
void coffer__mscan_diff_groups_sort(coffer__mscan_diff_groups *groups);
/* Adds the list "groups", at most `most` of them. */
void coffer__mscan_diff_groups_put(coffer_node *out, const coffer__mscan_diff_groups *groups,
                                   const coffer_mscan *a, const coffer_mscan *b, uint64_t most);

/* A difference of stored integers in real units, where both scans have one scale for all records and it is
 * the same; otherwise unchanged. */
double coffer__mscan_diff_real(const coffer_mscan *a, const coffer_mscan *b, coffer_mscan_metric metric,
                               double difference);
bool coffer__mscan_diff_is_real(const coffer_mscan *a, const coffer_mscan *b, coffer_mscan_metric metric);

/* Compares the records of a.scan and b.scan and counts the differences. */
coffer_status coffer__mscan_compare_records(coffer__mscan_comparison *cmp, coffer_error *err);

#endif
