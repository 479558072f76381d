/* Values that come from a command line, on their way into a set. */
#ifndef COFFER_CLI_SAMPLE_INPUT_H
#define COFFER_CLI_SAMPLE_INPUT_H

#include "coffer/dataset.h"

/* A number or text as it is written; "@FILE" for the content of a file, a picture or sound or array as the
 * field wants it; "@@" for a text that begins with '@'. */
coffer_status sample_input_text(coffer_mldf_value_input *input, coffer_mldf_writer *writer, size_t field,
                                const char *text, coffer_error *err);

#endif
