/* Shared by the files of this folder. */
#ifndef COFFER_FORMATS_MSCAN_PRIVATE_H
#define COFFER_FORMATS_MSCAN_PRIVATE_H

#include "coffer/format.h"
#include "coffer/mscan.h"
#include "formats/mscan/mscan_layout.h"
#include "formats/mscan/mscan_metadata.h"

#include <stdatomic.h>

typedef enum coffer__mscan_order {
    COFFER__MSCAN_ORDER_UNKNOWN = 0,
    COFFER__MSCAN_ORDER_SORTED,
    COFFER__MSCAN_ORDER_UNSORTED
} coffer__mscan_order;

typedef struct coffer__mscan_verifier coffer__mscan_verifier; /* mscan_sums.h */

/* Layers by which records can be grouped. The last one is "other". */
typedef struct coffer__mscan_layer_list {
    size_t count;
    char (*names)[24];
    uint32_t *of_param; /* by index of the parameter: index of its layer */
} coffer__mscan_layer_list;

struct coffer_mscan {
    coffer_source *source;
    coffer_source *own_source; /* the same when coffer_mscan_open_path opened it, else NULL */
    coffer_limits limits;
    uint64_t record_area; /* file offset of record 0: the header length */
    uint64_t record_count;
    coffer__mscan_metadata metadata;
    coffer__mscan_verifier *verifier; /* NULL without checksums of the records */
    coffer__mscan_layer_list layers;
    atomic_int order; /* coffer__mscan_order of token_idx, determined on the first request */
};

typedef struct coffer__mscan_header {
    uint16_t version;
    uint32_t header_len;
    uint32_t record_count;
} coffer__mscan_header;

/* Reads and checks the 15 bytes; on success header_len is between 15 and the size of the file. */
coffer_status coffer__mscan_read_header(coffer__mscan_header *out, coffer_source *src, coffer_error *err);
/* Reads the metadata of a file whose header is good; report as in coffer__mscan_metadata_load. */
coffer_status coffer__mscan_read_metadata(coffer__mscan_metadata *out, coffer_source *src,
                                          const coffer__mscan_header *header, const coffer_limits *limits,
                                          coffer_report *report, coffer_error *err);
void coffer__mscan_write_header(uint8_t out[COFFER__MSCAN_HEADER_SIZE], uint32_t header_len,
                                uint32_t record_count);

/* Packed records [first, first + count) of a file whose records start at `area`: borrowed from the source if
 * it has a view, else read into scratch (12 × count bytes). */
coffer_status coffer__mscan_fetch(const uint8_t **out, coffer_source *src, uint64_t area, uint64_t first,
                                  size_t count, uint8_t *scratch, coffer_error *err);

/* The same for a scan, after comparing the checksums of these records. */
coffer_status coffer__mscan_records(const uint8_t **out, const coffer_mscan *scan, uint64_t first,
                                    size_t count, uint8_t *scratch, coffer_error *err);

/* The row's functions. */
coffer_status coffer__mscan_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                     coffer_error *err);
coffer_status coffer__mscan_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err);
coffer_status coffer__mscan_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err);
coffer_status coffer__mscan_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                 const coffer_diff_opts *opts, coffer_error *err);
coffer_status coffer__mscan_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                   const coffer_repair_opts *opts, coffer_error *err);

#endif
