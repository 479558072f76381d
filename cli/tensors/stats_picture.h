/* stats -o: histograms of tensors as a picture. */
#ifndef COFFER_CLI_STATS_PICTURE_H
#define COFFER_CLI_STATS_PICTURE_H

#include "cli.h"

/* A tensor and what was computed of it. */
typedef struct stats_row {
    const coffer_tensor *tensor;
    const coffer_tensor_stats *stats;
} stats_row;

/* The default number of tensors, and the most that fit into a picture. */
enum { STATS_PICTURE_COLUMNS = 3, STATS_PICTURE_TENSORS = 24, STATS_PICTURE_MOST = 270 };

/* count : from 1 to STATS_PICTURE_MOST of the `total` tensors. */
coffer_status stats_draw(const char *path, const char *title, const stats_row *rows, size_t count,
                         size_t total, coffer_error *err);

#endif
