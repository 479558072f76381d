/* Sounds decoded: WAV and FLAC, and files that are cut or lie. */
#include "coffer/media.h"

#include "base/bytes.h"
#include "support/picture_bytes.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int16_t samples[] = { 0, 16384, -16384, 32767, -32768, 1 };

static void wav_becomes_numbers_from_minus_one_to_one(void **state)
{
    (void)state;
    coffer__buffer wav = wav_build(16000, 2, samples, 6);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    float out[6];
    assert_int_equal(coffer_audio_probe(&info, wav.data, wav.len, NULL), COFFER_OK);
    assert_int_equal(info.frames, 3);
    assert_int_equal(info.channels, 2);
    assert_int_equal(info.sample_rate, 16000);
    assert_int_equal(info.bit_depth, 16);
    assert_false(info.flac);
    assert_int_equal(coffer_audio_decode(out, 6, wav.data, wav.len, NULL), COFFER_OK);
    for (size_t i = 0; i < 6; i++)
        assert_true(fabsf(out[i] - (float)samples[i] / 32768.0f) < 1e-6f);
    coffer__buffer_free(&wav);
}

static void assert_ramp(const char *path, float tolerance, bool flac)
{
    size_t size;
    uint8_t *bytes = temp_read(path, &size);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    float out[400];
    assert_non_null(bytes);
    assert_int_equal(coffer_audio_probe(&info, bytes, size, NULL), COFFER_OK);
    assert_int_equal(info.frames, 200);
    assert_int_equal(info.channels, 2);
    assert_int_equal(info.sample_rate, 8000);
    assert_int_equal(info.flac, flac);
    assert_int_equal(coffer_audio_decode(out, 400, bytes, size, NULL), COFFER_OK);
    for (int k = 0; k < 200; k++) {
        assert_true(fabsf(out[2 * k] - (float)(k * 100 - 10000) / 32768.0f) <= tolerance);
        assert_true(fabsf(out[2 * k + 1] - (float)(k % 7 * 1000) / 32768.0f) <= tolerance);
    }
    free(bytes);
}

static void flac_becomes_the_numbers_that_went_in(void **state)
{
    (void)state;
    assert_ramp(COFFER_TEST_DATA "/media/ramp.flac", 1e-6f, true);
}

static void wav_of_another_codec_is_counted_by_the_library(void **state)
{
    (void)state;
    assert_ramp(COFFER_TEST_DATA "/media/ramp-ulaw.wav", 0.02f, false);
}

static void a_cut_sound_is_an_error_wherever_it_is_cut(void **state)
{
    (void)state;
    coffer__buffer wav = wav_build(16000, 2, samples, 6);
    size_t size;
    uint8_t *flac = temp_read(COFFER_TEST_DATA "/media/ramp.flac", &size);
    float out[400];
    for (size_t len = 0; len < wav.len; len++)
        assert_int_not_equal(coffer_audio_decode(out, 6, wav.data, len, NULL), COFFER_OK);
    assert_int_equal(coffer_audio_decode(out, 6, wav.data, wav.len - 1, NULL), COFFER_E_TRUNCATED);
    for (size_t len = 0; len < size; len++)
        assert_int_not_equal(coffer_audio_decode(out, 400, flac, len, NULL), COFFER_OK);
    free(flac);
    coffer__buffer_free(&wav);
}

static void a_streamed_wav_is_read_to_its_end(void **state)
{
    (void)state;
    coffer__buffer wav = wav_build(16000, 1, samples, 6);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer__store_u32(wav.data + 4, UINT32_MAX);
    coffer__store_u32(wav.data + 40, UINT32_MAX);
    assert_int_equal(coffer_audio_probe(&info, wav.data, wav.len, NULL), COFFER_OK);
    assert_int_equal(info.frames, 6);
    coffer__buffer_free(&wav);
}

static void the_room_for_samples_is_checked(void **state)
{
    (void)state;
    coffer__buffer wav = wav_build(16000, 1, samples, 6);
    float out[6];
    assert_int_equal(coffer_audio_decode(out, 5, wav.data, wav.len, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer__buffer_free(&wav);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint16_t value;
    } cases[] = { { 22, 0 }, { 22, 2 }, { 34, 0 }, { 34, 24 }, { 32, 0 }, { 16, 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer__buffer wav = wav_build(16000, 1, samples, 6);
        coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
        coffer_error err = COFFER_ERROR_INIT;
        coffer__store_u16(wav.data + cases[i].at, cases[i].value);
        assert_int_not_equal(coffer_audio_probe(&info, wav.data, wav.len, &err), COFFER_OK);
        assert_true(err.text[0] != 0);
        coffer__buffer_free(&wav);
    }
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    assert_int_equal(coffer_audio_probe(&info, "OggS", 4, NULL), COFFER_E_NOT_RECOGNISED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wav_becomes_numbers_from_minus_one_to_one),
        cmocka_unit_test(flac_becomes_the_numbers_that_went_in),
        cmocka_unit_test(wav_of_another_codec_is_counted_by_the_library),
        cmocka_unit_test(a_cut_sound_is_an_error_wherever_it_is_cut),
        cmocka_unit_test(a_streamed_wav_is_read_to_its_end),
        cmocka_unit_test(the_room_for_samples_is_checked),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
