/* The row of the format table. */
#include "formats/format.h"
#include "formats/mcf/mcf_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__MCF_MAGIC_SIZE && memcmp(head, COFFER__MCF_MAGIC, COFFER__MCF_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "tensors", "sections", "keys", "files", "quant", NULL };

const coffer_format coffer__mcf_format = {
    .name = "mcf",
    .extension = ".mcf",
    .title = "model container",
    .magic = (const uint8_t *)COFFER__MCF_MAGIC,
    .magic_len = COFFER__MCF_MAGIC_SIZE,
    .version = { COFFER__MCF_MINOR_AT, 2, true, COFFER__MCF_MAJOR, COFFER__MCF_MINOR },
    .has_hash = true,
    .repairs_from_copy = true,
    .holds_tensors = true,
    .lists = lists,
    .probe = probe,
    .describe = coffer__mcf_describe,
    .check = coffer__mcf_check,
    .list = coffer__mcf_list,
    .repair = coffer__mcf_repair,
    .compact = coffer__mcf_compact,
};
