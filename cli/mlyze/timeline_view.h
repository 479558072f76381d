/* Memory over time: as text, as a picture, as CSV. */
#ifndef COFFER_CLI_TIMELINE_VIEW_H
#define COFFER_CLI_TIMELINE_VIEW_H

#include "base/buffer.h"
#include "cli.h"

typedef struct timeline_view {
    const coffer_mlyze *trace;
    const coffer_mlyze_timeline *timeline;
    const char *path; /* of the trace */
    uint64_t highest_bytes, highest_allocs;
    double highest_rate; /* allocations, or events where those were not counted, per second */
} timeline_view;

timeline_view timeline_view_of(const coffer_mlyze *trace, const coffer_mlyze_timeline *timeline,
                               const char *path);
/* Per second, over the width of a point. */
double timeline_rate(const timeline_view *view, const coffer_mlyze_point *point);
const char *timeline_rate_name(const timeline_view *view); /* "allocations/s" or "events/s" */
const char *timeline_mark_name(const timeline_view *view, const coffer_mlyze_mark *mark);

void timeline_print(const timeline_view *view, FILE *out);
void timeline_put_csv(coffer__buffer *out, const timeline_view *view);
void timeline_add(coffer_node *root, const timeline_view *view);
/* Room for points in a picture of that width. */
unsigned timeline_plot_width(unsigned width);
/* Draws and saves. */
coffer_status timeline_draw(const timeline_view *view, const char *path, unsigned width, unsigned height,
                            coffer_error *err);

#endif
