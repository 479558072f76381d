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
    passes_an_array_of_short_structs();
    gets_outputs_that_are_short();
    opens_a_container(argv[1]);
    return failures ? 1 : 0;
}
