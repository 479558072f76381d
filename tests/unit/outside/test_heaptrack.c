#include "outside/archives/unpack.h"
#include "outside/profiles/heaptrack.h"
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two blocks of one kind and one of another; one of the first stays. */
#define HEAD "v 10400 1\nX ./prog --all\nI 1000 100\n"
#define NAMES "s libprog\ns main\ns prog.c\ns grab\n"
#define STACKS "i 10 1 2 3 a\ni 20 1 4 3 1e\nt 1 0\nt 2 1\n"
#define EVENTS "a 64 2\n+ 0\n+ 0\nc 5\na 8 1\n+ 1\n- 1\n- 0\nR 2\nc 7\n"

static void an_interpreted_file_gives_every_event(void **state)
{
    (void)state;
    profile_write("a.heaptrack", HEAD NAMES STACKS EVENTS);
    profile_must("a.heaptrack", "a.mlyze", NULL);
    profile_expect("a.mlyze", 3, 208, 208, 100);
    coffer_mlyze_totals totals = profile_totals("a.mlyze");
    assert_int_equal(totals.temporary_allocs, 1);
    assert_int_equal(totals.peak_time_us, 5000);
    assert_int_equal(totals.peak_rss_bytes, 2 * 4096);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "leaks"), 100);
    assert_int_equal(profile_bytes("a.mlyze", "main", "peak"), 8);
    profile_must("a.mlyze", "a.collapsed", "lines", NULL, "what", "leaks", NULL);
    char *text = profile_text("a.collapsed");
    assert_string_equal(text, "main (prog.c:10);grab (prog.c:30) 100\n");
    free(text);
}

static void strings_have_a_length_in_format_3(void **state)
{
    (void)state;
    profile_write("a.heaptrack", "v 10500 3\nX p\ns 9 my main()\ni 10 0 1\nt 1 0\na 5 1\n+ 0\n");
    profile_must("a.heaptrack", "a.mlyze", NULL);
    assert_int_equal(profile_bytes("a.mlyze", "my main()", "leaks"), 5);
    profile_refuses_text("b.heaptrack", "v 10500 3\nX p\ns a my main()\n", COFFER_E_BAD_VALUE, "length");
}

static void inlined_frames_are_inside_their_caller(void **state)
{
    (void)state;
    profile_write("a.heaptrack", HEAD "s inner\ns outer\ns f.c\ni 10 0 1 3 1 2 3 2\nt 1 0\na 5 1\n+ 0\n");
    profile_must("a.heaptrack", "a.mlyze", NULL);
    assert_int_equal(profile_bytes("a.mlyze", "outer;inner", "leaks"), 5);
}

static void a_command_of_several_lines_is_read_to_its_end(void **state)
{
    (void)state;
    profile_write("a.heaptrack", "v 10500 3\nX python3 -c import os\n\nd=[1]\ns = 2 # three\nif d:\n  a 5\n"
                                 "I 1000 100\ns 4 main\ni 10 0 1\nt 1 0\na 5 1\n+ 0\n");
    profile_must("a.heaptrack", "a.mlyze", NULL);
    assert_int_equal(profile_bytes("a.mlyze", "main", "leaks"), 5);
}

static void a_raw_file_keeps_addresses_as_names(void **state)
{
    (void)state;
    profile_write("raw.heaptrack", "v 10400 2\nx /bin/prog\nX prog\nm x 400000 0 1000 2000 1000\n"
                                   "m /lib/c.so 700000 0 100\nt 402010 0\nt 700020 1\nt 99 2\n"
                                   "+ 64 2 abc0\n+ 10 3 def0\n- abc0\n");
    profile_must("raw.heaptrack", "raw.mlyze", NULL);
    profile_expect("raw.mlyze", 2, 116, 116, 16);
    assert_int_equal(profile_bytes("raw.mlyze", "/bin/prog+0x2010;/lib/c.so+0x20;0x99", "leaks"), 16);
    assert_int_equal(profile_bytes("raw.mlyze", "/bin/prog+0x2010;/lib/c.so+0x20", "peak"), 100);
}

static void modules_that_are_forgotten_name_nothing(void **state)
{
    (void)state;
    profile_write("raw.heaptrack", "v 10400 2\nx /bin/prog\nX prog\nm x 400000 0 1000\nt 400010 0\nm -\n"
                                   "m /lib/b.so 400000 0 1000\nt 400010 0\n+ 1 1 a0\n+ 2 2 b0\n");
    profile_must("raw.heaptrack", "raw.mlyze", NULL);
    assert_int_equal(profile_bytes("raw.mlyze", "/bin/prog+0x10", "leaks"), 1);
    assert_int_equal(profile_bytes("raw.mlyze", "/lib/b.so+0x10", "leaks"), 2);
}

static void the_first_format_has_pointers_and_names(void **state)
{
    (void)state;
    profile_write("old.heaptrack", "v 10000\n" NAMES STACKS "+ 64 2 a0\n+ 10 1 b0\n- a0\nc 3\n");
    profile_must("old.heaptrack", "old.mlyze", NULL);
    profile_expect("old.mlyze", 2, 116, 116, 16);
    assert_int_equal(profile_bytes("old.mlyze", "main;grab", "peak"), 100);
}

static void references_that_lead_nowhere_are_refused(void **state)
{
    (void)state;
    const coffer_status dangling = COFFER_E_DANGLING_REFERENCE;
    profile_refuses_text("b.heaptrack", HEAD NAMES "i 10 1 5 3 a\n", dangling,
                         "line 8: string 5, there are 4");
    profile_refuses_text("b.heaptrack", HEAD NAMES "i 10 9\n", dangling, "string 9, there are 4");
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "t 3 0\n", dangling, "instruction 3, there are 2");
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "t 0 0\n", dangling, "instruction 0");
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "t 1 3\n", dangling, "trace 3, there are 2");
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "a 8 1000000000000000\n", dangling,
                         "trace 1152921504606846976");
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "a 8 1\n+ 1\n", dangling, "kind of allocation 1");
}

static void records_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    profile_refuses_text("b.heaptrack", HEAD NAMES STACKS "a 8 1\n- 0\n", COFFER_E_INCONSISTENT,
                         "no block is live");
    profile_refuses_text("b.heaptrack", HEAD "q 1\n", COFFER_E_BAD_VALUE, "line 4: unknown record 'q'");
    profile_refuses_text("b.heaptrack", HEAD "c xyz\n", COFFER_E_BAD_VALUE, "'c'");
    profile_refuses_text("b.heaptrack", HEAD "t 1\n", COFFER_E_BAD_VALUE, "line 4");
    profile_refuses_text("b.heaptrack", HEAD "c 11111111111111111\n", COFFER_E_BAD_VALUE, "'c'");
    profile_refuses_text("b.heaptrack", HEAD "c ffffffffffffffff\n", COFFER_E_OUT_OF_BOUNDS, "microseconds");
    profile_refuses_text("b.heaptrack", "v 20000 4\n", COFFER_E_UNSUPPORTED_VERSION, "format 4");
    profile_refuses_text("b.heaptrack", "v 10400 2\nm a ffffffffffffff00 80 100\n", COFFER_E_OUT_OF_BOUNDS,
                         "segment");
}

static void a_file_that_breaks_off_is_taken_only_when_asked_for(void **state)
{
    (void)state;
    profile_refuses_text("cut.heaptrack", HEAD NAMES STACKS "a 64 2\n+ 0\n+ 0\n- ", COFFER_E_TRUNCATED,
                         "is truncated");
    profile_must("cut.heaptrack", "cut.mlyze", "partial", NULL, NULL);
    profile_expect("cut.mlyze", 2, 200, 200, 200);
}

static void packed_files_are_read_and_a_cut_in_them_too(void **state)
{
    (void)state;
    static const char *const ends[] = { "gz", "zst" };
    profile_sample("s.mlyze", 60000);
    for (size_t i = 0; i < 2; i++) {
        char name[32], cut[32];
        size_t len;
        snprintf(name, sizeof name, "s.heaptrack.%s", ends[i]);
        snprintf(cut, sizeof cut, "cut.heaptrack.%s", ends[i]);
        profile_must("s.mlyze", name, NULL);
        profile_must(name, "back.mlyze", NULL);
        profile_same("s.mlyze", "back.mlyze", "peak");
        uint8_t *bytes = temp_read(temp_path(temp_folder, name), &len);
        assert_int_not_equal(coffer__packing_of(bytes, len), COFFER__PACKING_NONE);
        profile_refuses(cut, bytes, len - 30, COFFER_E_TRUNCATED, "ends too early");
        profile_must(cut, "part.mlyze", "partial", NULL, NULL);
        bytes[len / 2] ^= 0x55;
        temp_write(temp_path(temp_folder, cut), bytes, len);
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_not_equal(profile_convert(&err, NULL, cut, "damaged.mlyze", NULL), COFFER_OK);
        assert_false(temp_exists(temp_path(temp_folder, "damaged.mlyze")));
        free(bytes);
    }
}

static void a_stack_of_a_million_frames_is_bounded_by_the_limit(void **state)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    coffer__buffer_printf(&text, HEAD "s f\ni 1 0 1\n");
    for (unsigned i = 0; i < 100000; i++)
        coffer__buffer_printf(&text, "t 1 %x\na 1 %x\n", i, i + 1);
    temp_write(temp_path(temp_folder, "deep.heaptrack"), text.data, text.len);
    coffer__buffer_free(&text);
    limits.entries = 1 << 20;
    assert_int_equal(profile_convert(&err, &limits, "deep.heaptrack", "deep.mlyze", NULL), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "frames"));
}

static void totals_stacks_and_sums_survive_the_way_there_and_back(void **state)
{
    (void)state;
    static const char *const what[] = { "peak", "leaks", "total" };
    profile_sample("s.mlyze", 20000);
    profile_must("s.mlyze", "s.heaptrack", NULL);
    profile_must("s.heaptrack", "back.mlyze", NULL);
    coffer_mlyze_totals before = profile_totals("s.mlyze"), after = profile_totals("back.mlyze");
    assert_int_equal(before.allocs, after.allocs);
    assert_int_equal(before.frees, after.frees);
    assert_int_equal(before.total_allocated_bytes, after.total_allocated_bytes);
    assert_int_equal(before.peak_bytes, after.peak_bytes);
    assert_int_equal(before.live_bytes_at_end, after.live_bytes_at_end);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        profile_same("s.mlyze", "back.mlyze", what[i]);
}

static void only_a_version_line_makes_it_a_heaptrack_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
    } heads[] = {
        { "v 10400 3\nX", true }, { "v 10200\n", true },    { "v 1 3\n", false }, { "v 10400 3", false },
        { "v 10400 z\n", false }, { "version 3\n", false }, { "", false }
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(coffer__heaptrack_probe((const uint8_t *)heads[i].text, strlen(heads[i].text)),
                         heads[i].is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interpreted_file_gives_every_event),
        cmocka_unit_test(strings_have_a_length_in_format_3),
        cmocka_unit_test(inlined_frames_are_inside_their_caller),
        cmocka_unit_test(a_command_of_several_lines_is_read_to_its_end),
        cmocka_unit_test(a_raw_file_keeps_addresses_as_names),
        cmocka_unit_test(modules_that_are_forgotten_name_nothing),
        cmocka_unit_test(the_first_format_has_pointers_and_names),
        cmocka_unit_test(references_that_lead_nowhere_are_refused),
        cmocka_unit_test(records_that_make_no_sense_are_refused),
        cmocka_unit_test(a_file_that_breaks_off_is_taken_only_when_asked_for),
        cmocka_unit_test(packed_files_are_read_and_a_cut_in_them_too),
        cmocka_unit_test(a_stack_of_a_million_frames_is_bounded_by_the_limit),
        cmocka_unit_test(totals_stacks_and_sums_survive_the_way_there_and_back),
        cmocka_unit_test(only_a_version_line_makes_it_a_heaptrack_file),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
