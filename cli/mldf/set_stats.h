/* What the rows of a set say about its values, without reading one of them. */
#ifndef COFFER_CLI_SET_STATS_H
#define COFFER_CLI_SET_STATS_H

#include "coffer/mldf.h"
#include "mldf/tally.h"

typedef struct span {
    uint64_t count;
    double min, max, sum;
} span;

double span_mean(const span *values); /* NaN when there are none */

typedef struct field_stats {
    const coffer_mldf_field *field;
    uint64_t present, absent, unusual; /* unusual: numbers that are not finite */
    span sizes;                        /* of payloads, stored bytes */
    span numbers;                      /* of scalars */
    span widths, heights;              /* of pictures */
    span seconds;                      /* of sounds */
    span tokens;
    tally values; /* of whole numbers; of pictures width << 16 | height; of sounds the sample rate */
} field_stats;

typedef struct set_stats {
    uint64_t samples;
    field_stats *fields;
    size_t field_count;
    uint64_t payload_bytes;  /* as if every sample had its own */
    uint64_t distinct_bytes; /* each payload once; payload_bytes when there were too many to tell */
} set_stats;

/* out is to be freed after a success. */
coffer_status set_stats_read(set_stats *out, const coffer_mldf *set, const coffer_progress *progress,
                             coffer_error *err);
void set_stats_free(set_stats *stats);

#endif
