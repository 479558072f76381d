/* Shared by the conversions from traces: settings, statistics by stack or events by block, names of frames,
 * and the output. */
#ifndef COFFER_CONVERT_MLYZE_EXPORT_H
#define COFFER_CONVERT_MLYZE_EXPORT_H

#include "coffer/mlyze.h"
#include "convert/convert.h"
#include "outside/archives/unpack.h"

typedef struct coffer__mlyze_export {
    const coffer__convert_job *job;
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats; /* profiles only */
    coffer_mlyze_measure what; /* PEAK by default */
    bool what_given;
    uint64_t begin, end; /* events; end UINT64_MAX = all */
    size_t block, block_count;
    coffer_mlyze_events events;
    coffer__sink *sink;
    coffer__pack *pack;
    coffer__buffer out; /* pending text */
} coffer__mlyze_export;

typedef enum coffer__mlyze_export_way {
    COFFER__MLYZE_EXPORT_PROFILE, /* statistics: rows by stack */
    COFFER__MLYZE_EXPORT_EVENTS
} coffer__mlyze_export_way;

/* Opens the trace, parses the settings, and creates the output. */
coffer_status coffer__mlyze_export_open(coffer__mlyze_export *out, const coffer__convert_job *job,
                                        coffer__mlyze_export_way way, coffer__packing packing,
                                        coffer_error *err);
/* The same without an output. */
coffer_status coffer__mlyze_export_begin(coffer__mlyze_export *out, const coffer__convert_job *job,
                                         coffer__mlyze_export_way way, coffer_error *err);
/* Writes `out` when it is large. */
coffer_status coffer__mlyze_export_drain(coffer__mlyze_export *export, coffer_error *err);
/* Writes the rest and commits the file. */
coffer_status coffer__mlyze_export_commit(coffer__mlyze_export *export, coffer_error *err);
void coffer__mlyze_export_close(coffer__mlyze_export *export);

/* The next events of the window; NULL in *events at the end. They begin and end where the window does. */
coffer_status coffer__mlyze_export_next(const coffer_mlyze_events **events, coffer__mlyze_export *export,
                                        coffer_error *err);

/* "peak", "leaks", "total", "temporaries" */
const char *coffer__mlyze_measure_name(coffer_mlyze_measure measure);
/* The frames of a stack by its index, innermost first; one unknown frame for COFFER_INDEX_NONE and stacks
 * without frames. */
const coffer_mlyze_frame *coffer__mlyze_export_frames(size_t *depth, const coffer__mlyze_export *export,
                                                      size_t stack);
/* Never NULL, never empty: "?" for what is not known. */
const char *coffer__mlyze_export_function(const coffer__mlyze_export *export,
                                          const coffer_mlyze_frame *frame);
/* "" when it is not known. */
const char *coffer__mlyze_export_file(const coffer__mlyze_export *export, const coffer_mlyze_frame *frame);
/* Appends one line of text: control characters become spaces, and so does `also` if it is not 0. */
void coffer__mlyze_put_line_text(coffer__buffer *out, const char *text, char also);
/* "grab", and with `place` "grab (grow.c:9)" or "grab (in grow.c)"; `also` as above. */
void coffer__mlyze_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame,
                             bool place, char also);
/* "0x0: grab (grow.c:9)", as valgrind's tools write it. */
void coffer__mlyze_put_label(coffer__buffer *out, const coffer__mlyze_export *export,
                             const coffer_mlyze_frame *frame);
/* The traced command from the metadata, or "". */
const char *coffer__mlyze_export_command(const coffer__mlyze_export *export);
/* The command, or the name of the file. */
const char *coffer__mlyze_export_title(const coffer__mlyze_export *export);

#endif
