/* The row of the format table. */
#include "formats/format.h"
#include "formats/mscan/mscan_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__MSCAN_MAGIC_SIZE &&
           memcmp(head, COFFER__MSCAN_MAGIC, COFFER__MSCAN_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "sequences", "params", NULL };

const coffer_format coffer__mscan_format = {
    .name = "mscan",
    .extension = ".mscan",
    .title = "neural-network scan",
    .magic = (const uint8_t *)COFFER__MSCAN_MAGIC,
    .magic_len = COFFER__MSCAN_MAGIC_SIZE,
    .lists = lists,
    .probe = probe,
    .describe = coffer__mscan_describe,
    .check = coffer__mscan_check,
    .list = coffer__mscan_list,
    .diff = coffer__mscan_diff,
    .repair = coffer__mscan_repair,
};
