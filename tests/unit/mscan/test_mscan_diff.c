#include <inttypes.h>
#include <stdio.h>

#include "unit/mscan/mscan_sample.h"

#include "coffer/format.h"

#define PARAMS "{\"0\": \"q\", \"1\": \"k\", \"2\": \"v\"}"
#define SEQUENCES "[{\"sequence_id\": 0, \"num_tokens\": 1000}]"

/* ---- Asking for a diff ---- */

static coffer_node *diff_with(const sample *a, const sample *b, const coffer_diff_opts *opts)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    if (coffer_diff(root, a->source, b->source, opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return root;
}

static uint64_t number(const coffer_node *root, const char *map, const char *name)
{
    const coffer_node *from = map ? coffer_node_find(root, map) : root;
    assert_non_null(from);
    const coffer_node *node = coffer_node_find(from, name);
    assert_non_null(node);
    return coffer_node_get_u64(node);
}

static bool is_equal(const coffer_node *root)
{
    const coffer_node *first = coffer_node_first(root);
    assert_string_equal(coffer_node_get_name(first), "equal");
    return coffer_node_get_bool(first);
}

static void assert_records(const coffer_node *root, uint64_t equal, uint64_t changed, uint64_t only_a,
                           uint64_t only_b)
{
    assert_int_equal(number(root, "records", "equal"), equal);
    assert_int_equal(number(root, "records", "changed"), changed);
    assert_int_equal(number(root, "records", "only_in_a"), only_a);
    assert_int_equal(number(root, "records", "only_in_b"), only_b);
}

/* The index-th entry of a list, and a text of it. */
static const coffer_node *entry(const coffer_node *root, const char *list, size_t index)
{
    const coffer_node *node = coffer_node_first(coffer_node_find(root, list));
    while (node && index-- > 0)
        node = coffer_node_next(node);
    assert_non_null(node);
    return node;
}

static void assert_text(const coffer_node *map, const char *name, const char *expected)
{
    const coffer_node *node = coffer_node_find(map, name);
    assert_non_null(node);
    assert_string_equal(coffer_node_get_text(node, NULL), expected);
}

/* a, b : the values, numbers as text; NULL when the change does not have them. */
static void assert_change(const coffer_node *root, size_t index, const char *path, const char *a,
                          const char *b)
{
    const coffer_node *map = entry(root, "metadata", index);
    const char *values[2] = { a, b }, *names[2] = { "a", "b" };
    assert_text(map, "path", path);
    assert_text(map, "change", !a ? "added" : !b ? "removed" : "changed");
    for (size_t i = 0; i < 2; i++) {
        const coffer_node *value = coffer_node_find(map, names[i]);
        char number[24];
        if (!values[i]) {
            assert_null(value);
            continue;
        }
        assert_non_null(value);
        snprintf(number, sizeof number, "%" PRIu64, coffer_node_get_u64(value));
        assert_string_equal(coffer_node_get_kind(value) == COFFER_NODE_TEXT
                                ? coffer_node_get_text(value, NULL)
                                : number,
                            values[i]);
    }
}

/* ---- Making scans ---- */

static coffer_mscan_record *copy_of(const coffer_mscan_record *records, size_t count)
{
    coffer_mscan_record *copy = malloc((count + 1) * sizeof *copy);
    if (count)
        memcpy(copy, records, count * sizeof *copy);
    return copy;
}

static coffer_mscan_record *grid(size_t count)
{
    coffer_mscan_record *records = malloc((count + 1) * sizeof *records);
    for (size_t i = 0; i < count; i++)
        records[i] = (coffer_mscan_record){ (uint32_t)(i / 12), (uint16_t)(i / 4 % 3), (uint16_t)(i % 4),
                                            (uint16_t)(i * 7), (uint16_t)(i * 13) };
    return records;
}

static void shuffle(coffer_mscan_record *records, size_t count, uint64_t seed)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = sample_random(&seed) % i;
        coffer_mscan_record kept = records[i - 1];
        records[i - 1] = records[j];
        records[j] = kept;
    }
}

/* ---- Records ---- */

static void a_scan_equals_itself_and_its_shuffled_copy(void **state)
{
    (void)state;
    enum { COUNT = 6000 };
    sample a, b;
    sample_open(&a, PARAMS, SEQUENCES, grid(COUNT), COUNT);
    coffer_node *root = diff_with(&a, &a, NULL);
    assert_true(is_equal(root));
    assert_records(root, COUNT, 0, 0, 0);
    coffer_node_free(root);
    coffer_mscan_record *shuffled = grid(COUNT);
    shuffle(shuffled, COUNT, 5);
    sample_open(&b, PARAMS, SEQUENCES, shuffled, COUNT);
    root = diff_with(&a, &b, NULL);
    assert_true(is_equal(root));
    assert_records(root, COUNT, 0, 0, 0);
    assert_int_equal(number(root, "activation", "max_difference"), 0);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void changes_are_counted_measured_and_listed(void **state)
{
    (void)state;
    sample a, b;
    coffer_mscan_record *records = grid(1200);
    records[500].activation += 10;
    records[700].grad_norm += 3;
    records[700].activation -= 2;
    sample_open(&a, PARAMS, SEQUENCES, grid(1200), 1200);
    sample_open(&b, PARAMS, SEQUENCES, records, 1200);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_false(is_equal(root));
    assert_records(root, 1198, 2, 0, 0);
    assert_int_equal(number(root, "activation", "changed"), 2);
    assert_int_equal(number(root, "activation", "max_difference"), 10);
    assert_int_equal(number(root, "grad_norm", "max_difference"), 3);
    const coffer_node *mean = coffer_node_find(coffer_node_find(root, "activation"), "mean_difference");
    assert_true(coffer_node_get_f64(mean) == 12.0 / 1200);
    const coffer_node *first = entry(root, "differences", 0);
    assert_text(first, "kind", "changed");
    assert_text(first, "param", "v");
    assert_int_equal(number(first, NULL, "token"), 41);
    assert_int_equal(number(first, NULL, "block"), 0);
    assert_int_equal(number(first, NULL, "activation_a"), 3500);
    assert_int_equal(number(first, NULL, "activation_b"), 3510);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void differences_within_the_tolerance_do_not_count(void **state)
{
    (void)state;
    sample a, b;
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    coffer_mscan_record *records = grid(100);
    records[50].activation += 2;
    records[51].activation += 3;
    sample_open(&a, PARAMS, SEQUENCES, grid(100), 100);
    sample_open(&b, PARAMS, SEQUENCES, records, 100);
    opts.tolerance = 2;
    coffer_node *root = diff_with(&a, &b, &opts);
    assert_records(root, 99, 1, 0, 0);
    assert_int_equal(number(root, "activation", "max_difference"), 3);
    coffer_node_free(root);
    opts.tolerance = 3;
    root = diff_with(&a, &b, &opts);
    assert_true(is_equal(root));
    coffer_node_free(root);
    opts.tolerance = -1;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_diff(root, a.source, b.source, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void records_of_only_one_scan_are_reported(void **state)
{
    (void)state;
    sample a, b;
    coffer_mscan_record *records = grid(240);
    memmove(records + 100, records + 101, 139 * sizeof *records); /* the one at 100 is gone */
    records[239] = (coffer_mscan_record){ 900, 1, 9, 5, 6 };
    sample_open(&a, PARAMS, SEQUENCES, grid(240), 240);
    sample_open(&b, PARAMS, SEQUENCES, records, 240);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_records(root, 239, 0, 1, 1);
    assert_text(entry(root, "differences", 0), "kind", "only-in-a");
    assert_text(entry(root, "differences", 1), "kind", "only-in-b");
    assert_int_equal(number(entry(root, "differences", 1), NULL, "token"), 900);
    assert_int_equal(coffer_node_get_kind(coffer_node_find(entry(root, "differences", 1), "activation_a")),
                     COFFER_NODE_NULL);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void the_same_place_twice_is_paired_in_order(void **state)
{
    (void)state;
    sample a, b;
    const coffer_mscan_record twice[] = { { 1, 0, 0, 10, 0 }, { 1, 0, 0, 20, 0 }, { 1, 0, 0, 30, 0 } };
    sample_open(&a, PARAMS, SEQUENCES, copy_of(twice, 3), 3);
    sample_open(&b, PARAMS, SEQUENCES, copy_of(twice, 2), 2);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_records(root, 2, 0, 1, 0);
    assert_int_equal(number(entry(root, "differences", 0), NULL, "activation_a"), 30);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void the_list_stops_at_its_maximum_and_the_counts_do_not(void **state)
{
    (void)state;
    sample a, b;
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    opts.max_shown = 3;
    sample_open(&a, PARAMS, SEQUENCES, grid(500), 500);
    sample_open(&b, "{}", "[]", NULL, 0);
    coffer_node *root = diff_with(&a, &b, &opts);
    assert_records(root, 0, 0, 500, 0);
    assert_int_equal(coffer_node_count(coffer_node_find(root, "differences")), 3);
    assert_int_equal(coffer_node_count(coffer_node_find(root, "metadata")), 3);
    assert_int_equal(number(root, NULL, "metadata_differences"), 4);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

/* ---- Against the obvious way ---- */

static int by_place(const void *left, const void *right)
{
    const coffer_mscan_record *a = left, *b = right;
    if (a->token_idx != b->token_idx)
        return a->token_idx < b->token_idx ? -1 : 1;
    if (a->param_id != b->param_id)
        return a->param_id < b->param_id ? -1 : 1;
    return (a->block_idx > b->block_idx) - (a->block_idx < b->block_idx);
}

static void random_scans_give_what_pairing_by_hand_gives(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (unsigned round = 0; round < 60; round++) {
        size_t a_count = sample_random(&seed) % 400, b_count = sample_random(&seed) % 400;
        coffer_mscan_record *a_records = malloc((a_count + 1) * sizeof *a_records);
        coffer_mscan_record *b_records = malloc((b_count + 1) * sizeof *b_records);
        for (size_t i = 0; i < a_count + b_count; i++) {
            uint64_t r = sample_random(&seed);
            coffer_mscan_record *to = i < a_count ? &a_records[i] : &b_records[i - a_count];
            *to = (coffer_mscan_record){ (uint32_t)(r % 20), (uint16_t)(r >> 10) % 3, (uint16_t)(r >> 20) % 3,
                                         1, 1 };
        }
        if (round % 3 > 0)
            qsort(a_records, a_count, sizeof *a_records, by_place);
        if (round % 3 > 1)
            qsort(b_records, b_count, sizeof *b_records, by_place);
        uint64_t pairs = 0;
        for (uint32_t place = 0; place < 20 * 9; place++) {
            uint64_t in_a = 0, in_b = 0;
            for (size_t i = 0; i < a_count; i++)
                in_a +=
                    a_records[i].token_idx * 9 + a_records[i].param_id * 3u + a_records[i].block_idx == place;
            for (size_t i = 0; i < b_count; i++)
                in_b +=
                    b_records[i].token_idx * 9 + b_records[i].param_id * 3u + b_records[i].block_idx == place;
            pairs += in_a < in_b ? in_a : in_b;
        }
        sample a, b;
        sample_open(&a, PARAMS, SEQUENCES, a_records, a_count);
        sample_open(&b, PARAMS, SEQUENCES, b_records, b_count);
        if (round % 2)
            sample_reopen_without_view(&b);
        coffer_node *root = diff_with(&a, &b, NULL);
        assert_records(root, pairs, 0, a_count - pairs, b_count - pairs);
        coffer_node_free(root);
        sample_close(&a);
        sample_close(&b);
    }
}

static void scans_larger_than_a_slab_are_compared_piece_by_piece(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    sample a, b;
    coffer_mscan_record *records = grid(COUNT);
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    /* Within each token the order is another one, and one record has moved to the end. */
    for (size_t i = 0; i + 12 <= COUNT; i += 12)
        shuffle(records + i, 12, i + 1);
    records[COUNT / 2].activation ^= 1;
    limits.memory_bytes = 8 << 20;
    opts.limits = &limits;
    sample_open(&a, PARAMS, "[{\"sequence_id\": 0, \"num_tokens\": 25000}]", grid(COUNT), COUNT);
    sample_open(&b, PARAMS, "[{\"sequence_id\": 0, \"num_tokens\": 25000}]", records, COUNT);
    coffer_node *root = diff_with(&a, &b, &opts);
    assert_records(root, COUNT - 1, 1, 0, 0);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void what_does_not_fit_the_memory_limit_is_refused(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    sample a, b;
    coffer_node *root = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_record *records = grid(COUNT);
    shuffle(records, COUNT, 3);
    limits.memory_bytes = 4 << 20;
    opts.limits = &limits;
    sample_open(&a, PARAMS, SEQUENCES, grid(COUNT), COUNT);
    sample_open(&b, PARAMS, SEQUENCES, records, COUNT);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_diff(root, a.source, b.source, &opts, &err), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "100000 records"));
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    assert_true(done <= total);
    return 1;
}

static void a_caller_can_stop_the_comparison(void **state)
{
    (void)state;
    sample a, b;
    coffer_node *root = NULL;
    coffer_progress progress = { sizeof progress, stop, NULL };
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    opts.progress = &progress;
    sample_open(&a, PARAMS, SEQUENCES, grid(100), 100);
    sample_open(&b, PARAMS, SEQUENCES, grid(99), 99);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_diff(root, a.source, b.source, &opts, NULL), COFFER_E_CANCELLED);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

/* ---- Parameters and metadata ---- */

static void parameters_are_matched_by_name_when_their_ids_differ(void **state)
{
    (void)state;
    sample a, b;
    const coffer_mscan_record in_a[] = { { 0, 0, 0, 1, 1 }, { 0, 1, 0, 2, 2 }, { 1, 2, 0, 3, 3 } };
    const coffer_mscan_record in_b[] = { { 0, 5, 0, 1, 1 }, { 0, 0, 0, 2, 2 }, { 1, 9, 0, 3, 3 } };
    sample_open(&a, "{\"0\": \"q\", \"1\": \"k\", \"2\": \"v\"}", SEQUENCES, copy_of(in_a, 3), 3);
    sample_open(&b, "{\"5\": \"q\", \"0\": \"k\", \"9\": \"v\"}", SEQUENCES, copy_of(in_b, 3), 3);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_false(is_equal(root));
    assert_records(root, 3, 0, 0, 0);
    assert_int_equal(number(root, NULL, "metadata_differences"), 3);
    assert_change(root, 0, "params.k.id", "1", "0");
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

/* b's id 1 is a parameter of its own, while b's id 2 is what a calls 1. */
static void a_record_of_a_parameter_that_only_one_scan_has_is_named_by_that_scan(void **state)
{
    (void)state;
    sample a, b;
    const coffer_mscan_record in_a[] = { { 0, 0, 0, 1, 1 }, { 0, 1, 0, 2, 2 } };
    const coffer_mscan_record in_b[] = {
        { 0, 0, 0, 1, 1 }, { 0, 1, 0, 7, 7 }, { 0, 2, 0, 2, 2 }, { 0, 2, 1, 4, 4 }
    };
    sample_open(&a, "{\"0\": \"q\", \"1\": \"k\"}", SEQUENCES, copy_of(in_a, 2), 2);
    sample_open(&b, "{\"0\": \"q\", \"1\": \"new\", \"2\": \"k\"}", SEQUENCES, copy_of(in_b, 4), 4);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_records(root, 2, 0, 0, 2);
    assert_text(entry(root, "differences", 0), "param", "new");
    assert_text(entry(root, "differences", 1), "param", "k");
    assert_change(root, 0, "id_to_param_name_map.1", NULL, "new");
    assert_change(root, 1, "params.k.id", "1", "2");
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void a_renamed_parameter_keeps_its_records_and_a_removed_one_does_not(void **state)
{
    (void)state;
    sample a, b;
    const coffer_mscan_record records[] = { { 0, 0, 0, 1, 1 }, { 0, 1, 0, 2, 2 } };
    sample_open(&a, "{\"0\": \"old\", \"1\": \"gone\"}", SEQUENCES, copy_of(records, 2), 2);
    sample_open(&b, "{\"0\": \"new\"}", SEQUENCES, copy_of(records, 2), 2);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_records(root, 1, 0, 1, 1);
    assert_change(root, 0, "id_to_param_name_map.0", "old", "new");
    assert_change(root, 1, "id_to_param_name_map.1", "gone", NULL);
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void sequences_are_compared_and_what_follows_from_the_records_is_not(void **state)
{
    (void)state;
    sample a, b;
    sample_open(
        &a, PARAMS,
        "[{\"sequence_id\": 0, \"num_tokens\": 5, \"source\": \"one\", \"first_record\": 0, \"num_records\": "
        "0},"
        " {\"sequence_id\": 1, \"num_tokens\": 6, \"x\": 1}, {\"sequence_id\": 2, \"num_tokens\": 1}]",
        NULL, 0);
    sample_open(&b, PARAMS,
                "[{\"num_tokens\": 5, \"sequence_id\": 0, \"source\": \"two\"},"
                " {\"sequence_id\": 1, \"num_tokens\": 7, \"x\": 2}]",
                NULL, 0);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_int_equal(number(root, NULL, "metadata_differences"), 4);
    assert_change(root, 0, "sequences.0.source", "one", "two");
    assert_change(root, 1, "sequences.1.num_tokens", "6", "7");
    assert_change(root, 2, "sequences.1.x", "1", "2");
    assert_text(entry(root, "metadata", 3), "path", "sequences.2");
    assert_text(entry(root, "metadata", 3), "change", "removed");
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

static void other_keys_are_compared_by_value_not_by_order(void **state)
{
    (void)state;
    sample a, b;
    sample_open(&a, PARAMS,
                SEQUENCES ", \"same\": {\"x\": [1, 2.0], \"y\": null}, \"n\": 1, \"only_a\": true", NULL, 0);
    sample_open(&b, PARAMS,
                SEQUENCES ", \"n\": 2, \"same\": {\"y\": null, \"x\": [1.0, 2]}, \"only_b\": \"t\"", NULL, 0);
    coffer_node *root = diff_with(&a, &b, NULL);
    assert_int_equal(number(root, NULL, "metadata_differences"), 3);
    assert_change(root, 0, "n", "1", "2");
    assert_text(entry(root, "metadata", 1), "path", "only_a");
    assert_text(entry(root, "metadata", 1), "change", "removed");
    assert_change(root, 2, "only_b", NULL, "t");
    coffer_node_free(root);
    sample_close(&a);
    sample_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_equals_itself_and_its_shuffled_copy),
        cmocka_unit_test(changes_are_counted_measured_and_listed),
        cmocka_unit_test(differences_within_the_tolerance_do_not_count),
        cmocka_unit_test(records_of_only_one_scan_are_reported),
        cmocka_unit_test(the_same_place_twice_is_paired_in_order),
        cmocka_unit_test(the_list_stops_at_its_maximum_and_the_counts_do_not),
        cmocka_unit_test(random_scans_give_what_pairing_by_hand_gives),
        cmocka_unit_test(scans_larger_than_a_slab_are_compared_piece_by_piece),
        cmocka_unit_test(what_does_not_fit_the_memory_limit_is_refused),
        cmocka_unit_test(a_caller_can_stop_the_comparison),
        cmocka_unit_test(parameters_are_matched_by_name_when_their_ids_differ),
        cmocka_unit_test(a_record_of_a_parameter_that_only_one_scan_has_is_named_by_that_scan),
        cmocka_unit_test(a_renamed_parameter_keeps_its_records_and_a_removed_one_does_not),
        cmocka_unit_test(sequences_are_compared_and_what_follows_from_the_records_is_not),
        cmocka_unit_test(other_keys_are_compared_by_value_not_by_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
