/* NumPy's .npy and .npz as sets of tensors. Elements are turned to little-endian, arrays in the order of
 * Fortran are transposed in memory. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define PIECE ((size_t)1 << 16)

/* The array that was read last is kept open: checked against its CRC, unpacked, transposed. */
typedef struct numpy_set {
    coffer__npz npz;       /* of an archive */
    coffer__npy npy;       /* of a single array */
    coffer_source *single; /* NULL for an archive */
    uint64_t max_memory;
    pthread_mutex_t lock; /* guards the members below */
    size_t open;          /* SIZE_MAX: none */
    coffer_source *src;   /* owned when it is a member */
    uint8_t *transposed;  /* instead of it */
} numpy_set;

static const coffer__npy *header_of(const numpy_set *state, size_t index)
{
    return state->single ? &state->npy : &state->npz.arrays[index].npy;
}

/* Whether the order of the elements in the file is not that of the rows. */
static bool needs_transposing(const coffer__npy *npy)
{
    size_t longer_than_one = 0;
    for (size_t i = 0; i < npy->dimensions; i++)
        longer_than_one += npy->shape[i] > 1;
    return npy->fortran_order && longer_than_one > 1;
}

/* ---- Opening ---- */

static coffer_status new_state(numpy_set **out, coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    numpy_set *state = coffer__calloc(1, sizeof *state);
    if (!state)
        return coffer__fail_no_memory(err, sizeof *state);
    pthread_mutex_init(&state->lock, NULL);
    state->open = SIZE_MAX;
    state->max_memory = set->limits.memory_bytes;
    set->state = state;
    *out = state;
    return coffer__tensors_add_part(set, src, false, err);
}

static coffer_status add_array(coffer_tensors *set, const coffer__npy *npy, const char *name, size_t name_len,
                               uint64_t offset, size_t index, coffer_error *err)
{
    bool plain = !npy->structured && npy->field_count == 1 && npy->fields[0].elements == 1;
    coffer_tensor tensor = {
        .name = name,
        .dtype = plain ? coffer__npy_dtype(&npy->fields[0]) : COFFER_DTYPE_NONE,
        .rank = (uint32_t)npy->dimensions,
        .dims = npy->shape,
        .offset = offset,
    };
    if (!coffer__mul_u64(&tensor.size, npy->count, npy->item_size))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%.*s\" has %" PRIu64 " items of %" PRIu64 " bytes", (int)name_len, name,
                            npy->count, npy->item_size);
    tensor.type_name = tensor.dtype ? coffer_dtype_name(tensor.dtype) : "of no number";
    return coffer__tensors_add(set, &tensor, name_len, index, err);
}

static coffer_status open_npz(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    numpy_set *state = NULL;
    coffer_status status = new_state(&state, set, src, err);
    if (!status)
        status = coffer__npz_open(&state->npz, src, &set->limits, err);
    for (size_t i = 0; !status && i < state->npz.count; i++) {
        const coffer__npz_array *array = &state->npz.arrays[i];
        status = add_array(set, &array->npy, array->name, strlen(array->name),
                           coffer__npz_plain_offset(&state->npz, i), i, err);
    }
    return status;
}

/* The only array of the file is named after the file. */
static coffer_status open_npy(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    static const char extension[] = ".npy";
    numpy_set *state = NULL;
    const char *path = coffer_source_name(src), *name = path + coffer__file_folder_len(path);
    size_t len = strlen(name), extension_len = sizeof extension - 1;
    if (len > extension_len && strcmp(name + len - extension_len, extension) == 0)
        len -= extension_len;
    coffer_status status = new_state(&state, set, src, err);
    if (!status)
        status = coffer__npy_read(&state->npy, src, err);
    if (status)
        return status;
    state->single = src;
    return add_array(set, &state->npy, name, len, state->npy.data_offset, 0, err);
}

static void shut_array(numpy_set *state)
{
    if (!state->single)
        coffer_source_close(state->src);
    coffer__free(state->transposed);
    state->src = NULL;
    state->transposed = NULL;
    state->open = SIZE_MAX;
}

static void close_state(void *context)
{
    numpy_set *state = context;
    if (!state)
        return;
    shut_array(state);
    coffer__npz_close(&state->npz);
    coffer__npy_free(&state->npy);
    pthread_mutex_destroy(&state->lock);
    coffer__free(state);
}

/* ---- Reading ---- */

/* The elements in the file's order, of which the first dimension changes fastest, into that of rows. */
static void transpose(uint8_t *out, const uint8_t *in, const coffer__npy *npy)
{
    uint64_t place[COFFER__NPY_MAX_DIMENSIONS] = { 0 }, strides[COFFER__NPY_MAX_DIMENSIONS];
    size_t item = (size_t)npy->item_size, last = npy->dimensions - 1;
    uint64_t from = 0;
    strides[0] = 1;
    for (size_t i = 1; i < npy->dimensions; i++)
        strides[i] = strides[i - 1] * npy->shape[i - 1];
    for (uint64_t to = 0; to < npy->count; to++) {
        memcpy(out + (size_t)to * item, in + (size_t)from * item, item);
        size_t at = last;
        from += strides[at];
        while (++place[at] == npy->shape[at] && at > 0) {
            place[at] = 0;
            from -= strides[at] * npy->shape[at];
            from += strides[--at];
        }
    }
}

static coffer_status load_transposed(numpy_set *state, const coffer__npy *npy, const char *name,
                                     coffer_error *err)
{
    uint64_t size = npy->count * npy->item_size;
    if (size > state->max_memory / 2)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "\"%s\" is in Fortran order, and its %" PRIu64
                            " bytes are too many to transpose in memory",
                            name, size);
    uint8_t *in = coffer__malloc((size_t)size), *out = coffer__malloc((size_t)size);
    coffer_status status = in && out ? COFFER_OK : coffer__fail_no_memory(err, size);
    if (!status)
        status = coffer_source_read_at(in, state->src, npy->data_offset, (size_t)size, err);
    if (!status)
        transpose(out, in, npy);
    coffer__free(in);
    if (status)
        coffer__free(out);
    else
        state->transposed = out;
    return status;
}

static coffer_status load_array(numpy_set *state, size_t index, const char *name, coffer_error *err)
{
    const coffer__npy *npy = header_of(state, index);
    coffer_status status = COFFER_OK;
    if (state->open == index)
        return COFFER_OK;
    shut_array(state);
    if (state->single)
        state->src = state->single;
    else
        status = coffer__npz_source(&state->src, &state->npz, index, COFFER__ZIP_RANDOM, err);
    if (!status && needs_transposing(npy))
        status = load_transposed(state, npy, name, err);
    if (status)
        shut_array(state);
    else
        state->open = index;
    return status;
}

static coffer_status read_stored(uint8_t *out, const numpy_set *state, const coffer__npy *npy, uint64_t begin,
                                 size_t len, coffer_error *err)
{
    if (!state->transposed)
        return coffer_source_read_at(out, state->src, npy->data_offset + begin, len, err);
    memcpy(out, state->transposed + begin, len);
    return COFFER_OK;
}

/* A range may begin and end inside an element. */
static coffer_status read_swapped(uint8_t *out, const numpy_set *state, const coffer__npy *npy,
                                  coffer_dtype dtype, uint64_t begin, size_t len, coffer_error *err)
{
    uint64_t item = npy->item_size, end = begin + len;
    uint8_t *piece = coffer__malloc(PIECE);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, PIECE);
    for (uint64_t at = begin / item * item; !status && at < end;) {
        uint64_t left = (end + item - 1) / item * item - at;
        size_t now = left < PIECE ? (size_t)left : PIECE;
        status = read_stored(piece, state, npy, at, now, err);
        if (status)
            break;
        coffer__npy_swap(piece, dtype, now / (size_t)item);
        size_t skip = at < begin ? (size_t)(begin - at) : 0;
        size_t keep = at + now > end ? (size_t)(end - at) : now;
        memcpy(out, piece + skip, keep - skip);
        out += keep - skip;
        at += now;
    }
    coffer__free(piece);
    return status;
}

static coffer_status read_array(void *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                                uint64_t begin, size_t len, coffer_error *err)
{
    numpy_set *state = set->state;
    const coffer__npy *npy = header_of(state, entry->index);
    pthread_mutex_lock(&state->lock);
    coffer_status status = load_array(state, entry->index, entry->tensor.name, err);
    if (!status && entry->tensor.dtype && npy->fields[0].big_endian)
        status = read_swapped(out, state, npy, entry->tensor.dtype, begin, len, err);
    else if (!status)
        status = read_stored(out, state, npy, begin, len, err);
    pthread_mutex_unlock(&state->lock);
    return status;
}

/* ---- Checking ---- */

/* name : of the array, with "NAME: " around it in messages of an archive; NULL for a single file. */
static void check_array(coffer_report *out, const coffer__npy *npy, const char *name, uint64_t base,
                        uint64_t size)
{
    const char *separator = name ? ": " : "";
    uint64_t end = npy->data_offset + npy->count * npy->item_size;
    if (end < size)
        coffer__report_add(out, COFFER_E_TRAILING_BYTES, COFFER_ERROR,
                           base == COFFER_OFFSET_NONE ? base : base + end,
                           "%s%s%" PRIu64 " bytes after the array are not read", name ? name : "", separator,
                           size - end);
    for (size_t i = 0; i < npy->field_count; i++) {
        const coffer__npy_field *field = &npy->fields[i];
        if (!coffer__npy_is_type(field->kind, field->size))
            coffer__report_add(out, COFFER_E_BAD_VALUE, COFFER_WARNING, base,
                               "%s%sNumPy does not have a type '%c' of %" PRIu64 " bytes", name ? name : "",
                               separator, field->kind, field->size);
    }
}

static coffer_status check_npy(coffer_report *out, const coffer_tensors *set, bool full, coffer_error *err)
{
    const numpy_set *state = set->state;
    (void)full;
    (void)err;
    check_array(out, &state->npy, NULL, 0, coffer_source_size(state->single));
    return COFFER_OK;
}

/* Members that are not arrays are verified all the same. */
static coffer_status check_other_member(coffer_report *out, const coffer__zip *zip, size_t index, bool full,
                                        coffer_error *err)
{
    const coffer__zip_member *member = coffer__zip_at(zip, index);
    coffer_error found = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    coffer__report_add(out, COFFER_E_UNSUPPORTED, COFFER_WARNING, member->offset,
                       "member \"%s\", %" PRIu64 " bytes, is not an array and is not read", member->name,
                       member->size);
    if (full && coffer__zip_source(&src, zip, index, COFFER__ZIP_RANDOM, &found))
        return coffer__report_take(out, COFFER_ERROR, &found, err);
    coffer_source_close(src);
    return COFFER_OK;
}

static coffer_status check_npz(coffer_report *out, const coffer_tensors *set, bool full, coffer_error *err)
{
    const coffer__npz *npz = &((const numpy_set *)set->state)->npz;
    coffer_status status = coffer__zip_check(out, npz->zip, err);
    size_t array = 0;
    for (size_t i = 0; !status && i < coffer__zip_count(npz->zip); i++) {
        const coffer__zip_member *member = coffer__zip_at(npz->zip, i);
        if (array == npz->count || npz->arrays[array].member != i) {
            status = check_other_member(out, npz->zip, i, full, err);
            continue;
        }
        bool plain = member->method == COFFER__ZIP_STORED;
        check_array(out, &npz->arrays[array].npy, npz->arrays[array].name,
                    plain ? member->offset : COFFER_OFFSET_NONE, member->size);
        array++;
    }
    return status;
}

const coffer__tensors_reader coffer__tensors_npz = {
    .kind = "npz",
    .shown_kind = "npz",
    .title = "NumPy archive",
    .has_checksums = true,
    .open = open_npz,
    .check = check_npz,
    .read = read_array,
    .close = close_state,
};

const coffer__tensors_reader coffer__tensors_npy = {
    .kind = "npy",
    .shown_kind = "npy",
    .title = "NumPy array",
    .open = open_npy,
    .check = check_npy,
    .read = read_array,
    .close = close_state,
};
