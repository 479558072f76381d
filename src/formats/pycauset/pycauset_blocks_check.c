/* Findings about the children of a block matrix. */
#include "formats/pycauset/pycauset_blocks.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>

/* Takes over what was found in a child, with its name in front. */
static void take_findings(coffer_report *out, const coffer_report *found, const char *child)
{
    for (size_t i = 0; i < coffer_report_count(found); i++) {
        const coffer_finding *finding = coffer_report_at(found, i);
        coffer__report_add(out, finding->code, finding->severity, COFFER_OFFSET_NONE, "child \"%s\": %s",
                           child, finding->text);
    }
}

/* The child as a file of its own. */
static coffer_status check_inside(coffer_report *out, const coffer_pycauset *matrix, const char *name,
                                  const coffer_check_opts *opts, coffer_error *err)
{
    coffer_report *found = NULL;
    coffer_status status = coffer_report_new(&found, matrix->limits.findings, err);
    if (status)
        return status;
    status = coffer__pycauset_check_open(found, matrix, opts, err);
    if (!status)
        take_findings(out, found, name);
    coffer_report_free(found);
    return status;
}

/* Findings about a child that could be opened. */
typedef struct child_shape {
    bool known;
    uint64_t rows, cols;
} child_shape;

static void check_shapes(coffer_report *out, const coffer__pycauset_manifest *manifest,
                         const child_shape *shapes)
{
    for (size_t i = 0; i < manifest->block_rows * manifest->block_cols; i++) {
        const uint64_t *row_edges = manifest->row_edges + i / manifest->block_cols;
        const uint64_t *col_edges = manifest->col_edges + i % manifest->block_cols;
        uint64_t rows = row_edges[1] - row_edges[0], cols = col_edges[1] - col_edges[0];
        const child_shape *shape = &shapes[manifest->child_of[i]];
        if (shape->known && (shape->rows != rows || shape->cols != cols))
            coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, COFFER_OFFSET_NONE,
                               "child \"%s\" has %" PRIu64 " x %" PRIu64
                               " values, the manifest has room for %" PRIu64 " x %" PRIu64,
                               manifest->children[manifest->child_of[i]].path, shape->rows, shape->cols, rows,
                               cols);
    }
}

static coffer_status check_child(coffer_report *out, child_shape *shape,
                                 struct coffer__pycauset_blocks *blocks, const coffer_pycauset *matrix,
                                 size_t index, const coffer_check_opts *opts, coffer_error *err)
{
    const char *name = blocks->manifest.children[index].path;
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__pycauset_block_child *child;
    coffer_status status = coffer__pycauset_blocks_acquire(&child, blocks, matrix, index, &failure);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &failure);
    if (status) {
        coffer__report_add(out, status, COFFER_ERROR, COFFER_OFFSET_NONE, "child \"%s\": %s", name,
                           failure.text);
        return COFFER_OK;
    }
    *shape = (child_shape){ true, child->matrix->info.rows, child->matrix->info.cols };
    status = check_inside(out, child->matrix, name, opts, err);
    coffer__pycauset_blocks_release(blocks, child);
    return status;
}

coffer_status coffer__pycauset_check_blocks(coffer_report *out, const coffer_pycauset *matrix,
                                            const coffer_check_opts *opts, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    struct coffer__pycauset_blocks *blocks;
    coffer_status status = coffer__pycauset_blocks_get(&blocks, matrix, &failure);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &failure);
    if (status) {
        coffer__report_add_error(out, COFFER_ERROR, &failure);
        return COFFER_OK;
    }
    size_t count = blocks->manifest.child_count;
    child_shape *shapes = coffer__calloc(count, sizeof *shapes);
    if (!shapes)
        return coffer__fail_no_memory(err, count * sizeof *shapes);
    for (size_t i = 0; i < count && !status && !coffer__report_full(out); i++)
        status = check_child(out, &shapes[i], blocks, matrix, i, opts, err);
    if (!status)
        check_shapes(out, &blocks->manifest, shapes);
    coffer__free(shapes);
    return status;
}
