/* Files cut anywhere and with any bit of their beginning flipped: nothing crashes, and the parts of the
 * library agree about what is good. */
#include "support/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *folder;
static uint8_t *original;
static size_t original_len;

static int make_original(void **state)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization scale = COFFER_MSCAN_QUANTIZATION_INIT;
    const char *path;
    (void)state;
    folder = temp_make();
    path = temp_path(folder, "good.mscan");
    opts.reserve_bytes = 64;
    opts.activation = opts.grad_norm = &scale;
    assert_int_equal(scan_create(path, &opts, 2, 3, NULL), COFFER_OK);
    original = temp_read(path, &original_len);
    return 0;
}

static int drop_original(void **state)
{
    (void)state;
    free(original);
    temp_remove(folder);
    return 0;
}

static void read_everything(coffer_mscan *scan)
{
    for (uint64_t i = 0; i < coffer_mscan_record_count(scan); i++) {
        coffer_mscan_record record;
        assert_int_equal(coffer_mscan_read(&record, scan, i, 1, NULL), COFFER_OK);
        coffer_mscan_param_name(scan, record.param_id);
        coffer_mscan_sequence_of_token(scan, record.token_idx);
    }
}

/* Repairing must give a clean file, whenever it gives one, but for marks of what was damaged. */
static void try_repair(coffer_source *src)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    const char *path = temp_path(folder, "repaired");
    coffer_report *report = NULL;
    opts.overwrite = true;
    opts.keep_tail = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_repair(report, src, path, &opts, NULL) == COFFER_OK) {
        coffer_source *repaired = scan_source(path);
        coffer_report *found = scan_check(repaired, false);
        for (size_t i = 0; i < coffer_report_count(found); i++) {
            const coffer_finding *finding = coffer_report_at(found, i);
            if (finding->severity == COFFER_ERROR && !strstr(finding->text, "the file was repaired"))
                fail_msg("repaired, and still: %s", finding->text);
        }
        coffer_report_free(found);
        coffer_source_close(repaired);
    }
    coffer_report_free(report);
}

static void try_file(const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees a read past the end */
    coffer_node *node = NULL;
    coffer_mscan *scan = NULL;
    memcpy(exact, bytes, len);
    coffer_source *src = scan_source_of(exact, len);
    coffer_report *report = scan_check(src, true);
    coffer_status opened = coffer_mscan_open(&scan, src, NULL, NULL);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    coffer_status described = coffer_describe(node, src, NULL, NULL);
    if (coffer_report_total(report, COFFER_ERROR) == 0 && opened != COFFER_OK)
        fail_msg("check finds no error, but the file does not open");
    if (opened == COFFER_OK) {
        assert_int_equal(described, COFFER_OK);
        read_everything(scan);
    }
    coffer_mscan_close(scan);
    coffer_node_free(node);
    coffer_report_free(report);
    try_repair(src);
    coffer_source_close(src);
    free(exact);
}

static void a_file_cut_at_any_byte_is_survived(void **state)
{
    (void)state;
    for (size_t len = 0; len < original_len; len++)
        try_file(original, len);
}

static void a_file_cut_at_any_byte_is_never_clean(void **state)
{
    (void)state;
    for (size_t len = 0; len < original_len; len++) {
        coffer_source *src = scan_source_of(original, len);
        coffer_report *report = scan_check(src, false);
        if (coffer_report_total(report, COFFER_ERROR) == 0)
            fail_msg("cut at %zu of %zu", len, original_len);
        coffer_report_free(report);
        coffer_source_close(src);
    }
}

static void any_flipped_bit_of_the_beginning_is_survived(void **state)
{
    uint8_t *bytes = malloc(original_len);
    size_t end = original_len < 512 ? original_len : 512;
    (void)state;
    memcpy(bytes, original, original_len);
    for (size_t bit = 0; bit < 8 * end; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        try_file(bytes, original_len);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

static void any_flipped_bit_is_found_by_a_full_check(void **state)
{
    uint8_t *bytes = malloc(original_len);
    (void)state;
    memcpy(bytes, original, original_len);
    for (size_t bit = 0; bit < 8 * original_len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        coffer_source *src = scan_source_of(bytes, original_len);
        coffer_report *report = NULL;
        coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
        opts.full = true;
        assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
        if (coffer_check(report, src, &opts, NULL) == COFFER_OK &&
            coffer_report_total(report, COFFER_ERROR) == 0)
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        coffer_report_free(report);
        coffer_source_close(src);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

static void a_flipped_bit_of_a_record_stops_every_reader(void **state)
{
    uint8_t *bytes = malloc(original_len);
    (void)state;
    memcpy(bytes, original, original_len);
    for (size_t byte = original_len - 12 * 12; byte < original_len; byte += 5) {
        coffer_mscan_record record;
        coffer_mscan_stats *stats = NULL;
        coffer_mscan_grid *grid = NULL;
        coffer_mscan_replay *replay = NULL;
        coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
        bool more;
        bytes[byte] ^= 16;
        coffer_source *src = scan_source_of(bytes, original_len);
        coffer_mscan *scan = scan_open(src);
        assert_int_equal(coffer_mscan_read(&record, scan, 0, 1, NULL), COFFER_E_BAD_CHECKSUM);
        assert_null(coffer_mscan_view(scan, 0, 1));
        assert_int_equal(coffer_mscan_stats_new(&stats, scan, NULL, NULL), COFFER_E_BAD_CHECKSUM);
        assert_int_equal(coffer_mscan_grid_new(&grid, scan, NULL, NULL), COFFER_E_BAD_CHECKSUM);
        coffer_status status = coffer_mscan_replay_new(&replay, scan, NULL, NULL);
        if (!status)
            status = coffer_mscan_replay_next(&more, &step, replay, NULL);
        assert_int_equal(status, COFFER_E_BAD_CHECKSUM);
        coffer_mscan_replay_free(replay);
        coffer_mscan_close(scan);
        coffer_source_close(src);
        bytes[byte] ^= 16;
    }
    free(bytes);
}

/* A source that can only read, and fails in the middle. */
typedef struct failing {
    uint64_t good_until;
} failing;

static coffer_status read_until(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const failing *of = context;
    if (offset + len > of->good_until) {
        if (err)
            *err = (coffer_error){ .status = COFFER_E_IO, .offset = offset, .text = "the line is dead" };
        return COFFER_E_IO;
    }
    memcpy(out, original + offset, len);
    return COFFER_OK;
}

static void a_source_that_fails_is_reported_as_such(void **state)
{
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_until };
    (void)state;
    for (uint64_t good = 0; good < original_len; good += 7) {
        failing of = { good };
        coffer_source *src = NULL;
        coffer_report *report = NULL;
        coffer_node *node = NULL;
        assert_int_equal(coffer_source_new(&src, &ops, &of, original_len, "failing", NULL), COFFER_OK);
        assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
        assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
        assert_int_equal(coffer_check(report, src, NULL, NULL), COFFER_E_IO);
        assert_int_equal(coffer_repair(report, src, temp_path(folder, "never"), NULL, NULL), COFFER_E_IO);
        assert_int_equal(coffer_list(node, src, NULL, NULL), COFFER_E_IO);
        assert_false(temp_exists(temp_path(folder, "never")));
        coffer_node_free(node);
        coffer_report_free(report);
        coffer_source_close(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_cut_at_any_byte_is_survived),
        cmocka_unit_test(a_file_cut_at_any_byte_is_never_clean),
        cmocka_unit_test(any_flipped_bit_of_the_beginning_is_survived),
        cmocka_unit_test(any_flipped_bit_is_found_by_a_full_check),
        cmocka_unit_test(a_flipped_bit_of_a_record_stops_every_reader),
        cmocka_unit_test(a_source_that_fails_is_reported_as_such),
    };
    return cmocka_run_group_tests(tests, make_original, drop_original);
}
