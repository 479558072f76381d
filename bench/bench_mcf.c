/* MCF: opening and listing, reading by mapping, pread and past the page cache, writing beside cp, checking,
 * editing.
 *
 *   bench_mcf [--mib N] [--runs N] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "bench.h"
#include "coffer/coffer.h"
#include "coffer/mcf.h"

#include <fcntl.h>
#include <unistd.h>

#define TENSORS 64
#define LISTED 1000
#define DIRECT_THREADS 8 /* reads under way at a time keep a disk busy, not processors */

static char folder[3000], raw_path[4096], model_path[4096], copy_path[4096], list_path[4096], many_path[4096];

static void remove_data(void)
{
    unlink(raw_path);
    unlink(model_path);
    unlink(copy_path);
    unlink(list_path);
    unlink(many_path);
}

/* ---- Data ---- */

/* Numbers that repeat nowhere: no two payloads are equal. */
static void make_raw(uint64_t mib)
{
    size_t words = ((size_t)1 << 20) / sizeof(uint64_t);
    uint64_t *block = malloc((size_t)1 << 20), state = 88172645463325252u;
    FILE *file = fopen(raw_path, "wb");
    if (!block || !file)
        exit(3);
    for (uint64_t i = 0; i < mib; i++) {
        for (size_t k = 0; k < words; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block[k] = state;
        }
        if (fwrite(block, (size_t)1 << 20, 1, file) != 1)
            exit(3);
    }
    fclose(file);
    free(block);
}

static void make_list(const char *path, unsigned count)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    coffer_mcf_writer *writer = NULL;
    const uint64_t dims[2] = { 2, 2 };
    opts.overwrite = true;
    opts.durability = COFFER_DURABILITY_NONE;
    opts.no_dedup = true;
    bench_must(coffer_mcf_writer_create(&writer, path, &opts, &err), &err, path);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        uint32_t payload[4] = { i, i, i, i };
        snprintf(name, sizeof name, "model.layers.%u.self_attn.q_proj.weight", i);
        coffer_mcf_new_tensor tensor = {
            sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_F32, name, strlen(name), 2, dims, NULL
        };
        bench_must(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), &err, name);
        bench_must(coffer_mcf_writer_write(writer, payload, sizeof payload, &err), &err, name);
        bench_must(coffer_mcf_writer_end_tensor(writer, &err), &err, name);
    }
    bench_must(coffer_mcf_writer_commit(writer, &err), &err, path);
}

/* ---- Opening and listing ---- */

typedef struct listing {
    const char *path;
    coffer_access access;
    uint64_t seen; /* so that nothing is left out by the compiler */
} listing;

static void open_and_list(void *context)
{
    listing *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    opts.access = work->access;
    bench_must(coffer_source_open(&src, work->path, &opts, &err), &err, work->path);
    bench_must(coffer_mcf_open(&model, src, NULL, &err), &err, work->path);
    for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
        coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
        work->seen += tensor.elements + tensor.name_len + tensor.offset;
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void bench_open(bench_table *table, unsigned runs)
{
    listing mapped = { list_path, COFFER_ACCESS_MAP, 0 }, read = { list_path, COFFER_ACCESS_READ, 0 };
    listing many = { many_path, COFFER_ACCESS_MAP, 0 };
    bench_time time = bench_measure(open_and_list, &mapped, 99);
    bench_add(table, "open and list 1000 tensors, mapped", time.median * 1e6, time.best * 1e6, "us");
    time = bench_measure(open_and_list, &read, 99);
    bench_add(table, "open and list 1000 tensors, pread", time.median * 1e6, time.best * 1e6, "us");
    time = bench_measure(open_and_list, &many, runs);
    bench_add(table, "open and list a million tensors", time.median * 1e3, time.best * 1e3, "ms");
}

/* ---- Writing ---- */

typedef struct writing {
    uint64_t bytes;
    bool checksums, sync;
} writing;

static void write_model(void *context)
{
    const writing *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    coffer_mcf_writer *writer = NULL;
    coffer_source *src = NULL;
    uint64_t each = work->bytes / TENSORS;
    opts.overwrite = true;
    opts.no_checksums = !work->checksums;
    opts.durability = work->sync ? COFFER_DURABILITY_FULL : COFFER_DURABILITY_NONE;
    unlink(model_path); /* as for cp: taking the name of another file waits for the disk on some systems */
    bench_must(coffer_source_open(&src, raw_path, NULL, &err), &err, raw_path);
    bench_must(coffer_mcf_writer_create(&writer, model_path, &opts, &err), &err, model_path);
    for (unsigned i = 0; i < TENSORS; i++) {
        char name[32];
        snprintf(name, sizeof name, "tensor.%u", i);
        coffer_mcf_new_tensor tensor = {
            sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_U8, name, strlen(name), 1, &each, NULL
        };
        bench_must(coffer_mcf_writer_begin_tensor(writer, &tensor, &err), &err, name);
        bench_must(coffer_mcf_writer_write_from(writer, src, i * each, each, &err), &err, name);
        bench_must(coffer_mcf_writer_end_tensor(writer, &err), &err, name);
    }
    bench_must(coffer_mcf_writer_commit(writer, &err), &err, model_path);
    coffer_source_close(src);
}

static void run_command(const char *command)
{
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        exit(3);
    }
}

static void run_cp(void *context)
{
    char command[20000];
    bool sync = *(const bool *)context;
    snprintf(command, sizeof command, "rm -f '%s' && cp '%s' '%s'%s%s%s", copy_path, raw_path, copy_path,
             sync ? " && sync '" : "", sync ? copy_path : "", sync ? "'" : "");
    run_command(command);
}

/* As cp does it the file is not made safe; ours is, unless told otherwise: each beside its like. */
static void bench_write(bench_table *table, uint64_t bytes, unsigned runs)
{
    static const bool syncs[] = { false, true };
    for (size_t i = 0; i < 2; i++) {
        writing with = { bytes, true, syncs[i] }, without = { bytes, false, syncs[i] };
        const char *how = syncs[i] ? ", then fsync" : "";
        char name[80];
        bool sync = syncs[i];
        bench_time cp = bench_measure(run_cp, &sync, runs);
        snprintf(name, sizeof name, "cp%s", how);
        bench_add_rate(table, name, (double)bytes / 1e9, cp, "GB/s");
        snprintf(name, sizeof name, "write a model without sums%s", how);
        bench_add_rate(table, name, (double)bytes / 1e9, bench_measure(write_model, &without, runs), "GB/s");
        bench_time ours = bench_measure(write_model, &with, runs);
        snprintf(name, sizeof name, "write a model%s", how);
        bench_row *row = bench_add_rate(table, name, (double)bytes / 1e9, ours, "GB/s");
        row->goal = 0.85 * (double)bytes / 1e9 / cp.median;
        snprintf(row->note, sizeof row->note, "%.0f %% of cp", 100 * cp.median / ours.median);
    }
    unlink(copy_path);
}

/* ---- Reading all tensors ---- */

typedef struct reading {
    coffer_access access;
    uint32_t threads;
    bool cold;
    uint8_t *memory;
} reading;

static void forget_pages(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        exit(3);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static double read_model(const reading *work)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    void *outs[TENSORS];
    size_t tensors[TENSORS];
    double start;
    if (work->cold)
        forget_pages(model_path);
    start = bench_now();
    opts.access = work->access;
    bench_must(coffer_source_open(&src, model_path, &opts, &err), &err, model_path);
    bench_must(coffer_mcf_open(&model, src, NULL, &err), &err, model_path);
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = i;
        outs[i] = work->memory + i * coffer_mcf_tensor_at(model, i)->size;
    }
    bench_must(coffer_mcf_read_many(outs, model, tensors, TENSORS,
                                    &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts),
                                                             .threads = work->threads },
                                    &err),
               &err, model_path);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return bench_now() - start;
}

static double run_dd(const char *flags)
{
    char command[20000];
    double start;
    forget_pages(model_path);
    snprintf(command, sizeof command, "dd if='%s' of=/dev/null bs=4M %s 2>/dev/null", model_path, flags);
    start = bench_now();
    run_command(command);
    return bench_now() - start;
}

static bench_time best_of(double *seconds, unsigned runs)
{
    qsort(seconds, runs, sizeof seconds[0], bench_compare);
    return (bench_time){ seconds[runs / 2], seconds[0] };
}

static void bench_read(bench_table *table, uint64_t bytes, unsigned runs)
{
    static const struct {
        const char *name;
        coffer_access access;
        uint32_t threads;
    } modes[] = { { "mapping", COFFER_ACCESS_MAP, 0 },
                  { "parallel pread", COFFER_ACCESS_READ, 0 },
                  { "O_DIRECT", COFFER_ACCESS_DIRECT, DIRECT_THREADS } };
    uint8_t *memory = aligned_alloc(4096, (size_t)bytes + 4096);
    double seconds[99], best_cold = 0;
    if (!memory)
        exit(3);
    memset(memory, 0, (size_t)bytes);
    for (unsigned i = 0; i < runs; i++)
        seconds[i] = run_dd("");
    bench_time dd = best_of(seconds, runs);
    bench_add_rate(table, "dd, cold", (double)bytes / 1e9, dd, "GB/s");
    for (unsigned i = 0; i < runs; i++)
        seconds[i] = run_dd("iflag=direct");
    bench_add_rate(table, "dd iflag=direct, cold", (double)bytes / 1e9, best_of(seconds, runs), "GB/s");
    for (int cold = 1; cold >= 0; cold--) {
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
            reading work = { modes[m].access, modes[m].threads, cold, memory };
            char name[80];
            for (unsigned i = 0; i < runs; i++)
                seconds[i] = read_model(&work);
            bench_time time = best_of(seconds, runs);
            snprintf(name, sizeof name, "read all tensors by %s, %s", modes[m].name, cold ? "cold" : "warm");
            bench_add_rate(table, name, (double)bytes / 1e9, time, "GB/s");
            if (cold && (double)bytes / 1e9 / time.median > best_cold)
                best_cold = (double)bytes / 1e9 / time.median;
        }
    }
    bench_row *row = bench_add(table, "read all tensors, best mode, cold", best_cold, best_cold, "GB/s");
    row->goal = 0.9 * (double)bytes / 1e9 / dd.median;
    free(memory);
}

/* ---- Checking and editing ---- */

static void check_model(void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    (void)context;
    opts.full = true;
    bench_must(coffer_source_open(&src, model_path, NULL, &err), &err, model_path);
    bench_must(coffer_report_new(&report, 0, &err), &err, model_path);
    bench_must(coffer_check(report, src, &opts, &err), &err, model_path);
    if (coffer_report_count(report) > 0) {
        fprintf(stderr, "%s: %s\n", model_path, coffer_report_at(report, 0)->text);
        exit(3);
    }
    coffer_report_free(report);
    coffer_source_close(src);
}

static void edit_model(void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_editor *editor = NULL;
    char text[32];
    snprintf(text, sizeof text, "{\"n\": %u}", ++*(unsigned *)context);
    bench_must(coffer_mcf_editor_open(&editor, model_path, NULL, &err), &err, model_path);
    bench_must(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, text, strlen(text), &err), &err,
               model_path);
    bench_must(coffer_mcf_editor_commit(editor, &err), &err, model_path);
    coffer_mcf_editor_close(editor);
}

static void bench_rest(bench_table *table, uint64_t bytes, unsigned runs)
{
    unsigned edits = 0;
    bench_add_rate(table, "check --full", (double)bytes / 1e9, bench_measure(check_model, NULL, runs),
                   "GB/s");
    bench_time time = bench_measure(edit_model, &edits, runs);
    bench_add(table, "edit config.json in place", time.median * 1e3, time.best * 1e3, "ms");
}

int main(int argc, char **argv)
{
    static bench_table table;
    const char *data = getenv("COFFER_BENCH_DATA");
    uint64_t mib = 1024;
    unsigned runs = 5;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--mib") == 0 && i + 1 < argc)
            mib = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            return fprintf(stderr, "usage: bench_mcf [--mib N] [--runs N] [--json]\n"), 2;
    }
    if (mib == 0 || runs == 0 || runs > 99)
        return fprintf(stderr, "--mib and --runs take numbers from 1 on, --runs up to 99\n"), 2;
    snprintf(folder, sizeof folder, "%s", data ? data : ".");
    snprintf(raw_path, sizeof raw_path, "%s/bench-raw.bin", folder);
    snprintf(model_path, sizeof model_path, "%s/bench-model.mcf", folder);
    snprintf(copy_path, sizeof copy_path, "%s/bench-copy.bin", folder);
    snprintf(list_path, sizeof list_path, "%s/bench-list.mcf", folder);
    snprintf(many_path, sizeof many_path, "%s/bench-many.mcf", folder);
    atexit(remove_data);
    make_raw(mib);
    make_list(list_path, LISTED);
    make_list(many_path, 1000000);
    bench_open(&table, runs);
    bench_write(&table, mib << 20, runs);
    bench_read(&table, mib << 20, runs);
    bench_rest(&table, mib << 20, runs);
    if (json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
