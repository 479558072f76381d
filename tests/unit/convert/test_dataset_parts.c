/* A set that several calls pack together has the bytes of one that a single call packed. */
#include "coffer/coffer.h"
#include "coffer/dataset.h"

#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char whole_path[300], joined_path[300], input_path[300];
static char part_paths[4][300];
static const char *const parts[] = { part_paths[0], part_paths[1], part_paths[2], part_paths[3] };

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(whole_path, sizeof whole_path, "%s/whole.mldf", temp_folder);
    snprintf(joined_path, sizeof joined_path, "%s/joined.mldf", temp_folder);
    for (int i = 0; i < 4; i++)
        snprintf(part_paths[i], sizeof part_paths[i], "%s/part%d.mldf", temp_folder, i);
    return 0;
}

static void put_text(const char *name, const char *text)
{
    temp_write(temp_path(temp_folder, name), text, strlen(text));
}

/* Texts in two classes, of which some are equal, and one file that is left out. */
static void make_texts(int count)
{
    char name[64], text[4096];
    snprintf(input_path, sizeof input_path, "%s/texts", temp_folder);
    assert_int_equal(mkdir(input_path, 0777), 0);
    assert_int_equal(mkdir(temp_path(temp_folder, "texts/even"), 0777), 0);
    assert_int_equal(mkdir(temp_path(temp_folder, "texts/odd"), 0777), 0);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "texts/%s/%04d.txt", i % 2 ? "odd" : "even", i);
        int len = 0;
        for (int k = 0; k <= i % 40; k++)
            len += snprintf(text + len, sizeof text - (size_t)len, "line %d of text %d\n", k, i % 7);
        put_text(name, text);
    }
    put_text("texts/extra.bin", "not a text");
}

static void make_manifest(int count)
{
    char *text = malloc((size_t)count * 64 + 1), name[64];
    size_t len = 0;
    snprintf(input_path, sizeof input_path, "%s/rows.jsonl", temp_folder);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "file%d.txt", i);
        put_text(name, name);
        len += (size_t)sprintf(text + len, "{\"file\": \"file%d.txt\", \"score\": %d}\n", i, i * 3);
    }
    temp_write(input_path, text, len);
    free(text);
}

static coffer_mldf_pack_opts options(void)
{
    static const coffer_mldf_writer_opts write = { .struct_size = sizeof write, .overwrite = true };
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    opts.write = &write;
    return opts;
}

static coffer_status pack(coffer_node **facts, const char *out, const coffer_mldf_pack_opts *opts,
                          coffer_error *err)
{
    const char *input = input_path;
    assert_int_equal(coffer_node_new(facts, NULL), COFFER_OK);
    return coffer_mldf_pack(*facts, &input, 1, out, opts, err);
}

static coffer_node *must_pack(const char *out, const coffer_mldf_pack_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *facts = NULL;
    if (pack(&facts, out, opts, &err))
        fail_msg("%s", err.text);
    return facts;
}

static uint64_t number(const coffer_node *facts, const char *name)
{
    return coffer_node_get_u64(coffer_node_find(facts, name));
}

/* Packs in four ranges of different sizes; what : gets the "input" of the dry run. */
static void pack_parts(char what[80], coffer_mldf_pack_opts opts)
{
    opts.dry_run = true;
    coffer_node *facts = must_pack(NULL, &opts);
    uint64_t samples = number(facts, "samples"), packed = 0;
    snprintf(what, 80, "%s", coffer_node_get_text(coffer_node_find(facts, "input"), NULL));
    coffer_node_free(facts);
    const uint64_t bounds[] = { 0, 1, samples / 3, samples / 3 + 2, samples };
    opts.dry_run = false;
    opts.expected_input = what;
    for (size_t i = 0; i < 4; i++) {
        opts.first = bounds[i];
        opts.count = bounds[i + 1] - bounds[i];
        facts = must_pack(parts[i], &opts);
        assert_int_equal(number(facts, "samples"), opts.count);
        assert_int_equal(number(facts, "skipped"), 0);
        packed += number(facts, "packed");
        coffer_node_free(facts);
    }
    assert_int_equal(packed, samples);
}

static void assert_joined_is_whole(coffer_mldf_pack_opts opts)
{
    char what[80];
    size_t len;
    coffer_node *whole = must_pack(whole_path, &opts);
    pack_parts(what, opts);
    opts.parts = parts;
    opts.part_count = 4;
    opts.expected_input = what;
    coffer_node *joined = must_pack(joined_path, &opts);
    uint8_t *bytes = temp_read(whole_path, &len);
    assert_true(temp_holds(joined_path, bytes, len));
    free(bytes);
    assert_int_equal(number(joined, "samples"), number(whole, "samples"));
    assert_int_equal(number(joined, "found"), number(whole, "found"));
    assert_int_equal(number(joined, "skipped"), number(whole, "skipped"));
    coffer_node_free(whole);
    coffer_node_free(joined);
}

static void joined_parts_have_the_bytes_of_one_pack(void **state)
{
    coffer_mldf_pack_opts opts = options();
    (void)state;
    make_texts(300);
    assert_joined_is_whole(opts);
    opts.zstd = true;
    assert_joined_is_whole(opts);
    opts.dictionary = 1024;
    assert_joined_is_whole(opts);
    coffer_mldf_writer_opts write = *opts.write;
    write.dedup = true;
    write.page_size = 8192;
    opts.write = &write;
    assert_joined_is_whole(opts);
    write.no_checksums = true;
    assert_joined_is_whole(opts);
}

static void a_manifest_can_be_packed_in_parts(void **state)
{
    (void)state;
    make_manifest(200);
    assert_joined_is_whole(options());
}

/* Parts of the texts, then a change of the input: neither a part nor the join accepts it. */
static void assert_refused(coffer_mldf_pack_opts opts, const char *what, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *facts = NULL;
    opts.expected_input = what;
    assert_int_equal(pack(&facts, joined_path, &opts, &err), COFFER_E_CHANGED);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_false(temp_exists(joined_path));
    coffer_node_free(facts);
}

static void a_change_of_the_input_stops_the_join(void **state)
{
    char what[80];
    coffer_mldf_pack_opts opts = options();
    (void)state;
    make_texts(30);
    pack_parts(what, opts);
    put_text("texts/odd/0003.txt", "changed");
    opts.parts = parts;
    opts.part_count = 4;
    assert_refused(opts, what, "a file was changed");
    put_text("texts/odd/0003b.txt", "added");
    assert_refused(opts, what, "added, removed or changed");
    opts = options();
    opts.count = 5;
    assert_refused(opts, what, "added, removed or changed");
}

static void a_changed_file_of_a_manifest_stops_the_join(void **state)
{
    char what[80];
    coffer_mldf_pack_opts opts = options();
    (void)state;
    make_manifest(12);
    pack_parts(what, opts);
    put_text("file5.txt", "other text");
    opts.parts = parts;
    opts.part_count = 4;
    assert_refused(opts, what, "a file was changed");
}

static void parts_with_other_fields_are_refused_by_name(void **state)
{
    char what[80];
    coffer_mldf_pack_opts opts = options();
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *facts = NULL;
    (void)state;
    make_texts(30);
    pack_parts(what, opts);
    opts.zstd = true;
    opts.parts = parts;
    opts.part_count = 4;
    assert_int_equal(pack(&facts, joined_path, &opts, &err), COFFER_E_INCONSISTENT);
    assert_non_null(strstr(err.text, "part0.mldf"));
    assert_false(temp_exists(joined_path));
    coffer_node_free(facts);
}

static void samples_of_several_folders_are_named_as_asked(void **state)
{
    static const char *const names[] = { "../data/even", "data/odd" };
    char even[310], odd[310];
    const char *const inputs[] = { even, odd };
    coffer_mldf_pack_opts opts = options();
    coffer_mldf *set = NULL;
    coffer_source *src = NULL;
    coffer_bytes path = COFFER_BYTES_INIT;
    (void)state;
    make_texts(4);
    snprintf(even, sizeof even, "%s/even", input_path);
    snprintf(odd, sizeof odd, "%s/odd", input_path);
    opts.input_names = names;
    assert_int_equal(coffer_mldf_pack(NULL, inputs, 2, whole_path, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, whole_path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open(&set, src, NULL, NULL), COFFER_OK);
    size_t field = coffer_mldf_find_field(set, "path");
    assert_int_equal(coffer_mldf_read(&path, NULL, set, 0, field, NULL), COFFER_OK);
    assert_int_equal(path.size, strlen("data/even/0000.txt"));
    assert_memory_equal(path.data, "data/even/0000.txt", path.size);
    coffer_free(path.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    coffer_mldf_pack_opts opts = options();
    coffer_node *facts = NULL;
    (void)state;
    make_texts(4);
    opts.count = 2;
    opts.resume = true;
    assert_int_equal(pack(&facts, joined_path, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(facts);
    opts.resume = false;
    opts.parts = parts;
    opts.part_count = 1;
    assert_int_equal(pack(&facts, joined_path, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(facts);
    opts = options();
    opts.expected_input = "something else";
    assert_int_equal(pack(&facts, joined_path, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(joined_parts_have_the_bytes_of_one_pack, fresh),
        cmocka_unit_test_setup(a_manifest_can_be_packed_in_parts, fresh),
        cmocka_unit_test_setup(a_change_of_the_input_stops_the_join, fresh),
        cmocka_unit_test_setup(a_changed_file_of_a_manifest_stops_the_join, fresh),
        cmocka_unit_test_setup(parts_with_other_fields_are_refused_by_name, fresh),
        cmocka_unit_test_setup(samples_of_several_folders_are_named_as_asked, fresh),
        cmocka_unit_test_setup(options_that_contradict_each_other_are_refused, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
