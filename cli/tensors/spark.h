/* A histogram in sixteen characters. */
#ifndef COFFER_CLI_SPARK_H
#define COFFER_CLI_SPARK_H

#include <stdint.h>

enum { SPARK_BINS = 64, SPARK_COLUMNS = 16 };
typedef char spark_text[3 * SPARK_COLUMNS + 1];

/* Heights are relative to the fullest column; a column with anything in it is never empty. */
const char *spark_draw(spark_text out, const uint64_t histogram[SPARK_BINS]);

#endif
