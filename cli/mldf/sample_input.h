/* Values that come from a command line, a file or a line of JSON, on their way into a set. */
#ifndef COFFER_CLI_SAMPLE_INPUT_H
#define COFFER_CLI_SAMPLE_INPUT_H

#include "base/json.h"
#include "convert/datasets/dataset_input.h"

typedef struct sample_input {
    coffer_mldf_pack_opts opts;
    coffer__dataset_taker taker;
    coffer__dataset_value value;
} sample_input;

void sample_input_init(sample_input *input);
void sample_input_free(sample_input *input);

/* A number or text as it is written; "@FILE" for the content of a file, a picture or sound or array as the
 * field wants it; "@@" for a text that begins with '@'. */
coffer_status sample_input_text(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                const char *text, coffer_error *err);
/* The same for text of any length in which '@' has no meaning. */
coffer_status sample_input_plain(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                 const char *text, size_t len, coffer_error *err);
/* A number, a text, or for fields of JSON anything; null leaves the value absent. */
coffer_status sample_input_json(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                const coffer__json_value *value, coffer_error *err);

#endif
