#include "convert/quantize/importance.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

/* An entry without its name and values, and the least that one with both can be. */
#define LEAST_ENTRY (3 * 4 + 1 + 4)

typedef struct imatrix {
    uint32_t *calls; /* by entry */
    size_t count, capacity;
} imatrix;

typedef struct reading {
    coffer_tensors *set;
    coffer_source *src;
    uint64_t at, size;
    imatrix *state;
} reading;

static coffer_status take_number(uint32_t *out, reading *reader, const char *what, uint32_t most,
                                 coffer_error *err)
{
    uint8_t bytes[4];
    if (!coffer__range_fits(reader->at, sizeof bytes, reader->size))
        return coffer__fail(err, COFFER_E_TRUNCATED, reader->at,
                            "an importance matrix ends before its %s, at %" PRIu64, what, reader->size);
    coffer_status status = coffer_source_read_at(bytes, reader->src, reader->at, sizeof bytes, err);
    if (status)
        return status;
    *out = coffer__load_u32(bytes);
    if (*out > most)
        return coffer__fail(err, COFFER_E_BAD_VALUE, reader->at,
                            "%" PRIu32 " is not a valid %s of an importance matrix, the maximum is %" PRIu32,
                            *out, what, most);
    reader->at += sizeof bytes;
    return COFFER_OK;
}

/* A length of something inside the file. */
static coffer_status take_length(uint32_t *out, reading *reader, const char *what, uint64_t item,
                                 coffer_error *err)
{
    uint64_t left = reader->size > reader->at + 4 ? (reader->size - reader->at - 4) / item : 0;
    return take_number(out, reader, what, left < INT32_MAX ? (uint32_t)left : INT32_MAX, err);
}

static coffer_status keep_calls(imatrix *state, uint32_t calls, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&state->calls, &state->capacity, state->count, sizeof *state->calls, err);
    if (!status)
        state->calls[state->count++] = calls;
    return status;
}

static coffer_status take_entry(reading *reader, size_t index, coffer_error *err)
{
    uint32_t name_len = 0, calls = 0, values = 0;
    uint64_t dim;
    coffer_status status = take_length(&name_len, reader, "length of a name", 1, err);
    if (status)
        return status;
    if (name_len > reader->set->limits.string_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, reader->at, "a name of %" PRIu32 " bytes", name_len);
    char *name = coffer__malloc((size_t)name_len + 1);
    if (!name)
        return coffer__fail_no_memory(err, name_len);
    status = coffer_source_read_at(name, reader->src, reader->at, name_len, err);
    if (status)
        goto out;
    reader->at += name_len;
    status = take_number(&calls, reader, "number of calls", INT32_MAX, err);
    if (!status)
        status = take_length(&values, reader, "number of values", sizeof(float), err);
    if (status)
        goto out;
    dim = values;
    coffer_tensor tensor = {
        .name = name,
        .dtype = COFFER_DTYPE_F32,
        .type_name = "F32",
        .rank = 1,
        .dims = &dim,
        .size = dim * sizeof(float),
        .offset = reader->at,
    };
    reader->at += tensor.size;
    status = keep_calls(reader->state, calls, err);
    if (!status)
        status = coffer__tensors_add(reader->set, &tensor, name_len, index, err);
out:
    coffer__free(name);
    return status;
}

/* The optional data after the entries. Without a magic, this is the last chance to detect other files. */
static coffer_status take_end(reading *reader, coffer_error *err)
{
    uint32_t number = 0, len = 0;
    if (reader->at == reader->size)
        return COFFER_OK;
    coffer_status status = take_number(&number, reader, "number of all calls", INT32_MAX, err);
    if (status || reader->at == reader->size)
        return status;
    status = take_length(&len, reader, "length of a data set's name", 1, err);
    if (status)
        return status;
    if (reader->at + len != reader->size)
        return coffer__fail(err, COFFER_E_TRAILING_BYTES, reader->at + len,
                            "an importance matrix ends at %" PRIu64 ", the file at %" PRIu64,
                            reader->at + len, reader->size);
    return COFFER_OK;
}

static coffer_status open_imatrix(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    reading reader = { .set = set, .src = src, .size = coffer_source_size(src) };
    uint64_t most = reader.size / LEAST_ENTRY;
    uint32_t entries = 0;
    coffer_status status = coffer__tensors_add_part(set, src, false, err);
    if (status)
        return status;
    set->state = reader.state = coffer__calloc(1, sizeof *reader.state);
    if (!reader.state)
        return coffer__fail_no_memory(err, sizeof *reader.state);
    most = most < set->limits.entries ? most : set->limits.entries;
    status = take_number(&entries, &reader, "number of entries",
                         most < INT32_MAX ? (uint32_t)most : INT32_MAX, err);
    for (size_t i = 0; !status && i < entries; i++)
        status = take_entry(&reader, i, err);
    return status ? status : take_end(&reader, err);
}

static void close_imatrix(void *state)
{
    imatrix *matrix = state;
    if (!matrix)
        return;
    coffer__free(matrix->calls);
    coffer__free(matrix);
}

const coffer__tensors_reader coffer__tensors_imatrix = {
    .kind = "imatrix",
    .shown_kind = "imatrix",
    .title = "importance matrix",
    .open = open_imatrix,
    .close = close_imatrix,
};

uint32_t coffer__imatrix_calls(const coffer_tensors *set, size_t tensor)
{
    const imatrix *state = set->state;
    return state->calls[coffer__tensors_entry_at(set, tensor)->index];
}
