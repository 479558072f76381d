/* Makes a trace of what trace_preload.c recorded: mlyze_from_raw RAW OUT.mlyze [LEVEL | plain]. */
#include "base/bytes.h"
#include "bench.h"
#include "coffer/coffer.h"

enum { RECORD = 40, AT_ONCE = 1 << 15 };

typedef struct import {
    coffer_mlyze_writer *writer;
    coffer_mlyze_events events;
    uint64_t start;
} import;

static uint64_t stack_of(import *work, uint64_t caller)
{
    coffer_error err = COFFER_ERROR_INIT;
    char name[32];
    coffer_mlyze_frame frame = { 0 };
    uint64_t id = 0;
    snprintf(name, sizeof name, "0x%llx", (unsigned long long)caller);
    bench_must(coffer_mlyze_writer_add_file(&frame.file_id, work->writer, "", &err), &err, "file");
    bench_must(coffer_mlyze_writer_add_function(&frame.func_id, work->writer, name, &err), &err, name);
    bench_must(coffer_mlyze_writer_add_call(&id, work->writer, COFFER_MLYZE_NO_STACK, &frame, &err), &err,
               name);
    return id;
}

static void take(import *work, const uint8_t *record, size_t at)
{
    uint64_t kind = coffer__load_u64(record + 8);
    work->events.time[at] = coffer__load_u64(record) - work->start;
    work->events.type[at] = kind & 0xff ? COFFER_MLYZE_FREE : COFFER_MLYZE_ALLOC;
    work->events.address[at] = coffer__load_u64(record + 16);
    work->events.size[at] = coffer__load_u64(record + 24);
    work->events.thread[at] = kind & 0xff ? 0 : (uint16_t)(kind >> 8);
    work->events.id[at] = kind & 0xff ? 0 : stack_of(work, coffer__load_u64(record + 32));
}

static void *column(size_t size)
{
    void *memory = malloc(AT_ONCE * size);
    if (!memory)
        exit(3);
    return memory;
}

int main(int argc, char **argv)
{
    static uint8_t records[AT_ONCE * RECORD];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
import work = {.events = COFFER_MLYZE_EVENTS_INIT };
    FILE *raw = argc > 2 ? fopen(argv[1], "rb") : NULL;
    size_t count;
    if (!raw) {
        fputs("usage: mlyze_from_raw RAW OUT.mlyze [LEVEL | plain]\n", stderr);
        return 2;
    }
    opts.plain = argc > 3 && strcmp(argv[3], "plain") == 0;
    opts.level = argc > 3 && !opts.plain ? atoi(argv[3]) : 0;
    work.events.time = column(8);
    work.events.address = column(8);
    work.events.size = column(8);
    work.events.id = column(8);
    work.events.thread = column(2);
    work.events.type = column(1);
    bench_must(coffer_mlyze_writer_create(&work.writer, argv[2], &opts, &err), &err, argv[2]);
    while ((count = fread(records, RECORD, AT_ONCE, raw)) > 0) {
        if (work.start == 0)
            work.start = coffer__load_u64(records);
        for (size_t i = 0; i < count; i++)
            take(&work, records + i * RECORD, i);
        work.events.count = count;
        bench_must(coffer_mlyze_writer_put_events(work.writer, &work.events, &err), &err, argv[2]);
    }
    fclose(raw);
    bench_must(coffer_mlyze_writer_commit(work.writer, &err), &err, argv[2]);
    return 0;
}
