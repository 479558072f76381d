/* The module for PNG, by libpng. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Limit for chunks that are not pixels. */
#define CHUNK_MAX ((png_alloc_size_t)8 << 20)
#define CHUNKS_MAX 1000

/* libpng returns by longjmp: this has everything that must survive it. */
typedef struct png_work {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end; /* reading */
    coffer__buffer *written; /* writing */
    char text[120];          /* what the library said */
    bool cut, no_memory;
} png_work;

static void on_error(png_structp png, png_const_charp text)
{
    png_work *work = png_get_error_ptr(png);
    snprintf(work->text, sizeof work->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp take_memory(png_structp png, png_alloc_size_t size)
{
    png_work *work = png_get_mem_ptr(png);
    void *memory = coffer__malloc(size);
    if (!memory)
        work->no_memory = true;
    return memory;
}

static void give_memory(png_structp png, png_voidp memory)
{
    (void)png;
    coffer__free(memory);
}

static void read_bytes(png_structp png, png_bytep out, size_t len)
{
    png_work *work = png_get_io_ptr(png);
    if (len > (size_t)(work->end - work->at)) {
        work->cut = true;
        png_error(png, "the file ends inside a chunk");
    }
    memcpy(out, work->at, len);
    work->at += len;
}

static coffer_status fail_png(const png_work *work, coffer_error *err)
{
    if (work->no_memory)
        return coffer__fail_no_memory(err, 0);
    return coffer__fail(err, work->cut ? COFFER_E_TRUNCATED : COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "PNG: %s", work->text);
}

/* Only pixels are read: color profiles and texts can be decompression bombs. */
static void set_limits(png_structp png)
{
    static const png_byte left_out[] =
        "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0"
        "sPLT\0sRGB\0tEXt\0tIME\0zTXt";
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, CHUNK_MAX);
    png_set_chunk_cache_max(png, CHUNKS_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, left_out, (int)(sizeof left_out / 5));
}

/* No palette, the channels that are asked for, and 8 bits unless 16 are there and wanted. */
static uint32_t set_transforms(png_work *work, const coffer_image_decode_opts *opts, uint32_t *depth)
{
    png_structp png = work->png;
    uint32_t channels = opts->channels;
    int color = png_get_color_type(png, work->info);
    bool transparent = png_get_valid(png, work->info, PNG_INFO_tRNS) != 0;
    bool wide = png_get_bit_depth(png, work->info) == 16 && opts->depth != 8;
    *depth = wide ? 16 : 8;
    if (!wide)
        png_set_scale_16(png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    else
        png_set_swap(png);
#endif
    png_set_expand(png);
    bool has_color = (color & PNG_COLOR_MASK_COLOR) != 0;
    bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 || transparent;
    bool wants_color = channels ? channels >= 3 : has_color;
    bool wants_alpha = channels ? channels == 4 : has_alpha;
    if (wants_color && !has_color)
        png_set_gray_to_rgb(png);
    if (!wants_color && has_color)
        png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, PNG_RGB_TO_GRAY_DEFAULT,
                                  PNG_RGB_TO_GRAY_DEFAULT);
    if (has_alpha && !wants_alpha)
        png_set_strip_alpha(png);
    if (!has_alpha && wants_alpha)
        png_set_add_alpha(png, wide ? 0xffff : 0xff, PNG_FILLER_AFTER);
    return (wants_color ? 3u : 1u) + (wants_alpha ? 1u : 0u);
}

/* Leaves by longjmp where libpng fails. */
static coffer_status read_picture(coffer_pixels *out, png_work *work, const coffer_image_decode_opts *opts,
                                  uint64_t max_bytes, coffer_error *err)
{
    png_structp png = work->png;
    uint32_t depth;
    png_set_read_fn(png, work, read_bytes);
    set_limits(png);
    png_read_info(png, work->info);
    uint32_t channels = set_transforms(work, opts, &depth);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, work->info);
    uint32_t width = png_get_image_width(png, work->info), height = png_get_image_height(png, work->info);
    size_t row = (size_t)width * channels * (depth / 8);
    if (png_get_rowbytes(png, work->info) != row)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "PNG: rows of %zu bytes",
                            png_get_rowbytes(png, work->info));
    coffer_status status = coffer__pixels_reserve(out, width, height, channels, depth, max_bytes, err);
    if (status)
        return status;
    for (int pass = 0; pass < passes; pass++) {
        for (size_t y = 0; y < height; y++)
            png_read_row(png, out->data + y * row, NULL);
    }
    png_read_end(png, NULL);
    return COFFER_OK;
}

static coffer_status read_guarded(coffer_pixels *out, png_work *work, const coffer_image_decode_opts *opts,
                                  uint64_t max_bytes, coffer_error *err)
{
    if (setjmp(png_jmpbuf(work->png)))
        return fail_png(work, err);
    return read_picture(out, work, opts, max_bytes, err);
}

static coffer_status decode(coffer_pixels *out, const void *bytes, size_t size,
                            const coffer_image_decode_opts *opts, uint64_t max_bytes, coffer_error *err)
{
    png_work work = { .at = bytes, .end = (const uint8_t *)bytes + size };
    coffer_status status;
    work.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &work, on_error, on_warning, &work,
                                        take_memory, give_memory);
    work.info = work.png ? png_create_info_struct(work.png) : NULL;
    if (!work.info)
        status = coffer__fail_no_memory(err, 0);
    else
        status = read_guarded(out, &work, opts, max_bytes, err);
    png_destroy_read_struct(&work.png, &work.info, NULL);
    return status;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t len)
{
    png_work *work = png_get_io_ptr(png);
    if (!coffer__buffer_append(work->written, bytes, len)) {
        work->no_memory = true;
        png_error(png, "no memory");
    }
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

static void write_picture(png_work *work, const coffer_pixels *pixels)
{
    static const int colors[5] = { 0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA };
    int depth = (int)coffer__pixels_depth(pixels);
    size_t row = (size_t)pixels->width * pixels->channels * (size_t)(depth / 8);
    png_set_write_fn(work->png, work, write_bytes, flush_bytes);
    png_set_user_limits(work->png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(work->png, work->info, pixels->width, pixels->height, depth, colors[pixels->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(work->png, work->info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (depth == 16)
        png_set_swap(work->png);
#endif
    for (size_t y = 0; y < pixels->height; y++)
        png_write_row(work->png, pixels->data + y * row);
    png_write_end(work->png, NULL);
}

static coffer_status write_guarded(png_work *work, const coffer_pixels *pixels, coffer_error *err)
{
    if (setjmp(png_jmpbuf(work->png)))
        return fail_png(work, err);
    write_picture(work, pixels);
    return COFFER_OK;
}

static coffer_status encode(uint8_t **bytes, size_t *size, const coffer_pixels *pixels, coffer_error *err)
{
    coffer__buffer written = COFFER__BUFFER_INIT;
    png_work work = { .written = &written };
    coffer_status status;
    if (pixels->channels < 1 || pixels->channels > 4 || pixels->width == 0 || pixels->height == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "PNG: %" PRIu32 " × %" PRIu32 " pixels of %" PRIu32 " channels", pixels->width,
                            pixels->height, pixels->channels);
    work.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &work, on_error, on_warning, &work,
                                         take_memory, give_memory);
    work.info = work.png ? png_create_info_struct(work.png) : NULL;
    if (!work.info)
        status = coffer__fail_no_memory(err, 0);
    else
        status = write_guarded(&work, pixels, err);
    png_destroy_write_struct(&work.png, &work.info);
    if (!status)
        *bytes = coffer__buffer_release(&written, size);
    coffer__buffer_free(&written);
    return status;
}

static const char *library_version(void)
{
    return png_get_libpng_ver(NULL);
}

static const coffer__png_module table = {
    COFFER__MODULE_INIT(coffer__png_module, library_version),
    decode,
    encode,
};
COFFER__MODULE_EXPORT(png, table);
