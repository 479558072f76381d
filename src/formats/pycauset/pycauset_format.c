/* The row of the format table. */
#include "formats/format.h"
#include "formats/pycauset/pycauset_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__PYCAUSET_MAGIC_SIZE &&
           memcmp(head, COFFER__PYCAUSET_MAGIC, COFFER__PYCAUSET_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "metadata", "generations", "blocks", NULL };

const coffer_format coffer__pycauset_format = {
    .name = "pycauset",
    .extension = ".pycauset",
    .title = "matrix with metadata",
    .magic = (const uint8_t *)COFFER__PYCAUSET_MAGIC,
    .magic_len = COFFER__PYCAUSET_MAGIC_SIZE,
    .has_generations = true,
    .lists = lists,
    .probe = probe,
    .describe = coffer__pycauset_describe,
    .check = coffer__pycauset_check,
    .list = coffer__pycauset_list,
    .repair = coffer__pycauset_repair,
    .compact = coffer__pycauset_compact,
    .diff = coffer__pycauset_diff,
};
