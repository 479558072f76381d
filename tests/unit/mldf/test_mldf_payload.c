/* Compressed and encrypted payloads: what comes out, and what must not. */
#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "support/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static const uint8_t other_key[COFFER_MLDF_KEY_SIZE] = "0123456789abcdef0123456789abcdX";

typedef struct fixture {
    dataset *made;
    uint8_t *bytes;
    size_t len;
    dataset_places places;
    coffer_source *src;
    coffer_mldf *set;
    coffer_bytes value;
    coffer_error err;
} fixture;

/* A set of two fields "a" and "b" of text with these flags; sample i of each holds many times its number. */
static void make(fixture *of, uint16_t flags, const dataset_opts *opts)
{
    *of = (fixture){ .made = dataset_new(4, opts), .value = COFFER_BYTES_INIT };
    dataset_field(of->made, "a", COFFER_MLDF_TEXT, flags);
    dataset_field(of->made, "b", COFFER_MLDF_TEXT, flags);
    for (uint64_t i = 0; i < 4; i++) {
        char text[1000];
        memset(text, '0' + (int)i, sizeof text);
        dataset_bytes(of->made, i, 0, text, sizeof text, NULL);
        dataset_bytes(of->made, i, 1, text, sizeof text / 2, NULL);
    }
    of->bytes = dataset_make(&of->len, &of->places, of->made);
}

static void open_with(fixture *of, const uint8_t *with_key, const coffer_limits *limits)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    opts.key = with_key;
    opts.limits = limits;
    of->src = dataset_source_of(of->bytes, of->len);
    assert_int_equal(coffer_mldf_open(&of->set, of->src, &opts, &of->err), COFFER_OK);
}

static void close_set(fixture *of)
{
    coffer_mldf_close(of->set);
    coffer_source_close(of->src);
    of->set = NULL;
    of->src = NULL;
}

static void end(fixture *of)
{
    close_set(of);
    coffer_free(of->value.data);
    free(of->bytes);
    dataset_free(of->made);
}

static coffer_status read_value(fixture *of, uint64_t sample, size_t field)
{
    return coffer_mldf_read(&of->value, NULL, of->set, sample, field, &of->err);
}

static void assert_reads(fixture *of)
{
    for (uint64_t i = 0; i < 4; i++) {
        for (size_t f = 0; f < 2; f++) {
            if (read_value(of, i, f) != COFFER_OK)
                fail_msg("%s", of->err.text);
            assert_int_equal(of->value.size, f == 0 ? 1000 : 500);
            for (size_t k = 0; k < of->value.size; k++)
                assert_int_equal(of->value.data[k], '0' + i);
        }
    }
}

static void assert_not_authentic(fixture *of, uint64_t sample, size_t field)
{
    char words[80];
    snprintf(words, sizeof words, "authentication failed for sample %llu, field %s",
             (unsigned long long)sample, field == 0 ? "a" : "b");
    assert_int_equal(read_value(of, sample, field), COFFER_E_AUTHENTICATION_FAILED);
    assert_memory_equal(of->err.text, words, strlen(words));
}

static void compressed_and_encrypted_values_are_read(void **state)
{
    (void)state;
    for (uint16_t flags = 0; flags < 4; flags++) {
        for (unsigned unsized = 0; unsized < 2; unsized++) {
            dataset_opts opts = { .key = key, .unsized = unsized, .checksummed = true };
            fixture of;
            make(&of, flags, &opts);
            open_with(&of, key, NULL);
            assert_reads(&of);
            end(&of);
        }
    }
}

static void an_encrypted_value_without_a_key_says_so(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    open_with(&of, NULL, NULL);
    assert_int_equal(read_value(&of, 1, 0), COFFER_E_KEY_NEEDED);
    assert_non_null(strstr(of.err.text, "sample 1, field a: encrypted, and no key was given"));
    end(&of);
}

static void a_wrong_key_authenticates_nothing(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    open_with(&of, other_key, NULL);
    for (uint64_t i = 0; i < 4; i++)
        assert_not_authentic(&of, i, 1);
    end(&of);
}

static void any_changed_byte_is_noticed(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_ZSTD, &opts);
    open_with(&of, key, NULL);
    uint8_t *entry = of.bytes + dataset_entry_at(of.made, &of.places, 2, 0);
    uint64_t place = coffer__load_u64(entry);
    uint32_t size = coffer__load_u32(entry + 8);
    for (uint32_t i = 0; i < size; i++) {
        of.bytes[place + i] ^= 0x10;
        assert_not_authentic(&of, 2, 0);
        of.bytes[place + i] ^= 0x10;
    }
    for (uint32_t shorter = 0; shorter < 50; shorter++) {
        coffer__store_u32(entry + 8, shorter);
        assert_not_authentic(&of, 2, 0);
    }
    end(&of);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len)
{
    uint8_t kept[24];
    memcpy(kept, a, len);
    memcpy(a, b, len);
    memcpy(b, kept, len);
}

static void payloads_that_changed_places_are_noticed(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    open_with(&of, key, NULL);
    uint8_t *first = of.bytes + dataset_entry_at(of.made, &of.places, 0, 0);
    uint8_t *second = of.bytes + dataset_entry_at(of.made, &of.places, 1, 0);
    uint8_t *field = of.bytes + dataset_entry_at(of.made, &of.places, 0, 1);
    swap_bytes(first, second, 16);
    assert_not_authentic(&of, 0, 0);
    assert_not_authentic(&of, 1, 0);
    swap_bytes(first, second, 16);
    swap_bytes(first, field, 16);
    assert_not_authentic(&of, 0, 0);
    assert_not_authentic(&of, 0, 1);
    end(&of);
}

static uint8_t *flags_of(const fixture *of, size_t field)
{
    return of->bytes + of->places.descriptors + field * of->places.stride + COFFER__MLDF_FIELD_FLAGS_AT;
}

static void a_flag_that_was_taken_away_does_not_turn_ciphertext_into_a_value(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    uint8_t *file_flags;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    file_flags = of.bytes + COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT;
    *flags_of(&of, 0) = 0; /* of one field */
    open_with(&of, key, NULL);
    assert_not_authentic(&of, 0, 0);
    assert_int_equal(read_value(&of, 0, 1), COFFER_OK);
    close_set(&of);
    *flags_of(&of, 1) = 0; /* of all fields */
    open_with(&of, NULL, NULL);
    assert_not_authentic(&of, 0, 0);
    assert_not_authentic(&of, 0, 1);
    close_set(&of);
    *file_flags &= (uint8_t)~COFFER_MLDF_ENCRYPTED; /* and of the file */
    open_with(&of, key, NULL);
    assert_not_authentic(&of, 0, 0);
    close_set(&of);
    *flags_of(&of, 0) = *flags_of(&of, 1) = COFFER_MLDF_FIELD_ENCRYPTED; /* of the file alone */
    open_with(&of, key, NULL);
    assert_not_authentic(&of, 3, 1);
    end(&of);
}

static void a_dictionary_is_used_and_looked_for_within_the_data(void **state)
{
    static const char words[] = "training sets, and words that many samples have in common";
    fixture of = { .made = dataset_new(2, NULL), .value = COFFER_BYTES_INIT };
    (void)state;
    dataset_field(of.made, "t", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ZSTD);
    dataset_dictionary(of.made, 0, words, sizeof words - 1);
    dataset_bytes(of.made, 0, 0, words, 30, NULL);
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    dataset_assert_clean(of.bytes, of.len);
    open_with(&of, NULL, NULL);
    assert_int_equal(coffer_mldf_field_at(of.set, 0)->dictionary_size, sizeof words - 1);
    assert_int_equal(read_value(&of, 0, 0), COFFER_OK);
    assert_int_equal(of.value.size, 30);
    assert_memory_equal(of.value.data, words, 30);
    close_set(&of);
    coffer__store_u64(of.bytes + of.places.descriptors + COFFER__MLDF_ARGUMENTS_AT +
                          COFFER__MLDF_DICTIONARY_AT,
                      UINT64_MAX - 5);
    open_with(&of, NULL, NULL);
    assert_int_equal(read_value(&of, 0, 0), COFFER_E_OUT_OF_BOUNDS);
    coffer_report *report = dataset_check(of.src, true);
    assert_true(dataset_has(report, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR));
    coffer_report_free(report);
    end(&of);
}

/* A payload of a plain field made to look like a compressed one. */
static void make_frame(fixture *of, const void *frame, size_t len)
{
    *of = (fixture){ .made = dataset_new(1, NULL), .value = COFFER_BYTES_INIT };
    dataset_field(of->made, "z", COFFER_MLDF_BYTES, 0);
    dataset_bytes(of->made, 0, 0, frame, len, NULL);
    of->bytes = dataset_make(&of->len, &of->places, of->made);
    *flags_of(of, 0) = COFFER_MLDF_FIELD_ZSTD;
}

static size_t compress_zeros(uint8_t *out, size_t room, size_t zeros, bool sized)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    uint8_t *bytes = calloc(1, zeros);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, sized);
    size_t len = ZSTD_compress2(context, out, room, bytes, zeros);
    assert_false(ZSTD_isError(len));
    ZSTD_freeCCtx(context);
    free(bytes);
    return len;
}

static void bombs_end_at_the_limit(void **state)
{
    static uint8_t frame[1 << 16];
    coffer_limits limits = COFFER_LIMITS_INIT;
    (void)state;
    limits.memory_bytes = 1 << 20;
    for (unsigned sized = 0; sized < 2; sized++) {
        size_t len = compress_zeros(frame, sizeof frame, 64 << 20, sized);
        fixture of;
        make_frame(&of, frame, len);
        open_with(&of, NULL, &limits);
        assert_int_equal(read_value(&of, 0, 0), COFFER_E_LIMIT);
        assert_non_null(strstr(of.err.text, "the limit is 1048576"));
        assert_true(of.value.capacity <= (1 << 20) + 1);
        end(&of);
    }
}

static void frames_up_to_the_limit_are_read(void **state)
{
    static uint8_t frame[1 << 16];
    coffer_limits limits = COFFER_LIMITS_INIT;
    (void)state;
    limits.memory_bytes = 1 << 20;
    for (unsigned sized = 0; sized < 2; sized++) {
        size_t len = compress_zeros(frame, sizeof frame, 1 << 20, sized);
        fixture of;
        make_frame(&of, frame, len);
        open_with(&of, NULL, &limits);
        assert_int_equal(read_value(&of, 0, 0), COFFER_OK);
        assert_int_equal(of.value.size, 1 << 20);
        end(&of);
    }
}

static void frames_that_are_none_are_errors_that_name_the_sample(void **state)
{
    uint8_t frame[200];
    (void)state;
    for (unsigned sized = 0; sized < 2; sized++) {
        size_t len = compress_zeros(frame, sizeof frame, 5000, sized);
        for (size_t cut = 0; cut <= len + 1; cut++) {
            fixture of;
            if (cut == 0 || cut == len)
                continue;
            frame[len] = 0; /* one byte after the end */
            make_frame(&of, frame, cut);
            open_with(&of, NULL, NULL);
            assert_int_not_equal(read_value(&of, 0, 0), COFFER_OK);
            assert_memory_equal(of.err.text, "sample 0, field z: ", 19);
            end(&of);
        }
    }
    size_t len = compress_zeros(frame, sizeof frame, 5000, true);
    fixture of;
    make_frame(&of, frame, len - 1);
    open_with(&of, NULL, NULL);
    assert_int_equal(read_value(&of, 0, 0), COFFER_E_TRUNCATED);
    end(&of);
    memcpy(frame + len, "\x50\x2a\x4d\x18\0\0\0\0", 8); /* a frame to be skipped */
    make_frame(&of, frame, len + 8);
    open_with(&of, NULL, NULL);
    assert_int_equal(read_value(&of, 0, 0), COFFER_E_TRAILING_BYTES);
    end(&of);
    make_frame(&of, "no frame at all", 15);
    open_with(&of, NULL, NULL);
    assert_int_equal(read_value(&of, 0, 0), COFFER_E_BAD_VALUE);
    end(&of);
}

static void stored_bytes_are_given_as_they_are(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of;
    (void)state;
    make(&of, COFFER_MLDF_FIELD_ENCRYPTED, &opts);
    open_with(&of, NULL, NULL);
    assert_int_equal(coffer_mldf_read_stored(&of.value, of.set, 3, 0, NULL), COFFER_OK);
    assert_int_equal(of.value.size, 1000 + 40);
    uint64_t place = coffer__load_u64(of.bytes + dataset_entry_at(of.made, &of.places, 3, 0));
    assert_memory_equal(of.value.data, of.bytes + place, 1040);
    end(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_and_encrypted_values_are_read),
        cmocka_unit_test(an_encrypted_value_without_a_key_says_so),
        cmocka_unit_test(a_wrong_key_authenticates_nothing),
        cmocka_unit_test(any_changed_byte_is_noticed),
        cmocka_unit_test(payloads_that_changed_places_are_noticed),
        cmocka_unit_test(a_flag_that_was_taken_away_does_not_turn_ciphertext_into_a_value),
        cmocka_unit_test(a_dictionary_is_used_and_looked_for_within_the_data),
        cmocka_unit_test(bombs_end_at_the_limit),
        cmocka_unit_test(frames_up_to_the_limit_are_read),
        cmocka_unit_test(frames_that_are_none_are_errors_that_name_the_sample),
        cmocka_unit_test(stored_bytes_are_given_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
