/* The table of pages: which one a file gets. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "page/page.h"

#include <inttypes.h>
#include <string.h>

/* The first that fits; the last fits every file. */
static const coffer__page_kind *const pages[] = {
    &coffer__page_trace,  &coffer__page_set,   &coffer__page_scan,
    &coffer__page_matrix, &coffer__page_model, &coffer__page_other,
};

/* A page that is too large is tried again with half of it, this many times. */
enum { MAX_HALVINGS = 12 };

static bool lists(const char *kinds, const char *kind)
{
    size_t len = strlen(kind);
    for (const char *at = kinds; (at = strstr(at, kind)); at += len)
        if ((at == kinds || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static const coffer__page_kind *find_page(const coffer_file *file)
{
    const char *kind = coffer_file_kind(file);
    for (size_t i = 0; kind && !coffer_file_unknown(file) && i < sizeof pages / sizeof *pages; i++)
        if (pages[i]->kinds ? lists(pages[i]->kinds, kind) : pages[i]->fits(file))
            return pages[i];
    return &coffer__page_other;
}

const char *coffer_chunks_page(const coffer_chunks *chunks)
{
    return chunks->kind->page;
}

static coffer_status choose_page(coffer_chunks *chunks, coffer_error *err)
{
    chunks->kind = find_page(chunks->files[0]);
    if (chunks->file_count < 2 || find_page(chunks->files[1]) == chunks->kind)
        return COFFER_OK;
    const char *kinds[2] = { coffer_file_kind(chunks->files[0]), coffer_file_kind(chunks->files[1]) };
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "the files are a %s and a %s: a comparison needs two files of a kind",
                        kinds[0] ? kinds[0] : "file of an unknown format",
                        kinds[1] ? kinds[1] : "file of an unknown format");
}

/* ---- Fitting the size ---- */

static coffer_status emit(uint64_t *size, coffer_chunks *chunks, void *state, uint32_t detail,
                          coffer_error *err)
{
    coffer_status status = coffer__chunks_clear(chunks, err);
    if (!status)
        status = chunks->kind->emit(chunks, state, detail, err);
    if (status)
        return status;
    coffer__chunks_finish_texts(chunks);
    coffer__page_add_summary(chunks);
    *size = 0;
    if (!chunks->served) { /* which is sent plain, and whose counts are bounded */
        coffer__chunks_pack(size, chunks);
        *size += coffer__page_frame_size(chunks);
    }
    return coffer__chunks_status(chunks, err);
}

static coffer_status fit(coffer_chunks *chunks, void *state, coffer_error *err)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i <= MAX_HALVINGS; i++) {
        coffer_status status = emit(&size, chunks, state, UINT32_C(1) << i, err);
        if (status || size <= chunks->opts.max_bytes)
            return status;
    }
    return coffer__fail_output(err, coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                 "the smallest page has %" PRIu64
                                                 " bytes, more than the limit of %" PRIu64,
                                                 size, chunks->opts.max_bytes));
}

coffer_status coffer__chunks_fill(coffer_chunks *chunks, coffer_error *err)
{
    void *state = NULL;
    coffer_status status = coffer__page_describe(chunks, err);
    if (status)
        return status;
    coffer_error found = COFFER_ERROR_INIT;
    status = chunks->kind->open(&state, chunks, &found);
    if (status && coffer__is_about_file(status)) {
        /* A damaged file has a page of what is known about it. */
        coffer_node_add_text(chunks->described, "view_error", found.text);
        chunks->kind = &coffer__page_other;
    } else if (status) {
        return coffer__fail_copy(err, &found);
    }
    status = chunks->quick ? COFFER_OK : coffer__page_compare(chunks, state, err);
    if (!status)
        status = fit(chunks, state, err);
    if (state)
        chunks->kind->close(state);
    return status;
}

coffer_status coffer__chunks_start(coffer_chunks **out, const coffer_file *file, const coffer_file *other,
                                   const coffer_chunks_opts *opts, coffer_error *err)
{
    coffer_chunks *chunks = coffer__calloc(1, sizeof *chunks);
    if (!chunks)
        return coffer__fail_no_memory(err, sizeof *chunks);
    chunks->opts = (coffer_chunks_opts)COFFER_CHUNKS_OPTS_INIT;
    coffer_status status = coffer__take_options(&chunks->opts, sizeof chunks->opts, opts, err);
    if (!status) {
        chunks->limits = coffer__limits(chunks->opts.limits);
        chunks->files[0] = file;
        chunks->files[1] = other;
        chunks->file_count = other ? 2 : 1;
        status = choose_page(chunks, err);
    }
    if (status) {
        coffer_chunks_free(chunks);
        return status;
    }
    *out = chunks;
    return COFFER_OK;
}

coffer_status coffer_chunks_new(coffer_chunks **out, const coffer_file *file, const coffer_file *other,
                                const coffer_chunks_opts *opts, coffer_error *err)
{
    coffer_chunks *chunks = NULL;
    coffer_status status = coffer__chunks_start(&chunks, file, other, opts, err);
    if (!status)
        status = coffer__chunks_fill(chunks, err);
    if (status) {
        coffer_chunks_free(chunks);
        return status;
    }
    chunks->files[0] = chunks->files[1] = NULL;
    *out = chunks;
    return COFFER_OK;
}
