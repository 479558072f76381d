/* Pictures of a set, made smaller. */
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/media.h"
#include "page/page_set.h"

#include <string.h>

enum { THUMBNAIL_SIDE = 112, QUALITY = 82 };

typedef struct thumbnails {
    coffer__page_gallery *gallery;
    coffer_image_decoder *decoder;
    coffer_pixels pixels, scaled;
    coffer__buffer files;
} thumbnails;

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

static coffer_status decode(thumbnails *from, uint64_t sample, size_t field, coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_bytes *bytes = &from->gallery->bytes;
    opts.min_width = opts.min_height = THUMBNAIL_SIDE;
    opts.channels = 4;
    coffer_status status = coffer_mldf_read(bytes, &entry, from->gallery->set, sample, field, err);
    if (status)
        return status;
    if (!entry.present)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the value is absent");
    if (entry.mode != COFFER_MLDF_MODE_RAW) {
        status = coffer_image_decode(&from->pixels, from->decoder, bytes->data, bytes->size, &opts, err);
        if (!status)
            drop_alpha(&from->pixels);
        return status;
    }
    size_t size = (size_t)entry.width * entry.height * entry.channels;
    if ((entry.channels != 1 && entry.channels != 3) || size == 0 || bytes->size != size)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "raw pixels of %u channels",
                            entry.channels);
    coffer_free(from->pixels.data);
    from->pixels = (coffer_pixels){
        sizeof from->pixels, coffer__malloc(size), entry.width, entry.height, entry.channels, size, 8
    };
    if (!from->pixels.data)
        return coffer__fail_no_memory(err, size);
    memcpy(from->pixels.data, bytes->data, size);
    return COFFER_OK;
}

static coffer_status add_thumbnail(thumbnails *from, uint64_t sample, size_t field, coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    coffer_status status = decode(from, sample, field, err);
    const coffer_pixels *shown = &from->pixels;
    uint32_t longest = shown->width > shown->height ? shown->width : shown->height;
    if (!status && longest > THUMBNAIL_SIDE) {
        uint32_t width = shown->width * THUMBNAIL_SIDE / longest,
                 height = shown->height * THUMBNAIL_SIDE / longest;
        status = coffer_pixels_resize(&from->scaled, shown, width ? width : 1, height ? height : 1, err);
        shown = &from->scaled;
    }
    if (!status)
        status = coffer_image_encode_jpeg(&bytes, &size, shown, QUALITY, err);
    if (!status)
        coffer__buffer_append(&from->files, bytes, size);
    coffer_free(bytes);
    return status;
}

/* An empty thumbnail could not be decoded. */
void coffer__page_add_pictures(coffer__page_gallery *gallery, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_chunks *chunks = gallery->chunks;
    thumbnails from = { .gallery = gallery,
                        .pixels = COFFER_PIXELS_INIT,
                        .scaled = COFFER_PIXELS_INIT,
                        .files = COFFER__BUFFER_INIT };
    uint32_t *ends = coffer__chunks_u32(chunks, "pictures.ends", gallery->count);
    size_t bad = 0;
    if (!ends || coffer_image_decoder_new(&from.decoder, NULL, &err)) {
        chunks->failed = true;
        return;
    }
    for (size_t i = 0; i < gallery->count; i++) {
        bad += add_thumbnail(&from, gallery->numbers[i], field, &err) != COFFER_OK;
        ends[i] = (uint32_t)from.files.len;
    }
    coffer__chunks_bytes(chunks, "pictures.data", &from.files);
    coffer_node_add_u64(chunks->view, "picture_field", field, COFFER_UNIT_NONE);
    if (bad)
        coffer__chunks_note(chunks, "%zu of %zu pictures cannot be shown; the last: %s", bad, gallery->count,
                            err.text);
    coffer_image_decoder_free(from.decoder);
    coffer_free(from.pixels.data);
    coffer_free(from.scaled.data);
    coffer__buffer_free(&from.files);
}
