/* PYCAUSET: opening, reading, checking, expanding, durable commits, beside numpy, h5py, SQLite and LMDB.
 *
 *   bench_pycauset [--rows N] [--cols N] [--runs N] [--commits N] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "base/json.h"
#include "base/work.h"
#include "bench.h"
#include "coffer/coffer.h"
#include "coffer/pycauset.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFERENCE_COPY 12.0 /* GB/s of the machine that the goals were set for: they scale with memory */
#define OPENS 200
#define NOTE_BYTES 300 /* of metadata in a commit */
#define COMMITTERS 8   /* threads */

typedef struct options {
    uint64_t rows, cols;
    unsigned runs, commits;
    bool json;
    const char *folder;
} options;

enum { DENSE, TRIANGLE, BITS, NOTES, BARE, FILES };
static char paths[FILES][4096];

static void remove_data(void)
{
    for (int i = 0; i < FILES; i++)
        unlink(paths[i]);
}

static void name_files(const char *folder)
{
    static const char *const names[FILES] = { "dense", "triangle", "bits", "notes", "bare" };
    for (int i = 0; i < FILES; i++)
        snprintf(paths[i], sizeof paths[i], "%s/bench-%d-%s.pycauset", folder, (int)getpid(), names[i]);
    atexit(remove_data);
}

/* ---- Data ---- */

static void write_matrix(const char *path, coffer_pycauset_type type, coffer_dtype dtype, uint64_t rows,
                         uint64_t cols)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_writer *writer = NULL;
    size_t element = dtype == COFFER_DTYPE_BIT ? 1 : 8;
    uint8_t *row = calloc((size_t)cols, element);
    uint64_t random = 1;
    shape.type = type;
    shape.dtype = dtype;
    shape.rows = rows;
    shape.cols = cols;
    opts.checksums = true;
    bench_must(coffer_pycauset_writer_create(&writer, path, &shape, &opts, &err), &err, path);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t first = type == COFFER_PYCAUSET_TRIANGULAR_FLOAT ? i + 1 : 0;
        memset(row, 0, (size_t)(first < cols ? first : cols) * element);
        for (uint64_t j = first; j < cols; j++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            double value = (double)(random >> 40);
            if (element == 1)
                row[j] = (uint8_t)(random >> 63);
            else
                memcpy(row + 8 * j, &value, 8);
        }
        bench_must(coffer_pycauset_writer_put_rows(writer, row, 1, &err), &err, path);
    }
    bench_must(coffer_pycauset_writer_commit(writer, &err), &err, path);
    free(row);
}

typedef struct opened {
    coffer_source *src;
    coffer_pycauset *matrix;
} opened;

static opened open_matrix(const char *path, coffer_access access)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opened out;
    opts.access = access;
    bench_must(coffer_source_open(&out.src, path, &opts, &err), &err, path);
    bench_must(coffer_pycauset_open(&out.matrix, out.src, NULL, &err), &err, path);
    return out;
}

static void close_matrix(opened *file)
{
    coffer_pycauset_close(file->matrix);
    coffer_source_close(file->src);
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

static void open_often(void *context)
{
    for (int i = 0; i < OPENS; i++) {
        opened file = open_matrix(context, COFFER_ACCESS_AUTO);
        close_matrix(&file);
    }
}

static void bench_open(bench_table *table, const options *opts)
{
    bench_time time = bench_measure(open_often, paths[DENSE], opts->runs);
    bench_row *row =
        bench_add(table, "open and validate", time.median / OPENS * 1e6, time.best / OPENS * 1e6, "us");
    row->goal = 20;
    row->goal_is_maximum = true;
}

/* ---- Reading ---- */

typedef struct reading {
    opened file;
    void *out;
    uint64_t band; /* rows at a time, over and over into the same memory */
    coffer_dtype dtype;
} reading;

static void read_all(void *context)
{
    const reading *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t rows = coffer_pycauset_get_info(work->file.matrix)->rows;
    for (uint64_t row = 0; row < rows; row += work->band) {
        uint64_t count = rows - row < work->band ? rows - row : work->band;
        bench_must(coffer_pycauset_read_rows(work->out, work->file.matrix, row, count, work->dtype, &err),
                   &err, "read");
    }
}

/* Reads a file whole, `band` rows (0: all) at a time; gives GB/s of output. */
static bench_row *bench_read(bench_table *table, const options *opts, const char *name, const char *path,
                             coffer_access access, coffer_dtype dtype, uint64_t band)
{
    reading work = { open_matrix(path, access), NULL, band, dtype };
    const coffer_pycauset_info *info = coffer_pycauset_get_info(work.file.matrix);
    size_t row_bytes = (size_t)info->cols * coffer_dtype_size(dtype);
    if (!band)
        work.band = info->rows;
    work.out = malloc((size_t)work.band * row_bytes);
    if (!work.out)
        exit(3);
    bench_time time = bench_measure(read_all, &work, opts->runs);
    bench_row *row = bench_add_rate(table, name, (double)info->rows * (double)row_bytes / 1e9, time, "GB/s");
    free(work.out);
    close_matrix(&work.file);
    return row;
}

static void bench_reading(bench_table *table, const options *opts, double copy_rate)
{
    bench_read(table, opts, "read dense float64 into memory, mapped", paths[DENSE], COFFER_ACCESS_MAP,
               COFFER_DTYPE_F64, 0)
        ->goal = 0.85 * copy_rate;
    bench_read(table, opts, "read dense float64 into memory, by pread", paths[DENSE], COFFER_ACCESS_READ,
               COFFER_DTYPE_F64, 0);
}

/* The output of 64 rows stays in the cache of a core or not, as it comes; the goal is for output to memory.
 */
static void bench_expansion(bench_table *table, const options *opts, double copy_rate)
{
    static const struct {
        const char *name;
        int file;
        coffer_dtype dtype;
    } cases[] = {
        { "expand triangular float64 to dense, one core", TRIANGLE, COFFER_DTYPE_F64 },
        { "expand bit rows to bytes, one core", BITS, COFFER_DTYPE_BOOL },
        { "expand bit rows to float32, one core", BITS, COFFER_DTYPE_F32 },
        { "expand bit rows to float64, one core", BITS, COFFER_DTYPE_F64 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        bench_read(table, opts, cases[i].name, paths[cases[i].file], COFFER_ACCESS_MAP, cases[i].dtype,
                   opts->rows / 4 + 1)
            ->goal = 4.0 * copy_rate / REFERENCE_COPY;
}

/* ---- Checking, statistics ---- */

static void check_fully(void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.full = true;
    bench_must(coffer_source_open(&src, context, NULL, &err), &err, "open");
    bench_must(coffer_report_new(&report, 0, &err), &err, "report");
    bench_must(coffer_check(report, src, &opts, &err), &err, "check");
    if (coffer_report_count(report) > 0) {
        fprintf(stderr, "check found something: %s\n", coffer_report_at(report, 0)->text);
        exit(3);
    }
    coffer_report_free(report);
    coffer_source_close(src);
}

static void compute_stats(void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_stats *stats = NULL;
    opened file = open_matrix(context, COFFER_ACCESS_AUTO);
    bench_must(coffer_pycauset_stats_new(&stats, file.matrix, NULL, &err), &err, "stats");
    coffer_pycauset_stats_free(stats);
    close_matrix(&file);
}

static void bench_whole_file(bench_table *table, const options *opts, double copy_rate)
{
    double gigabytes = (double)opts->rows * (double)opts->cols * 8 / 1e9;
    bench_add_rate(table, "check --full with checksums", gigabytes,
                   bench_measure(check_fully, paths[DENSE], opts->runs), "GB/s")
        ->goal = 0.85 * copy_rate;
    bench_add_rate(table, "stats of dense float64", gigabytes,
                   bench_measure(compute_stats, paths[DENSE], opts->runs), "GB/s");
}

/* ---- Durable commits ---- */

typedef struct committing {
    unsigned commits;
    coffer_pycauset_editor *editor;
    int fd; /* of the bare loop */
    uint64_t end;
    size_t block_len; /* what one of our commits appends */
    uint8_t block[4096];
} committing;

static void commit_notes(void *context)
{
    committing *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    char note[NOTE_BYTES];
    memset(note, 'x', sizeof note);
    for (unsigned i = 0; i < work->commits; i++) {
        coffer_pycauset_changes *changes = NULL;
        note[0] = (char)('a' + i % 26);
        bench_must(coffer_pycauset_changes_new(&changes, &err), &err, "changes");
        bench_must(coffer_pycauset_changes_set_string(changes, "properties.note", note, sizeof note, &err),
                   &err, "set");
        bench_must(coffer_pycauset_editor_commit(NULL, work->editor, changes, &err), &err, "commit");
        coffer_pycauset_changes_free(changes);
    }
}

static void *commit_share(void *context)
{
    commit_notes(context);
    return NULL;
}

/* The same commits by several threads, which share the syncs. */
static void commit_together(void *context)
{
    const committing *work = context;
    pthread_t threads[COMMITTERS];
    committing share = { .commits = work->commits / COMMITTERS, .editor = work->editor };
    for (size_t i = 0; i < COMMITTERS; i++) {
        if (pthread_create(&threads[i], NULL, commit_share, &share) != 0)
            exit(3);
    }
    for (size_t i = 0; i < COMMITTERS; i++)
        pthread_join(threads[i], NULL);
}

/* The minimum for any program: append, fdatasync, overwrite 128 bytes, fdatasync. */
static void commit_barely(void *context)
{
    committing *work = context;
    for (unsigned i = 0; i < work->commits; i++) {
        work->block[0]++;
        if (pwrite(work->fd, work->block, work->block_len, (off_t)work->end) != (ssize_t)work->block_len ||
            fdatasync(work->fd) != 0 || pwrite(work->fd, work->block, 128, 16) != 128 ||
            fdatasync(work->fd) != 0) {
            perror("bare loop");
            exit(3);
        }
        work->end += work->block_len;
    }
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Turn and turn about, because disks have moods. */
static void measure_commits(bench_time *ours, bench_time *bare, committing *work, unsigned runs)
{
    double seconds[2][99];
    for (unsigned i = 0; i < runs; i++) {
        double start = bench_now();
        commit_barely(work);
        seconds[0][i] = bench_now() - start;
        start = bench_now();
        commit_notes(work);
        seconds[1][i] = bench_now() - start;
    }
    for (size_t i = 0; i < 2; i++)
        qsort(seconds[i], runs, sizeof seconds[i][0], bench_compare);
    *bare = (bench_time){ seconds[0][runs / 2], seconds[0][0] };
    *ours = (bench_time){ seconds[1][runs / 2], seconds[1][0] };
}

static void bench_commits(bench_table *table, const options *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    committing work = { .end = 8192 };
    write_matrix(paths[NOTES], COFFER_PYCAUSET_DENSE_FLOAT, COFFER_DTYPE_F64, 16, 16);
    write_matrix(paths[BARE], COFFER_PYCAUSET_DENSE_FLOAT, COFFER_DTYPE_F64, 16, 16);
    bench_must(coffer_pycauset_editor_open(&work.editor, paths[NOTES], NULL, &err), &err, "edit");
    work.fd = open(paths[BARE], O_RDWR | O_CLOEXEC);
    if (work.fd < 0)
        exit(3);
    work.commits = 2;
    commit_notes(&work);
    uint64_t before = size_of(paths[NOTES]);
    commit_notes(&work);
    work.block_len = (size_t)(size_of(paths[NOTES]) - before) / 2;
    if (work.block_len > sizeof work.block)
        work.block_len = sizeof work.block;
    work.commits = opts->commits;
    bench_time bare, ours;
    measure_commits(&ours, &bare, &work, opts->runs);
    double bare_rate = opts->commits / bare.median;
    bench_add(table, "bare loop: append, fdatasync, pwrite 128, fdatasync", bare_rate,
              opts->commits / bare.best, "commits/s");
    bench_add(table, "durable metadata commits", opts->commits / ours.median, opts->commits / ours.best,
              "commits/s")
        ->goal = 0.98 * bare_rate;
    bench_time together = bench_measure(commit_together, &work, opts->runs);
    bench_add_rate(table, "durable metadata commits, 8 threads", opts->commits / COMMITTERS * COMMITTERS,
                   together, "commits/s")
        ->goal = 3 * opts->commits / ours.median;
    close(work.fd);
    coffer_pycauset_editor_close(work.editor);
}

/* ---- The peers ---- */

static double median_of(const coffer__json_value *seconds)
{
    double times[99];
    size_t count = 0;
    const coffer__json_value *value = coffer__json_first(seconds);
    for (; value && count < 99; value = coffer__json_next(seconds, value)) {
        if (coffer__json_f64(&times[count], value))
            count++;
    }
    qsort(times, count, sizeof times[0], bench_compare);
    return count ? times[count / 2] : 0;
}

static void add_peer(bench_table *table, const coffer__json_value *line, double gigabytes)
{
    const coffer__json_value *peer = coffer__json_find(line, "peer"), *task = coffer__json_find(line, "task");
    const coffer__json_value *missing = coffer__json_find(line, "missing");
    char name[80];
    if (!peer || !task)
        return;
    snprintf(name, sizeof name, "  %s, %s", peer->as.string, task->as.string);
    if (missing) {
        snprintf(bench_add(table, name, 0, 0, "")->note, sizeof table->rows[0].note, "%s",
                 missing->as.string);
        return;
    }
    double seconds = median_of(coffer__json_find(line, "seconds"));
    if (strcmp(task->as.string, "open") == 0)
        bench_add(table, name, seconds * 1e6, seconds * 1e6, "us");
    else if (strcmp(task->as.string, "read") == 0)
        bench_add(table, name, gigabytes / seconds, gigabytes / seconds, "GB/s");
    else
        bench_add(table, name, 1 / seconds, 1 / seconds, "commits/s");
}

static void bench_peers(bench_table *table, const options *opts)
{
    const char *python = getenv("COFFER_BENCH_PYTHON");
    char script[4096], command[16384], text[65536];
    size_t before = table->count;
    snprintf(script, sizeof script, "%s", __FILE__);
    *strrchr(script, '/') = 0;
    snprintf(command, sizeof command, "'%s' '%s/pycauset.py' '%s' %llu %llu %u %u",
             python ? python : "python3", script, opts->folder, (unsigned long long)opts->rows,
             (unsigned long long)opts->cols, opts->runs, opts->commits);
    FILE *lines = popen(command, "r");
    while (lines && fgets(text, sizeof text, lines)) {
        coffer__json *json = NULL;
        if (coffer__json_parse(&json, text, strlen(text), 0, NULL, NULL))
            continue;
        add_peer(table, coffer__json_root(json), (double)opts->rows * (double)opts->cols * 8 / 1e9);
        coffer__json_free(json);
    }
    if (!lines || pclose(lines) != 0)
        fprintf(stderr, "the peers did not run to their end: %s\n", command);
    if (table->count == before)
        snprintf(bench_add(table, "  numpy, h5py, SQLite, LMDB", 0, 0, "")->note, sizeof table->rows[0].note,
                 "could not be run by %s (make bench-peers)", python ? python : "python3");
}

/* ---- The program ---- */

static options read_options(int argc, char **argv)
{
    options opts = {
        .rows = 8192, .cols = 8192, .runs = 9, .commits = 100, .folder = getenv("COFFER_BENCH_DATA")
    };
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--json")) {
            opts.json = true;
            continue;
        }
        if (!strcmp(argv[i], "--rows"))
            opts.rows = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--cols"))
            opts.cols = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--runs"))
            opts.runs = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(argv[i], "--commits"))
            opts.commits = (unsigned)strtoul(value, NULL, 10);
        i++;
    }
    if (!opts.folder)
        opts.folder = ".";
    if (opts.rows == 0 || opts.cols == 0 || opts.commits == 0 || opts.runs == 0 || opts.runs > 99) {
        fprintf(stderr,
                "usage: bench_pycauset [--rows N] [--cols N] [--runs 1...99] [--commits N] [--json]\n");
        exit(2);
    }
    return opts;
}

int main(int argc, char **argv)
{
    options opts = read_options(argc, argv);
    bench_table table = { .count = 0 };
    name_files(opts.folder);
    write_matrix(paths[DENSE], COFFER_PYCAUSET_DENSE_FLOAT, COFFER_DTYPE_F64, opts.rows, opts.cols);
    write_matrix(paths[TRIANGLE], COFFER_PYCAUSET_TRIANGULAR_FLOAT, COFFER_DTYPE_F64, opts.rows, opts.rows);
    write_matrix(paths[BITS], COFFER_PYCAUSET_DENSE_FLOAT, COFFER_DTYPE_BIT, opts.rows, opts.cols);
    double copy_rate = bench_copy(&table, opts.runs);
    bench_open(&table, &opts);
    bench_reading(&table, &opts, copy_rate);
    bench_whole_file(&table, &opts, copy_rate);
    bench_expansion(&table, &opts, copy_rate);
    bench_commits(&table, &opts);
    bench_peers(&table, &opts);
    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
