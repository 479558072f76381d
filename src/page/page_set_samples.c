/* Samples of a set: what their values are in a line of text, and pictures made smaller. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/text.h"
#include "coffer/media.h"
#include "page/page_set.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_SAMPLES = 600, THUMBNAIL_SIDE = 112, QUALITY = 82, VALUE_BYTES = 300 };
enum { WHOLE_SIDE = 2048, WHOLE_BYTES = 64 << 10 };

typedef struct gallery {
    coffer_chunks *chunks;
    const coffer_mldf *set;
    coffer_image_decoder *decoder;
    coffer_pixels pixels, scaled;
    coffer_bytes bytes;
    const uint64_t *numbers; /* of the samples */
    size_t count;
    uint32_t side;      /* of the pictures, at most */
    size_t value_bytes; /* of a text, at most */
    coffer__buffer pictures;
} gallery;

/* ---- Text ---- */

static void put_payload(coffer__buffer *out, const coffer_mldf_field *field, const coffer_mldf_entry *entry)
{
    coffer__size_text size;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE)
        coffer__buffer_printf(out, "%u × %u, ", entry->width, entry->height);
    else if (field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->sample_rate)
        coffer__buffer_printf(out, "%.3g s at %" PRIu32 " Hz, ",
                              (double)entry->num_samples / entry->sample_rate, entry->sample_rate);
    coffer__buffer_printf(out, "%s", coffer__size_text_of(size, entry->size));
}

/* Text and JSON as far as there is room; of other values what they are. */
static void put_value(coffer__buffer *out, gallery *from, uint64_t sample, size_t index)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(from->set, index);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    char number[COFFER__REAL_TEXT];
    if (coffer_mldf_entry_at(&entry, from->set, sample, index, &err)) {
        coffer__buffer_printf(out, "cannot be read: %s", err.text);
        return;
    }
    bool is_text = field->type == COFFER_MLDF_JSON ||
                   (field->kind == COFFER_MLDF_ENTRY_TEXT && entry.encoding == COFFER_MLDF_ENCODING_UTF8);
    if (field->kind == COFFER_MLDF_ENTRY_INT)
        coffer__buffer_printf(out, "%" PRId64, entry.i64);
    else if (field->kind == COFFER_MLDF_ENTRY_FLOAT)
        coffer__buffer_append(out, number, (size_t)(coffer__put_f64(number, entry.f64) - number));
    else if (!entry.present)
        coffer__buffer_printf(out, "–");
    else if (!is_text)
        put_payload(out, field, &entry);
    else if (coffer_mldf_get_text(&from->bytes, from->set, sample, index, &err))
        coffer__buffer_printf(out, "cannot be read: %s", err.text);
    else
        coffer__buffer_append(out, from->bytes.data, from->bytes.size);
}

static void add_column(gallery *from, size_t index)
{
    char name[40];
    coffer__buffer text = COFFER__BUFFER_INIT;
    snprintf(name, sizeof name, "samples.value.%zu", index);
    uint32_t *column = coffer__chunks_u32(from->chunks, name, from->count);
    for (size_t i = 0; column && i < from->count; i++) {
        text.len = 0;
        put_value(&text, from, from->numbers[i], index);
        size_t len = text.len < from->value_bytes ? text.len : from->value_bytes;
        while (len < text.len && len > 0 && (text.data[len] & 0xc0) == 0x80)
            len--; /* not inside a character */
        column[i] = coffer__chunks_text_len(from->chunks, len ? (const char *)text.data : "",
                                            strnlen(len ? (const char *)text.data : "", len));
    }
    from->chunks->failed |= text.failed;
    coffer__buffer_free(&text);
}

/* ---- Pictures ---- */

/* Transparent pixels on white, in place. */
static void drop_alpha(coffer_pixels *pixels)
{
    size_t count = (size_t)pixels->width * pixels->height;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = pixels->data + 4 * i;
        unsigned alpha = from[3];
        for (size_t j = 0; j < 3; j++)
            pixels->data[3 * i + j] = (uint8_t)((from[j] * alpha + 255 * (255 - alpha)) / 255);
    }
    pixels->channels = 3;
}

static coffer_status decode(gallery *from, uint64_t sample, size_t field, coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    opts.min_width = opts.min_height = from->side;
    opts.channels = 4;
    coffer_status status = coffer_mldf_read(&from->bytes, &entry, from->set, sample, field, err);
    if (status)
        return status;
    if (!entry.present)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the value is absent");
    if (entry.mode != COFFER_MLDF_MODE_RAW) {
        status =
            coffer_image_decode(&from->pixels, from->decoder, from->bytes.data, from->bytes.size, &opts, err);
        if (!status)
            drop_alpha(&from->pixels);
        return status;
    }
    size_t size = (size_t)entry.width * entry.height * entry.channels;
    if ((entry.channels != 1 && entry.channels != 3) || size == 0 || from->bytes.size != size)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "raw pixels of %u channels",
                            entry.channels);
    coffer_free(from->pixels.data);
    from->pixels = (coffer_pixels){
        sizeof from->pixels, coffer__malloc(size), entry.width, entry.height, entry.channels, size, 8
    };
    if (!from->pixels.data)
        return coffer__fail_no_memory(err, size);
    memcpy(from->pixels.data, from->bytes.data, size);
    return COFFER_OK;
}

static coffer_status add_thumbnail(gallery *from, uint64_t sample, size_t field, coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    coffer_status status = decode(from, sample, field, err);
    const coffer_pixels *shown = &from->pixels;
    uint32_t longest = shown->width > shown->height ? shown->width : shown->height;
    if (!status && longest > from->side) {
        uint32_t width = shown->width * from->side / longest, height = shown->height * from->side / longest;
        status = coffer_pixels_resize(&from->scaled, shown, width ? width : 1, height ? height : 1, err);
        shown = &from->scaled;
    }
    if (!status)
        status = coffer_image_encode_jpeg(&bytes, &size, shown, QUALITY, err);
    if (!status)
        coffer__buffer_append(&from->pictures, bytes, size);
    coffer_free(bytes);
    return status;
}

/* "pictures.data" has the thumbnails, one after the other; an empty one could not be decoded. */
static void add_pictures(gallery *from, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint32_t *ends = coffer__chunks_u32(from->chunks, "pictures.ends", from->count);
    size_t bad = 0;
    if (!ends || coffer_image_decoder_new(&from->decoder, NULL, &err)) {
        from->chunks->failed = true;
        return;
    }
    for (size_t i = 0; i < from->count; i++) {
        bad += add_thumbnail(from, from->numbers[i], field, &err) != COFFER_OK;
        ends[i] = (uint32_t)from->pictures.len;
    }
    uint8_t *data = coffer__chunks_u8(from->chunks, "pictures.data", from->pictures.len);
    if (data && from->pictures.len)
        memcpy(data, from->pictures.data, from->pictures.len);
    from->chunks->failed |= from->pictures.failed;
    coffer_node_add_u64(from->chunks->view, "picture_field", field, COFFER_UNIT_NONE);
    if (bad)
        coffer__chunks_note(from->chunks, "%zu of %zu pictures cannot be shown; the last: %s", bad,
                            from->count, err.text);
}

static size_t find_pictures(const coffer_mldf *set)
{
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++)
        if (coffer_mldf_field_at(set, i)->kind == COFFER_MLDF_ENTRY_IMAGE)
            return i;
    return COFFER_INDEX_NONE;
}

/* ---- All ---- */

void coffer__page_put_samples(coffer_chunks *chunks, const coffer_mldf *set, const uint64_t *samples,
                              size_t count, bool whole)
{
    gallery from = { .chunks = chunks,
                     .set = set,
                     .pixels = COFFER_PIXELS_INIT,
                     .scaled = COFFER_PIXELS_INIT,
                     .bytes = COFFER_BYTES_INIT,
                     .numbers = samples,
                     .count = count,
                     .side = whole ? WHOLE_SIDE : THUMBNAIL_SIDE,
                     .value_bytes = whole ? WHOLE_BYTES : VALUE_BYTES,
                     .pictures = COFFER__BUFFER_INIT };
    double *numbers = coffer__chunks_f64(chunks, "samples.number", count);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] = (double)samples[i];
    for (size_t i = 0; numbers && i < coffer_mldf_field_count(set); i++)
        add_column(&from, i);
    size_t pictures = find_pictures(set);
    if (numbers && pictures != COFFER_INDEX_NONE && count)
        add_pictures(&from, pictures);
    coffer_image_decoder_free(from.decoder);
    coffer_free(from.pixels.data);
    coffer_free(from.scaled.data);
    coffer_free(from.bytes.data);
    coffer__buffer_free(&from.pictures);
}

coffer_status coffer__page_add_samples(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                                       coffer_error *err)
{
    uint64_t total = coffer_mldf_sample_count(set),
             most = MOST_SAMPLES / detail > 0 ? MOST_SAMPLES / detail : 1;
    size_t count = (size_t)(total < most ? total : most);
    uint64_t *samples = coffer__alloc_array(count ? count : 1, sizeof *samples);
    if (!samples)
        return coffer__fail_no_memory(err, count * sizeof *samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = coffer__page_even(total, i, count);
    if (total > count)
        coffer__chunks_note(chunks, "%zu of %" PRIu64 " samples are shown, at even distances", count, total);
    coffer__page_put_samples(chunks, set, samples, count, false);
    coffer__free(samples);
    return COFFER_OK;
}
