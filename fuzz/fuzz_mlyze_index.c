/* An index must never change the events that a trace gives. The input is a trace followed by the entries of
 * an index with a matching header; the last byte but one is their number. */
#include "mlyze_input.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *index_path(void)
{
    static char path[64];
    if (!path[0])
        snprintf(path, sizeof path, "/tmp/coffer-fuzz-%ld.idx", (long)getpid());
    return path;
}

static void write_index(const fuzz_input *trace, const uint8_t *entries, size_t count)
{
    uint8_t header[COFFER__MLYZE_INDEX_HEADER];
    FILE *file = fopen(index_path(), "wb");
    MUST(file);
    memcpy(header, COFFER__MLYZE_INDEX_MAGIC, 4);
    coffer__store_u32(header + 4, COFFER__MLYZE_INDEX_VERSION);
    coffer__store_u64(header + 8, trace->size);
    coffer__store_u32(header + 16, coffer__crc32(0, trace->bytes, COFFER__MLYZE_HEADER_SIZE));
    coffer__store_u32(header + 20, (uint32_t)count);
    fwrite(header, 1, sizeof header, file);
    fwrite(entries, COFFER__MLYZE_INDEX_ENTRY, count, file);
    fclose(file);
}

/* Both read the same events, with any index; a block that one cannot read the other cannot read either. */
static void compare(const coffer_mlyze *plain, const coffer_mlyze *indexed)
{
    coffer_mlyze_events a = COFFER_MLYZE_EVENTS_INIT, b = COFFER_MLYZE_EVENTS_INIT;
    size_t blocks = 0, count = 0;
    MUST(coffer_mlyze_block_count(&blocks, plain, NULL) == COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        coffer_status one = coffer_mlyze_read_block(&a, plain, i, NULL);
        coffer_status other = coffer_mlyze_read_block(&b, indexed, i, NULL);
        MUST((one == COFFER_OK) == (other == COFFER_OK));
        MUST(a.count == b.count && (one || a.first == b.first));
        MUST(a.count == 0 || memcmp(a.address, b.address, a.count * sizeof *a.address) == 0);
        MUST(a.count == 0 || memcmp(a.time, b.time, a.count * sizeof *a.time) == 0);
    }
    coffer_mlyze_events_free(&a);
    coffer_mlyze_events_free(&b);
    if (coffer_mlyze_load_index(&count, indexed, NULL, NULL) == COFFER_OK)
        MUST(count == blocks && (count == 0 || coffer_mlyze_index_at(indexed, 0)->first_event == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mlyze *plain = NULL, *indexed = NULL;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    size_t count = size >= 2 ? data[size - 2] % 16 : 0;
    size_t trace_size =
        size > count * COFFER__MLYZE_INDEX_ENTRY ? size - count * COFFER__MLYZE_INDEX_ENTRY : 0;
    if (trace_size < COFFER__MLYZE_HEADER_SIZE || !fuzz_input_open(&input, data, trace_size))
        return 0;
    opts.limits = &input.limits;
    write_index(&input, data + trace_size, count);
    if (coffer_mlyze_open(&plain, input.source, &opts, NULL) == COFFER_OK) {
        opts.index_path = index_path();
        if (coffer_mlyze_open(&indexed, input.source, &opts, NULL) == COFFER_OK)
            compare(plain, indexed);
    }
    coffer_mlyze_close(plain);
    coffer_mlyze_close(indexed);
    fuzz_input_close(&input);
    unlink(index_path());
    return 0;
}
