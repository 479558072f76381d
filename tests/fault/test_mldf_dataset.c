/* Every allocation and every file operation of packing and converting training sets fails once. */
#include "support/fault.h"

#include "coffer/coffer.h"
#include "coffer/dataset.h"
#include "coffer/mldf.h"

#include "support/picture_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void put_pictures(const char *folder, void *context)
{
    static const char *const names[] = { "in/cat/a.png", "in/cat/b.png", "in/dog/c.png" };
    (void)context;
    mkdir(temp_path(folder, "in"), 0777);
    mkdir(temp_path(folder, "in/cat"), 0777);
    mkdir(temp_path(folder, "in/dog"), 0777);
    for (uint8_t i = 0; i < 3; i++) {
        uint8_t rows[3] = { 0, i, 9 };
        png_parts parts = { .width = 2, .height = 1, .bit_depth = 8, .rows = rows, .row_len = 3 };
        coffer__buffer png = png_build(&parts);
        temp_write(temp_path(folder, names[i]), png.data, png.len);
        coffer__buffer_free(&png);
    }
}

static coffer_status pack(const char *folder, void *context, coffer_error *err)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    const char *input = temp_path(folder, "in");
    coffer_node *facts = NULL;
    (void)context;
    write.threads = 1;
    opts.write = &write;
    opts.raw = true;
    coffer_status status = coffer_node_new(&facts, err);
    if (!status)
        status = coffer_mldf_pack(facts, &input, 1, temp_path(folder, "out.mldf"), &opts, err);
    coffer_node_free(facts);
    return status;
}

/* A set is whole or not there. */
static const char *judge_set(const char *path, uint64_t samples, const fault_case *which)
{
    coffer_source *source = NULL;
    coffer_mldf *set = NULL;
    const char *wrong = NULL;
    if (!temp_exists(path))
        return which->status == COFFER_OK ? "it succeeded and the set is missing" : NULL;
    if (coffer_source_open(&source, path, NULL, NULL) != COFFER_OK ||
        coffer_mldf_open(&set, source, NULL, NULL) != COFFER_OK)
        wrong = "the set cannot be opened";
    else if (coffer_mldf_sample_count(set) != samples)
        wrong = "samples are missing";
    coffer_mldf_close(set);
    coffer_source_close(source);
    return wrong;
}

static const char *judge_pack(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    return judge_set(temp_path(folder, "out.mldf"), 3, which);
}

static void packing_a_folder_survives_every_failure(void **state)
{
    (void)state;
    fault_each(&(fault_test){ .setup = put_pictures, .run = pack, .verify = judge_pack });
}

/* ---- In parts ---- */

static coffer_status pack_with(const char *folder, const char *out, const coffer_mldf_pack_opts *given,
                               coffer_error *err)
{
    coffer_mldf_pack_opts opts = *given;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    const char *input = temp_path(folder, "in");
    write.threads = 1;
    opts.write = &write;
    return coffer_mldf_pack(NULL, &input, 1, out ? temp_path(folder, out) : NULL, &opts, err);
}

static void put_parts(const char *folder, void *context)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    put_pictures(folder, context);
    opts.count = 2;
    assert_int_equal(pack_with(folder, "a.mldf", &opts, NULL), COFFER_OK);
    opts.first = 2;
    opts.count = 1;
    assert_int_equal(pack_with(folder, "b.mldf", &opts, NULL), COFFER_OK);
}

/* Counts the samples, then joins the parts. */
static coffer_status join(const char *folder, void *context, coffer_error *err)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    char first[512], second[512];
    const char *const parts[] = { first, second };
    (void)context;
    snprintf(first, sizeof first, "%s", temp_path(folder, "a.mldf"));
    snprintf(second, sizeof second, "%s", temp_path(folder, "b.mldf"));
    opts.dry_run = true;
    coffer_status status = pack_with(folder, NULL, &opts, err);
    opts.dry_run = false;
    opts.parts = parts;
    opts.part_count = 2;
    return status ? status : pack_with(folder, "out.mldf", &opts, err);
}

static void joining_parts_survives_every_failure(void **state)
{
    (void)state;
    fault_each(&(fault_test){ .setup = put_parts, .run = join, .verify = judge_pack });
}

/* ---- Conversions ---- */

typedef struct scenario {
    const char *in, *out;
    const char *fields; /* only these; NULL = all */
} scenario;

static const char lines[] = "{\"n\": 1, \"w\": 0.5, \"t\": \"one\", \"j\": [1]}\n"
                            "{\"n\": 2, \"w\": 1.5, \"t\": \"two\"}\n";

static coffer_status convert_file(const char *folder, const char *in, const char *out, const char *fields,
                                  coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_setting setting = { "field", fields };
    coffer_source *source = NULL;
    coffer_status status = coffer_source_open(&source, temp_path(folder, in), NULL, err);
    opts.settings = &setting;
    opts.setting_count = fields ? 1 : 0;
    if (!status)
        status = coffer_convert(source, temp_path(folder, out), &opts, err);
    coffer_source_close(source);
    return status;
}

static void put_files(const char *folder, void *context)
{
    static const char *const files[] = { "a.tar", "a.tfrecord" };
    (void)context;
    temp_write(temp_path(folder, "a.jsonl"), lines, sizeof lines - 1);
    assert_int_equal(convert_file(folder, "a.jsonl", "a.mldf", NULL, NULL), COFFER_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(convert_file(folder, "a.mldf", files[i], NULL, NULL), COFFER_OK);
    assert_int_equal(convert_file(folder, "a.mldf", "a.npz", "n,w", NULL), COFFER_OK);
}

static coffer_status convert(const char *folder, void *context, coffer_error *err)
{
    const scenario *what = context;
    return convert_file(folder, what->in, what->out, what->fields, err);
}

static const char *judge_convert(const char *folder, void *context, const fault_case *which)
{
    const scenario *what = context;
    const char *path = temp_path(folder, what->out);
    if (strstr(what->out, ".mldf"))
        return judge_set(path, 2, which);
    if (which->status == COFFER_OK && !temp_exists(path))
        return "it succeeded and the output is missing";
    return NULL;
}

static void conversions_survive_every_failure(void **state)
{
    (void)state;
    static scenario scenarios[] = {
        { "a.mldf", "b.tar", NULL },   { "a.mldf", "b.tfrecord", NULL }, { "a.mldf", "b.jsonl", NULL },
        { "a.mldf", "b.npz", "n,w" },  { "a.tar", "b.mldf", NULL },      { "a.tfrecord", "b.mldf", NULL },
        { "a.jsonl", "b.mldf", NULL }, { "a.npz", "b.mldf", NULL },
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        fault_each(&(fault_test){
            .setup = put_files, .run = convert, .verify = judge_convert, .context = &scenarios[i] });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_a_folder_survives_every_failure),
        cmocka_unit_test(joining_parts_survives_every_failure),
        cmocka_unit_test(conversions_survive_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
