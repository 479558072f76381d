/* Writes the memory trace of a small training run that leaks, and asks the library what was live at its peak.
 *
 *   cc mlyze_trace.c $(pkg-config --cflags --libs coffer) && ./a.out run.mlyze
 *
 * The run is made up, and always the same: a model is loaded, three epochs train on two threads, each batch
 * needs buffers that come and go, and a cache keeps something of every batch for good. */
#include <coffer/coffer.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void must(coffer_status status, const coffer_error *err)
{
    if (status == COFFER_OK)
        return;
    fprintf(stderr, "%s: %s\n", coffer_status_name(status), err->text);
    exit(1);
}

/* The calls of the program, from main outwards. */
typedef struct program {
    coffer_mlyze_writer *writer;
    uint64_t load, batch, gradient, cache, log_line;
    uint64_t time;
    uint64_t next_address;
} program;

static uint64_t call(program *run, uint64_t caller, const char *function, const char *file, uint64_t line)
{
    coffer_error err;
    coffer_mlyze_frame frame = { .line = line };
    uint64_t stack;
    must(coffer_mlyze_writer_add_file(&frame.file_id, run->writer, file, &err), &err);
    must(coffer_mlyze_writer_add_function(&frame.func_id, run->writer, function, &err), &err);
    must(coffer_mlyze_writer_add_call(&stack, run->writer, caller, &frame, &err), &err);
    return stack;
}

static void learn_calls(program *run)
{
    uint64_t start = call(run, COFFER_MLYZE_NO_STACK, "main", "train.py", 88);
    uint64_t epoch = call(run, start, "train_epoch", "train.py", 52);
    uint64_t step = call(run, epoch, "step", "train.py", 31);
    run->load = call(run, call(run, start, "load_model", "model.py", 14), "read_tensor", "tensors.c", 203);
    run->batch = call(run, call(run, step, "next_batch", "loader.py", 77), "decode", "image.c", 310);
    run->gradient = call(run, call(run, step, "backward", "model.py", 140), "allocate", "tensors.c", 61);
    run->cache = call(run, call(run, step, "remember", "cache.py", 9), "append", "cache.py", 23);
    run->log_line = call(run, epoch, "log", "train.py", 60);
}

static uint64_t take(program *run, uint64_t size, uint64_t stack, uint16_t thread)
{
    coffer_error err;
    uint64_t address = run->next_address;
    run->next_address += (size + 31) / 16 * 16;
    run->time += 7;
    must(coffer_mlyze_writer_put_alloc(run->writer, run->time, address, size, stack, thread, &err), &err);
    return address;
}

static void give_back(program *run, uint64_t address)
{
    coffer_error err;
    run->time += 3;
    must(coffer_mlyze_writer_put_free(run->writer, run->time, address, &err), &err);
}

static void mark(program *run, const char *name)
{
    coffer_error err;
    uint64_t id;
    must(coffer_mlyze_writer_add_function(&id, run->writer, name, &err), &err);
    must(coffer_mlyze_writer_put_marker(run->writer, run->time, id, &err), &err);
}

static void train_batch(program *run, unsigned batch)
{
    coffer_error err;
    uint64_t images = take(run, (384 + batch % 7 * 16) << 10, run->batch, 2);
    uint64_t gradients[6];
    for (unsigned i = 0; i < 6; i++)
        gradients[i] = take(run, (64 + i * 24) << 10, run->gradient, 1);
    for (unsigned i = 0; i < 20; i++)
        give_back(run, take(run, 40 + i * 8, run->log_line, 1));
    take(run, 3000 + batch % 5 * 100, run->cache, 1);
    run->time += 900;
    for (unsigned i = 0; i < 6; i++)
        give_back(run, gradients[i]);
    give_back(run, images);
    if (batch % 40 == 39)
        must(coffer_mlyze_writer_put_gc(run->writer, run->time, 120 + batch % 11, 5200, &err), &err);
}

static void run_program(program *run)
{
    static const char *const epochs[] = { "epoch 1", "epoch 2", "epoch 3" };
    uint64_t weights[8];
    mark(run, "load");
    for (unsigned i = 0; i < 8; i++)
        weights[i] = take(run, (uint64_t)(i + 1) << 18, run->load, 1);
    for (unsigned epoch = 0; epoch < 3; epoch++) {
        mark(run, epochs[epoch]);
        for (unsigned batch = 0; batch < 120; batch++)
            train_batch(run, batch);
    }
    for (unsigned i = 0; i < 8; i++)
        give_back(run, weights[i]);
}

static void write_trace(const char *path)
{
    coffer_error err;
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    program run = { .next_address = 0x7f0000001000 };
    opts.start_time_us = UINT64_C(1767225600000000);
    opts.extra_json = "{\"command\": \"python train.py\", \"threads\": {\"1\": \"main\", \"2\": \"loader\"}}";
    must(coffer_mlyze_writer_create(&run.writer, path, &opts, &err), &err);
    learn_calls(&run);
    run_program(&run);
    must(coffer_mlyze_writer_commit(run.writer, &err), &err);
}

static void print_peak(const coffer_mlyze *trace)
{
    coffer_error err;
    coffer_mlyze_stats *stats;
    must(coffer_mlyze_stats_new(&stats, trace, NULL, &err), &err);
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(stats);
    printf("%" PRIu64 " events, %" PRIu64 " allocations\n", totals->events, totals->allocs);
    printf("peak: %" PRIu64 " bytes, %" PRIu64 " µs after the start\n", totals->peak_bytes,
           totals->peak_time_us);
    for (size_t i = 0; i < coffer_mlyze_stats_stack_count(stats); i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        size_t depth;
        if (row->peak_bytes == 0)
            continue;
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, row->stack);
        printf("%9" PRIu64 " bytes  %s, called by %s\n", row->peak_bytes,
               coffer_mlyze_function_name(trace, frames[0].func_id),
               coffer_mlyze_function_name(trace, frames[1].func_id));
    }
    printf("left at the end: %" PRIu64 " bytes in %" PRIu64 " blocks\n", totals->live_bytes_at_end,
           totals->live_allocs_at_end);
    coffer_mlyze_stats_free(stats);
}

int main(int argc, char **argv)
{
    coffer_error err;
    coffer_source *source;
    coffer_mlyze *trace;
    const char *path = argc > 1 ? argv[1] : "example.mlyze";
    write_trace(path);
    must(coffer_source_open(&source, path, NULL, &err), &err);
    must(coffer_mlyze_open(&trace, source, NULL, &err), &err);
    print_peak(trace);
    coffer_mlyze_close(trace);
    coffer_source_close(source);
    return 0;
}
