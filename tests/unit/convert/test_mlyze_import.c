#include "support/profile.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOLS COFFER_TEST_DATA "/compat/mlyze-tools/"

static const char *kind_of(const char *path)
{
    const char *kind = NULL;
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    coffer_status status = coffer_convert_kind(&kind, src, NULL);
    coffer_source_close(src);
    return status ? "none" : kind;
}

static void files_are_known_by_their_content_whatever_their_name(void **state)
{
    (void)state;
    static const struct {
        const char *path, *kind;
    } files[] = {
        { TOOLS "grow.heaptrack.zst", "heaptrack" },
        { TOOLS "grow-raw.heaptrack.zst", "heaptrack" },
        { TOOLS "grow.massif", "massif" },
        { TOOLS "grow.dhat", "dhat" },
        { TOOLS "grow.pb.gz", "pprof" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *copy = temp_path(temp_folder, "unnamed");
        temp_copy(files[i].path, copy);
        assert_string_equal(kind_of(copy), files[i].kind);
    }
}

static void other_packed_files_are_not_claimed(void **state)
{
    (void)state;
    /* "hello" with gzip; a frame of nothing with zstd. */
    static const uint8_t gzip[] = { 0x1f, 0x8b, 8, 0, 0,    0,    0,    0,    0, 3, 0xcb, 0x48, 0xcd,
                                    0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0,    0 };
    static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0 };
    const char *path = temp_path(temp_folder, "what.txt.gz");
    temp_write(path, gzip, sizeof gzip);
    assert_string_equal(kind_of(path), "none");
    temp_write(path, zstd, sizeof zstd);
    assert_string_equal(kind_of(path), "none");
}

static void the_metadata_says_where_the_events_come_from(void **state)
{
    (void)state;
    static const struct {
        const char *in, *source, *command;
    } files[] = {
        { TOOLS "grow.heaptrack.zst",
          "\"source\":{\"format\":\"heaptrack\",\"synthetic\":false,\"version\":3,\"interpreted\":true}",
          "\"command\":\"./grow\"" },
        { TOOLS "grow.massif",
          "\"source\":{\"format\":\"massif\",\"synthetic\":true,\"time_unit\":\"instructions\"}",
          "\"command\":\"./grow\"" },
        { TOOLS "grow.dhat",
          "\"source\":{\"format\":\"dhat\",\"synthetic\":true,\"time_unit\":\"instructions\"}",
          "\"command\":\"./grow\"" },
        { TOOLS "grow.pb.gz",
          "\"source\":{\"format\":\"pprof\",\"synthetic\":true,\"has_total\":true,\"has_peak\":false}", "" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        coffer_source *src = NULL;
        size_t len, kept = 0;
        profile_must(files[i].in, "t.mlyze", NULL);
        assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "t.mlyze"), NULL, NULL), COFFER_OK);
        coffer_mlyze *trace = trace_open(src, NULL);
        const char *metadata = coffer_mlyze_metadata(trace, &len);
        char *packed = malloc(len + 1);
        for (size_t at = 0; at < len; at++) {
            if (metadata[at] != ' ' && metadata[at] != '\n')
                packed[kept++] = metadata[at];
        }
        packed[kept] = '\0';
        if (!strstr(packed, files[i].source) || !strstr(packed, files[i].command))
            fail_msg("%s is not in %s", files[i].source, packed);
        free(packed);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
    }
}

static void the_time_of_a_go_profile_is_the_start_of_the_trace(void **state)
{
    coffer_source *src = NULL;
    (void)state;
    profile_must(TOOLS "grow.pb.gz", "t.mlyze", NULL);
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "t.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_true(coffer_mlyze_start_time(trace) > UINT64_C(1600000000000000));
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

static void plain_and_small_traces_hold_the_same(void **state)
{
    (void)state;
    profile_must(TOOLS "grow.heaptrack.zst", "lz4.mlyze", NULL);
    profile_must(TOOLS "grow.heaptrack.zst", "plain.mlyze", "plain", NULL, NULL);
    profile_must(TOOLS "grow.heaptrack.zst", "small.mlyze", "level", "12", NULL);
    profile_same("lz4.mlyze", "plain.mlyze", "total");
    profile_same("lz4.mlyze", "small.mlyze", "total");
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "plain.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_false(coffer_mlyze_compressed(trace));
    assert_int_equal(coffer_mlyze_flags(trace), 0);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(profile_convert(&err, NULL, TOOLS "grow.dhat", "no.mlyze", "level", "13", NULL),
                     COFFER_E_INVALID_ARGUMENT);
}

static void a_failed_import_leaves_the_old_trace_as_it_was(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    profile_must(TOOLS "grow.dhat", "kept.mlyze", NULL);
    size_t len;
    uint8_t *before = temp_read(temp_path(temp_folder, "kept.mlyze"), &len);
    profile_write("bad.collapsed", "a;b 5\nno number here\n");
    assert_int_equal(profile_convert(&err, NULL, "bad.collapsed", "kept.mlyze", NULL), COFFER_E_BAD_VALUE);
    assert_true(temp_holds(temp_path(temp_folder, "kept.mlyze"), before, len));
    free(before);
}

static void the_same_file_gives_the_same_bytes(void **state)
{
    (void)state;
    static const char *const files[] = { TOOLS "grow.heaptrack.zst", TOOLS "grow.massif", TOOLS "grow.dhat",
                                         TOOLS "grow.pb.gz" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t len;
        profile_must(files[i], "one.mlyze", NULL);
        profile_must(files[i], "two.mlyze", NULL);
        uint8_t *bytes = temp_read(temp_path(temp_folder, "one.mlyze"), &len);
        assert_true(temp_holds(temp_path(temp_folder, "two.mlyze"), bytes, len));
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_known_by_their_content_whatever_their_name),
        cmocka_unit_test(other_packed_files_are_not_claimed),
        cmocka_unit_test(the_metadata_says_where_the_events_come_from),
        cmocka_unit_test(the_time_of_a_go_profile_is_the_start_of_the_trace),
        cmocka_unit_test(plain_and_small_traces_hold_the_same),
        cmocka_unit_test(a_failed_import_leaves_the_old_trace_as_it_was),
        cmocka_unit_test(the_same_file_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
