/* The worked examples of docs/formats: every number that a page gives must be true. A page is a row below. */
#include "base/bytes.h"
#include "coffer/coffer.h"
#include "support/doc_page.h"
#include "support/temp.h"
#include "support/trace.h"

#include <stdlib.h>
#include <string.h>

#define PAGE(format) COFFER_SOURCE_ROOT "/docs/formats/" format ".md"

/* ---- Facts that the library gives ---- */

static void mscan_facts(doc_facts *out, coffer_source *source)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan *scan = NULL;
    coffer_mscan_stats *stats = NULL;
    assert_int_equal(coffer_mscan_open(&scan, source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_new(&stats, scan, &query, NULL), COFFER_OK);
    const coffer_mscan_group *total = coffer_mscan_stats_total(stats);
    doc_add_fact(out, "records", coffer_mscan_record_count(scan));
    doc_add_fact(out, "parameters", coffer_mscan_param_count(scan));
    doc_add_fact(out, "sequences", coffer_mscan_sequence_count(scan));
    doc_add_fact(out, "total tokens", coffer_mscan_total_tokens(scan));
    doc_add_fact(out, "first token of sequence 1", coffer_mscan_sequence_at(scan, 1)->first_token);
    doc_add_fact(out, "sum of activations", total->column[COFFER_MSCAN_ACTIVATION].sum);
    doc_add_fact(out, "sum of gradient norms", total->column[COFFER_MSCAN_GRAD_NORM].sum);
    coffer_mscan_stats_free(stats);
    coffer_mscan_close(scan);
}

enum { ROWS = 2, COLUMNS = 3 };
static const float values[ROWS * COLUMNS] = { 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, -1.0f };

static const coffer_mcf_tensor *tensor(const coffer_mcf *model, const char *name)
{
    return coffer_mcf_tensor_at(model, coffer_mcf_find_tensor(model, name, strlen(name)));
}

static void mcf_facts(doc_facts *out, coffer_source *source)
{
    coffer_mcf *model = NULL;
    const coffer_mcf_model_info *info = NULL;
    assert_int_equal(coffer_mcf_open(&model, source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_get_model_info(&info, model, NULL), COFFER_OK);
    assert_int_equal(info->kv_count, 1);
    assert_string_equal(info->kvs[0].key, "epoch");
    for (size_t i = 0; i < 2; i++) {
        float read[ROWS * COLUMNS];
        assert_int_equal(coffer_mcf_read_rows_f32(read, model, i, 0, ROWS, NULL), COFFER_OK);
        assert_memory_equal(read, values, sizeof values);
    }
    doc_add_fact(out, "sections", coffer_mcf_section_count(model));
    doc_add_fact(out, "tensors", coffer_mcf_tensor_count(model));
    doc_add_fact(out, "rows of embed", coffer_mcf_row_count(tensor(model, "embed")));
    doc_add_fact(out, "columns of embed", coffer_mcf_row_elements(tensor(model, "embed")));
    doc_add_fact(out, "bytes of embed", tensor(model, "embed")->size);
    doc_add_fact(out, "offset of head", tensor(model, "head")->offset);
    doc_add_fact(out, "architecture", info->arch);
    doc_add_fact(out, "value of epoch", info->kvs[0].u32);
    coffer_mcf_close(model);
}

static void mldf_facts(doc_facts *out, coffer_source *source)
{
    coffer_mldf *set = NULL;
    coffer_bytes text = COFFER_BYTES_INIT;
    int64_t label;
    uint64_t absent = 0;
    assert_int_equal(coffer_mldf_open(&set, source, NULL, NULL), COFFER_OK);
    const size_t texts = coffer_mldf_find_field(set, "text");
    assert_int_equal(coffer_mldf_get_int(&label, set, 0, coffer_mldf_find_field(set, "label"), NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_get_text(&text, set, 0, texts, NULL), COFFER_OK);
    for (uint64_t i = 0; i < coffer_mldf_sample_count(set); i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        assert_int_equal(coffer_mldf_entry_at(&entry, set, i, texts, NULL), COFFER_OK);
        absent += !entry.present;
    }
    doc_add_fact(out, "samples", coffer_mldf_sample_count(set));
    doc_add_fact(out, "fields", coffer_mldf_field_count(set));
    doc_add_fact(out, "descriptor stride", coffer_mldf_descriptor_stride(set));
    doc_add_fact(out, "row size", coffer_mldf_row_size(set));
    doc_add_fact(out, "label of sample 0", (uint64_t)label);
    doc_add_fact(out, "bytes of text in sample 0", text.size);
    doc_add_fact(out, "texts that are absent", absent);
    coffer_free(text.data);
    coffer_mldf_close(set);
}

static void mlyze_facts(doc_facts *out, coffer_source *source)
{
    coffer_mlyze *trace = trace_open(source, NULL);
    coffer_mlyze_events events = trace_read_all(trace);
    size_t blocks, depth;
    assert_int_equal(coffer_mlyze_load_index(&blocks, trace, NULL, NULL), COFFER_OK);
    doc_add_fact(out, "events", events.count);
    doc_add_fact(out, "blocks", blocks);
    doc_add_fact(out, "stacks", coffer_mlyze_stack_count(trace));
    doc_add_fact(out, "line of the innermost frame", coffer_mlyze_frames(&depth, trace, 0)->line);
    doc_add_fact(out, "size of the allocation", events.size[0]);
    doc_add_fact(out, "time of the last event", events.time[2]);
    doc_add_fact(out, "live bytes before the block", coffer_mlyze_index_at(trace, 0)->live_bytes);
    doc_add_fact(out, "high-water bytes in the block", coffer_mlyze_index_at(trace, 0)->high_bytes);
    doc_add_fact(out, "most allocations live in the block", coffer_mlyze_index_at(trace, 0)->high_allocs);
    trace_columns_free(&events);
    coffer_mlyze_close(trace);
}

static void pycauset_facts(doc_facts *out, coffer_source *source)
{
    coffer_pycauset *matrix = NULL;
    coffer_pycauset_history *history = NULL;
    double real, imag;
    assert_int_equal(coffer_pycauset_open(&matrix, source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_history_open(&history, source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, 1, 2, NULL), COFFER_OK);
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    const coffer_pycauset_value *label =
        coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.label");
    assert_string_equal(coffer_pycauset_value_text(label, NULL), "hi"); /* of the active generation */
    doc_add_fact(out, "rows", info->rows);
    doc_add_fact(out, "columns", info->cols);
    doc_add_fact(out, "bytes the payload needs", info->payload_needed);
    doc_add_fact(out, "active generation", info->generation);
    doc_add_fact(out, "metadata blocks", coffer_pycauset_history_count(history));
    doc_add_fact(out, "element 1, 2", (uint64_t)real);
    coffer_pycauset_history_close(history);
    coffer_pycauset_close(matrix);
}

/* ---- The pages ---- */

typedef struct doc_example {
    const char *path;
    size_t byte_rows; /* at least */
    void (*facts)(doc_facts *out, coffer_source *source);
    bool notes; /* a check may have some */
} doc_example;

static doc_example pages[] = {
    { PAGE("mscan"), 4 + 3 * 5, mscan_facts, true }, { PAGE("mcf"), 50, mcf_facts, false },
    { PAGE("mldf"), 34, mldf_facts, false },         { PAGE("mlyze"), 29, mlyze_facts, false },
    { PAGE("pycauset"), 20, pycauset_facts, true },
};

static doc_dump dump;

static coffer_source *open_example(const doc_example *page)
{
    coffer_source *source = NULL;
    doc_parse_dump(&dump, page->path);
    assert_int_equal(coffer_source_from_memory(&source, dump.bytes, dump.size, NULL), COFFER_OK);
    return source;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *page = *state;
    doc_parse_dump(&dump, page->path);
    assert_true(doc_check_byte_table(page->path, &dump) >= page->byte_rows);
}

static void every_fact_is_what_the_library_says(void **state)
{
    const doc_example *page = *state;
    coffer_source *source = open_example(page);
    doc_facts facts = { 0 };
    doc_add_fact(&facts, "file size", dump.size);
    page->facts(&facts, source);
    doc_check_facts(page->path, &facts);
    coffer_source_close(source);
}

static void a_full_check_finds_no_damage(void **state)
{
    const doc_example *page = *state;
    coffer_source *source = open_example(page);
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, source, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    assert_true(page->notes || coffer_report_count(report) == 0);
    coffer_report_free(report);
    coffer_source_close(source);
}

static void add(coffer_mcf_writer *writer, const char *name)
{
    static const uint64_t dims[] = { ROWS, COLUMNS };
    const coffer_mcf_new_tensor new = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_F32, name, strlen(name), 2, dims, NULL
    };
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &new, NULL), COFFER_OK);
    float stored[ROWS * COLUMNS];
    memcpy(stored, values, sizeof stored);
    coffer__swap_numbers(stored, sizeof stored[0], ROWS * COLUMNS);
    assert_int_equal(coffer_mcf_writer_write(writer, stored, sizeof stored, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
}

static void the_writer_lays_the_model_of_the_page_out_in_the_same_bytes(void **state)
{
    const coffer_mcf_kv epoch = { sizeof(coffer_mcf_kv), COFFER_MCF_KV_U32, "epoch", 3, 0.0f, NULL, 0 };
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_mcf_writer *writer = NULL;
    char *folder = temp_make();
    const char *path = temp_path(folder, "tiny.mcf");
    (void)state;
    doc_parse_dump(&dump, PAGE("mcf"));
    info.arch = coffer_mcf_arch_by_name("llama");
    info.vocab_size = ROWS;
    info.hidden_size = COLUMNS;
    info.model_name = "tiny";
    info.kvs = &epoch;
    info.kv_count = 1;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{\"n\":1}", 7, NULL),
                     COFFER_OK);
    add(writer, "embed");
    add(writer, "head");
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_true(temp_holds(path, dump.bytes, dump.size));
    temp_remove(folder);
}

#define TESTS_OF(name, row)                                                                              \
    { name ": every row of the byte table agrees with the dump",                                         \
      every_row_of_the_byte_table_agrees_with_the_dump, NULL, NULL, &pages[row] },                       \
        { name ": every fact is what the library says", every_fact_is_what_the_library_says, NULL, NULL, \
          &pages[row] },                                                                                 \
    {                                                                                                    \
        name ": a full check finds no damage", a_full_check_finds_no_damage, NULL, NULL, &pages[row]     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTS_OF("mscan", 0),
        TESTS_OF("mcf", 1),
        TESTS_OF("mldf", 2),
        TESTS_OF("mlyze", 3),
        TESTS_OF("pycauset", 4),
        cmocka_unit_test(the_writer_lays_the_model_of_the_page_out_in_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
