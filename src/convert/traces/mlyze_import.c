#include "convert/traces/mlyze_import.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/convert.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/temporary.h"
#include "outside/archives/unpack.h"
#include "outside/text/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const coffer_convert_option coffer__mlyze_import_options[] = {
    { "plain", NULL, "a version-1 trace without blocks, checksums and index" },
    { "archive", NULL, "an archive, the smallest form, for traces that are kept" },
    { "level", "N", "0 = fast, 1 to 12 = smaller and slower to write; of an archive 1 to 19" },
    { "partial", NULL, "convert the readable part of a truncated file" },
    { "max-events", "N", "highest number of events to make for the blocks of a profile", NULL, "4194304" },
    { "merge", NULL,
      "with more blocks than --max-events, let each event represent several: bytes stay exact, counts do "
      "not" },
    { "max-unpacked", "BYTES", "highest number of bytes that a compressed file may give", NULL,
      "64 MiB or 1000 times its size" },
    { NULL, NULL, NULL },
};

#define WALKS 16
#define FIRST_ADDRESS UINT64_C(0x1000)

void coffer__mlyze_import_open(coffer__mlyze_import *out, const coffer__convert_job *job, bool synthetic)
{
    memset(out, 0, sizeof *out);
    out->job = job;
    out->next_address = FIRST_ADDRESS;
    out->max_events = COFFER_MLYZE_MAX_EVENTS;
    coffer__buffer_init(&out->metadata, SIZE_MAX);
    coffer__buffer_init(&out->name, SIZE_MAX);
    coffer__json_writer_init(&out->json, &out->metadata, 0);
    coffer__json_open_object(&out->json);
    coffer__json_key(&out->json, "source");
    coffer__json_open_object(&out->json);
    coffer__json_key(&out->json, "format");
    coffer__json_string(&out->json, job->from);
    coffer__json_key(&out->json, "synthetic");
    coffer__json_write_bool(&out->json, synthetic);
}

/* ---- Names ---- */

static const char *import_clean(coffer__mlyze_import *import, const char *text, size_t len)
{
    coffer__buffer *name = &import->name;
    name->len = 0;
    while (len > 0) {
        size_t valid = coffer__utf8_valid_prefix(text, len);
        const char *nul = memchr(text, '\0', valid);
        if (nul)
            valid = (size_t)(nul - text);
        coffer__buffer_append(name, text, valid);
        text += valid;
        len -= valid;
        if (len > 0) {
            coffer__buffer_printf(name, "\\x%02x", (unsigned)(uint8_t)*text);
            text++;
            len--;
        }
    }
    const char *clean = coffer__buffer_text(name);
    return name->failed ? NULL : clean;
}

coffer_status coffer__mlyze_import_create(coffer__mlyze_import *import, const char *command,
                                          size_t command_len, uint64_t start_time_us, coffer_error *err)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    uint64_t level = 0;
    coffer_status status = coffer__job_number(&level, import->job, "level",
                                              coffer__job_has(import->job, "archive") ? 19 : 12, err);
    if (status)
        return status;
    coffer__json_close_object(&import->json);
    if (command) {
        const char *clean = import_clean(import, command, command_len);
        coffer__json_key(&import->json, "command");
        coffer__json_string(&import->json, clean ? clean : "");
    }
    coffer__json_close_object(&import->json);
    opts.plain = coffer__job_has(import->job, "plain");
    opts.archive = coffer__job_has(import->job, "archive");
    opts.no_index = coffer__job_has(import->job, "no-index"); /* coffer_mlyze_open_profile sets it */
    opts.level = (int)level;
    opts.overwrite = import->job->overwrite;
    opts.start_time_us = start_time_us;
    opts.limits = &import->job->limits;
    opts.extra_json = coffer__buffer_text(&import->metadata);
    if (import->metadata.failed || import->name.failed)
        return coffer__fail_no_memory(err, import->metadata.len);
    return coffer_mlyze_writer_create(&import->writer, import->job->out_path, &opts, err);
}

uint64_t coffer__mlyze_import_unit(coffer__mlyze_import *import, const char *unit)
{
    static const struct {
        const char *unit, *name; /* NULL: it is a time */
        uint64_t factor;
    } units[] = {
        { "ms", NULL, 1000 },          { "us", NULL, 1 },          { "\xc2\xb5s", NULL, 1 },
        { "s", NULL, 1000000 },        { "i", "instructions", 1 }, { "instrs", "instructions", 1 },
        { "B", "allocated bytes", 1 },
    };
    const char *name = unit;
    uint64_t factor = 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].unit, unit) == 0) {
            name = units[i].name;
            factor = units[i].factor;
        }
    }
    if (name) {
        const char *clean = import_clean(import, name, strlen(name));
        coffer__json_key(&import->json, "time_unit");
        coffer__json_string(&import->json, clean ? clean : "");
    }
    return factor;
}

coffer_status coffer__mlyze_import_expect(coffer__mlyze_import *import, uint64_t blocks, coffer_error *err)
{
    coffer_status status =
        coffer__job_number(&import->max_events, import->job, "max-events", UINT64_MAX, err);
    if (status || blocks <= import->max_events)
        return status;
    if (import->max_events == 0 || !coffer__job_has(import->job, "merge"))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the profile counts %" PRIu64 " blocks, a trace of it may have %" PRIu64
                            " events: \"max-events\" raises that, \"merge\" makes fewer and larger blocks",
                            blocks, import->max_events);
    coffer__json_key(&import->json, "blocks_per_event");
    coffer__json_write_u64(&import->json, coffer__divide_up(blocks, import->max_events));
    return COFFER_OK;
}

/* "0x48417B4: malloc (in …)", "operator new(unsigned long) (vg_replace_malloc.c:483)". */
bool coffer__mlyze_is_allocator(const char *label, size_t len)
{
    static const char *const names[] = { "malloc",        "calloc",         "realloc", "reallocarray",
                                         "aligned_alloc", "posix_memalign", "valloc",  "pvalloc",
                                         "memalign",      "__rust_alloc",   "xmalloc" };
    size_t at = 0;
    if (len > 2 && memcmp(label, "0x", 2) == 0) {
        const char *colon = memchr(label, ':', len);
        at = colon && (size_t)(colon - label) + 2 <= len ? (size_t)(colon - label) + 2 : 0;
    }
    label += at;
    len -= at;
    if (len > 12 && memcmp(label, "operator new", 12) == 0 && (label[12] == '(' || label[12] == '['))
        return true;
    size_t end = 0;
    while (end < len && label[end] != ' ' && label[end] != '(')
        end++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == end && memcmp(names[i], label, end) == 0)
            return true;
    }
    return false;
}

coffer_status coffer__mlyze_import_commit(coffer__mlyze_import *import, coffer_error *err)
{
    coffer_mlyze_writer *writer = import->writer;
    import->writer = NULL;
    return coffer_mlyze_writer_commit(writer, err);
}

void coffer__mlyze_import_close(coffer__mlyze_import *import)
{
    if (import->writer)
        coffer_mlyze_writer_discard(import->writer);
    coffer__buffer_free(&import->metadata);
    coffer__buffer_free(&import->name);
    import->writer = NULL;
}

coffer_status coffer__mlyze_import_lines(coffer__packed_lines *lines, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer__packed_lines_opts opts = { .limits = &job->limits, /* with "max-unpacked" */
                                       .progress = job->progress,
                                       .partial = coffer__job_has(job, "partial") };
    return coffer__packed_lines_open(lines, job->in, &opts, err);
}

static coffer_status clean_name(const char **out, coffer__mlyze_import *import, const char *text, size_t len,
                                coffer_error *err)
{
    if (len > import->job->limits.string_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a name of %zu bytes, the limit is %" PRIu64, len,
                            import->job->limits.string_bytes);
    *out = import_clean(import, text, len);
    return *out ? COFFER_OK : coffer__fail_no_memory(err, len);
}

coffer_status coffer__mlyze_import_function(uint64_t *id, coffer__mlyze_import *import, const char *text,
                                            size_t len, coffer_error *err)
{
    const char *name;
    coffer_status status = clean_name(&name, import, text, len, err);
    return status ? status : coffer_mlyze_writer_add_function(id, import->writer, name, err);
}

coffer_status coffer__mlyze_import_file(uint64_t *id, coffer__mlyze_import *import, const char *text,
                                        size_t len, coffer_error *err)
{
    const char *name;
    coffer_status status = clean_name(&name, import, text, len, err);
    return status ? status : coffer_mlyze_writer_add_file(id, import->writer, name, err);
}

/* ---- Stacks ---- */

coffer_status coffer__mlyze_import_walk(coffer__mlyze_import *import, uint64_t depth, coffer_error *err)
{
    uint64_t limit;
    if (!coffer__mul_u64(&limit, import->job->limits.entries, WALKS))
        limit = UINT64_MAX;
    if (depth > limit - import->walked)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the stacks, each time they are named, have more than %" PRIu64
                            " frames, which is the limit",
                            limit);
    import->walked += depth;
    return COFFER_OK;
}

static coffer_status fail_too_many(const coffer__mlyze_import *import, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "the stacks have more than %" PRIu64 " frames, which is the limit",
                        import->job->limits.entries);
}

coffer_status coffer__mlyze_import_stack(uint64_t *id, coffer__mlyze_import *import,
                                         const coffer_mlyze_frame *frames, size_t depth, coffer_error *err)
{
    static const char none[] = "[no stack]";
    coffer_mlyze_frame nowhere = { 0, 0, 0 };
    coffer_status status = COFFER_OK;
    if (depth > import->job->limits.entries - import->frames)
        return fail_too_many(import, err);
    if (depth == 0) {
        status = coffer__mlyze_import_function(&nowhere.func_id, import, none, sizeof none - 1, err);
        if (!status)
            status = coffer__mlyze_import_file(&nowhere.file_id, import, "", 0, err);
        frames = &nowhere;
        depth = 1;
    }
    if (!status)
        status = coffer_mlyze_writer_add_stack(id, import->writer, frames, depth, err);
    if (!status && *id >= import->stacks) {
        import->stacks = *id + 1;
        import->frames += depth;
        if (import->frames > import->job->limits.entries)
            status = fail_too_many(import, err);
    }
    return status;
}

/* "…(PLACE)" at the end: where the bracket opens, or len. */
static size_t find_place(const char *text, size_t len)
{
    size_t open = 0;
    if (len < 3 || text[len - 1] != ')')
        return len;
    for (size_t i = len - 1; i > 0; i--) {
        if (text[i] == '(') {
            open = i;
            break;
        }
    }
    return open >= 2 && text[open - 1] == ' ' ? open : len;
}

/* The line number after the last colon of "grow.c:9"; *len becomes the length of the file name. False without
 * a line. */
static bool split_line(uint64_t *line, const char *text, size_t *len)
{
    coffer__number number;
    size_t colon = *len;
    while (colon > 0 && text[colon - 1] != ':')
        colon--;
    if (colon < 2 || !coffer__number_parse(&number, text + colon, *len - colon) ||
        !coffer__number_as_u64(line, &number, UINT32_MAX))
        return false;
    *len = colon - 1;
    return true;
}

coffer_status coffer__mlyze_import_place(coffer_mlyze_frame *frame, coffer__mlyze_import *import,
                                         const char *text, size_t len, coffer_error *err)
{
    size_t open = find_place(text, len), file_len = 0, function_len = len;
    const char *file = "";
    uint64_t line = 0;
    if (open < len) {
        const char *place = text + open + 1;
        size_t place_len = len - open - 2;
        bool is_module = place_len > 3 && memcmp(place, "in ", 3) == 0;
        if (is_module || split_line(&line, place, &place_len)) {
            file = is_module ? place + 3 : place;
            file_len = is_module ? place_len - 3 : place_len;
            function_len = open - 1;
        }
    }
    frame->line = line;
    coffer_status status = coffer__mlyze_import_function(&frame->func_id, import, text, function_len, err);
    if (!status)
        status = coffer__mlyze_import_file(&frame->file_id, import, file, file_len, err);
    return status;
}

coffer_status coffer__mlyze_import_label(coffer_mlyze_frame *frame, coffer__mlyze_import *import,
                                         const char *text, size_t len, coffer_error *err)
{
    size_t digits = 2;
    if (len > 2 && text[0] == '0' && text[1] == 'x') {
        while (digits < len && strchr("0123456789abcdefABCDEF", text[digits]) && text[digits])
            digits++;
        /* An address without a name is kept as the name. */
        if (digits > 2 && digits + 2 < len && memcmp(text + digits, ": ", 2) == 0 &&
            memcmp(text + digits + 2, "???", len - digits - 2 < 3 ? len - digits - 2 : 3) != 0) {
            text += digits + 2;
            len -= digits + 2;
        }
    }
    return coffer__mlyze_import_place(frame, import, text, len, err);
}

/* Opens files of other profilers as traces: they are converted into a temporary file. */

typedef coffer_status (*import_function)(const coffer__convert_job *job, coffer_error *err);

static import_function find_import(const char *kind)
{
    static const struct {
        const char *kind;
        import_function run;
    } imports[] = {
        { "heaptrack", coffer__mlyze_from_heaptrack }, { "massif", coffer__mlyze_from_massif },
        { "dhat", coffer__mlyze_from_dhat },           { "pprof", coffer__mlyze_from_pprof },
        { "collapsed", coffer__mlyze_from_collapsed }, { "tracemalloc", coffer__mlyze_from_tracemalloc },
        { "memray", coffer__mlyze_from_memray },
    };
    for (size_t i = 0; i < sizeof imports / sizeof *imports; i++) {
        if (strcmp(imports[i].kind, kind) == 0)
            return imports[i].run;
    }
    return NULL;
}

/* Only its owner may read it: names of functions and files can be secret. */
static coffer_status make_temporary(char **path, coffer_error *err)
{
    const char *folder = getenv("TMPDIR");
    char wanted[4096];
    int fd = -1;
    if (!folder || !*folder)
        folder = "/tmp";
    if ((size_t)snprintf(wanted, sizeof wanted, "%s/coffer.mlyze", folder) >= sizeof wanted)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "TMPDIR is too long");
    coffer_status status = coffer__fail_other(err, coffer__temporary_create(&fd, path, wanted, err), folder);
    if (status)
        return status;
    if (coffer__os_chmod(fd, 0600) != 0)
        status = coffer__fail_errno(err, "cannot protect a temporary file", errno);
    coffer__file_close(fd);
    return status;
}

/* A trace inside a gzip or zstd stream. */
static coffer_status unpack_to(const char *path, coffer_source *src, const coffer_mlyze_profile_opts *opts,
                               coffer_error *err)
{
    coffer_limits limits = coffer__limits(opts->limits);
    coffer__sink_opts sink_opts = { .no_sync = true };
    coffer_source *plain = NULL;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__unpack_to_source(&plain, src, &limits, err);
    if (!status)
        status = coffer__sink_create(&sink, path, &sink_opts, err);
    if (!status) {
        status = coffer__sink_copy_source(sink, plain, 0, coffer_source_size(plain), opts->progress, err);
        if (!status)
            status = coffer__sink_commit(sink, err);
        else
            coffer__sink_discard(sink);
    }
    coffer_source_close(plain);
    return status;
}

static coffer_status import_to(const char *path, const char *kind, coffer_source *src,
                               const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    char max[24];
    coffer_setting settings[4] = { { "no-index", "" }, { "max-events", max } };
    size_t count = 2;
    snprintf(max, sizeof max, "%" PRIu64, opts->max_events);
    if (opts->partial)
        settings[count++] = (coffer_setting){ "partial", "" };
    if (opts->merge)
        settings[count++] = (coffer_setting){ "merge", "" };
    coffer__convert_job job = { .in = src,
                                .from = kind,
                                .to = "mlyze",
                                .out_path = path,
                                .overwrite = true,
                                .settings = settings,
                                .setting_count = count,
                                .limits = coffer__limits(opts->limits),
                                .progress = opts->progress };
    return find_import(kind)(&job, err);
}

/* The handle keeps the file open after its name is gone. */
static coffer_status open_imported(coffer_mlyze **out, const char *kind, coffer_source *src,
                                   const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    coffer_mlyze_open_opts open_opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    char *path = NULL;
    open_opts.limits = opts->limits;
    open_opts.stack_order = opts->stack_order;
    coffer_status status = make_temporary(&path, err);
    if (!status)
        status = strcmp(kind, "mlyze") == 0 ? unpack_to(path, src, opts, err)
                                            : import_to(path, kind, src, opts, err);
    if (!status)
        status = coffer_mlyze_open_path(out, path, &open_opts, err);
    if (path) {
        coffer__ignore(coffer__file_unlink(path, NULL));
        coffer__temporary_forget(path);
    }
    coffer__free(path);
    return status;
}

coffer_status coffer_mlyze_open_profile(coffer_mlyze **out, coffer_source *src,
                                        const coffer_mlyze_profile_opts *opts, coffer_error *err)
{
    coffer_mlyze_profile_opts options = COFFER_MLYZE_PROFILE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    const char *kind = options.kind;
    if (!status && !kind)
        status = coffer__kind_of(&kind, src, err);
    if (status)
        return status;
    if (strcmp(kind, "mlyze") == 0 && !coffer__kind_is_packed_format(kind, src)) {
        coffer_mlyze_open_opts open_opts = COFFER_MLYZE_OPEN_OPTS_INIT;
        open_opts.limits = options.limits;
        open_opts.stack_order = options.stack_order;
        return coffer_mlyze_open(out, src, &open_opts, err);
    }
    if (strcmp(kind, "mlyze") != 0 && !find_import(kind))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a %s file is not a memory profile", kind);
    return open_imported(out, kind, src, &options, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_profile_opts, COFFER_MLYZE_PROFILE_OPTS_INIT)
