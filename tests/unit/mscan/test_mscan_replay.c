#include "unit/mscan/mscan_sample.h"

static const char params_json[] = "{\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}";
/* 100 tokens; the second sequence has none. */
static const char sequences_json[] =
    "[{\"sequence_id\": 0, \"num_tokens\": 40}, {\"sequence_id\": 1, \"num_tokens\": 0}, "
    "{\"sequence_id\": 2, \"num_tokens\": 60}]";

typedef enum order { SORTED, UNSORTED } order;

/* Every third token has no record, tokens go past the total, and token 50 has many. */
static void open_scan(sample *out, size_t count, order tokens)
{
    coffer_mscan_record *records = calloc(count + 1, sizeof *records);
    uint64_t seed = 7;
    for (size_t i = 0; i < count; i++) {
        uint64_t random = sample_random(&seed);
        uint32_t token = tokens == SORTED ? (uint32_t)(i * 110 / count) : (uint32_t)(random % 110);
        if (token % 3 == 0)
            token = token < 50 ? token + 1 : 50 > token ? 50 : token;
        if (tokens == SORTED && i > 0 && token < records[i - 1].token_idx)
            token = records[i - 1].token_idx;
        records[i] = (coffer_mscan_record){ token, (uint16_t)(i % 3), (uint16_t)(i / 3 % 5),
                                            (uint16_t)(random >> 20), (uint16_t)i };
    }
    sample_open(out, params_json, sequences_json, records, count);
}

/* Compares a step with all records of the file. */
static void assert_step(const sample *s, const coffer_mscan_step *step, uint64_t token)
{
    size_t found = 0;
    assert_int_equal(step->token, token);
    assert_int_equal(step->sequence, token < 40 ? 0 : 2);
    assert_int_equal(step->position, token < 40 ? token : token - 40);
    for (size_t i = 0; i < s->count; i++) {
        if (s->records[i].token_idx != token)
            continue;
        assert_true(found < step->record_count);
        assert_memory_equal(&step->records[found], &s->records[i], sizeof s->records[i]);
        found++;
    }
    assert_int_equal(step->record_count, found);
    if (found == 0)
        assert_null(step->records);
}

static void walk_everywhere(const sample *s)
{
    coffer_mscan_replay *replay = NULL;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    bool more;
    assert_int_equal(coffer_mscan_replay_new(&replay, s->scan, NULL, NULL), COFFER_OK);
    for (uint64_t token = 0; token < 100; token++) {
        assert_int_equal(coffer_mscan_replay_next(&more, &step, replay, NULL), COFFER_OK);
        assert_true(more);
        assert_step(s, &step, token);
    }
    assert_int_equal(coffer_mscan_replay_next(&more, &step, replay, NULL), COFFER_OK);
    assert_false(more);
    for (uint64_t token = 100; token-- > 0;) {
        assert_int_equal(coffer_mscan_replay_prev(&more, &step, replay, NULL), COFFER_OK);
        assert_true(more);
        assert_step(s, &step, token);
    }
    assert_int_equal(coffer_mscan_replay_prev(&more, &step, replay, NULL), COFFER_OK);
    assert_false(more);
    uint64_t seed = 11;
    for (int i = 0; i < 300; i++) {
        uint64_t token = sample_random(&seed) % 101;
        assert_int_equal(coffer_mscan_replay_seek(replay, token, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_replay_next(&more, &step, replay, NULL), COFFER_OK);
        assert_int_equal(more, token < 100);
        if (more)
            assert_step(s, &step, token);
        assert_int_equal(coffer_mscan_replay_seek(replay, token, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_replay_prev(&more, &step, replay, NULL), COFFER_OK);
        assert_int_equal(more, token > 0);
        if (more)
            assert_step(s, &step, token - 1);
    }
    coffer_mscan_replay_free(replay);
}

static void a_sorted_scan_is_walked_forwards_backwards_and_from_anywhere(void **state)
{
    (void)state;
    sample s;
    open_scan(&s, 5000, SORTED);
    walk_everywhere(&s);
    sample_close(&s);
}

static void an_unsorted_scan_is_walked_the_same_way(void **state)
{
    (void)state;
    sample s;
    open_scan(&s, 5000, UNSORTED);
    walk_everywhere(&s);
    sample_close(&s);
}

static void a_source_that_lends_nothing_gives_the_same_walk(void **state)
{
    (void)state;
    const order orders[] = { SORTED, UNSORTED };
    for (size_t i = 0; i < 2; i++) {
        sample s;
        open_scan(&s, 700, orders[i]);
        sample_reopen_without_view(&s);
        walk_everywhere(&s);
        sample_close(&s);
    }
}

static void a_scan_without_records_still_has_its_tokens(void **state)
{
    (void)state;
    sample s;
    open_scan(&s, 0, SORTED);
    walk_everywhere(&s);
    sample_close(&s);
}

static void a_token_past_the_total_cannot_be_sought_and_nothing_moves(void **state)
{
    (void)state;
    sample s;
    coffer_mscan_replay *replay = NULL;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    bool more;
    coffer_error err = COFFER_ERROR_INIT;
    open_scan(&s, 500, SORTED);
    assert_int_equal(coffer_mscan_replay_new(&replay, s.scan, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_seek(replay, 60, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_seek(replay, 101, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_string_equal(err.text, "token 101, the scan has 100");
    assert_int_equal(coffer_mscan_replay_next(&more, &step, replay, NULL), COFFER_OK);
    assert_step(&s, &step, 60);
    coffer_mscan_replay_free(replay);
    sample_close(&s);
}

static void an_index_larger_than_the_limit_is_refused(void **state)
{
    (void)state;
    sample s;
    coffer_mscan_replay *replay = NULL;
    coffer_mscan *scan = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    limits.memory_bytes = 1000;
    opts.limits = &limits;
    open_scan(&s, 5000, UNSORTED);
    assert_int_equal(coffer_mscan_open(&scan, s.source, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_new(&replay, scan, NULL, NULL), COFFER_E_LIMIT);
    assert_null(replay);
    coffer_mscan_close(scan);
    sample_close(&s);
}

static void a_false_count_of_tokens_takes_no_memory(void **state)
{
    (void)state;
    sample s;
    coffer_mscan_replay *replay = NULL;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    bool more;
    coffer_mscan_record *records = calloc(2, sizeof *records);
    records[0].token_idx = 9;
    records[1].token_idx = 4;
    sample_open(&s, params_json, "[{\"sequence_id\": 0, \"num_tokens\": 4000000000}]", records, 2);
    assert_int_equal(coffer_mscan_replay_new(&replay, s.scan, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_seek(replay, 4000000000, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_prev(&more, &step, replay, NULL), COFFER_OK);
    assert_int_equal(step.record_count, 0);
    assert_int_equal(coffer_mscan_replay_seek(replay, 9, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_replay_next(&more, &step, replay, NULL), COFFER_OK);
    assert_int_equal(step.record_count, 1);
    coffer_mscan_replay_free(replay);
    sample_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sorted_scan_is_walked_forwards_backwards_and_from_anywhere),
        cmocka_unit_test(an_unsorted_scan_is_walked_the_same_way),
        cmocka_unit_test(a_source_that_lends_nothing_gives_the_same_walk),
        cmocka_unit_test(a_scan_without_records_still_has_its_tokens),
        cmocka_unit_test(a_token_past_the_total_cannot_be_sought_and_nothing_moves),
        cmocka_unit_test(an_index_larger_than_the_limit_is_refused),
        cmocka_unit_test(a_false_count_of_tokens_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
