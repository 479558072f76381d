/* The row of the format table. */
#include "formats/format.h"
#include "formats/mldf/mldf_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__MLDF_MAGIC_SIZE && memcmp(head, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "fields", NULL };

const coffer_format coffer__mldf_format = {
    .name = "mldf",
    .extension = ".mldf",
    .title = "training set",
    .magic = (const uint8_t *)COFFER__MLDF_MAGIC,
    .magic_len = COFFER__MLDF_MAGIC_SIZE,
    .repairs_from_copy = true,
    .lists = lists,
    .probe = probe,
    .describe = coffer__mldf_describe,
    .check = coffer__mldf_check,
    .list = coffer__mldf_list,
    .diff = coffer__mldf_diff,
    .repair = coffer__mldf_repair_file,
    .compact = coffer__mldf_compact,
};
