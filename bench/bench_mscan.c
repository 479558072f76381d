/* MSCAN: statistics beside numpy, DuckDB and Polars, opening, checking, appending, heat maps.
 *
 *   bench_mscan [--records N] [--runs N] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "base/work.h"
#include "bench.h"
#include "coffer/coffer.h"
#include "mscan_data.h"

#include <unistd.h>

#define REFERENCE_COPY 12.0 /* GB/s of the machine that the goals were set for: they scale with memory */

typedef struct options {
    uint64_t records;
    unsigned runs;
    bool json;
    const char *folder;
} options;

static char odd_path[4096], ours_path[4096], small_path[4096], names_path[4096], pyramid_path[4096];

static void remove_data(void)
{
    unlink(odd_path);
    unlink(ours_path);
    unlink(small_path);
    unlink(names_path);
    unlink(pyramid_path);
}

/* ---- The limit of the machine ---- */

typedef struct copy {
    uint8_t *from, *to;
    size_t len;
} copy;

static void copy_memory(void *context)
{
    copy *work = context;
    memcpy(work->to, work->from, work->len);
}

static double bench_copy(bench_table *table, unsigned runs)
{
    copy work = { .len = (size_t)512 << 20 };
    work.from = malloc(work.len);
    work.to = malloc(work.len);
    if (!work.from || !work.to)
        exit(3);
    memset(work.from, 1, work.len);
    bench_time time = bench_measure(copy_memory, &work, runs);
    bench_add_rate(table, "memory copy", (double)work.len / 1e9, time, "GB/s");
    free(work.from);
    free(work.to);
    return (double)work.len / 1e9 / time.median;
}

/* ---- Opening ---- */

typedef struct opened {
    coffer_source *source;
    coffer_mscan *scan;
} opened;

static opened open_scan(const char *path, coffer_access access)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opened result;
    opts.access = access;
    bench_must(coffer_source_open(&result.source, path, &opts, &err), &err, path);
    bench_must(coffer_mscan_open(&result.scan, result.source, NULL, &err), &err, path);
    return result;
}

static void close_scan(opened *done)
{
    coffer_mscan_close(done->scan);
    coffer_source_close(done->source);
}

static void open_and_close(void *context)
{
    opened scan = open_scan(context, COFFER_ACCESS_AUTO);
    close_scan(&scan);
}

static void bench_open(bench_table *table, const options *opts)
{
    char name[80];
    bench_time time = bench_measure(open_and_close, odd_path, 21);
    snprintf(name, sizeof name, "open, %.0f M records", (double)opts->records / 1e6);
    bench_row *row = bench_add(table, name, time.median * 1e3, time.best * 1e3, "ms");
    row->goal = 1;
    row->goal_is_maximum = true;

    double megabytes = (double)data_write_names(names_path) / 1e6;
    time = bench_measure(open_and_close, names_path, opts->runs);
    snprintf(name, sizeof name, "open, a million params, %.0f MB of metadata", megabytes);
    row = bench_add(table, name, time.median, time.best, "s");
    row->goal = 1;
    row->goal_is_maximum = true;
    unlink(names_path);
}

/* ---- Statistics ---- */

typedef struct stats_work {
    const coffer_mscan *scan;
    const char *path; /* when set, the file is opened and mapped again */
    coffer_mscan_by by;
    uint32_t threads;
} stats_work;

static void run_stats(void *context)
{
    stats_work *work = context;
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opened fresh = { NULL, NULL };
    query.by = work->by;
    query.threads = work->threads;
    if (work->path)
        fresh = open_scan(work->path, COFFER_ACCESS_AUTO);
    bench_must(coffer_mscan_stats_new(&stats, work->path ? fresh.scan : work->scan, &query, &err), &err,
               "stats");
    coffer_mscan_stats_free(stats);
    if (work->path)
        close_scan(&fresh);
}

/* Gives the rates on one and two threads, in M records/s. */
static void bench_stats(double rates[2], bench_table *table, const options *opts, double copy_rate)
{
    double millions = (double)opts->records / 1e6;
    opened odd = open_scan(odd_path, COFFER_ACCESS_AUTO);
    opened aligned = open_scan(ours_path, COFFER_ACCESS_AUTO);
    stats_work work = { .scan = odd.scan, .by = COFFER_MSCAN_BY_PARAM, .threads = 1 };
    bench_time time = bench_measure(run_stats, &work, opts->runs);
    bench_row *row =
        bench_add_rate(table, "stats by param, 1 thread, odd offset", millions, time, "M records/s");
    row->goal = 450 * copy_rate / REFERENCE_COPY;
    snprintf(row->note, sizeof row->note, "450 at a memory copy of %.0f GB/s", REFERENCE_COPY);
    rates[0] = row->median;

    work.threads = 2;
    row = bench_add_rate(table, "stats by param, 2 threads, odd offset", millions,
                         bench_measure(run_stats, &work, opts->runs), "M records/s");
    row->goal = 1.7 * rates[0];
    rates[1] = row->median;

    work = (stats_work){ .scan = aligned.scan, .by = COFFER_MSCAN_BY_PARAM, .threads = 1 };
    bench_add_rate(table, "stats by param, 1 thread, aligned", millions,
                   bench_measure(run_stats, &work, opts->runs), "M records/s");
    work = (stats_work){ .path = odd_path, .by = COFFER_MSCAN_BY_PARAM, .threads = 1 };
    bench_add_rate(table, "stats by param, 1 thread, mapped again each time", millions,
                   bench_measure(run_stats, &work, opts->runs), "M records/s");
    static const char *const others[] = { "stats by block", "stats by token", "stats by sequence" };
    for (int i = 0; i < 3; i++) {
        work = (stats_work){ .scan = odd.scan,
                             .by = (coffer_mscan_by)(COFFER_MSCAN_BY_BLOCK + i),
                             .threads = 1 };
        char name[80];
        snprintf(name, sizeof name, "%s, 1 thread", others[i]);
        bench_add_rate(table, name, millions, bench_measure(run_stats, &work, opts->runs), "M records/s");
    }
    close_scan(&odd);
    close_scan(&aligned);
}

/* In memory, by order of the records and instruction set. */
static void bench_patterns(bench_table *table, const options *opts)
{
    static const char *const levels[] = { "generic", "avx2", "avx512" };
    uint64_t records = opts->records < 20000000 ? opts->records : 20000000;
    for (int pattern = 0; pattern < DATA_PATTERNS; pattern++) {
        coffer__buffer bytes = COFFER__BUFFER_INIT;
        coffer_error err = COFFER_ERROR_INIT;
        opened memory;
        data_head(&bytes, (data_pattern)pattern, records, true);
        data_append_records(&bytes, (data_pattern)pattern, 0, records);
        bench_must(coffer_source_from_memory(&memory.source, bytes.data, bytes.len, &err), &err, "memory");
        bench_must(coffer_mscan_open(&memory.scan, memory.source, NULL, &err), &err, "memory");
        for (int level = 0; level < 3; level++) {
            stats_work work = { .scan = memory.scan, .by = COFFER_MSCAN_BY_PARAM, .threads = 1 };
            char name[80];
            setenv("COFFER_CPU", levels[level], 1);
            if (strcmp(coffer_cpu(), levels[level]) != 0)
                continue;
            snprintf(name, sizeof name, "  %s, %s", data_pattern_names[pattern], levels[level]);
            bench_add_rate(table, name, (double)records / 1e6, bench_measure(run_stats, &work, opts->runs),
                           "M records/s");
        }
        unsetenv("COFFER_CPU");
        close_scan(&memory);
        coffer__buffer_free(&bytes);
    }
}

#define CHILD_OPTION "--in-child" /* what peak_kib starts this program with: FILE, then stats or open */

/* Prints the most memory that this program has had, in KiB. */
static int run_in_child(const char *path, const char *what)
{
    opened scan = open_scan(path, COFFER_ACCESS_READ); /* a mapped file's pages would count as well */
    stats_work work = { .scan = scan.scan, .by = COFFER_MSCAN_BY_PARAM, .threads = 0 };
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    if (!strcmp(what, "stats"))
        run_stats(&work);
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "VmHWM:", 6))
            printf("%s", line + 6);
    }
    if (file)
        fclose(file);
    close_scan(&scan);
    return 0;
}

/* In a program of its own, so that nothing of this one's heap is in it. */
static double peak_kib(const char *what)
{
    char self[4096], command[16384];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    FILE *child = NULL;
    double kib;
    if (len > 0) {
        self[len] = 0;
        snprintf(command, sizeof command, "'%s' %s '%s' %s", self, CHILD_OPTION, odd_path, what);
        child = popen(command, "r");
    }
    if (!child || fscanf(child, "%lf", &kib) != 1 || pclose(child) != 0) {
        fputs("the child that measures memory failed\n", stderr);
        exit(3);
    }
    return kib;
}

static void bench_memory(bench_table *table)
{
    double extra = (peak_kib("stats") - peak_kib("open")) / 1024;
    bench_row *row = bench_add(table, "extra memory of stats by param, all threads", extra, extra, "MiB");
    row->goal = 64;
    row->goal_is_maximum = true;
}

/* ---- The peers ---- */

static void add_peer(bench_table *table, const coffer__json_value *line, unsigned threads, double millions,
                     double ours)
{
    const coffer__json_value *missing = coffer__json_find(line, "missing");
    const coffer__json_value *peer = coffer__json_find(line, "peer");
    const coffer__json_value *version = coffer__json_find(line, "version");
    const coffer__json_value *seconds = coffer__json_find(line, "seconds");
    double times[99], load = 0;
    size_t count = 0;
    char name[80];
    if (!peer || (!missing && !seconds))
        return;
    snprintf(name, sizeof name, "  %s %s, %u thread%s", peer->as.string, version ? version->as.string : "",
             threads, threads == 1 ? "" : "s");
    if (missing) {
        snprintf(bench_add(table, name, 0, 0, "")->note, sizeof table->rows[0].note, "%s",
                 missing->as.string);
        return;
    }
    for (const coffer__json_value *at = coffer__json_first(seconds); at && count < 99;
         at = coffer__json_next(seconds, at)) {
        if (coffer__json_f64(&times[count], at))
            count++;
    }
    if (count == 0)
        return;
    coffer__json_f64(&load, coffer__json_find(line, "load"));
    qsort(times, count, sizeof times[0], bench_compare);
    bench_row *row = bench_add(table, name, millions / times[count / 2], millions / times[0], "M records/s");
    snprintf(row->note, sizeof row->note, "ours is %.1f times as fast; %.1f s to load not counted",
             ours / row->median, load);
}

static void bench_peers(bench_table *table, const options *opts, uint64_t offset, unsigned threads,
                        double ours)
{
    const char *python = getenv("COFFER_BENCH_PYTHON");
    char script[4096], command[16384], text[4096];
    size_t before = table->count;
    FILE *lines;
    snprintf(script, sizeof script, "%s", __FILE__);
    *strrchr(script, '/') = 0;
    snprintf(command, sizeof command, "'%s' '%s/mscan.py' '%s' %llu %llu %u %u", python ? python : "python3",
             script, odd_path, (unsigned long long)offset, (unsigned long long)opts->records, threads,
             opts->runs);
    lines = popen(command, "r");
    while (lines && fgets(text, sizeof text, lines)) {
        coffer__json *json = NULL;
        if (coffer__json_parse(&json, text, strlen(text), 0, NULL, NULL))
            continue;
        add_peer(table, coffer__json_root(json), threads, (double)opts->records / 1e6, ours);
        coffer__json_free(json);
    }
    if (!lines || pclose(lines) != 0)
        fprintf(stderr, "the peers did not run to their end: %s\n", command);
    if (table->count == before)
        snprintf(bench_add(table, "  numpy, DuckDB, Polars", 0, 0, "")->note, sizeof table->rows[0].note,
                 "could not be run by %s (make bench-peers)", python ? python : "python3");
}

/* ---- Checking, appending, heat maps ---- */

static void check_fully(void *context)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *source = NULL;
    coffer_report *report = NULL;
    opts.full = true;
    bench_must(coffer_report_new(&report, 1000, &err), &err, "report");
    bench_must(coffer_source_open(&source, context, NULL, &err), &err, context);
    bench_must(coffer_check(report, source, &opts, &err), &err, "check");
    coffer_report_free(report);
    coffer_source_close(source);
}

static void append_million(void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_writer *writer = NULL;
    bench_must(coffer_mscan_writer_append_to(&writer, context, NULL, &err), &err, context);
    data_add_sequence(writer, 1000000);
    bench_must(coffer_mscan_writer_commit(writer, &err), &err, context);
}

static void bench_append(bench_table *table, const options *opts)
{
    char name[80];
    data_write_ours(small_path, 1000000);
    bench_time small = bench_measure(append_million, small_path, opts->runs);
    bench_time large = bench_measure(append_million, ours_path, opts->runs);
    bench_add(table, "append 1 M records to a file of 1 M", small.median * 1e3, small.best * 1e3, "ms");
    snprintf(name, sizeof name, "append 1 M records to a file of %.0f M", (double)opts->records / 1e6);
    bench_row *row = bench_add(table, name, large.median * 1e3, large.best * 1e3, "ms");
    row->goal = 2 * small.median * 1e3;
    row->goal_is_maximum = true;
    snprintf(row->note, sizeof row->note, "twice the small file's");
}

static void draw(void *context)
{
    const opened *scan = context;
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_grid *grid = NULL;
    opts.cache_path = pyramid_path;
    bench_must(coffer_mscan_grid_new(&grid, scan->scan, &opts, &err), &err, "grid");
    coffer_mscan_grid_free(grid);
}

static void draw_anew(void *context)
{
    unlink(pyramid_path);
    draw(context);
}

static void bench_grid(bench_table *table, const options *opts)
{
    opened scan = open_scan(odd_path, COFFER_ACCESS_AUTO);
    bench_time build = bench_measure(draw_anew, &scan, opts->runs);
    bench_time redraw = bench_measure(draw, &scan, 21);
    bench_add(table, "heat map of everything, pyramid built", build.median * 1e3, build.best * 1e3, "ms");
    bench_add(table, "heat map of everything, pyramid kept", redraw.median * 1e3, redraw.best * 1e3, "ms");
    close_scan(&scan);
}

/* ---- The program ---- */

static options read_options(int argc, char **argv)
{
    options opts = { 100000000, 5, false, getenv("COFFER_BENCH_DATA") };
    const char *records = getenv("COFFER_BENCH_RECORDS");
    if (records)
        opts.records = strtoull(records, NULL, 10);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            opts.json = true;
        } else if (!strcmp(argv[i], "--records") && i + 1 < argc) {
            opts.records = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
            opts.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        } else {
            fputs("usage: bench_mscan [--records N] [--runs N] [--json]\n", stderr);
            exit(2);
        }
    }
    if (opts.records == 0 || opts.records > COFFER__MSCAN_MAX_RECORDS || opts.runs == 0 || opts.runs > 99) {
        fputs("records from 1 to 4294967295, runs from 1 to 99\n", stderr);
        exit(2);
    }
    return opts;
}

static void name_files(const char *folder)
{
    const char *in = folder ? folder : ".";
    snprintf(odd_path, sizeof odd_path, "%s/odd.mscan", in);
    snprintf(ours_path, sizeof ours_path, "%s/ours.mscan", in);
    snprintf(small_path, sizeof small_path, "%s/small.mscan", in);
    snprintf(names_path, sizeof names_path, "%s/names.mscan", in);
    snprintf(pyramid_path, sizeof pyramid_path, "%s/odd.pyramid", in);
    atexit(remove_data);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], CHILD_OPTION))
        return run_in_child(argv[2], argv[3]);
    options opts = read_options(argc, argv);
    bench_table table = { .count = 0 };
    double rates[2];
    uint64_t offset;

    name_files(opts.folder);
    offset = data_write_odd(odd_path, opts.records);
    double start = bench_now();
    data_write_ours(ours_path, opts.records);
    double written = bench_now() - start;

    double copy_rate = bench_copy(&table, opts.runs);
    bench_open(&table, &opts);
    bench_stats(rates, &table, &opts, copy_rate);
    bench_peers(&table, &opts, offset, 1, rates[0]);
    bench_peers(&table, &opts, offset, 2, rates[1]);
    bench_memory(&table);
    bench_patterns(&table, &opts);
    bench_add_rate(&table, "check --full, all threads", (double)opts.records / 1e6,
                   bench_measure(check_fully, ours_path, opts.runs), "M records/s");
    bench_grid(&table, &opts);
    bench_add(&table, "write, with sync", (double)opts.records / 1e6 / written,
              (double)opts.records / 1e6 / written, "M records/s");
    bench_append(&table, &opts);

    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
