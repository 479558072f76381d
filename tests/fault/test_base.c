/* Every allocation of findings, nodes and JSON fails once: nothing leaks, nothing is left half done. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/report.h"
#include "support/fault.h"

#include <string.h>

static const char *no_memory_or_fine(const char *folder, void *context, const fault_case *which)
{
    (void)folder;
    (void)context;
    if (which->status != COFFER_OK && which->status != COFFER_E_NO_MEMORY)
        return "the status is not no-memory";
    return NULL;
}

static coffer_status collect_findings(const char *folder, void *context, coffer_error *err)
{
    (void)folder;
    (void)context;
    coffer_report *report;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (status != COFFER_OK)
        return status;
    for (int i = 0; i < 40; i++)
        assert_true(coffer__report_add(report, COFFER_E_BAD_VALUE, COFFER_ERROR, 0, "number %d", i));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 40);
    for (size_t i = 0; i < coffer_report_count(report); i++)
        assert_non_null(coffer_report_at(report, i)->text);
    status = coffer__report_status(report, err);
    assert_int_equal(status == COFFER_OK, coffer_report_count(report) == 40);
    coffer_report_free(report);
    return status;
}

static void findings_survive_a_lack_of_memory(void **state)
{
    (void)state;
    fault_each(&(fault_test){ .run = collect_findings, .verify = no_memory_or_fine });
}

static coffer_status build_nodes(const char *folder, void *context, coffer_error *err)
{
    (void)folder;
    (void)context;
    coffer_node *root;
    coffer_status status = coffer_node_new(&root, err);
    if (status != COFFER_OK)
        return status;
    coffer_node *list = coffer_node_add_list(root, "entries");
    for (uint64_t i = 0; i < 200; i++) {
        coffer_node *entry = coffer_node_add_map(list, NULL);
        coffer_node_add_printf(entry, "name", "entry %d", (int)i);
        coffer_node_add_text(entry, "text", "words");
        coffer_node_add_u64(entry, "at", i, COFFER_UNIT_OFFSET);
    }
    status = coffer_node_status(root, err);
    if (status == COFFER_OK)
        assert_int_equal(coffer_node_count(coffer_node_find(root, "entries")), 200);
    coffer_node_free(root);
    return status;
}

static void nodes_survive_a_lack_of_memory(void **state)
{
    (void)state;
    fault_each(&(fault_test){ .run = build_nodes, .verify = no_memory_or_fine });
}

/* Parses `text` and writes the values unchanged. */
static coffer_status copy_json(coffer_error *err, const char *text)
{
    coffer__json *json = NULL;
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer_status status = coffer__json_parse(&json, text, strlen(text), 0, NULL, err);
    if (status != COFFER_OK) {
        assert_null(json);
        return status;
    }
    coffer__json_writer_init(&writer, &out, 0);
    coffer__json_write_value(&writer, coffer__json_root(json));
    if (out.failed)
        status = coffer__fail_no_memory(err, strlen(text));
    else
        assert_string_equal(coffer__buffer_text(&out), text);
    coffer__buffer_free(&out);
    coffer__json_free(json);
    return status;
}

static coffer_status read_and_write_json(const char *folder, void *context, coffer_error *err)
{
    (void)folder;
    (void)context;
    return copy_json(err, "[{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9},"
                          "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10,"
                          "\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17},\"é\\n\",-1.5]");
}

static void json_survives_a_lack_of_memory(void **state)
{
    (void)state;
    fault_each(&(fault_test){ .run = read_and_write_json, .verify = no_memory_or_fine });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_survive_a_lack_of_memory),
        cmocka_unit_test(nodes_survive_a_lack_of_memory),
        cmocka_unit_test(json_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
