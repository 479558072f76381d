/* Every function that reads values accepts any file, and all of them give the same value. */
#include "mldf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_SAMPLES = 64, MOST_FIELDS = 16 };

static uint64_t seen; /* keeps what is read from being optimized away */

static void read_typed(const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    int64_t whole;
    double number;
    seen += coffer_mldf_get_int(&whole, set, sample, field, NULL) == COFFER_OK;
    seen += coffer_mldf_get_float(&number, set, sample, field, NULL) == COFFER_OK;
    if (coffer_mldf_get_text(&bytes, set, sample, field, NULL) == COFFER_OK)
        MUST(bytes.data[bytes.size] == 0);
    if (coffer_mldf_get_tokens(&bytes, set, sample, field, NULL) == COFFER_OK)
        MUST(bytes.size % sizeof(uint32_t) == 0);
    if (coffer_mldf_get_array(&bytes, dims, set, sample, field, NULL) == COFFER_OK && bytes.size > 0)
        seen += bytes.data[bytes.size - 1];
    coffer_free(bytes.data);
}

static void read_value(const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_bytes value = COFFER_BYTES_INIT, stored = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    const uint8_t *view = coffer_mldf_view(&len, set, sample, field);
    coffer_status status = coffer_mldf_read(&value, &entry, set, sample, field, &err);
    MUST(status == COFFER_OK || err.text[0] != 0);
    if (view) {
        MUST(status == COFFER_OK && value.size == len);
        MUST(len == 0 || memcmp(view, value.data, len) == 0);
    }
    if (status == COFFER_OK && !entry.present)
        MUST(value.size == 0);
    if (coffer_mldf_read_stored(&stored, set, sample, field, NULL) == COFFER_OK && stored.size > 0)
        seen += stored.data[stored.size - 1];
    coffer_free(value.data);
    coffer_free(stored.data);
    read_typed(set, sample, field);
}

static void read_columns(const coffer_mldf *set, size_t field)
{
    const coffer_mldf_column_opts one_thread = { sizeof one_thread, 1 };
    coffer_mldf_entry entries[MOST_SAMPLES] = { COFFER_MLDF_ENTRY_INIT }, one = COFFER_MLDF_ENTRY_INIT;
    int64_t column[MOST_SAMPLES];
    uint64_t samples = coffer_mldf_sample_count(set);
    uint64_t count = samples < MOST_SAMPLES ? samples : MOST_SAMPLES;
    MUST(coffer_mldf_read_entries(entries, set, field, samples - count, count, NULL) == COFFER_OK);
    for (uint64_t i = 0; i < count; i++) {
        MUST(coffer_mldf_entry_at(&one, set, samples - count + i, field, NULL) == COFFER_OK);
        MUST(memcmp(&one, &entries[i], sizeof one) == 0);
    }
    if (coffer_mldf_read_column(column, set, field, 0, count, &one_thread, NULL) == COFFER_OK) {
        for (uint64_t i = 0; i < count; i++) {
            MUST(coffer_mldf_entry_at(&one, set, i, field, NULL) == COFFER_OK);
            MUST(memcmp(&column[i], one.i64 ? (const void *)&one.i64 : (const void *)&one.f64, 8) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    coffer_mldf *set = fuzz_open_set(&input, data, size);
    for (size_t f = 0; set && f < coffer_mldf_field_count(set) && f < MOST_FIELDS; f++) {
        uint64_t samples = coffer_mldf_sample_count(set);
        for (uint64_t i = 0; i < samples && i < MOST_SAMPLES; i++)
            read_value(set, i, f);
        if (samples > 0)
            read_value(set, samples - 1, f);
        MUST(coffer_mldf_read(&(coffer_bytes)COFFER_BYTES_INIT, NULL, set, samples, f, NULL) ==
             COFFER_E_OUT_OF_BOUNDS);
        read_columns(set, f);
    }
    coffer_mldf_close(set);
    fuzz_input_close(&input);
    return 0;
}
