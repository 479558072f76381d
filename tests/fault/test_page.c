/* Every allocation and every read of a page fails once: no leak, and no page that lacks something silently.
 */
#include "support/fault.h"

#include "coffer/coffer.h"

#include <stdio.h>
#include <string.h>

typedef struct scenario {
    const char *path, *other; /* in tests/; other : NULL for one file */
    size_t count;             /* chunks of the page without a fault */
} scenario;

static coffer_status open_file(coffer_file **out, const char *name, coffer_error *err)
{
    char path[512];
    snprintf(path, sizeof path, COFFER_TEST_DATA "/%s", name);
    return coffer_file_open(out, path, err);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    scenario *page = context;
    coffer_file *files[2] = { NULL, NULL };
    coffer_chunks *chunks = NULL;
    coffer_bytes html = COFFER_BYTES_INIT;
    coffer_chunks_opts opts = COFFER_CHUNKS_OPTS_INIT;
    (void)folder;
    opts.threads = 1;
    opts.name = page->path;
    coffer_status status = open_file(&files[0], page->path, err);
    if (!status && page->other)
        status = open_file(&files[1], page->other, err);
    if (!status)
        status = coffer_chunks_new(&chunks, files[0], files[1], &opts, err);
    if (!status && coffer_page_is_available())
        status = coffer_page_write(&html, chunks, err);
    page->count = status ? 0 : coffer_chunks_count(chunks);
    coffer_free(html.data);
    coffer_chunks_free(chunks);
    coffer_file_close(files[0]);
    coffer_file_close(files[1]);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    scenario *page = context;
    static char text[200];
    (void)folder;
    if (which->status == COFFER_OK && page->count == 0) {
        snprintf(text, sizeof text, "%s: the page is empty after %s", page->path, which->function);
        return text;
    }
    return NULL;
}

static void fails_cleanly(const char *path, const char *other)
{
    scenario page = { path, other, 0 };
    fault_test test = { NULL, run, verify, &page };
    fault_each(&test);
}

static void the_page_of_a_trace_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("compat/mlyze/memlyze-0.1.mlyze", NULL);
}

static void the_page_of_two_models_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("compat/gguf/plain.gguf", NULL);
    fails_cleanly("compat/mcf/mantle-q4.mcf", NULL);
    fails_cleanly("compat/gguf/plain.gguf", "compat/gguf/plain.gguf");
}

static void the_pages_of_a_scan_a_matrix_and_a_set_fail_cleanly(void **state)
{
    (void)state;
    fails_cleanly("compat/mscan/scanner-io-two-appends.mscan", NULL);
    fails_cleanly("compat/pycauset/float64.pycauset", NULL);
    fails_cleanly("compat/mldf/tutorial-writer.mldf", NULL);
    fails_cleanly("vectors/mldf/all-types-208.mldf", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_a_trace_fails_cleanly),
        cmocka_unit_test(the_page_of_two_models_fails_cleanly),
        cmocka_unit_test(the_pages_of_a_scan_a_matrix_and_a_set_fail_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
