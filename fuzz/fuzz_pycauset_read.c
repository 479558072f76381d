/* Any file can be opened or refused, and an opened file can be read. */
#include "must.h"
#include "pycauset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 };

static void walk(const coffer_pycauset_value *value)
{
    size_t len;
    const char *text = coffer_pycauset_value_text(value, &len);
    MUST(!text || text[len] == '\0');
    for (size_t i = 0; i < coffer_pycauset_value_count(value); i++) {
        const char *key = coffer_pycauset_value_key_at(value, i, &len);
        MUST(!key || key[len] == '\0');
        walk(coffer_pycauset_value_at(value, i));
    }
}

static void read_corners(const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    static double out[MOST * MOST * 2];
    double real, imag;
    if (info->rows == 0 || info->cols == 0)
        return;
    coffer_pycauset_tile tile = { .struct_size = sizeof tile,
                                  .rows = info->rows < MOST ? info->rows : MOST,
                                  .cols = info->cols < MOST ? info->cols : MOST };
    for (int corner = 0; corner < 4; corner++) {
        tile.row = corner & 1 ? info->rows - tile.rows : 0;
        tile.col = corner & 2 ? info->cols - tile.cols : 0;
        MAY_FAIL(coffer_pycauset_read_tile(out, 0, matrix, &tile, COFFER_DTYPE_NONE, NULL));
        MAY_FAIL(coffer_pycauset_read_tile(out, 0, matrix, &tile, COFFER_DTYPE_C128, NULL));
        MAY_FAIL(coffer_pycauset_get(&real, &imag, matrix, tile.row, tile.col, NULL));
    }
    MUST(coffer_pycauset_get(&real, &imag, matrix, info->rows, 0, NULL) != COFFER_OK);
}

static void read_history(const fuzz_input *input)
{
    coffer_pycauset_history *history = NULL;
    coffer_node *node = NULL;
    coffer_pycauset_history_opts opts = COFFER_PYCAUSET_HISTORY_OPTS_INIT;
    opts.limits = &input->limits;
    if (coffer_pycauset_history_open(&history, input->source, &opts, NULL) != COFFER_OK)
        return;
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    for (size_t i = 1; i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *before = coffer_pycauset_history_at(history, i - 1);
        const coffer_pycauset_generation *after = coffer_pycauset_history_at(history, i);
        MUST(before->offset + before->length <= after->offset);
        MAY_FAIL(coffer_pycauset_value_diff(node, before->metadata, after->metadata, NULL));
    }
    coffer_node_free(node);
    coffer_pycauset_history_close(history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_error err = COFFER_ERROR_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    coffer_pycauset *matrix = fuzz_open(&input, &err);
    if (matrix) {
        walk(coffer_pycauset_metadata(matrix));
        read_corners(matrix);
        MAY_FAIL(coffer_pycauset_cached(matrix, "trace", NULL));
    }
    read_history(&input);
    coffer_pycauset_close(matrix);
    fuzz_input_close(&input);
    return 0;
}
