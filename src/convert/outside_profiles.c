/* Profiles of other programs, read for their structure and their counts. */
#include "convert/outside_files.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "outside/archives/unpack.h"
#include "outside/profiles/heaptrack.h"
#include "outside/profiles/massif.h"
#include "outside/profiles/pprof.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DHAT_VERSION 2

/* ---- Massif ---- */

typedef struct massif_pass {
    coffer_node *entries; /* NULL: only counts */
    const char *glob;
    uint64_t snapshots, detailed, peak_bytes;
} massif_pass;

static void list_snapshot(const massif_pass *pass, const coffer__massif_snapshot *snapshot)
{
    static const char *const details[] = { "empty", "detailed", "peak" };
    char name[24];
    int len = snprintf(name, sizeof name, "%" PRIu64, snapshot->number);
    if (!pass->entries || (pass->glob && !coffer__glob_match(pass->glob, name, (size_t)len)))
        return;
    coffer_node *entry = coffer_node_add_map(pass->entries, NULL);
    coffer_node_add_u64(entry, "snapshot", snapshot->number, COFFER_UNIT_NONE);
    coffer_node_add_u64(entry, "time", snapshot->time, COFFER_UNIT_NONE);
    coffer_node_add_u64(entry, "heap", snapshot->heap_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(entry, "overhead", snapshot->extra_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(entry, "stacks", snapshot->stack_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_text(entry, "detail", details[snapshot->detail]);
}

static coffer_status skip_tree(coffer__massif *massif, coffer_error *err)
{
    uint64_t left = 1;
    while (left > 0) {
        coffer__massif_node node;
        coffer_status status = coffer__massif_node_next(&node, massif, err);
        if (status)
            return status;
        if (node.children > UINT64_MAX - left)
            return coffer__packed_lines_fail(massif->lines, err, COFFER_E_BAD_VALUE,
                                             "a node with %" PRIu64 " children", node.children);
        left += node.children - 1;
    }
    return COFFER_OK;
}

static coffer_status pass_snapshots(massif_pass *pass, coffer__massif *massif, coffer_error *err)
{
    for (;;) {
        coffer__massif_snapshot snapshot;
        bool more;
        coffer_status status = coffer__massif_next(&more, &snapshot, massif, err);
        if (status || !more)
            return status;
        pass->snapshots++;
        if (snapshot.heap_bytes > pass->peak_bytes)
            pass->peak_bytes = snapshot.heap_bytes;
        list_snapshot(pass, &snapshot);
        if (snapshot.detail == COFFER__MASSIF_EMPTY)
            continue;
        pass->detailed++;
        status = skip_tree(massif, err);
        if (status)
            return status;
    }
}

/* out : NULL, or gets the command and the counts. */
static coffer_status read_massif(coffer_node *out, massif_pass *pass, coffer_source *src,
                                 const coffer_limits *given, const coffer_progress *progress,
                                 coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    const coffer__packed_lines_opts opts = { .limits = &limits, .progress = progress };
    coffer__packed_lines lines;
    coffer__massif massif;
    coffer_status status = coffer__packed_lines_open(&lines, src, &opts, err);
    if (status)
        return status;
    status = coffer__massif_open(&massif, &lines, err);
    if (!status) {
        status = pass_snapshots(pass, &massif, err);
        coffer_node_add_text(out, "command", coffer__buffer_text(&massif.command));
        coffer_node_add_text(out, "time_unit", massif.time_unit);
        coffer_node_add_u64(out, "snapshots", pass->snapshots, COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "detailed", pass->detailed, COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "peak", pass->peak_bytes, COFFER_UNIT_BYTES);
        coffer__massif_close(&massif);
    }
    coffer__packed_lines_close(&lines);
    return status;
}

coffer_status coffer__massif_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                      coffer_error *err)
{
    massif_pass pass = { 0 };
    coffer_status status = read_massif(out, &pass, src, limits, NULL, err);
    return status ? status : coffer_node_status(out, err);
}

coffer_status coffer__massif_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                   coffer_error *err)
{
    (void)out;
    massif_pass pass = { 0 };
    return read_massif(NULL, &pass, src, opts->limits, opts->progress, err);
}

coffer_status coffer__massif_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                  coffer_error *err)
{
    massif_pass pass = { .entries = coffer_node_add_list(out, "entries"), .glob = opts->glob };
    coffer_status status = read_massif(NULL, &pass, src, opts->limits, NULL, err);
    return status ? status : coffer_node_status(out, err);
}

/* ---- DHAT ---- */

typedef struct dhat_file {
    coffer__buffer text;
    coffer__json *json;
    const coffer__json_value *root, *points, *frames; /* the latter two are arrays */
} dhat_file;

static void close_dhat(dhat_file *file)
{
    coffer__json_free(file->json);
    coffer__buffer_free(&file->text);
}

static coffer_status expect_array(const coffer__json_value **out, const coffer__json_value *root,
                                  const char *key, coffer_error *err)
{
    const coffer__json_value *array = coffer__json_find(root, key);
    if (!array || array->kind != COFFER__JSON_ARRAY)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the array \"%s\" is missing", key);
    *out = array;
    return COFFER_OK;
}

static coffer_status open_dhat(dhat_file *file, coffer_source *src, const coffer_limits *given,
                               coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    uint64_t version = 0;
    *file = (dhat_file){ .text = COFFER__BUFFER_INIT };
    coffer_status status = coffer__unpack_all(&file->text, src, limits.json_bytes, &limits, err);
    if (!status)
        status = coffer__json_parse(&file->json, coffer__buffer_text(&file->text), file->text.len, 0, &limits,
                                    err);
    if (!status) {
        file->root = coffer__json_root(file->json);
        if (!coffer__json_u64(&version, coffer__json_find(file->root, "dhatFileVersion")))
            status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                                  "the number \"dhatFileVersion\" is missing");
        else if (version != DHAT_VERSION)
            status = coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER_OFFSET_NONE,
                                  "dhatFileVersion %" PRIu64 ", only version %d is supported", version,
                                  DHAT_VERSION);
    }
    if (!status)
        status = expect_array(&file->points, file->root, "pps", err);
    if (!status)
        status = expect_array(&file->frames, file->root, "ftbl", err);
    if (status)
        close_dhat(file);
    return status;
}

static void add_json_text(coffer_node *out, const char *name, const coffer__json_value *value)
{
    if (value && value->kind == COFFER__JSON_STRING)
        coffer_node_add_text_len(out, name, value->as.string, value->string_len);
}

static uint64_t number_of(const coffer__json_value *object, const char *key)
{
    uint64_t number = 0;
    const coffer__json_value *value = coffer__json_find(object, key);
    return value && coffer__json_u64(&number, value) ? number : 0;
}

coffer_status coffer__dhat_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                    coffer_error *err)
{
    dhat_file file;
    coffer_status status = open_dhat(&file, src, limits, err);
    if (status)
        return status;
    coffer_node_add_u64(out, "version", DHAT_VERSION, COFFER_UNIT_NONE);
    add_json_text(out, "mode", coffer__json_find(file.root, "mode"));
    add_json_text(out, "command", coffer__json_find(file.root, "cmd"));
    coffer_node_add_u64(out, "program_points", file.points->as.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "frames", file.frames->as.count, COFFER_UNIT_NONE);
    close_dhat(&file);
    return coffer_node_status(out, err);
}

/* The total of a program point must be there, and its frames must exist. */
static coffer_status check_point(const dhat_file *file, const coffer__json_value *point, size_t number,
                                 coffer_error *err)
{
    uint64_t index;
    const coffer__json_value *total = coffer__json_find(point, "tb"), *stack = coffer__json_find(point, "fs");
    if (!total || !coffer__json_u64(&index, total))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "program point %zu does not have the number \"tb\"", number);
    for (const coffer__json_value *item = coffer__json_first(stack); item;
         item = coffer__json_next(stack, item)) {
        if (!coffer__json_u64(&index, item) || index >= file->frames->as.count)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "program point %zu has a frame that is not one of the %" PRIu64, number,
                                file->frames->as.count);
    }
    return COFFER_OK;
}

coffer_status coffer__dhat_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                 coffer_error *err)
{
    (void)out;
    dhat_file file;
    size_t number = 0;
    coffer_status status = open_dhat(&file, src, opts->limits, err);
    if (status)
        return status;
    for (const coffer__json_value *point = coffer__json_first(file.points); point && !status;
         point = coffer__json_next(file.points, point))
        status = check_point(&file, point, number++, err);
    close_dhat(&file);
    return status;
}

/* The innermost frame names a program point. */
static const coffer__json_value *frame_of(const coffer__json_value *const *table, size_t count,
                                          const coffer__json_value *point)
{
    uint64_t index;
    const coffer__json_value *first = coffer__json_first(coffer__json_find(point, "fs"));
    return first && coffer__json_u64(&index, first) && index < count ? table[index] : NULL;
}

coffer_status coffer__dhat_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                coffer_error *err)
{
    dhat_file file;
    coffer_status status = open_dhat(&file, src, opts->limits, err);
    if (status)
        return status;
    size_t count = 0;
    const coffer__json_value **table = coffer__alloc_array((size_t)file.frames->as.count + 1, sizeof *table);
    if (!table)
        status = coffer__fail_no_memory(err, file.frames->as.count * sizeof *table);
    for (const coffer__json_value *frame = status ? NULL : coffer__json_first(file.frames); frame;
         frame = coffer__json_next(file.frames, frame))
        table[count++] = frame;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    for (const coffer__json_value *point = status ? NULL : coffer__json_first(file.points); point;
         point = coffer__json_next(file.points, point)) {
        const coffer__json_value *frame = frame_of(table, count, point);
        bool named = frame && frame->kind == COFFER__JSON_STRING;
        if (opts->glob && !(named && coffer__glob_match(opts->glob, frame->as.string, frame->string_len)))
            continue;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text_len(entry, "frame", named ? frame->as.string : "",
                                 named ? frame->string_len : 0);
        coffer_node_add_u64(entry, "total", number_of(point, "tb"), COFFER_UNIT_BYTES);
        coffer_node_add_u64(entry, "blocks", number_of(point, "tbk"), COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "peak", number_of(point, "gb"), COFFER_UNIT_BYTES);
        coffer_node_add_u64(entry, "end", number_of(point, "eb"), COFFER_UNIT_BYTES);
    }
    coffer__free(table);
    close_dhat(&file);
    return status ? status : coffer_node_status(out, err);
}

/* ---- heaptrack ---- */

typedef struct heaptrack_counts {
    uint64_t format;
    uint64_t records[256]; /* by their letter */
    uint64_t milliseconds;
    coffer__buffer command;
} heaptrack_counts;

static coffer_status count_record(heaptrack_counts *counts, const coffer__packed_lines *lines,
                                  coffer_error *err)
{
    const uint64_t first_version = 0x10200; /* wrote format 1 without its number */
    coffer__heaptrack_line line = coffer__heaptrack_fields(lines);
    unsigned char type = (unsigned char)lines->text[0];
    uint64_t number;
    if (!strchr("#SvXxmIsita+-cRA", type))
        return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_VALUE, "'%c' does not begin a record",
                                         type);
    counts->records[type]++;
    if (type == 'X' && counts->command.len == 0)
        coffer__buffer_append(&counts->command, line.at, (size_t)(line.end - line.at));
    if (type == 'X' || type == 'x' || type == 'm' || type == 's' || type == '#' || type == 'S' || type == 'A')
        return COFFER_OK;
    if (!coffer__heaptrack_hex(&number, &line))
        return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_VALUE,
                                         "a record '%c' whose numbers cannot be read", type);
    if (type == 'c')
        counts->milliseconds = number;
    if (type == 'v' && !coffer__heaptrack_hex(&counts->format, &line))
        counts->format = number == first_version;
    if (counts->format > COFFER__HEAPTRACK_NEWEST)
        return coffer__packed_lines_fail(lines, err, COFFER_E_UNSUPPORTED_VERSION,
                                         "format %" PRIu64 ", formats up to %d are supported", counts->format,
                                         COFFER__HEAPTRACK_NEWEST);
    return COFFER_OK;
}

/* A command line may contain line feeds: what follows it is part of it until a line looks like a record. */
static bool is_record(const coffer__packed_lines *lines)
{
    const char *text = lines->text;
    if (lines->len < 3 || !strchr("ISmsita+-cR", text[0]) || text[1] != ' ')
        return false;
    bool is_module = text[0] == 'm' && strchr("x-/", text[2]);
    return is_module || text[0] == 'S' || isxdigit((unsigned char)text[2]);
}

static coffer_status count_records(heaptrack_counts *counts, coffer__packed_lines *lines, coffer_error *err)
{
    for (bool in_command = false;;) {
        coffer_status status = coffer__packed_lines_next(lines, err);
        if (status || !lines->text)
            return status;
        if (!lines->whole)
            return coffer__packed_lines_fail(lines, err, COFFER_E_TRUNCATED, "the file ends in this line");
        if (lines->number == 1 && (lines->len == 0 || lines->text[0] != 'v'))
            return coffer__packed_lines_fail(lines, err, COFFER_E_BAD_MAGIC,
                                             "a heaptrack file begins with its version, \"v 10400 3\"");
        if (in_command && !is_record(lines))
            continue;
        in_command = lines->len > 0 && lines->text[0] == 'X';
        if (lines->len > 0)
            status = count_record(counts, lines, err);
        if (status)
            return status;
    }
}

static coffer_status read_heaptrack(heaptrack_counts *counts, coffer_source *src, const coffer_limits *given,
                                    const coffer_progress *progress, coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    const coffer__packed_lines_opts opts = { .limits = &limits, .progress = progress };
    coffer__packed_lines lines;
    coffer_status status = coffer__packed_lines_open(&lines, src, &opts, err);
    if (status)
        return status;
    status = count_records(counts, &lines, err);
    coffer__packed_lines_close(&lines);
    return status;
}

coffer_status coffer__heaptrack_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                         coffer_error *err)
{
    static const struct {
        const char *name;
        char type;
    } shown[] = {
        { "modules", 'm' }, { "strings", 's' },     { "instructions", 'i' },
        { "traces", 't' },  { "allocations", '+' }, { "releases", '-' },
    };
    heaptrack_counts counts = { .command = COFFER__BUFFER_INIT };
    coffer_status status = read_heaptrack(&counts, src, limits, NULL, err);
    coffer_node_add_u64(out, "version", counts.format, COFFER_UNIT_NONE);
    coffer_node_add_text(out, "command", coffer__buffer_text(&counts.command));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        coffer_node_add_u64(out, shown[i].name, counts.records[(unsigned char)shown[i].type],
                            COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "duration", counts.milliseconds * 1000, COFFER_UNIT_MICROSECONDS);
    coffer__buffer_free(&counts.command);
    return status ? status : coffer_node_status(out, err);
}

coffer_status coffer__heaptrack_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err)
{
    (void)out;
    heaptrack_counts counts = { .command = COFFER__BUFFER_INIT };
    coffer_status status = read_heaptrack(&counts, src, opts->limits, opts->progress, err);
    coffer__buffer_free(&counts.command);
    return status;
}

/* ---- pprof ---- */

typedef struct pprof_file {
    coffer__buffer bytes;
    coffer__pprof profile;
} pprof_file;

static void close_pprof(pprof_file *file)
{
    coffer__pprof_free(&file->profile);
    coffer__buffer_free(&file->bytes);
}

static coffer_status open_pprof(pprof_file *file, coffer_source *src, const coffer_limits *given,
                                coffer_error *err)
{
    const coffer_limits limits = coffer__limits(given);
    *file = (pprof_file){ .bytes = COFFER__BUFFER_INIT };
    coffer_status status = coffer__unpack_all(&file->bytes, src, limits.json_bytes, &limits, err);
    if (!status)
        status = coffer__pprof_read(&file->profile, coffer__buffer_text(&file->bytes), file->bytes.len,
                                    &limits, err);
    if (status)
        close_pprof(file);
    return status;
}

static void add_string(coffer_node *out, const char *name, const coffer__pprof *profile, uint64_t number)
{
    coffer__pprof_text text = coffer__pprof_string(profile, number);
    coffer_node_add_text_len(out, name, text.text, text.len);
}

coffer_status coffer__pprof_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                     coffer_error *err)
{
    pprof_file file;
    coffer_status status = open_pprof(&file, src, limits, err);
    if (status)
        return status;
    coffer_node *types = coffer_node_add_list(out, "sample_types");
    for (size_t i = 0; i < file.profile.type_count; i++) {
        coffer_node *type = coffer_node_add_map(types, NULL);
        add_string(type, "type", &file.profile, file.profile.types[i].name);
        add_string(type, "unit", &file.profile, file.profile.types[i].unit);
    }
    coffer_node_add_u64(out, "samples", file.profile.sample_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "locations", file.profile.location_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "functions", file.profile.function_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "mappings", file.profile.mapping_count, COFFER_UNIT_NONE);
    close_pprof(&file);
    return coffer_node_status(out, err);
}

coffer_status coffer__pprof_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err)
{
    (void)out;
    pprof_file file;
    coffer_status status = open_pprof(&file, src, opts->limits, err);
    if (!status)
        close_pprof(&file);
    return status;
}

coffer_status coffer__pprof_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    pprof_file file;
    coffer_status status = open_pprof(&file, src, opts->limits, err);
    if (status)
        return status;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    for (size_t i = 0; i < file.profile.function_count; i++) {
        const coffer__pprof_named *function = &file.profile.functions[i];
        coffer__pprof_text name = coffer__pprof_string(&file.profile, function->name);
        if (opts->glob && !coffer__glob_match(opts->glob, name.text, name.len))
            continue;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text_len(entry, "function", name.text, name.len);
        add_string(entry, "file", &file.profile, function->file);
    }
    close_pprof(&file);
    return coffer_node_status(out, err);
}
