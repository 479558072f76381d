#include "unit/mscan/mscan_sample.h"

#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_stats.h"

#include <math.h>

static const char params_json[] =
    "{\"0\": \"model.layers.0.q\", \"1\": \"model.layers.0.k\", \"7\": \"model.norm\", "
    "\"300\": \"lm_head\"}";
static const char sequences_json[] =
    "[{\"sequence_id\": 0, \"num_tokens\": 40}, {\"sequence_id\": 1, \"num_tokens\": 0}, "
    "{\"sequence_id\": 2, \"num_tokens\": 25}, {\"sequence_id\": 3, \"num_tokens\": 35}]";
static const uint16_t param_ids[] = { 0, 1, 7, 300, 9 }; /* the last has no name */

typedef enum order { SORTED, UNSORTED } order;

/* 0 and 65535 come up often; tokens go a little past the total of 100. */
static coffer_mscan_record random_record(uint64_t *seed, uint32_t token)
{
    uint64_t r = sample_random(seed);
    static const uint16_t edges[] = { 0, 65535, 1, 65534 };
    return (coffer_mscan_record){
        .token_idx = token,
        .param_id = param_ids[r % 5],
        .block_idx = (uint16_t)(r >> 8 & 15),
        .activation = r >> 16 & 1 ? edges[r >> 17 & 3] : (uint16_t)(r >> 32),
        .grad_norm = r >> 20 & 1 ? edges[r >> 21 & 3] : (uint16_t)(r >> 48),
    };
}

static void open_random(sample *out, size_t count, order tokens)
{
    coffer_mscan_record *records = malloc((count + 1) * sizeof *records);
    uint64_t seed = 42;
    for (size_t i = 0; i < count; i++)
        records[i] = random_record(&seed, tokens == SORTED ? (uint32_t)(i * 104 / count)
                                                           : (uint32_t)(sample_random(&seed) % 104));
    sample_open(out, params_json, sequences_json, records, count);
}

/* ---- The obvious way, to compare with ---- */

typedef bool (*chooser)(const coffer_mscan_record *record);

static uint64_t key_of(const sample *s, const coffer_mscan_record *record, coffer_mscan_by by)
{
    switch (by) {
    case COFFER_MSCAN_BY_PARAM:
        return record->param_id;
    case COFFER_MSCAN_BY_BLOCK:
        return record->block_idx;
    case COFFER_MSCAN_BY_TOKEN:
        return record->token_idx;
    case COFFER_MSCAN_BY_SEQUENCE:
        return coffer_mscan_sequence_of_token(s->scan, record->token_idx);
    case COFFER_MSCAN_BY_PARAM_BLOCK:
        return (uint64_t)record->param_id << 16 | record->block_idx;
    case COFFER_MSCAN_BY_LAYER: /* layer 0, norm, head, other */
        return record->param_id < 2 ? 0 : record->param_id == 7 ? 1 : record->param_id == 300 ? 2 : 3;
    default:
        return 0;
    }
}

static void add_plainly(coffer_mscan_column *column, uint16_t value, bool first)
{
    column->sum += value;
    column->sum_squares += (uint64_t)value * value;
    column->zeros += value == 0;
    column->saturated += value == 65535;
    if (first || value < column->min)
        column->min = value;
    if (first || value > column->max)
        column->max = value;
}

static coffer_mscan_group expected_group(const sample *s, coffer_mscan_by by, uint64_t key, chooser chosen)
{
    coffer_mscan_group group;
    memset(&group, 0, sizeof group);
    group.key = key;
    for (size_t i = 0; i < s->count; i++) {
        const coffer_mscan_record *record = &s->records[i];
        if ((chosen && !chosen(record)) || key_of(s, record, by) != key)
            continue;
        add_plainly(&group.column[0], record->activation, group.count == 0);
        add_plainly(&group.column[1], record->grad_norm, group.count == 0);
        group.count++;
    }
    return group;
}

static void assert_same_group(const coffer_mscan_group *a, const coffer_mscan_group *b)
{
    assert_int_equal(a->key, b->key);
    assert_int_equal(a->count, b->count);
    for (int m = 0; m < 2; m++) {
        assert_int_equal(a->column[m].sum, b->column[m].sum);
        assert_int_equal(a->column[m].sum_squares, b->column[m].sum_squares);
        assert_int_equal(a->column[m].zeros, b->column[m].zeros);
        assert_int_equal(a->column[m].saturated, b->column[m].saturated);
        assert_int_equal(a->column[m].min, b->column[m].min);
        assert_int_equal(a->column[m].max, b->column[m].max);
    }
}

static void assert_stats_are_right(const sample *s, const coffer_mscan_stats_opts *query, chooser chosen)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_stats *stats = NULL;
    uint64_t expected_groups = 0, counted = 0;
    if (coffer_mscan_stats_new(&stats, s->scan, query, &err))
        fail_msg("%s", err.text);
    for (uint64_t key = 0; key < 400; key++) {
        bool blocks = query->by == COFFER_MSCAN_BY_PARAM_BLOCK;
        for (uint64_t block = 0; block < (blocks ? 16 : 1); block++)
            expected_groups +=
                expected_group(s, query->by, blocks ? key << 16 | block : key, chosen).count > 0;
    }
    assert_int_equal(coffer_mscan_stats_count(stats), expected_groups);
    for (size_t i = 0; i < coffer_mscan_stats_count(stats); i++) {
        const coffer_mscan_group *group = coffer_mscan_stats_at(stats, i);
        coffer_mscan_group expected = expected_group(s, query->by, group->key, chosen);
        assert_same_group(group, &expected);
        counted += group->count;
        if (i > 0)
            assert_true(group->key > coffer_mscan_stats_at(stats, i - 1)->key);
    }
    assert_int_equal(coffer_mscan_stats_total(stats)->count, counted);
    coffer_mscan_stats_free(stats);
}

static bool is_in_layer_0(const coffer_mscan_record *record)
{
    return record->param_id < 2;
}

static bool is_in_tokens_10_to_50(const coffer_mscan_record *record)
{
    return record->token_idx >= 10 && record->token_idx < 50;
}

static bool is_in_sequence_2_and_layer_0(const coffer_mscan_record *record)
{
    return record->token_idx >= 40 && record->token_idx < 65 && record->param_id < 2;
}

static void assert_every_grouping_is_right(const sample *s)
{
    for (int by = COFFER_MSCAN_BY_ALL; by <= COFFER_MSCAN_BY_LAYER; by++) {
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        query.by = (coffer_mscan_by)by;
        assert_stats_are_right(s, &query, NULL);
        query.param_glob = "model.layers.0.*";
        assert_stats_are_right(s, &query, is_in_layer_0);
        query.sequence = 2;
        assert_stats_are_right(s, &query, is_in_sequence_2_and_layer_0);
        query.param_glob = NULL;
        query.sequence = SIZE_MAX;
        query.token_begin = 10;
        query.token_end = 50;
        assert_stats_are_right(s, &query, is_in_tokens_10_to_50);
    }
}

/* ---- The tests ---- */

static void every_grouping_of_a_sorted_scan_is_right(void **state)
{
    sample s;
    (void)state;
    open_random(&s, 3001, SORTED);
    assert_every_grouping_is_right(&s);
    sample_close(&s);
}

static void every_grouping_of_an_unsorted_scan_is_right(void **state)
{
    sample s;
    (void)state;
    open_random(&s, 3001, UNSORTED);
    assert_every_grouping_is_right(&s);
    sample_close(&s);
}

static void a_source_that_lends_no_bytes_gives_the_same(void **state)
{
    sample s;
    (void)state;
    open_random(&s, 3001, UNSORTED);
    sample_reopen_without_view(&s);
    assert_every_grouping_is_right(&s);
    sample_close(&s);
}

static void an_empty_scan_has_no_groups(void **state)
{
    (void)state;
    for (int by = COFFER_MSCAN_BY_ALL; by <= COFFER_MSCAN_BY_LAYER; by++) {
        sample s;
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_stats *stats = NULL;
        open_random(&s, 0, SORTED);
        query.by = (coffer_mscan_by)by;
        assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_stats_count(stats), 0);
        assert_int_equal(coffer_mscan_stats_total(stats)->count, 0);
        coffer_mscan_stats_free(stats);
        sample_close(&s);
    }
}

static void tokens_past_65536_are_grouped_sorted_or_not(void **state)
{
    (void)state;
    for (int unsorted = 0; unsorted < 2; unsorted++) {
        sample s;
        const size_t count = 300000;
        coffer_mscan_record *records = malloc(count * sizeof *records);
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_stats *stats = NULL;
        uint64_t seed = 7;
        for (size_t i = 0; i < count; i++)
            records[i] = random_record(&seed, (uint32_t)(1000 + i / 3));
        for (size_t i = 0; unsorted && i + 1 < count; i += 2) {
            coffer_mscan_record swapped = records[i];
            records[i] = records[i + 1];
            records[i + 1] = swapped;
            records[i].token_idx ^= 1;
        }
        sample_open(&s, params_json, "[{\"sequence_id\": 0, \"num_tokens\": 200000}]", records, count);
        query.by = COFFER_MSCAN_BY_TOKEN;
        query.threads = 2;
        assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_stats_total(stats)->count, count);
        if (!unsorted)
            assert_int_equal(coffer_mscan_stats_count(stats), 100000);
        for (size_t i = 0; i < coffer_mscan_stats_count(stats); i += 9973) {
            const coffer_mscan_group *group = coffer_mscan_stats_at(stats, i);
            coffer_mscan_group expected = expected_group(&s, COFFER_MSCAN_BY_TOKEN, group->key, NULL);
            assert_same_group(group, &expected);
        }
        coffer_mscan_stats_free(stats);
        sample_close(&s);
    }
}

static void more_than_65536_sequences_are_grouped(void **state)
{
    enum { SEQUENCES = 70000 };
    sample s;
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer_mscan_record *records = malloc(2 * SEQUENCES * sizeof *records);
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    uint64_t seed = 3;
    (void)state;
    for (unsigned i = 0; i < SEQUENCES; i++) {
        coffer__buffer_printf(&json, "%s{\"sequence_id\": %u, \"num_tokens\": 2}", i ? "," : "[", i);
        records[2 * i] = random_record(&seed, 2 * i);
        records[2 * i + 1] = random_record(&seed, i % 2 ? 2 * i + 1 : 2 * i);
    }
    coffer__buffer_append(&json, "]", 1);
    records[2 * SEQUENCES - 1].token_idx = 2 * SEQUENCES; /* past the last sequence */
    sample_open(&s, params_json, coffer__buffer_text(&json), records, 2 * SEQUENCES);
    query.by = COFFER_MSCAN_BY_SEQUENCE;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_count(stats), SEQUENCES);
    assert_int_equal(coffer_mscan_stats_total(stats)->count, 2 * SEQUENCES - 1);
    coffer_mscan_group expected = expected_group(&s, COFFER_MSCAN_BY_SEQUENCE, 66001, NULL);
    assert_same_group(coffer_mscan_stats_at(stats, 66001), &expected);
    coffer_mscan_stats_free(stats);
    coffer__buffer_free(&json);
    sample_close(&s);
}

/* Saturated values of one parameter, so many that every packed field would overflow if a row were not drained
 * in time. */
static void long_runs_of_one_parameter_overflow_nothing(void **state)
{
    static const char *const levels[] = { "generic", "avx2", "avx512" };
    (void)state;
    for (size_t level = 0; level < 3; level++) {
        const size_t count = 1000003;
        sample s;
        coffer_mscan_record *records = malloc(count * sizeof *records);
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_stats *stats = NULL;
        for (size_t i = 0; i < count; i++)
            records[i] = (coffer_mscan_record){ 0, 65535, 0, 65535, 0 };
        sample_open(&s, params_json, sequences_json, records, count);
        setenv("COFFER_CPU", levels[level], 1);
        query.by = COFFER_MSCAN_BY_PARAM;
        query.threads = 3;
        assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, NULL), COFFER_OK);
        unsetenv("COFFER_CPU");
        assert_int_equal(coffer_mscan_stats_count(stats), 1);
        coffer_mscan_group expected = expected_group(&s, COFFER_MSCAN_BY_PARAM, 65535, NULL);
        assert_int_equal(expected.column[0].saturated, count);
        assert_same_group(coffer_mscan_stats_at(stats, 0), &expected);
        coffer_mscan_stats_free(stats);
        sample_close(&s);
    }
}

/* Records that end where the memory ends, at every small count and both numbers of rows. */
static void every_kernel_takes_the_same_records_into_the_same_sums(void **state)
{
    static const coffer__cpu_level levels[] = { COFFER__CPU_GENERIC, COFFER__CPU_AVX2, COFFER__CPU_AVX512 };
    uint64_t seed = 99;
    (void)state;
    for (size_t count = 1; count < 40; count++) {
        uint8_t *bytes = malloc(count * COFFER__MSCAN_RECORD_SIZE);
        coffer_mscan_group expected[5];
        memset(expected, 0, sizeof expected);
        for (size_t i = 0; i < count; i++) {
            coffer_mscan_record record = random_record(&seed, 0);
            coffer__mscan_store(bytes + i * COFFER__MSCAN_RECORD_SIZE, &record);
        }
        for (size_t run = 0; run < 6; run++) {
            coffer__cpu_level level = levels[run / 2];
            coffer__mscan_tally tally;
            if (level > coffer__cpu_best())
                continue;
            assert_int_equal(coffer__mscan_tally_init(&tally, 1, run % 2, 0, NULL), COFFER_OK);
            tally.kernel = coffer__mscan_kernel_for(level);
            coffer__mscan_tally_take(&tally, 0, bytes, count, bytes + COFFER__MSCAN_PARAM_AT,
                                     COFFER__MSCAN_RECORD_SIZE);
            coffer__mscan_tally_finish(&tally, COFFER__MSCAN_KEYS);
            for (size_t p = 0; p < 5; p++) {
                if (run == 0)
                    expected[p] = tally.groups[param_ids[p]];
                assert_same_group(&tally.groups[param_ids[p]], &expected[p]);
            }
            coffer__mscan_tally_free(&tally);
        }
        free(bytes);
    }
}

static void the_number_of_threads_changes_nothing(void **state)
{
    sample s;
    coffer_mscan_stats *stats[2] = { NULL, NULL };
    (void)state;
    open_random(&s, 600000, SORTED);
    for (int by = COFFER_MSCAN_BY_ALL; by <= COFFER_MSCAN_BY_LAYER; by++) {
        for (uint32_t i = 0; i < 2; i++) {
            coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
            query.by = (coffer_mscan_by)by;
            query.threads = 1 + 3 * i;
            assert_int_equal(coffer_mscan_stats_new(&stats[i], s.scan, &query, NULL), COFFER_OK);
        }
        assert_int_equal(coffer_mscan_stats_count(stats[0]), coffer_mscan_stats_count(stats[1]));
        for (size_t i = 0; i < coffer_mscan_stats_count(stats[0]); i++)
            assert_same_group(coffer_mscan_stats_at(stats[0], i), coffer_mscan_stats_at(stats[1], i));
        coffer_mscan_stats_free(stats[0]);
        coffer_mscan_stats_free(stats[1]);
    }
    sample_close(&s);
}

static void tokens_beyond_the_memory_limit_are_refused_by_name(void **state)
{
    sample s;
    coffer_mscan_record *records = malloc(2 * sizeof *records);
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    records[0] = (coffer_mscan_record){ 0, 0, 0, 1, 1 };
    records[1] = (coffer_mscan_record){ UINT32_MAX, 0, 0, 1, 1 };
    sample_open(&s, params_json, sequences_json, records, 2);
    query.by = COFFER_MSCAN_BY_TOKEN;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, &err), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "4294967296 tokens"));
    assert_null(stats);
    query.token_begin = 1;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, &err), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_at(stats, 0)->key, UINT32_MAX);
    coffer_mscan_stats_free(stats);
    sample_close(&s);
}

static void questions_that_make_no_sense_are_refused(void **state)
{
    sample s;
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_limits tight = COFFER_LIMITS_INIT;
    (void)state;
    open_random(&s, 10, SORTED);
    query.sequence = 4;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "sequence 4 asked for, the scan has 4");
    query.sequence = SIZE_MAX;
    query.by = (coffer_mscan_by)17;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, &err), COFFER_E_INVALID_ARGUMENT);
    query.by = COFFER_MSCAN_BY_PARAM;
    tight.memory_bytes = 1000;
    query.limits = &tight;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, &err), COFFER_E_LIMIT);
    sample_close(&s);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    uint64_t *seen = context;
    *seen = done;
    assert_true(done <= total);
    return 1;
}

static void a_progress_callback_can_stop_the_work(void **state)
{
    sample s;
    uint64_t seen = 0;
    coffer_progress progress = { sizeof progress, stop_at_once, &seen };
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    (void)state;
    open_random(&s, 100000, SORTED);
    query.progress = &progress;
    assert_int_equal(coffer_mscan_stats_new(&stats, s.scan, &query, NULL), COFFER_E_CANCELLED);
    assert_null(stats);
    assert_true(seen > 0 && seen < 100000);
    sample_close(&s);
}

static void mean_and_deviation_lose_no_digits(void **state)
{
    coffer_mscan_group group = { .count = 4000000000u };
    (void)state;
    /* Half the values 65534, half 65535: the variance is a quarter (n / (n − 1) of it). */
    group.column[0].sum = UINT64_C(2000000000) * 65534 + UINT64_C(2000000000) * 65535;
    group.column[0].sum_squares = UINT64_C(2000000000) * 65534 * 65534 + UINT64_C(2000000000) * 65535 * 65535;
    assert_true(coffer_mscan_mean(&group, COFFER_MSCAN_ACTIVATION) == 65534.5);
    assert_true(fabs(coffer_mscan_stddev(&group, COFFER_MSCAN_ACTIVATION) - 0.5 * sqrt(4e9 / (4e9 - 1))) <
                1e-15);
    group.count = 1;
    assert_true(coffer_mscan_stddev(&group, COFFER_MSCAN_ACTIVATION) == 0);
    group.count = 0;
    assert_true(coffer_mscan_mean(&group, COFFER_MSCAN_ACTIVATION) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grouping_of_a_sorted_scan_is_right),
        cmocka_unit_test(every_grouping_of_an_unsorted_scan_is_right),
        cmocka_unit_test(a_source_that_lends_no_bytes_gives_the_same),
        cmocka_unit_test(an_empty_scan_has_no_groups),
        cmocka_unit_test(tokens_past_65536_are_grouped_sorted_or_not),
        cmocka_unit_test(more_than_65536_sequences_are_grouped),
        cmocka_unit_test(long_runs_of_one_parameter_overflow_nothing),
        cmocka_unit_test(every_kernel_takes_the_same_records_into_the_same_sums),
        cmocka_unit_test(the_number_of_threads_changes_nothing),
        cmocka_unit_test(tokens_beyond_the_memory_limit_are_refused_by_name),
        cmocka_unit_test(questions_that_make_no_sense_are_refused),
        cmocka_unit_test(a_progress_callback_can_stop_the_work),
        cmocka_unit_test(mean_and_deviation_lose_no_digits),
    };
    return cmocka_run_group_tests_name("mscan_stats", tests, NULL, NULL);
}
