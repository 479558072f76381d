/* Shared by the benchmarks: a clock, the best and the median of several runs, and a table of results. */
#ifndef COFFER_BENCH_H
#define COFFER_BENCH_H

#include "base/json_write.h"
#include "coffer/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROWS 256

typedef struct bench_row {
    char name[80];
    double median, best;
    char unit[24];
    double goal; /* 0 = none */
    bool goal_is_maximum;
    char note[80];
} bench_row;

typedef struct bench_table {
    bench_row rows[BENCH_ROWS];
    size_t count;
} bench_table;

/* CLOCK_PROCESS_CPUTIME_ID where other programs are not to count. */
static clockid_t bench_clock = CLOCK_MONOTONIC;

static inline double bench_now(void)
{
    struct timespec now;
    clock_gettime(bench_clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Ends the program: a benchmark of something that fails says nothing. */
static inline void bench_must(coffer_status status, const coffer_error *err, const char *what)
{
    if (status == COFFER_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(3);
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bench_time {
    double median, best; /* seconds */
} bench_time;

/* Runs work once to warm up and `runs` (at most 99) times to measure. */
static inline bench_time bench_measure(void (*work)(void *context), void *context, unsigned runs)
{
    double seconds[99];
    work(context);
    for (unsigned i = 0; i < runs; i++) {
        double start = bench_now();
        work(context);
        seconds[i] = bench_now() - start;
    }
    qsort(seconds, runs, sizeof seconds[0], bench_compare);
    return (bench_time){ seconds[runs / 2], seconds[0] };
}

static inline bench_row *bench_add(bench_table *table, const char *name, double median, double best,
                                   const char *unit)
{
    if (table->count == BENCH_ROWS) {
        fprintf(stderr, "no room for the row \"%s\"\n", name);
        exit(3);
    }
    bench_row *row = &table->rows[table->count++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    row->median = median;
    row->best = best;
    return row;
}

/* A row of work per second: the less time, the better. */
static inline bench_row *bench_add_rate(bench_table *table, const char *name, double amount, bench_time time,
                                        const char *unit)
{
    return bench_add(table, name, amount / time.median, amount / time.best, unit);
}

static inline bool bench_met(const bench_row *row)
{
    return row->goal_is_maximum ? row->median <= row->goal : row->median >= row->goal;
}

static inline void bench_print(const bench_table *table)
{
    printf("%-60s %12s %12s  %-14s %s\n", "", "median", "best", "", "goal");
    for (size_t i = 0; i < table->count; i++) {
        const bench_row *row = &table->rows[i];
        printf("%-60s %12.4g %12.4g  %-14s ", row->name, row->median, row->best, row->unit);
        if (row->goal > 0)
            printf("%s %.4g: %s", row->goal_is_maximum ? "<=" : ">=", row->goal,
                   bench_met(row) ? "met" : "MISSED");
        printf("%s%s\n", row->goal > 0 && row->note[0] ? ", " : "", row->note);
    }
}

static inline void bench_print_json(const bench_table *table)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &out, 2);
    coffer__json_open_array(&writer);
    for (size_t i = 0; i < table->count; i++) {
        const bench_row *row = &table->rows[i];
        coffer__json_open_object(&writer);
        coffer__json_key(&writer, "name");
        coffer__json_string(&writer, row->name);
        coffer__json_key(&writer, "median");
        coffer__json_write_f64(&writer, row->median);
        coffer__json_key(&writer, "best");
        coffer__json_write_f64(&writer, row->best);
        coffer__json_key(&writer, "unit");
        coffer__json_string(&writer, row->unit);
        if (row->goal > 0) {
            coffer__json_key(&writer, row->goal_is_maximum ? "at_most" : "at_least");
            coffer__json_write_f64(&writer, row->goal);
            coffer__json_key(&writer, "met");
            coffer__json_write_bool(&writer, bench_met(row));
        }
        if (row->note[0]) {
            coffer__json_key(&writer, "note");
            coffer__json_string(&writer, row->note);
        }
        coffer__json_close_object(&writer);
    }
    coffer__json_close_array(&writer);
    puts(coffer__buffer_text(&out));
    coffer__buffer_free(&out);
}

#endif
