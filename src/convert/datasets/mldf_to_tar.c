/* A training set as a WebDataset shard. */
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/real.h"
#include "convert/datasets/dataset_input.h"
#include "convert/datasets/mldf_export.h"
#include "media/audio.h"
#include "outside/archives/tar.h"
#include "outside/arrays/npy.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Extensions and their meaning ---- */

static const coffer__tar_extension extensions[] = {
    { "webp", COFFER__TAR_IMAGE, true },   { "gif", COFFER__TAR_IMAGE, true },
    { "bmp", COFFER__TAR_IMAGE, true },    { "tif", COFFER__TAR_IMAGE, true },
    { "tiff", COFFER__TAR_IMAGE, true },   { "ppm", COFFER__TAR_IMAGE, true },
    { "pgm", COFFER__TAR_IMAGE, true },    { "pbm", COFFER__TAR_IMAGE, true },
    { "mp3", COFFER__TAR_AUDIO, true },    { "ogg", COFFER__TAR_AUDIO, true },
    { "opus", COFFER__TAR_AUDIO, true },   { "m4a", COFFER__TAR_AUDIO, true },
    { "aac", COFFER__TAR_AUDIO, true },    { "mp4", COFFER__TAR_VIDEO, false },
    { "m4v", COFFER__TAR_VIDEO, false },   { "mov", COFFER__TAR_VIDEO, false },
    { "mkv", COFFER__TAR_VIDEO, false },   { "webm", COFFER__TAR_VIDEO, false },
    { "avi", COFFER__TAR_VIDEO, false },   { "mpg", COFFER__TAR_VIDEO, false },
    { "jpg", COFFER__TAR_IMAGE, false },   { "jpeg", COFFER__TAR_IMAGE, false },
    { "png", COFFER__TAR_IMAGE, true },    { "wav", COFFER__TAR_AUDIO, false },
    { "flac", COFFER__TAR_AUDIO, true },   { "cls", COFFER__TAR_INT, false },
    { "cls2", COFFER__TAR_INT, false },    { "index", COFFER__TAR_INT, false },
    { "inx", COFFER__TAR_INT, false },     { "id", COFFER__TAR_INT, false },
    { "float", COFFER__TAR_FLOAT, false }, { "txt", COFFER__TAR_TEXT, false },
    { "text", COFFER__TAR_TEXT, false },   { "transcript", COFFER__TAR_TEXT, false },
    { "json", COFFER__TAR_JSON, false },   { "npy", COFFER__TAR_ARRAY, false },
};

const coffer__tar_extension *coffer__tar_extension_of(const char *extension)
{
    const char *dot = strrchr(extension, '.');
    const char *last = dot ? dot + 1 : extension;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (strcmp(extensions[i].name, last) == 0)
            return &extensions[i];
    }
    return NULL;
}

#define EXTENSION_SIZE 96
#define PROGRESS_STEP 256

/* The member of a sample whose values are all absent; no field has this extension. */
static const char nothing[] = "absent";

typedef struct tar_export {
    coffer__mldf_export common;
    char (*extensions)[EXTENSION_SIZE]; /* by index of those chosen; "" is the stem */
    size_t key;                         /* index of the field that is the stem, or SIZE_MAX */
    coffer__buffer stem, last_stem, name, header, front;
} tar_export;

/* ---- Names ---- */

static const char *usual_extension(const coffer_mldf_field *field)
{
    switch (field->type) {
    case COFFER_MLDF_INT:
        return "cls";
    case COFFER_MLDF_FLOAT:
        return "float";
    case COFFER_MLDF_JSON:
        return "json";
    case COFFER_MLDF_IMAGE_JPEG:
        return "jpg";
    case COFFER_MLDF_IMAGE_PNG:
        return "png";
    case COFFER_MLDF_AUDIO:
        return "wav";
    case COFFER_MLDF_AUDIO_COMPRESSED:
        return "flac";
    case COFFER_MLDF_TEXT:
        return "txt";
    case COFFER_MLDF_IMAGE_RAW:
    case COFFER_MLDF_TEXT_TOKENISED:
        return "npy";
    default:
        return coffer__dataset_is_array(field->type) ? "npy" : "bin";
    }
}

static bool is_plain(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.")] == 0 && name[0] != '.';
}

/* The name itself where it says what the values are ("jpg", "seg.png"; for bytes, whatever says nothing
 * else), else with the usual extension. */
static void choose_extension(char out[EXTENSION_SIZE], const coffer_mldf_field *field, size_t index)
{
    const char *usual = usual_extension(field);
    const coffer__tar_extension *known = coffer__tar_extension_of(field->name);
    const coffer__tar_extension *wanted = coffer__tar_extension_of(usual);
    if (!is_plain(field->name))
        snprintf(out, EXTENSION_SIZE, "field%zu.%s", index, usual);
    else if (wanted ? known && known->kind == wanted->kind : !known)
        snprintf(out, EXTENSION_SIZE, "%s", field->name);
    else
        snprintf(out, EXTENSION_SIZE, "%s.%s", field->name, usual);
}

static int compare_extensions(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "a" and "a.txt" both become "a.txt" when they are text. */
static coffer_status make_different(const tar_export *export, coffer_error *err)
{
    size_t count = export->common.field_count;
    const char **sorted = coffer__alloc_array(count ? count : 1, sizeof *sorted);
    coffer_status status = COFFER_OK;
    if (!sorted)
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = export->extensions[i];
    qsort(sorted, count, sizeof *sorted, compare_extensions);
    for (size_t i = 1; !status && i < count; i++) {
        if (sorted[i][0] && strcmp(sorted[i - 1], sorted[i]) == 0)
            status =
                coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                             "two fields would be \"%s\" in the archive: choose with --fields", sorted[i]);
    }
    coffer__free(sorted);
    return status;
}

static coffer_status choose_names(tar_export *export, coffer_error *err)
{
    size_t count = export->common.field_count;
    export->key = SIZE_MAX;
    export->extensions = coffer__calloc(count ? count : 1, sizeof *export->extensions);
    if (!export->extensions)
        return coffer__fail_no_memory(err, count * sizeof *export->extensions);
    for (size_t i = 0; i < count; i++) {
        const coffer_mldf_field *field = coffer__mldf_export_field(&export->common, i);
        if (field->type == COFFER_MLDF_TEXT && strcmp(field->name, "__key__") == 0)
            export->key = i;
        else
            choose_extension(export->extensions[i], field, i);
    }
    return make_different(export, err);
}

/* ---- Members ---- */

static coffer_status put_member(tar_export *export, const char *name, const void *bytes, size_t size,
                                coffer_error *err)
{
    static const uint8_t zeros[COFFER__TAR_BLOCK];
    coffer__buffer *front = &export->front, *header = &export->header;
    header->len = 0;
    coffer__tar_put_header(header, name, front->len + size);
    if (header->failed || front->failed)
        return coffer__fail_no_memory(err, header->len + front->len);
    coffer_status status = coffer__sink_write(export->common.sink, header->data, header->len, err);
    if (!status)
        status = coffer__sink_write(export->common.sink, front->data, front->len, err);
    if (!status)
        status = coffer__sink_write(export->common.sink, bytes, size, err);
    if (!status)
        status = coffer__sink_write(export->common.sink, zeros, coffer__tar_padding(front->len + size), err);
    front->len = 0;
    return status;
}

static void put_schema_field(coffer__json_writer *writer, const coffer_mldf_field *field)
{
    const char *type = coffer_mldf_type_name(field->type);
    coffer__json_open_object(writer);
    coffer__json_key(writer, "name");
    coffer__json_string(writer, field->name);
    coffer__json_key(writer, "type");
    coffer__json_string(writer, type ? type : coffer_mldf_type_name(COFFER_MLDF_BYTES));
    if (field->flags & COFFER_MLDF_FIELD_OPTIONAL) {
        coffer__json_key(writer, "optional");
        coffer__json_write_bool(writer, true);
    }
    if (coffer__dataset_is_array(field->type)) {
        coffer__json_key(writer, "dtype");
        coffer__json_string(writer, coffer_dtype_name(field->dtype));
        coffer__json_key(writer, "shape");
        coffer__json_open_array(writer);
        for (uint32_t i = 0; i < field->ndim; i++)
            coffer__json_write_u64(writer, field->dims[i]);
        coffer__json_close_array(writer);
    }
    if (field->jpeg_quality) {
        coffer__json_key(writer, "jpeg_quality");
        coffer__json_write_u64(writer, field->jpeg_quality);
    }
    if (field->sample_rate) {
        coffer__json_key(writer, "sample_rate");
        coffer__json_write_u64(writer, field->sample_rate);
    }
    coffer__json_close_object(writer);
}

static coffer_status put_schema(tar_export *export, coffer_error *err)
{
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &export->front, 0);
    coffer__json_open_object(&writer);
    coffer__json_key(&writer, "extensions");
    coffer__json_open_array(&writer);
    for (size_t i = 0; i < export->common.field_count; i++)
        coffer__json_string(&writer, export->extensions[i]);
    coffer__json_close_array(&writer);
    coffer__json_key(&writer, "fields");
    coffer__json_open_array(&writer);
    for (size_t i = 0; i < export->common.field_count; i++)
        put_schema_field(&writer, coffer__mldf_export_field(&export->common, i));
    coffer__json_close_array(&writer);
    coffer__json_close_object(&writer);
    return put_member(export, COFFER__TAR_SCHEMA, NULL, 0, err);
}

static coffer_status put_npy_header(tar_export *export, coffer_error *err)
{
    const coffer__mldf_export *common = &export->common;
    coffer__npy_field field;
    coffer__npy npy = { .fields = &field, .field_count = 1, .dimensions = common->ndim };
    if (!coffer__npy_field_of(&field, common->dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "NumPy has no type %s",
                            coffer_dtype_name(common->dtype));
    memcpy(npy.shape, common->dims, common->ndim * sizeof *npy.shape);
    coffer__npy_put_header(&export->front, &npy);
    return COFFER_OK;
}

static coffer_status put_value(tar_export *export, size_t index, coffer_error *err)
{
    const coffer__mldf_export *common = &export->common;
    const coffer_mldf_field *field = coffer__mldf_export_field(common, index);
    const uint8_t *bytes = common->bytes.data;
    size_t size = common->bytes.size;
    char number[COFFER__REAL_TEXT > 24 ? COFFER__REAL_TEXT : 24];
    coffer_status status = COFFER_OK;
    if (field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT) {
        char *end = field->kind == COFFER_MLDF_ENTRY_INT ? coffer__put_i64(number, common->entry.i64)
                                                         : coffer__put_f64(number, common->entry.f64);
        bytes = (const uint8_t *)number;
        size = (size_t)(end - number);
    } else if (common->has_dims) {
        status = put_npy_header(export, err);
    } else if (field->kind == COFFER_MLDF_ENTRY_AUDIO && common->entry.codec == 0 &&
               common->entry.bit_depth) {
        coffer__wav_put_header(&export->front, common->entry.channels, common->entry.sample_rate,
                               common->entry.bit_depth, size);
    }
    export->name.len = 0;
    coffer__buffer_printf(&export->name, "%s.%s", coffer__buffer_text(&export->stem),
                          export->extensions[index]);
    if (export->name.failed)
        return coffer__fail_no_memory(err, export->name.len);
    return status ? status : put_member(export, coffer__buffer_text(&export->name), bytes, size, err);
}

/* A stem that comes from the set must be a path inside, have no dot in its last part, and differ from the one
 * before. */
static bool stem_is_good(const tar_export *export)
{
    const char *stem = (const char *)export->stem.data;
    size_t len = export->stem.len, base = len;
    while (base && stem[base - 1] != '/')
        base--;
    if (len == 0 || base == len || stem[0] == '/' || memchr(stem, 0, len) ||
        memchr(stem + base, '.', len - base))
        return false;
    for (size_t at = 0; at < base; at++) {
        if ((at == 0 || stem[at - 1] == '/') && len - at >= 3 && memcmp(stem + at, "../", 3) == 0)
            return false;
    }
    return len != export->last_stem.len || memcmp(stem, export->last_stem.data, len) != 0;
}

static coffer_status make_stem(tar_export *export, uint64_t sample, coffer_error *err)
{
    coffer__buffer before = export->last_stem;
    export->last_stem = export->stem;
    export->stem = before;
    export->stem.len = 0;
    if (export->key == SIZE_MAX) {
        coffer__buffer_printf(&export->stem, "%09" PRIu64, sample);
    } else {
        coffer_status status = coffer__mldf_export_read(&export->common, sample, export->key, err);
        if (status)
            return status;
        coffer__buffer_append(&export->stem, export->common.bytes.data, export->common.bytes.size);
    }
    if (export->stem.failed)
        return coffer__fail_no_memory(err, export->stem.len);
    if (!stem_is_good(export))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "sample %" PRIu64 ": its key \"%s\" cannot be a name in the archive", sample,
                            coffer__buffer_text(&export->stem));
    return COFFER_OK;
}

static coffer_status put_sample(tar_export *export, uint64_t sample, coffer_error *err)
{
    bool any = false;
    coffer_status status = make_stem(export, sample, err);
    for (size_t i = 0; !status && i < export->common.field_count; i++) {
        if (i == export->key)
            continue;
        status = coffer__mldf_export_read(&export->common, sample, i, err);
        if (status || !export->common.entry.present)
            continue;
        any = true;
        status = put_value(export, i, err);
    }
    if (status || any)
        return status;
    export->name.len = 0;
    coffer__buffer_printf(&export->name, "%s.%s", coffer__buffer_text(&export->stem), nothing);
    return put_member(export, coffer__buffer_text(&export->name), NULL, 0, err);
}

static coffer_status put_all(tar_export *export, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    coffer_status status = coffer__mldf_export_create(common, err);
    if (!status)
        status = put_schema(export, err);
    for (uint64_t i = common->begin; !status && i < common->end; i++) {
        status = put_sample(export, coffer__mldf_export_sample(common, i), err);
        if (!status && (i - common->begin) % PROGRESS_STEP == 0)
            status = coffer__job_progress(common->job, i - common->begin, common->end - common->begin, err);
    }
    if (!status)
        status = coffer__sink_fill(common->sink, 0, (uint64_t)2 * COFFER__TAR_BLOCK, err);
    return status ? status : coffer__mldf_export_commit(common, err);
}

coffer_status coffer__mldf_to_tar(const coffer__convert_job *job, coffer_error *err)
{
    tar_export export = { .stem = COFFER__BUFFER_INIT,
                          .last_stem = COFFER__BUFFER_INIT,
                          .name = COFFER__BUFFER_INIT,
                          .header = COFFER__BUFFER_INIT,
                          .front = COFFER__BUFFER_INIT };
    coffer_status status = coffer__mldf_export_open(&export.common, job, err);
    if (!status)
        status = choose_names(&export, err);
    if (!status)
        status = put_all(&export, err);
    coffer__mldf_export_close(&export.common);
    coffer__free(export.extensions);
    coffer__buffer_free(&export.stem);
    coffer__buffer_free(&export.last_stem);
    coffer__buffer_free(&export.name);
    coffer__buffer_free(&export.header);
    coffer__buffer_free(&export.front);
    return status;
}
