#include "convert/quantize/importance.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct coffer__importance {
    coffer_tensors *set;
    coffer_source *src; /* of an old importance matrix; else the set has its own */
    char *path;
    bool for_all; /* one vector */
    bool sums;    /* with counts to divide by */
    bool calls;   /* with a number of calls to divide by */
};

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The old importance matrices have no magic: try their reader when no other reader knows the file. */
static coffer_status open_set(coffer__importance *importance, const coffer_limits *limits, coffer_error *err)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_error unknown = COFFER_ERROR_INIT, failure = COFFER_ERROR_INIT;
    opts.limits = limits;
    coffer_status status = coffer_tensors_open_path(&importance->set, importance->path, &opts, &unknown);
    if (!status || (status != COFFER_E_NOT_RECOGNISED && status != COFFER_E_UNSUPPORTED)) {
        if (err && status)
            *err = unknown;
        return coffer__fail_other(err, status, importance->path);
    }
    status = coffer__source_open_other(&importance->src, importance->path, NULL, err);
    if (status)
        return status;
    importance->calls = true;
    status = coffer__tensors_open_with(&importance->set, &coffer__tensors_imatrix, importance->src, false,
                                       &opts, &failure);
    if (!status)
        return COFFER_OK;
    if (err)
        *err = failure;
    return coffer__fail_other(err,
                              coffer__fail_prefix(err, status, "not vectors and not an importance matrix"),
                              importance->path);
}

coffer_status coffer__importance_open(coffer__importance **out, const char *path, const coffer_limits *limits,
                                      coffer_error *err)
{
    coffer__importance *importance = coffer__calloc(1, sizeof *importance);
    if (!importance)
        return coffer__fail_no_memory(err, sizeof *importance);
    importance->path = coffer__strdup(path);
    coffer_status status =
        importance->path ? open_set(importance, limits, err) : coffer__fail_no_memory(err, strlen(path));
    if (status) {
        coffer__importance_close(importance);
        return status;
    }
    importance->for_all = strcmp(coffer_tensors_kind(importance->set), "npy") == 0;
    for (size_t i = 0; i < coffer_tensors_count(importance->set) && !importance->sums; i++)
        importance->sums = ends_with(coffer_tensors_at(importance->set, i)->name, COFFER__IMATRIX_SUMS);
    *out = importance;
    return COFFER_OK;
}

void coffer__importance_close(coffer__importance *importance)
{
    if (!importance)
        return;
    coffer_tensors_close(importance->set);
    coffer_source_close(importance->src);
    coffer__free(importance->path);
    coffer__free(importance);
}

const char *coffer__importance_source(const coffer__importance *importance)
{
    return importance->path + coffer__file_folder_len(importance->path);
}

/* ---- Looking up ---- */

size_t coffer__importance_find(const coffer_tensors *set, const char *name, const char *end)
{
    static const char weight[] = ".weight";
    size_t len = strlen(name), found = SIZE_MAX;
    for (int i = 0; i < 2 && found == SIZE_MAX; i++) {
        coffer__buffer text = COFFER__BUFFER_INIT;
        if (i == 1) {
            if (!ends_with(name, weight))
                break;
            len -= sizeof weight - 1;
        }
        if (coffer__buffer_append(&text, name, len) && coffer__buffer_append(&text, end, strlen(end)))
            found = coffer_tensors_find(set, coffer__buffer_text(&text));
        coffer__buffer_free(&text);
    }
    return found;
}

static size_t find_vector(const coffer__importance *importance, const char *name)
{
    if (importance->for_all)
        return coffer_tensors_count(importance->set) ? 0 : SIZE_MAX;
    return coffer__importance_find(importance->set, name, importance->sums ? COFFER__IMATRIX_SUMS : "");
}

bool coffer__importance_has(const coffer__importance *importance, const char *name)
{
    return find_vector(importance, name) != SIZE_MAX;
}

/* ---- Reading ---- */

/* 0 when nothing was counted. */
static coffer_status read_divisor(double *out, const coffer__importance *importance, const char *name,
                                  size_t vector, coffer_error *err)
{
    double count = 0;
    *out = 1;
    if (importance->calls) {
        *out = coffer__imatrix_calls(importance->set, vector);
        return COFFER_OK;
    }
    if (!importance->sums)
        return COFFER_OK;
    size_t counts = coffer__importance_find(importance->set, name, COFFER__IMATRIX_COUNTS);
    if (counts == SIZE_MAX)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "\"%s\" has sums and no " COFFER__IMATRIX_COUNTS, name);
    if (coffer_tensors_at(importance->set, counts)->elements != 1)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " counts, one belongs to a tensor of two dimensions", name,
                            coffer_tensors_at(importance->set, counts)->elements);
    coffer_status status =
        coffer_tensors_read_as(&count, COFFER_DTYPE_F64, importance->set, counts, 0, 1, err);
    *out = count > 0 ? count : 0;
    return status;
}

static coffer_status check_values(const float *values, uint64_t count, const char *name, coffer_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!(values[i] >= 0.0f) || isinf(values[i]))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "the importance of column %" PRIu64 " of \"%s\" is %g", i, name,
                                (double)values[i]);
    }
    return COFFER_OK;
}

static coffer_status read_vector(float **out, const coffer__importance *importance, const char *name,
                                 uint64_t columns, coffer_error *err)
{
    size_t vector = find_vector(importance, name), count;
    double divisor;
    *out = NULL;
    if (vector == SIZE_MAX)
        return COFFER_OK;
    uint64_t elements = coffer_tensors_at(importance->set, vector)->elements;
    if (elements != columns || !coffer__to_size(&count, columns))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%" PRIu64 " importances for \"%s\", which has %" PRIu64 " columns", elements,
                            name, columns);
    coffer_status status = read_divisor(&divisor, importance, name, vector, err);
    if (status || divisor == 0)
        return status;
    float *values = coffer__alloc_array(count, sizeof *values);
    if (!values)
        return coffer__fail_no_memory(err, columns * sizeof *values);
    status = coffer_tensors_read_as(values, COFFER_DTYPE_F32, importance->set, vector, 0, columns, err);
    for (size_t i = 0; !status && i < count; i++)
        values[i] = (float)(values[i] / divisor);
    if (!status)
        status = check_values(values, columns, name, err);
    if (status) {
        coffer__free(values);
        return status;
    }
    *out = values;
    return COFFER_OK;
}

coffer_status coffer__importance_read(float **out, const coffer__importance *importance, const char *name,
                                      uint64_t columns, coffer_error *err)
{
    return coffer__fail_other(err, read_vector(out, importance, name, columns, err), importance->path);
}

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
