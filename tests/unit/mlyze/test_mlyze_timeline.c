#include "support/trace_model.h"

#define BLOCKS (COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS)

static coffer_mlyze_timeline *draw(const coffer_mlyze *trace, const coffer_mlyze_timeline_opts *opts)
{
    coffer_mlyze_timeline *timeline = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mlyze_timeline_new(&timeline, trace, opts, &err))
        fail_msg("%s", err.text);
    return timeline;
}

/* The point of a time, by the definition: the last one that begins at or before it. */
static size_t point_of(const coffer_mlyze_timeline *timeline, uint64_t time)
{
    size_t point = 0;
    while (point + 1 < coffer_mlyze_timeline_count(timeline) &&
           coffer_mlyze_timeline_at(timeline, point + 1)->time_us <= time)
        point++;
    return point;
}

/* Follows the events one by one and compares each point when it is over. */
static void assert_points(const coffer_mlyze_timeline *timeline, const model_trace *model)
{
    coffer_mlyze_point *points = calloc(coffer_mlyze_timeline_count(timeline), sizeof *points);
    uint64_t *sizes = calloc((size_t)model->addresses + 1, sizeof *sizes), live = 0, allocs = 0;
    bool *is_live = calloc((size_t)model->addresses + 1, sizeof *is_live);
    size_t at = 0;
    bool begun = false;
    for (size_t i = 0; i < model->count; i++) {
        const model_event *event = &model->events[i];
        uint64_t place = event->address / MODEL_STRIDE;
        if (event->time > coffer_mlyze_timeline_end_us(timeline))
            break;
        bool inside = event->time >= coffer_mlyze_timeline_begin_us(timeline);
        size_t point = inside ? point_of(timeline, event->time) : 0;
        for (; inside && (!begun || at < point); begun = true) {
            at += begun;
            points[at].high_bytes = live;
        }
        if (event->type == COFFER_MLYZE_ALLOC) {
            points[at].allocs += inside;
            points[at].allocated_bytes += inside ? event->size : 0;
        }
        if (event->type <= COFFER_MLYZE_FREE && place > 0) {
            live -= is_live[place] ? sizes[place] : 0;
            allocs -= is_live[place];
            is_live[place] = event->type == COFFER_MLYZE_ALLOC;
            sizes[place] = event->size;
            live += is_live[place] ? event->size : 0;
            allocs += is_live[place];
        }
        if (!inside)
            continue;
        points[at].events++;
        points[at].high_bytes = live > points[at].high_bytes ? live : points[at].high_bytes;
        points[at].live_bytes = live;
        points[at].live_allocs = allocs;
    }
    for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        if (points[i].events == 0 && i > 0) { /* nothing happened: as at the end of the point before */
            points[i].live_bytes = points[i].high_bytes = points[i - 1].live_bytes;
            points[i].live_allocs = points[i - 1].live_allocs;
        }
        MODEL_SAME(point, &points[i], events);
        MODEL_SAME(point, &points[i], allocs);
        MODEL_SAME(point, &points[i], allocated_bytes);
        MODEL_SAME(point, &points[i], live_bytes);
        MODEL_SAME(point, &points[i], live_allocs);
        MODEL_SAME(point, &points[i], high_bytes);
    }
    free(points);
    free(sizes);
    free(is_live);
}

static void an_exact_timeline_is_what_the_events_say(void **state)
{
    (void)state;
    static const model_kind kind = { 20000, 500, 7, 2, BLOCKS, 333, false };
    model_trace model;
    coffer_limits limits = COFFER_LIMITS_INIT;
    model_trace_new(&model, &kind, 9);
    coffer_source *src = trace_source(&model.built);
    coffer_mlyze *trace = trace_open(src, NULL);
    for (uint32_t round = 0; round < 8; round++) {
        coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
        opts.exact = true;
        opts.width = 1 + round * 37;
        opts.threads = 1 + round % 3;
        opts.limits = &limits;
        if (round % 2) {
            opts.begin_us = 5000;
            opts.end_us = 60000;
        }
        coffer_mlyze_timeline *timeline = draw(trace, &opts);
        assert_true(coffer_mlyze_timeline_is_exact(timeline));
        assert_int_equal(coffer_mlyze_timeline_count(timeline), opts.width);
        assert_int_equal(coffer_mlyze_timeline_end_us(timeline),
                         round % 2 ? 60000 : model.events[model.count - 1].time);
        assert_points(timeline, &model);
        for (size_t i = 0; i < coffer_mlyze_timeline_mark_count(timeline); i++)
            assert_in_range(coffer_mlyze_timeline_mark_at(timeline, i)->time_us,
                            coffer_mlyze_timeline_begin_us(timeline), coffer_mlyze_timeline_end_us(timeline));
        assert_true(coffer_mlyze_timeline_mark_count(timeline) > 0);
        coffer_mlyze_timeline_free(timeline);
    }
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    model_trace_free(&model);
}

static void a_timeline_of_little_has_few_points(void **state)
{
    (void)state;
    trace_builder built;
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    trace_begin(&built, 0, NULL);
    trace_finish(&built);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    timeline = draw(trace, NULL);
    assert_int_equal(coffer_mlyze_timeline_count(timeline), 0);
    coffer_mlyze_timeline_free(timeline);
    timeline = NULL;
    opts.width = 0;
    assert_int_equal(coffer_mlyze_timeline_new(&timeline, trace, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_null(timeline);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);

    trace_begin(&built, 0, NULL);
    trace_alloc(&built, 3, 16, 77, 0, 1);
    trace_free(&built, 2, 16);
    trace_finish(&built);
    src = trace_source(&built);
    trace = trace_open(src, NULL);
    timeline = draw(trace, NULL);
    assert_int_equal(coffer_mlyze_timeline_count(timeline), 6); /* microseconds 0 to 5 */
    assert_int_equal(coffer_mlyze_timeline_at(timeline, 2)->live_bytes, 0);
    assert_int_equal(coffer_mlyze_timeline_at(timeline, 3)->live_bytes, 77);
    assert_int_equal(coffer_mlyze_timeline_at(timeline, 5)->live_bytes, 0);
    assert_int_equal(coffer_mlyze_timeline_at(timeline, 5)->high_bytes, 77);
    coffer_mlyze_timeline_free(timeline);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

/* ---- From the index ---- */

typedef struct counted {
    const trace_builder *built;
    uint64_t event_bytes; /* read from where the events are */
} counted;

static coffer_status read_counted(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    counted *from = context;
    (void)err;
    if (offset + len > from->built->area)
        from->event_bytes += len;
    memcpy(out, from->built->file.data + offset, len);
    return COFFER_OK;
}

static const char marked_tables[] =
    "{\"stack_traces\": {}, \"files\": {}, \"functions\": {\"0\": \"zero\", \"1\": \"one\", \"2\": \"two\"}, "
    "\"markers\": [[500, 40, 1], [\"bad\"], [7000, 900, 2]], \"collections\": [[600, 50]]}";

static coffer_source *counting_source(counted *from)
{
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_counted };
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_new(&src, &ops, from, from->built->file.len, "counted", NULL), COFFER_OK);
    return src;
}

static void with_an_index_no_event_is_read(void **state)
{
    (void)state;
    trace_builder built;
    counted from = { .built = &built };
    char *folder = temp_make();
    const char *index = temp_path(folder, "trace.mlyze.idx");
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    opts.width = 50;
    trace_begin(&built, BLOCKS, marked_tables);
    for (uint64_t i = 0; i < 20000; i++) {
        trace_alloc(&built, i % 4 == 0, 16 * (i + 1), 10, 0, 1);
        if (i % 100 == 99)
            trace_end_block(&built, true);
    }
    trace_finish(&built);
    for (int round = 0; round < 2; round++) {
        coffer_source *src = counting_source(&from);
        coffer_mlyze *trace = trace_open(src, index);
        from.event_bytes = 0;
        coffer_mlyze_timeline *timeline = draw(trace, &opts);
        if (round == 1) /* some headers of blocks, to see whether the index is right; that is all */
            assert_in_range(from.event_bytes, 0, 1000);
        assert_false(coffer_mlyze_timeline_is_exact(timeline));
        assert_int_equal(coffer_mlyze_timeline_count(timeline), 50);
        uint64_t events = 0;
        for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
            const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
            events += point->events;
            assert_true(point->high_bytes >= point->live_bytes);
            /* 40 bytes a microsecond, within the 1000 of a block */
            uint64_t end = i + 1 < coffer_mlyze_timeline_count(timeline)
                               ? coffer_mlyze_timeline_at(timeline, i + 1)->time_us
                               : coffer_mlyze_timeline_end_us(timeline);
            assert_in_range(point->live_bytes + 1500, end * 40, end * 40 + 3000);
            assert_int_equal(point->live_allocs * 10, point->live_bytes);
        }
        assert_int_equal(events, 20000);
        assert_int_equal(coffer_mlyze_timeline_mark_count(timeline), 3);
        assert_int_equal(coffer_mlyze_timeline_mark_at(timeline, 0)->id, 1);
        assert_int_equal(coffer_mlyze_timeline_mark_at(timeline, 0)->live_bytes, 5000);
        assert_int_equal(coffer_mlyze_timeline_mark_at(timeline, 1)->type, COFFER_MLYZE_GC);
        assert_int_equal(coffer_mlyze_timeline_mark_at(timeline, 2)->event, 7000);
        coffer_mlyze_timeline_free(timeline);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
    }
    trace_dispose(&built);
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_timeline_is_what_the_events_say),
        cmocka_unit_test(a_timeline_of_little_has_few_points),
        cmocka_unit_test(with_an_index_no_event_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
