#include "support/matrix.h"
#include "support/temp.h"

#include "base/report.h"
#include "base/work.h"
#include "formats/pycauset/pycauset_private.h"
#include "io/source_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_ROWS = 3, BLOCK_COLS = 2 };
static const uint64_t heights[BLOCK_ROWS] = { 5, 70, 1 }, widths[BLOCK_COLS] = { 90, 11 };

static void must(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s: %s", coffer_status_name(status), err->text);
}

typedef struct opened {
    coffer_source *src;
    coffer_pycauset *m;
} opened;

static void open_file(opened *out, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    must(coffer_source_open(&out->src, path, NULL, &err), &err);
    must(coffer_pycauset_open(&out->m, out->src, NULL, &err), &err);
}

static void close_file(opened *file)
{
    coffer_pycauset_close(file->m);
    coffer_source_close(file->src);
}

/* A block matrix of random children: matrices[i] is what block i holds. */
typedef struct sample {
    test_matrix matrices[BLOCK_ROWS * BLOCK_COLS];
    char paths[BLOCK_ROWS * BLOCK_COLS][300];
    char path[300], folder[320];
} sample;

static void make_children(sample *s, bool mixed, uint64_t seed)
{
    for (size_t i = 0; i < BLOCK_ROWS * BLOCK_COLS; i++) {
        coffer_pycauset_shape shape =
            test_matrix_kind(mixed ? (i * 5 + 1) % 12 : 11, heights[i / BLOCK_COLS], widths[i % BLOCK_COLS]);
        if (i % 2) { /* the stored shape is the other way round */
            shape.transposed = true;
            shape.rows = widths[i % BLOCK_COLS];
            shape.cols = heights[i / BLOCK_COLS];
        }
        test_matrix_make(&s->matrices[i], &shape, seed + i);
        snprintf(s->paths[i], sizeof s->paths[i], "%s/child%zu.pycauset", temp_folder, i);
        test_matrix_write(&s->matrices[i], s->paths[i], 10, NULL);
    }
}

static void write_blocks(sample *s)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *children[BLOCK_ROWS * BLOCK_COLS];
    opts.overwrite = true;
    for (size_t i = 0; i < BLOCK_ROWS * BLOCK_COLS; i++)
        children[i] = s->paths[i];
    snprintf(s->path, sizeof s->path, "%s/whole.pycauset", temp_folder);
    snprintf(s->folder, sizeof s->folder, "%s.blocks", s->path);
    must(coffer_pycauset_write_blocks(s->path, children, BLOCK_ROWS, BLOCK_COLS, &opts, &err), &err);
}

static void make_sample(sample *s, bool mixed, uint64_t seed)
{
    make_children(s, mixed, seed);
    write_blocks(s);
}

static void free_sample(sample *s)
{
    for (size_t i = 0; i < BLOCK_ROWS * BLOCK_COLS; i++)
        test_matrix_free(&s->matrices[i]);
    temp_empty(temp_folder);
}

static void value_of(double pair[2], const sample *s, uint64_t row, uint64_t col)
{
    size_t i = 0, j = 0;
    for (; row >= heights[i]; i++)
        row -= heights[i];
    for (; col >= widths[j]; j++)
        col -= widths[j];
    test_matrix_value(pair, &s->matrices[i * BLOCK_COLS + j], row, col);
}

static void check_values(const sample *s, const coffer_pycauset *m, double scalar, bool transposed)
{
    coffer_error err = COFFER_ERROR_INIT;
    const coffer_pycauset_info *info = coffer_pycauset_get_info(m);
    static const coffer_pycauset_tile tiles[] = {
        COFFER_PYCAUSET_TILE(0, 76, 0, 101),
        COFFER_PYCAUSET_TILE(3, 10, 80, 20),
        COFFER_PYCAUSET_TILE(75, 1, 0, 101),
        COFFER_PYCAUSET_TILE(4, 2, 89, 2),
    };
    for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
        coffer_pycauset_tile tile = tiles[t];
        if (transposed)
            tile = (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(tiles[t].col, tiles[t].cols, tiles[t].row,
                                                              tiles[t].rows);
        double *got = malloc((size_t)(tile.rows * tile.cols) * 16);
        must(coffer_pycauset_read_tile(got, 0, m, &tile, COFFER_DTYPE_C128, &err), &err);
        for (uint64_t i = 0; i < tile.rows * tile.cols; i++) {
            double expected[2];
            uint64_t row = tile.row + i / tile.cols, col = tile.col + i % tile.cols;
            value_of(expected, s, transposed ? col : row, transposed ? row : col);
            assert_true(got[2 * i] == scalar * expected[0] && got[2 * i + 1] == scalar * expected[1]);
        }
        free(got);
    }
    assert_int_equal(info->rows, transposed ? 101 : 76);
}

static void blocks_read_as_one_matrix(void **state)
{
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        sample s;
        opened file;
        make_sample(&s, mixed, 1);
        open_file(&file, s.path);
        assert_int_equal(coffer_pycauset_get_info(file.m)->type, COFFER_PYCAUSET_BLOCK);
        assert_int_equal(coffer_pycauset_get_info(file.m)->value_dtype, COFFER_DTYPE_F64);
        check_values(&s, file.m, 1, false);
        close_file(&file);
        free_sample(&s);
    }
}

static void set_view(const char *path, bool transposed, double scalar)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_changes *changes;
    coffer_pycauset_editor *editor;
    must(coffer_pycauset_changes_new(&changes, &err), &err);
    must(coffer_pycauset_changes_set_bool(changes, "view.is_transposed", transposed, &err), &err);
    must(coffer_pycauset_changes_set_f64(changes, "view.scalar", scalar, &err), &err);
    must(coffer_pycauset_editor_open(&editor, path, NULL, &err), &err);
    must(coffer_pycauset_editor_commit(NULL, editor, changes, &err), &err);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
}

static void the_view_of_the_whole_is_applied_to_the_blocks(void **state)
{
    (void)state;
    for (int v = 0; v < 4; v++) {
        sample s;
        opened file;
        make_sample(&s, v % 2, 2);
        set_view(s.path, v & 1, v & 2 ? -2 : 1);
        open_file(&file, s.path);
        check_values(&s, file.m, v & 2 ? -2 : 1, v & 1);
        close_file(&file);
        free_sample(&s);
    }
}

static void statistics_and_pictures_know_blocks(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_summary stats;
    double cell, sum = 0, squares = 0;
    sample s;
    opened file;
    make_sample(&s, true, 3);
    set_view(s.path, false, -2);
    for (uint64_t i = 0; i < 76; i++) {
        for (uint64_t j = 0; j < 101; j++) {
            double pair[2];
            value_of(pair, &s, i, j);
            sum += -2 * pair[0];
            squares += 4 * pair[0] * pair[0];
        }
    }
    open_file(&file, s.path);
    must(test_matrix_stats(&stats, file.m, NULL, &err), &err);
    assert_int_equal(stats.elements, 76 * 101);
    assert_true(fabs(stats.mean - sum / (76 * 101)) < 1e-9);
    assert_true(fabs(stats.frobenius - sqrt(squares)) < 1e-9 * sqrt(squares));
    must(coffer_pycauset_downsample(&cell, 1, 1, file.m, NULL, &err), &err);
    assert_true(fabs(cell - stats.mean) < 1e-9);
    close_file(&file);
    free_sample(&s);
}

static coffer_status read_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const coffer_pycauset *m = context;
    coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(index % 76, 1, 0, 101);
    double row[101];
    (void)worker;
    return coffer_pycauset_read_tile(row, 0, m, &tile, COFFER_DTYPE_F64, err);
}

static void many_threads_may_read_at_the_same_time(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer__pool *pool;
    sample s;
    opened file;
    make_sample(&s, true, 4);
    open_file(&file, s.path);
    must(coffer__pool_new(&pool, 4, &err), &err);
    must(coffer__pool_run(pool, 300, read_one, file.m, &err), &err);
    coffer__pool_free(pool);
    close_file(&file);
    free_sample(&s);
}

/* ---- Replacing ---- */

static size_t files_in(const char *folder)
{
    char command[400];
    size_t count = 0;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_int_equal(fscanf(pipe, "%zu", &count), 1);
    pclose(pipe);
    return count;
}

static void a_new_block_matrix_leaves_no_child_of_the_old_one(void **state)
{
    (void)state;
    sample s;
    opened file;
    make_sample(&s, false, 5);
    for (size_t i = 0; i < BLOCK_ROWS * BLOCK_COLS; i++)
        test_matrix_free(&s.matrices[i]);
    make_sample(&s, false, 100);
    assert_int_equal(files_in(s.folder), BLOCK_ROWS * BLOCK_COLS);
    open_file(&file, s.path);
    check_values(&s, file.m, 1, false);
    close_file(&file);
    free_sample(&s);
}

static void children_that_do_not_fit_leave_no_file(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    sample s;
    make_children(&s, false, 6);
    const char *children[2] = { s.paths[0], s.paths[2] };
    snprintf(s.path, sizeof s.path, "%s/whole.pycauset", temp_folder);
    snprintf(s.folder, sizeof s.folder, "%s.blocks", s.path);
    assert_int_equal(coffer_pycauset_write_blocks(s.path, children, 1, 2, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_write_blocks(s.path, children, 0, 2, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_false(temp_exists(s.path) || temp_exists(s.folder));
    free_sample(&s);
}

/* ---- Files that lie ---- */

static void rename_child(const sample *s, char *name, size_t size)
{
    char command[700];
    snprintf(command, sizeof command, "ls '%s' | head -n 1", s->folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(name, (int)size, pipe));
    pclose(pipe);
    name[strcspn(name, "\n")] = '\0';
}

static coffer_status first_failure(const sample *s, char *text, size_t size)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_tile all = COFFER_PYCAUSET_TILE(0, 76, 0, 101);
    double *got = malloc(76 * 101 * 16);
    opened file;
    open_file(&file, s->path);
    coffer_status status = coffer_pycauset_read_tile(got, 0, file.m, &all, COFFER_DTYPE_C128, &err);
    snprintf(text, size, "%s", err.text);
    close_file(&file);
    free(got);
    return status;
}

static bool check_finds(const sample *s, coffer_status code)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report;
    bool found = false;
    opened file;
    opts.full = true;
    open_file(&file, s->path);
    must(coffer_report_new(&report, 0, &err), &err);
    must(coffer__pycauset_check_blocks(report, file.m, &opts, &err), &err);
    for (size_t i = 0; i < coffer_report_count(report); i++)
        found |= coffer_report_at(report, i)->code == code;
    if (code == COFFER_OK)
        found = coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    close_file(&file);
    return found;
}

static void a_child_of_another_snapshot_is_refused(void **state)
{
    (void)state;
    char name[200], path[600], text[300];
    sample s;
    make_sample(&s, false, 7);
    assert_true(check_finds(&s, COFFER_OK));
    rename_child(&s, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", s.folder, name);
    test_matrix other;
    coffer_pycauset_shape shape = s.matrices[0].shape;
    test_matrix_make(&other, &shape, 999);
    test_matrix_write(&other, path, 100, NULL);
    assert_int_equal(first_failure(&s, text, sizeof text), COFFER_E_INCONSISTENT);
    assert_non_null(strstr(text, "mixed snapshot"));
    assert_true(check_finds(&s, COFFER_E_INCONSISTENT));
    test_matrix_free(&other);
    free_sample(&s);
}

static void a_missing_child_is_a_dangling_reference(void **state)
{
    (void)state;
    char name[200], path[600], text[300];
    sample s;
    make_sample(&s, false, 8);
    rename_child(&s, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", s.folder, name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(first_failure(&s, text, sizeof text), COFFER_E_DANGLING_REFERENCE);
    assert_non_null(strstr(text, name));
    assert_true(check_finds(&s, COFFER_E_DANGLING_REFERENCE));
    free_sample(&s);
}

static void a_child_is_checked_like_a_file_of_its_own(void **state)
{
    (void)state;
    char name[200], path[600];
    size_t len;
    sample s;
    make_sample(&s, false, 9);
    rename_child(&s, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", s.folder, name);
    uint8_t *bytes = temp_read(path, &len);
    bytes[300] = 1; /* after the slots, where all bytes must be zero */
    temp_write(path, bytes, len);
    assert_true(check_finds(&s, COFFER_E_RESERVED_NOT_ZERO));
    bytes[300] = 0;
    bytes[COFFER__PYCAUSET_SLOT_A_AT + COFFER__PYCAUSET_SLOT_SIZE]++;
    temp_write(path, bytes, len);
    assert_true(check_finds(&s, COFFER_E_BAD_CHECKSUM));
    free(bytes);
    free_sample(&s);
}

static void expect_copy(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report;
    opened file;
    opts.full = true;
    open_file(&file, path);
    must(coffer_report_new(&report, 0, &err), &err);
    must(coffer_check(report, file.src, &opts, &err), &err);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    close_file(&file);
}

static void a_copy_of_a_block_matrix_has_its_children(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_repair_opts repair_opts = COFFER_REPAIR_OPTS_INIT;
    coffer_compact_opts compact_opts = COFFER_COMPACT_OPTS_INIT;
    coffer_report *report;
    coffer_node *told;
    opened file;
    sample s;
    make_sample(&s, false, 10);
    open_file(&file, s.path);
    must(coffer_report_new(&report, 0, &err), &err);
    must(coffer__pycauset_repair(report, file.src, temp_path(temp_folder, "aside.pycauset"), &repair_opts,
                                 &err),
         &err);
    assert_int_equal(coffer_report_count(report), 0);
    expect_copy(temp_path(temp_folder, "aside.pycauset"));
    coffer_report_free(report);
    close_file(&file);
    must(coffer_node_new(&told, &err), &err);
    must(coffer__pycauset_compact(told, s.path, temp_path(temp_folder, "beside.pycauset"), &compact_opts,
                                  &err),
         &err);
    expect_copy(temp_path(temp_folder, "beside.pycauset"));
    must(coffer_compact(told, s.path, NULL, &compact_opts, &err), &err);
    coffer_node_free(told);
    assert_true(check_finds(&s, COFFER_OK));
    free_sample(&s);
}

static void links_and_pipes_in_place_of_a_child_are_not_followed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        char name[200], path[600], text[300];
        sample s;
        make_sample(&s, false, 9);
        rename_child(&s, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", s.folder, name);
        assert_int_equal(unlink(path), 0);
        if (kind == 0)
            assert_int_equal(symlink(s.paths[0], path), 0);
        else if (kind == 1)
            assert_int_equal(mkfifo(path, 0600), 0);
        else
            assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(first_failure(&s, text, sizeof text), COFFER_E_UNSAFE_PATH);
        assert_true(check_finds(&s, COFFER_E_UNSAFE_PATH));
        free_sample(&s);
    }
}

static void a_folder_that_is_a_link_is_followed_only_when_it_was_given(void **state)
{
    (void)state;
    char moved[400], text[300];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    sample s;
    opened file;
    make_sample(&s, false, 10);
    snprintf(moved, sizeof moved, "%s/elsewhere", temp_folder);
    assert_int_equal(rename(s.folder, moved), 0);
    assert_int_equal(symlink(moved, s.folder), 0);
    assert_int_equal(first_failure(&s, text, sizeof text), COFFER_E_UNSAFE_PATH);
    opts.blocks_folder = s.folder;
    must(coffer_source_open(&file.src, s.path, NULL, &err), &err);
    must(coffer_pycauset_open(&file.m, file.src, &opts, &err), &err);
    check_values(&s, file.m, 1, false);
    close_file(&file);
    free_sample(&s);
}

/* A block matrix with a manifest of our own making. */
static void write_manifest(const char *path, const char *manifest, uint64_t rows, uint64_t cols)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_pycauset_changes *says;
    const coffer_pycauset_value *root;
    uint8_t header[COFFER__PYCAUSET_HEADER_SIZE];
    must(coffer__pycauset_system_changes_new(&says, &err), &err);
    must(coffer_pycauset_changes_set_u64(says, "rows", rows, &err), &err);
    must(coffer_pycauset_changes_set_u64(says, "cols", cols, &err), &err);
    must(coffer_pycauset_changes_set_string(says, "matrix_type", "BLOCK", 5, &err), &err);
    must(coffer_pycauset_changes_set_string(says, "data_type", "MIXED", 5, &err), &err);
    must(coffer_pycauset_changes_set_string(says, "payload_layout.kind", "none", 4, &err), &err);
    must(coffer_pycauset_changes_set_string(says, "payload_uuid", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 32,
                                            &err),
         &err);
    must(coffer_pycauset_changes_set_json(says, "block_manifest", manifest, strlen(manifest), &err), &err);
    must(coffer__pycauset_apply(&root, &memory, NULL, says, NULL, &err), &err);
    assert_true(coffer__buffer_fill(&bytes, 0, sizeof header));
    must(coffer__pycauset_encode_block(&bytes, root, &err), &err);
    coffer__pycauset_slot slot = { .generation = 1,
                                   .payload_offset = sizeof header,
                                   .metadata_offset = sizeof header,
                                   .metadata_length = bytes.len - sizeof header };
    coffer__pycauset_store_fresh_header(header, &slot);
    memcpy(bytes.data, header, sizeof header);
    temp_write(path, bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
    coffer__arena_free(&memory);
    coffer_pycauset_changes_free(says);
}

static void false_manifests_are_detected(void **state)
{
    (void)state;
#define CHILD(path) "[[{\"path\":\"" path "\",\"payload_uuid\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}]]"
    static const struct {
        const char *manifest;
        coffer_status code;
    } cases[] = {
        { "{\"version\":2,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD("a") "}",
          COFFER_E_UNSUPPORTED_VERSION },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD("../x") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD("..") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
              "/etc/passwd") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
              "a\\\\b") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD("") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
              "a\\u0000b") "}",
          COFFER_E_UNSAFE_PATH },
        { "{\"version\":1,\"row_partitions\":[0,4,4],\"col_partitions\":[0,4],\"children\":" CHILD("a") "}",
          COFFER_E_NOT_SORTED },
        { "{\"version\":1,\"row_partitions\":[1,4],\"col_partitions\":[0,4],\"children\":" CHILD("a") "}",
          COFFER_E_BAD_VALUE },
        { "{\"version\":1,\"row_partitions\":[0,5],\"col_partitions\":[0,4],\"children\":" CHILD("a") "}",
          COFFER_E_INCONSISTENT },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,2,4],\"children\":" CHILD("a") "}",
          COFFER_E_INCONSISTENT },
        { "{\"version\":1,\"row_partitions\":[0,2,4],\"col_partitions\":[0,4],\"children\":" CHILD("a") "}",
          COFFER_E_INCONSISTENT },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4]}", COFFER_E_MISSING },
        { "{\"version\":1,\"col_partitions\":[0,4]}", COFFER_E_MISSING },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":[[{}]]}",
          COFFER_E_MISSING },
        { "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
              "nobody") "}",
          COFFER_E_DANGLING_REFERENCE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample s;
        snprintf(s.path, sizeof s.path, "%s/m%zu.pycauset", temp_folder, i);
        write_manifest(s.path, cases[i].manifest, 4, 4);
        if (!check_finds(&s, cases[i].code))
            fail_msg("%s", cases[i].manifest);
        opened file;
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset_tile all = COFFER_PYCAUSET_TILE(0, 4, 0, 4);
        double got[16];
        open_file(&file, s.path);
        assert_int_equal(coffer_pycauset_read_tile(got, 0, file.m, &all, COFFER_DTYPE_F64, &err),
                         cases[i].code);
        close_file(&file);
    }
}

static void a_matrix_that_is_its_own_child_is_refused_quickly(void **state)
{
    (void)state;
    char folder[400], child[500];
    sample s;
    snprintf(s.path, sizeof s.path, "%s/self.pycauset", temp_folder);
    snprintf(folder, sizeof folder, "%s.blocks", s.path);
    snprintf(child, sizeof child, "%s/a", folder);
    write_manifest(s.path,
                   "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
                       "a") "}",
                   4, 4);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(link(s.path, child), 0);
    assert_true(check_finds(&s, COFFER_E_INCONSISTENT));
}

static void matrices_inside_matrices_end_somewhere(void **state)
{
    (void)state;
    char path[4000], first[400];
    snprintf(path, sizeof path, "%s/deep.pycauset", temp_folder);
    snprintf(first, sizeof first, "%s/deep.pycauset", temp_folder);
    for (int depth = 0; depth < 40; depth++) {
        write_manifest(path,
                       "{\"version\":1,\"row_partitions\":[0,4],\"col_partitions\":[0,4],\"children\":" CHILD(
                           "a") "}",
                       4, 4);
        strcat(path, ".blocks");
        assert_int_equal(mkdir(path, 0700), 0);
        strcat(path, "/a");
    }
    opened file;
    coffer_error err = COFFER_ERROR_INIT;
    double real;
    open_file(&file, first);
    assert_int_equal(coffer_pycauset_get(&real, NULL, file.m, 0, 0, &err), COFFER_E_LIMIT);
    close_file(&file);
}

static void a_matrix_in_memory_does_not_look_for_its_children_anywhere(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    double real;
    sample s;
    opened file;
    make_sample(&s, false, 11);
    uint8_t *bytes = temp_read(s.path, &len);
    must(coffer_source_from_memory(&file.src, bytes, len, &err), &err);
    must(coffer_pycauset_open(&file.m, file.src, NULL, &err), &err);
    assert_int_equal(coffer_pycauset_get(&real, NULL, file.m, 0, 0, &err), COFFER_E_UNSUPPORTED);
    close_file(&file);
    free(bytes);
    free_sample(&s);
}

static void names_from_files_stay_in_their_folder(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src;
    char path[400];
    snprintf(path, sizeof path, "%s/in", temp_folder);
    assert_int_equal(mkdir(path, 0700), 0);
    temp_write(temp_path(temp_folder, "outside"), "x", 1);
    temp_write(temp_path(path, "inside"), "abc", 3);
    must(coffer__source_open_in(&src, path, false, "inside", &err), &err);
    assert_int_equal(coffer_source_size(src), 3);
    coffer_source_close(src);
    assert_int_equal(coffer__source_open_in(&src, path, false, "../outside", &err), COFFER_E_UNSAFE_PATH);
    assert_int_equal(coffer__source_open_in(&src, path, false, ".", &err), COFFER_E_UNSAFE_PATH);
    assert_int_equal(coffer__source_open_in(&src, path, false, "none", &err), COFFER_E_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_read_as_one_matrix),
        cmocka_unit_test(the_view_of_the_whole_is_applied_to_the_blocks),
        cmocka_unit_test(statistics_and_pictures_know_blocks),
        cmocka_unit_test(many_threads_may_read_at_the_same_time),
        cmocka_unit_test(a_new_block_matrix_leaves_no_child_of_the_old_one),
        cmocka_unit_test(children_that_do_not_fit_leave_no_file),
        cmocka_unit_test(a_child_of_another_snapshot_is_refused),
        cmocka_unit_test(a_missing_child_is_a_dangling_reference),
        cmocka_unit_test(a_child_is_checked_like_a_file_of_its_own),
        cmocka_unit_test(a_copy_of_a_block_matrix_has_its_children),
        cmocka_unit_test(links_and_pipes_in_place_of_a_child_are_not_followed),
        cmocka_unit_test(a_folder_that_is_a_link_is_followed_only_when_it_was_given),
        cmocka_unit_test(false_manifests_are_detected),
        cmocka_unit_test(a_matrix_that_is_its_own_child_is_refused_quickly),
        cmocka_unit_test(matrices_inside_matrices_end_somewhere),
        cmocka_unit_test(a_matrix_in_memory_does_not_look_for_its_children_anywhere),
        cmocka_unit_test(names_from_files_stay_in_their_folder),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
