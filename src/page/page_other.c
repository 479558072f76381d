/* The page of any file: its facts, its findings, and its entries where it has some. */
#include "base/fail.h"
#include "page/page.h"

enum { MOST_ENTRIES = 20000 };

static coffer_status open_nothing(void **state, coffer_chunks *chunks, coffer_error *err)
{
    (void)state;
    (void)chunks;
    (void)err;
    return COFFER_OK;
}

static void close_nothing(void *state)
{
    (void)state;
}

static bool fits_all(const coffer_file *file)
{
    (void)file;
    return true;
}

static void add_entries(coffer_chunks *chunks, const coffer_node *all, uint32_t detail)
{
    size_t total = coffer_node_count(all), most = MOST_ENTRIES / detail;
    coffer_node *root = NULL;
    if (coffer_node_new(&root, NULL)) {
        chunks->failed = true;
        return;
    }
    coffer_node *list = coffer_node_add_list(root, "entries");
    const coffer_node *entry = coffer_node_first(all);
    for (size_t i = 0; entry && i < most; i++, entry = coffer_node_next(entry))
        coffer_node_add_copy(list, NULL, entry);
    if (total > most)
        coffer__chunks_note(chunks, "the first %zu of %zu entries are shown", most, total);
    coffer__chunks_json(chunks, "entries", root);
    coffer_node_free(root);
}

/* A list that cannot be read is a finding already. */
static coffer_status emit(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *root = NULL;
    (void)state;
    if (coffer_file_unknown(chunks->files[0]))
        return COFFER_OK;
    coffer_status status = coffer_node_new(&root, err);
    opts.limits = &chunks->limits;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status listed = status ? status : coffer_file_list(root, chunks->files[0], &opts, &found);
    if (!listed)
        add_entries(chunks, coffer_node_find(root, "entries"), detail);
    else if (!status && !coffer__is_about_file(listed) && listed != COFFER_E_UNSUPPORTED)
        status = coffer__fail_copy(err, &found);
    coffer_node_free(root);
    return status;
}

const coffer__page_kind coffer__page_other = {
    .page = "file",
    .fits = fits_all,
    .open = open_nothing,
    .emit = emit,
    .close = close_nothing,
};
