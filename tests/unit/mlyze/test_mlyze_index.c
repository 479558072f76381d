/* The index: built, kept, believed only as far as it fits. */
#include "support/trace.h"

#include "base/bytes.h"
#include "base/work.h"
#include "formats/mlyze/mlyze_private.h"

#include <stdlib.h>
#include <string.h>

#define COMPRESSED (COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS)
#define EVENTS 3000
#define PER_BLOCK 100

/* ---- A source that counts what is read of it ---- */

typedef struct counted {
    const trace_builder *of;
    uint64_t reads;
} counted;

static coffer_status counted_read(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    counted *c = context;
    (void)err;
    memcpy(out, c->of->file.data + offset, len);
    c->reads++;
    return COFFER_OK;
}

static coffer_source *counted_source(counted *c, const trace_builder *of)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = counted_read };
    coffer_source *src = NULL;
    *c = (counted){ .of = of };
    assert_int_equal(coffer_source_new(&src, &ops, c, of->file.len, "counted", NULL), COFFER_OK);
    return src;
}

static trace_builder built;

static const char *index_path(void)
{
    return temp_path(temp_folder, "a.mlyze.idx");
}

/* Asks for the index with the file at its path, and gives a copy; free(). */
static coffer_mlyze_index_entry *ask(size_t *count, const char *path)
{
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, path);
    assert_int_equal(coffer_mlyze_load_index(count, trace, NULL, NULL), COFFER_OK);
    coffer_mlyze_index_entry *copy = malloc((*count + 1) * sizeof *copy);
    for (size_t i = 0; i < *count; i++)
        copy[i] = *coffer_mlyze_index_at(trace, i);
    assert_null(coffer_mlyze_index_at(trace, *count));
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return copy;
}

/* Events are found in the blocks that hold them, by number and by time. */
static void assert_finds_right(const char *path)
{
    coffer_source *src = trace_source(&built);
    for (uint64_t event = 0; event < EVENTS; event += 33) {
        coffer_mlyze *trace = trace_open(src, path);
        coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
        size_t found = 0;
        assert_int_equal(coffer_mlyze_block_of_event(&found, trace, event, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_read_block(&events, trace, found, NULL), COFFER_OK);
        assert_in_range(event, events.first, events.first + events.count - 1);
        uint64_t time = events.time[event - events.first];
        assert_int_equal(coffer_mlyze_block_of_time(&found, trace, time, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_read_block(&events, trace, found, NULL), COFFER_OK);
        assert_true(events.first <= event && events.time[events.count - 1] >= time);
        coffer_mlyze_events_free(&events);
        coffer_mlyze_close(trace);
    }
    coffer_source_close(src);
}

/* Whatever file is at the path of the index, blocks and events are read as they are in the trace. */
static void assert_reads_right(const char *path)
{
    coffer_source *src = trace_source(&built);
    coffer_mlyze *plain = trace_open(src, NULL), *trace = trace_open(src, path);
    coffer_mlyze_events expected = trace_read_all(plain), events = COFFER_MLYZE_EVENTS_INIT;
    size_t blocks = 0, at = 0;
    assert_int_equal(coffer_mlyze_block_count(&blocks, plain, NULL), COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        assert_int_equal(coffer_mlyze_read_block(&events, trace, i, NULL), COFFER_OK);
        assert_int_equal(events.first, at);
        assert_memory_equal(events.time, expected.time + at, events.count * sizeof(uint64_t));
        assert_memory_equal(events.address, expected.address + at, events.count * sizeof(uint64_t));
        at += events.count;
    }
    assert_int_equal(at, expected.count);
    coffer_mlyze_events_free(&events);
    trace_columns_free(&expected);
    coffer_mlyze_close(plain);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

static int setup(void **state)
{
    trace_sample(&built, COMPRESSED, EVENTS, PER_BLOCK);
    return temp_setup(state);
}

static int teardown(void **state)
{
    trace_dispose(&built);
    return temp_teardown(state);
}

/* ---- Content of the index ---- */

static void an_index_has_the_live_bytes_before_each_block(void **state)
{
    size_t count = 0;
    uint64_t addresses[128], sizes[128], live = 0, bytes = 0;
    (void)state;
    coffer_mlyze_index_entry *entries = ask(&count, NULL);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    assert_int_equal(count, EVENTS / PER_BLOCK);
    for (size_t i = 0; i < count; i++) {
        uint64_t high = bytes;
        assert_int_equal(entries[i].first_event, i * PER_BLOCK);
        assert_int_equal(entries[i].live_bytes, bytes);
        assert_int_equal(entries[i].live_allocs, live);
        for (size_t j = i * PER_BLOCK; j < (i + 1) * PER_BLOCK; j++) {
            if (all.type[j] == COFFER_MLYZE_ALLOC) {
                addresses[live] = all.address[j];
                bytes += sizes[live++] = all.size[j];
            }
            for (size_t k = 0; all.type[j] == COFFER_MLYZE_FREE && k < live; k++) {
                if (addresses[k] == all.address[j]) {
                    bytes -= sizes[k];
                    addresses[k] = addresses[--live];
                    sizes[k] = sizes[live];
                    break;
                }
            }
            high = bytes > high ? bytes : high;
        }
        assert_int_equal(entries[i].high_bytes, high);
    }
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    free(entries);
}

static void an_index_that_was_built_is_kept_and_used(void **state)
{
    size_t count = 0, blocks = 0;
    counted c;
    (void)state;
    coffer_mlyze_index_entry *first = ask(&count, index_path());
    assert_true(temp_exists(index_path()));
    temp_assert_only(temp_folder, "a.mlyze.idx", NULL);
    coffer_source *src = counted_source(&c, &built);
    coffer_mlyze *trace = trace_open(src, index_path());
    uint64_t reads = c.reads;
    assert_int_equal(coffer_mlyze_block_count(&blocks, trace, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_load_index(&count, trace, NULL, NULL), COFFER_OK);
    assert_int_equal(blocks, EVENTS / PER_BLOCK);
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(coffer_mlyze_index_at(trace, i), &first[i], sizeof *first);
    assert_true(c.reads - reads <= 20); /* a few headers, to see that it fits */
    for (size_t i = 0; i < blocks; i++) {
        coffer_mlyze_block block = trace_block(trace, i);
        assert_int_equal(block.event_count, PER_BLOCK);
        assert_true(block.raw_size > 0 && block.stored_size > 0);
    }
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    free(first);
    assert_reads_right(index_path());
}

static void a_plain_trace_has_an_index_too(void **state)
{
    size_t count = 0, again = 0;
    trace_builder compressed = built;
    (void)state;
    trace_sample(&built, 0, 20000, 0);
    coffer_mlyze_index_entry *first = ask(&count, index_path());
    coffer_mlyze_index_entry *second = ask(&again, index_path());
    assert_true(count > 1);
    assert_int_equal(count, again);
    assert_memory_equal(first, second, count * sizeof *first);
    free(first);
    free(second);
    trace_dispose(&built);
    built = compressed;
}

static void an_index_that_cannot_be_kept_is_not_a_failure(void **state)
{
    size_t count = 0;
    (void)state;
    free(ask(&count, temp_path(temp_folder, "no such folder/a.idx")));
    assert_int_equal(count, EVENTS / PER_BLOCK);
}

/* ---- An index that does not match ---- */

/* Changes a kept index by `change`; then everything must be as without it. */
static void assert_survives(void (*change)(uint8_t *bytes, size_t *len), bool rebuilt)
{
    size_t count = 0, len = 0;
    temp_empty(temp_folder);
    coffer_mlyze_index_entry *right = ask(&count, index_path());
    uint8_t *bytes = temp_read(index_path(), &len);
    uint8_t *original = malloc(len);
    size_t original_len = len;
    memcpy(original, bytes, len);
    change(bytes, &len);
    temp_write(index_path(), bytes, len);
    assert_reads_right(index_path());
    assert_finds_right(index_path());
    if (rebuilt) {
        size_t again = 0;
        coffer_mlyze_index_entry *now = ask(&again, index_path());
        assert_int_equal(again, count);
        assert_memory_equal(now, right, count * sizeof *now);
        assert_true(temp_holds(index_path(), original, original_len));
        free(now);
    }
    free(original);
    free(bytes);
    free(right);
}

static uint8_t *entry_of(uint8_t *bytes, size_t index)
{
    return bytes + COFFER__MLYZE_INDEX_HEADER + index * COFFER__MLYZE_INDEX_ENTRY;
}

static void cut_it(uint8_t *bytes, size_t *len)
{
    (void)bytes;
    *len -= 20;
}

static void empty_it(uint8_t *bytes, size_t *len)
{
    (void)bytes;
    *len = 0;
}

static void drop_last_entry(uint8_t *bytes, size_t *len)
{
    coffer__store_u32(bytes + 20, coffer__load_u32(bytes + 20) - 1);
    *len -= COFFER__MLYZE_INDEX_ENTRY;
}

static void say_no_entries(uint8_t *bytes, size_t *len)
{
    coffer__store_u32(bytes + 20, 0);
    *len = COFFER__MLYZE_INDEX_HEADER;
}

static void say_many_entries(uint8_t *bytes, size_t *len)
{
    (void)len;
    coffer__store_u32(bytes + 20, UINT32_MAX);
}

static void other_trace_size(uint8_t *bytes, size_t *len)
{
    (void)len;
    bytes[8] ^= 1;
}

static void other_header_sum(uint8_t *bytes, size_t *len)
{
    (void)len;
    bytes[16] ^= 1;
}

static void other_version(uint8_t *bytes, size_t *len)
{
    (void)len;
    bytes[4] = 2;
}

static void swap_entries(uint8_t *bytes, size_t *len)
{
    uint8_t keep[COFFER__MLYZE_INDEX_ENTRY];
    (void)len;
    memcpy(keep, entry_of(bytes, 3), sizeof keep);
    memcpy(entry_of(bytes, 3), entry_of(bytes, 4), sizeof keep);
    memcpy(entry_of(bytes, 4), keep, sizeof keep);
}

static void offset_past_the_end(uint8_t *bytes, size_t *len)
{
    (void)len;
    coffer__store_u64(entry_of(bytes, EVENTS / PER_BLOCK - 1), UINT64_MAX - 3);
}

static void every_event_number_moved(uint8_t *bytes, size_t *len)
{
    (void)len;
    for (size_t i = 1; i < EVENTS / PER_BLOCK; i++)
        coffer__store_u64(entry_of(bytes, i) + 8, i * PER_BLOCK + 1);
}

static void an_index_that_does_not_fit_is_built_again(void **state)
{
    (void)state;
    assert_survives(cut_it, true);
    assert_survives(empty_it, true);
    assert_survives(drop_last_entry, true);
    assert_survives(say_no_entries, true);
    assert_survives(say_many_entries, true);
    assert_survives(other_trace_size, true);
    assert_survives(other_header_sum, true);
    assert_survives(other_version, true);
    assert_survives(swap_entries, true);
    assert_survives(offset_past_the_end, true);
    assert_survives(every_event_number_moved, true);
}

/* One entry between those whose blocks are looked at beforehand. */
static void lie_about_an_offset(uint8_t *bytes, size_t *len)
{
    (void)len;
    coffer__store_u64(entry_of(bytes, 7), coffer__load_u64(entry_of(bytes, 7)) + 1);
}

static void lie_about_a_number(uint8_t *bytes, size_t *len)
{
    (void)len;
    coffer__store_u64(entry_of(bytes, 7) + 8, 7 * PER_BLOCK + 1);
}

static void lie_about_a_time(uint8_t *bytes, size_t *len)
{
    (void)len;
    coffer__store_u64(entry_of(bytes, 7) + 16, coffer__load_u64(entry_of(bytes, 7) + 16) + 1);
}

static void an_index_that_is_wrong_about_one_block_is_ignored(void **state)
{
    (void)state;
    assert_survives(lie_about_an_offset, false);
    assert_survives(lie_about_a_number, false);
    assert_survives(lie_about_a_time, false);
}

typedef struct readers {
    const coffer_mlyze *trace;
    coffer_mlyze_events columns[4];
    atomic_uint_fast64_t events;
} readers;

static coffer_status read_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    readers *all = context;
    coffer_status status = coffer_mlyze_read_block(&all->columns[worker], all->trace, (size_t)index, err);
    if (status == COFFER_OK && all->columns[worker].first == index * PER_BLOCK)
        all->events += all->columns[worker].count;
    return status;
}

static void many_threads_read_one_trace_while_its_index_turns_out_to_be_wrong(void **state)
{
    size_t count = 0, len = 0;
    coffer__pool *pool = NULL;
    (void)state;
    free(ask(&count, index_path()));
    uint8_t *bytes = temp_read(index_path(), &len);
    lie_about_an_offset(bytes, &len);
    temp_write(index_path(), bytes, len);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, index_path());
    readers all = { .trace = trace };
    assert_int_equal(coffer__pool_new(&pool, 4, NULL), COFFER_OK);
    assert_int_equal(coffer__pool_run(pool, count, read_one, &all, NULL), COFFER_OK);
    assert_int_equal(all.events, EVENTS);
    coffer__pool_free(pool);
    for (size_t i = 0; i < 4; i++)
        coffer_mlyze_events_free(&all.columns[i]);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    free(bytes);
}

static void the_index_of_a_damaged_trace_covers_what_is_whole(void **state)
{
    size_t count = 0, again = 0, len = built.file.len;
    (void)state;
    built.file.len -= 30;
    coffer_mlyze_index_entry *first = ask(&count, index_path());
    coffer_mlyze_index_entry *second = ask(&again, index_path());
    assert_int_equal(count, EVENTS / PER_BLOCK);
    assert_int_equal(again, count);
    assert_memory_equal(first, second, count * sizeof *first);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, index_path());
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mlyze_damage(trace, &err), COFFER_E_TRUNCATED);
    assert_non_null(strstr(err.text, "whole events before the cut"));
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    free(first);
    free(second);
    built.file.len = len;
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return 1;
}

static void building_can_be_cancelled(void **state)
{
    coffer_progress progress = { sizeof progress, stop_at_once, NULL };
    coffer_mlyze_index_opts opts = COFFER_MLYZE_INDEX_OPTS_INIT;
    size_t count = 0;
    (void)state;
    opts.progress = &progress;
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, index_path());
    assert_int_equal(coffer_mlyze_load_index(&count, trace, &opts, NULL), COFFER_E_CANCELLED);
    assert_null(coffer_mlyze_index_at(trace, 0));
    temp_assert_only(temp_folder, NULL);
    assert_int_equal(coffer_mlyze_load_index(&count, trace, NULL, NULL), COFFER_OK);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_has_the_live_bytes_before_each_block, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_that_was_built_is_kept_and_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plain_trace_has_an_index_too, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_that_cannot_be_kept_is_not_a_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_that_does_not_fit_is_built_again, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_that_is_wrong_about_one_block_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_read_one_trace_while_its_index_turns_out_to_be_wrong,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_index_of_a_damaged_trace_covers_what_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(building_can_be_cancelled, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
