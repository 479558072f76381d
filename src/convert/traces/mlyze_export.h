/* What the conversions from traces share: settings, the analysis by stack or the events one block at a time,
 * names of frames, and the text on its way out. */
#ifndef COFFER_CONVERT_MLYZE_EXPORT_H
#define COFFER_CONVERT_MLYZE_EXPORT_H

#include "coffer/mlyze.h"
#include "convert/convert.h"
#include "outside/archives/pack.h"

typedef struct coffer__mlyze_export {
    const coffer__convert_job *job;
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats; /* profiles only */
    coffer_mlyze_measure what; /* PEAK when nothing is said */
    bool what_given;
    uint64_t begin, end; /* events; end UINT64_MAX = all */
    size_t block, block_count;
    coffer_mlyze_events events;
    coffer__sink *sink;
    coffer__pack *pack;
    coffer__buffer out; /* text that waits to be written */
} coffer__mlyze_export;

typedef enum coffer__mlyze_export_way {
    COFFER__MLYZE_EXPORT_PROFILE, /* analyzed: rows by stack */
    COFFER__MLYZE_EXPORT_EVENTS
} coffer__mlyze_export_way;

/* Opens the trace, understands the settings, and creates the output. */
coffer_status coffer__mlyze_export_open(coffer__mlyze_export *out, const coffer__convert_job *job,
                                        coffer__mlyze_export_way way, coffer__packing packing,
                                        coffer_error *err);
/* Writes what waits in `out` when it is much. */
coffer_status coffer__mlyze_export_drain(coffer__mlyze_export *export, coffer_error *err);
/* Writes the rest; the file stands. */
coffer_status coffer__mlyze_export_commit(coffer__mlyze_export *export, coffer_error *err);
void coffer__mlyze_export_close(coffer__mlyze_export *export);

/* The next events of the window; NULL in *events at the end. They begin and end where the window does. */
coffer_status coffer__mlyze_export_next(const coffer_mlyze_events **events, coffer__mlyze_export *export,
                                        coffer_error *err);

/* "peak", "leaks", "total", "temporaries" */
const char *coffer__mlyze_measure_name(coffer_mlyze_measure measure);
/* Frames of a stack by its index, innermost first; one that stands for those not known when it is
 * COFFER_INDEX_NONE or without frames. */
const coffer_mlyze_frame *coffer__mlyze_export_frames(size_t *depth, const coffer__mlyze_export *export,
                                                      size_t stack);
/* Never NULL, never empty: "?" for what is not known. */
const char *coffer__mlyze_export_function(const coffer__mlyze_export *export,
                                          const coffer_mlyze_frame *frame);
/* "" when it is not known. */
const char *coffer__mlyze_export_file(const coffer__mlyze_export *export, const coffer_mlyze_frame *frame);
/* A line of text must stay one: control characters become spaces, and so does `also`, where it is not 0. */
void coffer__mlyze_put_line_text(coffer__buffer *out, const char *text, char also);
/* "grab", and with `place` "grab (grow.c:9)" or "grab (in grow.c)"; `also` as above. */
void coffer__mlyze_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame,
                             bool place, char also);
/* "0x0: grab (grow.c:9)" as valgrind's tools have it. */
void coffer__mlyze_put_label(coffer__buffer *out, const coffer__mlyze_export *export,
                             const coffer_mlyze_frame *frame);
/* The command that was traced, as the metadata tells; "" when it does not. */
const char *coffer__mlyze_export_command(const coffer__mlyze_export *export);
/* The command, or the name of the file. */
const char *coffer__mlyze_export_title(const coffer__mlyze_export *export);

#endif
