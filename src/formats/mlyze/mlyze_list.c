#include "formats/mlyze/mlyze_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

typedef struct lister {
    const coffer_mlyze *trace;
    coffer_node *entries;
    const char *glob; /* or NULL */
} lister;

static bool matches(const lister *list, const char *name, size_t len)
{
    return !list->glob || coffer__glob_match(list->glob, name ? name : "", name ? len : 0);
}

static void add_name(coffer_node *entry, const char *key, const char *name, size_t len)
{
    if (name)
        coffer_node_add_text_len(entry, key, name, len);
    else
        coffer_node_add_null(entry, key);
}

/* ---- From the metadata ---- */

/* A stack is named after its innermost frame. */
static coffer_status list_stacks(const lister *list, coffer_error *err)
{
    const coffer__mlyze_metadata *metadata = &list->trace->metadata;
    (void)err;
    for (size_t i = 0; i < metadata->stacks.ids.count; i++) {
        size_t depth, function_len = 0, file_len = 0;
        const coffer_mlyze_frame *frame = coffer_mlyze_frames(&depth, list->trace, i);
        const char *function = NULL, *file = NULL;
        coffer_node *entry;
        if (depth > 0) {
            function = coffer__mlyze_name(&metadata->functions, frame->func_id, &function_len);
            file = coffer__mlyze_name(&metadata->files, frame->file_id, &file_len);
        }
        if (!matches(list, function, function_len))
            continue;
        entry = coffer_node_add_map(list->entries, NULL);
        coffer_node_add_u64(entry, "id", metadata->stacks.ids.items[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "depth", depth, COFFER_UNIT_NONE);
        add_name(entry, "function", function, function_len);
        add_name(entry, "file", file, file_len);
        coffer_node_add_u64(entry, "line", depth > 0 ? frame->line : 0, COFFER_UNIT_NONE);
    }
    return COFFER_OK;
}

static void list_names(const lister *list, const coffer__mlyze_names *names)
{
    for (size_t i = 0; i < names->ids.count; i++) {
        const coffer__json_value *name = names->values[i];
        coffer_node *entry;
        if (!matches(list, name->as.string, name->string_len))
            continue;
        entry = coffer_node_add_map(list->entries, NULL);
        coffer_node_add_u64(entry, "id", names->ids.items[i], COFFER_UNIT_NONE);
        coffer_node_add_text_len(entry, "name", name->as.string, name->string_len);
    }
}

static coffer_status list_files(const lister *list, coffer_error *err)
{
    (void)err;
    list_names(list, &list->trace->metadata.files);
    return COFFER_OK;
}

static coffer_status list_functions(const lister *list, coffer_error *err)
{
    (void)err;
    list_names(list, &list->trace->metadata.functions);
    return COFFER_OK;
}

/* ---- From the events ---- */

static coffer_status list_blocks(const lister *list, coffer_error *err)
{
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, list->trace, err);
    for (size_t i = 0; !status && i < count; i++) {
        coffer__mlyze_block block = coffer__mlyze_block_at(list->trace, i);
        coffer_node *entry = coffer_node_add_map(list->entries, NULL);
        coffer_node_add_u64(entry, "block", i, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "offset", block.offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "first_event", block.first_event, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "events", block.event_count, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "time_us", block.time, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(entry, "raw_bytes", block.raw_size, COFFER_UNIT_BYTES);
        coffer_node_add_u64(entry, "stored_bytes", block.stored_size, COFFER_UNIT_BYTES);
    }
    return status;
}

/* Calls `visit` with the events of every block that can be read. */
static coffer_status each_block(const coffer_mlyze *trace,
                                void (*visit)(void *context, const coffer_mlyze_events *events),
                                void *context, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, trace, err);
    for (size_t i = 0; !status && i < count; i++) {
        status = coffer_mlyze_read_block(&events, trace, i, err);
        if (!status)
            visit(context, &events);
        else if (coffer__is_about_file(status))
            status = COFFER_OK;
    }
    coffer_mlyze_events_free(&events);
    return status;
}

static void visit_markers(void *context, const coffer_mlyze_events *events)
{
    const lister *list = context;
    for (size_t i = 0; i < events->count; i++) {
        size_t len = 0;
        const char *name;
        coffer_node *entry;
        if (events->type[i] != COFFER_MLYZE_MARKER)
            continue;
        name = coffer__mlyze_name(&list->trace->metadata.functions, events->id[i], &len);
        if (!matches(list, name, len))
            continue;
        entry = coffer_node_add_map(list->entries, NULL);
        coffer_node_add_u64(entry, "event", events->first + i, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "time_us", events->time[i], COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(entry, "id", events->id[i], COFFER_UNIT_NONE);
        add_name(entry, "name", name, len);
    }
}

static coffer_status list_markers(const lister *list, coffer_error *err)
{
    lister copy = *list;
    return each_block(list->trace, visit_markers, &copy, err);
}

typedef struct thread_tally {
    uint64_t allocs, bytes, name;
    bool seen, named;
} thread_tally;

static void visit_threads(void *context, const coffer_mlyze_events *events)
{
    thread_tally *tallies = context;
    for (size_t i = 0; i < events->count; i++) {
        thread_tally *tally = &tallies[events->thread[i]];
        if (events->type[i] == COFFER_MLYZE_ALLOC) {
            tally->seen = true;
            tally->allocs++;
            tally->bytes += events->size[i];
        } else if (events->type[i] == COFFER_MLYZE_THREAD) {
            tally->seen = tally->named = true;
            tally->name = events->id[i];
        }
    }
}

/* A thread's last THREAD event names it; else the metadata may. */
static void list_thread(const lister *list, uint16_t thread, const thread_tally *tally)
{
    const coffer__mlyze_metadata *metadata = &list->trace->metadata;
    size_t len = 0;
    const char *name = tally->named ? coffer__mlyze_name(&metadata->functions, tally->name, &len) : NULL;
    coffer_node *entry;
    if (!name)
        name = coffer__mlyze_name(&metadata->threads, thread, &len);
    if ((!tally->seen && !name) || !matches(list, name, len))
        return;
    entry = coffer_node_add_map(list->entries, NULL);
    coffer_node_add_u64(entry, "thread", thread, COFFER_UNIT_NONE);
    add_name(entry, "name", name, len);
    coffer_node_add_u64(entry, "allocs", tally->allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(entry, "allocated_bytes", tally->bytes, COFFER_UNIT_BYTES);
}

static coffer_status list_threads(const lister *list, coffer_error *err)
{
    thread_tally *tallies = coffer__calloc(UINT16_MAX + 1, sizeof *tallies);
    coffer_status status;
    if (!tallies)
        return coffer__fail_no_memory(err, (UINT16_MAX + 1) * sizeof *tallies);
    status = each_block(list->trace, visit_threads, tallies, err);
    for (uint32_t i = 0; !status && i <= UINT16_MAX; i++)
        list_thread(list, (uint16_t)i, &tallies[i]);
    coffer__free(tallies);
    return status;
}

/* ---- Kinds of lists ---- */

static const struct list_kind {
    const char *name;
    coffer_status (*run)(const lister *list, coffer_error *err);
} kinds[] = {
    { "stacks", list_stacks },   { "files", list_files },     { "functions", list_functions },
    { "threads", list_threads }, { "markers", list_markers }, { "blocks", list_blocks },
};

coffer_status coffer__mlyze_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    const char *what = opts->what ? opts->what : kinds[0].name;
    const struct list_kind *kind = NULL;
    lister list = { .glob = opts->glob };
    coffer_mlyze *trace = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, what) == 0)
            kind = &kinds[i];
    }
    if (!kind)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a trace lists stacks, files, functions, threads, markers or blocks, not \"%s\"",
                            what);
    coffer_status status = coffer__mlyze_open_beside_index(&trace, src, opts->limits, err);
    if (status)
        return status;
    list.trace = trace;
    list.entries = coffer_node_add_list(out, "entries");
    status = kind->run(&list, err);
    coffer_mlyze_close(trace);
    return status ? status : coffer_node_status(out, err);
}
