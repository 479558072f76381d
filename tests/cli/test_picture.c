/* Pictures: what is drawn is what the file shows. */
#include "support/temp.h"

#include "coffer/media.h"
#include "draw/picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    *state = temp_make();
    return 0;
}

static int tear_down(void **state)
{
    temp_remove(*state);
    return 0;
}

static rgb pixel_at(const char *path, size_t x, size_t y)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_image_decoder *decoder = NULL;
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    size_t len = 0;
    uint8_t *bytes = temp_read(path, &len);
    assert_int_equal(coffer_image_decoder_new(&decoder, NULL, &err), COFFER_OK);
    assert_int_equal(coffer_image_decode(&pixels, decoder, bytes, len, NULL, &err), COFFER_OK);
    const uint8_t *pixel = pixels.data + 3 * (y * pixels.width + x);
    rgb color = { pixel[0], pixel[1], pixel[2] };
    coffer_free(pixels.data);
    coffer_image_decoder_free(decoder);
    free(bytes);
    return color;
}

static void assert_color(rgb actual, rgb expected)
{
    assert_int_equal(actual.red, expected.red);
    assert_int_equal(actual.green, expected.green);
    assert_int_equal(actual.blue, expected.blue);
}

static void cells_have_sharp_edges_and_their_own_colors(void **state)
{
    static const rgb cells[] = { { 10, 20, 30 }, { 200, 0, 0 }, { 0, 200, 0 },
                                 { 0, 0, 200 },  { 9, 9, 9 },   { 250, 250, 0 } };
    const char *path = temp_path(*state, "cells.png");
    picture *canvas = NULL;
    assert_int_equal(picture_new(&canvas, path, 100, 60, NULL), COFFER_OK);
    picture_cells(canvas, (picture_box){ 20, 10, 30, 20 }, cells, 3, 2);
    assert_int_equal(picture_save(canvas, NULL), COFFER_OK);
    assert_color(pixel_at(path, 19, 10), (rgb){ 255, 255, 255 });
    assert_color(pixel_at(path, 20, 10), cells[0]);
    assert_color(pixel_at(path, 29, 19), cells[0]);
    assert_color(pixel_at(path, 30, 19), cells[1]);
    assert_color(pixel_at(path, 49, 10), cells[2]);
    assert_color(pixel_at(path, 20, 20), cells[3]);
    assert_color(pixel_at(path, 49, 29), cells[5]);
    assert_color(pixel_at(path, 49, 30), (rgb){ 255, 255, 255 });
    temp_assert_only(*state, "cells.png", NULL);
}

static void an_svg_is_written_for_the_name_svg(void **state)
{
    const char *path = temp_path(*state, "a.svg");
    const picture_font font = { 12, false, { 0, 0, 0 } };
    picture *canvas = NULL;
    assert_int_equal(picture_new(&canvas, path, 200, 50, NULL), COFFER_OK);
    picture_text(canvas, 100, 20, PICTURE_CENTER, &font, "a < b & c");
    picture_text_upwards(canvas, 10, 25, &font, "up");
    assert_int_equal(picture_save(canvas, NULL), COFFER_OK);
    char *text = (char *)temp_read(path, NULL);
    assert_non_null(text);
    assert_ptr_equal(strstr(text, "<?xml"), text);
    assert_non_null(strstr(text, "</svg>"));
    free(text);
}

static void text_that_is_not_utf8_does_not_spoil_the_picture(void **state)
{
    const picture_font font = { 12, true, { 0, 0, 0 } };
    picture *canvas = NULL;
    assert_int_equal(picture_new(&canvas, temp_path(*state, "b.png"), 50, 50, NULL), COFFER_OK);
    picture_text(canvas, 0, 20, PICTURE_LEFT, &font, "\xff\xfe\x1b[31m\xe2\x82");
    assert_int_equal(picture_save(canvas, NULL), COFFER_OK);
}

static void text_is_cut_to_the_width_between_characters(void **state)
{
    static const char name[] = "model.läyers.12.self_attn.q_proj.wéight";
    const picture_font font = { 11, false, { 0, 0, 0 } };
    picture *canvas = NULL;
    assert_int_equal(picture_new(&canvas, temp_path(*state, "c.png"), 50, 50, NULL), COFFER_OK);
    double whole = picture_text_width(canvas, &font, name);
    for (int width = 50; width < (int)whole; width += 3) {
        char shown[64];
        picture_fit_text(shown, sizeof shown, canvas, &font, PICTURE_CUT_MIDDLE, name, width);
        assert_true(picture_text_width(canvas, &font, shown) <= width);
        assert_non_null(strstr(shown, "…"));
        picture_fit_text(shown, 16, canvas, &font, PICTURE_CUT_END, name, width);
        assert_true(strlen(shown) < 16);
    }
    char shown[64];
    picture_fit_text(shown, sizeof shown, canvas, &font, PICTURE_CUT_END, name, whole);
    assert_string_equal(shown, name);
    picture_free(canvas);
}

static void a_picture_that_cannot_be_written_says_so_and_leaves_nothing(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    picture *canvas = NULL;
    assert_int_equal(picture_new(&canvas, temp_path(*state, "no-such-folder/a.png"), 50, 50, &err),
                     COFFER_OK);
    assert_int_equal(picture_save(canvas, &err), COFFER_E_IO);
    assert_int_equal(err.system_error, ENOENT);
    assert_int_equal(err.subject, COFFER_SUBJECT_OUTPUT);
    assert_int_equal(picture_new(&canvas, "a.png", 0, 50, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(picture_new(&canvas, "a.png", 50, PICTURE_MAX_SIDE + 1, &err),
                     COFFER_E_INVALID_ARGUMENT);
    temp_assert_only(*state, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells_have_sharp_edges_and_their_own_colors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_svg_is_written_for_the_name_svg, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_that_is_not_utf8_does_not_spoil_the_picture, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_is_cut_to_the_width_between_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_picture_that_cannot_be_written_says_so_and_leaves_nothing, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
