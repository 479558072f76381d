/* The samples of a set that a page shows, and what their values are in a line of text. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/text.h"
#include "page/page_set.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_SAMPLES = 600, VALUE_BYTES = 300 };

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
static void put_value(coffer__buffer *out, coffer__page_gallery *from, uint64_t sample, size_t index)
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

static void add_column(coffer__page_gallery *from, size_t index)
{
    char name[40];
    coffer__buffer text = COFFER__BUFFER_INIT;
    snprintf(name, sizeof name, "samples.value.%zu", index);
    uint32_t *column = coffer__chunks_u32(from->chunks, name, from->count);
    for (size_t i = 0; column && i < from->count; i++) {
        text.len = 0;
        put_value(&text, from, from->numbers[i], index);
        size_t len = text.len < VALUE_BYTES ? text.len : VALUE_BYTES;
        while (len < text.len && len > 0 && (text.data[len] & 0xc0) == 0x80)
            len--; /* not inside a character */
        column[i] = coffer__chunks_text_len(from->chunks, len ? (const char *)text.data : "",
                                            strnlen(len ? (const char *)text.data : "", len));
    }
    from->chunks->failed |= text.failed;
    coffer__buffer_free(&text);
}

/* ---- All ---- */

/* The first field of a kind. */
static size_t find_field(const coffer_mldf *set, bool (*fits)(const coffer_mldf_field *field))
{
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++)
        if (fits(coffer_mldf_field_at(set, i)))
            return i;
    return COFFER_INDEX_NONE;
}

static bool is_picture(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_IMAGE;
}

static bool is_sound(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_AUDIO;
}

static bool is_array(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_BYTES && field->dtype != COFFER_DTYPE_NONE && field->ndim > 0;
}

static void add_media(coffer__page_gallery *gallery)
{
    size_t picture = find_field(gallery->set, is_picture), sound = find_field(gallery->set, is_sound),
           array = find_field(gallery->set, is_array);
    if (picture != COFFER_INDEX_NONE)
        coffer__page_add_pictures(gallery, picture);
    if (sound != COFFER_INDEX_NONE)
        coffer__page_add_sounds(gallery, sound);
    if (array != COFFER_INDEX_NONE)
        coffer__page_add_arrays(gallery, array);
}

coffer_status coffer__page_add_samples(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                                       coffer_error *err)
{
    uint64_t total = coffer_mldf_sample_count(set),
             most = MOST_SAMPLES / detail > 0 ? MOST_SAMPLES / detail : 1;
    coffer__page_gallery gallery = { .chunks = chunks, .set = set, .detail = detail };
    gallery.count = (size_t)(total < most ? total : most);
    gallery.numbers = coffer__alloc_array(gallery.count ? gallery.count : 1, sizeof *gallery.numbers);
    if (!gallery.numbers)
        return coffer__fail_no_memory(err, gallery.count * sizeof *gallery.numbers);
    double *numbers = coffer__chunks_f64(chunks, "samples.number", gallery.count);
    for (size_t i = 0; numbers && i < gallery.count; i++) {
        /* Even steps through the set, without an overflow of i × total. */
        gallery.numbers[i] = total / gallery.count * i + total % gallery.count * i / gallery.count;
        numbers[i] = (double)gallery.numbers[i];
    }
    if (total > gallery.count)
        coffer__chunks_note(chunks, "%zu of %" PRIu64 " samples are shown, at even distances", gallery.count,
                            total);
    for (size_t i = 0; numbers && i < coffer_mldf_field_count(set); i++)
        add_column(&gallery, i);
    if (numbers && gallery.count)
        add_media(&gallery);
    coffer_free(gallery.bytes.data);
    coffer__free(gallery.numbers);
    return COFFER_OK;
}
