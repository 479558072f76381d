/* Gives the frames of a trace their names: while recording, a frame is MODULE+0xOFFSET. */
#include "recorder.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "record/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INLINED_MAX = 32, FRAMES_MAX = 4096 };

typedef struct naming {
    const record_session *session;
    const coffer__symbols_module *symbols;
    coffer__symbols_file **files; /* by module; NULL = no symbols */
    bool *tried;
    coffer_mlyze *trace;
    coffer_mlyze_writer *writer;
    record_map known;      /* file and function of a frame -> its place in `frames` + 1 */
    record_map stacks;     /* id + 1 of a stack -> its id in the new trace */
    coffer__buffer frames; /* a count as a frame's line, then as many frames */
} naming;

static coffer_status no_memory(coffer_error *err)
{
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory");
}

/* ---- Symbols of a frame ---- */

static coffer__symbols_file *symbols_of(naming *work, const char *path)
{
    const record_session *session = work->session;
    for (size_t i = 0; path && work->symbols && i < session->module_count; i++) {
        const record_module *module = &session->modules[i];
        if (strcmp(module->path, path) != 0)
            continue;
        coffer_error err = COFFER_ERROR_INIT;
        if (!work->tried[i] && module->path[0] == '/' &&
            work->symbols->open(&work->files[i], module->path, module->build_id, module->build_id_len,
                                &err) == COFFER_E_CHANGED)
            cli_warn(module->path, "%s", err.text);
        work->tried[i] = true;
        return work->files[i];
    }
    return NULL;
}

static size_t find_symbols(coffer__symbol out[INLINED_MAX], naming *work, const char *path, const char *name)
{
    const char *plus = name ? strrchr(name, '+') : NULL;
    char *end = NULL;
    uint64_t address = plus ? strtoull(plus + 1, &end, 16) : 0;
    if (!plus || *end)
        return 0;
    coffer__symbols_file *file = symbols_of(work, path);
    return file ? work->symbols->find(out, INLINED_MAX, file, address) : 0;
}

static coffer_status add_names(coffer_mlyze_frame *out, naming *work, const char *function, const char *file,
                               uint64_t line, coffer_error *err)
{
    *out = (coffer_mlyze_frame){ .line = line };
    coffer_status status = coffer_mlyze_writer_add_function(&out->func_id, work->writer, function, err);
    return status ? status : coffer_mlyze_writer_add_file(&out->file_id, work->writer, file, err);
}

/* A function without a name keeps MODULE+0xOFFSET, and a place that is not known is the module. */
static coffer_status expand(naming *work, const coffer_mlyze_frame *raw, coffer_error *err)
{
    coffer__symbol symbols[INLINED_MAX];
    const char *path = coffer_mlyze_file_name(work->trace, raw->file_id);
    const char *name = coffer_mlyze_function_name(work->trace, raw->func_id);
    path = path ? path : "?";
    name = name ? name : "?";
    size_t count = raw->line ? 0 : find_symbols(symbols, work, path, name);
    if (count == 0)
        symbols[count++] = (coffer__symbol){ .line = raw->line };
    coffer_mlyze_frame head = { .line = count };
    coffer__buffer_append(&work->frames, &head, sizeof head);
    for (size_t i = 0; i < count; i++) {
        const coffer__symbol *symbol = &symbols[i];
        coffer_mlyze_frame frame;
        coffer_status status = add_names(&frame, work, symbol->function ? symbol->function : name,
                                         symbol->file ? symbol->file : path, symbol->line, err);
        if (status)
            return status;
        coffer__buffer_append(&work->frames, &frame, sizeof frame);
    }
    return work->frames.failed ? no_memory(err) : COFFER_OK;
}

static coffer_status named_frames(const coffer_mlyze_frame **out, size_t *count, naming *work,
                                  const coffer_mlyze_frame *raw, coffer_error *err)
{
    uint64_t key =
        (raw->file_id * UINT64_C(0x9e3779b97f4a7c15) ^ raw->func_id * 2654435761 ^ raw->line << 40) | 1;
    const uint64_t *known = record_map_find(&work->known, key);
    size_t at = known ? (size_t)*known : work->frames.len;
    if (!known) {
        coffer_status status = expand(work, raw, err);
        if (status)
            return status;
        if (!record_map_put(&work->known, key, at))
            return no_memory(err);
    }
    const coffer_mlyze_frame *head = (const coffer_mlyze_frame *)(const void *)(work->frames.data + at);
    *count = (size_t)head->line;
    *out = head + 1;
    return COFFER_OK;
}

/* ---- The trace ---- */

/* Calls on one line have the same names: their stacks become one. */
static coffer_status copy_stacks(naming *work, coffer_error *err)
{
    static coffer_mlyze_frame stack[FRAMES_MAX];
    size_t count = coffer_mlyze_stack_count(work->trace);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        size_t depth, total = 0;
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, work->trace, i);
        for (size_t j = 0; !status && j < depth; j++) {
            const coffer_mlyze_frame *named = NULL;
            size_t more = 0;
            status = named_frames(&named, &more, work, &frames[j], err);
            for (size_t k = 0; !status && k < more && total < FRAMES_MAX; k++)
                stack[total++] = named[k];
        }
        uint64_t id = 0;
        if (!status)
            status = coffer_mlyze_writer_add_stack(&id, work->writer, stack, total, err);
        if (!status && !record_map_put(&work->stacks, coffer_mlyze_stack_id(work->trace, i) + 1, id))
            status = no_memory(err);
    }
    return status;
}

static bool has_name(uint8_t type)
{
    return type == COFFER_MLYZE_MARKER || type == COFFER_MLYZE_THREAD || type == COFFER_MLYZE_OBJECT ||
           type == COFFER_MLYZE_REFERENCE;
}

/* Stacks and names have other ids in the new trace. */
static coffer_status rename_events(naming *work, coffer_mlyze_events *events, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < events->count; i++) {
        if (events->type[i] == COFFER_MLYZE_ALLOC) {
            const uint64_t *id = record_map_find(&work->stacks, events->id[i] + 1);
            events->id[i] = id ? *id : events->id[i];
        }
        if (!has_name(events->type[i]))
            continue;
        const char *name = coffer_mlyze_function_name(work->trace, events->id[i]);
        status = coffer_mlyze_writer_add_function(&events->id[i], work->writer, name ? name : "?", err);
    }
    return status;
}

static coffer_status copy_events(naming *work, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, work->trace, err);
    for (size_t i = 0; !status && i < count; i++) {
        status = coffer_mlyze_read_block(&events, work->trace, i, err);
        if (!status)
            status = rename_events(work, &events, err);
        if (!status)
            status = coffer_mlyze_writer_put_events(work->writer, &events, err);
    }
    coffer_mlyze_events_free(&events);
    return status;
}

static coffer_status rewrite(naming *work, const char *extra_json, coffer_error *err)
{
    const record_session *session = work->session;
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.archive = session->archive;
    opts.start_time_us = session->epoch_us;
    opts.extra_json = extra_json;
    coffer_status status = coffer_mlyze_writer_create(&work->writer, session->path, &opts, err);
    if (status)
        return status;
    status = copy_stacks(work, err);
    if (!status)
        status = copy_events(work, err);
    if (status)
        coffer_mlyze_writer_discard(work->writer);
    else
        status = coffer_mlyze_writer_commit(work->writer, err);
    return status;
}

/* The trace is read from memory, since a command does not replace a file that it opened as an input. */
static coffer_status with_mapping(naming *work, const char *extra_json, coffer_error *err)
{
    struct stat st;
    coffer_source *src = NULL;
    coffer_status status = COFFER_OK;
    int fd = open(work->session->path, O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd < 0 || fstat(fd, &st) != 0 ||
        (bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        status = coffer__fail_errno(err, "cannot read the recorded trace", errno);
    if (!status)
        status = coffer_source_from_memory(&src, bytes, (size_t)st.st_size, err);
    if (!status)
        status = coffer_mlyze_open(&work->trace, src, NULL, err);
    if (!status)
        status = rewrite(work, extra_json, err);
    coffer_mlyze_close(work->trace);
    coffer_source_close(src);
    if (bytes != MAP_FAILED)
        munmap(bytes, (size_t)st.st_size);
    if (fd >= 0)
        close(fd);
    return status;
}

coffer_status record_symbolize(const record_session *session, const char *extra_json, coffer_error *err)
{
    coffer_error missing = COFFER_ERROR_INIT;
    naming work = { .session = session, .frames = COFFER__BUFFER_INIT };
    coffer_status status;
    work.symbols = coffer__module_load(COFFER__MODULE_SYMBOLS, sizeof *work.symbols, &missing);
    if (!work.symbols)
        cli_warn(NULL, "%s; the trace has addresses instead of names", missing.text);
    work.files = coffer__calloc(session->module_count + 1, sizeof *work.files);
    work.tried = coffer__calloc(session->module_count + 1, sizeof *work.tried);
    status = work.files && work.tried ? with_mapping(&work, extra_json, err) : no_memory(err);
    for (size_t i = 0; work.symbols && work.files && i < session->module_count; i++)
        if (work.files[i])
            work.symbols->close(work.files[i]);
    coffer__free(work.files);
    coffer__free(work.tried);
    coffer__buffer_free(&work.frames);
    record_map_free(&work.known);
    record_map_free(&work.stacks);
    return status;
}
