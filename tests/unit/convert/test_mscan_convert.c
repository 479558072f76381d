#include "support/temp.h"

#include "base/buffer.h"
#include "coffer/coffer.h"
#include "formats/mscan/mscan_private.h"
#include "outside/arrays/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO_SEQUENCES COFFER_TEST_DATA "/vectors/mscan/two-sequences.mscan"

/* ---- Converting ---- */

/* Settings as "name=value" or "name", NULL at the end. */
static coffer_status convert_with(const char *in, const char *out, coffer_convert_opts *opts,
                                  const char *const *settings, coffer_error *err)
{
    coffer_setting list[8];
    char names[8][32];
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, in, NULL, err);
    if (status)
        return status;
    opts->settings = list;
    for (opts->setting_count = 0; settings && *settings; settings++) {
        const char *equals = strchr(*settings, '=');
        size_t len = equals ? (size_t)(equals - *settings) : strlen(*settings);
        snprintf(names[opts->setting_count], sizeof names[0], "%.*s", (int)len, *settings);
        list[opts->setting_count] =
            (coffer_setting){ names[opts->setting_count], equals ? equals + 1 : NULL };
        opts->setting_count++;
    }
    status = coffer_convert(src, out, opts, err);
    coffer_source_close(src);
    return status;
}

static coffer_status try_convert(const char *in, const char *out, const char *const *settings,
                                 coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    return convert_with(in, out, &opts, settings, err);
}

#define WITH(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void convert(const char *in, const char *out, const char *const *settings)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (try_convert(in, out, settings, &err) != COFFER_OK)
        fail_msg("%s to %s: %s", in, out, err.text);
}

static void assert_fails(const char *in, const char *out, const char *const *settings, coffer_status expected,
                         const char *part_of_message)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = try_convert(in, out, settings, &err);
    if (status != expected || !strstr(err.text, part_of_message))
        fail_msg("%s (%s), expected %s with \"%s\"", coffer_status_name(status), err.text,
                 coffer_status_name(expected), part_of_message);
    assert_false(temp_exists(out));
}

static const char *in_folder(const char *name)
{
    return temp_path(temp_folder, name);
}

static const char *write_text(const char *name, const char *text)
{
    const char *path = in_folder(name);
    temp_write(path, text, strlen(text));
    return path;
}

static void assert_text(const char *path, const char *expected)
{
    uint8_t *found = temp_read(path, NULL);
    assert_non_null(found);
    assert_string_equal((const char *)found, expected);
    free(found);
}

static size_t lines_of(const char *path)
{
    size_t count = 0;
    uint8_t *found = temp_read(path, NULL);
    assert_non_null(found);
    for (const uint8_t *at = found; *at; at++)
        count += *at == '\n';
    free(found);
    return count;
}

/* ---- Scans ---- */

typedef struct opened {
    coffer_source *src;
    coffer_mscan *scan;
} opened;

static opened open_scan(const char *path)
{
    opened out;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_source_open(&out.src, path, NULL, &err) || coffer_mscan_open(&out.scan, out.src, NULL, &err))
        fail_msg("%s: %s", path, err.text);
    return out;
}

static void close_scan(opened *done)
{
    coffer_mscan_close(done->scan);
    coffer_source_close(done->src);
}

static bool hold_the_same(const char *a, const char *b)
{
    opened left = open_scan(a), right = open_scan(b);
    coffer_node *root = NULL;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_diff(root, left.src, right.src, NULL, NULL), COFFER_OK);
    bool same = coffer_node_get_bool(coffer_node_find(root, "equal"));
    coffer_node_free(root);
    close_scan(&left);
    close_scan(&right);
    return same;
}

static void assert_clean(const char *path)
{
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    opts.full = true;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    coffer_source_close(src);
}

/* ---- Out and back ---- */

static void records_and_metadata_come_back_through_every_kind(void **state)
{
    (void)state;
    static const char *const kinds[] = { "records.npy", "records.csv", "records.jsonl" };
    for (size_t i = 0; i < 3; i++) {
        temp_empty(temp_folder);
        char metadata[300];
        snprintf(metadata, sizeof metadata, "metadata=%s", in_folder("m.json"));
        convert(TWO_SEQUENCES, in_folder(kinds[i]), WITH(metadata));
        convert(in_folder(kinds[i]), in_folder("back.mscan"), WITH(metadata));
        assert_true(hold_the_same(TWO_SEQUENCES, in_folder("back.mscan")));
        assert_clean(in_folder("back.mscan"));
        temp_assert_only(temp_folder, "m.json", kinds[i], "back.mscan", NULL);
    }
}

static void names_and_sequences_in_columns_replace_metadata(void **state)
{
    (void)state;
    static const char *const kinds[] = { "records.csv", "records.jsonl" };
    for (size_t i = 0; i < 2; i++) {
        temp_empty(temp_folder);
        convert(TWO_SEQUENCES, in_folder(kinds[i]), WITH("names"));
        convert(in_folder(kinds[i]), in_folder("back.mscan"), NULL);
        opened before = open_scan(TWO_SEQUENCES), after = open_scan(in_folder("back.mscan"));
        assert_int_equal(coffer_mscan_record_count(after.scan), 288);
        assert_int_equal(coffer_mscan_sequence_count(after.scan), 2);
        for (uint16_t id = 0; id < 6; id++)
            assert_string_equal(coffer_mscan_param_name(after.scan, id),
                                coffer_mscan_param_name(before.scan, id));
        close_scan(&before);
        close_scan(&after);
    }
}

static void the_array_is_what_numpy_expects(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.npy"), NULL);
    size_t len;
    uint8_t *bytes = temp_read(in_folder("a.npy"), &len);
    static const char descr[] =
        "{'descr': [('token_idx', '<u4'), ('param_id', '<u2'), ('block_idx', '<u2'), "
        "('activation', '<u2'), ('grad_norm', '<u2')], 'fortran_order': False, 'shape': (288,), }";
    assert_memory_equal(bytes + 10, descr, sizeof descr - 1);
    opened scan = open_scan(TWO_SEQUENCES);
    assert_int_equal(len % 64, 0);
    assert_memory_equal(bytes + len - 288 * 12, coffer_mscan_view(scan.scan, 0, 288), 288 * 12);
    close_scan(&scan);
    free(bytes);
}

static void columns_go_to_files_of_their_own(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.npy"), WITH("columns"));
    temp_assert_only(temp_folder, "a.token_idx.npy", "a.param_id.npy", "a.block_idx.npy", "a.activation.npy",
                     "a.grad_norm.npy", NULL);
    coffer_source *src = NULL;
    coffer__npy npy;
    opened scan = open_scan(TWO_SEQUENCES);
    coffer_mscan_record records[288];
    uint16_t values[288];
    assert_int_equal(coffer_source_open(&src, in_folder("a.activation.npy"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__npy_read(&npy, src, NULL), COFFER_OK);
    assert_false(npy.structured);
    assert_int_equal(npy.count, 288);
    assert_int_equal(coffer_source_read_at(values, src, npy.data_offset, sizeof values, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_read(records, scan.scan, 0, 288, NULL), COFFER_OK);
    for (size_t i = 0; i < 288; i++)
        assert_int_equal(coffer__load_u16(&values[i]), records[i].activation);
    coffer__npy_free(&npy);
    coffer_source_close(src);
    close_scan(&scan);
}

static void raw_bytes_are_the_array_without_its_header(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.raw"), WITH("tokens=3..5"));
    size_t len;
    uint8_t *bytes = temp_read(in_folder("a.raw"), &len);
    opened scan = open_scan(TWO_SEQUENCES);
    uint64_t first, count;
    assert_int_equal(coffer_mscan_find_tokens(&first, &count, scan.scan, 3, 5, NULL), COFFER_OK);
    assert_int_equal(len, count * 12);
    assert_memory_equal(bytes, coffer_mscan_view(scan.scan, first, count), len);
    close_scan(&scan);
    free(bytes);
}

/* ---- Choosing ---- */

static void filters_choose_by_name_token_and_sequence(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    /* 12 tokens with 24 records each: 6 parameters and 4 blocks; the second sequence has 5 tokens. */
    convert(TWO_SEQUENCES, in_folder("p.csv"), WITH("param=*.q_proj.*"));
    assert_int_equal(lines_of(in_folder("p.csv")), 1 + 12 * 2 * 4);
    convert(TWO_SEQUENCES, in_folder("t.csv"), WITH("tokens=2..5"));
    assert_int_equal(lines_of(in_folder("t.csv")), 1 + 3 * 24);
    convert(TWO_SEQUENCES, in_folder("s.csv"), WITH("sequence=1"));
    assert_int_equal(lines_of(in_folder("s.csv")), 1 + 5 * 24);
    convert(TWO_SEQUENCES, in_folder("st.jsonl"), WITH("sequence=1", "tokens=..8", "param=*layers.0*"));
    assert_int_equal(lines_of(in_folder("st.jsonl")), 1 * 4);
    convert(TWO_SEQUENCES, in_folder("none.npy"), WITH("param=nothing"));
    coffer_source *src = NULL;
    coffer__npy npy;
    assert_int_equal(coffer_source_open(&src, in_folder("none.npy"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__npy_read(&npy, src, NULL), COFFER_OK);
    assert_int_equal(npy.count, 0);
    coffer__npy_free(&npy);
    coffer_source_close(src);
}

static void columns_are_chosen_and_ordered_by_name(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.csv"), WITH("only=activation,param_name,token_idx", "tokens=0"));
    uint8_t *text = temp_read(in_folder("a.csv"), NULL);
    static const char start[] =
        "activation,param_name,token_idx\n17611,model.layers.0.self_attn.q_proj.weight,0\n";
    assert_memory_equal(text, start, sizeof start - 1);
    free(text);
    assert_fails(TWO_SEQUENCES, in_folder("b.csv"), WITH("only=color"), COFFER_E_INVALID_ARGUMENT,
                 "\"color\"");
    assert_fails(TWO_SEQUENCES, in_folder("b.npy"), WITH("only=param_name"), COFFER_E_INVALID_ARGUMENT,
                 "param_name");
    assert_fails(TWO_SEQUENCES, in_folder("b.csv"), WITH("only=token_idx,token_idx"),
                 COFFER_E_INVALID_ARGUMENT, "twice");
    assert_fails(TWO_SEQUENCES, in_folder("b.csv"), WITH("sequence=2"), COFFER_E_INVALID_ARGUMENT,
                 "sequence 2");
    assert_fails(TWO_SEQUENCES, in_folder("b.csv"), WITH("tokens=5..2"), COFFER_E_INVALID_ARGUMENT, "5..2");
}

/* ---- Real units ---- */

static void real_values_become_raw_ones_and_back(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    const char *csv = write_text("real.csv", "token_idx,param_id,block_idx,activation,grad_norm\n"
                                             "0,0,0,-1.5,0\n0,1,0,2.5,1e-3\n1,0,0,0.25,5e-4\n");
    convert(csv, in_folder("q.mscan"), WITH("quantize"));
    assert_clean(in_folder("q.mscan"));
    opened scan = open_scan(in_folder("q.mscan"));
    coffer_mscan_record records[3];
    assert_int_equal(coffer_mscan_read(records, scan.scan, 0, 3, NULL), COFFER_OK);
    assert_int_equal(records[0].activation, 0);
    assert_int_equal(records[1].activation, 65535);
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(scan.scan, COFFER_MSCAN_ACTIVATION, 0, 0);
    assert_non_null(scale);
    assert_true(scale->offset == -1.5);
    assert_true(fabs(scale->offset + scale->scale * records[2].activation - 0.25) <= scale->scale / 2);
    close_scan(&scan);

    char metadata[300];
    snprintf(metadata, sizeof metadata, "metadata=%s", in_folder("m.json"));
    convert(in_folder("q.mscan"), in_folder("r.npy"), WITH("real", metadata));
    convert(in_folder("r.npy"), in_folder("again.mscan"), WITH("quantize", metadata));
    assert_true(hold_the_same(in_folder("q.mscan"), in_folder("again.mscan")));
    convert(in_folder("q.mscan"), in_folder("r.jsonl"), WITH("real"));
    uint8_t *text = temp_read(in_folder("r.jsonl"), NULL);
    static const char start[] =
        "{\"token_idx\":0,\"param_id\":0,\"block_idx\":0,\"activation\":-1.5,\"grad_norm\":0.0}\n";
    assert_memory_equal(text, start, sizeof start - 1);
    free(text);
}

static void without_a_scale_there_are_no_real_units(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    char metadata[300];
    assert_fails(TWO_SEQUENCES, in_folder("a.csv"), WITH("real"), COFFER_E_UNSUPPORTED, "quantization");
    convert(TWO_SEQUENCES, in_folder("a.csv"), NULL);
    write_text("m.json", "{}");
    snprintf(metadata, sizeof metadata, "metadata=%s", in_folder("m.json"));
    assert_fails(in_folder("a.csv"), in_folder("b.mscan"), WITH("quantize", metadata), COFFER_E_MISSING,
                 "quantization");
}

static void one_value_all_over_is_quantized_without_dividing_by_nothing(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    const char *csv =
        write_text("one.csv", "token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,7.5,-1\n");
    convert(csv, in_folder("q.mscan"), WITH("quantize"));
    convert(in_folder("q.mscan"), in_folder("r.csv"), WITH("real", "only=activation,grad_norm"));
    assert_text(in_folder("r.csv"), "activation,grad_norm\n7.5,-1.0\n");
}

/* ---- In ---- */

static void columns_come_in_any_order_and_any_spelling_of_a_number(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    const char *csv =
        write_text("a.csv", "\xef\xbb\xbf\"grad_norm\",activation,block_idx,param_name,token_idx\r\n"
                            "1,2.0,3,\"b, \"\"quoted\"\"\",4\r\n5,6e1,7,a,8\r\n");
    convert(csv, in_folder("a.mscan"), WITH("model-name=tiny"));
    opened scan = open_scan(in_folder("a.mscan"));
    coffer_mscan_record records[2];
    assert_int_equal(coffer_mscan_record_count(scan.scan), 2);
    assert_int_equal(coffer_mscan_read(records, scan.scan, 0, 2, NULL), COFFER_OK);
    const coffer_mscan_record expected[2] = { { 4, 0, 3, 2, 1 }, { 8, 1, 7, 60, 5 } };
    assert_memory_equal(records, expected, sizeof expected);
    assert_string_equal(coffer_mscan_param_name(scan.scan, 0), "b, \"quoted\"");
    assert_string_equal(coffer_mscan_param_name(scan.scan, 1), "a");
    assert_string_equal(coffer_mscan_model_name(scan.scan), "tiny");
    assert_int_equal(coffer_mscan_total_tokens(scan.scan), 9);
    close_scan(&scan);
}

static void arrays_of_other_types_and_byte_orders_come_in(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    static const char literal[] =
        "{'descr': [('activation', '>u2'), ('', '|V1'), ('token_idx', '<i8'), ('grad_norm', '<f4'), "
        "('param_id', '|u1'), ('block_idx', '>i4')], 'fortran_order': True, 'shape': (1,), }";
    static const uint8_t item[] = {
        0x01, 0x02, 0xee, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x40, 5, 0, 0, 0, 6
    };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    const uint8_t prefix[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, sizeof literal - 1, 0 };
    coffer__buffer_append(&bytes, prefix, sizeof prefix);
    coffer__buffer_append(&bytes, literal, sizeof literal - 1);
    coffer__buffer_append(&bytes, item, sizeof item);
    temp_write(in_folder("a.bin"), bytes.data, bytes.len); /* known by its content */
    convert(in_folder("a.bin"), in_folder("a.mscan"), NULL);
    opened scan = open_scan(in_folder("a.mscan"));
    coffer_mscan_record record;
    assert_int_equal(coffer_mscan_read(&record, scan.scan, 0, 1, NULL), COFFER_OK);
    const coffer_mscan_record expected = { 9, 5, 6, 258, 3 };
    assert_memory_equal(&record, &expected, sizeof expected);
    assert_string_equal(coffer_mscan_param_name(scan.scan, 5), "param 5");
    close_scan(&scan);
    coffer__buffer_free(&bytes);
}

static void lengths_and_names_can_be_given(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    char names[300];
    const char *csv = write_text("a.csv", "token_idx,param_id,block_idx,activation,grad_norm\n4,1,0,1,1\n");
    snprintf(names, sizeof names, "param-names=%s", write_text("names.txt", "first\nsecond\r\n"));
    convert(csv, in_folder("a.mscan"), WITH(names, "sequence-lengths=3,0,4"));
    opened scan = open_scan(in_folder("a.mscan"));
    assert_int_equal(coffer_mscan_total_tokens(scan.scan), 7);
    assert_int_equal(coffer_mscan_sequence_count(scan.scan), 3);
    assert_string_equal(coffer_mscan_param_name(scan.scan, 0), "first");
    assert_string_equal(coffer_mscan_param_name(scan.scan, 1), "second");
    close_scan(&scan);
    assert_fails(in_folder("a.csv"), in_folder("b.mscan"), WITH("sequence-lengths=2,2"),
                 COFFER_E_INCONSISTENT, "token 4");
    assert_fails(in_folder("a.csv"), in_folder("b.mscan"), WITH("sequence-lengths=2,x"),
                 COFFER_E_INVALID_ARGUMENT, "x");
}

static void a_file_without_rows_is_a_scan_without_records(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(write_text("a.csv", "token_idx,param_id,block_idx,activation,grad_norm\n"), in_folder("a.mscan"),
            NULL);
    convert(write_text("a.jsonl", "\n"), in_folder("b.mscan"), NULL);
    assert_true(hold_the_same(in_folder("a.mscan"), in_folder("b.mscan")));
    assert_clean(in_folder("a.mscan"));
}

/* ---- Bad input ---- */

#define TITLE "token_idx,param_id,block_idx,activation,grad_norm\n"

static void a_value_that_does_not_fit_is_named_by_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *message;
    } cases[] = {
        { "0,0,0,1,1\n0,0,0,65536,1\n", "line 3, column activation: 65536" },
        { "4294967296,0,0,1,1\n", "line 2, column token_idx: 4294967296" },
        { "0,65536,0,1,1\n", "line 2, column param_id" },
        { "0,0,-1,1,1\n", "line 2, column block_idx: -1" },
        { "0,0,0,1,0.5\n", "line 2, column grad_norm: 0.5" },
        { "0,0,0,1,nan\n", "line 2, column grad_norm: nan" },
        { "0,0,0,x,1\n", "line 2, column activation: \"x\" is not a number" },
        { "0,0,0,,1\n", "line 2, column activation: \"\" is not a number" },
        { "0,0,0,0x10,1\n", "line 2, column activation: \"0x10\"" },
        { "0,0,0,1\n", "line 2 has 4 fields" },
        { "0,0,0,1,1,1\n", "line 2 has 6 fields" },
        { "0,0,0,1,1\n\n", "line 3 has 1 fields" },
    };
    temp_empty(temp_folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, TITLE "%s", cases[i].rows);
        assert_fails(write_text("bad.csv", text), in_folder("a.mscan"), NULL, COFFER_E_BAD_VALUE,
                     cases[i].message);
    }
}

static void a_title_that_does_not_name_the_columns_is_refused(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    assert_fails(write_text("a.csv", ""), in_folder("a.mscan"), NULL, COFFER_E_MISSING, "empty");
    assert_fails(write_text("a.csv", "token_idx,param_id,block_idx,activation\n"), in_folder("a.mscan"), NULL,
                 COFFER_E_MISSING, "grad_norm");
    assert_fails(write_text("a.csv", "token_idx,block_idx,activation,grad_norm\n"), in_folder("a.mscan"),
                 NULL, COFFER_E_MISSING, "param_name");
    assert_fails(write_text("a.csv", "token_idx,token_idx\n"), in_folder("a.mscan"), NULL, COFFER_E_DUPLICATE,
                 "twice");
    assert_fails(write_text("a.csv", "index\n"), in_folder("a.mscan"), NULL, COFFER_E_BAD_VALUE, "\"index\"");
}

static void lines_of_json_that_disagree_with_the_first_are_refused(void **state)
{
    (void)state;
    static const char first[] =
        "{\"token_idx\":0,\"param_id\":0,\"block_idx\":0,\"activation\":1,\"grad_norm\":2}\n";
    static const struct {
        const char *line, *message;
        coffer_status status;
    } cases[] = {
        { "{\"token_idx\":0}", "line 2 has 1 keys", COFFER_E_BAD_VALUE },
        { "{\"token_idx\":0,\"param_id\":0,\"block_idx\":0,\"activation\":1,\"sequence\":2}", "\"sequence\"",
          COFFER_E_BAD_VALUE },
        { "{\"token_idx\":0,\"param_id\":0,\"block_idx\":0,\"activation\":\"1\",\"grad_norm\":2}",
          "line 2, key activation", COFFER_E_BAD_VALUE },
        { "{\"token_idx\":0,", "line 2", COFFER_E_BAD_JSON },
    };
    temp_empty(temp_folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s%s\n", first, cases[i].line);
        assert_fails(write_text("bad.jsonl", text), in_folder("a.mscan"), NULL, cases[i].status,
                     cases[i].message);
    }
}

static void rows_that_contradict_the_metadata_are_refused(void **state)
{
    (void)state;
    char metadata[300];
    temp_empty(temp_folder);
    write_text(
        "m.json",
        "{\"id_to_param_name_map\": {\"0\": \"a\"}, \"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 2}, "
        "{\"sequence_id\": 1, \"num_tokens\": 2}]}");
    snprintf(metadata, sizeof metadata, "metadata=%s", in_folder("m.json"));
    assert_fails(write_text("a.csv", TITLE "0,1,0,1,1\n"), in_folder("a.mscan"), WITH(metadata),
                 COFFER_E_DANGLING_REFERENCE, "param_id 1");
    assert_fails(write_text("a.csv", TITLE "4,0,0,1,1\n"), in_folder("a.mscan"), WITH(metadata),
                 COFFER_E_INCONSISTENT, "line 2, column token_idx: token 4");
    assert_fails(write_text("a.csv", "sequence," TITLE "0,2,0,0,1,1\n"), in_folder("a.mscan"), WITH(metadata),
                 COFFER_E_INCONSISTENT, "is in sequence 1");
    assert_fails(write_text("a.csv", "param_name," TITLE "b,0,0,0,1,1\n"), in_folder("a.mscan"),
                 WITH(metadata), COFFER_E_INCONSISTENT, "\"b\" is not the name");
    assert_fails(write_text("a.csv", TITLE), in_folder("a.mscan"), WITH(metadata, "model-name=x"),
                 COFFER_E_INVALID_ARGUMENT, "model-name");
    write_text("m.json", "{\"sequences\":");
    assert_fails(write_text("a.csv", TITLE "0,0,0,1,1\n"), in_folder("a.mscan"), WITH(metadata),
                 COFFER_E_BAD_JSON, "m.json: JSON, byte 13 of 13");
}

static void sequences_that_overlap_or_run_wild_are_refused(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    assert_fails(write_text("a.csv", "sequence," TITLE "0,5,0,0,1,1\n1,3,0,0,1,1\n"), in_folder("a.mscan"),
                 NULL, COFFER_E_INCONSISTENT, "sequence 1 begins at token 3");
    assert_fails(write_text("a.csv", "sequence," TITLE "4000000000,5,0,0,1,1\n"), in_folder("a.mscan"), NULL,
                 COFFER_E_BAD_VALUE, "column sequence");
}

static void an_array_without_the_fields_of_a_record_is_refused(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.npy"), WITH("only=activation"));
    assert_fails(in_folder("a.npy"), in_folder("a.mscan"), NULL, COFFER_E_BAD_VALUE, "without named fields");
    convert(TWO_SEQUENCES, in_folder("b.npy"), WITH("only=activation,token_idx"));
    assert_fails(in_folder("b.npy"), in_folder("a.mscan"), NULL, COFFER_E_MISSING, "param_id");
}

/* ---- The table ---- */

static void a_pair_that_is_not_in_the_table_names_those_that_are(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    convert(TWO_SEQUENCES, in_folder("a.csv"), NULL);
    assert_fails(in_folder("a.csv"), in_folder("b.gguf"), NULL, COFFER_E_UNSUPPORTED, "from csv to: mscan");
    assert_fails(in_folder("a.csv"), in_folder("b"), NULL, COFFER_E_INVALID_ARGUMENT, "from csv to: mscan");
    assert_fails(TWO_SEQUENCES, in_folder("b.mscan"), NULL, COFFER_E_UNSUPPORTED, "npy, csv, jsonl");
    assert_fails(TWO_SEQUENCES, in_folder("b.npy"), WITH("quantize"), COFFER_E_INVALID_ARGUMENT,
                 "\"quantize\"");
    assert_fails(TWO_SEQUENCES, in_folder("b.npy"), WITH("param"), COFFER_E_INVALID_ARGUMENT,
                 "requires a value");
    assert_fails(write_text("c.dat", "no such thing"), in_folder("b.mscan"), NULL, COFFER_E_NOT_RECOGNISED,
                 "");
}

static void kinds_can_be_forced_and_a_name_never_beats_the_content(void **state)
{
    (void)state;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_error err = COFFER_ERROR_INIT;
    temp_empty(temp_folder);
    temp_copy(TWO_SEQUENCES, in_folder("scan.csv"));
    opts.to = "csv";
    assert_int_equal(convert_with(in_folder("scan.csv"), in_folder("text"), &opts, NULL, &err), COFFER_OK);
    opts.to = "mscan";
    opts.from = "csv";
    assert_int_equal(convert_with(in_folder("text"), in_folder("back"), &opts, NULL, &err), COFFER_OK);
    opts.from = "picture";
    assert_int_equal(convert_with(in_folder("text"), in_folder("back"), &opts, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
}

static void every_row_of_the_table_declares_its_options(void **state)
{
    (void)state;
    assert_true(coffer_conversion_count() >= 7);
    assert_null(coffer_conversion_at(coffer_conversion_count()));
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        for (size_t j = 0; j < coffer_conversion_option_count(conversion); j++) {
            assert_true(strlen(coffer_conversion_option_at(conversion, j)->name) > 0);
            assert_true(strlen(coffer_conversion_option_at(conversion, j)->help) > 0);
        }
    }
}

/* ---- Outputs ---- */

static void an_output_that_exists_is_kept_unless_overwrite_is_set(void **state)
{
    (void)state;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    temp_empty(temp_folder);
    const char *out = write_text("a.csv", "mine");
    assert_int_equal(convert_with(TWO_SEQUENCES, out, &opts, NULL, &err), COFFER_E_EXISTS);
    assert_text(out, "mine");
    temp_assert_only(temp_folder, "a.csv", NULL);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    assert_true(done <= total);
    return 1;
}

static void a_conversion_that_is_stopped_leaves_nothing(void **state)
{
    (void)state;
    static const char *const kinds[] = { "a.npy", "a.csv", "a.jsonl", "a.raw" };
    coffer_progress progress = { sizeof progress, stop_at_once, NULL };
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_error err = COFFER_ERROR_INIT;
    temp_empty(temp_folder);
    opts.progress = &progress;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(convert_with(TWO_SEQUENCES, in_folder(kinds[i]), &opts, NULL, &err),
                         COFFER_E_CANCELLED);
    assert_int_equal(convert_with(TWO_SEQUENCES, in_folder("c.npy"), &opts, WITH("columns"), &err),
                     COFFER_E_CANCELLED);
    temp_assert_only(temp_folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_and_metadata_come_back_through_every_kind),
        cmocka_unit_test(names_and_sequences_in_columns_replace_metadata),
        cmocka_unit_test(the_array_is_what_numpy_expects),
        cmocka_unit_test(columns_go_to_files_of_their_own),
        cmocka_unit_test(raw_bytes_are_the_array_without_its_header),
        cmocka_unit_test(filters_choose_by_name_token_and_sequence),
        cmocka_unit_test(columns_are_chosen_and_ordered_by_name),
        cmocka_unit_test(real_values_become_raw_ones_and_back),
        cmocka_unit_test(without_a_scale_there_are_no_real_units),
        cmocka_unit_test(one_value_all_over_is_quantized_without_dividing_by_nothing),
        cmocka_unit_test(columns_come_in_any_order_and_any_spelling_of_a_number),
        cmocka_unit_test(arrays_of_other_types_and_byte_orders_come_in),
        cmocka_unit_test(lengths_and_names_can_be_given),
        cmocka_unit_test(a_file_without_rows_is_a_scan_without_records),
        cmocka_unit_test(a_value_that_does_not_fit_is_named_by_line_and_column),
        cmocka_unit_test(a_title_that_does_not_name_the_columns_is_refused),
        cmocka_unit_test(lines_of_json_that_disagree_with_the_first_are_refused),
        cmocka_unit_test(rows_that_contradict_the_metadata_are_refused),
        cmocka_unit_test(sequences_that_overlap_or_run_wild_are_refused),
        cmocka_unit_test(an_array_without_the_fields_of_a_record_is_refused),
        cmocka_unit_test(a_pair_that_is_not_in_the_table_names_those_that_are),
        cmocka_unit_test(kinds_can_be_forced_and_a_name_never_beats_the_content),
        cmocka_unit_test(every_row_of_the_table_declares_its_options),
        cmocka_unit_test(an_output_that_exists_is_kept_unless_overwrite_is_set),
        cmocka_unit_test(a_conversion_that_is_stopped_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
