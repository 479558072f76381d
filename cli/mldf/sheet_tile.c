#include "mldf/sheet_tile.h"

#include "base/fail.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const rgb quiet = { 110, 110, 110 }, ink = { 40, 40, 40 }, wave = { 49, 104, 142 };
static const rgb paper = { 246, 246, 246 };

enum { TEXT_SIZE = 12, LINE_HEIGHT = 15, LINE_BYTES = 400, FINENESS = 2 };

void tile_painter_free(tile_painter *painter)
{
    coffer_image_decoder_free(painter->decoder);
    coffer_free(painter->pixels.data);
    coffer_free(painter->scaled.data);
    coffer__buffer_free(&painter->text);
}

/* ---- Text ---- */

/* The longest beginning of the text that is not wider than the box and ends with a word; a word that is too
 * wide for a line is cut. Gives where the next line begins. */
static const char *take_line(char *out, tile_painter *painter, const picture_font *font, const char *text,
                             double width)
{
    size_t fits = 0, hard = 0;
    const char *newline = text + strcspn(text, "\n");
    size_t len = (size_t)(newline - text) < LINE_BYTES ? (size_t)(newline - text) : LINE_BYTES;
    for (size_t i = 1; i <= len; i++) {
        if (i < len && ((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        memcpy(out, text, i);
        out[i] = '\0';
        if (picture_text_width(painter->canvas, font, out) > width)
            break;
        hard = i;
        if (text[i] == ' ' || text[i] == '\n' || !text[i])
            fits = i;
    }
    size_t taken = fits ? fits : hard ? hard : len > 0;
    memcpy(out, text, taken);
    out[taken] = '\0';
    text += taken;
    return *text == ' ' || *text == '\n' ? text + 1 : text;
}

void tile_paint_text(tile_painter *painter, picture_box box, const char *text, rgb color)
{
    const picture_font font = { TEXT_SIZE, false, color };
    char line[LINE_BYTES + 1];
    int lines = (int)((box.height - 2) / LINE_HEIGHT);
    for (int i = 1; *text && i <= lines; i++) {
        double y = box.y + i * LINE_HEIGHT;
        bool is_last = i == lines;
        const char *next = take_line(line, painter, &font, text, box.width - 8);
        if (is_last && *next)
            picture_fit_text(line, sizeof line, painter->canvas, &font, PICTURE_CUT_END, text, box.width - 8);
        picture_text(painter->canvas, box.x + 4, y, PICTURE_LEFT, &font, line);
        text = next;
    }
}

static coffer_status paint_text(tile_painter *painter, picture_box box, uint64_t sample, size_t field,
                                coffer_error *err)
{
    painter->text.len = 0;
    coffer_status status = sample_put_text(&painter->text, painter->reader, sample, field, err);
    if (status)
        return status;
    picture_fill(painter->canvas, box, paper);
    tile_paint_text(painter, box, coffer__buffer_text(&painter->text), ink);
    return COFFER_OK;
}

/* ---- Pictures ---- */

/* Gray and transparent pixels as RGB, transparent ones on white. */
static coffer_status make_rgb(coffer_pixels *pixels, coffer_error *err)
{
    size_t count = (size_t)pixels->width * pixels->height;
    uint32_t channels = pixels->channels;
    if (channels == 3)
        return COFFER_OK;
    uint8_t *rgb_pixels = coffer__alloc_array(count, 3);
    if (!rgb_pixels)
        return coffer__fail_no_memory(err, 3 * (uint64_t)count);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = pixels->data + i * channels;
        unsigned alpha = channels == 4 ? from[3] : channels == 2 ? from[1] : 255;
        for (size_t j = 0; j < 3; j++) {
            unsigned value = from[channels >= 3 ? j : 0];
            rgb_pixels[3 * i + j] = (uint8_t)((value * alpha + 255 * (255 - alpha)) / 255);
        }
    }
    const coffer_pixels converted = { sizeof(coffer_pixels), rgb_pixels, pixels->width,
                                      pixels->height,        3,          3 * count };
    coffer_free(pixels->data);
    *pixels = converted;
    return COFFER_OK;
}

static picture_box fit(picture_box box, double width, double height)
{
    double scale = fmin(box.width / width, box.height / height);
    /* A thumbnail that is smaller than its tile grows by whole steps, so that its pixels stay square. */
    if (scale >= 2)
        scale = floor(scale);
    picture_box inner = { 0, 0, fmax(1, round(width * scale)), fmax(1, round(height * scale)) };
    inner.x = box.x + floor((box.width - inner.width) / 2);
    inner.y = box.y + floor((box.height - inner.height) / 2);
    return inner;
}

static coffer_status paint_picture(tile_painter *painter, picture_box box, uint64_t sample, size_t field,
                                   coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_status status = COFFER_OK;
    if (!painter->decoder)
        status = coffer_image_decoder_new(&painter->decoder, NULL, err);
    if (!status)
        status =
            sample_pixels(&painter->pixels, painter->decoder, painter->reader, sample, field, &opts, err);
    if (!status)
        status = make_rgb(&painter->pixels, err);
    if (status)
        return status;
    const coffer_pixels *shown = &painter->pixels;
    picture_box inner = fit(box, shown->width, shown->height);
    unsigned width = FINENESS * (unsigned)inner.width, height = FINENESS * (unsigned)inner.height;
    if (shown->width > width || shown->height > height) {
        status = coffer_pixels_resize(&painter->scaled, shown, width, height, err);
        shown = &painter->scaled;
    }
    if (!status)
        picture_photo(painter->canvas, inner, shown->data, shown->width, shown->height);
    return status;
}

/* ---- Sounds ---- */

/* For each column of pixels the lowest and the highest value in it; all channels in one. */
static void paint_wave(tile_painter *painter, picture_box box, const float *values, uint64_t frames,
                       uint32_t channels)
{
    double middle = box.y + box.height / 2, half = box.height / 2 - 4;
    size_t columns = (size_t)box.width - 8;
    float last = frames > 0 ? values[0] : 0; /* a line that does not break off between two columns */
    picture_fill(painter->canvas, box, paper);
    picture_line(painter->canvas, box.x + 4, middle, box.x + box.width - 4, middle, 1, quiet);
    for (size_t i = 0; i < columns && frames > 0; i++) {
        uint64_t from = frames * i / columns, to = frames * (i + 1) / columns;
        float low = last, high = last;
        for (uint64_t j = from * channels; j < (to > from ? to : from + 1) * channels; j++) {
            low = values[j] < low ? values[j] : low;
            high = values[j] > high ? values[j] : high;
        }
        last = values[(to > from ? to - 1 : from) * channels];
        low = fmaxf(low, -1);
        high = fminf(high, 1);
        double x = box.x + 4 + (double)i + 0.5;
        picture_line(painter->canvas, x, middle - half * (double)high - 0.5, x,
                     middle - half * (double)low + 0.5, 1, wave);
    }
}

static coffer_status paint_sound(tile_painter *painter, picture_box box, uint64_t sample, size_t field,
                                 coffer_error *err)
{
    float *values = NULL;
    uint64_t frames;
    uint32_t channels, rate;
    char length[48];
    const picture_font font = { TEXT_SIZE, false, quiet };
    coffer_status status =
        sample_sound(&values, &frames, &channels, &rate, painter->reader, sample, field, err);
    if (status)
        return status;
    paint_wave(painter, box, values, frames, channels);
    snprintf(length, sizeof length, "%.3g s", rate ? (double)frames / rate : 0.0);
    picture_text(painter->canvas, box.x + box.width - 4, box.y + box.height - 5, PICTURE_RIGHT, &font,
                 length);
    coffer__free(values);
    return COFFER_OK;
}

/* ---- Tiles ---- */

static coffer_status paint_value(tile_painter *painter, picture_box box, uint64_t sample, size_t index,
                                 coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(painter->reader->set, index);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, painter->reader->set, sample, index, err);
    if (status)
        return status;
    bool is_locked = (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) && !painter->reader->has_key;
    if (entry.present && !is_locked && field->kind == COFFER_MLDF_ENTRY_IMAGE)
        return paint_picture(painter, box, sample, index, err);
    if (entry.present && !is_locked && field->kind == COFFER_MLDF_ENTRY_AUDIO)
        return paint_sound(painter, box, sample, index, err);
    return paint_text(painter, box, sample, index, err);
}

coffer_status tile_paint(tile_painter *painter, picture_box box, uint64_t sample, size_t index,
                         bool *undecodable, coffer_error *err)
{
    painter->reader->decoding = false;
    coffer_status status = paint_value(painter, box, sample, index, err);
    *undecodable = status && painter->reader->decoding;
    return status;
}
