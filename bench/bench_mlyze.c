/* MLYZE: decoding and pairing, timelines.
 *
 *   bench_mlyze [--events N] [--live N] [--runs N] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "bench.h"
#include "coffer/coffer.h"
#include "mlyze_data.h"

#include <sys/stat.h>
#include <unistd.h>

#define REFERENCE_COPY 12.0 /* GB/s of the machine that the goals were set for: they scale with memory */

typedef struct options {
    uint64_t events;
    size_t live;
    unsigned runs;
    bool json;
    const char *folder;
} options;

static char packed_path[4096], packed_index[4096], plain_path[4096], plain_index[4096];
static char archive_path[4096], archive_index[4096];

static void remove_data(void)
{
    unlink(packed_path);
    unlink(packed_index);
    unlink(plain_path);
    unlink(plain_index);
    unlink(archive_path);
    unlink(archive_index);
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
    work.from = data_must(malloc(work.len));
    work.to = data_must(malloc(work.len));
    memset(work.from, 1, work.len);
    bench_time time = bench_measure(copy_memory, &work, runs);
    bench_add_rate(table, "memory copy", (double)work.len / 1e9, time, "GB/s");
    free(work.from);
    free(work.to);
    return (double)work.len / 1e9 / time.median;
}

/* ---- Decoding and pairing ---- */

typedef struct opened {
    coffer_source *source;
    coffer_mlyze *trace;
} opened;

static opened open_trace(const char *path, const char *index)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    opened result;
    opts.index_path = index;
    bench_must(coffer_source_open(&result.source, path, NULL, &err), &err, path);
    bench_must(coffer_mlyze_open(&result.trace, result.source, &opts, &err), &err, path);
    return result;
}

static void close_trace(opened *done)
{
    coffer_mlyze_close(done->trace);
    coffer_source_close(done->source);
}

typedef struct work {
    const coffer_mlyze *trace;
    uint32_t threads;
} work;

static void decode_all(void *context)
{
    work *what = context;
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    size_t blocks;
    bench_must(coffer_mlyze_block_count(&blocks, what->trace, &err), &err, "blocks");
    for (size_t i = 0; i < blocks; i++)
        bench_must(coffer_mlyze_read_block(&events, what->trace, i, &err), &err, "decode");
    coffer_mlyze_events_free(&events);
}

static void analyze_all(void *context)
{
    work *what = context;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    query.threads = what->threads;
    bench_must(coffer_mlyze_stats_new(&stats, what->trace, &query, &err), &err, "analyze");
    coffer_mlyze_stats_free(stats);
}

static void bench_pairing(bench_table *table, const options *opts, const char *path, const char *kind,
                          double copy_rate)
{
    opened trace = open_trace(path, NULL);
    double millions = (double)opts->events / 1e6;
    char name[80];
    work what = { trace.trace, 1 };
    snprintf(name, sizeof name, "%s: decode, 1 thread", kind);
    bench_add_rate(table, name, millions, bench_measure(decode_all, &what, opts->runs), "M events/s");
    snprintf(name, sizeof name, "%s: decode and pair, 1 thread", kind);
    bench_row *row =
        bench_add_rate(table, name, millions, bench_measure(analyze_all, &what, opts->runs), "M events/s");
    double alone = row->median;
    row->goal = 50 * copy_rate / REFERENCE_COPY;
    snprintf(row->note, sizeof row->note, "50 at a memory copy of %.0f GB/s", REFERENCE_COPY);
    what.threads = 2;
    snprintf(name, sizeof name, "%s: decode and pair, 2 threads", kind);
    row = bench_add_rate(table, name, millions, bench_measure(analyze_all, &what, opts->runs), "M events/s");
    row->goal = 1.7 * alone;
    close_trace(&trace);
}

/* ---- Sizes ---- */

static void add_size(bench_table *table, const options *opts, const char *path, const char *kind)
{
    struct stat found;
    char name[80];
    if (stat(path, &found) != 0)
        exit(3);
    double each = (double)found.st_size / (double)opts->events;
    snprintf(name, sizeof name, "%s: file", kind);
    bench_add(table, name, each, each, "bytes/event");
}

/* ---- Archives ---- */

static void write_archive(void *context)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opened trace = open_trace(packed_path, NULL);
    (void)context;
    opts.archive = opts.overwrite = opts.no_index = true;
    bench_must(coffer_mlyze_rewrite(trace.trace, archive_path, &opts, &err), &err, archive_path);
    close_trace(&trace);
}

static void bench_archive(bench_table *table, const options *opts)
{
    double millions = (double)opts->events / 1e6;
    bench_row *row = bench_add_rate(table, "archive: encode, 1 thread", millions,
                                    bench_measure(write_archive, NULL, opts->runs), "M events/s");
    row->goal = 5;
}

/* ---- Timeline ---- */

static void draw_timeline(void *context)
{
    coffer_mlyze_timeline *timeline = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opened trace = open_trace(packed_path, packed_index);
    (void)context;
    bench_must(coffer_mlyze_timeline_new(&timeline, trace.trace, NULL, &err), &err, "timeline");
    coffer_mlyze_timeline_free(timeline);
    close_trace(&trace);
}

static void bench_timeline(bench_table *table, const options *opts)
{
    bench_time time = bench_measure(draw_timeline, NULL, opts->runs);
    bench_row *row = bench_add(table, "open and draw the timeline from the index", time.median * 1e3,
                               time.best * 1e3, "ms");
    row->goal = 200;
    row->goal_is_maximum = true;
}

/* ---- All ---- */

static options read_options(int argc, char **argv)
{
    options opts = { .events = 20000000, .live = 200000, .runs = 5 };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            opts.json = true;
        else if (!strcmp(argv[i], "--events") && i + 1 < argc)
            opts.events = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--live") && i + 1 < argc)
            opts.live = (size_t)strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            opts.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else {
            fputs("usage: bench_mlyze [--events N] [--live N] [--runs N] [--json]\n", stderr);
            exit(2);
        }
    }
    opts.folder = getenv("COFFER_BENCH_DATA");
    opts.folder = opts.folder ? opts.folder : ".";
    if (opts.runs < 1 || opts.runs > 99 || opts.events == 0)
        exit(2);
    return opts;
}

int main(int argc, char **argv)
{
    options opts = read_options(argc, argv);
    bench_table table = { .count = 0 };
    snprintf(packed_path, sizeof packed_path, "%s/bench.mlyze", opts.folder);
    snprintf(packed_index, sizeof packed_index, "%s/bench.mlyze.idx", opts.folder);
    snprintf(plain_path, sizeof plain_path, "%s/bench-plain.mlyze", opts.folder);
    snprintf(plain_index, sizeof plain_index, "%s/bench-plain.mlyze.idx", opts.folder);
    snprintf(archive_path, sizeof archive_path, "%s/bench-archive.mlyze", opts.folder);
    snprintf(archive_index, sizeof archive_index, "%s/bench-archive.mlyze.idx", opts.folder);
    atexit(remove_data);
    data_write_trace(packed_path, opts.events, opts.live, false);
    data_write_trace(plain_path, opts.events, opts.live, true);

    double copy_rate = bench_copy(&table, opts.runs);
    bench_pairing(&table, &opts, packed_path, "LZ4 blocks", copy_rate);
    bench_pairing(&table, &opts, plain_path, "plain", copy_rate);
    bench_archive(&table, &opts);
    bench_pairing(&table, &opts, archive_path, "archive", copy_rate);
    add_size(&table, &opts, archive_path, "archive");
    add_size(&table, &opts, packed_path, "LZ4 blocks");
    add_size(&table, &opts, plain_path, "plain");
    bench_timeline(&table, &opts);
    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
