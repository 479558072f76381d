/* The shape of the file is that of speedscope's published schema. */
#include "base/json.h"
#include "support/profile.h"

#include <stdlib.h>
#include <string.h>

static coffer__json *parse(const char *name)
{
    coffer__json *json = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    char *text = profile_text(name);
    if (coffer__json_parse(&json, text, strlen(text), 0, &limits, &err))
        fail_msg("%s: %s", name, err.text);
    free(text);
    return json;
}

static const char *text_of(const coffer__json_value *object, const char *key)
{
    const coffer__json_value *value = coffer__json_find(object, key);
    assert_non_null(value);
    assert_int_equal(value->kind, COFFER__JSON_STRING);
    return value->as.string;
}

static uint64_t number_of(const coffer__json_value *object, const char *key)
{
    uint64_t number = 0;
    assert_true(coffer__json_u64(&number, coffer__json_find(object, key)));
    return number;
}

/* Fails unless every sample names frames that there are, and the weights add up. */
static uint64_t sum_of(const coffer__json_value *profile, uint64_t frame_count)
{
    const coffer__json_value *samples = coffer__json_find(profile, "samples");
    const coffer__json_value *weights = coffer__json_find(profile, "weights");
    uint64_t sum = 0, number = 0;
    assert_string_equal(text_of(profile, "type"), "sampled");
    assert_string_equal(text_of(profile, "unit"), "bytes");
    assert_int_equal(samples->as.count, weights->as.count);
    for (const coffer__json_value *stack = coffer__json_first(samples); stack;
         stack = coffer__json_next(samples, stack)) {
        assert_true(stack->as.count > 0);
        for (const coffer__json_value *frame = coffer__json_first(stack); frame;
             frame = coffer__json_next(stack, frame)) {
            assert_true(coffer__json_u64(&number, frame));
            assert_true(number < frame_count);
        }
    }
    for (const coffer__json_value *weight = coffer__json_first(weights); weight;
         weight = coffer__json_next(weights, weight)) {
        assert_true(coffer__json_u64(&number, weight));
        sum += number;
    }
    assert_int_equal(number_of(profile, "startValue"), 0);
    assert_int_equal(number_of(profile, "endValue"), sum);
    return sum;
}

static void all_sums_are_profiles_over_one_table_of_frames(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 3000);
    profile_must("s.mlyze", "s.speedscope.json", NULL);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    const uint64_t expected[] = { totals.peak_bytes, totals.live_bytes_at_end, totals.total_allocated_bytes,
                                  totals.temporary_bytes };
    static const char *const names[] = { "peak", "leaks", "total", "temporaries" };
    coffer__json *json = parse("s.speedscope.json");
    const coffer__json_value *root = coffer__json_root(json);
    const coffer__json_value *frames = coffer__json_find(coffer__json_find(root, "shared"), "frames");
    const coffer__json_value *profiles = coffer__json_find(root, "profiles");
    size_t i = 0;
    assert_string_equal(text_of(root, "$schema"), "https://www.speedscope.app/file-format-schema.json");
    assert_int_equal(frames->as.count, 3);
    assert_string_equal(text_of(coffer__json_first(frames), "name"), "work");
    assert_int_equal(number_of(coffer__json_first(frames), "line"), 123);
    assert_int_equal(profiles->as.count, 4);
    for (const coffer__json_value *profile = coffer__json_first(profiles); profile;
         profile = coffer__json_next(profiles, profile), i++) {
        assert_string_equal(text_of(profile, "name"), names[i]);
        assert_int_equal(sum_of(profile, frames->as.count), expected[i]);
    }
    coffer__json_free(json);
}

static void one_kind_of_sum_can_be_asked_for(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 500);
    profile_must("s.mlyze", "s.speedscope.json", "what", "leaks", NULL);
    coffer__json *json = parse("s.speedscope.json");
    const coffer__json_value *profiles = coffer__json_find(coffer__json_root(json), "profiles");
    assert_int_equal(profiles->as.count, 1);
    assert_string_equal(text_of(coffer__json_first(profiles), "name"), "leaks");
    coffer__json_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sums_are_profiles_over_one_table_of_frames),
        cmocka_unit_test(one_kind_of_sum_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
