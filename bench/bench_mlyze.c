/* MLYZE: decoding and pairing, timelines.
 *
 *   bench_mlyze [--events N] [--live N] [--runs N] [--json] [FILE.mlyze]...
 *
 * With files only those are measured, otherwise generated traces. Their data goes to $COFFER_BENCH_DATA (else
 * the current folder) and is removed at the end. */
#include "bench.h"
#include "coffer/coffer.h"
#include "mlyze_data.h"

#include <sys/stat.h>
#include <unistd.h>

#define REFERENCE_COPY 12.8 /* GB/s of the machine that the goals were set for: they scale with memory */

typedef struct options {
    uint64_t events;
    size_t live;
    unsigned runs;
    bool json;
    const char *folder;
    const char **files;
    size_t file_count;
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

/* ---- The yardstick: a plain loop, with the sums of each stack and the peak, but no other answer ---- */

typedef struct plain_slot {
    uint64_t address, size, id;
} plain_slot;

#define PLAIN_SLOTS ((size_t)1 << 21)
#define PLAIN_STACKS 65536

static plain_slot *plain_find(plain_slot *slots, uint64_t address)
{
    size_t at = (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 43);
    while (slots[at].address != 0 && slots[at].address != address)
        at = (at + 1) % PLAIN_SLOTS;
    return &slots[at];
}

static void plain_loop(void *context)
{
    work *what = context;
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    plain_slot *slots = data_must(calloc(PLAIN_SLOTS, sizeof *slots));
    static uint64_t allocs[PLAIN_STACKS], total[PLAIN_STACKS], live[PLAIN_STACKS];
    uint64_t level = 0, peak = 0, used = 0;
    size_t blocks;
    bench_must(coffer_mlyze_block_count(&blocks, what->trace, &err), &err, "blocks");
    for (size_t i = 0; i < blocks; i++) {
        bench_must(coffer_mlyze_read_block(&events, what->trace, i, &err), &err, "decode");
        for (size_t k = 0; k < events.count; k++) {
            plain_slot *slot = plain_find(slots, events.address[k]);
            uint64_t id = events.id[k] % PLAIN_STACKS;
            if (events.type[k] == COFFER_MLYZE_ALLOC) {
                used += slot->address == 0;
                *slot = (plain_slot){ events.address[k], events.size[k], id };
                allocs[id]++;
                total[id] += slot->size;
                live[id] += slot->size;
                level += slot->size;
                peak = level > peak ? level : peak;
            } else if (events.type[k] == COFFER_MLYZE_FREE) {
                live[slot->id] -= slot->size;
                level -= slot->size;
                slot->size = 0;
            }
        }
        if (used > PLAIN_SLOTS / 4 * 3)
            exit(3);
    }
    coffer_mlyze_events_free(&events);
    free(slots);
}

/* The three ways run in turn, so that other programs on the machine slow down all of them. */
static void bench_pairing(bench_table *table, const options *opts, const char *path, const char *kind,
                          double copy_rate)
{
    static void (*const ways[])(void *) = { decode_all, plain_loop, analyze_all, analyze_all };
    static const char *const names[] = { "decode, 1 thread", "a plain loop, 1 thread",
                                         "decode and pair, 1 thread", "decode and pair, 2 threads" };
    opened trace = open_trace(path, NULL);
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t events = 0;
    double seconds[4][99], alone = 0;
    bench_must(coffer_mlyze_event_count(&events, trace.trace, &err), &err, path);
    for (unsigned run = 0; run <= opts->runs; run++) {
        for (size_t i = 0; i < 4; i++) {
            work what = { trace.trace, i < 3 ? 1 : 2 };
            double start = bench_now();
            ways[i](&what);
            if (run > 0) /* the first one warms up */
                seconds[i][run - 1] = bench_now() - start;
        }
    }
    for (size_t i = 0; i < 4; i++) {
        char name[80];
        qsort(seconds[i], opts->runs, sizeof seconds[i][0], bench_compare);
        bench_time time = { seconds[i][opts->runs / 2], seconds[i][0] };
        snprintf(name, sizeof name, "%s: %s", kind, names[i]);
        bench_row *row = bench_add_rate(table, name, (double)events / 1e6, time, "M events/s");
        if (i == 2) {
            row->goal = 53 * copy_rate / REFERENCE_COPY;
            snprintf(row->note, sizeof row->note, "53 at a memory copy of %.1f GB/s", REFERENCE_COPY);
            alone = row->median;
        } else if (i == 3) {
            row->goal = 1.6 * alone;
        }
    }
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
    opts.files = data_must(calloc((size_t)argc, sizeof *opts.files));
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            opts.json = true;
        else if (!strcmp(argv[i], "--events") && i + 1 < argc)
            opts.events = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--live") && i + 1 < argc)
            opts.live = (size_t)strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            opts.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (argv[i][0] != '-')
            opts.files[opts.file_count++] = argv[i];
        else {
            fputs("usage: bench_mlyze [--events N] [--live N] [--runs N] [--json] [FILE.mlyze]...\n", stderr);
            exit(2);
        }
    }
    opts.folder = getenv("COFFER_BENCH_DATA");
    opts.folder = opts.folder ? opts.folder : ".";
    if (opts.runs < 1 || opts.runs > 99 || opts.events == 0)
        exit(2);
    return opts;
}

static void bench_generated(bench_table *table, const options *opts, double copy_rate)
{
    snprintf(packed_path, sizeof packed_path, "%s/bench.mlyze", opts->folder);
    snprintf(packed_index, sizeof packed_index, "%s/bench.mlyze.idx", opts->folder);
    snprintf(plain_path, sizeof plain_path, "%s/bench-plain.mlyze", opts->folder);
    snprintf(plain_index, sizeof plain_index, "%s/bench-plain.mlyze.idx", opts->folder);
    snprintf(archive_path, sizeof archive_path, "%s/bench-archive.mlyze", opts->folder);
    snprintf(archive_index, sizeof archive_index, "%s/bench-archive.mlyze.idx", opts->folder);
    atexit(remove_data);
    data_write_trace(packed_path, opts->events, opts->live, false);
    data_write_trace(plain_path, opts->events, opts->live, true);

    bench_pairing(table, opts, packed_path, "LZ4 blocks", copy_rate);
    bench_pairing(table, opts, plain_path, "plain", copy_rate);
    bench_archive(table, opts);
    bench_pairing(table, opts, archive_path, "archive", copy_rate);
    add_size(table, opts, archive_path, "archive");
    add_size(table, opts, packed_path, "LZ4 blocks");
    add_size(table, opts, plain_path, "plain");
    bench_timeline(table, opts);
}

int main(int argc, char **argv)
{
    options opts = read_options(argc, argv);
    bench_table table = { .count = 0 };
    double copy_rate = bench_copy(&table, opts.runs);
    for (size_t i = 0; i < opts.file_count; i++) {
        const char *name = strrchr(opts.files[i], '/');
        bench_pairing(&table, &opts, opts.files[i], name ? name + 1 : opts.files[i], copy_rate);
    }
    if (opts.file_count == 0)
        bench_generated(&table, &opts, copy_rate);
    free(opts.files);
    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
