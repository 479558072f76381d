/* Pictures of another size, held against the definition. */
#include "coffer/media.h"
#include "media/image_resize.h"

#include "base/cpu.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static coffer_pixels noise(uint32_t width, uint32_t height, uint32_t channels)
{
    coffer_pixels pixels = {
        sizeof(coffer_pixels), malloc((size_t)width * height * channels), width, height, channels, 0, 8
    };
    uint32_t state = width * 31 + height;
    for (size_t i = 0; i < (size_t)width * height * channels; i++) {
        state = state * 1664525 + 1013904223;
        pixels.data[i] = (uint8_t)(state >> 24);
    }
    return pixels;
}

static double value_at(const coffer_pixels *in, size_t x, size_t y, size_t c)
{
    return in->data[(y * in->width + x) * in->channels + c];
}

/* How much of input pixel k belongs to output pixel i. */
static double weight_of(size_t i, size_t k, double in, double out)
{
    if (out <= in) {
        double begin = fmax((double)i * in / out, (double)k);
        double end = fmin((double)(i + 1) * in / out, (double)(k + 1));
        return end > begin ? (end - begin) * out / in : 0;
    }
    double center = fmin(fmax(((double)i + 0.5) * in / out - 0.5, 0), in - 1);
    return fmax(0, 1 - fabs(center - (double)k));
}

static double expected_at(const coffer_pixels *in, const coffer_pixels *out, size_t x, size_t y, size_t c)
{
    double sum = 0;
    for (size_t v = 0; v < in->height; v++) {
        double down = weight_of(y, v, in->height, out->height);
        for (size_t u = 0; down > 0 && u < in->width; u++)
            sum += down * weight_of(x, u, in->width, out->width) * value_at(in, u, v, c);
    }
    return sum;
}

static void every_size_is_what_the_definition_says(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height, new_width, new_height;
    } cases[] = { { 1, 1, 1, 1 },   { 1, 1, 5, 3 },     { 7, 5, 7, 5 },   { 7, 5, 3, 2 },
                  { 13, 17, 5, 1 }, { 9, 4, 1, 4 },     { 5, 3, 11, 7 },  { 31, 29, 7, 40 },
                  { 8, 40, 33, 9 }, { 64, 48, 24, 24 }, { 61, 3, 60, 2 }, { 100, 3, 33, 99 } };
    coffer_pixels out = COFFER_PIXELS_INIT;
    for (size_t i = 0; i < 4 * (sizeof cases / sizeof *cases); i++) {
        uint32_t channels = (uint32_t)(i % 4) + 1;
        coffer_pixels in = noise(cases[i / 4].width, cases[i / 4].height, channels);
        assert_int_equal(coffer_pixels_resize(&out, &in, cases[i / 4].new_width, cases[i / 4].new_height,
                                              NULL),
                         COFFER_OK);
        assert_int_equal(out.channels, channels);
        for (size_t k = 0; k < (size_t)out.width * out.height * channels; k++) {
            size_t pixel = k / channels;
            double exact = expected_at(&in, &out, pixel % out.width, pixel / out.width, k % channels);
            assert_true(fabs(exact - out.data[k]) <= 0.5 + 1e-3);
        }
        free(in.data);
    }
    coffer_free(out.data);
}

static void one_color_stays_that_color(void **state)
{
    (void)state;
    coffer_pixels in = noise(97, 53, 3), out = COFFER_PIXELS_INIT;
    memset(in.data, 255, (size_t)97 * 53 * 3);
    static const uint32_t sides[] = { 1, 2, 31, 52, 97, 98, 211 };
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        assert_int_equal(coffer_pixels_resize(&out, &in, sides[i], sides[6 - i], NULL), COFFER_OK);
        for (size_t k = 0; k < (size_t)out.width * out.height * 3; k++)
            assert_int_equal(out.data[k], 255);
    }
    coffer_free(out.data);
    free(in.data);
}

static void every_instruction_set_gives_the_same_bytes(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (coffer__cpu_best() == COFFER__CPU_GENERIC)
        skip();
    static const float weights[] = { 0.3f, 0.123f, 0.25f, 0.2f, 0.127f };
    coffer_pixels in = noise(123, 9, 1);
    for (uint32_t count = 1; count <= 5; count++) {
        coffer__taps taps = { 1, count, weights };
        float a[128] = { 0 }, b[128] = { 0 };
        uint8_t x[30] = { 0 }, y[30] = { 0 };
        coffer__taps across[10];
        coffer__resize_generic.rows(a, in.data, 123, &taps);
        coffer__resize_avx2.rows(b, in.data, 123, &taps);
        assert_memory_equal(a, b, sizeof a);
        for (uint32_t i = 0; i < 10; i++)
            across[i] = (coffer__taps){ 3 * i, count, weights };
        coffer__resize_generic.columns(x, a, across, 10, 3);
        coffer__resize_avx2.columns(y, a, across, 10, 3);
        assert_memory_equal(x, y, sizeof x);
    }
    free(in.data);
#endif
}

static void sizes_of_nothing_are_refused(void **state)
{
    (void)state;
    coffer_pixels in = noise(4, 4, 3), out = COFFER_PIXELS_INIT;
    assert_int_equal(coffer_pixels_resize(&out, &in, 0, 4, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pixels_resize(&in, &in, 4, 4, NULL), COFFER_E_INVALID_ARGUMENT);
    in.channels = 5;
    assert_int_equal(coffer_pixels_resize(&out, &in, 4, 4, NULL), COFFER_E_INVALID_ARGUMENT);
    free(in.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_what_the_definition_says),
        cmocka_unit_test(one_color_stays_that_color),
        cmocka_unit_test(every_instruction_set_gives_the_same_bytes),
        cmocka_unit_test(sizes_of_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
