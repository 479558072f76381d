/* Traces that are written say what was added, whichever way the events came. */
#include "support/trace.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 30000 };

typedef struct rows {
    uint64_t time[MANY], address[MANY], size[MANY], id[MANY];
    uint16_t thread[MANY];
    uint8_t type[MANY];
} rows;

static rows *many; /* filled once: all lengths of varints, all common types */

static uint64_t random_bits(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (*state ^ *state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t random_length(uint64_t *state)
{
    unsigned bits = (unsigned)(random_bits(state) % 65);
    return bits == 0 ? 0 : random_bits(state) >> (64 - bits);
}

static void fill_row(size_t i, uint64_t *state)
{
    uint64_t choice = random_bits(state) % 100;
    rows *r = many;
    r->time[i] = i == 0 ? 5 : r->time[i - 1] + (random_length(state) >> 24) % 100000;
    r->type[i] = choice < 55   ? COFFER_MLYZE_ALLOC
                 : choice < 96 ? COFFER_MLYZE_FREE
                 : choice < 98 ? COFFER_MLYZE_GC
                               : COFFER_MLYZE_MARKER;
    r->address[i] = r->size[i] = r->id[i] = r->thread[i] = 0;
    if (r->type[i] <= COFFER_MLYZE_FREE)
        r->address[i] = random_bits(state);
    if (r->type[i] == COFFER_MLYZE_ALLOC)
        r->thread[i] = (uint16_t)random_bits(state);
    if (r->type[i] == COFFER_MLYZE_ALLOC || r->type[i] == COFFER_MLYZE_GC)
        r->size[i] = random_length(state);
    if (r->type[i] != COFFER_MLYZE_FREE)
        r->id[i] = random_length(state);
}

static int setup_group(void **state)
{
    uint64_t seed = 1;
    many = malloc(sizeof *many);
    for (size_t i = 0; i < MANY; i++)
        fill_row(i, &seed);
    return temp_setup(state);
}

static int teardown_group(void **state)
{
    free(many);
    return temp_teardown(state);
}

static coffer_mlyze_events columns_of(rows *from, size_t first, size_t count)
{
    coffer_mlyze_events events = { .first = first,
                                   .count = count,
                                   .time = from->time + first,
                                   .address = from->address + first,
                                   .size = from->size + first,
                                   .id = from->id + first,
                                   .thread = from->thread + first,
                                   .type = from->type + first };
    return events;
}

static coffer_mlyze_writer_opts quiet(void)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.no_index = true;
    return opts;
}

static coffer_mlyze_writer *create(const char *path, const coffer_mlyze_writer_opts *opts)
{
    coffer_mlyze_writer *writer = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_writer_opts replacing = COFFER_MLYZE_WRITER_OPTS_INIT;
    replacing.overwrite = true;
    if (coffer_mlyze_writer_create(&writer, path, opts ? opts : &replacing, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return writer;
}

static void commit(coffer_mlyze_writer *writer)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mlyze_writer_commit(writer, &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

typedef struct opened {
    coffer_source *src;
    coffer_mlyze *trace;
} opened;

static opened open_trace(const char *path)
{
    opened it = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_open(&it.src, path, NULL, NULL), COFFER_OK);
    if (coffer_mlyze_open(&it.trace, it.src, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return it;
}

static void close_trace(opened *it)
{
    coffer_mlyze_close(it->trace);
    coffer_source_close(it->src);
}

static void expect_rows(const char *path, rows *expected, size_t count)
{
    opened it = open_trace(path);
    coffer_mlyze_events got = trace_read_all(it.trace);
    assert_int_equal(got.count, count);
    assert_memory_equal(got.time, expected->time, count * sizeof *got.time);
    assert_memory_equal(got.address, expected->address, count * sizeof *got.address);
    assert_memory_equal(got.size, expected->size, count * sizeof *got.size);
    assert_memory_equal(got.id, expected->id, count * sizeof *got.id);
    assert_memory_equal(got.thread, expected->thread, count * sizeof *got.thread);
    assert_memory_equal(got.type, expected->type, count);
    trace_columns_free(&got);
    close_trace(&it);
}

/* ---- Events ---- */

static void write_many(const char *path, const coffer_mlyze_writer_opts *opts, size_t at_once)
{
    coffer_mlyze_writer *writer = create(path, opts);
    for (size_t done = 0; done < MANY; done += at_once) {
        coffer_mlyze_events part = columns_of(many, done, MANY - done < at_once ? MANY - done : at_once);
        assert_int_equal(coffer_mlyze_writer_put_events(writer, &part, NULL), COFFER_OK);
    }
    commit(writer);
}

static void what_is_written_is_read_back_plain_fast_and_at_every_level(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    (void)state;
    opts.plain = true;
    write_many(path, &opts, MANY);
    expect_rows(path, many, MANY);
    opts.plain = false;
    for (opts.level = 0; opts.level <= 12; opts.level += 3) {
        write_many(path, &opts, MANY);
        expect_rows(path, many, MANY);
    }
}

static void the_bytes_do_not_depend_on_how_the_events_were_handed_over(void **state)
{
    const char *a = temp_path(temp_folder, "a.mlyze"), *b = temp_path(temp_folder, "b.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        size_t len;
        opts.plain = plain;
        write_many(a, &opts, MANY);
        write_many(b, &opts, 1);
        uint8_t *bytes = temp_read(a, &len);
        assert_true(temp_holds(b, bytes, len));
        free(bytes);
    }
}

static void single_events_are_what_their_names_say(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer *writer = create(path, NULL);
    static rows expected = { { 1, 1, 7, 7 },
                             { UINT64_MAX, UINT64_MAX, 0, 0 },
                             { UINT64_MAX, 0, 300, 0 },
                             { 0, 0, 200, 0 },
                             { 65535 },
                             { COFFER_MLYZE_ALLOC, COFFER_MLYZE_FREE, COFFER_MLYZE_GC,
                               COFFER_MLYZE_MARKER } };
    uint64_t stack, name;
    coffer_mlyze_frame frame = { 0, 12, 0 };
    (void)state;
    assert_int_equal(coffer_mlyze_writer_add_call(&stack, writer, COFFER_MLYZE_NO_STACK, &frame, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_function(&name, writer, "phase", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_alloc(writer, 1, UINT64_MAX, UINT64_MAX, stack, 65535, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_free(writer, 1, UINT64_MAX, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_gc(writer, 7, 200, 300, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_marker(writer, 3, name, NULL),
                     COFFER_OK); /* time does not go back */
    commit(writer);
    expect_rows(path, &expected, 4);
}

static void extension_events_are_written_and_announced(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    static rows all = { { 0, 1, 2, 3, 4, 4, 4, 200 },
                        { 0, 0x1000, 0x1000, 0, 0, 0, 0, 0 },
                        { 0, 56, 0x2000, 1, 0, 0, 1 << 20, 0 },
                        { 9, 1, 2, 9, 3, 3, 0, 0 },
                        { 0, 0, 0, 0, 7, 0, 0, 0 },
                        { COFFER_MLYZE_SNAPSHOT, COFFER_MLYZE_OBJECT, COFFER_MLYZE_REFERENCE,
                          COFFER_MLYZE_SNAPSHOT, COFFER_MLYZE_THREAD, COFFER_MLYZE_MARKER, COFFER_MLYZE_RSS,
                          COFFER_MLYZE_FREE } };
    coffer_mlyze_events events = columns_of(&all, 0, 8);
    coffer_mlyze_writer *writer = create(path, NULL);
    (void)state;
    assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, NULL), COFFER_OK);
    commit(writer);
    expect_rows(path, &all, 8);
    opened it = open_trace(path);
    assert_int_equal(coffer_mlyze_flags(it.trace), 31);
    close_trace(&it);
}

static void what_a_trace_cannot_hold_is_refused_and_changes_nothing(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    coffer_error err = COFFER_ERROR_INIT;
    static rows bad = { .type = { COFFER_MLYZE_FREE, COFFER_MLYZE_RSS } }, end = { .size = { 2 } };
    coffer_mlyze_events events = columns_of(&bad, 0, 2);
    (void)state;
    opts.plain = true;
    coffer_mlyze_writer *writer = create(path, &opts);
    assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, &err), COFFER_E_UNSUPPORTED);
    assert_string_equal(err.text, "event 1 is an extension of type 8: a plain trace cannot have it");
    commit(writer);
    expect_rows(path, &bad, 0);

    opts.plain = false;
    writer = create(path, &opts);
    bad.type[1] = 9;
    assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, &err), COFFER_E_UNSUPPORTED);
    end.type[0] = COFFER_MLYZE_SNAPSHOT;
    events = columns_of(&end, 0, 1);
    assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, &err), COFFER_E_INVALID_ARGUMENT);
    commit(writer);
    expect_rows(path, &bad, 0);
    opts.level = 13;
    assert_int_equal(coffer_mlyze_writer_create(&writer, path, &opts, &err), COFFER_E_INVALID_ARGUMENT);
}

static void blocks_hold_whole_events_up_to_the_last_byte_that_fits(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    size_t blocks;
    (void)state;
    write_many(path, &opts, MANY);
    opened it = open_trace(path);
    assert_int_equal(coffer_mlyze_block_count(&blocks, it.trace, NULL), COFFER_OK);
    assert_true(blocks > 3);
    for (size_t i = 0; i + 1 < blocks; i++) {
        coffer_mlyze_block block = trace_block(it.trace, i);
        assert_in_range(block.raw_size, 65536 - 41, 65536);
        assert_true(block.stored_size <= block.raw_size);
    }
    close_trace(&it);
}

/* ---- The header ---- */

static void the_header_says_what_follows(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    size_t len;
    (void)state;
    opts.start_time_us = 1700000000000000;
    write_many(path, &opts, MANY);
    uint8_t *bytes = temp_read(path, &len);
    uint32_t metadata = coffer__load_u32(bytes + 16);
    assert_int_equal(coffer__load_u32(bytes + 4), 1);
    assert_int_equal(coffer__load_u64(bytes + 8), opts.start_time_us);
    assert_int_equal(coffer__load_u32(bytes + 20), 27);
    assert_int_equal(coffer__load_u32(bytes + 24), coffer__crc32(0, bytes + 256, metadata));
    assert_int_equal(coffer__load_u32(bytes + 28),
                     coffer__crc32(coffer__crc32(0, bytes, 28), bytes + 32, 224));
    assert_int_equal(coffer__load_u64(bytes + 32), MANY);
    assert_int_equal(coffer__load_u64(bytes + 40), len - 256 - metadata);
    for (size_t i = 48; i < 256; i++)
        assert_int_equal(bytes[i], 0);
    free(bytes);

    opts.no_checksums = true;
    write_many(path, &opts, MANY);
    bytes = temp_read(path, &len);
    assert_int_equal(coffer__load_u32(bytes + 20), 9);
    assert_int_equal(coffer__load_u64(bytes + 24), 0);
    free(bytes);
}

static void a_plain_trace_says_nothing_past_byte_20(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    (void)state;
    opts.plain = true;
    write_many(path, &opts, MANY);
    uint8_t *bytes = temp_read(path, NULL);
    for (size_t i = 20; i < 256; i++)
        assert_int_equal(bytes[i], 0);
    free(bytes);
}

/* ---- Metadata ---- */

static void extra_keys_markers_and_collections_are_in_the_metadata(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    uint64_t name;
    (void)state;
    opts.extra_json = "{\"command\": [\"a\\u00e9\", \"-x\"], \"pid\": 7}";
    coffer_mlyze_writer *writer = create(path, &opts);
    assert_int_equal(coffer_mlyze_writer_add_function(&name, writer, "load", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_free(writer, 3, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_marker(writer, 8, name, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_put_gc(writer, 9, 1, 2, NULL), COFFER_OK);
    commit(writer);
    opened it = open_trace(path);
    assert_string_equal(coffer_mlyze_metadata(it.trace, NULL),
                        "{\"stack_order\":\"outermost-first\",\"stack_traces\":{},\"files\":{},\"functions\":"
                        "{\"0\":\"load\"},"
                        "\"command\":[\"a\xc3\xa9\",\"-x\"],\"pid\":7,"
                        "\"markers\":[[1,8,0]],\"collections\":[[2,9]]}");
    close_trace(&it);
}

static void extra_keys_that_are_written_anyway_are_refused(void **state)
{
    const char *path = temp_path(temp_folder, "refused.mlyze");
    static const char *const refused[] = { "{\"files\": {}}", "{\"markers\": []}", "[]", "{" };
    coffer_mlyze_writer *writer = NULL;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        coffer_mlyze_writer_opts opts = quiet();
        opts.extra_json = refused[i];
        assert_true(coffer_mlyze_writer_create(&writer, path, &opts, NULL) < 0);
        assert_null(writer);
    }
    assert_false(temp_exists(path));
}

static void only_the_first_ten_thousand_markers_are_listed(void **state)
{
    const char *path = temp_path(temp_folder, "t.mlyze");
    coffer_mlyze_writer *writer = create(path, NULL);
    coffer__json *json = NULL;
    size_t len;
    (void)state;
    for (size_t i = 0; i < 10010; i++)
        assert_int_equal(coffer_mlyze_writer_put_marker(writer, i, 0, NULL), COFFER_OK);
    commit(writer);
    opened it = open_trace(path);
    const char *text = coffer_mlyze_metadata(it.trace, &len);
    assert_int_equal(coffer__json_parse(&json, text, len, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__json_find(coffer__json_root(json), "markers")->as.count, 10000);
    coffer__json_free(json);
    close_trace(&it);
}

/* More than a megabyte of events, and then names. */
static void write_large(const char *path, const coffer_mlyze_writer_opts *opts, size_t names)
{
    coffer_mlyze_writer *writer = create(path, opts);
    coffer_mlyze_events events = columns_of(many, 0, MANY);
    for (int i = 0; i < 4; i++)
        assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, NULL), COFFER_OK);
    for (size_t i = 0; i < names; i++) {
        char name[64];
        uint64_t id;
        snprintf(name, sizeof name, "a function with the number %zu", i);
        assert_int_equal(coffer_mlyze_writer_add_function(&id, writer, name, NULL), COFFER_OK);
    }
    commit(writer);
}

static void metadata_that_comes_after_many_events_finds_room_or_the_events_are_moved(void **state)
{
    static const size_t names[] = { 0, 3, 600, 5000 };
    char *folder = temp_make();
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const char *path = temp_path(folder, "t.mlyze");
            coffer_mlyze_writer_opts opts = quiet();
            coffer_error err = COFFER_ERROR_INIT;
            uint64_t events;
            opts.plain = plain;
            write_large(path, &opts, names[i]);
            opened it = open_trace(path);
            if (coffer_mlyze_damage(it.trace, &err) != COFFER_OK)
                fail_msg("%s", err.text);
            assert_int_equal(coffer_mlyze_event_count(&events, it.trace, NULL), COFFER_OK);
            assert_int_equal(events, 4 * MANY);
            if (names[i] > 0)
                assert_non_null(coffer_mlyze_function_name(it.trace, names[i] - 1));
            assert_null(coffer_mlyze_function_name(it.trace, names[i]));
            close_trace(&it);
        }
    }
    temp_assert_only(folder, "t.mlyze", NULL);
    temp_remove(folder);
}

/* ---- Files ---- */

static void a_trace_does_not_replace_a_file_without_overwrite(void **state)
{
    const char *path = temp_path(temp_folder, "mine.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    coffer_mlyze_writer *writer = NULL;
    (void)state;
    temp_write(path, "mine", 4);
    opts.overwrite = false;
    assert_int_equal(coffer_mlyze_writer_create(&writer, path, &opts, NULL), COFFER_E_EXISTS);
    opts.recording = true;
    assert_int_equal(coffer_mlyze_writer_create(&writer, path, &opts, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(path, "mine", 4));
}

static void what_is_discarded_leaves_nothing(void **state)
{
    char *folder = temp_make();
    coffer_mlyze_writer_opts opts = quiet();
    coffer_mlyze_events events = columns_of(many, 0, MANY);
    (void)state;
    for (int recording = 0; recording < 2; recording++) {
        opts.recording = recording;
        coffer_mlyze_writer *writer = create(temp_path(folder, "t.mlyze"), &opts);
        assert_int_equal(coffer_mlyze_writer_put_events(writer, &events, NULL), COFFER_OK);
        coffer_mlyze_writer_discard(writer);
        temp_assert_only(folder, NULL);
    }
    coffer_mlyze_writer_discard(NULL);
    temp_remove(folder);
}

static void a_recording_ends_as_the_file_that_would_have_been_written(void **state)
{
    char *folder = temp_make();
    const char *a = temp_path(folder, "a.mlyze"), *b = temp_path(folder, "b.mlyze");
    coffer_mlyze_writer_opts opts = quiet();
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        size_t len;
        opts.plain = plain;
        opts.recording = false;
        write_many(a, &opts, 1000);
        opts.recording = true;
        write_many(b, &opts, 1000);
        uint8_t *bytes = temp_read(a, &len);
        assert_true(temp_holds(b, bytes, len));
        free(bytes);
    }
    temp_assert_only(folder, "a.mlyze", "b.mlyze", NULL);
    temp_remove(folder);
}

static void the_index_is_written_beside_the_trace(void **state)
{
    char *folder = temp_make();
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    (void)state;
    write_many(temp_path(folder, "t.mlyze"), &opts, MANY);
    temp_assert_only(folder, "t.mlyze", "t.mlyze.idx", NULL);
    opts.plain = true;
    write_many(temp_path(folder, "p.mlyze"), &opts, MANY);
    temp_assert_only(folder, "t.mlyze", "t.mlyze.idx", "p.mlyze", NULL);
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back_plain_fast_and_at_every_level),
        cmocka_unit_test(the_bytes_do_not_depend_on_how_the_events_were_handed_over),
        cmocka_unit_test(single_events_are_what_their_names_say),
        cmocka_unit_test(extension_events_are_written_and_announced),
        cmocka_unit_test(what_a_trace_cannot_hold_is_refused_and_changes_nothing),
        cmocka_unit_test(blocks_hold_whole_events_up_to_the_last_byte_that_fits),
        cmocka_unit_test(the_header_says_what_follows),
        cmocka_unit_test(a_plain_trace_says_nothing_past_byte_20),
        cmocka_unit_test(extra_keys_markers_and_collections_are_in_the_metadata),
        cmocka_unit_test(extra_keys_that_are_written_anyway_are_refused),
        cmocka_unit_test(only_the_first_ten_thousand_markers_are_listed),
        cmocka_unit_test(metadata_that_comes_after_many_events_finds_room_or_the_events_are_moved),
        cmocka_unit_test(a_trace_does_not_replace_a_file_without_overwrite),
        cmocka_unit_test(what_is_discarded_leaves_nothing),
        cmocka_unit_test(a_recording_ends_as_the_file_that_would_have_been_written),
        cmocka_unit_test(the_index_is_written_beside_the_trace),
    };
    return cmocka_run_group_tests_name("mlyze_write", tests, setup_group, teardown_group);
}
