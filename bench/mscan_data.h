/* Scans for the benchmark: records in several orders, and files of them. */
#ifndef COFFER_BENCH_MSCAN_DATA_H
#define COFFER_BENCH_MSCAN_DATA_H

#include "bench.h"
#include "coffer/mscan.h"
#include "formats/mscan/mscan_private.h"

#define DATA_PARAMS 200
#define DATA_BLOCKS 8
#define DATA_BATCH 65536

typedef enum data_pattern {
    DATA_RUNS,       /* token by token, parameter by parameter, its blocks in a row: what scanners write */
    DATA_ROUND,      /* the parameters in turn */
    DATA_RANDOM,     /* 200 parameters in no order */
    DATA_ONE,        /* a single parameter */
    DATA_RANDOM_ALL, /* 65536 parameters in no order */
    DATA_PATTERNS
} data_pattern;

static const char *const data_pattern_names[] = { "runs of 8, 200 params", "round robin, 200 params",
                                                  "random, 200 params", "one param", "random, 65536 params" };

static inline uint64_t data_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline coffer_mscan_record data_record(data_pattern pattern, uint64_t i)
{
    uint64_t random = data_mix(i + 1);
    uint64_t param = i / DATA_BLOCKS % DATA_PARAMS;
    if (pattern == DATA_ROUND)
        param = i % DATA_PARAMS;
    else if (pattern == DATA_RANDOM)
        param = (random >> 32) % DATA_PARAMS;
    else if (pattern == DATA_ONE)
        param = 7;
    else if (pattern == DATA_RANDOM_ALL)
        param = random >> 32 & UINT16_MAX;
    return (coffer_mscan_record){
        .token_idx = (uint32_t)(i / (DATA_BLOCKS * DATA_PARAMS)),
        .param_id = (uint16_t)param,
        .block_idx = (uint16_t)(i % DATA_BLOCKS),
        .activation = (uint16_t)random,
        .grad_norm = (uint16_t)(random >> 16),
    };
}

static inline uint64_t data_tokens(uint64_t records)
{
    return records / (DATA_BLOCKS * DATA_PARAMS) + 1;
}

/* Header and metadata, with the records at an offset of that parity. */
static inline void data_head(coffer__buffer *out, data_pattern pattern, uint64_t records, bool odd)
{
    unsigned params = pattern == DATA_RANDOM_ALL ? 65536 : DATA_PARAMS;
    coffer__buffer_fill(out, 0, COFFER__MSCAN_HEADER_SIZE);
    coffer__buffer_printf(out,
                          "{\"format_version\": \"1.1\", \"model_name\": \"bench\", \"sequences\": "
                          "[{\"sequence_id\": 0, \"num_tokens\": %llu}], \"id_to_param_name_map\": {",
                          (unsigned long long)data_tokens(records));
    for (unsigned i = 0; i < params; i++)
        coffer__buffer_printf(out, "%s\"%u\": \"model.layers.%u.p%u\"", i ? ", " : "", i, i / 8, i % 8);
    coffer__buffer_append(out, "}}", 2);
    do
        coffer__buffer_fill(out, ' ', 1);
    while (out->len % 64 != (odd ? 37 : 0));
    coffer__mscan_write_header(out->data, (uint32_t)out->len, (uint32_t)records);
}

static inline void data_append_records(coffer__buffer *out, data_pattern pattern, uint64_t first,
                                       uint64_t count)
{
    uint8_t *at = coffer__buffer_extend(out, (size_t)count * COFFER__MSCAN_RECORD_SIZE);
    if (!at) {
        fputs("out of memory\n", stderr);
        exit(3);
    }
    for (uint64_t i = 0; i < count; i++) {
        coffer_mscan_record record = data_record(pattern, first + i);
        coffer__mscan_store(at + i * COFFER__MSCAN_RECORD_SIZE, &record);
    }
}

/* A file with the records at an odd offset; gives that offset. */
static inline uint64_t data_write_odd(const char *path, uint64_t records)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    FILE *file = fopen(path, "wb");
    bool good = file != NULL;
    uint64_t offset;
    data_head(&out, DATA_RUNS, records, true);
    offset = out.len;
    for (uint64_t done = 0; good && done < records; done += DATA_BATCH) {
        data_append_records(&out, DATA_RUNS, done, records - done < DATA_BATCH ? records - done : DATA_BATCH);
        good = fwrite(out.data, 1, out.len, file) == out.len;
        out.len = 0;
    }
    if (!good || fclose(file) != 0) {
        perror(path);
        exit(3);
    }
    coffer__buffer_free(&out);
    return offset;
}

/* Adds a sequence of that many records. */
static inline void data_add_sequence(coffer_mscan_writer *writer, uint64_t records)
{
    static coffer_mscan_record batch[DATA_BATCH];
    coffer_error err = COFFER_ERROR_INIT;
    bench_must(coffer_mscan_writer_begin_sequence(writer, NULL, &err), &err, "sequence");
    for (uint64_t done = 0; done < records; done += DATA_BATCH) {
        size_t count = records - done < DATA_BATCH ? (size_t)(records - done) : DATA_BATCH;
        for (size_t i = 0; i < count; i++)
            batch[i] = data_record(DATA_RUNS, done + i);
        bench_must(coffer_mscan_writer_put_records(writer, batch, count, &err), &err, "write");
    }
    bench_must(coffer_mscan_writer_end_sequence(writer, data_tokens(records), &err), &err, "end of sequence");
}

/* A file as our writer makes it: aligned, with room to append. */
static inline void data_write_ours(const char *path, uint64_t records)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    char name[64];
    opts.overwrite = true;
    bench_must(coffer_mscan_writer_create(&writer, path, &opts, &err), &err, path);
    for (unsigned i = 0; i < DATA_PARAMS; i++) {
        snprintf(name, sizeof name, "model.layers.%u.p%u", i / 8, i % 8);
        bench_must(coffer_mscan_writer_add_param_id(writer, (uint16_t)i, name, &err), &err, name);
    }
    data_add_sequence(writer, records);
    bench_must(coffer_mscan_writer_commit(writer, &err), &err, path);
}

/* A file with no records and a million names, about 100 bytes each; gives the metadata's size. */
static inline uint64_t data_write_names(const char *path)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    FILE *file = fopen(path, "wb");
    coffer__buffer_fill(&out, 0, COFFER__MSCAN_HEADER_SIZE);
    coffer__buffer_printf(&out, "{\"sequences\": [], \"id_to_param_name_map\": {");
    for (unsigned i = 0; i < 1000000; i++)
        coffer__buffer_printf(&out,
                              "%s\"%u\": \"model.layers.%u.mlp.experts.%u.a_rather_long_name_of_a_projection_"
                              "matrix.quantized.weight\"",
                              i ? ", " : "", i, i / 4096, i % 4096);
    coffer__buffer_append(&out, "}}", 2);
    coffer__mscan_write_header(out.data, (uint32_t)out.len, 0);
    if (!file || fwrite(out.data, 1, out.len, file) != out.len || fclose(file) != 0) {
        perror(path);
        exit(3);
    }
    uint64_t size = out.len;
    coffer__buffer_free(&out);
    return size;
}

#endif
