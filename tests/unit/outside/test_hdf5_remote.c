/* The program coffer-hdf5 answers as libhdf5 in this process does, and what it says is checked. */
#include "base/buffer.h"
#include "base/fail.h"
#include "outside/arrays/hdf5.h"
#include "support/temp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES COFFER_TEST_DATA "/hdf5/"

static const coffer__hdf5_module *here; /* NULL: built without libhdf5 */

static int setup(void **state)
{
    setenv("COFFER_MODULE_PATH", COFFER_TEST_MODULES, 1);
    here = coffer__module_linked(COFFER__MODULE_HDF5);
    return temp_setup(state);
}

static coffer_source *open_source(const char *name)
{
    coffer_source *src = NULL;
    char path[300];
    snprintf(path, sizeof path, "%s%s", FILES, name);
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    return src;
}

/* ---- Everything a file says, as text ---- */

static void add_name(void *context, const char *name, bool is_matrix)
{
    coffer__buffer_printf(context, "%s %d\n", name, is_matrix);
}

static coffer_status add_attribute(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    (void)err;
    coffer__buffer_printf(context, "  @%s %d %d %lld %llu %g %s\n", attribute->name, (int)attribute->kind,
                          attribute->boolean, (long long)attribute->i64, (unsigned long long)attribute->u64,
                          attribute->f64, attribute->text ? attribute->text : "-");
    return COFFER_OK;
}

static void add_values(coffer__buffer *out, const coffer__hdf5_module *hdf5, coffer__hdf5 *file,
                       const coffer__hdf5_dataset *dataset)
{
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { 0 }, count[COFFER__HDF5_MAX_DIMENSIONS];
    size_t bytes = coffer_dtype_size(dataset->dtype);
    coffer_error err = COFFER_ERROR_INIT;
    if (bytes == 0 || dataset->is_elsewhere)
        return;
    for (int i = 0; i < dataset->dimensions; i++) {
        count[i] = dataset->extent[i] > 3 ? 3 : dataset->extent[i];
        start[i] = dataset->extent[i] - count[i];
        bytes *= count[i];
    }
    uint8_t values[4096] = { 0 };
    assert_true(bytes <= sizeof values);
    coffer_status status = hdf5->read_block(values, file, dataset->dtype, start, count, &err);
    coffer__buffer_printf(out, "  %d %s", (int)status, err.text);
    for (size_t i = 0; !status && i < bytes; i++)
        coffer__buffer_printf(out, " %02x", values[i]);
    coffer__buffer_printf(out, "\n");
}

static void add_dataset(coffer__buffer *out, const coffer__hdf5_module *hdf5, coffer__hdf5 *file,
                        const char *name)
{
    coffer__hdf5_dataset dataset;
    assert_int_equal(hdf5->choose(file, name, NULL), COFFER_OK);
    assert_int_equal(hdf5->describe(&dataset, file, NULL), COFFER_OK);
    coffer__buffer_printf(out, "%s %d %d %d %d %d %d %llu×%llu %llu %llu '%s'\n", name, dataset.has_values,
                          dataset.dimensions, (int)dataset.dtype, dataset.is_wide, dataset.is_elsewhere,
                          dataset.is_chunked, (unsigned long long)dataset.size[0],
                          (unsigned long long)dataset.size[1], (unsigned long long)dataset.chunk_bytes,
                          (unsigned long long)dataset.stored_bytes, dataset.filter);
    assert_int_equal(hdf5->attributes(file, NULL, add_attribute, out, NULL), COFFER_OK);
    add_values(out, hdf5, file, &dataset);
}

static void describe_all(coffer__buffer *out, const coffer__hdf5_module *hdf5,
                         const coffer__hdf5_bytes *bytes)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__hdf5 *file = NULL;
    coffer__buffer names = COFFER__BUFFER_INIT;
    if (hdf5->open(&file, bytes, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(hdf5->list(file, add_name, &names, NULL), COFFER_OK);
    const char *text = coffer__buffer_text(&names);
    coffer__buffer_printf(out, "%s", text);
    for (; *text; text = strchr(text, '\n') + 1) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)(strchr(text, '\n') - text - 2), text);
        add_dataset(out, hdf5, file, name);
    }
    assert_int_equal(hdf5->attributes(file, "/", add_attribute, out, NULL), COFFER_OK);
    assert_int_equal(hdf5->choose(file, "no such thing", &err), COFFER_E_NOT_FOUND);
    coffer__buffer_printf(out, "%s\n", err.text);
    assert_int_equal(hdf5->close(file, NULL), COFFER_OK);
    coffer__buffer_free(&names);
}

static void both_tables_say_the_same(void **state)
{
    static const char *const names[] = { "all-but-empty.h5",  "complex.h5",          "compressed.h5",
                                         "external-link.h5",  "huge-chunks.h5",      "long-double.h5",
                                         "soft-link-loop.h5", "three-dimensions.h5", "truth.h5",
                                         "two-datasets.h5",   "group-in-itself.h5" };
    (void)state;
    if (!here)
        skip();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        coffer_source *src = open_source(names[i]);
        coffer__buffer expected = COFFER__BUFFER_INIT, direct = COFFER__BUFFER_INIT,
                       asked = COFFER__BUFFER_INIT;
        coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
        describe_all(&expected, here, &bytes);
        assert_true(bytes.fd >= 0);
        describe_all(&direct, &coffer__hdf5_remote, &bytes);
        bytes.fd = -1; /* the program has to ask for its bytes */
        describe_all(&asked, &coffer__hdf5_remote, &bytes);
        assert_string_equal(coffer__buffer_text(&direct), coffer__buffer_text(&expected));
        assert_string_equal(coffer__buffer_text(&asked), coffer__buffer_text(&expected));
        coffer__buffer_free(&expected);
        coffer__buffer_free(&direct);
        coffer__buffer_free(&asked);
        coffer_source_close(src);
    }
}

/* ---- Writing ---- */

static void write_with(const coffer__hdf5_module *hdf5, const char *path)
{
    enum { SIDE = 700 };
    const uint64_t size[2] = { SIDE, SIDE }, start[2] = { 0, 0 };
    const coffer__hdf5_attribute text = { .name = "unit", .kind = COFFER__HDF5_TEXT, .text = "mV", .len = 2 };
    const coffer__hdf5_attribute number = { .name = "n", .kind = COFFER__HDF5_F64, .f64 = 0.25 };
    double *values = calloc(SIDE * SIDE, sizeof *values);
    coffer__hdf5 *file = NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        values[i] = (double)i;
    const coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_file(fd, path);
    assert_int_equal(hdf5->open(&file, &bytes, NULL), COFFER_OK);
    assert_int_equal(hdf5->create_dataset(file, "a/b", COFFER_DTYPE_F64, 2, size, NULL), COFFER_OK);
    assert_int_equal(hdf5->put_attribute(file, &text, NULL), COFFER_OK);
    assert_int_equal(hdf5->put_attribute(file, &number, NULL), COFFER_OK);
    assert_int_equal(hdf5->write_tile(file, values, start, size, NULL), COFFER_OK);
    assert_int_equal(hdf5->close(file, NULL), COFFER_OK);
    close(fd);
    free(values);
}

static void both_tables_write_the_same_bytes(void **state)
{
    size_t len, other;
    (void)state;
    if (!here)
        skip();
    write_with(here, temp_path(temp_folder, "here.h5"));
    write_with(&coffer__hdf5_remote, temp_path(temp_folder, "there.h5"));
    uint8_t *a = temp_read(temp_path(temp_folder, "here.h5"), &len);
    uint8_t *b = temp_read(temp_path(temp_folder, "there.h5"), &other);
    assert_int_equal(len, other);
    assert_memory_equal(a, b, len);
    free(a);
    free(b);
}

static coffer_status fail_write(const coffer__hdf5_bytes *bytes, uint64_t offset, const void *data,
                                size_t len, coffer_error *err)
{
    (void)bytes, (void)offset, (void)data, (void)len;
    return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "the disk is full");
}

static void a_write_that_fails_is_reported(void **state)
{
    const uint64_t size[2] = { 2, 2 }, start[2] = { 0, 0 };
    const double values[4] = { 1, 2, 3, 4 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__hdf5 *file = NULL;
    (void)state;
    if (!here)
        skip();
    coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_file(-1, "x");
    bytes.write = fail_write;
    bytes.truncate = NULL;
    coffer_status status = coffer__hdf5_remote.open(&file, &bytes, &err);
    if (!status) {
        status = coffer__hdf5_remote.create_dataset(file, "a", COFFER_DTYPE_F64, 2, size, &err);
        if (!status)
            status = coffer__hdf5_remote.write_tile(file, values, start, size, &err);
        coffer_status closed = coffer__hdf5_remote.close(file, status ? NULL : &err);
        status = status ? status : closed;
    }
    assert_int_equal(status, COFFER_E_IO);
    assert_string_equal(err.text, "the disk is full");
}

/* ---- Limits ---- */

static void memory_is_limited(void **state)
{
    const uint64_t start[2] = { 0, 0 }, count[2] = { 1 << 14, 1 << 12 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__hdf5 *file = NULL;
    (void)state;
    if (!here)
        skip();
    coffer_source *src = open_source("all-but-empty.h5");
    coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
    bytes.memory_bytes = 1 << 20;
    assert_int_equal(coffer__hdf5_remote.open(&file, &bytes, NULL), COFFER_OK);
    assert_int_equal(coffer__hdf5_remote.choose(file, "data", NULL), COFFER_OK);
    uint8_t *values = malloc((size_t)8 << 26);
    if (values) {
        coffer_status status =
            coffer__hdf5_remote.read_block(values, file, COFFER_DTYPE_F64, start, count, &err);
        /* With sanitizers the program has no limit. */
        assert_true(status == COFFER_E_NO_MEMORY || status == COFFER_E_BAD_VALUE || status == COFFER_OK);
    }
    free(values);
    coffer__hdf5_remote.close(file, NULL);
    coffer_source_close(src);
}

static void a_range_outside_the_dataset_is_refused(void **state)
{
    const uint64_t start[2] = { 29, 0 }, count[2] = { 2, 20 };
    int16_t values[40];
    coffer__hdf5 *file = NULL;
    (void)state;
    if (!here)
        skip();
    coffer_source *src = open_source("compressed.h5");
    const coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_source(src);
    assert_int_equal(coffer__hdf5_remote.open(&file, &bytes, NULL), COFFER_OK);
    assert_int_equal(coffer__hdf5_remote.choose(file, "data", NULL), COFFER_OK);
    assert_int_equal(coffer__hdf5_remote.read_block(values, file, COFFER_DTYPE_I16, start, count, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__hdf5_remote.read_rows(values, file, COFFER_DTYPE_I16, 28, 2, NULL), COFFER_OK);
    assert_int_equal(values[39], 599);
    coffer__hdf5_remote.close(file, NULL);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_tables_say_the_same),
        cmocka_unit_test(both_tables_write_the_same_bytes),
        cmocka_unit_test(a_write_that_fails_is_reported),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(a_range_outside_the_dataset_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, temp_teardown);
}
