/* Each rule of the format broken once, and the samples that damage costs. */
#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 30 };

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "check";

typedef struct fixture {
    dataset *made;
    uint8_t *bytes;
    size_t len;
    dataset_places places;
} fixture;

static fixture small(bool checksummed)
{
    dataset_opts opts = { .checksummed = checksummed };
    fixture of = { .made = dataset_small(SAMPLES, &opts) };
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    return of;
}

static void end(fixture *of)
{
    free(of->bytes);
    dataset_free(of->made);
}

/* Checks, and looks for the finding; text : that it has to hold. */
static void assert_found(const fixture *of, bool full, coffer_status code, coffer_severity severity,
                         const char *text)
{
    coffer_source *src = dataset_source_of(of->bytes, of->len);
    coffer_report *report = dataset_check(src, full);
    if (!dataset_has(report, code, severity) || !strstr(dataset_text(report, code), text)) {
        for (size_t i = 0; i < coffer_report_count(report); i++)
            print_error("%s: %s\n", coffer_status_name(coffer_report_at(report, i)->code),
                        coffer_report_at(report, i)->text);
        fail_msg("no %s with \"%s\"", coffer_status_name(code), text);
    }
    if (severity != COFFER_ERROR)
        assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    coffer_source_close(src);
}

static uint8_t *header_of(const fixture *of, size_t at)
{
    return of->bytes + COFFER__MLDF_HEADER_AT + at;
}

static uint8_t *entry_of(const fixture *of, uint64_t sample, size_t field)
{
    return of->bytes + dataset_entry_at(of->made, &of->places, sample, field);
}

static void whole_sets_are_clean_in_every_layout(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        dataset_opts opts = { .stride = i & 1 ? 204 : 208,
                              .rows_last = i & 2,
                              .checksummed = i & 4,
                              .key = i & 8 ? key : NULL,
                              .unsized = i & 16 };
        dataset *made = dataset_small(SAMPLES, &opts);
        size_t len;
        uint8_t *bytes = dataset_make(&len, NULL, made);
        dataset_assert_clean(bytes, len);
        free(bytes);
        dataset_free(made);
    }
}

static void odd_headers_are_warnings(void **state)
{
    fixture of = small(false);
    (void)state;
    coffer__store_u16(header_of(&of, COFFER__MLDF_MINOR_AT), 3);
    assert_found(&of, false, COFFER_E_UNSUPPORTED_VERSION, COFFER_WARNING, "1.3 is newer");
    coffer__store_u32(header_of(&of, COFFER__MLDF_FLAGS_AT), 0x43);
    assert_found(&of, false, COFFER_E_BAD_VALUE, COFFER_WARNING, "0x40");
    coffer__store_u32(header_of(&of, COFFER__MLDF_FLAGS_AT), 3);
    coffer__store_u16(header_of(&of, COFFER__MLDF_FIELDS_AT + 2), 5);
    assert_found(&of, false, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "padding of the header is 5");
    coffer__store_u16(header_of(&of, COFFER__MLDF_FIELDS_AT + 2), 0);
    coffer__store_u32(header_of(&of, COFFER__MLDF_DATA_CRC_AT), 9);
    assert_found(&of, false, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "checksums");
    coffer__store_u32(header_of(&of, COFFER__MLDF_PAGE_SIZE_AT), 0);
    assert_found(&of, false, COFFER_E_BAD_VALUE, COFFER_WARNING, "page size 0");
    coffer__store_u32(header_of(&of, COFFER__MLDF_PAGE_SIZE_AT), 16384);
    assert_found(&of, false, COFFER_E_MISALIGNED, COFFER_WARNING, "no multiple of the page size");
    end(&of);
}

static void flags_of_the_file_and_of_its_fields_belong_together(void **state)
{
    fixture of = small(false);
    (void)state;
    coffer__store_u32(header_of(&of, COFFER__MLDF_FLAGS_AT), 1);
    assert_found(&of, false, COFFER_E_INCONSISTENT, COFFER_WARNING, "a field says that it is compressed");
    coffer__store_u32(header_of(&of, COFFER__MLDF_FLAGS_AT), 3 | COFFER_MLDF_ENCRYPTED);
    assert_found(&of, false, COFFER_E_INCONSISTENT, COFFER_ERROR, "the file says that it is encrypted");
    end(&of);
}

static void unused_bytes_of_a_descriptor_should_be_zero(void **state)
{
    static const size_t places[] = { 20, 72, COFFER__MLDF_ARGUMENTS_AT + 3, COFFER__MLDF_ARGUMENTS_AT + 126,
                                     205 };
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        fixture of = small(false);
        of.bytes[of.places.descriptors + of.places.stride + places[i]] = 1;
        assert_found(&of, false, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "field label: bytes");
        end(&of);
    }
}

static void parts_that_overlap_are_errors(void **state)
{
    fixture of = small(false);
    (void)state;
    coffer__store_u64(header_of(&of, COFFER__MLDF_METADATA_AT), of.places.table - 1000);
    assert_found(&of, false, COFFER_E_OVERLAP, COFFER_ERROR, "the allocation table");
    coffer__store_u64(header_of(&of, COFFER__MLDF_METADATA_AT), of.places.data);
    assert_found(&of, false, COFFER_E_OVERLAP, COFFER_ERROR, "overlaps the rows");
    coffer__store_u64(header_of(&of, COFFER__MLDF_METADATA_AT), 10);
    assert_found(&of, false, COFFER_E_OVERLAP, COFFER_ERROR, "the header");
    coffer__store_u64(header_of(&of, COFFER__MLDF_METADATA_AT), of.places.rows);
    coffer__store_u64(header_of(&of, COFFER__MLDF_DATA_AT), 0);
    assert_found(&of, false, COFFER_E_OVERLAP, COFFER_ERROR, "the data region begins at 0");
    end(&of);
}

static void every_mistake_of_the_table_has_its_code(void **state)
{
    fixture of = small(false);
    uint8_t *table = of.bytes + of.places.table, kept[48];
    (void)state;
    memcpy(kept, table, 48);
    coffer__store_u64(table + 16, of.len);
    assert_found(&of, false, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, "allocation 1, ");
    coffer__store_u64(table + 16, 80);
    assert_found(&of, false, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, "outside of the data region");
    memcpy(table, kept + 16, 16);
    memcpy(table + 16, kept, 16);
    assert_found(&of, false, COFFER_E_NOT_SORTED, COFFER_ERROR, "allocation 1 begins before");
    memcpy(table, kept, 48);
    coffer__store_u32(table + 8, 19);
    assert_found(&of, false, COFFER_E_OVERLAP, COFFER_ERROR, "allocation 1 overlaps");
    memcpy(table, kept, 48);
    coffer__store_u32(table + 12, 1);
    assert_found(&of, false, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "allocation 0 has a checksum");
    end(&of);
}

static void rows_point_into_the_table_or_nowhere(void **state)
{
    fixture of = small(false);
    uint8_t *entry = entry_of(&of, 7, SMALL_IMAGE), kept[24];
    (void)state;
    memcpy(kept, entry, 24);
    coffer__store_u32(entry + 8, 17);
    assert_found(&of, false, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, "sample 7, field image: 17 bytes at");
    coffer__store_u64(entry, UINT64_MAX);
    assert_found(&of, false, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, "sample 7, field image");
    memset(entry, 0, 12);
    coffer__store_u32(entry + 8, 18);
    assert_found(&of, false, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, "18 bytes at 0");
    coffer__store_u64(entry, of.places.data + 1);
    coffer__store_u32(entry + 8, 0);
    assert_found(&of, false, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, "0 bytes at");
    memcpy(entry, kept, 24);
    entry[20] = 1;
    assert_found(&of, false, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "padding is not 0: 1");
    end(&of);
}

static void a_truncated_file_is_reported(void **state)
{
    fixture of = small(true);
    (void)state;
    of.len = (size_t)of.places.table - 10;
    assert_found(&of, false, COFFER_E_TRUNCATED, COFFER_ERROR, "before its allocation table");
    assert_found(&of, false, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, "it may have been cut");
    end(&of);
}

static void changed_bytes_are_found_and_the_samples_named(void **state)
{
    fixture of = small(true);
    (void)state;
    of.bytes[coffer__load_u64(entry_of(&of, 9, SMALL_IMAGE))] ^= 1;
    assert_found(&of, false, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, "payloads with a wrong one: 1");
    coffer_source *src = dataset_source_of(of.bytes, of.len);
    coffer_report *report = dataset_check(src, true);
    assert_int_equal(coffer_report_count(report), 2);
    assert_memory_equal(coffer_report_at(report, 1)->text, "sample 9, field image: the CRC-32", 33);
    coffer_report_free(report);
    coffer_source_close(src);
    entry_of(&of, 3, SMALL_LABEL)[0] ^= 1;
    assert_found(&of, false, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, "CRC-32");
    end(&of);
}

/* ---- Contents ---- */

static void assert_content(uint16_t type, const coffer_mldf_entry *entry, const void *bytes, size_t len,
                           coffer_status code)
{
    fixture of = { .made = dataset_new(3, NULL) };
    dataset_field(of.made, "f", type, 0);
    dataset_bytes(of.made, 2, 0, bytes, len, entry);
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    if (code == COFFER_OK)
        dataset_assert_clean(of.bytes, of.len);
    else
        assert_found(&of, true, code, code == COFFER_E_INCONSISTENT ? COFFER_WARNING : COFFER_ERROR,
                     "sample 2, field f: ");
    end(&of);
}

static void texts_must_be_what_their_encoding_says(void **state)
{
    coffer_mldf_entry ids = { .struct_size = sizeof(coffer_mldf_entry), .encoding = 1, .num_tokens = 2 },
                      many = { .struct_size = sizeof(coffer_mldf_entry), .encoding = 2, .num_tokens = 65535 };
    coffer_mldf_entry unknown = { .struct_size = sizeof(coffer_mldf_entry), .encoding = 3 };
    (void)state;
    assert_content(COFFER_MLDF_TEXT, NULL, "plain", 5, COFFER_OK);
    assert_content(COFFER_MLDF_TEXT, NULL, "\xc3(", 2, COFFER_E_BAD_TEXT);
    assert_content(COFFER_MLDF_TEXT_TOKENISED, &ids, "12345678", 8, COFFER_OK);
    assert_content(COFFER_MLDF_TEXT_TOKENISED, &ids, "1234567", 7, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_TEXT_TOKENISED, &ids, "1234", 4, COFFER_E_INCONSISTENT);
    assert_content(COFFER_MLDF_TEXT_TOKENISED, &many, "123456", 6, COFFER_OK);
    assert_content(COFFER_MLDF_TEXT, &unknown, "x", 1, COFFER_E_BAD_VALUE);
    assert_content(COFFER_MLDF_JSON, NULL, "{\"a\": [1, 2]}", 13, COFFER_OK);
    assert_content(COFFER_MLDF_JSON, NULL, "{\"a\": ", 6, COFFER_E_BAD_JSON);
}

static void pictures_and_sounds_must_be_what_their_rows_say(void **state)
{
    coffer_mldf_entry raw = { .struct_size = sizeof(coffer_mldf_entry),
                              .height = 2,
                              .width = 2,
                              .channels = 1 },
                      jpeg = { .struct_size = sizeof(coffer_mldf_entry), .mode = 1 },
                      png = { .struct_size = sizeof(coffer_mldf_entry), .mode = 2 };
    coffer_mldf_entry mode = { .struct_size = sizeof(coffer_mldf_entry), .mode = 3 }, pcm = {
        .struct_size = sizeof(coffer_mldf_entry), .num_samples = 2, .channels = 2, .bit_depth = 16
    };
    coffer_mldf_entry flac = { .struct_size = sizeof(coffer_mldf_entry), .codec = 1 },
                      codec = { .struct_size = sizeof(coffer_mldf_entry), .codec = 7 };
    (void)state;
    assert_content(COFFER_MLDF_IMAGE_RAW, &raw, "1234", 4, COFFER_OK);
    assert_content(COFFER_MLDF_IMAGE_RAW, &raw, "12345", 5, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_IMAGE_JPEG, &jpeg, "\xff\xd8\xff\xe0", 4, COFFER_OK);
    assert_content(COFFER_MLDF_IMAGE_JPEG, &jpeg, "GIF89a", 6, COFFER_E_BAD_VALUE);
    assert_content(COFFER_MLDF_IMAGE_PNG, &png, "\x89PNG\r\n\x1a\n", 8, COFFER_OK);
    assert_content(COFFER_MLDF_IMAGE_PNG, &png, "\x89PNG\n\x1a\n", 7, COFFER_E_BAD_VALUE);
    assert_content(COFFER_MLDF_IMAGE_PNG, &mode, "1", 1, COFFER_E_BAD_VALUE);
    assert_content(COFFER_MLDF_AUDIO, &pcm, "12345678", 8, COFFER_OK);
    assert_content(COFFER_MLDF_AUDIO, &pcm, "1234567", 7, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_AUDIO_COMPRESSED, &flac, "fLaC", 4, COFFER_OK);
    assert_content(COFFER_MLDF_AUDIO_COMPRESSED, &flac, "OggS", 4, COFFER_E_BAD_VALUE);
    assert_content(COFFER_MLDF_AUDIO_COMPRESSED, &codec, "x", 1, COFFER_E_BAD_VALUE);
}

static void hierarchies_and_mixtures_must_add_up(void **state)
{
    static const char whole[] = "\2\0\0\0\3\0\0\0\5\0\0\0helo!", back[] = "\2\0\0\0\5\0\0\0\3\0\0\0helo!";
    static const char part[] = "\1\0\0\0\3\0\1\0\2\0\0\0nxy";
    (void)state;
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, whole, 17, COFFER_OK);
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, whole, 16, COFFER_E_OUT_OF_BOUNDS);
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, whole, 7, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, back, 17, COFFER_E_OUT_OF_BOUNDS);
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, "\xff\xff\xff\xff", 4, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_MULTIMODAL, NULL, part, 15, COFFER_OK);
    assert_content(COFFER_MLDF_MULTIMODAL, NULL, part, 14, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_MULTIMODAL, NULL, "\xff\xff\xff\xff", 4, COFFER_E_SIZE_MISMATCH);
    assert_content(COFFER_MLDF_MULTIMODAL, NULL, "\0\0\0\0x", 5, COFFER_E_SIZE_MISMATCH);
}

static void texts_of_a_hierarchy_do_not_end_inside_a_character(void **state)
{
    static const char split[] = "\2\0\0\0\1\0\0\0\2\0\0\0\xc3\xa9";
    (void)state;
    assert_content(COFFER_MLDF_TEXT_HIERARCHICAL, NULL, split, 14, COFFER_E_BAD_TEXT);
}

static void rows_and_small_values_are_looked_at_without_full(void **state)
{
    fixture of = small(false);
    uint8_t *entry = entry_of(&of, 3, SMALL_IMAGE);
    (void)state;
    entry[17] = 3;
    assert_found(&of, false, COFFER_E_BAD_VALUE, COFFER_ERROR, "sample 3, field image: image mode 3");
    entry[17] = 0;
    entry[12]++;
    assert_found(&of, false, COFFER_E_SIZE_MISMATCH, COFFER_ERROR, "sample 3, field image: ");
    end(&of);
}

static void rows_of_numbers_alone_are_not_read(void **state)
{
    fixture of = { .made = dataset_new(50000, NULL) };
    dataset_reads reads;
    (void)state;
    dataset_field(of.made, "label", COFFER_MLDF_INT, 0);
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    coffer_source *src = dataset_counting_source(&reads, of.bytes, of.len);
    coffer_report *report = dataset_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_true(reads.total < 50000);
    coffer_report_free(report);
    coffer_source_close(src);
    end(&of);
}

/* With one field nothing tells 204 from 208 but the sum, and only when all of it is read. */
static void the_sum_of_a_single_descriptor_is_right_with_either_stride(void **state)
{
    static const uint32_t strides[] = { 204, 208 };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        dataset_opts opts = { .stride = strides[i % 2], .rows_last = i / 2 != 0, .checksummed = true };
        fixture of = { .made = dataset_new(3, &opts) };
        dataset_field(of.made, "t", COFFER_MLDF_TEXT, 0);
        dataset_bytes(of.made, 1, 0, "words", 5, NULL);
        of.bytes = dataset_make(&of.len, &of.places, of.made);
        dataset_assert_clean(of.bytes, of.len);
        of.bytes[of.places.table + 8] ^= 1;
        assert_found(&of, false, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                     "descriptors, rows and allocation table");
        end(&of);
    }
}

static void a_seal_of_another_sample_is_found_when_both_point_to_it(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of = { .made = dataset_new(2, &opts) };
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    (void)state;
    dataset_field(of.made, "t", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ENCRYPTED);
    dataset_bytes(of.made, 0, 0, "first", 5, NULL);
    dataset_bytes(of.made, 1, 0, "other", 5, NULL);
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    memcpy(entry_of(&of, 1, 0), entry_of(&of, 0, 0), 16);
    coffer_source *src = dataset_source_of(of.bytes, of.len);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    check_opts.full = true;
    check_opts.key = key;
    assert_int_equal(coffer_check(report, src, &check_opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_memory_equal(dataset_text(report, COFFER_E_AUTHENTICATION_FAILED),
                        "authentication failed for sample 1, field t", 43);
    coffer_report_free(report);
    coffer_source_close(src);
    end(&of);
}

static void encrypted_payloads_are_looked_into_when_the_key_is_given(void **state)
{
    dataset_opts opts = { .key = key };
    fixture of = { .made = dataset_small(5, &opts) };
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    (void)state;
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    of.bytes[coffer__load_u64(entry_of(&of, 4, SMALL_CAPTION)) + 30] ^= 1;
    coffer_source *src = dataset_source_of(of.bytes, of.len);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    check_opts.full = true;
    assert_int_equal(coffer_check(report, src, &check_opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    check_opts.key = key;
    assert_int_equal(coffer_check(report, src, &check_opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_memory_equal(dataset_text(report, COFFER_E_AUTHENTICATION_FAILED),
                        "authentication failed for sample 4, field caption", 49);
    coffer_report_free(report);
    coffer_source_close(src);
    end(&of);
}

static void findings_are_the_same_for_any_number_of_threads(void **state)
{
    dataset_opts opts = { .checksummed = true };
    fixture of = { .made = dataset_small(9000, &opts) };
    char *first[3] = { NULL, NULL, NULL };
    (void)state;
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    for (uint64_t i = 5; i < 9000; i += 1111)
        of.bytes[coffer__load_u64(entry_of(&of, i, SMALL_IMAGE))] ^= 1;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
        coffer_source *src = dataset_source_of(of.bytes, of.len);
        coffer_report *report = NULL;
        char *text = calloc(1, 20000);
        assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
        check_opts.full = true;
        check_opts.threads = threads;
        assert_int_equal(coffer_check(report, src, &check_opts, NULL), COFFER_OK);
        assert_int_equal(coffer_report_count(report), 10);
        for (size_t i = 0; i < coffer_report_count(report); i++)
            strcat(text, coffer_report_at(report, i)->text);
        first[threads - 1] = text;
        assert_string_equal(first[0], text);
        coffer_report_free(report);
        coffer_source_close(src);
    }
    for (int i = 0; i < 3; i++)
        free(first[i]);
    end(&of);
}

/* ---- Damaged samples ---- */

static void assert_damaged(const fixture *of, const uint8_t *with_key, const uint64_t *expected, size_t count)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_source *src = dataset_source_of(of->bytes, of->len);
    coffer_mldf *set = NULL;
    uint64_t *samples = NULL, found = 99;
    opts.key = with_key;
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    for (uint32_t threads = 1; threads < 4; threads++) {
        coffer_mldf_find_damaged_opts damage = { sizeof damage, threads, NULL };
        assert_int_equal(coffer_mldf_find_damaged(&samples, &found, set, &damage, NULL), COFFER_OK);
        assert_int_equal(found, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(samples[i], expected[i]);
        coffer_free(samples);
    }
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void damaged_samples_are_listed_in_order(void **state)
{
    static const uint64_t expected[] = { 2, 9, 13, 29 };
    fixture of = small(true);
    (void)state;
    assert_damaged(&of, NULL, NULL, 0);
    of.bytes[coffer__load_u64(entry_of(&of, 9, SMALL_IMAGE))] ^= 1;
    of.bytes[coffer__load_u64(entry_of(&of, 29, SMALL_CAPTION))] ^= 1;
    coffer__store_u64(entry_of(&of, 2, SMALL_IMAGE), UINT64_MAX);
    coffer__store_u32(entry_of(&of, 13, SMALL_BLOB) + 8, 1);
    assert_damaged(&of, NULL, expected, 4);
    end(&of);
}

static void without_checksums_frames_and_seals_reveal_damage(void **state)
{
    static const uint64_t expected[] = { 3, 7 };
    dataset_opts opts = { .key = key };
    fixture of = { .made = dataset_small(10, &opts) };
    (void)state;
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    of.bytes[coffer__load_u64(entry_of(&of, 3, SMALL_IMAGE)) + 2] ^= 1;
    of.bytes[coffer__load_u64(entry_of(&of, 7, SMALL_CAPTION)) + 2] ^= 1;
    assert_damaged(&of, key, expected, 2);
    assert_damaged(&of, NULL, NULL, 0);
    end(&of);
}

static void a_report_that_is_full_ends_the_search(void **state)
{
    fixture of = small(true);
    coffer_report *report = NULL;
    coffer_source *src;
    (void)state;
    for (uint64_t i = 0; i < SAMPLES; i++)
        coffer__store_u64(entry_of(&of, i, SMALL_IMAGE), UINT64_MAX);
    src = dataset_source_of(of.bytes, of.len);
    assert_int_equal(coffer_report_new(&report, 4, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_count(report), 4);
    assert_true(coffer_report_total(report, COFFER_ERROR) >= SAMPLES);
    coffer_report_free(report);
    coffer_source_close(src);
    end(&of);
}

static void a_value_that_cannot_be_decoded_is_named_once(void **state)
{
    fixture of = { .made = dataset_new(1, NULL) };
    (void)state;
    dataset_field(of.made, "b", COFFER_MLDF_BYTES, COFFER_MLDF_FIELD_ZSTD);
    dataset_bytes(of.made, 0, 0, "hello", 5, NULL);
    of.bytes = dataset_make(&of.len, &of.places, of.made);
    of.bytes[of.places.data] ^= 0xFF; /* the magic number of the frame */
    coffer_source *src = dataset_source_of(of.bytes, of.len);
    coffer_report *report = dataset_check(src, true);
    const char *text = dataset_text(report, COFFER_E_BAD_VALUE);
    assert_ptr_equal(strstr(text, "sample 0, field b: its "), text);
    assert_null(strstr(text + 1, "sample"));
    assert_non_null(strstr(text, "bytes are not a zstd frame"));
    coffer_mldf *set = dataset_open(src);
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mldf_read(&value, NULL, set, 0, 0, &err), COFFER_E_BAD_VALUE);
    assert_ptr_equal(strstr(err.text, "sample 0, field b: its "), err.text);
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_report_free(report);
    coffer_source_close(src);
    end(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_cannot_be_decoded_is_named_once),
        cmocka_unit_test(whole_sets_are_clean_in_every_layout),
        cmocka_unit_test(odd_headers_are_warnings),
        cmocka_unit_test(flags_of_the_file_and_of_its_fields_belong_together),
        cmocka_unit_test(unused_bytes_of_a_descriptor_should_be_zero),
        cmocka_unit_test(parts_that_overlap_are_errors),
        cmocka_unit_test(every_mistake_of_the_table_has_its_code),
        cmocka_unit_test(rows_point_into_the_table_or_nowhere),
        cmocka_unit_test(a_truncated_file_is_reported),
        cmocka_unit_test(changed_bytes_are_found_and_the_samples_named),
        cmocka_unit_test(texts_must_be_what_their_encoding_says),
        cmocka_unit_test(pictures_and_sounds_must_be_what_their_rows_say),
        cmocka_unit_test(hierarchies_and_mixtures_must_add_up),
        cmocka_unit_test(texts_of_a_hierarchy_do_not_end_inside_a_character),
        cmocka_unit_test(rows_and_small_values_are_looked_at_without_full),
        cmocka_unit_test(rows_of_numbers_alone_are_not_read),
        cmocka_unit_test(the_sum_of_a_single_descriptor_is_right_with_either_stride),
        cmocka_unit_test(a_seal_of_another_sample_is_found_when_both_point_to_it),
        cmocka_unit_test(encrypted_payloads_are_looked_into_when_the_key_is_given),
        cmocka_unit_test(findings_are_the_same_for_any_number_of_threads),
        cmocka_unit_test(damaged_samples_are_listed_in_order),
        cmocka_unit_test(without_checksums_frames_and_seals_reveal_damage),
        cmocka_unit_test(a_report_that_is_full_ends_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
