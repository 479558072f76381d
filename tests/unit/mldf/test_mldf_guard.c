/* Every byte of a set that Coffer writes is covered: no flipped bit passes a full check, and no verb takes
 * over rows that were changed. */
#include "formats/mldf/mldf_layout.h"
#include "support/dataset_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static const char *other_file(void)
{
    return temp_path(temp_folder, "other.mldf");
}

static uint64_t errors_of(const uint8_t *bytes, size_t len)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_report *report = NULL;
    opts.full = true;
    opts.threads = 1;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_check(report, src, &opts, &err) != COFFER_OK)
        fail_msg("%d: %s", err.status, err.text);
    uint64_t errors = coffer_report_total(report, COFFER_ERROR);
    coffer_report_free(report);
    coffer_source_close(src);
    return errors;
}

/* Each byte with one of its bits flipped, another one each time, and each bit of the bytes that matter most.
 */
static void expect_every_flip_found(const char *path)
{
    size_t len = 0;
    uint8_t *bytes = temp_read(path, &len);
    assert_int_equal(errors_of(bytes, len), 0);
    for (size_t i = 0; i < len; i++) {
        size_t bits = i < COFFER__MLDF_HEAD_SIZE ? 8 : 1;
        for (size_t b = 0; b < bits; b++) {
            uint8_t mask = (uint8_t)(1u << (bits == 8 ? b : i % 8));
            bytes[i] ^= mask;
            if (errors_of(bytes, len) == 0)
                fail_msg("bit %u of byte %zu of %zu can be flipped unnoticed", mask, i, len);
            bytes[i] ^= mask;
        }
    }
    free(bytes);
}

static void no_flipped_bit_of_a_new_set_passes(void **state)
{
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD, COFFER_MLDF_FIELD_ENCRYPTED };
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(dataset_create(file(), 12, kinds[k], NULL, NULL), COFFER_OK);
        expect_every_flip_found(file());
    }
}

static void no_flipped_bit_of_a_set_without_payloads_passes(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field field = dataset_field_of("label", COFFER_MLDF_INT, 0);
    coffer_mldf_writer *writer = NULL;
    (void)state;
    for (int samples = 0; samples < 4; samples += 3) {
        assert_int_equal(coffer_mldf_writer_create(&writer, file(), &field, 1, &opts, NULL), COFFER_OK);
        for (int i = 0; i < samples; i++) {
            assert_int_equal(coffer_mldf_writer_set_int(writer, 0, i, NULL), COFFER_OK);
            assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
        }
        assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
        expect_every_flip_found(file());
    }
}

static void no_flipped_bit_of_a_changed_set_passes(void **state)
{
    static const uint64_t gone[] = { 1, 4 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    (void)state;
    assert_int_equal(dataset_create(file(), 6, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(dataset_append(file(), 6, 3, NULL), COFFER_OK);
    expect_every_flip_found(file());
    assert_int_equal(coffer_mldf_update_delete(file(), gone, 2, &opts, NULL), COFFER_OK);
    expect_every_flip_found(file());
}

/* ---- Verbs that copy ---- */

static coffer_status extract(void)
{
    coffer_mldf_extract_opts opts = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_writer_opts write = dataset_small_pages();
    coffer_mldf *set = NULL;
    coffer_status status = coffer_mldf_open_path(&set, file(), NULL, NULL);
    opts.write = &write;
    if (!status)
        status = coffer_mldf_extract(other_file(), set, &opts, NULL);
    coffer_mldf_close(set);
    return status;
}

static coffer_status concat(void)
{
    coffer_mldf_concat_opts opts = COFFER_MLDF_CONCAT_OPTS_INIT;
    coffer_mldf_writer_opts write = dataset_small_pages();
    coffer_mldf *set = NULL;
    coffer_status status = coffer_mldf_open_path(&set, file(), NULL, NULL);
    opts.write = &write;
    if (!status)
        status = coffer_mldf_concat(other_file(), &set, 1, &opts, NULL);
    coffer_mldf_close(set);
    return status;
}

static coffer_status compact(void)
{
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *node = NULL;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    opts.overwrite = true;
    coffer_status status = coffer_compact(node, file(), other_file(), &opts, NULL);
    coffer_node_free(node);
    return status;
}

static coffer_status append(void)
{
    return dataset_append(file(), 6, 1, NULL);
}

/* After a flip a verb stops, or its result is the one without the flip, or the result is not clean. */
static void no_verb_makes_damage_look_intact(void **state)
{
    coffer_status (*const verbs[])(void) = { extract, concat, compact, append };
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), 6, 0, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
        const char *result = verbs[v] == append ? file() : other_file();
        size_t good_len = 0;
        temp_write(file(), bytes, len);
        assert_int_equal(verbs[v](), COFFER_OK);
        uint8_t *good = temp_read(result, &good_len);
        for (size_t i = 0; i < len; i += i < 512 || i > 3800 ? 3 : 61) {
            bytes[i] ^= (uint8_t)(1u << i % 8);
            temp_write(file(), bytes, len);
            bytes[i] ^= (uint8_t)(1u << i % 8);
            if (verbs[v]() != COFFER_OK)
                continue;
            size_t made_len = 0;
            uint8_t *made = temp_read(result, &made_len);
            bool same = made_len == good_len && memcmp(made, good, good_len) == 0;
            if (!same && errors_of(made, made_len) == 0)
                fail_msg("verb %zu: the result of a flip in byte %zu is another one and clean", v, i);
            free(made);
        }
        free(good);
    }
    free(bytes);
}

static void a_verified_set_does_not_open_with_changed_rows(void **state)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), 6, 0, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_mldf *set = dataset_open(src);
    uint64_t table = len - 16 * (uint64_t)coffer_mldf_sample_count(set);
    coffer_mldf_close(set);
    coffer_source_close(src);
    bytes[table] ^= 1;
    src = dataset_source_of(bytes, len);
    opts.verify = true;
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_E_BAD_CHECKSUM);
    coffer_source_close(src);
    free(bytes);
}

static int empty_folder(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_flipped_bit_of_a_new_set_passes, empty_folder),
        cmocka_unit_test_setup(no_flipped_bit_of_a_set_without_payloads_passes, empty_folder),
        cmocka_unit_test_setup(no_flipped_bit_of_a_changed_set_passes, empty_folder),
        cmocka_unit_test_setup(no_verb_makes_damage_look_intact, empty_folder),
        cmocka_unit_test_setup(a_verified_set_does_not_open_with_changed_rows, empty_folder),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
