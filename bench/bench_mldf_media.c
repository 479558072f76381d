/* Pictures into a training loop: JPEG decoded and resized to 224 pixels, next to the plain loop that anyone
 * writes with libjpeg-turbo. One core. */
#include "bench.h"
#include "coffer/media.h"

#ifdef COFFER_BENCH_TURBOJPEG
#include <turbojpeg.h>
#endif

enum { PICTURES = 24, SIDE = 224, RUNS = 9 };

typedef struct picture {
    uint8_t *bytes;
    size_t size;
    uint32_t width, height;
} picture;

typedef struct work {
    picture pictures[PICTURES];
    coffer_image_decoder *decoder;
    coffer_pixels pixels, small;
    bool scaled; /* decode at a reduced scale where that is large enough */
    void *handle;
    uint8_t *room;
} work;

/* Smooth shapes with noise on them: about as many bits a pixel as a photograph. */
static void make_picture(picture *out, unsigned seed, uint32_t width, uint32_t height)
{
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint32_t state = seed * 2654435761u + 1;
    pixels.data = malloc((size_t)width * height * 3);
    pixels.width = width;
    pixels.height = height;
    pixels.channels = 3;
    for (size_t y = 0; pixels.data && y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            state = state * 1664525 + 1013904223;
            uint8_t *to = pixels.data + (y * width + x) * 3;
            size_t shape = (x * x / 97 + y * y / 61 + x * y / 113 + seed * 40) % 512;
            uint8_t base = (uint8_t)(shape < 256 ? shape : 511 - shape);
            for (size_t c = 0; c < 3; c++)
                to[c] = (uint8_t)((base * (3 + c) / 6) + (state >> (8 * c + 4)) % 24);
        }
    }
    bench_must(coffer_image_encode_jpeg(&out->bytes, &out->size, &pixels, 85, &err), &err, "encode");
    out->width = width;
    out->height = height;
    free(pixels.data);
}

static void decode_and_resize(void *context)
{
    work *all = context;
    coffer_error err = COFFER_ERROR_INIT;
    for (size_t i = 0; i < PICTURES; i++) {
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        if (all->scaled)
            opts.min_width = opts.min_height = SIDE;
        bench_must(coffer_image_decode(&all->pixels, all->decoder, all->pictures[i].bytes,
                                       all->pictures[i].size, &opts, &err),
                   &err, "decode");
        bench_must(coffer_pixels_resize(&all->small, &all->pixels, SIDE, SIDE, &err), &err, "resize");
    }
}

static void decode_only(void *context)
{
    work *all = context;
    coffer_error err = COFFER_ERROR_INIT;
    for (size_t i = 0; i < PICTURES; i++) {
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        if (all->scaled)
            opts.min_width = opts.min_height = SIDE;
        bench_must(coffer_image_decode(&all->pixels, all->decoder, all->pictures[i].bytes,
                                       all->pictures[i].size, &opts, &err),
                   &err, "decode");
    }
}

#ifdef COFFER_BENCH_TURBOJPEG
/* Half, quarter or eighth size where that is enough, as Pillow's draft mode does, and bilinear sampling. */
static void sample_bilinear(uint8_t *out, const uint8_t *in, int width, int height)
{
    for (int y = 0; y < SIDE; y++) {
        float v = ((float)y + 0.5f) * (float)height / SIDE - 0.5f;
        int top = v < 0 ? 0 : (int)v, bottom = top + 1 < height ? top + 1 : top;
        float down = v < 0 ? 0 : v - (float)top;
        for (int x = 0; x < SIDE; x++) {
            float u = ((float)x + 0.5f) * (float)width / SIDE - 0.5f;
            int left = u < 0 ? 0 : (int)u, right = left + 1 < width ? left + 1 : left;
            float across = u < 0 ? 0 : u - (float)left;
            for (int c = 0; c < 3; c++) {
                const uint8_t *a = in + 3 * top * width + c, *b = in + 3 * bottom * width + c;
                float upper = (float)a[3 * left] * (1 - across) + (float)a[3 * right] * across;
                float lower = (float)b[3 * left] * (1 - across) + (float)b[3 * right] * across;
                *out++ = (uint8_t)(upper * (1 - down) + lower * down + 0.5f);
            }
        }
    }
}

static void plain_loop(void *context)
{
    work *all = context;
    static uint8_t small[SIDE * SIDE * 3];
    for (size_t i = 0; i < PICTURES; i++) {
        const picture *one = &all->pictures[i];
        int width, height, subsampling, colors, scale = 1;
        tjDecompressHeader3(all->handle, one->bytes, one->size, &width, &height, &subsampling, &colors);
        while (all->scaled && scale < 8 && (width + 2 * scale - 1) / (2 * scale) >= SIDE &&
               (height + 2 * scale - 1) / (2 * scale) >= SIDE)
            scale *= 2;
        width = (width + scale - 1) / scale;
        height = (height + scale - 1) / scale;
        if (tjDecompress2(all->handle, one->bytes, one->size, all->room, width, 0, height, TJPF_RGB, 0) != 0)
            exit(3);
        sample_bilinear(small, all->room, width, height);
    }
}
#endif

int main(int argc, char **argv)
{
    static const uint32_t sizes[][2] = { { 500, 375 }, { 640, 480 }, { 375, 500 }, { 1024, 768 } };
    static work all;
    bench_table table = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    bench_clock = CLOCK_PROCESS_CPUTIME_ID;
    all.pixels = all.small = (coffer_pixels)COFFER_PIXELS_INIT;
    bench_must(coffer_image_decoder_new(&all.decoder, NULL, &err), &err, "decoder");
    for (unsigned i = 0; i < PICTURES; i++)
        make_picture(&all.pictures[i], i, sizes[i % 4][0], sizes[i % 4][1]);
    all.scaled = true;
    bench_time ours = bench_measure(decode_and_resize, &all, RUNS);
    bench_add_rate(&table, "JPEG to 224 × 224, scaled decoding", PICTURES, ours, "pictures/s");
    bench_add_rate(&table, "  of that, decoding alone", PICTURES, bench_measure(decode_only, &all, RUNS),
                   "pictures/s");
#ifdef COFFER_BENCH_TURBOJPEG
    all.handle = tjInitDecompress();
    all.room = malloc((size_t)1024 * 768 * 3);
    bench_time plain = bench_measure(plain_loop, &all, RUNS);
    bench_add_rate(&table, "  a plain loop over libjpeg-turbo", PICTURES, plain, "pictures/s");
    bench_row *ratio = bench_add(&table, "  ours by the plain loop's", plain.median / ours.median,
                                 plain.best / ours.best, "times");
    ratio->goal = 1;
#endif
    all.scaled = false;
    bench_add_rate(&table, "JPEG to 224 × 224, decoded whole", PICTURES,
                   bench_measure(decode_and_resize, &all, RUNS), "pictures/s");
    if (json)
        bench_print_json(&table);
    else
        bench_print(&table);
    for (size_t i = 0; i < PICTURES; i++)
        coffer_free(all.pictures[i].bytes);
    coffer_free(all.pixels.data);
    coffer_free(all.small.data);
    coffer_image_decoder_free(all.decoder);
#ifdef COFFER_BENCH_TURBOJPEG
    tjDestroy(all.handle);
    free(all.room);
#endif
    return 0;
}
