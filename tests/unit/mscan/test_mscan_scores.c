#include "unit/mscan/mscan_sample.h"

#include "formats/mscan/mscan_keys.h"

#include <math.h>

static const char params_json[] = "{\"0\": \"model.layers.0.q\", \"1\": \"model.layers.0.k\", \"2\": "
                                  "\"model.layers.11.q\", \"3\": \"model.embed_tokens\", "
                                  "\"4\": \"model.norm.weight\", \"5\": \"lm_head\", \"6\": \"rotary\"}";
static const char sequences_json[] =
    "[{\"sequence_id\": 0, \"num_tokens\": 30}, {\"sequence_id\": 1, \"num_tokens\": 30}]";

enum { NO_LAYER = -2, NORM_LAYER = 12, HEAD_LAYER = 13 };
/* By param_id; 6 has a name but no layer, 7 has neither. */
static const int layer_of_param[] = { 0, 0, 11, -1, NORM_LAYER, HEAD_LAYER, NO_LAYER, NO_LAYER };

static void open_random(sample *out, size_t count, bool sorted)
{
    coffer_mscan_record *records = malloc(count * sizeof *records);
    uint64_t seed = 5;
    for (size_t i = 0; i < count; i++) {
        uint64_t r = sample_random(&seed);
        records[i] = (coffer_mscan_record){
            .token_idx = sorted ? (uint32_t)(i * 60 / count) : (uint32_t)(r % 60),
            .param_id = (uint16_t)(r >> 8 & 7),
            .block_idx = (uint16_t)(r >> 12 & 3),
            .activation = (uint16_t)(r >> 32),
            .grad_norm = (uint16_t)(r >> 48 & 1023),
        };
        if (records[i].param_id == 5)
            records[i].grad_norm = 77; /* no deviation in this layer */
    }
    sample_open(out, params_json, sequences_json, records, count);
}

/* ---- The definition, record by record in doubles ---- */

typedef struct moments {
    double mean[2], stddev[2];
} moments;

static bool takes_part(const coffer_mscan_record *record, coffer_mscan_scope scope)
{
    return scope == COFFER_MSCAN_SCOPE_GLOBAL ? record->param_id <= 6
                                              : layer_of_param[record->param_id] != NO_LAYER;
}

static double value_of(const coffer_mscan_record *record, int metric)
{
    return metric == 0 ? record->activation : record->grad_norm;
}

static moments moments_of(const sample *s, coffer_mscan_scope scope, int layer)
{
    moments m;
    for (int metric = 0; metric < 2; metric++) {
        double n = 0, sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (size_t i = 0; i < s->count; i++) {
                const coffer_mscan_record *record = &s->records[i];
                if (!takes_part(record, scope) ||
                    (scope == COFFER_MSCAN_SCOPE_LAYER && layer_of_param[record->param_id] != layer))
                    continue;
                double value = value_of(record, metric);
                if (pass == 0) {
                    n++;
                    sum += value;
                } else {
                    squares += (value - sum / n) * (value - sum / n);
                }
            }
        }
        m.mean[metric] = sum / n;
        m.stddev[metric] = sqrt(squares / (n - 1));
    }
    return m;
}

static double z_of(const coffer_mscan_record *record, const moments *m, int metric)
{
    return m->stddev[metric] <= 1e-9 ? 0 : (value_of(record, metric) - m->mean[metric]) / m->stddev[metric];
}

static uint64_t key_of(const coffer_mscan_record *record, coffer_mscan_by by)
{
    switch (by) {
    case COFFER_MSCAN_BY_PARAM:
        return record->param_id;
    case COFFER_MSCAN_BY_BLOCK:
        return record->block_idx;
    case COFFER_MSCAN_BY_TOKEN:
        return record->token_idx;
    case COFFER_MSCAN_BY_SEQUENCE:
        return record->token_idx / 30;
    default:
        return 0;
    }
}

static coffer_mscan_score expected_score(const sample *s, coffer_mscan_by by, uint64_t key,
                                         coffer_mscan_scope scope, const moments *by_layer)
{
    coffer_mscan_score score = { .key = key };
    for (size_t i = 0; i < s->count; i++) {
        const coffer_mscan_record *record = &s->records[i];
        if (!takes_part(record, scope) || key_of(record, by) != key)
            continue;
        const moments *m =
            &by_layer[scope == COFFER_MSCAN_SCOPE_LAYER ? layer_of_param[record->param_id] + 1 : 0];
        score.count++;
        score.z_activation += z_of(record, m, 0);
        score.z_grad_norm += z_of(record, m, 1);
        score.integral_sps += z_of(record, m, 0) - z_of(record, m, 1);
    }
    score.z_activation /= (double)score.count;
    score.z_grad_norm /= (double)score.count;
    score.sps = score.integral_sps / (double)score.count;
    return score;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b))))
        fail_msg("%.17g is not %.17g", a, b);
}

static void assert_scores_are_right(const sample *s, coffer_mscan_scope scope)
{
    moments by_layer[16];
    for (int layer = -1; layer < 15; layer++)
        by_layer[layer + 1] = moments_of(s, scope, layer);
    for (int by = COFFER_MSCAN_BY_ALL; by <= COFFER_MSCAN_BY_SEQUENCE; by++) {
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_scores *scores = NULL;
        size_t expected_groups = 0;
        query.by = (coffer_mscan_by)by;
        query.scope = scope;
        assert_int_equal(coffer_mscan_scores_new(&scores, s->scan, &query, NULL), COFFER_OK);
        for (uint64_t key = 0; key < 60; key++)
            expected_groups += expected_score(s, query.by, key, scope, by_layer).count > 0;
        assert_int_equal(coffer_mscan_scores_count(scores), expected_groups);
        for (size_t i = 0; i < coffer_mscan_scores_count(scores); i++) {
            const coffer_mscan_score *score = coffer_mscan_scores_at(scores, i);
            coffer_mscan_score expected = expected_score(s, query.by, score->key, scope, by_layer);
            assert_int_equal(score->count, expected.count);
            assert_near(score->z_activation, expected.z_activation);
            assert_near(score->z_grad_norm, expected.z_grad_norm);
            assert_near(score->sps, expected.sps);
            assert_near(score->integral_sps, expected.integral_sps);
        }
        coffer_mscan_scores_free(scores);
    }
}

static void scores_by_every_key_agree_with_the_definition_in_layer_scope(void **state)
{
    (void)state;
    for (int sorted = 0; sorted < 2; sorted++) {
        sample s;
        open_random(&s, 5000, sorted);
        assert_scores_are_right(&s, COFFER_MSCAN_SCOPE_LAYER);
        sample_close(&s);
    }
}

static void scores_by_every_key_agree_with_the_definition_in_global_scope(void **state)
{
    (void)state;
    for (int sorted = 0; sorted < 2; sorted++) {
        sample s;
        open_random(&s, 5000, sorted);
        assert_scores_are_right(&s, COFFER_MSCAN_SCOPE_GLOBAL);
        sample_close(&s);
    }
}

/* Tokens far apart in little memory cut the work into windows, which must not show. */
static void little_memory_changes_no_score(void **state)
{
    enum { APART = 4000 };
    (void)state;
    for (int sorted = 0; sorted < 2; sorted++) {
        sample near, far;
        coffer_limits tight = COFFER_LIMITS_INIT;
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_scores *expected = NULL, *scores = NULL;
        coffer_mscan_record *records = malloc(5000 * sizeof *records);
        open_random(&near, 5000, sorted);
        memcpy(records, near.records, 5000 * sizeof *records);
        for (size_t i = 0; i < 5000; i++)
            records[i].token_idx *= APART;
        sample_open(&far, params_json, sequences_json, records, 5000);
        tight.memory_bytes = UINT64_C(16) << 20;
        query.by = COFFER_MSCAN_BY_TOKEN;
        query.scope = COFFER_MSCAN_SCOPE_LAYER;
        assert_int_equal(coffer_mscan_scores_new(&expected, near.scan, &query, NULL), COFFER_OK);
        query.limits = &tight;
        assert_int_equal(coffer_mscan_scores_new(&scores, far.scan, &query, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_scores_count(scores), coffer_mscan_scores_count(expected));
        for (size_t i = 0; i < coffer_mscan_scores_count(scores); i++) {
            coffer_mscan_score moved = *coffer_mscan_scores_at(expected, i);
            moved.key *= APART;
            assert_memory_equal(coffer_mscan_scores_at(scores, i), &moved, sizeof moved);
        }
        coffer_mscan_scores_free(expected);
        coffer_mscan_scores_free(scores);
        sample_close(&near);
        sample_close(&far);
    }
}

static void a_selection_has_means_of_its_own(void **state)
{
    sample s;
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_scores *scores = NULL;
    (void)state;
    open_random(&s, 5000, true);
    query.by = COFFER_MSCAN_BY_ALL;
    query.scope = COFFER_MSCAN_SCOPE_LAYER;
    query.token_begin = 10;
    query.token_end = 20;
    query.param_glob = "model.layers.*";
    assert_int_equal(coffer_mscan_scores_new(&scores, s.scan, &query, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_scores_count(scores), 1);
    assert_true(coffer_mscan_scores_at(scores, 0)->count > 100);
    assert_true(coffer_mscan_scores_at(scores, 0)->count < 1000);
    assert_near(coffer_mscan_scores_at(scores, 0)->z_activation, 0);
    coffer_mscan_scores_free(scores);
    sample_close(&s);
}

static void a_scan_without_layers_has_no_scores_in_layer_scope(void **state)
{
    sample s;
    (void)state;
    for (int by = COFFER_MSCAN_BY_ALL; by <= COFFER_MSCAN_BY_SEQUENCE; by++) {
        coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
        coffer_mscan_scores *scores = NULL;
        coffer_mscan_record *records = calloc(3, sizeof *records);
        sample_open(&s, "{\"0\": \"w\"}", sequences_json, records, 3);
        query.by = (coffer_mscan_by)by;
        query.scope = COFFER_MSCAN_SCOPE_LAYER;
        assert_int_equal(coffer_mscan_scores_new(&scores, s.scan, &query, NULL), COFFER_OK);
        assert_int_equal(coffer_mscan_scores_count(scores), 0);
        coffer_mscan_scores_free(scores);
        sample_close(&s);
    }
}

static int64_t layer_of(const char *name)
{
    return coffer__mscan_layer_of_name(name, strlen(name));
}

static void layers_come_from_names(void **state)
{
    (void)state;
    assert_int_equal(layer_of("model.layers.7.mlp.up_proj"), 7);
    assert_int_equal(layer_of("base.model.layers.007"), 7);
    assert_int_equal(layer_of("model.layers.x.model.layers.12"), 12);
    assert_int_equal(layer_of("model.embed_tokens.weight"), -1);
    assert_int_equal(layer_of("model.norm"), COFFER__MSCAN_NORM);
    assert_int_equal(layer_of("lm_head"), COFFER__MSCAN_HEAD);
    assert_int_equal(layer_of("model.layers.3.model.norm"), 3);
    assert_int_equal(layer_of("model.layers."), COFFER__MSCAN_NO_LAYER);
    assert_int_equal(layer_of("model.layers.99999999999999999999999"), COFFER__MSCAN_NO_LAYER);
    assert_int_equal(layer_of(""), COFFER__MSCAN_NO_LAYER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_by_every_key_agree_with_the_definition_in_layer_scope),
        cmocka_unit_test(scores_by_every_key_agree_with_the_definition_in_global_scope),
        cmocka_unit_test(little_memory_changes_no_score),
        cmocka_unit_test(a_selection_has_means_of_its_own),
        cmocka_unit_test(a_scan_without_layers_has_no_scores_in_layer_scope),
        cmocka_unit_test(layers_come_from_names),
    };
    return cmocka_run_group_tests_name("mscan_scores", tests, NULL, NULL);
}
