/* Quantized payloads: decoding beside a non-temporal memset, encoding, products, and how close the fitter
 * comes to the optimum; next to ggml's kernels for the type of the same width.
 *
 *   bench_quant [--size N] [--runs N] [--cpu-time] [--only WORD] [--type WORD] [--columns N] [--json]
 *
 * N : rows and columns, a multiple of 256. --cpu-time counts the processor's time instead of the clock's, for
 * a machine that has other work; then what two threads take is halved. --only : decode, encode, products or
 * quality. --type, --columns : products of one type, with one number of vectors. */
#include "base/work.h"
#include "bench.h"
#include "coffer/coffer.h"
#include "quant_ggml.h"

#include <math.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define TYPES 8
#define SHARED_TYPES 6 /* that ggml has as well */

static const coffer_dtype all_types[TYPES] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                               COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                               COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };

typedef struct options {
    uint64_t size;
    unsigned runs;
    bool json;
    const char *only, *type;
    unsigned columns; /* 0 = all */
} options;

typedef struct bench {
    options opts;
    bench_table table;
    ggml_peer ggml;
    float *values, *out; /* size × size */
    coffer_quant_tensor tensors[TYPES];
    void *theirs[SHARED_TYPES]; /* the same numbers in ggml's types */
} bench;

static void *must_have(void *memory)
{
    if (!memory) {
        fputs("no memory\n", stderr);
        exit(3);
    }
    return memory;
}

static void *room(size_t size)
{
    void *memory = must_have(aligned_alloc(64, (size + 63) / 64 * 64));
    memset(memory, 1, size);
    return memory;
}

/* ---- Numbers ---- */

typedef enum shape { GAUSS, LAPLACE, STUDENT, SHAPES } shape;
static const char *const shape_names[SHAPES] = { "Gaussian", "Laplace", "Student-t5" };

static double uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(uint64_t *seed)
{
    double radius = sqrt(-2.0 * log(uniform(seed)));
    return radius * cos(6.283185307179586 * uniform(seed));
}

static double draw(shape from, uint64_t *seed)
{
    double u = uniform(seed) - 0.5, squares = 0.0;
    if (from == GAUSS)
        return gauss(seed);
    if (from == LAPLACE)
        return copysign(log(1.0 - 2.0 * fabs(u)), u);
    for (int i = 0; i < 5; i++) {
        double g = gauss(seed);
        squares += g * g;
    }
    return gauss(seed) / sqrt(squares / 5.0);
}

static void fill(float *values, uint64_t count, shape from, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)(0.02 * draw(from, &seed));
}

/* ---- Tensors ---- */

static coffer_quant_tensor new_tensor(coffer_dtype dtype, uint64_t rows, uint64_t cols)
{
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t size = 0;
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = cols;
    bench_must(coffer_quant_size(&size, &tensor, &err), &err, coffer_dtype_name(dtype));
    tensor.payload = room((size_t)size);
    tensor.size = (size_t)size;
    return tensor;
}

static void encode(coffer_quant_tensor *tensor, const float *values, coffer_quant_method method)
{
    coffer_quant_encode_opts opts = COFFER_QUANT_ENCODE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.method = method;
    bench_must(coffer_quant_encode((void *)(uintptr_t)tensor->payload, tensor, values, &opts, &err), &err,
               "encode");
}

static void make_tensors(bench *all)
{
    uint64_t size = all->opts.size;
    float scale = 0.01f;
    all->values = room(size * size * sizeof(float));
    all->out = room(size * size * sizeof(float));
    fill(all->values, size * size, GAUSS, 1);
    for (size_t i = 0; i < TYPES; i++) {
        all->tensors[i] = new_tensor(all_types[i], size, size);
        if (i < SHARED_TYPES)
            encode(&all->tensors[i], all->values, COFFER_QUANT_ABSMAX);
        else
            memcpy((void *)(uintptr_t)all->tensors[i].payload, &scale, sizeof scale);
    }
    for (size_t i = 0; i < SHARED_TYPES && !all->ggml.missing[0]; i++) {
        int type = all->ggml.types[i].number;
        all->theirs[i] = room(all->ggml.row_size(type, (int64_t)size) * size);
        all->ggml.quantize(type, all->values, all->theirs[i], 0, (int64_t)size, (int64_t)size, NULL);
    }
}

static void free_tensors(bench *all)
{
    for (size_t i = 0; i < TYPES; i++)
        free((void *)(uintptr_t)all->tensors[i].payload);
    for (size_t i = 0; i < SHARED_TYPES; i++)
        free(all->theirs[i]);
    free(all->values);
    free(all->out);
}

/* One kernel at work, ours or theirs. */
typedef struct work {
    bench *all;
    size_t type;
    coffer_quant_method method;
    unsigned columns;
    coffer_quant_workers *workers;
    coffer__pool *pool;
    float *x, *y;
    void *x_theirs;
} work;

static bench_row *add_rate(bench *all, const char *what, const char *type, double amount, bench_time time,
                           const char *unit)
{
    char name[80];
    snprintf(name, sizeof name, "%s %s", what, type);
    return bench_add_rate(&all->table, name, amount, time, unit);
}

static void add_missing(bench *all, const char *what)
{
    char name[80];
    snprintf(name, sizeof name, "  ggml, %s", what);
    snprintf(bench_add(&all->table, name, 0, 0, "")->note, sizeof all->table.rows[0].note, "%s",
             all->ggml.missing);
}

static void note_ratio(bench_row *row, double ours)
{
    snprintf(row->note, sizeof row->note, "ours is %.2f times as fast", ours / row->median);
}

/* ---- Decoding ---- */

static void copy_values(void *context)
{
    bench *all = context;
    memcpy(all->out, all->values, all->opts.size * all->opts.size * sizeof(float));
}

static void set_values(void *context)
{
    bench *all = context;
#if defined(__SSE2__)
    __m128i *to = (__m128i *)(void *)all->out, ones = _mm_set1_epi8(1);
    for (uint64_t i = 0; i < all->opts.size * all->opts.size / 4; i++)
        _mm_stream_si128(&to[i], ones);
    _mm_sfence();
#else
    memset(all->out, 1, all->opts.size * all->opts.size * sizeof(float));
#endif
}

static void decode_ours(void *context)
{
    const work *job = context;
    const coffer_quant_tensor *tensor = &job->all->tensors[job->type];
    coffer_error err = COFFER_ERROR_INIT;
    bench_must(coffer_quant_decode(job->all->out, COFFER_DTYPE_F32, tensor, 0, tensor->rows, &err), &err,
               "decode");
}

static void decode_theirs(void *context)
{
    const work *job = context;
    int64_t count = (int64_t)(job->all->opts.size * job->all->opts.size);
    job->all->ggml.types[job->type].decode_row(job->all->theirs[job->type], job->all->out, count);
}

static void bench_decode(bench *all)
{
    static const double times_theirs[SHARED_TYPES] = { 1, 1, 3, 1, 3, 3 };
    double gigabytes = (double)(all->opts.size * all->opts.size) * sizeof(float) / 1e9;
    unsigned runs = all->opts.runs;
    add_rate(all, "memcpy of", "the output", gigabytes, bench_measure(copy_values, all, runs), "GB/s");
    double limit = add_rate(all, "non-temporal memset of", "the output", gigabytes,
                            bench_measure(set_values, all, runs), "GB/s")
                       ->median;
    for (size_t i = 0; i < TYPES; i++) {
        work job = { .all = all, .type = i };
        bench_row *row = add_rate(all, "decode", coffer_dtype_name(all_types[i]), gigabytes,
                                  bench_measure(decode_ours, &job, runs), "GB/s");
        double ours = row->median;
        snprintf(row->note, sizeof row->note, "%.0f %% of the memset", 100 * ours / limit);
        if (i == 0 || i == 1 || i == 3)
            row->goal = 0.7 * limit;
        if (i >= SHARED_TYPES || all->ggml.missing[0])
            continue;
        bench_row *theirs = add_rate(all, "  ggml decode", all->ggml.types[i].name, gigabytes,
                                     bench_measure(decode_theirs, &job, runs), "GB/s");
        note_ratio(theirs, ours);
        if (times_theirs[i] * theirs->median > row->goal)
            row->goal = times_theirs[i] * theirs->median;
    }
    if (all->ggml.missing[0])
        add_missing(all, "decode");
}

/* ---- Encoding ---- */

static void encode_ours(void *context)
{
    work *job = context;
    coffer_quant_tensor part = job->all->tensors[job->type];
    part.rows = 256;
    encode(&part, job->all->values, job->method);
}

static void encode_theirs(void *context)
{
    work *job = context;
    bench *all = job->all;
    all->ggml.quantize(all->ggml.types[job->type].number, all->values, all->theirs[job->type], 0, 256,
                       (int64_t)all->opts.size, NULL);
}

/* The first 256 rows, with the same bytes as before. */
static void bench_encode(bench *all)
{
    double millions = (double)all->opts.size * 256 / 1e6;
    for (size_t i = 0; i < SHARED_TYPES; i++) {
        work job = { .all = all, .type = i, .method = COFFER_QUANT_ABSMAX };
        coffer_quant_tensor whole = all->tensors[i];
        all->tensors[i] = new_tensor(all_types[i], 256, all->opts.size);
        const char *type = coffer_dtype_name(all_types[i]);
        add_rate(all, "encode by absmax", type, millions, bench_measure(encode_ours, &job, all->opts.runs),
                 "M weights/s");
        job.method = COFFER_QUANT_FIT;
        bench_row *row = add_rate(all, "encode by fit", type, millions,
                                  bench_measure(encode_ours, &job, all->opts.runs), "M weights/s");
        row->goal = i == 0 || i == 1 || i == 3 ? 60 : 30;
        double ours = row->median;
        free((void *)(uintptr_t)all->tensors[i].payload);
        all->tensors[i] = whole;
        if (!all->ggml.missing[0])
            note_ratio(add_rate(all, "  ggml encode", all->ggml.types[i].name, millions,
                                bench_measure(encode_theirs, &job, all->opts.runs), "M weights/s"),
                       ours);
    }
    if (all->ggml.missing[0])
        add_missing(all, "encode");
}

/* ---- Products ---- */

static void multiply_ours(work *job, coffer_quant_inputs inputs)
{
    const coffer_quant_tensor *tensor = &job->all->tensors[job->type];
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.inputs = inputs;
    opts.workers = job->workers;
    if (job->columns == 1)
        bench_must(coffer_quant_matvec(job->y, tensor, job->x, &opts, &err), &err, "matvec");
    else
        bench_must(coffer_quant_matmul(job->y, tensor, job->x, job->columns, &opts, &err), &err, "matmul");
}

static void multiply_rounded(void *context)
{
    multiply_ours(context, COFFER_QUANT_INPUTS_INT8);
}

static void multiply_exactly(void *context)
{
    multiply_ours(context, COFFER_QUANT_INPUTS_F32);
}

#define ROWS_AT_A_TIME 64 /* as ours */

static coffer_status multiply_their_rows(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const work *job = context;
    const ggml_type *type = &job->all->ggml.types[job->type];
    int count = (int)job->all->opts.size;
    size_t row_size = job->all->ggml.row_size(type->number, count);
    size_t x_size = job->all->ggml.row_size(type->x_number, count);
    const uint8_t *rows = job->all->theirs[job->type], *x = job->x_theirs;
    (void)worker;
    (void)err;
    for (uint64_t row = index * ROWS_AT_A_TIME; row < (index + 1) * ROWS_AT_A_TIME; row++) {
        for (unsigned column = 0; column < job->columns; column++)
            type->dot_row(count, &job->y[row * job->columns + column], 0, rows + row * row_size, 0,
                          x + column * x_size, 0, 1);
    }
    return COFFER_OK;
}

/* x is converted for their kernels each time: that is part of a product. */
static void multiply_theirs(void *context)
{
    work *job = context;
    const ggml_type *type = &job->all->ggml.types[job->type];
    int64_t count = (int64_t)job->all->opts.size;
    size_t x_size = job->all->ggml.row_size(type->x_number, count);
    for (unsigned column = 0; column < job->columns; column++)
        type->encode_row(job->x + column * (size_t)count, (uint8_t *)job->x_theirs + column * x_size, count);
    coffer__pool_run(job->pool, (uint64_t)count / ROWS_AT_A_TIME, multiply_their_rows, job, NULL);
}

static bench_time per_thread(bench_time time, unsigned threads)
{
    if (bench_clock != CLOCK_PROCESS_CPUTIME_ID)
        return time;
    return (bench_time){ time.median / threads, time.best / threads };
}

/* Several works in turn, so that whatever else the machine does slows all of them. */
static void measure_in_turn(bench_time *times, void (*const works[])(void *), size_t count, void *context,
                            unsigned runs)
{
    double seconds[3][99];
    for (size_t i = 0; i < count; i++)
        works[i](context);
    for (unsigned run = 0; run < runs; run++) {
        for (size_t i = 0; i < count; i++) {
            double start = bench_now();
            works[i](context);
            seconds[i][run] = bench_now() - start;
        }
    }
    for (size_t i = 0; i < count; i++) {
        qsort(seconds[i], runs, sizeof seconds[i][0], bench_compare);
        times[i] = (bench_time){ seconds[i][runs / 2], seconds[i][0] };
    }
}

/* Rates are of weights times vectors: types of different sizes compare. */
static void bench_product(bench *all, work *job, const char *what, unsigned threads)
{
    static void (*const works[3])(void *) = { multiply_rounded, multiply_exactly, multiply_theirs };
    bool has_theirs = job->type < SHARED_TYPES && !all->ggml.missing[0];
    size_t count = has_theirs ? 3 : 2;
    double billions = (double)(all->opts.size * all->opts.size) * job->columns / 1e9;
    const char *names[3] = { "int8 x,", "f32 x,", "ggml" };
    bench_time times[3];
    bench_row *rows[3];
    measure_in_turn(times, works, count, job, all->opts.runs);
    for (size_t i = 0; i < count; i++) {
        char name[80];
        const char *type = i < 2 ? coffer_dtype_name(all_types[job->type]) : all->ggml.types[job->type].name;
        snprintf(name, sizeof name, "%s%s %s", i < 2 ? "" : "  ", what, names[i]);
        rows[i] = add_rate(all, name, type, billions, per_thread(times[i], threads), "G weights/s");
    }
    if (!has_theirs)
        return;
    rows[0]->goal = rows[2]->median;
    rows[1]->goal = 0.7 * rows[2]->median;
    snprintf(rows[2]->note, sizeof rows[2]->note, "ours is %.2f and %.2f times as fast",
             rows[0]->median / rows[2]->median, rows[1]->median / rows[2]->median);
}

static void bench_products(bench *all)
{
    static const struct {
        const char *name;
        unsigned columns, threads;
    } kinds[] = { { "matvec, 1 thread,", 1, 1 },          { "matvec, 2 threads,", 1, 2 },
                  { "matmul of 8, 1 thread,", 8, 1 },     { "matmul of 32, 1 thread,", 32, 1 },
                  { "matmul of 128, 1 thread,", 128, 1 }, { "matmul of 512, 1 thread,", 512, 1 },
                  { "matmul of 512, 2 threads,", 512, 2 } };
    enum { MOST = 512 };
    size_t size = (size_t)all->opts.size;
    coffer_error err = COFFER_ERROR_INIT;
    work job = { .all = all };
    job.x = room(MOST * size * sizeof(float));
    job.y = room(MOST * size * sizeof(float));
    job.x_theirs = room((size_t)2 * MOST * size);
    fill(job.x, MOST * size, GAUSS, 3);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (all->opts.columns && all->opts.columns != kinds[k].columns)
            continue;
        bench_must(coffer_quant_workers_new(&job.workers,
                                            &(coffer_quant_workers_opts){ sizeof(coffer_quant_workers_opts),
                                                                          kinds[k].threads },
                                            &err),
                   &err, "threads");
        bench_must(coffer__pool_new(&job.pool, kinds[k].threads, &err), &err, "threads");
        job.columns = kinds[k].columns;
        for (job.type = 0; job.type < TYPES; job.type++) {
            if (!all->opts.type || !strcmp(all->opts.type, coffer_dtype_name(all_types[job.type])))
                bench_product(all, &job, kinds[k].name, kinds[k].threads);
        }
        coffer_quant_workers_free(job.workers);
        coffer__pool_free(job.pool);
    }
    if (all->ggml.missing[0])
        add_missing(all, "products");
    free(job.x);
    free(job.y);
    free(job.x_theirs);
}

/* ---- Quality ---- */

static double error_of(coffer_dtype dtype, const float *values, uint64_t rows, uint64_t cols,
                       coffer_quant_method method)
{
    coffer_quant_tensor tensor = new_tensor(dtype, rows, cols);
    coffer_error err = COFFER_ERROR_INIT;
    float *decoded = room(rows * cols * sizeof *decoded);
    double noise = 0.0;
    encode(&tensor, values, method);
    bench_must(coffer_quant_decode(decoded, COFFER_DTYPE_F32, &tensor, 0, rows, &err), &err, "decode");
    for (uint64_t i = 0; i < rows * cols; i++) {
        double miss = (double)values[i] - (double)decoded[i];
        noise += miss * miss;
    }
    free(decoded);
    free((void *)(uintptr_t)tensor.payload);
    return sqrt(noise);
}

static void bench_quality(bench *all)
{
    static const double below[SHARED_TYPES] = { 0.06, 0.06, 0.08, 0.06, 0.13, 0.35 };
    enum { ROWS = 16, COLS = 1024 };
    float *values = room(sizeof(float[ROWS * COLS]));
    for (size_t t = 0; t < SHARED_TYPES; t++) {
        bool supers = t >= 2;
        for (shape from = GAUSS; from < SHAPES; from++) {
            const char *type = coffer_dtype_name(all_types[t]);
            uint64_t rows = supers ? 1 : ROWS; /* trying everything for a super takes a while */
            char name[80];
            fill(values, ROWS * COLS, from, 100 + from);
            double exact = error_of(all_types[t], values, rows, COLS, COFFER_QUANT_EXACT);
            double ratio = error_of(all_types[t], values, rows, COLS, COFFER_QUANT_FIT) / exact;
            snprintf(name, sizeof name, "error of fit, %s, %s", type, shape_names[from]);
            bench_row *row = bench_add(&all->table, name, ratio, ratio, "of exact");
            row->goal = supers ? 1.01 : 1.002;
            row->goal_is_maximum = true;
            ratio = error_of(all_types[t], values, ROWS, COLS, COFFER_QUANT_FIT) /
                    error_of(all_types[t], values, ROWS, COLS, COFFER_QUANT_ABSMAX);
            row = bench_add(&all->table, name, ratio, ratio, "of absmax");
            row->goal = from == GAUSS ? 1.0 - below[t] : 0.0;
            row->goal_is_maximum = true;
        }
    }
    free(values);
}

/* ---- The program ---- */

static options read_options(int argc, char **argv)
{
    options opts = { 4096, 9, false, NULL, NULL, 0 };
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--json"))
            opts.json = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            bench_clock = CLOCK_PROCESS_CPUTIME_ID;
        else if (!strcmp(argv[i], "--size") && more)
            opts.size = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--runs") && more)
            opts.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && more)
            opts.only = argv[++i];
        else if (!strcmp(argv[i], "--type") && more)
            opts.type = argv[++i];
        else if (!strcmp(argv[i], "--columns") && more)
            opts.columns = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            opts.runs = 0;
    }
    if (opts.runs == 0 || opts.runs > 99 || opts.size % 256 != 0 || opts.size == 0 || opts.size > 65536) {
        fputs(
            "usage: bench_quant [--size N] [--runs N] [--cpu-time] [--only WORD] [--type WORD] [--columns N] "
            "[--json]\n",
            stderr);
        exit(2);
    }
    return opts;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(bench *all);
    } parts[] = { { "decode", bench_decode },
                  { "encode", bench_encode },
                  { "products", bench_products },
                  { "quality", bench_quality } };
    static bench all;
    all.opts = read_options(argc, argv);
    all.ggml = ggml_load();
    make_tensors(&all);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!all.opts.only || !strcmp(all.opts.only, parts[i].name))
            parts[i].run(&all);
    }
    free_tensors(&all);
    if (all.opts.json)
        bench_print_json(&all.table);
    else
        bench_print(&all.table);
    return 0;
}
