/* One recorded process: its modules, its stacks and the writer of its trace. */
#include "recorder.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static coffer_status no_memory(coffer_error *err)
{
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory");
}

/* ---- Metadata ---- */

static void put_modules(coffer__json_writer *json, const record_session *session)
{
    coffer__json_key(json, "modules");
    coffer__json_open_array(json);
    for (size_t i = 0; i < session->module_count; i++) {
        const record_module *module = &session->modules[i];
        char hex[2 * COFFER__RECORD_BUILD_ID_MAX + 1] = "", address[24];
        for (size_t j = 0; j < module->build_id_len; j++)
            snprintf(hex + 2 * j, 3, "%02x", module->build_id[j]);
        coffer__json_open_object(json);
        coffer__json_key(json, "path");
        coffer__json_string(json, module->path);
        if (hex[0]) {
            coffer__json_key(json, "build_id");
            coffer__json_string(json, hex);
        }
        snprintf(address, sizeof address, "0x%" PRIx64, module->start);
        coffer__json_key(json, "start");
        coffer__json_string(json, address);
        coffer__json_close_object(json);
    }
    coffer__json_close_array(json);
}

char *record_metadata(const record_session *session, bool modules, uint64_t sample_bytes)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    coffer__json_writer_init(&json, &text, 0);
    coffer__json_open_object(&json);
    coffer__json_key(&json, "command");
    coffer__json_string(&json, session->command);
    if (session->pid > 0) { /* the parts of the first process begin before it has started */
        coffer__json_key(&json, "pid");
        coffer__json_write_u64(&json, (uint64_t)session->pid);
    }
    coffer__json_key(&json, "host");
    coffer__json_string(&json, host);
    if (sample_bytes > 0) {
        coffer__json_key(&json, "sampling_bytes");
        coffer__json_write_u64(&json, sample_bytes);
    }
    if (modules)
        put_modules(&json, session);
    coffer__json_close_object(&json);
    coffer__buffer_append(&text, "", 1);
    if (text.failed)
        coffer__buffer_free(&text);
    return (char *)coffer__buffer_release(&text, NULL);
}

/* ---- Opening ---- */

coffer_status record_session_open(record_session *session, const record_options *options)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_error *err = &session->err;
    struct timeval now;
    gettimeofday(&now, NULL);
    session->epoch_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_usec;
    char *extra = record_metadata(session, false, options->sample_bytes);
    opts.recording = true;
    session->archive = options->archive;
    opts.archive = options->archive && !options->symbols; /* naming the frames writes it again */
    opts.no_index = true;                                 /* the final trace gets one */
    opts.overwrite = options->force;
    opts.start_time_us = session->epoch_us;
    opts.extra_json = extra;
    coffer_status status =
        extra ? coffer_mlyze_writer_create(&session->writer, session->path, &opts, err) : no_memory(err);
    coffer__free(extra);
    return status;
}

void record_session_free(record_session *session)
{
    if (!session)
        return;
    for (size_t i = 0; i < session->module_count; i++)
        coffer__free(session->modules[i].path);
    coffer__free(session->modules);
    coffer__free(session->frame_list);
    coffer__free(session->maps);
    record_map_free(&session->frames);
    record_map_free(&session->stacks);
    record_map_free(&session->codes);
    record_map_free(&session->names);
    record_map_free(&session->live);
    coffer__free(session->path);
    coffer__free(session->command);
    coffer__free(session);
}

/* ---- Modules ---- */

static bool is_known(const record_session *session, const record_module *module)
{
    for (size_t i = 0; i < session->module_count; i++) {
        const record_module *other = &session->modules[i];
        if (!other->unloaded && other->start == module->start && other->end == module->end &&
            strcmp(other->path, module->path) == 0)
            return true;
    }
    return false;
}

static coffer_status add_module(record_session *session, const record_module *module)
{
    for (size_t i = 0; i < session->module_count; i++) {
        record_module *other = &session->modules[i];
        if (other->start < module->end && module->start < other->end && !other->unloaded) {
            other->unloaded = true;
            record_map_free(&session->frames); /* addresses now mean something else */
            session->last_count = 0;
        }
    }
    if (session->module_count == session->module_capacity) {
        size_t capacity = session->module_capacity ? 2 * session->module_capacity : 32;
        record_module *larger = coffer__realloc(session->modules, capacity * sizeof *larger);
        if (!larger)
            return no_memory(&session->err);
        session->modules = larger;
        session->module_capacity = capacity;
    }
    session->modules[session->module_count] = *module;
    record_module *added = &session->modules[session->module_count];
    coffer_status status =
        coffer_mlyze_writer_add_file(&added->file, session->writer, added->path, &session->err);
    if (!status)
        session->module_count++;
    return status;
}

coffer_status record_session_module(record_session *session, const uint64_t *words, size_t count)
{
    enum { ID = 4 };
    record_module module = { .start = words[0], .end = words[1], .bias = words[2] };
    if (count < ID + 1 || words[3] > COFFER__RECORD_BUILD_ID_MAX)
        return COFFER_OK;
    module.build_id_len = (size_t)words[3];
    memcpy(module.build_id, words + ID, module.build_id_len);
    size_t at = ID + (module.build_id_len + 7) / 8;
    if (at >= count || words[at] > (count - at - 1) * 8)
        return COFFER_OK;
    module.path = coffer__strndup((const char *)(words + at + 1), (size_t)words[at]);
    if (!module.path)
        return no_memory(&session->err);
    const char *slash = strrchr(module.path, '/');
    module.name = slash ? slash + 1 : module.path;
    coffer_status status = COFFER_OK;
    if (!is_known(session, &module)) {
        status = add_module(session, &module);
        if (!status)
            return COFFER_OK;
    }
    coffer__free(module.path);
    return status;
}

static const record_module *module_at(const record_session *session, uint64_t address)
{
    for (size_t i = session->module_count; i-- > 0;) {
        const record_module *module = &session->modules[i];
        if (!module->unloaded && address >= module->start && address < module->end)
            return module;
    }
    return NULL;
}

/* ---- Frames and stacks ---- */

coffer_status record_session_code(record_session *session, const uint64_t *words, size_t count)
{
    uint64_t number = words[0], function = 0, file = 0;
    size_t name_len = (size_t)(words[1] >> 32), file_len = (size_t)(words[1] & UINT32_MAX);
    if (count < 2 || number == 0 || 2 + (name_len + 7) / 8 + (file_len + 7) / 8 > count)
        return COFFER_OK;
    char *name = coffer__strndup((const char *)(words + 2), name_len);
    char *path = coffer__strndup((const char *)(words + 2 + (name_len + 7) / 8), file_len);
    coffer_status status = name && path ? COFFER_OK : no_memory(&session->err);
    if (!status)
        status = coffer_mlyze_writer_add_function(&function, session->writer, name, &session->err);
    if (!status)
        status = coffer_mlyze_writer_add_file(&file, session->writer, path, &session->err);
    if (!status && !record_map_put(&session->codes, number, function << 32 | file))
        status = no_memory(&session->err);
    coffer__free(name);
    coffer__free(path);
    return status;
}

static coffer_status python_frame(coffer_mlyze_frame *out, record_session *session, uint64_t word)
{
    uint64_t number = word & ((UINT64_C(1) << COFFER__RECORD_LINE_SHIFT) - 1);
    const uint64_t *code = record_map_find(&session->codes, number);
    out->line = (word & ~COFFER__RECORD_PYTHON_FRAME) >> COFFER__RECORD_LINE_SHIFT;
    if (code) {
        out->func_id = *code >> 32;
        out->file_id = *code & UINT32_MAX;
        return COFFER_OK;
    }
    coffer_status status =
        coffer_mlyze_writer_add_function(&out->func_id, session->writer, "?", &session->err);
    return status ? status : coffer_mlyze_writer_add_file(&out->file_id, session->writer, "?", &session->err);
}

/* A frame is "MODULE+0xOFFSET" until its symbols are read; the offset is that of the call, one byte before
 * the return address. */
static coffer_status make_frame(coffer_mlyze_frame *out, record_session *session, uint64_t address)
{
    char text[COFFER__RECORD_TEXT_MAX + 32];
    const record_module *module = module_at(session, address - 1);
    coffer_status status = COFFER_OK;
    *out = (coffer_mlyze_frame){ 0 };
    if (address & COFFER__RECORD_PYTHON_FRAME)
        return python_frame(out, session, address);
    if (module) {
        out->file_id = module->file;
        snprintf(text, sizeof text, "%s+0x%" PRIx64, module->name, address - 1 - module->bias);
    } else {
        snprintf(text, sizeof text, "0x%" PRIx64, address - 1);
        status = coffer_mlyze_writer_add_file(&out->file_id, session->writer, "?", &session->err);
    }
    if (!status)
        status = coffer_mlyze_writer_add_function(&out->func_id, session->writer, text, &session->err);
    return status;
}

static coffer_status frame_of(const coffer_mlyze_frame **out, record_session *session, uint64_t address)
{
    const uint64_t *known = record_map_find(&session->frames, address);
    if (known) {
        *out = &session->frame_list[*known];
        return COFFER_OK;
    }
    if (session->frame_count == session->frame_capacity) {
        size_t capacity = session->frame_capacity ? 2 * session->frame_capacity : 1024;
        coffer_mlyze_frame *larger = coffer__realloc(session->frame_list, capacity * sizeof *larger);
        if (!larger)
            return no_memory(&session->err);
        session->frame_list = larger;
        session->frame_capacity = capacity;
    }
    coffer_mlyze_frame *frame = &session->frame_list[session->frame_count];
    coffer_status status = make_frame(frame, session, address);
    if (status)
        return status;
    if (!record_map_put(&session->frames, address, session->frame_count))
        return no_memory(&session->err);
    session->frame_count++;
    *out = frame;
    return COFFER_OK;
}

coffer_status record_session_stack(uint64_t *id, record_session *session, uint64_t hash,
                                   const uint64_t *frames, size_t count)
{
    uint64_t key = hash ? hash : 1, stack = COFFER_MLYZE_NO_STACK;
    const uint64_t *known = record_map_find(&session->stacks, key);
    if (known) {
        *id = *known;
        return COFFER_OK;
    }
    size_t most = sizeof session->last_frames / sizeof session->last_frames[0], common = 0;
    count = count < most ? count : most;
    while (common < count && common < session->last_count &&
           session->last_frames[common] == frames[count - 1 - common])
        common++;
    if (common > 0)
        stack = session->last_ids[common - 1];
    session->last_count = common;
    for (size_t i = common; i < count; i++) {
        const coffer_mlyze_frame *frame = NULL;
        coffer_status status = frame_of(&frame, session, frames[count - 1 - i]);
        if (!status)
            status = coffer_mlyze_writer_add_call(&stack, session->writer, stack, frame, &session->err);
        if (status)
            return status;
        session->last_frames[i] = frames[count - 1 - i];
        session->last_ids[i] = stack;
        session->last_count = i + 1;
    }
    if (count == 0) {
        coffer_status status = coffer_mlyze_writer_add_stack(&stack, session->writer, NULL, 0, &session->err);
        if (status)
            return status;
    }
    if (!record_map_put(&session->stacks, key, stack))
        return no_memory(&session->err);
    *id = stack;
    return COFFER_OK;
}

/* ---- Events ---- */

static coffer_status put_batch(record_session *session)
{
    record_batch *batch = &session->batch;
    const coffer_mlyze_events events = { .count = batch->count,
                                         .time = batch->time,
                                         .address = batch->address,
                                         .size = batch->size,
                                         .id = batch->id,
                                         .thread = batch->thread,
                                         .type = batch->type };
    batch->count = 0;
    return events.count > 0 && session->writer
               ? coffer_mlyze_writer_put_events(session->writer, &events, &session->err)
               : COFFER_OK;
}

coffer_status record_session_put(record_session *session, const record_event *event)
{
    record_batch *batch = &session->batch;
    size_t at = batch->count++;
    batch->time[at] = event->time;
    batch->address[at] = event->address;
    batch->size[at] = event->size;
    batch->id[at] = event->id;
    batch->thread[at] = event->thread;
    batch->type[at] = event->type;
    session->events++;
    session->last_us = event->time;
    return batch->count == RECORD_BATCH ? put_batch(session) : COFFER_OK;
}

coffer_status record_session_marker(record_session *session, uint64_t time, const char *text, size_t len)
{
    uint64_t id = 0;
    char *name = coffer__strndup(text, len);
    if (!name)
        return no_memory(&session->err);
    coffer_status status = coffer_mlyze_writer_add_function(&id, session->writer, name, &session->err);
    coffer__free(name);
    const record_event event = { .time = time, .id = id, .type = COFFER_MLYZE_MARKER };
    return status ? status : record_session_put(session, &event);
}

coffer_status record_session_collection(record_session *session, uint64_t time, uint64_t objects,
                                        uint64_t bytes)
{
    const record_event event = { .time = time, .size = bytes, .id = objects, .type = COFFER_MLYZE_GC };
    return record_session_put(session, &event);
}

coffer_status record_session_thread(record_session *session, uint16_t thread, const char *name)
{
    uint64_t id = 0;
    coffer_status status = coffer_mlyze_writer_add_function(&id, session->writer, name, &session->err);
    const record_event event = {
        .time = session->last_us, .id = id, .thread = thread, .type = COFFER_MLYZE_THREAD
    };
    return status ? status : record_session_put(session, &event);
}

coffer_status record_session_rss(record_session *session, uint64_t bytes)
{
    const record_event event = { .time = session->last_us, .size = bytes, .type = COFFER_MLYZE_RSS };
    return record_session_put(session, &event);
}

coffer_status record_session_flush(record_session *session)
{
    if (!session->writer || session->flushed_events == session->events)
        return COFFER_OK;
    session->flushed_events = session->events;
    coffer_status status = put_batch(session);
    return status ? status : coffer_mlyze_writer_flush(session->writer, false, &session->err);
}

coffer_status record_session_finish(record_session *session, const record_options *options)
{
    coffer_mlyze_writer *writer = session->writer;
    coffer_status status = session->err.status ? session->err.status : put_batch(session);
    if (!writer)
        return status;
    session->writer = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status committed = coffer_mlyze_writer_commit(writer, &err);
    if (!status && committed)
        session->err = err;
    status = status ? status : committed;
    session->committed = !committed;
    if (status || !options->symbols)
        return status;
    char *extra = record_metadata(session, true, options->sample_bytes);
    status = extra ? record_symbolize(session, extra, &session->err) : no_memory(&session->err);
    coffer__free(extra);
    return status;
}
