/* JPEG pictures decoded and scaled to 224 × 224, pictures a second on one core: straight from a training set,
 * beside a plain loop over libjpeg-turbo at full size, Pillow and FFCV.
 *
 *   bench_mldf_jpeg [--images N] [--runs N] [--cpu-time] [--json]
 *
 * Data goes to $COFFER_BENCH_DATA (else the current folder) and is removed at the end. */
#include "mldf_data.h"

#ifdef COFFER_BENCH_TURBOJPEG
#include <turbojpeg.h>
#endif

enum { WIDTH = 500, HEIGHT = 375, SIDE = 224, QUALITY = 90 };

typedef struct options {
    unsigned images, runs;
    bool json;
    const char *folder;
} options;

static char set_path[4096];

static void remove_data(void)
{
    unlink(set_path);
}

/* Soft shapes with some noise: about as hard to code as a photograph. */
static void paint(coffer_pixels *pixels, unsigned number)
{
    uint64_t random = number + 1;
    for (unsigned y = 0; y < HEIGHT; y++)
        for (unsigned x = 0; x < WIDTH; x++)
            for (unsigned c = 0; c < 3; c++) {
                unsigned wave = (x * (3 + number % 5) + y * (2 + c)) / 7 % 256;
                unsigned value = (wave < 128 ? wave : 255 - wave) + (unsigned)data_random(&random) % 24 + 40;
                pixels->data[(y * WIDTH + x) * 3 + c] = (uint8_t)value;
            }
}

static void write_pictures(unsigned count)
{
    coffer_error err = COFFER_ERROR_INIT;
    const coffer_mldf_writer_opts opts = { .struct_size = sizeof opts, .overwrite = true };
    coffer_mldf_field field = COFFER_MLDF_FIELD_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_mldf_entry entry = {
        .struct_size = sizeof(coffer_mldf_entry), .height = HEIGHT, .width = WIDTH, .channels = 3, .mode = 1
    };
    coffer_pixels pixels = { sizeof(coffer_pixels),
                             malloc((size_t)WIDTH * HEIGHT * 3),
                             WIDTH,
                             HEIGHT,
                             3,
                             (size_t)WIDTH * HEIGHT * 3,
                             8 };
    if (!pixels.data)
        exit(3);
    field.name = "image";
    field.type = COFFER_MLDF_IMAGE_JPEG;
    bench_must(coffer_mldf_writer_create(&writer, set_path, &field, 1, &opts, &err), &err, set_path);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *bytes;
        size_t size;
        paint(&pixels, i);
        bench_must(coffer_image_encode_jpeg(&bytes, &size, &pixels, QUALITY, &err), &err, "encoding");
        bench_must(coffer_mldf_writer_set_bytes(writer, 0, bytes, size, &entry, &err), &err, set_path);
        bench_must(coffer_mldf_writer_end_sample(writer, &err), &err, set_path);
        coffer_free(bytes);
    }
    bench_must(coffer_mldf_writer_commit(writer, &err), &err, set_path);
    free(pixels.data);
}

typedef struct pipeline {
    const coffer_mldf *set;
    unsigned count;
    coffer_image_decoder *decoder;
    coffer_bytes bytes;
    coffer_pixels pixels, scaled;
    uint32_t min_side; /* 0 = decoded at full size */
} pipeline;

static void read_and_scale(void *context)
{
    pipeline *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    opts.min_width = opts.min_height = work->min_side;
    for (unsigned i = 0; i < work->count; i++) {
        uint64_t sample = coffer_mldf_shuffle_at(work->count, 1, 0, i);
        bench_must(coffer_mldf_read(&work->bytes, NULL, work->set, sample, 0, &err), &err, "read");
        bench_must(coffer_image_decode(&work->pixels, work->decoder, work->bytes.data, work->bytes.size,
                                       &opts, &err),
                   &err, "decode");
        bench_must(coffer_pixels_resize(&work->scaled, &work->pixels, SIDE, SIDE, &err), &err, "resize");
    }
}

#ifdef COFFER_BENCH_TURBOJPEG
/* Most programs decode at full size; the time for scaling is not included. */
static void plain_loop(void *context)
{
    pipeline *work = context;
    coffer_error err = COFFER_ERROR_INIT;
    tjhandle handle = tjInitDecompress();
    uint8_t *out = malloc((size_t)WIDTH * HEIGHT * 3);
    if (!handle || !out)
        exit(3);
    for (unsigned i = 0; i < work->count; i++) {
        uint64_t sample = coffer_mldf_shuffle_at(work->count, 1, 0, i);
        bench_must(coffer_mldf_read(&work->bytes, NULL, work->set, sample, 0, &err), &err, "read");
        if (tjDecompress2(handle, work->bytes.data, work->bytes.size, out, WIDTH, 0, HEIGHT, TJPF_RGB, 0) !=
            0)
            exit(3);
    }
    free(out);
    tjDestroy(handle);
}
#endif

static double add(bench_table *table, const char *name, const pipeline *work, bench_time time)
{
    bench_row *row = bench_add_rate(table, name, work->count, time, "images/s");
    return row->median;
}

static void bench(bench_table *table, const options *opts)
{
    data_set opened = data_open(set_path, COFFER_ACCESS_AUTO);
    coffer_error err = COFFER_ERROR_INIT;
    pipeline work = {
        .pixels = COFFER_PIXELS_INIT, .scaled = COFFER_PIXELS_INIT, .set = opened.set, .count = opts->images
    };
    char arguments[8192];
    bench_must(coffer_image_decoder_new(&work.decoder, NULL, &err), &err, "decoder");
    work.min_side = SIDE;
    double ours = add(table, "500 × 375 to 224 × 224, scaled decoding, 1 core", &work,
                      bench_measure(read_and_scale, &work, opts->runs));
    work.min_side = 0;
    add(table, "500 × 375 to 224 × 224, full decoding, 1 core", &work,
        bench_measure(read_and_scale, &work, opts->runs));
#ifdef COFFER_BENCH_TURBOJPEG
    double plain = add(table, "  libjpeg-turbo alone, full size, not scaled", &work,
                       bench_measure(plain_loop, &work, opts->runs));
    snprintf(table->rows[table->count - 1].note, sizeof table->rows[0].note, "ours is %.1f times as fast",
             ours / plain);
#else
    snprintf(bench_add(table, "  libjpeg-turbo alone", 0, 0, "")->note, sizeof table->rows[0].note,
             "not installed (libturbojpeg0-dev)");
#endif
    snprintf(arguments, sizeof arguments, "'%s' %u %u", opts->folder, opts->images, opts->runs);
    char *peers = data_run_peers("mldf_jpeg.py", arguments);
    data_add_peers(table, peers, "jpeg", opts->images, "images/s", ours);
    free(peers);
    coffer_image_decoder_free(work.decoder);
    coffer_free(work.pixels.data);
    coffer_free(work.scaled.data);
    coffer_free(work.bytes.data);
    data_close(&opened);
}

static options read_options(int argc, char **argv)
{
    options opts = { 1000, 5, false, getenv("COFFER_BENCH_DATA") };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            opts.json = true;
        else if (!strcmp(argv[i], "--cpu-time"))
            bench_clock = CLOCK_PROCESS_CPUTIME_ID;
        else if (!strcmp(argv[i], "--images") && i + 1 < argc)
            opts.images = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            opts.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            opts.runs = 0;
    }
    if (!opts.folder)
        opts.folder = ".";
    if (opts.images == 0 || opts.runs == 0 || opts.runs > 99) {
        fputs("usage: bench_mldf_jpeg [--images N] [--runs N] [--cpu-time] [--json]\n", stderr);
        exit(2);
    }
    return opts;
}

int main(int argc, char **argv)
{
    static bench_table table;
    options opts = read_options(argc, argv);
    snprintf(set_path, sizeof set_path, "%s/bench-%d-pictures.mldf", opts.folder, (int)getpid());
    atexit(remove_data);
    write_pictures(opts.images);
    bench(&table, &opts);
    if (opts.json)
        bench_print_json(&table);
    else
        bench_print(&table);
    return 0;
}
