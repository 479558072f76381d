/* The kernels of ggml, loaded from the folder of shared libraries that $COFFER_BENCH_GGML names
 * (`make bench-peers` fetches one). Everything is found by name: no header of theirs is needed. */
#ifndef COFFER_BENCH_QUANT_GGML_H
#define COFFER_BENCH_QUANT_GGML_H

#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A type of theirs that is as wide as one of ours. */
typedef struct ggml_type {
    const char *name;
    int number;
    const char *decode, *dot;
    const char *encode_x; /* what makes of x the vectors that dot takes */
    int x_number;
    void (*decode_row)(const void *codes, float *out, int64_t count);
    void (*dot_row)(int count, float *out, size_t out_stride, const void *row, size_t row_stride,
                    const void *x, size_t x_stride, int rows);
    void (*encode_row)(const float *x, void *out, int64_t count);
} ggml_type;

typedef struct ggml_peer {
    char missing[80]; /* why it is missing; empty when it is available */
    char variant[64]; /* the library for this processor */
    size_t (*quantize)(int type, const float *values, void *out, int64_t start, int64_t rows, int64_t cols,
                       const float *importance);
    size_t (*row_size)(int type, int64_t count);
    ggml_type types[6]; /* in the order of q8 q4 k6 k4 k3 k2 */
} ggml_peer;

/* dlsym returns an object pointer, which ISO C cannot cast to a function pointer. */
static inline void ggml_find(void *out, void *library, const char *name)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
}

/* The variant that says it suits this processor best. */
static inline void *ggml_open_variant(ggml_peer *peer, const char *folder)
{
    DIR *entries = opendir(folder);
    void *best = NULL;
    int best_score = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        int (*score)(void) = NULL;
        char path[4096];
        if (strncmp(entry->d_name, "libggml-cpu", 11) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        ggml_find(&score, library, "ggml_backend_score");
        int here = score ? score() : 1;
        if (here > best_score) {
            best_score = here;
            best = library;
            snprintf(peer->variant, sizeof peer->variant, "%.60s", entry->d_name);
        }
    }
    if (entries)
        closedir(entries);
    return best;
}

static inline ggml_peer ggml_load(void)
{
    enum { Q8_0 = 8, Q8_K = 15 };
    ggml_peer peer = { .types = {
                           { "Q8_0", 8, "dequantize_row_q8_0", "ggml_vec_dot_q8_0_q8_0", "quantize_row_q8_0",
                             Q8_0, NULL, NULL, NULL },
                           { "Q4_0", 2, "dequantize_row_q4_0", "ggml_vec_dot_q4_0_q8_0", "quantize_row_q8_0",
                             Q8_0, NULL, NULL, NULL },
                           { "Q6_K", 14, "dequantize_row_q6_K", "ggml_vec_dot_q6_K_q8_K", "quantize_row_q8_K",
                             Q8_K, NULL, NULL, NULL },
                           { "Q4_K", 12, "dequantize_row_q4_K", "ggml_vec_dot_q4_K_q8_K", "quantize_row_q8_K",
                             Q8_K, NULL, NULL, NULL },
                           { "Q3_K", 11, "dequantize_row_q3_K", "ggml_vec_dot_q3_K_q8_K", "quantize_row_q8_K",
                             Q8_K, NULL, NULL, NULL },
                           { "Q2_K", 10, "dequantize_row_q2_K", "ggml_vec_dot_q2_K_q8_K", "quantize_row_q8_K",
                             Q8_K, NULL, NULL, NULL },
                       } };
    const char *folder = getenv("COFFER_BENCH_GGML");
    char path[4096];
    void (*init)(void) = NULL;
    if (!folder) {
        snprintf(peer.missing, sizeof peer.missing, "COFFER_BENCH_GGML is not set (make bench-peers)");
        return peer;
    }
    snprintf(path, sizeof path, "%s/libggml-base.so", folder);
    void *base = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *cpu = ggml_open_variant(&peer, folder);
    if (!base || !cpu) {
        snprintf(peer.missing, sizeof peer.missing, "no libggml-base.so and libggml-cpu*.so in %.30s",
                 folder);
        return peer;
    }
    ggml_find(&init, cpu, "ggml_cpu_init");
    ggml_find(&peer.quantize, base, "ggml_quantize_chunk");
    ggml_find(&peer.row_size, base, "ggml_row_size");
    if (init)
        init();
    for (size_t i = 0; i < sizeof peer.types / sizeof *peer.types; i++) {
        ggml_type *type = &peer.types[i];
        ggml_find(&type->decode_row, base, type->decode);
        ggml_find(&type->dot_row, cpu, type->dot);
        ggml_find(&type->encode_row, cpu, type->encode_x);
        if (!type->decode_row || !type->dot_row || !type->encode_row || !peer.quantize || !peer.row_size)
            snprintf(peer.missing, sizeof peer.missing, "%.40s lacks kernels of %s", peer.variant,
                     type->name);
    }
    return peer;
}

#endif
