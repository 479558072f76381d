/* Every allocation and every file operation of a conversion of a matrix fails once: no leak, no partial
 * output.
 */
#include "support/archive.h"
#include "support/fault.h"

#include "coffer/coffer.h"

#include <stdlib.h>
#include <string.h>

static const char metadata_path[] = "meta.json",
                  metadata[] = "{\"properties\": {\"label\": \"x\", \"n\": 3}}";
typedef struct scenario {
    const char *in, *out;
    coffer_setting settings[3];
    size_t setting_count;
    uint64_t memory_bytes; /* 0 = the default */
} scenario;

static void put_text(const char *folder, const char *name, const char *text)
{
    temp_write(temp_path(folder, name), text, strlen(text));
}

static coffer_status run(const char *folder, void *context, coffer_error *err);

static void setup(const char *folder, void *context)
{
    const double values[] = { 1, 4, 2, 5, 3, 6 };
    coffer__buffer npy =
        archive_npy("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }\n", values, sizeof values);
    const archive_member member = { .name = "a.npy", .data = npy.data, .len = npy.len, .deflate = true };
    coffer__buffer npz = archive_build(&member, 1, false);
    (void)context;
    temp_copy(COFFER_TEST_DATA "/vectors/pycauset/transposed.pycauset", temp_path(folder, "m.pycauset"));
    temp_copy(COFFER_TEST_DATA "/vectors/pycauset/causal-bit.pycauset", temp_path(folder, "s.pycauset"));
    temp_write(temp_path(folder, "a.npy"), npy.data, npy.len);
    temp_write(temp_path(folder, "a.npz"), npz.data, npz.len);
    put_text(folder, "c.mtx",
             "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n3 1 1\n2 2 2\n1 1 3\n");
    put_text(folder, "a.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n");
    put_text(folder, "m.csv", "a,b\n1,2.5\n3,4\n");
    put_text(folder, metadata_path, metadata);
    coffer__buffer_free(&npy);
    coffer__buffer_free(&npz);
    /* Where the library has no HDF5, nothing reads it either. */
    run(folder, &(scenario){ "m.pycauset", "m.h5", { { NULL, NULL } }, 0, 0 }, NULL);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    const scenario *of = context;
    coffer_source *src = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_setting settings[3];
    for (size_t i = 0; i < of->setting_count; i++) {
        settings[i] = of->settings[i];
        if (strcmp(settings[i].name, "metadata") == 0)
            settings[i].value = temp_path(folder, settings[i].value);
    }
    if (of->memory_bytes)
        limits.memory_bytes = of->memory_bytes;
    opts.limits = &limits;
    opts.settings = settings;
    opts.setting_count = of->setting_count;
    coffer_status status = coffer_source_open(&src, temp_path(folder, of->in), NULL, err);
    if (status == COFFER_OK)
        status = coffer_convert(src, temp_path(folder, of->out), &opts, err);
    coffer_source_close(src);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    if (which->status == COFFER_OK && !temp_exists(temp_path(folder, of->out)))
        return "reported as done, and is not";
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, "m.pycauset", "s.pycauset", "a.npy", "a.npz", "c.mtx", "a.mtx", "m.csv",
                              "m.h5", of->out, metadata_path, "out.json", NULL);
    return NULL;
}

static void fails_cleanly(scenario of)
{
    fault_test test = { setup, run, verify, &of };
    fault_each(&test);
}

static void a_matrix_to_an_array_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly((scenario){ "m.pycauset", "out.npy", { { "metadata", "out.json" } }, 1, 0 });
    fails_cleanly((scenario){ "m.pycauset", "out.raw", { { "dtype", "i16" } }, 1, 0 });
}

static void a_matrix_to_text_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly((scenario){ "m.pycauset", "out.csv", { { "header", NULL } }, 1, 0 });
    fails_cleanly((scenario){ "m.pycauset", "out.mtx", { { NULL, NULL } }, 0, 0 });
    fails_cleanly((scenario){ "s.pycauset", "out.mtx", { { NULL, NULL } }, 0, 0 });
}

static void an_array_to_a_matrix_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly(
        (scenario){ "a.npy", "out.pycauset", { { "metadata", metadata_path }, { "checksum", NULL } }, 2, 0 });
    fails_cleanly((scenario){ "a.npz", "out.pycauset", { { "dtype", "f32" } }, 1, 0 });
}

static void text_to_a_matrix_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly((scenario){ "m.csv", "out.pycauset", { { NULL, NULL } }, 0, 0 });
    fails_cleanly((scenario){ "c.mtx", "out.pycauset", { { NULL, NULL } }, 0, 0 });
    fails_cleanly((scenario){ "a.mtx", "out.pycauset", { { NULL, NULL } }, 0, 0 });
    /* Through a temporary file. */
    fails_cleanly((scenario){ "a.mtx", "out.pycauset", { { NULL, NULL } }, 0, 100 });
}

static bool has_hdf5(void)
{
    char *folder = temp_make();
    setup(folder, NULL);
    bool found = temp_exists(temp_path(folder, "m.h5"));
    temp_remove(folder);
    return found;
}

static void hdf5_fails_cleanly_both_ways(void **state)
{
    (void)state;
    if (!has_hdf5())
        skip();
    fails_cleanly((scenario){ "m.pycauset", "out.h5", { { "dataset", "deep/down" } }, 1, 0 });
    fails_cleanly((scenario){ "m.h5", "out.pycauset", { { NULL, NULL } }, 0, 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_to_an_array_fails_cleanly),
        cmocka_unit_test(a_matrix_to_text_fails_cleanly),
        cmocka_unit_test(an_array_to_a_matrix_fails_cleanly),
        cmocka_unit_test(text_to_a_matrix_fails_cleanly),
        cmocka_unit_test(hdf5_fails_cleanly_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
