/* The points of a timeline, and the two ways to fill them in. */
#ifndef COFFER_FORMATS_MLYZE_TIMELINE_H
#define COFFER_FORMATS_MLYZE_TIMELINE_H

#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/mlyze_private.h"

struct coffer_mlyze_timeline {
    uint64_t begin_us, end_us;
    size_t count;
    coffer_mlyze_point *points;
    size_t mark_count;
    coffer_mlyze_mark *marks;
    bool exact; /* events were decoded */
};

/* Divides [begin, end] into at most `width` points; none for an empty range. */
coffer_status coffer__mlyze_make_points(coffer_mlyze_timeline *timeline, uint64_t begin, uint64_t end,
                                        uint32_t width, coffer_error *err);
void coffer__mlyze_clear_timeline(coffer_mlyze_timeline *timeline);

/* Moves from point to point with the time. */
typedef struct coffer__mlyze_pen {
    coffer_mlyze_timeline *timeline;
    size_t at;
    uint64_t next;     /* start of the next point */
    coffer__wide live; /* current level */
    uint64_t allocs;
    bool begun;
} coffer__mlyze_pen;

void coffer__mlyze_pen_set(coffer__mlyze_pen *pen, coffer_mlyze_timeline *timeline);
/* Moves to the point of that time; points in between keep the current level. */
void coffer__mlyze_pen_move(coffer__mlyze_pen *pen, uint64_t time);
void coffer__mlyze_pen_lift(coffer__mlyze_pen *pen); /* to the end */

coffer_status coffer__mlyze_draw_exact(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                                       const coffer_mlyze_timeline_opts *opts, coffer_error *err);
coffer_status coffer__mlyze_draw_index(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                                       const coffer_mlyze_timeline_opts *opts, coffer_error *err);

#endif
