/* Values of the metadata as text and as JSON. */
#ifndef COFFER_CLI_VALUE_TEXT_H
#define COFFER_CLI_VALUE_TEXT_H

#include "base/buffer.h"
#include "base/json_write.h"
#include "coffer/pycauset.h"

/* Bytes become hexadecimal digits; NaN and infinities null. */
void value_put_json(coffer__json_writer *json, const coffer_pycauset_value *value);
/* A text, number or truth value by itself, bytes as hexadecimal digits, arrays and maps as indented JSON. */
void value_put_text(coffer__buffer *out, const coffer_pycauset_value *value);

#endif
