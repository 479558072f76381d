/* A program built against an older header: its structs have the first members only. Each struct ends at a
 * page that must not be touched, so that a library that reads or writes past struct_size crashes here. */
#include <coffer/dtype.h>
#include <coffer/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Frozen structs: never change these ---- */

typedef struct old_shape { /* coffer_pycauset_shape */
    uint32_t struct_size;
    int type;
    coffer_dtype dtype;
    uint64_t rows, cols;
} old_shape;

typedef struct old_flag { /* coffer_pycauset_writer_opts, coffer_mcf_open_opts, coffer_mscan_open_opts,
                             coffer_mscan_writer_opts */
    uint32_t struct_size;
    bool flag;
} old_flag;

typedef struct old_u64 { /* coffer_pycauset_open_opts: generation; coffer_audio_info: frames;
                            coffer_mscan_step: token */
    uint32_t struct_size;
    uint64_t number;
} old_u64;

typedef struct old_u32 { /* coffer_pycauset_stats_opts: threads; coffer_image_info: kind;
                            coffer_mldf_writer_opts */
    uint32_t struct_size;
    uint32_t number;
} old_u32;

typedef struct old_field { /* coffer_mldf_field */
    uint32_t struct_size;
    const char *name;
    uint16_t type, flags;
} old_field;

typedef struct old_double { /* coffer_mscan_quantization: scale */
    uint32_t struct_size;
    double number;
} old_double;

typedef struct old_scan_options { /* coffer_mscan_writer_opts */
    uint32_t struct_size;
    bool overwrite;
    const char *model_name;
    uint32_t reserve_bytes, block_size;
    const old_double *activation, *grad_norm;
} old_scan_options;

typedef struct old_pointer { /* coffer_mlyze_open_opts: index_path; coffer_tensors_open_opts: limits */
    uint32_t struct_size;
    const void *pointer;
} old_pointer;

typedef struct old_conversion { /* coffer_convert_opts */
    uint32_t struct_size;
    const char *from, *to;
    bool overwrite;
} old_conversion;

typedef struct old_model_options { /* coffer_mcf_writer_opts */
    uint32_t struct_size;
    uint32_t align;
    bool no_dedup, no_checksums, overwrite;
} old_model_options;

typedef struct old_tensor { /* coffer_mcf_new_tensor */
    uint32_t struct_size;
    coffer_dtype dtype;
    const char *name;
    size_t name_len;
    uint32_t rank;
    const uint64_t *dims;
} old_tensor;

typedef struct old_kv { /* coffer_mcf_kv */
    uint32_t struct_size;
    int type;
    const char *key;
    uint32_t u32;
    float f32;
    const char *text;
    size_t text_len;
} old_kv;

typedef struct old_model_info { /* coffer_mcf_model_info */
    uint32_t struct_size;
    uint32_t arch;
    uint32_t vocab_size, hidden_size, layer_count, head_count, head_count_kv, context_length, train_context;
    uint32_t rope_type;
    float rope_freq_base, rope_scale;
    const char *model_name, *base_model;
    const old_kv *kvs;
    size_t kv_count;
} old_model_info;

typedef struct old_rule { /* coffer_mcf_quantize_rule */
    uint32_t struct_size;
    coffer_dtype dtype;
} old_rule;

typedef struct old_rules { /* coffer_mcf_quantize_opts */
    uint32_t struct_size;
    const old_rule *rules;
    size_t rule_count;
} old_rules;

typedef struct old_trace_options { /* coffer_mlyze_writer_opts */
    uint32_t struct_size;
    bool plain;
    int level;
    bool no_checksums, no_index, overwrite;
} old_trace_options;

typedef struct old_window { /* coffer_mlyze_stats_opts */
    uint32_t struct_size;
    uint64_t begin, end;
} old_window;

typedef struct old_scan_query { /* coffer_mscan_stats_opts, coffer_mscan_grid_opts: by, rows */
    uint32_t struct_size;
    int by;
} old_scan_query;

typedef struct old_record { /* coffer_mscan_record */
    uint32_t token_idx;
    uint16_t param_id, block_idx, activation, grad_norm;
} old_record;

typedef struct old_scale { /* coffer_mscan_quantization, as the library returns it */
    uint32_t struct_size;
    double scale, offset;
} old_scale;

enum { SCAN_BY_PARAM = 1, SCAN_GRAD_NORM = 1 };
enum { MLDF_INT = 1, MLDF_TEXT = 40, IMAGE_PNG = 2 };

coffer_status coffer_pycauset_writer_create(void **out, const char *path, const old_shape *shape,
                                            const old_flag *opts, coffer_error *err);
coffer_status coffer_pycauset_writer_put_rows(void *writer, const void *rows, uint64_t count,
                                              coffer_error *err);
coffer_status coffer_pycauset_writer_commit(void *writer, coffer_error *err);
coffer_status coffer_pycauset_open_path(void **out, const char *path, const old_u64 *opts, coffer_error *err);
coffer_status coffer_pycauset_get(double *real, double *imag, const void *matrix, uint64_t row, uint64_t col,
                                  coffer_error *err);
coffer_status coffer_pycauset_stats_new(void **out, const void *matrix, const old_u32 *opts,
                                        coffer_error *err);
void coffer_pycauset_stats_free(void *stats);
void coffer_pycauset_close(void *matrix);
coffer_status coffer_mldf_writer_create(void **out, const char *path, const old_field *fields,
                                        size_t field_count, const old_u32 *opts, coffer_error *err);
coffer_status coffer_mldf_writer_set_int(void *writer, size_t field, int64_t value, coffer_error *err);
coffer_status coffer_mldf_writer_set_text(void *writer, size_t field, const char *text, size_t len,
                                          coffer_error *err);
coffer_status coffer_mldf_writer_end_sample(void *writer, coffer_error *err);
coffer_status coffer_mldf_writer_commit(void *writer, coffer_error *err);
coffer_status coffer_mldf_open_path(void **out, const char *path, const void *opts, coffer_error *err);
size_t coffer_mldf_find_field(const void *set, const char *name);
void coffer_mldf_close(void *set);
coffer_status coffer_mcf_open_path(void **out, const char *path, const old_flag *opts, coffer_error *err);
void coffer_mcf_close(void *model);
coffer_status coffer_mscan_writer_create(void **out, const char *path, const old_scan_options *opts,
                                         coffer_error *err);
coffer_status coffer_mscan_writer_append_to(void **out, const char *path, const old_flag *opts,
                                            coffer_error *err);
coffer_status coffer_mscan_writer_add_param(uint16_t *id, void *writer, const char *name, coffer_error *err);
coffer_status coffer_mscan_writer_begin_sequence(void *writer, const char *source, coffer_error *err);
coffer_status coffer_mscan_writer_put_records(void *writer, const old_record *records, size_t count,
                                              coffer_error *err);
coffer_status coffer_mscan_writer_end_sequence(void *writer, uint64_t num_tokens, coffer_error *err);
coffer_status coffer_mscan_writer_commit(void *writer, coffer_error *err);
void coffer_mscan_writer_discard(void *writer);
coffer_status coffer_mscan_open_path(void **out, const char *path, const old_flag *opts, coffer_error *err);
const old_scale *coffer_mscan_quantization_of(const void *scan, int metric, uint16_t param_id,
                                              size_t sequence);
coffer_status coffer_mscan_replay_new(void **out, const void *scan, const void *opts, coffer_error *err);
coffer_status coffer_mscan_replay_next(bool *more, old_u64 *step, void *replay, coffer_error *err);
void coffer_mscan_replay_free(void *replay);
coffer_status coffer_mscan_stats_new(void **out, const void *scan, const old_scan_query *opts,
                                     coffer_error *err);
size_t coffer_mscan_stats_count(const void *stats);
void coffer_mscan_stats_free(void *stats);
coffer_status coffer_mscan_grid_new(void **out, const void *scan, const old_scan_query *opts,
                                    coffer_error *err);
void coffer_mscan_grid_free(void *grid);
void coffer_mscan_close(void *scan);
coffer_status coffer_mcf_writer_create(void **out, const char *path, const old_model_options *opts,
                                       coffer_error *err);
coffer_status coffer_mcf_writer_set_model_info(void *writer, const old_model_info *info, coffer_error *err);
coffer_status coffer_mcf_writer_begin_tensor(void *writer, const old_tensor *tensor, coffer_error *err);
coffer_status coffer_mcf_writer_write(void *writer, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer_mcf_writer_end_tensor(void *writer, coffer_error *err);
coffer_status coffer_mcf_writer_commit(void *writer, coffer_error *err);
coffer_status coffer_mcf_get_model_info(const old_model_info **out, const void *model, coffer_error *err);
coffer_status coffer_tensors_open_path(void **out, const char *path, const old_pointer *opts,
                                       coffer_error *err);
coffer_status coffer_tensors_stats_new(void **out, const void *set, const old_u32 *opts, coffer_error *err);
size_t coffer_tensors_stats_count(const void *stats);
void coffer_tensors_stats_free(void *stats);
size_t coffer_tensors_count(const void *set);
void coffer_tensors_close(void *set);
coffer_status coffer_mcf_quantize(void *out, const char *out_path, const char *in_path, const old_rules *opts,
                                  coffer_error *err);
coffer_status coffer_source_open(void **out, const char *path, const void *opts, coffer_error *err);
void coffer_source_close(void *src);
coffer_status coffer_convert(void *in, const char *out_path, const old_conversion *opts, coffer_error *err);
coffer_status coffer_report_new(void **out, size_t max_findings, coffer_error *err);
size_t coffer_report_count(const void *report);
void coffer_report_free(void *report);
coffer_status coffer_check(void *out, void *src, const old_flag *opts, coffer_error *err);
coffer_status coffer_mlyze_writer_create(void **out, const char *path, const old_trace_options *opts,
                                         coffer_error *err);
coffer_status coffer_mlyze_writer_put_alloc(void *writer, uint64_t time, uint64_t address, uint64_t size,
                                            uint64_t stack, uint16_t thread, coffer_error *err);
coffer_status coffer_mlyze_writer_put_free(void *writer, uint64_t time, uint64_t address, coffer_error *err);
coffer_status coffer_mlyze_writer_commit(void *writer, coffer_error *err);
coffer_status coffer_mlyze_open_path(void **out, const char *path, const old_pointer *opts,
                                     coffer_error *err);
coffer_status coffer_mlyze_stats_new(void **out, const void *trace, const old_window *opts,
                                     coffer_error *err);
const uint64_t *coffer_mlyze_stats_totals(const void *stats); /* the first members of coffer_mlyze_totals */
void coffer_mlyze_stats_free(void *stats);
void coffer_mlyze_close(void *trace);
coffer_status coffer_image_probe(old_u32 *out, const void *bytes, size_t size, coffer_error *err);
coffer_status coffer_audio_probe(old_u64 *out, const void *bytes, size_t size, coffer_error *err);

/* ---- The fence ---- */

/* Memory of that size whose end is the end of a page; the next page is not accessible. */
static void *fenced(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        exit(2);
    return pages + page - size;
}

static void *fenced_copy(const void *bytes, size_t size)
{
    return memcpy(fenced(size), bytes, size);
}

#define FENCED(type, ...) ((type *)fenced_copy(&(type){ sizeof(type), __VA_ARGS__ }, sizeof(type)))

static int failures;

static void expect(int line, bool good, const char *text, const coffer_error *err)
{
    if (good)
        return;
    fprintf(stderr, "old_caller.c:%d: %s: %s\n", line, text, err->text);
    failures++;
}

#define EXPECT(condition) expect(__LINE__, condition, #condition, &err)

/* ---- Calls ---- */

static void writes_and_reads_a_matrix(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    const double values[4] = { 1, 2, 3, 4 };
    double real = 0, imag = 0;
    void *writer = NULL, *matrix = NULL, *stats = NULL;
    const old_shape *shape = FENCED(old_shape, 0, COFFER_DTYPE_F64, 2, 2);
    EXPECT(!coffer_pycauset_writer_create(&writer, "old.pycauset", shape, FENCED(old_flag, true), &err));
    EXPECT(!coffer_pycauset_writer_put_rows(writer, values, 2, &err));
    EXPECT(!coffer_pycauset_writer_commit(writer, &err));
    EXPECT(!coffer_pycauset_open_path(&matrix, "old.pycauset", FENCED(old_u64, 0), &err));
    /* The scalar that the old shape does not have is 1, not 0. */
    EXPECT(!coffer_pycauset_get(&real, &imag, matrix, 1, 0, &err) && real == 3);
    EXPECT(!coffer_pycauset_stats_new(&stats, matrix, FENCED(old_u32, 1), &err));
    coffer_pycauset_stats_free(stats);
    coffer_pycauset_close(matrix);

    writer = NULL;
    old_flag *no_size = FENCED(old_flag, true);
    no_size->struct_size = 0;
    EXPECT(coffer_pycauset_writer_create(&writer, "old.pycauset", shape, no_size, &err) ==
           COFFER_E_INVALID_ARGUMENT);
}

static void writes_a_scan(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    const old_record records[2] = { { 0, 0, 0, 7, 8 }, { 2, 0, 1, 9, 10 } };
    uint16_t id = 1;
    void *writer = NULL;
    const old_scan_options *opts =
        FENCED(old_scan_options, true, "old", 64, 0, FENCED(old_double, 0.5), FENCED(old_double, 2));
    EXPECT(!coffer_mscan_writer_create(&writer, "old.mscan", opts, &err));
    EXPECT(!coffer_mscan_writer_add_param(&id, writer, "weight", &err) && id == 0);
    EXPECT(!coffer_mscan_writer_begin_sequence(writer, NULL, &err));
    EXPECT(!coffer_mscan_writer_put_records(writer, records, 2, &err));
    EXPECT(!coffer_mscan_writer_end_sequence(writer, 3, &err));
    EXPECT(!coffer_mscan_writer_commit(writer, &err));
    EXPECT(!coffer_mscan_writer_append_to(&writer, "old.mscan", FENCED(old_flag, false), &err));
    coffer_mscan_writer_discard(writer);
}

static void reads_a_scan(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    void *scan = NULL, *replay = NULL, *stats = NULL, *grid = NULL;
    old_u64 *step = FENCED(old_u64, 9);
    bool more = true;
    EXPECT(!coffer_mscan_open_path(&scan, "old.mscan", FENCED(old_flag, false), &err));
    /* The offset that the old struct does not have is 0. */
    const old_scale *scale = coffer_mscan_quantization_of(scan, SCAN_GRAD_NORM, 0, 0);
    EXPECT(scale && scale->scale == 2 && scale->offset == 0);
    EXPECT(!coffer_mscan_replay_new(&replay, scan, NULL, &err));
    for (uint64_t token = 0; token < 3; token++) {
        EXPECT(!coffer_mscan_replay_next(&more, step, replay, &err) && more);
        EXPECT(step->struct_size == sizeof *step && step->number == token);
    }
    EXPECT(!coffer_mscan_replay_next(&more, step, replay, &err) && !more);
    EXPECT(!coffer_mscan_stats_new(&stats, scan, FENCED(old_scan_query, SCAN_BY_PARAM), &err));
    EXPECT(coffer_mscan_stats_count(stats) == 1);
    EXPECT(!coffer_mscan_grid_new(&grid, scan, FENCED(old_scan_query, 0), &err));
    coffer_mscan_grid_free(grid);
    coffer_mscan_stats_free(stats);
    coffer_mscan_replay_free(replay);
    coffer_mscan_close(scan);
}

static void writes_a_model(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    enum { COLUMNS = 32, KV_TEXT = 3 };
    static const float weights[2 * COLUMNS] = { 1, 2, 3, -4 };
    static const uint64_t dims[2] = { 2, COLUMNS };
    const old_kv keys[2] = { { sizeof *keys, KV_TEXT, "license", 0, 0, "MIT", 3 },
                             { sizeof *keys, KV_TEXT, "author", 0, 0, "me", 2 } };
    const old_model_info *info = NULL;
    void *writer = NULL, *model = NULL;
    EXPECT(!coffer_mcf_writer_create(&writer, "old.mcf", FENCED(old_model_options, 0, false, false, true),
                                     &err));
    EXPECT(!coffer_mcf_writer_set_model_info(writer,
                                             FENCED(old_model_info, 1, 9, COLUMNS, 2, 4, 4, 64, 64, 0, 0, 1,
                                                    "old", NULL, fenced_copy(keys, sizeof keys), 2),
                                             &err));
    EXPECT(
        !coffer_mcf_writer_begin_tensor(writer, FENCED(old_tensor, COFFER_DTYPE_F32, "w", 1, 2, dims), &err));
    EXPECT(!coffer_mcf_writer_write(writer, weights, sizeof weights, &err));
    EXPECT(!coffer_mcf_writer_end_tensor(writer, &err));
    EXPECT(!coffer_mcf_writer_commit(writer, &err));
    EXPECT(!coffer_mcf_open_path(&model, "old.mcf", FENCED(old_flag, true), &err));
    EXPECT(!coffer_mcf_get_model_info(&info, model, &err) && info->kv_count == 2 && info->vocab_size == 9);
    coffer_mcf_close(model);
}

static void quantizes_and_converts_a_model(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    void *set = NULL, *stats = NULL, *src = NULL, *report = NULL;
    const old_rule *rules = FENCED(old_rule, COFFER_DTYPE_Q8);
    remove("old-q8.mcf");
    EXPECT(!coffer_mcf_quantize(NULL, "old-q8.mcf", "old.mcf", FENCED(old_rules, rules, 1), &err));
    EXPECT(!coffer_tensors_open_path(&set, "old-q8.mcf", FENCED(old_pointer, NULL), &err));
    EXPECT(coffer_tensors_count(set) == 1);
    EXPECT(!coffer_tensors_stats_new(&stats, set, FENCED(old_u32, 1), &err));
    EXPECT(coffer_tensors_stats_count(stats) == 1);
    coffer_tensors_stats_free(stats);
    coffer_tensors_close(set);

    EXPECT(!coffer_source_open(&src, "old.mcf", NULL, &err));
    EXPECT(!coffer_convert(src, "old.safetensors", FENCED(old_conversion, "mcf", "safetensors", true), &err));
    EXPECT(!coffer_report_new(&report, 100, &err));
    EXPECT(!coffer_check(report, src, FENCED(old_flag, true), &err) && coffer_report_count(report) == 0);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void writes_and_reads_a_trace(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    enum { EVENTS = 0, ALLOCS = 1 };
    void *writer = NULL, *trace = NULL, *stats = NULL;
    EXPECT(!coffer_mlyze_writer_create(&writer, "old.mlyze",
                                       FENCED(old_trace_options, false, 0, false, true, true), &err));
    EXPECT(!coffer_mlyze_writer_put_alloc(writer, 1, 4096, 64, 0, 1, &err));
    EXPECT(!coffer_mlyze_writer_put_alloc(writer, 2, 8192, 64, 0, 1, &err));
    EXPECT(!coffer_mlyze_writer_put_free(writer, 3, 4096, &err));
    EXPECT(!coffer_mlyze_writer_commit(writer, &err));
    EXPECT(!coffer_mlyze_open_path(&trace, "old.mlyze", FENCED(old_pointer, NULL), &err));
    EXPECT(!coffer_mlyze_stats_new(&stats, trace, FENCED(old_window, 0, UINT64_MAX), &err));
    const uint64_t *totals = coffer_mlyze_stats_totals(stats);
    EXPECT(totals && totals[EVENTS] == 3 && totals[ALLOCS] == 2);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
}

static void passes_an_array_of_short_structs(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    void *writer = NULL, *set = NULL;
    const old_field fields[3] = { { sizeof *fields, "label", MLDF_INT, 0 },
                                  { sizeof *fields, "caption", MLDF_TEXT, 0 },
                                  { sizeof *fields, "split", MLDF_INT, 0 } };
    EXPECT(!coffer_mldf_writer_create(&writer, "old.mldf", fenced_copy(fields, sizeof fields), 3,
                                      FENCED(old_u32, 4096), &err));
    EXPECT(!coffer_mldf_writer_set_int(writer, 0, 7, &err));
    EXPECT(!coffer_mldf_writer_set_text(writer, 1, "seven", 5, &err));
    EXPECT(!coffer_mldf_writer_set_int(writer, 2, 1, &err));
    EXPECT(!coffer_mldf_writer_end_sample(writer, &err));
    EXPECT(!coffer_mldf_writer_commit(writer, &err));
    EXPECT(!coffer_mldf_open_path(&set, "old.mldf", NULL, &err));
    EXPECT(coffer_mldf_find_field(set, "caption") == 1 && coffer_mldf_find_field(set, "split") == 2);
    coffer_mldf_close(set);
}

static void gets_outputs_that_are_short(void)
{
    static const unsigned char png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
                                         13,   'I', 'H', 'D', 'R',  0,    0,    0,    5, 0, 0,
                                         0,    3,   8,   2,   0,    0,    0,    0,    0, 0, 0 };
    static const unsigned char wav[] = { 'R', 'I', 'F', 'F', 40,  0,  0, 0, 'W', 'A', 'V', 'E',
                                         'f', 'm', 't', ' ', 16,  0,  0, 0, 1,   0,   1,   0,
                                         64,  31,  0,   0,   128, 62, 0, 0, 2,   0,   16,  0,
                                         'd', 'a', 't', 'a', 4,   0,  0, 0, 0,   0,   0,   0 };
    coffer_error err = COFFER_ERROR_INIT;
    old_u32 *image = FENCED(old_u32, 0);
    old_u64 *sound = FENCED(old_u64, 0);
    EXPECT(!coffer_image_probe(image, png, sizeof png, &err));
    EXPECT(image->struct_size == sizeof *image && image->number == IMAGE_PNG);
    EXPECT(!coffer_audio_probe(sound, wav, sizeof wav, &err));
    EXPECT(sound->struct_size == sizeof *sound && sound->number == 2);
}

static void opens_a_container(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    void *model = NULL;
    EXPECT(!coffer_mcf_open_path(&model, path, FENCED(old_flag, false), &err));
    coffer_mcf_close(model);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    writes_and_reads_a_matrix();
    writes_a_scan();
    reads_a_scan();
    writes_a_model();
    quantizes_and_converts_a_model();
    writes_and_reads_a_trace();
    passes_an_array_of_short_structs();
    gets_outputs_that_are_short();
    opens_a_container(argv[1]);
    return failures ? 1 : 0;
}
