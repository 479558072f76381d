/* Training sets for the benchmarks, and the peers that are measured by Python. */
#ifndef COFFER_BENCH_MLDF_DATA_H
#define COFFER_BENCH_MLDF_DATA_H

#include "base/json.h"
#include "bench.h"
#include "coffer/coffer.h"

#include <unistd.h>

static inline uint64_t data_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* `count` samples of a payload of `size` bytes and a number. */
static inline void data_write_set(const char *path, uint64_t count, size_t size)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_field fields[2] = { COFFER_MLDF_FIELD_INIT, COFFER_MLDF_FIELD_INIT };
    const coffer_mldf_writer_opts opts = { .struct_size = sizeof opts, .overwrite = true };
    coffer_mldf_writer *writer = NULL;
    uint8_t *bytes = malloc(size + 8);
    uint64_t random = 1;
    if (!bytes)
        exit(3);
    fields[0].name = "data";
    fields[0].type = COFFER_MLDF_BYTES;
    fields[1].name = "label";
    fields[1].type = COFFER_MLDF_INT;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)data_random(&random);
    bench_must(coffer_mldf_writer_create(&writer, path, fields, 2, &opts, &err), &err, path);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(bytes, &i, 8);
        bench_must(coffer_mldf_writer_set_bytes(writer, 0, bytes, size, NULL, &err), &err, path);
        bench_must(coffer_mldf_writer_set_int(writer, 1, (int64_t)(i % 1000), &err), &err, path);
        bench_must(coffer_mldf_writer_end_sample(writer, &err), &err, path);
    }
    bench_must(coffer_mldf_writer_commit(writer, &err), &err, path);
    free(bytes);
}

/* `count` samples of numbers alone. */
static inline void data_write_scalars(const char *path, uint64_t count, size_t field_count)
{
    static const char *const names[] = { "label", "weight", "group", "index" };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_field fields[4];
    const coffer_mldf_writer_opts opts = { .struct_size = sizeof opts, .overwrite = true };
    coffer_mldf_writer *writer = NULL;
    for (size_t i = 0; i < field_count; i++) {
        fields[i] = (coffer_mldf_field)COFFER_MLDF_FIELD_INIT;
        fields[i].name = names[i];
        fields[i].type = COFFER_MLDF_INT;
    }
    bench_must(coffer_mldf_writer_create(&writer, path, fields, field_count, &opts, &err), &err, path);
    for (uint64_t i = 0; i < count; i++) {
        for (size_t j = 0; j < field_count; j++)
            bench_must(coffer_mldf_writer_set_int(writer, j, (int64_t)(i * (j + 1) % 1000), &err), &err,
                       path);
        bench_must(coffer_mldf_writer_end_sample(writer, &err), &err, path);
    }
    bench_must(coffer_mldf_writer_commit(writer, &err), &err, path);
}

typedef struct data_set {
    coffer_source *src;
    coffer_mldf *set;
} data_set;

static inline data_set data_open(const char *path, coffer_access access)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    data_set opened = { NULL, NULL };
    opts.access = access;
    bench_must(coffer_source_open(&opened.src, path, &opts, &err), &err, path);
    bench_must(coffer_mldf_open(&opened.set, opened.src, NULL, &err), &err, path);
    return opened;
}

static inline void data_close(data_set *opened)
{
    coffer_mldf_close(opened->set);
    coffer_source_close(opened->src);
}

/* ---- Peers of Python ---- */

/* Adds the row of one line {"peer", "version", "task", "seconds": […]} or {…, "missing"} when it is of the
 * task. amount : work of a run, in the row's unit. ours : the same rate of ours. */
static inline void data_add_peer(bench_table *table, const coffer__json_value *line, const char *task,
                                 double amount, const char *unit, double ours)
{
    const coffer__json_value *of = coffer__json_find(line, "task"), *peer = coffer__json_find(line, "peer");
    const coffer__json_value *version = coffer__json_find(line, "version");
    const coffer__json_value *missing = coffer__json_find(line, "missing");
    const coffer__json_value *seconds = coffer__json_find(line, "seconds");
    double times[99];
    size_t count = 0;
    char name[80];
    if (!of || !peer || strcmp(of->as.string, task) != 0)
        return;
    snprintf(name, sizeof name, "  %s %s", peer->as.string, version ? version->as.string : "");
    for (const coffer__json_value *at = coffer__json_first(seconds); at && count < 99;
         at = coffer__json_next(seconds, at))
        count += coffer__json_f64(&times[count], at);
    if (count > 0)
        qsort(times, count, sizeof times[0], bench_compare);
    bench_row *row = bench_add(table, name, count ? amount / times[count / 2] : 0,
                               count ? amount / times[0] : 0, count ? unit : "");
    if (count > 0)
        snprintf(row->note, sizeof row->note, "ours is %.1f times as fast", ours / row->median);
    else
        snprintf(row->note, sizeof row->note, "%s", missing ? missing->as.string : "gave nothing");
}

/* The lines of bench/SCRIPT, all tasks; NULL when it cannot be run. freed by the caller. */
static inline char *data_run_peers(const char *script, const char *arguments)
{
    const char *python = getenv("COFFER_BENCH_PYTHON");
    char folder[4096], command[16384];
    char *text = calloc(1, (size_t)1 << 20);
    size_t len = 0;
    snprintf(folder, sizeof folder, "%s", __FILE__);
    *strrchr(folder, '/') = 0;
    snprintf(command, sizeof command, "'%s' '%s/%s' %s", python ? python : "python3", folder, script,
             arguments);
    FILE *lines = popen(command, "r");
    if (lines && text)
        len = fread(text, 1, ((size_t)1 << 20) - 1, lines);
    if (!lines || pclose(lines) != 0)
        fprintf(stderr, "the peers did not run to their end: %s\n", command);
    (void)len;
    return text;
}

static inline void data_add_peers(bench_table *table, const char *lines, const char *task, double amount,
                                  const char *unit, double ours)
{
    while (lines && *lines) {
        size_t len = strcspn(lines, "\n");
        coffer__json *json = NULL;
        if (coffer__json_parse(&json, lines, len, 0, NULL, NULL) == COFFER_OK)
            data_add_peer(table, coffer__json_root(json), task, amount, unit, ours);
        coffer__json_free(json);
        lines += len + (lines[len] == '\n');
    }
}

#endif
