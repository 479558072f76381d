/* Helpers of check, diff and repair for all formats. */
#ifndef COFFER_FORMATS_RESCUE_H
#define COFFER_FORMATS_RESCUE_H

#include "coffer/format.h"
#include "io/sink.h"

/* Adds the note "interrupted update" when the source shows the state before one. */
void coffer__note_interrupted(coffer_report *out, const coffer_source *src);

/* COFFER_E_CHANGED when a part of the file that writers change in place was changed since it was opened. */
coffer_status coffer__expect_settled(const coffer_source *src, coffer_error *err);

/* Writes the repaired file. */
typedef coffer_status (*coffer__rescue_compose)(coffer__sink *sink, void *context, coffer_error *err);

/* Writes the output of a repair, which appears complete or not at all. progress : for
 * compose == NULL, which copies `src` unchanged. */
coffer_status coffer__rescue_write(const char *path, bool overwrite, coffer_source *src,
                                   const coffer_progress *progress, coffer__rescue_compose compose,
                                   void *context, coffer_error *err);

#endif
