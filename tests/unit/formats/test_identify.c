#include "formats/format.h"
#include "support/scan.h"

#include <string.h>

static coffer_status identify(const void *bytes, size_t len, coffer_error *err)
{
    const coffer_format *format = NULL;
    coffer_source *src = scan_source_of(bytes, len);
    coffer_status status = coffer_identify(&format, src, err);
    coffer_source_close(src);
    if (status == COFFER_OK)
        assert_string_equal(coffer_format_name(format), "mscan");
    else
        assert_null(format);
    return status;
}

static void assert_says(const void *bytes, size_t len, coffer_status status, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(identify(bytes, len, &err), status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void a_scan_is_recognized_by_its_first_five_bytes(void **state)
{
    (void)state;
    assert_int_equal(identify("MSCAN", 5, NULL), COFFER_OK);
    assert_int_equal(identify("MSCAN\1\0rest", 11, NULL), COFFER_OK);
}

static void the_table_is_found_by_name_and_by_number(void **state)
{
    const coffer_format *format = coffer_format_by_name("mscan");
    (void)state;
    assert_non_null(format);
    assert_string_equal(coffer_format_extension(format), ".mscan");
    assert_string_equal(coffer_format_title(format), "neural-network scan");
    assert_null(coffer_format_by_name("nothing"));
    assert_null(coffer_format_at(coffer_format_count()));
    assert_non_null(coffer_format_at(0));
}

static void unknown_bytes_are_shown_with_the_known_formats(void **state)
{
    (void)state;
    assert_says("hello\1world", 11, COFFER_E_NOT_RECOGNISED, "68 65 6c 6c 6f 01 77 6f");
    assert_says("hello\1world", 11, COFFER_E_NOT_RECOGNISED, "\"hello.world\"");
    assert_says("hello\1world", 11, COFFER_E_NOT_RECOGNISED,
                "known formats: mcf, mldf, mlyze, mscan, pycauset");
}

static void what_a_transfer_did_to_a_magic_is_guessed(void **state)
{
    (void)state;
    assert_says("\xef\xbb\xbfMSCAN", 8, COFFER_E_BAD_MAGIC, "byte order mark");
    assert_says("M\0S\0C\0A\0N\0", 10, COFFER_E_BAD_MAGIC, "UTF-16");
    assert_says("\xff\xfeM\0S\0C\0A\0N\0", 12, COFFER_E_BAD_MAGIC, "UTF-16");
    assert_says("\xfe\xff\0M\0S\0C\0A\0N", 12, COFFER_E_BAD_MAGIC, "UTF-16");
    assert_says("SMAC\1N", 6, COFFER_E_BAD_MAGIC, "every two bytes");
    assert_says("ACSM", 4, COFFER_E_BAD_MAGIC, "every four bytes");
}

static void what_a_file_is_instead_is_named(void **state)
{
    static const char zeros[100];
    (void)state;
    assert_says("", 0, COFFER_E_NOT_RECOGNISED, "empty");
    assert_says("\x1f\x8b\x08", 3, COFFER_E_NOT_RECOGNISED, "gzip");
    assert_says("\x28\xb5\x2f\xfd", 4, COFFER_E_NOT_RECOGNISED, "zstd");
    assert_says("PK\3\4", 4, COFFER_E_NOT_RECOGNISED, "zip archive");
    assert_says("version https://git-lfs.github.com/spec/v1", 42, COFFER_E_NOT_RECOGNISED,
                "a Git LFS pointer, not the file itself");
    assert_says("\n <!DOCTYPE HTML><p>404", 23, COFFER_E_NOT_RECOGNISED, "web page");
    assert_says(zeros, sizeof zeros, COFFER_E_NOT_RECOGNISED, "zeros");
}

static void a_near_miss_stays_unrecognized_but_is_mentioned(void **state)
{
    (void)state;
    assert_says("mscan", 5, COFFER_E_NOT_RECOGNISED, "in another case it would be mscan");
    assert_says("MSCAm\1", 6, COFFER_E_NOT_RECOGNISED, "one byte differs");
    assert_says("MSC", 3, COFFER_E_NOT_RECOGNISED, "may be the beginning of mscan");
}

static void check_of_an_unknown_file_is_a_finding_not_a_failure(void **state)
{
    coffer_source *src = scan_source_of("hello", 5);
    coffer_report *report = scan_check(src, false);
    (void)state;
    assert_true(scan_has(report, COFFER_E_NOT_RECOGNISED, COFFER_ERROR));
    coffer_report_free(report);
    coffer_source_close(src);
}

static void the_other_verbs_refuse_an_unknown_file(void **state)
{
    coffer_source *src = scan_source_of("hello", 5);
    coffer_report *report = NULL;
    coffer_node *node = NULL;
    (void)state;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(node, src, NULL, NULL), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_list(node, src, NULL, NULL), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_diff(node, src, src, NULL, NULL), COFFER_E_NOT_RECOGNISED);
    assert_int_equal(coffer_repair(report, src, "nowhere", NULL, NULL), COFFER_E_NOT_RECOGNISED);
    coffer_node_free(node);
    coffer_report_free(report);
    coffer_source_close(src);
}

static coffer_format_version version_of(const char *format, const void *bytes, size_t len)
{
    coffer_format_version version = COFFER_FORMAT_VERSION_INIT;
    coffer_source *src = scan_source_of(bytes, len);
    assert_int_equal(coffer_format_get_version(&version, coffer_format_by_name(format), src, NULL),
                     COFFER_OK);
    coffer_source_close(src);
    return version;
}

static void a_newer_version_is_recognized(void **state)
{
    (void)state;
    coffer_format_version version = version_of("mlyze", "MLYZ\xff\0\0\0", 8);
    assert_true(version.is_newer && !version.has_minor);
    assert_int_equal(version.major, 255);
    assert_false(version_of("mlyze", "MLYZ\1\0\0\0", 8).is_newer);
    version = version_of("mcf", "MCF1\1\0\xe8\3", 8);
    assert_true(version.is_newer && version.has_minor);
    assert_int_equal(version.major, version.newest_major);
    assert_int_equal(version.minor, 1000);
    assert_false(version_of("mcf", "MCF1\1\0\0\0", 8).is_newer);
    /* Too short, or a format that reads one version only. */
    assert_false(version_of("mcf", "MCF1", 4).is_newer);
    assert_false(version_of("mscan", "MSCAN\xff\xff", 7).is_newer);
    coffer_format_version none = { 0 };
    coffer_source *src = scan_source_of("MSCAN", 5);
    assert_int_equal(coffer_format_get_version(&none, coffer_format_by_name("mscan"), src, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_is_recognized_by_its_first_five_bytes),
        cmocka_unit_test(the_table_is_found_by_name_and_by_number),
        cmocka_unit_test(unknown_bytes_are_shown_with_the_known_formats),
        cmocka_unit_test(what_a_transfer_did_to_a_magic_is_guessed),
        cmocka_unit_test(what_a_file_is_instead_is_named),
        cmocka_unit_test(a_near_miss_stays_unrecognized_but_is_mentioned),
        cmocka_unit_test(check_of_an_unknown_file_is_a_finding_not_a_failure),
        cmocka_unit_test(the_other_verbs_refuse_an_unknown_file),
        cmocka_unit_test(a_newer_version_is_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
