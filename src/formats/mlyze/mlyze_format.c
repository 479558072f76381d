/* The row of the format table. */
#include "formats/format.h"
#include "formats/mlyze/mlyze_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__MLYZE_MAGIC_SIZE &&
           memcmp(head, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "stacks", "files", "functions", "threads", "markers", "blocks", NULL };
static const char *const part_suffixes[] = { ".part", ".strings", NULL };

const coffer_format coffer__mlyze_format = {
    .name = "mlyze",
    .extension = ".mlyze",
    .title = "memory-allocation trace",
    .magic = (const uint8_t *)COFFER__MLYZE_MAGIC,
    .magic_len = COFFER__MLYZE_MAGIC_SIZE,
    .version = { COFFER__MLYZE_VERSION_AT, 4, false, 0, COFFER__MLYZE_VERSION },
    .lists = lists,
    .part_suffixes = part_suffixes,
    .probe = probe,
    .describe = coffer__mlyze_describe,
    .check = coffer__mlyze_check,
    .list = coffer__mlyze_list,
    .diff = coffer__mlyze_diff,
    .repair = coffer__mlyze_repair,
    .compress = coffer__mlyze_compress,
    .recover = coffer__mlyze_recover_parts,
};
