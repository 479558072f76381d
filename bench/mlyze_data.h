/* Traces for the benchmark: a program whose allocator gives freed addresses out again, with short and long
 * lives, many stacks of which few do most of the work, and some threads. */
#ifndef COFFER_BENCH_MLYZE_DATA_H
#define COFFER_BENCH_MLYZE_DATA_H

#include "bench.h"
#include "coffer/mlyze.h"

#define DATA_STACKS 3000
#define DATA_FUNCTIONS 500
#define DATA_DEPTH 16
#define DATA_CLASSES 64 /* of sizes, 16 bytes apart */
#define DATA_BATCH 65536

typedef struct data_block {
    uint64_t address;
    uint32_t size_class;
} data_block;

typedef struct data_program {
    uint64_t random, time, next_address;
    data_block *live;
    size_t live_count, live_target;
    uint64_t *freed[DATA_CLASSES];
    size_t freed_count[DATA_CLASSES], freed_capacity[DATA_CLASSES];
    uint16_t thread;
    coffer_mlyze_events events;
} data_program;

static inline uint64_t data_random(data_program *program)
{
    program->random ^= program->random << 13;
    program->random ^= program->random >> 7;
    program->random ^= program->random << 17;
    return program->random;
}

static inline void *data_must(void *memory)
{
    if (!memory) {
        fputs("no memory for the benchmark's data\n", stderr);
        exit(3);
    }
    return memory;
}

static inline void data_program_init(data_program *program, size_t live_target)
{
    memset(program, 0, sizeof *program);
    program->random = UINT64_C(88172645463325252);
    program->next_address = UINT64_C(0x55d0c0000010);
    program->live_target = live_target;
    program->live = data_must(malloc((live_target + DATA_BATCH) * sizeof *program->live));
    program->events.time = data_must(calloc(DATA_BATCH, sizeof *program->events.time));
    program->events.address = data_must(calloc(DATA_BATCH, sizeof *program->events.address));
    program->events.size = data_must(calloc(DATA_BATCH, sizeof *program->events.size));
    program->events.id = data_must(calloc(DATA_BATCH, sizeof *program->events.id));
    program->events.thread = data_must(calloc(DATA_BATCH, sizeof *program->events.thread));
    program->events.type = data_must(calloc(DATA_BATCH, sizeof *program->events.type));
}

static inline void data_program_free(data_program *program)
{
    free(program->live);
    for (size_t i = 0; i < DATA_CLASSES; i++)
        free(program->freed[i]);
    free(program->events.time);
    free(program->events.address);
    free(program->events.size);
    free(program->events.id);
    free(program->events.thread);
    free(program->events.type);
}

static inline uint64_t data_take_address(data_program *program, uint32_t size_class)
{
    if (program->freed_count[size_class] > 0)
        return program->freed[size_class][--program->freed_count[size_class]];
    uint64_t address = program->next_address;
    program->next_address += 16 * ((uint64_t)size_class + 2);
    return address;
}

static inline void data_give_address(data_program *program, const data_block *block)
{
    size_t *count = &program->freed_count[block->size_class];
    size_t *capacity = &program->freed_capacity[block->size_class];
    if (*count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        program->freed[block->size_class] =
            data_must(realloc(program->freed[block->size_class], *capacity * sizeof *program->freed[0]));
    }
    program->freed[block->size_class][(*count)++] = block->address;
}

/* A number below n, small ones more often than large ones. */
static inline uint64_t data_skewed(data_program *program, uint64_t n)
{
    uint64_t random = data_random(program);
    uint64_t scale = random >> 60;
    uint64_t below = n >> (scale > 10 ? 0 : 10 - scale);
    return (random & UINT32_MAX) % (below ? below : 1);
}

static inline void data_alloc(data_program *program, size_t i)
{
    data_block block = { .size_class = (uint32_t)data_skewed(program, DATA_CLASSES) };
    uint64_t random = data_random(program);
    block.address = data_take_address(program, block.size_class);
    program->live[program->live_count++] = block;
    program->events.type[i] = COFFER_MLYZE_ALLOC;
    program->events.address[i] = block.address;
    program->events.size[i] = 16 * (uint64_t)block.size_class + 1 + random % 16;
    program->events.id[i] = data_skewed(program, DATA_STACKS);
    program->events.thread[i] = program->thread;
}

/* Most blocks die young: one of the last few, else any. */
static inline void data_free(data_program *program, size_t i)
{
    uint64_t random = data_random(program);
    size_t recent = program->live_count < 12 ? program->live_count : 12;
    size_t which = random % 4 > 0 ? program->live_count - 1 - (random >> 8) % recent
                                  : (random >> 8) % program->live_count;
    data_block block = program->live[which];
    program->live[which] = program->live[--program->live_count];
    data_give_address(program, &block);
    program->events.type[i] = COFFER_MLYZE_FREE;
    program->events.address[i] = block.address;
    program->events.size[i] = program->events.id[i] = program->events.thread[i] = 0;
}

/* The next events. */
static inline void data_run(data_program *program, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t random = data_random(program);
        unsigned allocs_in_16 = program->live_count < program->live_target ? 9 : 7;
        if (random % 512 == 0)
            program->thread = (uint16_t)(random >> 40) % 4;
        program->time += (random >> 10 & 7) == 0;
        program->events.time[i] = program->time;
        if (program->live_count == 0 || (random >> 20 & 15) < allocs_in_16)
            data_alloc(program, i);
        else
            data_free(program, i);
    }
    program->events.count = count;
}

static inline void data_write_stacks(coffer_mlyze_writer *writer)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t functions[DATA_FUNCTIONS], file, stack, random = 1;
    char name[64];
    bench_must(coffer_mlyze_writer_add_file(&file, writer, "src/program.c", &err), &err, "file");
    for (size_t i = 0; i < DATA_FUNCTIONS; i++) {
        snprintf(name, sizeof name, "function_%zu", i);
        bench_must(coffer_mlyze_writer_add_function(&functions[i], writer, name, &err), &err, name);
    }
    for (uint64_t i = 0; i < DATA_STACKS; i++) {
        coffer_mlyze_frame frames[DATA_DEPTH];
        for (size_t k = 0; k < DATA_DEPTH; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            frames[k] = (coffer_mlyze_frame){ file, k + 1, functions[(random >> 33) % DATA_FUNCTIONS] };
        }
        frames[0].line = i;
        stack = i;
        bench_must(coffer_mlyze_writer_add_stack_id(writer, stack, frames, DATA_DEPTH, &err), &err, "stack");
    }
}

static inline void data_write_trace(const char *path, uint64_t events, size_t live_target, bool plain)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    coffer_mlyze_writer *writer = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    data_program program;
    opts.plain = plain;
    bench_must(coffer_mlyze_writer_create(&writer, path, &opts, &err), &err, path);
    data_write_stacks(writer);
    data_program_init(&program, live_target);
    while (events > 0) {
        size_t count = events < DATA_BATCH ? (size_t)events : DATA_BATCH;
        data_run(&program, count);
        bench_must(coffer_mlyze_writer_put_events(writer, &program.events, &err), &err, path);
        events -= count;
    }
    data_program_free(&program);
    bench_must(coffer_mlyze_writer_commit(writer, &err), &err, path);
}

#endif
