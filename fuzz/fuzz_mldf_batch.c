/* A batch of any file gives the values that single reads give, and both find damage. */
#include "mldf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNT = 24, ROOM = 1 << 16, MOST_FIELDS = 12 };

/* One value of a batch against the same by itself. */
static void compare(const coffer_mldf *set, uint64_t sample, size_t field, const uint8_t *found,
                    uint32_t size, bool damaged)
{
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_status status = coffer_mldf_read(&value, NULL, set, sample, field, NULL);
    MUST((status == COFFER_OK) == !damaged);
    if (status == COFFER_OK) {
        MUST(value.size == size);
        MUST(size == 0 || memcmp(value.data, found, size) == 0);
    }
    coffer_free(value.data);
}

static void read_field(coffer_mldf_batch *batch, const coffer_mldf *set, const bool *damaged, size_t field,
                       const uint8_t *data, size_t size)
{
    static uint8_t out[ROOM];
    static uint64_t offsets[COUNT + 1];
    static uint32_t sizes[COUNT];
    uint64_t samples[COUNT], total = 0;
    coffer_mldf_target target = { sizeof(coffer_mldf_target), field, out, ROOM, 0, offsets, sizes };
    for (size_t i = 0; i < COUNT; i++)
        samples[i] = (i < size ? data[size - 1 - i] : i) % coffer_mldf_sample_count(set);
    coffer_status status = coffer_mldf_batch_read(batch, samples, COUNT, &target, 1, NULL);
    for (size_t i = 0; status == COFFER_OK && i < COUNT; i++)
        compare(set, samples[i], field, out + offsets[i], sizes[i], damaged[i]);
    if (status == COFFER_OK) {
        MUST(offsets[COUNT] <= ROOM);
        MUST(coffer_mldf_batch_size(&total, batch, samples, COUNT, field, NULL) == COFFER_OK);
        MUST(total >= offsets[COUNT]);
    }
    target = (coffer_mldf_target){ sizeof(coffer_mldf_target), field, out, ROOM, ROOM / COUNT, NULL, sizes };
    status = coffer_mldf_batch_read(batch, samples, COUNT, &target, 1, NULL);
    for (size_t i = 0; status == COFFER_OK && i < COUNT; i++)
        compare(set, samples[i], field, out + i * target.stride, sizes[i], damaged[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_mldf_batch_opts opts = COFFER_MLDF_BATCH_OPTS_INIT;
    coffer_mldf_batch *batch = NULL;
    bool damaged[COUNT] = { false };
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    coffer_mldf *set = fuzz_open_set(&input, data, size);
    opts.threads = 1;
    opts.policy = COFFER_MLDF_POLICY_SKIP;
    opts.damaged = damaged;
    if (set && coffer_mldf_sample_count(set) > 0 &&
        coffer_mldf_batch_new(&batch, set, &opts, NULL) == COFFER_OK) {
        for (size_t f = 0; f < coffer_mldf_field_count(set) && f < MOST_FIELDS; f++)
            read_field(batch, set, damaged, f, data, size);
    }
    coffer_mldf_batch_free(batch);
    coffer_mldf_close(set);
    fuzz_input_close(&input);
    return 0;
}
