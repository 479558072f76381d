/* Every file of tests/vectors whose format is known gives what the manifest says, over each kind of source.
 */
#include "base/crc32.h"
#include "base/json.h"
#include "base/options.h"
#include "coffer/pycauset.h"
#include "support/dataset.h"
#include "support/scan.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FROM_MEMORY, BY_READING, BY_MAPPING, KINDS } kind;

static const char *current; /* the vector in hand, for messages */

static coffer_source *open_as(kind how, const char *path, uint8_t *bytes, size_t len)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    if (how == FROM_MEMORY)
        return scan_source_of(bytes, len);
    opts.access = how == BY_MAPPING ? COFFER_ACCESS_MAP : COFFER_ACCESS_READ;
    assert_int_equal(coffer_source_open(&src, path, &opts, NULL), COFFER_OK);
    return src;
}

static const char *text_of(const coffer__json_value *vector, const char *key)
{
    const coffer__json_value *value = coffer__json_find(vector, key);
    return value && value->kind == COFFER__JSON_STRING ? value->as.string : NULL;
}

/* ---- Facts that a description does not hold ---- */

static void assert_number(const coffer__json_value *fact, uint64_t found)
{
    if (fact->kind != COFFER__JSON_U64 || found != fact->as.u64)
        fail_msg("%s: %s is %llu", current, fact->key, (unsigned long long)found);
}

static void assert_column_sum(const coffer__json_value *fact, coffer_source *src)
{
    bool activation = strcmp(fact->key, "sum_activation") == 0;
    coffer_mscan *scan = scan_open(src);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < coffer_mscan_record_count(scan); i++) {
        coffer_mscan_record record;
        assert_int_equal(coffer_mscan_read(&record, scan, i, 1, NULL), COFFER_OK);
        sum += activation ? record.activation : record.grad_norm;
    }
    coffer_mscan_close(scan);
    assert_number(fact, sum);
}

static void assert_names(const coffer__json_value *fact, coffer_source *src)
{
    coffer_node *listed = NULL;
    const coffer_node *entry;
    const coffer__json_value *name = coffer__json_first(fact);
    assert_int_equal(coffer_node_new(&listed, NULL), COFFER_OK);
    assert_int_equal(coffer_list(listed, src, NULL, NULL), COFFER_OK);
    entry = coffer_node_first(coffer_node_find(listed, "entries"));
    for (; entry && name; entry = coffer_node_next(entry), name = coffer__json_next(fact, name))
        assert_string_equal(coffer_node_get_text(coffer_node_find(entry, "name"), NULL), name->as.string);
    if (entry || name)
        fail_msg("%s: names are missing or too many", current);
    coffer_node_free(listed);
}

static coffer_pycauset *open_matrix(coffer_source *src)
{
    coffer_pycauset *matrix = NULL;
    assert_int_equal(coffer_pycauset_open(&matrix, src, NULL, NULL), COFFER_OK);
    return matrix;
}

static void assert_stale(const coffer__json_value *fact, coffer_source *src)
{
    coffer_node *described = NULL;
    const coffer__json_value *name = coffer__json_first(fact);
    coffer_pycauset *matrix = open_matrix(src);
    assert_int_equal(coffer_node_new(&described, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(described, src, NULL, NULL), COFFER_OK);
    const coffer_node *entry = coffer_node_first(coffer_node_find(described, "stale"));
    for (; entry && name; entry = coffer_node_next(entry), name = coffer__json_next(fact, name)) {
        bool stale = false;
        assert_string_equal(coffer_node_get_text(entry, NULL), name->as.string);
        assert_null(coffer_pycauset_cached(matrix, name->as.string, &stale));
        assert_true(stale);
    }
    if (entry || name)
        fail_msg("%s: stale names are missing or too many", current);
    coffer_pycauset_close(matrix);
    coffer_node_free(described);
}

static void assert_cached(const coffer__json_value *fact, coffer_source *src)
{
    coffer_pycauset *matrix = open_matrix(src);
    assert_true(coffer_pycauset_value_f64(coffer_pycauset_cached(matrix, fact->key, NULL)) == fact->as.f64);
    coffer_pycauset_close(matrix);
}

/* Through the view; `part` 0 is the real one. */
static void assert_elements(const coffer__json_value *fact, coffer_source *src, int part)
{
    coffer_pycauset *matrix = open_matrix(src);
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    const coffer__json_value *expected = coffer__json_first(fact);
    for (uint64_t i = 0; i < info->rows * info->cols; i++, expected = coffer__json_next(fact, expected)) {
        double found[2], wanted = 0;
        assert_int_equal(coffer_pycauset_get(&found[0], &found[1], matrix, i / info->cols, i % info->cols,
                                             NULL),
                         COFFER_OK);
        assert_true(coffer__json_f64(&wanted, expected));
        if (found[part] != wanted)
            fail_msg("%s: element %llu is %g, not %g", current, (unsigned long long)i, found[part], wanted);
    }
    assert_null(expected);
    coffer_pycauset_close(matrix);
}

static void assert_real(const coffer__json_value *fact, coffer_source *src)
{
    assert_elements(fact, src, 0);
}

static void assert_imaginary(const coffer__json_value *fact, coffer_source *src)
{
    assert_elements(fact, src, 1);
}

static void assert_ones(const coffer__json_value *fact, coffer_source *src)
{
    coffer_pycauset *matrix = open_matrix(src);
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    uint64_t ones = 0;
    for (uint64_t i = 0; i < info->rows * info->cols; i++) {
        double real, imag;
        assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, i / info->cols, i % info->cols, NULL),
                         COFFER_OK);
        ones += real == 1;
    }
    coffer_pycauset_close(matrix);
    assert_number(fact, ones);
}

static void assert_labels(const coffer__json_value *fact, coffer_source *src)
{
    const coffer__json_value *expected = coffer__json_first(fact);
    coffer_mldf *set = dataset_open(src);
    size_t field = coffer_mldf_find_field(set, "label");
    for (uint64_t i = 0; i < coffer_mldf_sample_count(set);
         i++, expected = coffer__json_next(fact, expected)) {
        int64_t label = 0;
        assert_int_equal(coffer_mldf_get_int(&label, set, i, field, NULL), COFFER_OK);
        assert_true(label ==
                    (expected->kind == COFFER__JSON_U64 ? (int64_t)expected->as.u64 : expected->as.i64));
    }
    assert_null(expected);
    coffer_mldf_close(set);
}

static void assert_caption(const coffer__json_value *fact, coffer_source *src)
{
    coffer_bytes text = COFFER_BYTES_INIT;
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_get_text(&text, set, 3, coffer_mldf_find_field(set, "caption"), NULL),
                     COFFER_OK);
    assert_string_equal((const char *)text.data, fact->as.string);
    coffer_free(text.data);
    coffer_mldf_close(set);
}

static void assert_present(const coffer__json_value *fact, coffer_source *src)
{
    const coffer__json_value *expected = coffer__json_first(fact);
    coffer_mldf *set = dataset_open(src);
    size_t field = coffer_mldf_find_field(set, "raw");
    for (uint64_t i = 0; i < coffer_mldf_sample_count(set);
         i++, expected = coffer__json_next(fact, expected)) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        assert_int_equal(coffer_mldf_entry_at(&entry, set, i, field, NULL), COFFER_OK);
        assert_int_equal(entry.present, expected->as.boolean);
    }
    assert_null(expected);
    coffer_mldf_close(set);
}

static void assert_image_sum(const coffer__json_value *fact, coffer_source *src)
{
    coffer_bytes image = COFFER_BYTES_INIT;
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_read(&image, NULL, set, 5, coffer_mldf_find_field(set, "image"), NULL),
                     COFFER_OK);
    assert_number(fact, coffer__crc32(0, image.data, image.size));
    coffer_free(image.data);
    coffer_mldf_close(set);
}

/* The result of pairing every free with its allocation. */
static void assert_total(const coffer__json_value *fact, coffer_source *src)
{
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_stats *stats = NULL;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(stats);
    if (strcmp(fact->key, "peak_bytes") == 0)
        assert_number(fact, totals->peak_bytes);
    else if (strcmp(fact->key, "live_bytes_at_end") == 0)
        assert_number(fact, totals->live_bytes_at_end);
    else if (strcmp(fact->key, "live_allocs_at_end") == 0)
        assert_number(fact, totals->live_allocs_at_end);
    else
        assert_number(fact, totals->total_allocated_bytes);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
}

static const struct fact_test {
    const char *key;
    void (*assert_holds)(const coffer__json_value *fact, coffer_source *src);
} fact_tests[] = {
    { "sum_activation", assert_column_sum },
    { "sum_grad_norm", assert_column_sum },
    { "names", assert_names },
    { "fields", assert_names },
    { "labels", assert_labels },
    { "caption_3", assert_caption },
    { "raw_present", assert_present },
    { "crc32_image_5", assert_image_sum },
    { "stale", assert_stale },
    { "trace", assert_cached },
    { "values", assert_real },
    { "ones", assert_ones },
    { "re", assert_real },
    { "im", assert_imaginary },
    { "peak_bytes", assert_total },
    { "live_bytes_at_end", assert_total },
    { "live_allocs_at_end", assert_total },
    { "total_allocated_bytes", assert_total },
};

/* ---- Facts ---- */

static void assert_described(const coffer__json_value *fact, const coffer_node *described)
{
    const coffer_node *node = coffer_node_find(described, fact->key);
    if (!node)
        fail_msg("%s: info has no %s", current, fact->key);
    else if (fact->kind == COFFER__JSON_STRING)
        assert_string_equal(coffer_node_get_text(node, NULL), fact->as.string);
    else
        assert_number(fact, coffer_node_get_u64(node));
}

static void assert_fact(const coffer__json_value *fact, const coffer_node *described, coffer_source *src)
{
    for (size_t i = 0; i < sizeof fact_tests / sizeof fact_tests[0]; i++) {
        if (strcmp(fact_tests[i].key, fact->key) == 0) {
            fact_tests[i].assert_holds(fact, src);
            return;
        }
    }
    assert_described(fact, described);
}

static void assert_facts(const coffer__json_value *facts, coffer_source *src)
{
    coffer_node *described = NULL;
    assert_int_equal(coffer_node_new(&described, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(described, src, NULL, NULL), COFFER_OK);
    for (const coffer__json_value *fact = coffer__json_first(facts); fact;
         fact = coffer__json_next(facts, fact))
        assert_fact(fact, described, src);
    coffer_node_free(described);
}

static bool has_finding(const coffer_report *report, const char *code, const char *severity)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (strcmp(coffer_status_name(finding->code), code) == 0 &&
            strcmp(coffer_severity_name(finding->severity), severity) == 0)
            return true;
    }
    return false;
}

static void try_vector(const coffer__json_value *vector, kind how, const char *path, uint8_t *bytes,
                       size_t len)
{
    const coffer__json_value *ok = coffer__json_find(vector, "ok");
    const char *code = text_of(vector, "code");
    coffer_source *src = open_as(how, path, bytes, len);
    coffer_report *report = scan_check(src, false);
    assert_non_null(ok);
    if (ok->as.boolean != (coffer_report_total(report, COFFER_ERROR) == 0))
        fail_msg("%s: %llu errors", current, (unsigned long long)coffer_report_total(report, COFFER_ERROR));
    if (code && !has_finding(report, code, text_of(vector, "severity")))
        fail_msg("%s: %s was not found", current, code);
    if (coffer__json_find(vector, "facts"))
        assert_facts(coffer__json_find(vector, "facts"), src);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void try_every_kind(const coffer__json_value *vector)
{
    char path[4096];
    size_t len;
    uint8_t *bytes;
    current = text_of(vector, "file");
    snprintf(path, sizeof path, "%s/vectors/%s", COFFER_TEST_DATA, current);
    bytes = temp_read(path, &len);
    assert_non_null(bytes);
    for (kind how = FROM_MEMORY; how < KINDS; how++)
        try_vector(vector, how, path, bytes, len);
    free(bytes);
}

static void every_vector_gives_what_the_manifest_says(void **state)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer__json *manifest = NULL;
    const coffer__json_value *list, *vector;
    size_t len, tried = 0;
    uint8_t *text = temp_read(COFFER_TEST_DATA "/vectors/manifest.json", &len);
    (void)state;
    assert_non_null(text);
    assert_int_equal(coffer__json_parse(&manifest, (char *)text, len, 0, &limits, NULL), COFFER_OK);
    list = coffer__json_find(coffer__json_root(manifest), "vectors");
    for (vector = coffer__json_first(list); vector; vector = coffer__json_next(list, vector)) {
        if (coffer_format_by_name(text_of(vector, "format"))) {
            try_every_kind(vector);
            tried++;
        }
    }
    assert_true(tried >= 20);
    coffer__json_free(manifest);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_gives_what_the_manifest_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
