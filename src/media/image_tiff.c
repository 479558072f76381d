/* The module for TIFF, by libtiff, which reads from memory through callbacks. */
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tiffio.h>

typedef struct memory_file {
    const uint8_t *bytes;
    size_t size, at;
    char text[120]; /* the first thing that the library said */
} memory_file;

static tmsize_t file_read(thandle_t context, void *out, tmsize_t count)
{
    memory_file *file = context;
    size_t left = file->size - file->at, len = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    memcpy(out, file->bytes + file->at, len);
    file->at += len;
    return (tmsize_t)len;
}

static tmsize_t file_write(thandle_t context, void *bytes, tmsize_t count)
{
    (void)context, (void)bytes, (void)count;
    return 0;
}

static toff_t file_seek(thandle_t context, toff_t offset, int whence)
{
    memory_file *file = context;
    toff_t base = whence == SEEK_CUR ? file->at : whence == SEEK_END ? file->size : 0;
    if (offset > file->size - base)
        return (toff_t)-1;
    file->at = (size_t)(base + offset);
    return file->at;
}

static toff_t file_size(thandle_t context)
{
    return ((memory_file *)context)->size;
}

static int file_close(thandle_t context)
{
    (void)context;
    return 0;
}

__attribute__((format(printf, 4, 0))) static int on_error(TIFF *tif, void *context, const char *module,
                                                          const char *format, va_list list)
{
    memory_file *file = context;
    (void)tif, (void)module;
    if (!file->text[0])
        vsnprintf(file->text, sizeof file->text, format, list);
    return 1;
}

__attribute__((format(printf, 4, 0))) static int on_warning(TIFF *tif, void *context, const char *module,
                                                            const char *format, va_list list)
{
    (void)tif, (void)context, (void)module, (void)format, (void)list;
    return 1;
}

static coffer_status fail_tiff(const memory_file *file, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "TIFF: %s",
                        file->text[0] ? file->text : "damaged picture");
}

typedef struct layout {
    uint32_t width, height;
    uint16_t bits, samples, photometric, planes, format;
} layout;

static void read_layout(layout *out, TIFF *tif)
{
    *out = (layout){ 0 };
    TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &out->width);
    TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &out->height);
    TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &out->bits);
    TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &out->samples);
    TIFFGetFieldDefaulted(tif, TIFFTAG_PLANARCONFIG, &out->planes);
    TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &out->format);
    if (!TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &out->photometric))
        out->photometric = out->samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
}

/* Rows that can be copied: gray or color, 8 or 16 bits, pixel after pixel. */
static bool is_plain(const layout *image)
{
    bool gray = image->photometric == PHOTOMETRIC_MINISBLACK && image->samples <= 2;
    bool color = image->photometric == PHOTOMETRIC_RGB && (image->samples == 3 || image->samples == 4);
    return (gray || color) && (image->bits == 8 || image->bits == 16) && image->format == SAMPLEFORMAT_UINT &&
           (image->planes == PLANARCONFIG_CONTIG || image->samples == 1);
}

static coffer_status read_rows(coffer_pixels *out, TIFF *tif, const layout *image, const memory_file *file,
                               uint64_t max_bytes, coffer_error *err)
{
    size_t row = (size_t)image->width * image->samples * (image->bits / 8U);
    if ((uint64_t)TIFFScanlineSize64(tif) != row)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "TIFF: rows of %" PRIu64 " bytes, %zu expected",
                            (uint64_t)TIFFScanlineSize64(tif), row);
    coffer_status status =
        coffer__pixels_reserve(out, image->width, image->height, image->samples, image->bits, max_bytes, err);
    for (uint32_t y = 0; !status && y < image->height; y++)
        if (TIFFReadScanline(tif, out->data + y * row, y, 0) != 1)
            status = fail_tiff(file, err);
    return status;
}

/* All other kinds come as RGBA of 8 bits. */
static coffer_status read_rgba(coffer_pixels *out, TIFF *tif, const layout *image, const memory_file *file,
                               uint32_t channels, uint64_t max_bytes, coffer_error *err)
{
    char why[1024] = "";
    if (image->bits > 8 && !(image->bits == 16 && image->format == SAMPLEFORMAT_UINT))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "TIFF: samples of %u bits that are not integers of 8 or 16", image->bits);
    if (!TIFFRGBAImageOK(tif, why))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "TIFF: %.100s", why);
    coffer_status status = coffer__pixels_reserve(out, image->width, image->height, 4, 8, max_bytes, err);
    if (status)
        return status;
    uint32_t *raster = coffer__alloc_array((size_t)image->width * image->height, sizeof *raster);
    if (!raster)
        return coffer__fail_no_memory(err, coffer__pixels_bytes(out));
    /* Not turned: the caller applies the orientation for every kind of picture. */
    uint16_t stored = ORIENTATION_TOPLEFT;
    TIFFSetField(tif, TIFFTAG_ORIENTATION, stored);
    if (!TIFFReadRGBAImageOriented(tif, image->width, image->height, raster, ORIENTATION_TOPLEFT, 1))
        status = fail_tiff(file, err);
    for (size_t i = 0; !status && i < (size_t)image->width * image->height; i++) {
        uint8_t *pixel = out->data + 4 * i;
        pixel[0] = (uint8_t)TIFFGetR(raster[i]);
        pixel[1] = (uint8_t)TIFFGetG(raster[i]);
        pixel[2] = (uint8_t)TIFFGetB(raster[i]);
        pixel[3] = (uint8_t)TIFFGetA(raster[i]);
    }
    coffer__free(raster);
    return status ? status : coffer__pixels_adapt(out, channels == 4 ? 4 : 3, 8, max_bytes, err);
}

static TIFF *open_tiff(memory_file *file, uint64_t max_bytes)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, file);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, file);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(max_bytes < INT64_MAX ? max_bytes : INT64_MAX));
    TIFF *tif = TIFFClientOpenExt("", "rm", file, file_read, file_write, file_seek, file_close, file_size,
                                  NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tif;
}

static coffer_status decode(coffer_pixels *out, const void *bytes, size_t size, const coffer_image_info *info,
                            const coffer_image_decode_opts *opts, uint64_t max_bytes, coffer_error *err)
{
    memory_file file = { .bytes = bytes, .size = size };
    layout image;
    coffer_status status;
    (void)opts;
    TIFF *tif = open_tiff(&file, max_bytes);
    if (!tif)
        return fail_tiff(&file, err);
    read_layout(&image, tif);
    if (image.width != info->width || image.height != info->height)
        status = coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                              "TIFF: a picture of %" PRIu32 " × %" PRIu32 ", the header says %" PRIu32
                              " × %" PRIu32,
                              image.width, image.height, info->width, info->height);
    else if (is_plain(&image) && !TIFFIsTiled(tif))
        status = read_rows(out, tif, &image, &file, max_bytes, err);
    else
        status = read_rgba(out, tif, &image, &file, info->channels, max_bytes, err);
    TIFFClose(tif);
    return status;
}

static const char *library_version(void)
{
    static char text[16];
    const char *version = strstr(TIFFGetVersion(), "Version "); /* "LIBTIFF, Version 4.5.0\n…" */
    snprintf(text, sizeof text, "%.*s", version ? (int)strcspn(version + 8, "\n ") : 0,
             version ? version + 8 : "");
    return text;
}

static const coffer__picture_module table = {
    COFFER__MODULE_INIT(coffer__picture_module, library_version),
    decode,
};
COFFER__MODULE_EXPORT(tiff, table);
