#include "convert/matrices/pycauset_export.h"

#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/matrices/pycauset_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Buffered values. A transposed matrix is read in larger pieces, so that each has more of a stored row. */
#define BAND_BYTES (UINT64_C(4) << 20)
#define TRANSPOSED_BAND_BYTES (UINT64_C(64) << 20)
/* The size that the children of a block matrix are taken to have, at most. */
#define BLOCK_BYTES (UINT64_C(1) << 40)

#define COMMON_OPTIONS                                                                          \
    { "dtype", "TYPE", "element type: bit, i8 to i64, u8 to u64, f16, f32, f64, c64 or c128" }, \
        { "part", "PART", "part of complex numbers", "real|imag|abs", NULL },                   \
        { "rows", "A..B", "only these rows, B not included" },                                  \
        { "cols", "A..B", "only these columns, B not included" },                               \
        { "stored", NULL, "the stored values, without transposition, conjugation and scalar" }, \
        { "max-size", "SIZE", "largest output of a file that is much smaller", NULL, "4G" },    \
    {                                                                                           \
        "metadata", "FILE", "also write the metadata to FILE, as JSON"                          \
    }

const coffer_convert_option coffer__pycauset_to_array_options[] = {
    COMMON_OPTIONS,
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__pycauset_to_csv_options[] = {
    COMMON_OPTIONS,
    { "delimiter", "CHAR", "separator of numbers: a character, tab or space (default: a comma)" },
    { "header", NULL, "a first line with the names of the columns: c0, c1, …" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__pycauset_to_mtx_options[] = {
    COMMON_OPTIONS,
    { "layout", "LAYOUT", "default: the one that suits the matrix better", "coordinate|array", NULL },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__pycauset_to_hdf5_options[] = {
    COMMON_OPTIONS,
    { "dataset", "NAME", "name of the dataset", NULL, "data" },
    { NULL, NULL, NULL },
};

/* From other array files: the options of both ends. */
#define ARRAY_OPTIONS                                                                           \
    { "dtype", "TYPE", "element type: bit, i8 to i64, u8 to u64, f16, f32, f64, c64 or c128" }, \
        { "part", "PART", "part of complex numbers", "real|imag|abs", NULL },                   \
        { "rows", "A..B", "only these rows, B not included" },                                  \
        { "cols", "A..B", "only these columns, B not included" },                               \
        { "max-size", "SIZE", "largest output of a file that is much smaller", NULL, "4G" },    \
        { "dense", NULL, "convert a large matrix even if almost all of its values are zero" },  \
    {                                                                                           \
        "slice", "N,N…", "index in all dimensions but the last two"                             \
    }
#define LAYOUT_OPTION                                                                                 \
    {                                                                                                 \
        "layout", "LAYOUT", "default: the one that suits the matrix better", "coordinate|array", NULL \
    }
#define DELIMITER_OPTION                                                                          \
    {                                                                                             \
        "delimiter", "CHAR", "separator of numbers: a character, tab or space (default: a comma)" \
    }
#define READ_OPTIONS                                                                                         \
    { "delimiter", "CHAR", "separator of numbers: a character, tab or space (default: by the first line)" }, \
    {                                                                                                        \
        "header", NULL, "the first line names the columns, even when the names are numbers"                  \
    }
#define CHOOSE_OPTION                                        \
    {                                                        \
        "dataset", "NAME", "name of the dataset in the file" \
    }
#define NAME_OPTION                                            \
    {                                                          \
        "dataset", "NAME", "name of the dataset", NULL, "data" \
    }
#define END_OPTION       \
    {                    \
        NULL, NULL, NULL \
    }

const coffer_convert_option coffer__array_to_npy_options[] = { ARRAY_OPTIONS, END_OPTION };
const coffer_convert_option coffer__array_to_mtx_options[] = { ARRAY_OPTIONS, LAYOUT_OPTION, END_OPTION };
const coffer_convert_option coffer__array_to_hdf5_options[] = { ARRAY_OPTIONS, NAME_OPTION, END_OPTION };
const coffer_convert_option coffer__array_to_csv_options[] = { ARRAY_OPTIONS, DELIMITER_OPTION, END_OPTION };
const coffer_convert_option coffer__hdf5_to_array_options[] = { ARRAY_OPTIONS, CHOOSE_OPTION, END_OPTION };
const coffer_convert_option coffer__hdf5_to_mtx_options[] = { ARRAY_OPTIONS, CHOOSE_OPTION, LAYOUT_OPTION,
                                                              END_OPTION };
const coffer_convert_option coffer__hdf5_to_csv_options[] = { ARRAY_OPTIONS, CHOOSE_OPTION, DELIMITER_OPTION,
                                                              END_OPTION };
const coffer_convert_option coffer__csv_to_npy_options[] = { ARRAY_OPTIONS, READ_OPTIONS, END_OPTION };
const coffer_convert_option coffer__csv_to_mtx_options[] = { ARRAY_OPTIONS, READ_OPTIONS, LAYOUT_OPTION,
                                                             END_OPTION };
const coffer_convert_option coffer__csv_to_hdf5_options[] = { ARRAY_OPTIONS, READ_OPTIONS, NAME_OPTION,
                                                              END_OPTION };

/* ---- Settings ---- */

/* An index of at most `size`; a negative one counts from the end, as in Python. Nothing: otherwise. */
static bool parse_index(uint64_t *out, const char *text, size_t len, uint64_t otherwise, uint64_t size)
{
    bool negative = len > 0 && *text == '-';
    uint64_t number = 0;
    if (len == 0) {
        *out = otherwise;
        return true;
    }
    for (size_t i = negative; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    if (len == (size_t)negative || number > size)
        return false;
    *out = negative ? size - number : number;
    return true;
}

/* "A..B" or "A:B", either end may be missing, or one index. */
static coffer_status select_range(uint64_t *begin, uint64_t *count, const coffer__convert_job *job,
                                  const char *name, uint64_t size, coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    uint64_t first = 0, end = size;
    bool good = true;
    const char *dots = text ? strstr(text, "..") : NULL, *colon = text ? strchr(text, ':') : NULL;
    if (dots || colon) {
        const char *stop = dots ? dots : colon, *rest = stop + (dots ? 2 : 1);
        good = parse_index(&first, text, (size_t)(stop - text), 0, size) &&
               parse_index(&end, rest, strlen(rest), size, size);
    } else if (text) {
        good = *text && parse_index(&first, text, strlen(text), 0, size) && first < size;
        end = first + 1;
    }
    if (!good && text[strspn(text, "0123456789-.:")] == '\0' && strpbrk(text, "0123456789"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s %s: the matrix has %" PRIu64, name, text, size);
    if (!good || first > end)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected A..B, A:B or one index (negative: from the end), not \"%s\"", name,
                            text);
    *begin = first;
    *count = end - first;
    return COFFER_OK;
}

static coffer_status select_tile(coffer__pycauset_export *export, coffer_error *err)
{
    const coffer_pycauset_info *info = export->info;
    coffer_pycauset_tile *tile = &export->selection;
    *tile = (coffer_pycauset_tile)COFFER_PYCAUSET_TILE_INIT;
    coffer_status status = select_range(&tile->row, &tile->rows, export->job, "rows", info->rows, err);
    if (!status)
        status = select_range(&tile->col, &tile->cols, export->job, "cols", info->cols, err);
    export->is_whole = tile->rows == info->rows && tile->cols == info->cols;
    export->is_vector = info->type == COFFER_PYCAUSET_VECTOR || info->type == COFFER_PYCAUSET_UNIT_VECTOR;
    return status;
}

static coffer_status choose_part(coffer__pycauset_export *export, coffer_error *err)
{
    static const char *const names[] = { "", "real", "imag", "abs" };
    const char *name = coffer__job_setting(export->job, "part");
    for (unsigned i = COFFER__PYCAUSET_REAL; name && i <= COFFER__PYCAUSET_ABS; i++) {
        if (strcmp(name, names[i]) == 0)
            export->part = (coffer__pycauset_part)i;
    }
    if (name && export->part == COFFER__PYCAUSET_ALL)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "part: real, imag or abs, not \"%s\"", name);
    return COFFER_OK;
}

/* Fails with the option that comes nearest when the target cannot hold the type. */
static coffer_status check_target(const coffer__pycauset_target *target, coffer_dtype dtype,
                                  coffer_error *err)
{
    if (coffer_dtype_is_complex(dtype) && !target->has_complex)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s does not support complex numbers; --part real, imag or abs selects one part, "
                            "NumPy's .npy and .mtx store both",
                            target->name);
    if (dtype == COFFER_DTYPE_C32 && !target->has_half_complex)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s has no complex numbers of 16 bits; use --dtype c64 for the same values",
                            target->name);
    return COFFER_OK;
}

static coffer_status choose_dtype(coffer__pycauset_export *export, const coffer__pycauset_target *target,
                                  coffer_error *err)
{
    coffer_dtype values = export->info->value_dtype, wanted = values;
    if (values == COFFER_DTYPE_C32 && !target->has_half_complex)
        wanted = COFFER_DTYPE_C64;
    if (export->part != COFFER__PYCAUSET_ALL)
        wanted =
            values == COFFER_DTYPE_C32 || values == COFFER_DTYPE_C64 ? COFFER_DTYPE_F32 : COFFER_DTYPE_F64;
    coffer_status status = coffer__pycauset_dtype_setting(&wanted, export->job, err);
    if (status)
        return status;
    wanted = coffer__pycauset_memory_dtype(wanted);
    bool real = coffer_dtype_is_complex(values) && !coffer_dtype_is_complex(wanted);
    if (real && export->part == COFFER__PYCAUSET_ALL)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "the values are complex; --part real, imag or abs makes them %s",
                            coffer_dtype_name(wanted));
    export->dtype = wanted;
    bool whole = wanted == COFFER_DTYPE_BOOL || coffer_dtype_is_integer(wanted);
    export->read_dtype = export->part != COFFER__PYCAUSET_ALL ? COFFER_DTYPE_C128 : whole ? values : wanted;
    return check_target(target, wanted, err);
}

static coffer_status make_room(coffer__pycauset_export *export, coffer_error *err)
{
    uint64_t band = export->info->transposed ? TRANSPOSED_BAND_BYTES : BAND_BYTES;
    uint64_t limit = export->job->limits.memory_bytes / 4;
    uint64_t all = export->selection.cols ? UINT64_MAX / export->selection.cols : 0;
    export->capacity = (band < limit ? band : limit) / 16;
    if (export->selection.rows <= all && export->selection.rows * export->selection.cols < export->capacity)
        export->capacity = export->selection.rows * export->selection.cols;
    if (export->capacity == 0)
        export->capacity = 1;
    size_t count = (size_t) export->capacity;
    export->values = coffer__alloc_array(count, coffer_dtype_size(export->dtype));
    if (export->read_dtype != export->dtype)
        export->read = coffer__alloc_array(count, coffer_dtype_size(export->read_dtype));
    if (!export->values || (export->read_dtype != export->dtype && !export->read))
        return coffer__fail_no_memory(err, export->capacity * 16);
    return COFFER_OK;
}

/* Zeros and ones that are not stored cost nothing in the file. The children of a block matrix are files of
 * their own, of which nothing is known here. */
static coffer_status check_size(const coffer__pycauset_export *export, coffer_error *err)
{
    uint64_t bytes = 0, from = coffer_source_size(export->job->in);
    bool fits = coffer__mul_u64(&bytes, export->selection.rows, export->selection.cols) &&
                coffer__mul_u64(&bytes, bytes, coffer_dtype_size(export->dtype));
    if (export->info->type == COFFER_PYCAUSET_BLOCK && fits)
        from = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES;
    return coffer__pycauset_check_expansion(bytes, !fits, from, export->job, err);
}

coffer_status coffer__pycauset_export_open(coffer__pycauset_export *out, const coffer__convert_job *job,
                                           const coffer__pycauset_target *target, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    memset(out, 0, sizeof *out);
    out->job = job;
    opts.limits = &job->limits;
    opts.ignore_view = coffer__job_has(job, "stored");
    coffer_status status = coffer_pycauset_open(&out->matrix, job->in, &opts, err);
    if (status)
        return status;
    out->info = coffer_pycauset_get_info(out->matrix);
    status = select_tile(out, err);
    if (!status)
        status = choose_part(out, err);
    if (!status)
        status = choose_dtype(out, target, err);
    if (!status)
        status = check_size(out, err);
    if (!status)
        status = make_room(out, err);
    if (status)
        coffer__pycauset_export_close(out);
    else
        coffer__pycauset_export_rewind(out);
    return status;
}

void coffer__pycauset_export_close(coffer__pycauset_export *export)
{
    coffer_pycauset_close(export->matrix);
    coffer__free(export->read);
    coffer__free(export->values);
    export->matrix = NULL;
    export->read = export->values = NULL;
}

/* ---- Values ---- */

static void take_part(uint8_t *pairs, coffer__pycauset_part part, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double pair[2], value;
        memcpy(pair, pairs + 16 * i, sizeof pair);
        value = part == COFFER__PYCAUSET_REAL ? pair[0] : pair[1];
        if (part == COFFER__PYCAUSET_ABS)
            value = hypot(pair[0], pair[1]);
        memcpy(pairs + 8 * i, &value, sizeof value);
    }
}

coffer_status coffer__pycauset_export_tile(const uint8_t **values, const coffer_pycauset_tile *tile,
                                           coffer__pycauset_export *export, coffer_error *err)
{
    bool direct = export->read_dtype == export->dtype;
    uint8_t *read = direct ? export->values : export->read;
    size_t count = (size_t)(tile->rows * tile->cols);
    coffer__pycauset_place place = { tile->row, tile->col, tile->cols, tile->col };
    coffer_dtype from = export->read_dtype;
    coffer_status status = coffer_pycauset_read_tile(read, 0, export->matrix, tile, export->read_dtype, err);
    if (!status && export->part != COFFER__PYCAUSET_ALL) {
        take_part(read, export->part, count);
        from = COFFER_DTYPE_F64;
    }
    if (!status && !direct)
        status = coffer__pycauset_cast(export->values, export->dtype, read, from, count, &place, err);
    *values = export->values;
    return status;
}

void coffer__pycauset_export_rewind(coffer__pycauset_export *export)
{
    export->next = export->selection;
    export->next.rows = export->next.cols = 0;
}

coffer_status coffer__pycauset_export_next(const uint8_t **values, coffer_pycauset_tile *tile,
                                           coffer__pycauset_export *export, coffer_error *err)
{
    const coffer_pycauset_tile *all = &export->selection;
    coffer_pycauset_tile next = export->next; /* the last one, of no size before the first */
    *values = NULL;
    next.col += next.cols;
    if (next.col == all->col + all->cols) {
        next.col = all->col;
        next.row += next.rows;
    }
    uint64_t rows_left = all->row + all->rows - next.row, cols_left = all->col + all->cols - next.col;
    if (rows_left == 0 || cols_left == 0)
        return COFFER_OK;
    bool whole_rows = all->cols <= export->capacity;
    uint64_t most = whole_rows ? export->capacity / all->cols : 1;
    next.rows = rows_left < most ? rows_left : most;
    next.cols = cols_left < export->capacity ? cols_left : export->capacity;
    coffer_status status = coffer__pycauset_export_tile(values, &next, export, err);
    if (!status)
        status = coffer_source_intact(export->job->in, err);
    if (!status)
        status = coffer__job_progress(export->job, next.row - all->row + next.rows, all->rows, err);
    export->next = next;
    *tile = next;
    return status;
}

/* ---- Outputs ---- */

static coffer_status create_sink(coffer__sink **out, const coffer__pycauset_export *export, const char *path,
                                 coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    coffer_status status = coffer__sink_create(out, path, &opts, err);
    return path == export->job->out_path ? status : coffer__fail_other(err, status, path);
}

coffer_status coffer__pycauset_export_create(coffer__sink **out, const coffer__pycauset_export *export,
                                             coffer_error *err)
{
    return create_sink(out, export, export->job->out_path, err);
}

static coffer_status write_json(coffer__sink *sink, const coffer__pycauset_export *export, coffer_error *err)
{
    const coffer_pycauset_value *root = coffer_pycauset_metadata(export->matrix);
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer_node *node = NULL;
    coffer_status status = coffer_node_new(&node, err);
    if (status)
        return status;
    status = coffer_pycauset_value_to_node(node, root, err);
    if (!status) {
        coffer__json_writer_init(&writer, &text, 2);
        coffer__json_write_node(&writer, node);
        coffer__buffer_append(&text, "\n", 1);
        status = text.failed ? coffer__fail_no_memory(err, text.len)
                             : coffer__sink_write(sink, text.data, text.len, err);
    }
    coffer__buffer_free(&text);
    coffer_node_free(node);
    return status;
}

coffer_status coffer__pycauset_export_metadata(coffer__sink **out, const coffer__pycauset_export *export,
                                               coffer_error *err)
{
    const char *path = coffer__job_setting(export->job, "metadata");
    coffer__sink *sink = NULL;
    *out = NULL;
    if (!path)
        return COFFER_OK;
    coffer_status status = create_sink(&sink, export, path, err);
    if (!status)
        status = write_json(sink, export, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    *out = sink;
    return COFFER_OK;
}

/* Notes of people and programs that the output has no place for. */
static void note_lost_metadata(const coffer__pycauset_export *export)
{
    static const char *const maps[] = { "properties", "provenance", "cached" };
    const coffer_pycauset_value *root = coffer_pycauset_metadata(export->matrix);
    size_t lost = 0;
    if (!export->job->notes || coffer__job_has(export->job, "metadata"))
        return;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        lost += coffer_pycauset_value_count(coffer_pycauset_value_find(root, maps[i]));
    if (lost > 0)
        coffer__report_add(export->job->notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%zu values of the metadata are not kept%s", lost,
                           strcmp(export->job->from, "pycauset") == 0 ? "; --metadata FILE writes them" : "");
}

coffer_status coffer__pycauset_export_commit(coffer__sink *sink, const coffer__pycauset_export *export,
                                             coffer_error *err)
{
    coffer__sink *metadata = NULL;
    if (!export->keeps_properties)
        note_lost_metadata(export);
    coffer_status status = coffer__pycauset_export_metadata(&metadata, export, err);
    if (status)
        coffer__sink_discard(sink);
    else
        status = coffer__sink_commit(sink, err);
    if (status)
        coffer__sink_discard(metadata);
    else if (metadata)
        status = coffer__sink_commit(metadata, err);
    return status;
}
