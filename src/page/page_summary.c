/* The part of a page that every kind of file has: facts, their units, findings, differences. */
#include "base/fail.h"
#include "base/json_write.h"
#include "base/report.h"
#include "coffer/version.h"
#include "page/page.h"

#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 512, SHOWN_DIFFERENCES = 200 };

/* ---- Units ---- */

static const char *unit_name(coffer_unit unit)
{
    static const char *const names[] = {
        [COFFER_UNIT_NONE] = "number",
        [COFFER_UNIT_BYTES] = "bytes",
        [COFFER_UNIT_MICROSECONDS] = "microseconds",
        [COFFER_UNIT_OFFSET] = "offset",
        [COFFER_UNIT_FLAGS] = "flags",
    };
    return (size_t)unit < sizeof names / sizeof *names ? names[unit] : names[COFFER_UNIT_NONE];
}

typedef struct unit_walk {
    coffer_node *units;
    char path[PATH_ROOM];  /* "totals[].bytes" */
    char exact[PATH_ROOM]; /* "totals[3].bytes" */
} unit_walk;

/* JSON has numbers without units: they are in a map from paths to units. One path is used for all items of a
 * list; an item whose unit is another one than that of the first has an entry of its own. */
static void add_unit(unit_walk *walk, const coffer_node *node)
{
    coffer_node_kind kind = coffer_node_get_kind(node);
    const char *unit = unit_name(coffer_node_get_unit(node));
    if (kind != COFFER_NODE_U64 && kind != COFFER_NODE_I64 && kind != COFFER_NODE_F64)
        return;
    const coffer_node *found = coffer_node_find(walk->units, walk->path);
    if (!found)
        coffer_node_add_text(walk->units, walk->path, unit);
    else if (strcmp(coffer_node_get_text(found, NULL), unit) != 0)
        coffer_node_add_text(walk->units, walk->exact, unit);
}

/* A path that is too long for its buffer goes without. */
static void walk_units(unit_walk *walk, const coffer_node *node)
{
    size_t len = strlen(walk->path), exact_len = strlen(walk->exact), index = 0;
    bool in_list = coffer_node_get_kind(node) == COFFER_NODE_LIST;
    add_unit(walk, node);
    for (const coffer_node *child = coffer_node_first(node); child;
         child = coffer_node_next(child), index++) {
        const char *name = coffer_node_get_name(child), *dot = len == 0 ? "" : ".";
        if (exact_len + strlen(name) + 24 >= PATH_ROOM)
            continue;
        if (in_list) {
            snprintf(walk->path + len, PATH_ROOM - len, "[]");
            snprintf(walk->exact + exact_len, PATH_ROOM - exact_len, "[%zu]", index);
        } else {
            snprintf(walk->path + len, PATH_ROOM - len, "%s%s", dot, name);
            snprintf(walk->exact + exact_len, PATH_ROOM - exact_len, "%s%s", dot, name);
        }
        walk_units(walk, child);
        walk->path[len] = walk->exact[exact_len] = '\0';
    }
}

static void add_units(coffer_node *parent, const char *name, const coffer_node *tree)
{
    unit_walk walk = { .units = coffer_node_add_map(parent, name) };
    walk_units(&walk, tree);
}

static void add_details(coffer_node *list, const coffer_node *info)
{
    for (const coffer_node *child = coffer_node_first(info); child; child = coffer_node_next(child))
        if (coffer_node_is_detail(child))
            coffer_node_add_text(list, NULL, coffer_node_get_name(child));
}

/* ---- Files ---- */

static coffer_status describe_file(coffer_node *map, const coffer_chunks *chunks, const coffer_file *file,
                                   const char *name, coffer_error *err)
{
    coffer_describe_opts opts = COFFER_DESCRIBE_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    coffer_node_add_text(map, "name", name);
    coffer_node_add_text(map, "title", coffer_file_title(file));
    coffer_node *info = coffer_node_add_map(map, "info");
    if (!info)
        return coffer_node_status(chunks->described, err);
    coffer_node_add_text(info, "file", name);
    coffer_node_add_text(info, "format", coffer_file_kind(file));
    coffer_node_add_u64(info, "size", coffer_file_size(file), COFFER_UNIT_BYTES);
    coffer_status status = coffer_file_describe(info, file, &opts, &found);
    if (status && !coffer__is_about_file(status) && status != COFFER_E_UNSUPPORTED)
        return coffer__fail_copy(err, &found);
    if (status)
        coffer_node_add_text(map, "error", found.text);
    add_units(map, "units", info);
    add_details(coffer_node_add_list(map, "details"), info);
    return COFFER_OK;
}

coffer_status coffer__page_check(coffer_node *map, coffer_chunks *chunks, size_t index, coffer_error *err)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_status status = coffer_report_new(&report, chunks->limits.findings, err);
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    opts.progress = chunks->opts.progress;
    if (!status)
        status = coffer_file_check(report, chunks->files[index], &opts, err);
    if (!status) {
        coffer_report_describe(map, "findings", report);
        coffer_node_add_text(map, "not_verified", coffer_report_limits(report));
        coffer_node_add_u64(map, "errors", coffer_report_total(report, COFFER_ERROR), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "warnings", coffer_report_total(report, COFFER_WARNING), COFFER_UNIT_NONE);
        chunks->errors += coffer_report_total(report, COFFER_ERROR);
    }
    coffer_report_free(report);
    return status;
}

coffer_status coffer__page_describe(coffer_chunks *chunks, coffer_error *err)
{
    coffer_status status = coffer_node_new(&chunks->described, err);
    coffer_node *list = status ? NULL : coffer_node_add_list(chunks->described, "files");
    for (size_t i = 0; i < chunks->file_count && !status; i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        const char *name = i == 0 ? chunks->opts.name : chunks->opts.other_name;
        status = describe_file(map, chunks, chunks->files[i], name ? name : "", err);
        if (!status && !chunks->unchecked)
            status = coffer__page_check(map, chunks, i, err);
    }
    return status;
}

/* ---- Two files ---- */

/* A comparison that is not supported, or fails because a file is damaged, leaves a reason in its place. */
coffer_status coffer__page_compare(coffer_chunks *chunks, void *state, coffer_error *err)
{
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    if (chunks->file_count < 2)
        return COFFER_OK;
    opts.max_shown = SHOWN_DIFFERENCES;
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    opts.progress = chunks->opts.progress;
    coffer_node *map = coffer_node_add_map(chunks->described, "diff");
    if (!map)
        return coffer_node_status(chunks->described, err);
    coffer_status status = chunks->kind->diff
                               ? chunks->kind->diff(map, state, &found)
                               : coffer_file_diff(map, chunks->files[0], chunks->files[1], &opts, &found);
    if (status && !coffer__is_about_file(status) && status != COFFER_E_UNSUPPORTED)
        return coffer__fail_copy(err, &found);
    if (status)
        coffer_node_add_text(chunks->described, "diff_error", found.text);
    add_units(chunks->described, "diff_units", map);
    return COFFER_OK;
}

/* ---- The chunk ---- */

void coffer__page_add_summary(coffer_chunks *chunks)
{
    coffer_node *root = NULL;
    if (coffer_node_new(&root, NULL)) {
        chunks->failed = true;
        return;
    }
    coffer_node_add_u64(root, "version", 1, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "coffer", COFFER_VERSION_STRING);
    coffer_node_add_text(root, "page", coffer_chunks_page(chunks));
    for (const coffer_node *child = coffer_node_first(chunks->described); child;
         child = coffer_node_next(child))
        coffer_node_add_copy(root, coffer_node_get_name(child), child);
    coffer_node_add_copy(root, "view", chunks->view);
    coffer_node_add_copy(root, "notes", chunks->note_list);
    if (coffer_node_status(root, NULL))
        chunks->failed = true;
    else
        coffer__chunks_json(chunks, "summary", root);
    coffer_node_free(root);
}
