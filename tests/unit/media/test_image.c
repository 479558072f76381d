/* Pictures decoded and encoded: every kind of PNG, JPEG at every scale, and files that are cut or lie. */
#include "coffer/media.h"

#include "support/picture_bytes.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coffer_image_decoder *decoder;

static int make_decoder(void **state)
{
    (void)state;
    return coffer_image_decoder_new(&decoder, NULL, NULL);
}

static int free_decoder(void **state)
{
    (void)state;
    coffer_image_decoder_free(decoder);
    return 0;
}

static coffer_status decode(coffer_pixels *out, const void *bytes, size_t size, uint32_t channels)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.channels = channels;
    coffer_status status = coffer_image_decode(out, decoder, bytes, size, &opts, &err);
    assert_int_equal(status == COFFER_OK, err.text[0] == 0);
    return status;
}

static void assert_pixels(coffer__buffer png, uint32_t channels, const char *expected, size_t len)
{
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    assert_int_equal(decode(&pixels, png.data, png.len, channels), COFFER_OK);
    assert_int_equal((size_t)pixels.width * pixels.height * pixels.channels, len);
    assert_memory_equal(pixels.data, expected, len);
    coffer_free(pixels.data);
    coffer__buffer_free(&png);
}

/* A smooth picture: JPEG changes it little. */
static coffer_pixels gradient(uint32_t width, uint32_t height, uint32_t channels)
{
    coffer_pixels pixels = {
        sizeof(coffer_pixels), malloc((size_t)width * height * channels), width, height, channels, 0, 8
    };
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            for (size_t c = 0; c < channels; c++)
                pixels.data[(y * width + x) * channels + c] =
                    (uint8_t)(40 + (x * 100 / width) + (y * 80 / height) + c * 10);
        }
    }
    return pixels;
}

static void a_png_of_16_bits_becomes_one_of_8(void **state)
{
    (void)state;
    static const uint8_t rows[] = { 0, 0xff, 0xff, 0x80, 0x80, 0, 0, 0x00, 0x01, 0x12, 0x12, 0x7f, 0xff };
    png_parts parts = { .width = 2, .height = 1, .bit_depth = 16, .color_type = 2, .rows = rows };
    parts.row_len = sizeof rows;
    assert_pixels(png_build(&parts), 3, "\xff\x80\x00\x00\x12\x7f", 6);
}

static void palettes_become_colors_and_their_transparency_alpha(void **state)
{
    (void)state;
    static const uint8_t palette[] = { 1, 2, 3, 200, 100, 50 };
    static const uint8_t rows[] = { 0, 0x40 }; /* one bit each: 0, 1, 0 */
    png_parts parts = { .width = 3, .height = 1, .bit_depth = 1, .color_type = 3, .rows = rows };
    parts.row_len = sizeof rows;
    parts.palette = palette;
    parts.palette_len = sizeof palette;
    assert_pixels(png_build(&parts), 0, "\x01\x02\x03\xc8\x64\x32\x01\x02\x03", 9);
    parts.transparency = (const uint8_t *)"\x07";
    parts.transparency_len = 1;
    assert_pixels(png_build(&parts), 0, "\x01\x02\x03\x07\xc8\x64\x32\xff\x01\x02\x03\x07", 12);
    assert_pixels(png_build(&parts), 3, "\x01\x02\x03\xc8\x64\x32\x01\x02\x03", 9);
}

static void grey_of_few_bits_is_stretched_and_becomes_any_number_of_channels(void **state)
{
    (void)state;
    static const uint8_t rows[] = { 0, 0x1b }; /* two bits each: 0, 1, 2, 3 */
    png_parts parts = { .width = 4, .height = 1, .bit_depth = 2, .color_type = 0, .rows = rows };
    parts.row_len = sizeof rows;
    assert_pixels(png_build(&parts), 0, "\x00\x55\xaa\xff", 4);
    assert_pixels(png_build(&parts), 3, "\x00\x00\x00\x55\x55\x55\xaa\xaa\xaa\xff\xff\xff", 12);
    assert_pixels(png_build(&parts), 4, "\0\0\0\xff\x55\x55\x55\xff\xaa\xaa\xaa\xff\xff\xff\xff\xff", 16);
}

static void alpha_is_kept_where_it_is_asked_for(void **state)
{
    (void)state;
    static const uint8_t rows[] = { 0, 10, 20, 30, 40 };
    png_parts parts = { .width = 2, .height = 1, .bit_depth = 8, .color_type = 4, .rows = rows };
    parts.row_len = sizeof rows;
    assert_pixels(png_build(&parts), 0, "\x0a\x14\x1e\x28", 4);
    assert_pixels(png_build(&parts), 1, "\x0a\x1e", 2);
    assert_pixels(png_build(&parts), 4, "\x0a\x0a\x0a\x14\x1e\x1e\x1e\x28", 8);
}

static void an_interlaced_png_is_put_together(void **state)
{
    (void)state;
    /* 2 × 2: Adam7 has pixel 0 in pass 1, pixel 1 in pass 6 and row 1 in pass 7. */
    static const uint8_t rows[] = { 0, 1, 0, 2, 0, 3, 4 };
    png_parts parts = { .width = 2, .height = 2, .bit_depth = 8, .interlace = 1, .rows = rows };
    parts.rows_len = sizeof rows;
    assert_pixels(png_build(&parts), 1, "\x01\x02\x03\x04", 4);
}

static void png_comes_back_as_it_went(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 4; channels++) {
        coffer_pixels pixels = gradient(37, 19, channels), back = COFFER_PIXELS_INIT;
        coffer_image_info info = COFFER_IMAGE_INFO_INIT;
        uint8_t *bytes;
        size_t size;
        assert_int_equal(coffer_image_encode_png(&bytes, &size, &pixels, NULL), COFFER_OK);
        assert_int_equal(coffer_image_probe(&info, bytes, size, NULL), COFFER_OK);
        assert_int_equal(info.kind, COFFER_IMAGE_PNG);
        assert_int_equal(info.width, 37);
        assert_int_equal(info.height, 19);
        assert_int_equal(info.channels, channels);
        assert_int_equal(decode(&back, bytes, size, 0), COFFER_OK);
        assert_int_equal(back.channels, channels);
        assert_memory_equal(back.data, pixels.data, (size_t)37 * 19 * channels);
        coffer_free(bytes);
        coffer_free(back.data);
        free(pixels.data);
    }
}

static void jpeg_comes_back_almost_as_it_went(void **state)
{
    (void)state;
    static const uint32_t channels[] = { 1, 3 };
    for (size_t i = 0; i < 2; i++) {
        coffer_pixels pixels = gradient(67, 45, channels[i]), back = COFFER_PIXELS_INIT;
        uint8_t *bytes;
        size_t size;
        assert_int_equal(coffer_image_encode_jpeg(&bytes, &size, &pixels, 95, NULL), COFFER_OK);
        assert_int_equal(decode(&back, bytes, size, 0), COFFER_OK);
        assert_int_equal(back.width, 67);
        assert_int_equal(back.height, 45);
        assert_int_equal(back.channels, channels[i]);
        for (size_t k = 0; k < (size_t)67 * 45 * channels[i]; k++)
            assert_true(abs(back.data[k] - pixels.data[k]) <= 6);
        coffer_free(bytes);
        coffer_free(back.data);
        free(pixels.data);
    }
}

static void a_jpeg_is_decoded_at_the_smallest_scale_that_is_large_enough(void **state)
{
    (void)state;
    static const struct {
        uint32_t min_width, min_height, width, height;
    } cases[] = { { 1, 1, 21, 13 },  { 21, 13, 21, 13 },  { 22, 13, 41, 25 },   { 42, 1, 82, 50 },
                  { 0, 50, 82, 50 }, { 83, 1, 163, 100 }, { 999, 1, 163, 100 }, { 0, 0, 163, 100 } };
    coffer_pixels pixels = gradient(163, 100, 3), back = COFFER_PIXELS_INIT;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(coffer_image_encode_jpeg(&bytes, &size, &pixels, 90, NULL), COFFER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        opts.min_width = cases[i].min_width;
        opts.min_height = cases[i].min_height;
        assert_int_equal(coffer_image_decode(&back, decoder, bytes, size, &opts, NULL), COFFER_OK);
        assert_int_equal(back.width, cases[i].width);
        assert_int_equal(back.height, cases[i].height);
        assert_true(abs(back.data[0] - 40) < 8);
    }
    coffer_free(bytes);
    coffer_free(back.data);
    free(pixels.data);
}

static void a_cut_picture_is_an_error_wherever_it_is_cut(void **state)
{
    (void)state;
    coffer_pixels pixels = gradient(40, 30, 3), back = COFFER_PIXELS_INIT;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(coffer_image_encode_jpeg(&bytes, &size, &pixels, 90, NULL), COFFER_OK);
    for (size_t len = 0; len < size - 2; len++)
        assert_int_not_equal(decode(&back, bytes, len, 3), COFFER_OK);
    assert_int_equal(decode(&back, bytes, size - 20, 3), COFFER_E_TRUNCATED);
    coffer_free(bytes);
    assert_int_equal(coffer_image_encode_png(&bytes, &size, &pixels, NULL), COFFER_OK);
    for (size_t len = 0; len < size; len++)
        assert_int_not_equal(decode(&back, bytes, len, 3), COFFER_OK);
    assert_int_equal(decode(&back, bytes, size - 20, 3), COFFER_E_TRUNCATED);
    coffer_free(bytes);
    coffer_free(back.data);
    free(pixels.data);
}

static void a_flipped_bit_in_the_pixels_of_a_png_is_an_error(void **state)
{
    (void)state;
    coffer_pixels pixels = gradient(40, 30, 3), back = COFFER_PIXELS_INIT;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(coffer_image_encode_png(&bytes, &size, &pixels, NULL), COFFER_OK);
    bytes[size / 2] ^= 4;
    assert_int_equal(decode(&back, bytes, size, 3), COFFER_E_BAD_VALUE);
    coffer_free(bytes);
    coffer_free(back.data);
    free(pixels.data);
}

static void a_header_that_claims_more_than_its_bytes_could_hold_takes_no_memory(void **state)
{
    (void)state;
    static const uint8_t rows[] = { 0, 0 };
    png_parts parts = { .width = 16000, .height = 16000, .bit_depth = 8, .color_type = 0, .rows = rows };
    coffer_pixels back = COFFER_PIXELS_INIT;
    parts.rows_len = sizeof rows;
    coffer__buffer png = png_build(&parts);
    assert_int_equal(decode(&back, png.data, png.len, 3), COFFER_E_TRUNCATED);
    coffer__buffer_free(&png);
    parts.width = parts.height = 0x7fffffff;
    png = png_build(&parts);
    assert_int_equal(decode(&back, png.data, png.len, 3), COFFER_E_LIMIT);
    coffer__buffer_free(&png);
    assert_null(back.data);
}

static void limits_bound_the_pixels(void **state)
{
    (void)state;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_image_decoder *small;
    coffer_pixels pixels = gradient(100, 100, 3), back = COFFER_PIXELS_INIT;
    uint8_t *bytes;
    size_t size;
    limits.memory_bytes = 39999;
    const coffer_image_decoder_opts opts = { sizeof opts, &limits };
    assert_int_equal(coffer_image_decoder_new(&small, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_image_encode_jpeg(&bytes, &size, &pixels, 90, NULL), COFFER_OK);
    assert_int_equal(coffer_image_decode(&back, small, bytes, size, NULL, NULL), COFFER_E_LIMIT);
    coffer_free(bytes);
    coffer_image_decoder_free(small);
    coffer_free(back.data);
    free(pixels.data);
}

static void colors_for_print_are_refused_by_name(void **state)
{
    (void)state;
    /* SOI, a frame header of four components that ask for no subsampling, and a scan without data. */
    static const uint8_t cmyk[] = { 0xff, 0xd8, 0xff, 0xc0, 0, 20,   8, 0, 8,    0, 8,    4,    1,    0x11,
                                    0,    2,    0x11, 0,    3, 0x11, 0, 4, 0x11, 0, 0xff, 0xda, 0,    14,
                                    4,    1,    0,    2,    0, 3,    0, 4, 0,    0, 63,   0,    0xff, 0xd9 };
    coffer_pixels back = COFFER_PIXELS_INIT;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_image_probe(&info, cmyk, sizeof cmyk, NULL), COFFER_OK);
    assert_int_equal(info.channels, 4);
    assert_int_equal(coffer_image_decode(&back, decoder, cmyk, sizeof cmyk, NULL, &err),
                     COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "CMYK"));
}

static uint8_t *media_file(const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/media/%s", COFFER_TEST_DATA, name);
    uint8_t *bytes = temp_read(path, size);
    assert_non_null(bytes);
    return bytes;
}

/* tests/media/README.md describes the picture. */
static void assert_small(const char *name, coffer_image_kind kind, uint32_t frames)
{
    size_t size;
    uint8_t *bytes = media_file(name, &size);
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    assert_int_equal(coffer_image_probe(&info, bytes, size, NULL), COFFER_OK);
    assert_int_equal(info.kind, kind);
    assert_int_equal(info.frames, frames);
    assert_int_equal(coffer_image_verify(bytes, size, NULL), COFFER_OK);
    assert_int_equal(decode(&pixels, bytes, size, 3), COFFER_OK);
    for (size_t y = 0; y < 6; y++)
        for (size_t x = 0; x < 8; x++) {
            const uint8_t *pixel = pixels.data + (y * 8 + x) * 3;
            assert_int_equal(pixel[0], x * 30);
            assert_int_equal(pixel[1], y * 40);
            assert_int_equal(pixel[2], (x + y) * 15);
        }
    for (size_t len = 0; len < size; len++) { /* cut anywhere: an error or a picture, never more */
        coffer_error err = COFFER_ERROR_INIT;
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        uint8_t *cut = malloc(len ? len : 1);
        memcpy(cut, bytes, len);
        (void)!coffer_image_decode(&pixels, decoder, cut, len, &opts, &err);
        free(cut);
    }
    coffer_free(pixels.data);
    free(bytes);
}

static void every_kind_gives_the_same_pixels(void **state)
{
    (void)state;
    assert_small("small.png", COFFER_IMAGE_PNG, 1);
    assert_small("small.webp", COFFER_IMAGE_WEBP, 1);
    assert_small("small.gif", COFFER_IMAGE_GIF, 1);
    assert_small("animated.gif", COFFER_IMAGE_GIF, 2);
    assert_small("small.bmp", COFFER_IMAGE_BMP, 1);
    assert_small("small.tiff", COFFER_IMAGE_TIFF, 1);
    assert_small("small.ppm", COFFER_IMAGE_PNM, 1);
}

static void sixteen_bits_are_kept_on_request(void **state)
{
    (void)state;
    static const char *const names[] = { "gray16.png", "gray16.tiff" };
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        uint8_t *bytes = media_file(names[i], &size);
        coffer_pixels pixels = COFFER_PIXELS_INIT, half = COFFER_PIXELS_INIT;
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        opts.channels = opts.depth = 0;
        assert_int_equal(coffer_image_decode(&pixels, decoder, bytes, size, &opts, NULL), COFFER_OK);
        assert_int_equal(pixels.depth, 16);
        uint16_t value;
        memcpy(&value, pixels.data + 2 * (8 * 2 + 3), sizeof value);
        assert_int_equal(value, 8000 * 3 + 100 * 2);
        assert_int_equal(coffer_pixels_resize(&half, &pixels, 4, 3, NULL), COFFER_OK);
        assert_int_equal(half.depth, 16);
        memcpy(&value, half.data, sizeof value);
        assert_int_equal(value, 4050); /* the mean of 0, 8000, 100 and 8100 */
        uint8_t *png;
        size_t png_size;
        assert_int_equal(coffer_image_encode_png(&png, &png_size, &pixels, NULL), COFFER_OK);
        assert_int_equal(coffer_image_decode(&half, decoder, png, png_size, &opts, NULL), COFFER_OK);
        assert_memory_equal(half.data, pixels.data, 8 * 6 * 2);
        assert_int_equal(coffer_image_encode_jpeg(&png, &png_size, &pixels, 90, NULL),
                         COFFER_E_INVALID_ARGUMENT);
        coffer_free(png);
        coffer_free(pixels.data);
        coffer_free(half.data);
        free(bytes);
    }
}

static void an_orientation_is_applied_unless_refused(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = media_file("turned.jpg", &size);
    coffer_pixels upright = COFFER_PIXELS_INIT, stored = COFFER_PIXELS_INIT;
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    assert_int_equal(coffer_image_decode(&upright, decoder, bytes, size, &opts, NULL), COFFER_OK);
    opts.ignore_orientation = true;
    assert_int_equal(coffer_image_decode(&stored, decoder, bytes, size, &opts, NULL), COFFER_OK);
    assert_int_equal(stored.width, 64);
    assert_int_equal(upright.width, 48);
    assert_int_equal(upright.height, 64);
    /* Orientation 6: the left column, from the bottom up, is the top row. */
    for (size_t x = 0; x < 48; x++)
        assert_memory_equal(upright.data + x * 3, stored.data + (47 - x) * 64 * 3, 3);
    coffer_free(upright.data);
    coffer_free(stored.data);
    free(bytes);
}

static void a_picture_that_is_not_complete_is_told_without_decoding(void **state)
{
    (void)state;
    static const char *const names[] = { "turned.jpg", "small.png", "small.webp" };
    for (size_t i = 0; i < 3; i++) {
        size_t size;
        uint8_t *bytes = media_file(names[i], &size);
        assert_int_equal(coffer_image_verify(bytes, size, NULL), COFFER_OK);
        assert_int_equal(coffer_image_verify(bytes, size - 10, NULL), COFFER_E_TRUNCATED);
        free(bytes);
    }
    size_t size;
    uint8_t *bytes = media_file("small.png", &size);
    bytes[50] ^= 1;
    assert_int_equal(coffer_image_verify(bytes, size, NULL), COFFER_E_BAD_CHECKSUM);
    free(bytes);
}

static void other_bytes_are_not_recognized_as_a_picture(void **state)
{
    (void)state;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    assert_int_equal(coffer_image_probe(&info, "GIF88a", 6, NULL), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_image_probe(&info, "GIF89a", 6, NULL), COFFER_E_TRUNCATED);
    assert_int_equal(coffer_image_probe(&info, "", 0, NULL), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_image_probe(&info, "\xff\xd8\xff\xe0\x00\x01", 6, NULL), COFFER_E_BAD_VALUE);
    assert_int_equal(coffer_image_probe(&info, "\xff\xd8\xff\xe0\x00\x10", 6, NULL), COFFER_E_TRUNCATED);
    assert_int_equal(coffer_image_probe(&info, "\xff\xd8\xff\xd9", 4, NULL), COFFER_E_BAD_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_png_of_16_bits_becomes_one_of_8),
        cmocka_unit_test(palettes_become_colors_and_their_transparency_alpha),
        cmocka_unit_test(grey_of_few_bits_is_stretched_and_becomes_any_number_of_channels),
        cmocka_unit_test(alpha_is_kept_where_it_is_asked_for),
        cmocka_unit_test(an_interlaced_png_is_put_together),
        cmocka_unit_test(png_comes_back_as_it_went),
        cmocka_unit_test(jpeg_comes_back_almost_as_it_went),
        cmocka_unit_test(a_jpeg_is_decoded_at_the_smallest_scale_that_is_large_enough),
        cmocka_unit_test(a_cut_picture_is_an_error_wherever_it_is_cut),
        cmocka_unit_test(a_flipped_bit_in_the_pixels_of_a_png_is_an_error),
        cmocka_unit_test(a_header_that_claims_more_than_its_bytes_could_hold_takes_no_memory),
        cmocka_unit_test(limits_bound_the_pixels),
        cmocka_unit_test(colors_for_print_are_refused_by_name),
        cmocka_unit_test(other_bytes_are_not_recognized_as_a_picture),
        cmocka_unit_test(every_kind_gives_the_same_pixels),
        cmocka_unit_test(sixteen_bits_are_kept_on_request),
        cmocka_unit_test(an_orientation_is_applied_unless_refused),
        cmocka_unit_test(a_picture_that_is_not_complete_is_told_without_decoding),
    };
    return cmocka_run_group_tests(tests, make_decoder, free_decoder);
}
