/* MLDF: random reads beside a bare memory copy, LMDB, HDF5 and Python's readers of other formats; batches,
 * columns, opening, cold reads beside a bare pread loop.
 *
 *   bench_mldf_read [--small N] [--large N] [--rows N] [--runs N] [--cpu-time] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "base/work.h"
#include "mldf_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#ifdef COFFER_BENCH_LMDB
#include <lmdb.h>
#endif
#ifdef COFFER_BENCH_HDF5
#include <hdf5.h>
#endif

enum { SMALL = 1024, MIDDLE = 10 * 1000, LARGE = 100 * 1000, LARGEST = 1000 * 1000, BATCH = 256 };

typedef struct options {
    uint64_t small_count, large_count, rows;
    unsigned runs;
    bool json;
    const char *folder;
} options;

enum { SMALL_SET, MIDDLE_SET, LARGE_SET, LARGEST_SET, LABELS, WIDE, FILES };
static char paths[FILES][4096], lmdb_path[4096], hdf5_path[4096];

static void remove_data(void)
{
    for (int i = 0; i < FILES; i++)
        unlink(paths[i]);
    unlink(lmdb_path);
    unlink(hdf5_path);
    char lock[4096 + 8];
    snprintf(lock, sizeof lock, "%s-lock", lmdb_path);
    unlink(lock);
}

static void name_files(const char *folder)
{
    static const char *const names[FILES] = { "small", "middle", "large", "largest", "labels", "wide" };
    for (int i = 0; i < FILES; i++)
        snprintf(paths[i], sizeof paths[i], "%s/bench-%d-%s.mldf", folder, (int)getpid(), names[i]);
    snprintf(lmdb_path, sizeof lmdb_path, "%s/bench-%d.lmdb", folder, (int)getpid());
    snprintf(hdf5_path, sizeof hdf5_path, "%s/bench-%d.h5", folder, (int)getpid());
    atexit(remove_data);
}

/* ---- Random reads ---- */

/* A run reads `reads` samples in the order of a permutation. */
typedef struct reading {
    const coffer_mldf *set;
    uint64_t count, reads;
    size_t size;
    uint8_t *out;
    coffer_bytes bytes;
    const uint8_t *memory;
    uint64_t *order; /* computed before the clock runs */
    void *peer;
} reading;

static uint64_t place(const reading *work, uint64_t i)
{
    return work->order[i % work->count];
}

static void read_memory(void *context)
{
    reading *work = context;
    for (uint64_t i = 0; i < work->reads; i++)
        memcpy(work->out, work->memory + place(work, i) * work->size, work->size);
}

static void read_copied(void *context)
{
    reading *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    for (uint64_t i = 0; i < work->reads; i++)
        bench_must(coffer_mldf_read(&work->bytes, NULL, work->set, place(work, i), 0, &err), &err, "read");
}

static void read_viewed(void *context)
{
    reading *work = context;
    size_t size;
    for (uint64_t i = 0; i < work->reads; i++) {
        const uint8_t *bytes = coffer_mldf_view(&size, work->set, place(work, i), 0);
        if (!bytes)
            exit(3);
        memcpy(work->out, bytes, size);
    }
}

static void view_samples(void *context)
{
    reading *work = context;
    for (uint64_t i = 0; i < work->reads; i++) {
        size_t size;
        const uint8_t *view = coffer_mldf_view(&size, work->set, place(work, i), 0);
        if (!view || size != work->size)
            exit(3);
        work->out[0] ^= *view;
    }
}

static void add_reads(bench_table *table, const char *name, const reading *work, bench_time time,
                      double *rate)
{
    bool is_small = work->size < LARGE;
    double amount = is_small ? (double)work->reads / 1e6 : (double)work->reads * (double)work->size / 1e9;
    bench_row *row = bench_add_rate(table, name, amount, time, is_small ? "M samples/s" : "GB/s");
    *rate = row->median;
}

/* Views of which one byte is read: the size does not matter. */
static void add_views(bench_table *table, const char *name, const reading *work, bench_time time)
{
    bench_add_rate(table, name, (double)work->reads / 1e6, time, "M samples/s");
}

/* ---- LMDB ---- */

#ifdef COFFER_BENCH_LMDB
typedef struct lmdb_peer {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
} lmdb_peer;

static void lmdb_must(int code)
{
    if (code) {
        fprintf(stderr, "LMDB: %s\n", mdb_strerror(code));
        exit(3);
    }
}

static void lmdb_write(const reading *work)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    lmdb_must(mdb_env_create(&env));
    lmdb_must(mdb_env_set_mapsize(env, (size_t)8 << 30));
    lmdb_must(mdb_env_open(env, lmdb_path, MDB_NOSUBDIR | MDB_NOSYNC, 0644));
    lmdb_must(mdb_txn_begin(env, NULL, 0, &txn));
    lmdb_must(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi));
    for (uint64_t i = 0; i < work->count; i++) {
        MDB_val key = { sizeof i, &i }, value = { work->size, work->out };
        memcpy(work->out, work->memory + i * work->size, work->size);
        lmdb_must(mdb_put(txn, dbi, &key, &value, MDB_APPEND));
    }
    lmdb_must(mdb_txn_commit(txn));
    mdb_env_close(env);
}

static void read_lmdb(void *context)
{
    reading *work = context;
    lmdb_peer *peer = work->peer;
    for (uint64_t i = 0; i < work->reads; i++) {
        uint64_t number = place(work, i);
        MDB_val key = { sizeof number, &number }, value;
        lmdb_must(mdb_get(peer->txn, peer->dbi, &key, &value));
        memcpy(work->out, value.mv_data, value.mv_size);
    }
}

static void view_lmdb(void *context)
{
    reading *work = context;
    lmdb_peer *peer = work->peer;
    for (uint64_t i = 0; i < work->reads; i++) {
        uint64_t number = place(work, i);
        MDB_val key = { sizeof number, &number }, value;
        lmdb_must(mdb_get(peer->txn, peer->dbi, &key, &value));
        work->out[0] ^= *(const uint8_t *)value.mv_data;
    }
}

static void bench_lmdb(bench_table *table, reading *work, unsigned runs, double ours)
{
    lmdb_peer peer;
    char name[80];
    double rate;
    lmdb_write(work);
    lmdb_must(mdb_env_create(&peer.env));
    lmdb_must(mdb_env_set_mapsize(peer.env, (size_t)8 << 30));
    lmdb_must(mdb_env_open(peer.env, lmdb_path, MDB_NOSUBDIR | MDB_RDONLY, 0644));
    lmdb_must(mdb_txn_begin(peer.env, NULL, MDB_RDONLY, &peer.txn));
    lmdb_must(mdb_dbi_open(peer.txn, NULL, MDB_INTEGERKEY, &peer.dbi));
    work->peer = &peer;
    snprintf(name, sizeof name, "  LMDB %d.%d.%d in C, copied", MDB_VERSION_MAJOR, MDB_VERSION_MINOR,
             MDB_VERSION_PATCH);
    add_reads(table, name, work, bench_measure(read_lmdb, work, runs), &rate);
    snprintf(table->rows[table->count - 1].note, sizeof table->rows[0].note, "ours is %.1f times as fast",
             ours / rate);
    snprintf(name, sizeof name, "  LMDB in C, as views");
    add_views(table, name, work, bench_measure(view_lmdb, work, runs));
    mdb_txn_abort(peer.txn);
    mdb_env_close(peer.env);
    unlink(lmdb_path);
}
#else
static void bench_lmdb(bench_table *table, reading *work, unsigned runs, double ours)
{
    (void)work, (void)runs, (void)ours;
    snprintf(bench_add(table, "  LMDB in C", 0, 0, "")->note, sizeof table->rows[0].note,
             "not installed (liblmdb-dev)");
}
#endif

/* ---- HDF5 ---- */

#ifdef COFFER_BENCH_HDF5
typedef struct hdf5_peer {
    hid_t file, data, space, memory;
} hdf5_peer;

static void hdf5_write(const reading *work)
{
    hsize_t dims[2] = { work->count, work->size };
    hid_t file = H5Fcreate(hdf5_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_UINT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (data < 0 || H5Dwrite(data, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, work->memory) < 0)
        exit(3);
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
}

static void read_hdf5(void *context)
{
    reading *work = context;
    const hdf5_peer *peer = work->peer;
    for (uint64_t i = 0; i < work->reads; i++) {
        hsize_t start[2] = { place(work, i), 0 }, count[2] = { 1, work->size };
        if (H5Sselect_hyperslab(peer->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
            H5Dread(peer->data, H5T_NATIVE_UINT8, peer->memory, peer->space, H5P_DEFAULT, work->out) < 0)
            exit(3);
    }
}

static void bench_hdf5(bench_table *table, reading *work, unsigned runs, double ours)
{
    hdf5_peer peer;
    hsize_t row[2] = { 1, work->size };
    char name[80];
    double rate;
    uint64_t reads = work->reads;
    hdf5_write(work);
    peer.file = H5Fopen(hdf5_path, H5F_ACC_RDONLY, H5P_DEFAULT);
    peer.data = H5Dopen2(peer.file, "data", H5P_DEFAULT);
    peer.space = H5Dget_space(peer.data);
    peer.memory = H5Screate_simple(2, row, NULL);
    work->peer = &peer;
    work->reads = reads < 20000 ? reads : 20000;
    snprintf(name, sizeof name, "  HDF5 %d.%d.%d in C, contiguous", H5_VERS_MAJOR, H5_VERS_MINOR,
             H5_VERS_RELEASE);
    add_reads(table, name, work, bench_measure(read_hdf5, work, runs), &rate);
    snprintf(table->rows[table->count - 1].note, sizeof table->rows[0].note, "ours is %.1f times as fast",
             ours / rate);
    work->reads = reads;
    H5Sclose(peer.memory);
    H5Sclose(peer.space);
    H5Dclose(peer.data);
    H5Fclose(peer.file);
    unlink(hdf5_path);
}
#else
static void bench_hdf5(bench_table *table, reading *work, unsigned runs, double ours)
{
    (void)work, (void)runs, (void)ours;
    snprintf(bench_add(table, "  HDF5 in C", 0, 0, "")->note, sizeof table->rows[0].note,
             "not installed (libhdf5-dev)");
}
#endif

static void bench_random(bench_table *table, const options *opts, const char *path, uint64_t count,
                         size_t size, const char *shown, const char *peers, const char *task)
{
    bool is_small = size < LARGE;
    data_set opened = data_open(path, COFFER_ACCESS_AUTO);
    reading work = { .set = opened.set, .count = count, .size = size, .bytes = COFFER_BYTES_INIT };
    char name[80];
    double limit, copied, viewed;
    uint8_t *memory = malloc((size_t)count * size);
    work.out = malloc(size);
    work.order = malloc((size_t)count * sizeof *work.order);
    work.reads = is_small ? 4 * count : 2 * count;
    if (!memory || !work.out || !work.order)
        exit(3);
    for (uint64_t i = 0; i < count; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        work.order[i] = coffer_mldf_shuffle_at(count, 1, 0, i);
        bench_must(coffer_mldf_read(&work.bytes, NULL, work.set, i, 0, &err), &err, path);
        memcpy(memory + i * size, work.bytes.data, size);
    }
    work.memory = memory;
    snprintf(name, sizeof name, "random memory copies of %s, 1 core", shown);
    add_reads(table, name, &work, bench_measure(read_memory, &work, opts->runs), &limit);
    snprintf(name, sizeof name, "random reads of %s, 1 core", shown);
    add_reads(table, name, &work, bench_measure(read_copied, &work, opts->runs), &copied);
    table->rows[table->count - 1].goal = size == SMALL ? 1 : 0.9 * limit;
    snprintf(name, sizeof name, "random views of %s, copied, 1 core", shown);
    add_reads(table, name, &work, bench_measure(read_viewed, &work, opts->runs), &viewed);
    snprintf(name, sizeof name, "random views of %s, 1 core", shown);
    add_views(table, name, &work, bench_measure(view_samples, &work, opts->runs));
    bench_lmdb(table, &work, opts->runs, copied);
    bench_hdf5(table, &work, opts->runs, copied);
    if (task)
        data_add_peers(table, peers, task,
                       is_small ? (double)count / 1e6 : (double)count * (double)size / 1e9,
                       is_small ? "M samples/s" : "GB/s", copied);
    coffer_free(work.bytes.data);
    free(work.out);
    free(work.order);
    free(memory);
    data_close(&opened);
}

/* ---- Batches ---- */

typedef struct batching {
    coffer_mldf_batch *batch;
    coffer_mldf_target target;
    uint64_t samples[BATCH], count, next;
    const uint8_t *memory;
    coffer__pool *pool;
} batching;

static void choose(batching *work)
{
    for (size_t i = 0; i < BATCH; i++)
        work->samples[i] = coffer_mldf_shuffle_at(work->count, 2, 0, work->next++ % work->count);
}

static void read_batch(void *context)
{
    batching *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    choose(work);
    bench_must(coffer_mldf_batch_read(work->batch, work->samples, BATCH, &work->target, 1, &err), &err,
               "batch");
}

static coffer_status copy_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    batching *work = context;
    (void)worker, (void)err;
    memcpy((uint8_t *)work->target.data + index * LARGE, work->memory + work->samples[index] * LARGE, LARGE);
    return COFFER_OK;
}

static void copy_batch(void *context)
{
    batching *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    choose(work);
    bench_must(coffer__pool_run(work->pool, BATCH, copy_one, work, &err), &err, "copy");
}

static void bench_batches(bench_table *table, const options *opts)
{
    data_set opened = data_open(paths[LARGE_SET], COFFER_ACCESS_AUTO);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_batch_opts batch_opts = COFFER_MLDF_BATCH_OPTS_INIT;
    batching work = { .count = opts->large_count, .target = COFFER_MLDF_TARGET_INIT };
    double gigabytes = (double)BATCH * LARGE / 1e9;
    batch_opts.threads = 2;
    bench_must(coffer__pool_new(&work.pool, 2, &err), &err, "threads");
    bench_must(coffer_mldf_batch_new(&work.batch, opened.set, &batch_opts, &err), &err, "batch");
    uint8_t *memory = malloc((size_t)opts->large_count * LARGE);
    work.memory = memory;
    work.target.data = malloc((size_t)BATCH * LARGE);
    work.target.data_size = (size_t)BATCH * LARGE;
    work.target.stride = LARGE;
    if (!memory || !work.target.data)
        exit(3);
    memset(memory, 1, (size_t)opts->large_count * LARGE);
    unsigned runs = 4 * opts->runs < 99 ? 4 * opts->runs : 99;
    bench_time copy = bench_measure(copy_batch, &work, runs);
    bench_add_rate(table, "memory copies, 256 × 100 KB, 2 cores", gigabytes, copy, "GB/s");
    bench_row *row = bench_add_rate(table, "read_batch, 256 × 100 KB, 2 cores", gigabytes,
                                    bench_measure(read_batch, &work, runs), "GB/s");
    row->goal = 0.8 * gigabytes / copy.median;
    coffer_mldf_batch_free(work.batch);
    coffer__pool_free(work.pool);
    free(work.target.data);
    free(memory);
    data_close(&opened);
}

/* ---- Columns and opening ---- */

typedef struct column {
    const coffer_mldf *set;
    uint64_t count;
    int64_t *out;
    uint32_t threads;
} column;

static void read_column(void *context)
{
    column *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    const coffer_mldf_column_opts opts = { sizeof opts, work->threads };
    bench_must(coffer_mldf_read_column(work->out, work->set, 0, 0, work->count, &opts, &err), &err, "column");
}

static void open_and_close(void *context)
{
    data_set opened = data_open(context, COFFER_ACCESS_AUTO);
    data_close(&opened);
}

static void bench_columns(bench_table *table, const options *opts)
{
    column work = { .count = opts->rows, .out = malloc((size_t)opts->rows * 8) };
    char name[80];
    if (!work.out)
        exit(3);
    for (int file = LABELS; file <= WIDE; file++) {
        data_set opened = data_open(paths[file], COFFER_ACCESS_AUTO);
        unsigned row_size = coffer_mldf_row_size(opened.set);
        work.set = opened.set;
        for (work.threads = 1; work.threads <= 2; work.threads++) {
            snprintf(name, sizeof name, "column of %.0f M numbers, rows of %u bytes, %u core%s",
                     (double)opts->rows / 1e6, row_size, work.threads, work.threads == 1 ? "" : "s");
            bench_row *row = bench_add_rate(table, name, (double)opts->rows * row_size / 1e9,
                                            bench_measure(read_column, &work, opts->runs), "GB/s of rows");
            row->goal = work.threads == 1 ? 4 : 0;
        }
        data_close(&opened);
    }
    bench_time time = bench_measure(open_and_close, paths[WIDE], 21);
    snprintf(name, sizeof name, "open, %.0f M samples", (double)opts->rows / 1e6);
    bench_row *row = bench_add(table, name, time.median * 1e3, time.best * 1e3, "ms");
    row->goal = 1;
    row->goal_is_maximum = true;
    free(work.out);
}

/* ---- Cold reads ---- */

typedef struct cold {
    const char *path;
    uint64_t *offsets, count;
    uint8_t *out;
    bool bare;
} cold;

/* Out of the page cache, as far as the system lets go of it. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fdatasync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        exit(3);
    close(fd);
}

static double read_cold(const cold *work)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    forget(work->path);
    int fd = open(work->path, O_RDONLY | O_CLOEXEC);
    data_set opened = data_open(work->path, COFFER_ACCESS_READ);
    if (work->bare && posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) != 0)
        exit(3);
    double start = bench_now();
    for (uint64_t i = 0; i < work->count; i++) {
        uint64_t sample = coffer_mldf_shuffle_at(work->count, 3, 0, i);
        if (!work->bare)
            bench_must(coffer_mldf_read(&bytes, NULL, opened.set, sample, 0, &err), &err, "cold");
        else if (pread(fd, work->out, LARGE, (off_t)work->offsets[sample]) != LARGE)
            exit(3);
    }
    double seconds = bench_now() - start;
    coffer_free(bytes.data);
    data_close(&opened);
    close(fd);
    return seconds;
}

/* Turn and turn about: what else the disk does falls on both. */
static void bench_cold(bench_table *table, const options *opts)
{
    cold work = { .path = paths[LARGE_SET], .count = opts->large_count, .out = malloc(LARGE) };
    data_set opened = data_open(work.path, COFFER_ACCESS_READ);
    double bare[99], ours[99], gigabytes = (double)work.count * LARGE / 1e9;
    work.offsets = malloc((size_t)work.count * sizeof *work.offsets);
    if (!work.out || !work.offsets)
        exit(3);
    for (uint64_t i = 0; i < work.count; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        bench_must(coffer_mldf_entry_at(&entry, opened.set, i, 0, &err), &err, work.path);
        work.offsets[i] = entry.offset;
    }
    data_close(&opened);
    for (unsigned i = 0; i < opts->runs; i++) {
        work.bare = true;
        bare[i] = read_cold(&work);
        work.bare = false;
        ours[i] = read_cold(&work);
    }
    qsort(bare, opts->runs, sizeof bare[0], bench_compare);
    qsort(ours, opts->runs, sizeof ours[0], bench_compare);
    bench_time bare_time = { bare[opts->runs / 2], bare[0] }, our_time = { ours[opts->runs / 2], ours[0] };
    bench_add_rate(table, "bare pread, 100 KB, cold, 1 core", gigabytes, bare_time, "GB/s");
    bench_row *row =
        bench_add_rate(table, "random reads of 100 KB, cold, 1 core", gigabytes, our_time, "GB/s");
    row->goal = 0.95 * gigabytes / bare_time.median;
    free(work.offsets);
    free(work.out);
}

/* ---- The program ---- */

static uint64_t number_after(int argc, char **argv, int *i)
{
    return *i + 1 < argc ? strtoull(argv[++*i], NULL, 10) : 0;
}

static options read_options(int argc, char **argv)
{
    options opts = { 400000, 4000, 10000000, 5, false, getenv("COFFER_BENCH_DATA") };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            opts.json = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            bench_clock = CLOCK_PROCESS_CPUTIME_ID;
        else if (!strcmp(argv[i], "--small"))
            opts.small_count = number_after(argc, argv, &i);
        else if (!strcmp(argv[i], "--large"))
            opts.large_count = number_after(argc, argv, &i);
        else if (!strcmp(argv[i], "--rows"))
            opts.rows = number_after(argc, argv, &i);
        else if (!strcmp(argv[i], "--runs"))
            opts.runs = (unsigned)number_after(argc, argv, &i);
        else
            opts.runs = 0;
    }
    if (!opts.folder)
        opts.folder = ".";
    if (!opts.small_count || !opts.large_count || !opts.rows || !opts.runs || opts.runs > 99) {
        fputs("usage: bench_mldf_read [--small N] [--large N] [--rows N] [--runs N] [--cpu-time] [--json]\n",
              stderr);
        exit(2);
    }
    return opts;
}

int main(int argc, char **argv)
{
    static bench_table table;
    options opts = read_options(argc, argv);
    char arguments[8192];
    name_files(opts.folder);
    data_write_set(paths[SMALL_SET], opts.small_count, SMALL);
    data_write_set(paths[MIDDLE_SET], opts.large_count * 5, MIDDLE);
    data_write_set(paths[LARGE_SET], opts.large_count, LARGE);
    data_write_set(paths[LARGEST_SET], opts.large_count / 10 + 1, LARGEST);
    data_write_scalars(paths[LABELS], opts.rows, 1);
    data_write_scalars(paths[WIDE], opts.rows, 4);
    snprintf(arguments, sizeof arguments, "'%s' %llu %llu %u", opts.folder,
             (unsigned long long)opts.small_count, (unsigned long long)opts.large_count, opts.runs);
    char *peers = data_run_peers("mldf_read.py", arguments);
    bench_random(&table, &opts, paths[SMALL_SET], opts.small_count, SMALL, "1 KB", peers, "1k");
    bench_random(&table, &opts, paths[MIDDLE_SET], opts.large_count * 5, MIDDLE, "10 KB", NULL, NULL);
    bench_random(&table, &opts, paths[LARGE_SET], opts.large_count, LARGE, "100 KB", peers, "100k");
    bench_random(&table, &opts, paths[LARGEST_SET], opts.large_count / 10 + 1, LARGEST, "1 MB", NULL, NULL);
    bench_batches(&table, &opts);
    bench_columns(&table, &opts);
    bench_cold(&table, &opts);
    free(peers);
    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
