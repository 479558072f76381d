/* Sounds decoded: WAV and FLAC, and files that are cut or lie. */
#include "coffer/media.h"

#include "base/bytes.h"
#include "support/picture_bytes.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
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

static void wav_of_another_codec_is_decoded(void **state)
{
    (void)state;
    assert_ramp(COFFER_TEST_DATA "/media/ramp-ulaw.wav", 0.02f, false);
}

/* One channel; `bits` of a sample, whose bytes are `data`. */
static coffer__buffer wav_of(uint32_t tag, uint32_t bits, const void *data, size_t len)
{
    uint8_t head[44] = "RIFF....WAVEfmt ";
    coffer__buffer wav = COFFER__BUFFER_INIT;
    coffer__store_u32(head + 4, (uint32_t)(36 + len));
    coffer__store_u32(head + 16, 16);
    coffer__store_u16(head + 20, (uint16_t)tag);
    coffer__store_u16(head + 22, 1);
    coffer__store_u32(head + 24, 8000);
    coffer__store_u32(head + 28, 8000 * (bits + 7) / 8);
    coffer__store_u16(head + 32, (uint16_t)((bits + 7) / 8));
    coffer__store_u16(head + 34, (uint16_t)bits);
    memcpy(head + 36, "data", 4);
    coffer__store_u32(head + 40, (uint32_t)len);
    coffer__buffer_append(&wav, head, sizeof head);
    coffer__buffer_append(&wav, data, len);
    return wav;
}

static void every_encoding_of_wav_has_its_numbers(void **state)
{
    (void)state;
    static const struct {
        uint32_t tag, bits;
        uint8_t data[16];
        float expected[2];
    } cases[] = {
        { 1, 8, { 0x00, 0xc0 }, { -1, 0.5F } },
        { 1, 12, { 0x00, 0x80, 0x00, 0x40 }, { -1, 0.5F } },
        { 1, 16, { 0x01, 0x00, 0x00, 0xc0 }, { 1.0F / 32768, -0.5F } },
        { 1, 24, { 0x01, 0x00, 0x00, 0x00, 0x00, 0xc0 }, { 1.0F / 8388608, -0.5F } },
        { 1, 32, { 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80 }, { 1.0F / 8388608, -1 } },
        { 3, 32, { 0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0xc0 }, { 1.5F, -2 } },
        { 3, 64, { 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0 }, { 1.5F, -2 } },
        { 6, 8, { 0xd5, 0x2a }, { 8.0F / 32768, -32256.0F / 32768 } },
        { 7, 8, { 0xff, 0x00 }, { 0, -32124.0F / 32768 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        coffer__buffer wav =
            wav_of(cases[i].tag, cases[i].bits, cases[i].data, 2 * ((cases[i].bits + 7) / 8));
        float out[2] = { 9, 9 };
        assert_int_equal(coffer_audio_decode(out, 2, wav.data, wav.len, NULL), COFFER_OK);
        assert_true(out[0] == cases[i].expected[0] && out[1] == cases[i].expected[1]);
        coffer__buffer_free(&wav);
    }
    static const uint32_t refused[][2] = { { 1, 40 }, { 3, 16 }, { 6, 16 }, { 1, 0 } };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
        coffer__buffer wav = wav_of(refused[i][0], refused[i][1], cases[0].data, 16);
        assert_int_equal(coffer_audio_probe(&info, wav.data, wav.len, NULL), COFFER_E_BAD_VALUE);
        coffer__buffer_free(&wav);
    }
}

static void block_codecs_of_wav_are_refused(void **state)
{
    static const uint8_t tags[] = { 0x02, 0x11, 0x31, 0x40 }; /* ADPCM of two kinds, GSM, G.721 */
    enum { FORMAT_AT = 20 };
    (void)state;
    size_t size;
    uint8_t *wav = temp_read(COFFER_TEST_DATA "/media/ramp-ulaw.wav", &size);
    for (size_t i = 0; i < sizeof tags; i++) {
        coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
        coffer_error err = COFFER_ERROR_INIT;
        wav[FORMAT_AT] = tags[i];
        assert_int_equal(coffer_audio_probe(&info, wav, size, &err), COFFER_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, "is not decoded"));
    }
    free(wav);
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

static void assert_kind(const char *name, coffer_audio_kind kind, uint32_t rate, uint64_t frames,
                        coffer_status decoded)
{
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/media/%s", COFFER_TEST_DATA, name);
    uint8_t *bytes = temp_read(path, &size);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    float *out = calloc((size_t)frames * 2, sizeof *out);
    assert_non_null(bytes);
    assert_int_equal(coffer_audio_probe(&info, bytes, size, NULL), COFFER_OK);
    assert_int_equal(info.kind, kind);
    assert_int_equal(info.sample_rate, rate);
    assert_int_equal(info.frames, frames);
    assert_int_equal(coffer_audio_decode(out, (size_t)frames * info.channels, bytes, size, NULL), decoded);
    for (size_t len = 0; len < size; len += 7)
        (void)!coffer_audio_probe(&info, bytes, len, NULL);
    free(out);
    free(bytes);
}

static void compressed_sounds_are_probed_and_decoded(void **state)
{
    (void)state;
    assert_kind("tone.mp3", COFFER_AUDIO_MP3, 16000, 4000, COFFER_OK);
    assert_kind("tone.ogg", COFFER_AUDIO_VORBIS, 16000, 4000, COFFER_OK);
    assert_kind("tone.opus", COFFER_AUDIO_OPUS, 16000, 4000, COFFER_OK);
    assert_kind("header.aac", COFFER_AUDIO_AAC, 16000, 5120, COFFER_E_UNSUPPORTED);
    assert_kind("header.m4a", COFFER_AUDIO_MP4, 16000, 32000, COFFER_E_UNSUPPORTED);
    assert_kind("float.wav", COFFER_AUDIO_WAV, 8000, 200, COFFER_OK);
}

static void videos_are_probed(void **state)
{
    (void)state;
    static const char *const names[] = { "header.mp4", "header.webm" };
    static const char *const codecs[] = { "avc1", "V_VP9" };
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        size_t size;
        snprintf(path, sizeof path, "%s/media/%s", COFFER_TEST_DATA, names[i]);
        uint8_t *bytes = temp_read(path, &size);
        coffer_video_info info = COFFER_VIDEO_INFO_INIT;
        assert_int_equal(coffer_video_probe(&info, bytes, size, NULL), COFFER_OK);
        assert_string_equal(info.codec, codecs[i]);
        assert_int_equal(info.width, 320);
        assert_int_equal(info.height, 240);
        for (size_t len = 0; len < size; len++)
            (void)!coffer_video_probe(&info, bytes, len, NULL);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wav_becomes_numbers_from_minus_one_to_one),
        cmocka_unit_test(flac_becomes_the_numbers_that_went_in),
        cmocka_unit_test(wav_of_another_codec_is_decoded),
        cmocka_unit_test(every_encoding_of_wav_has_its_numbers),
        cmocka_unit_test(block_codecs_of_wav_are_refused),
        cmocka_unit_test(a_cut_sound_is_an_error_wherever_it_is_cut),
        cmocka_unit_test(a_streamed_wav_is_read_to_its_end),
        cmocka_unit_test(the_room_for_samples_is_checked),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(compressed_sounds_are_probed_and_decoded),
        cmocka_unit_test(videos_are_probed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
