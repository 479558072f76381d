#include "tensors/spark.h"

#include <string.h>

const char *spark_draw(spark_text out, const uint64_t histogram[SPARK_BINS])
{
    static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    enum { HEIGHTS = sizeof heights / sizeof heights[0], MERGED = SPARK_BINS / SPARK_COLUMNS };
    double columns[SPARK_COLUMNS] = { 0.0 }, fullest = 0.0;
    char *at = out, *end = out; /* after the last column that is not empty */
    for (int i = 0; i < SPARK_BINS; i++)
        columns[i / MERGED] += (double)histogram[i];
    for (int i = 0; i < SPARK_COLUMNS; i++)
        if (columns[i] > fullest)
            fullest = columns[i];
    for (int i = 0; i < SPARK_COLUMNS && fullest > 0.0; i++) {
        int height = (int)(columns[i] / fullest * HEIGHTS);
        const char *mark = columns[i] > 0.0 ? heights[height < HEIGHTS ? height : HEIGHTS - 1] : " ";
        at = stpcpy(at, mark);
        if (columns[i] > 0.0)
            end = at;
    }
    *end = '\0';
    return out;
}
