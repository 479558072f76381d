/* Writes a training set of small pictures and trains on it: every epoch in an order of its own, dealt to two
 * processes, read in batches straight into the arrays that the model works on. Then it stops in the middle of
 * an epoch and resumes from a number.
 *
 *   cc mldf_training.c $(pkg-config --cflags --libs coffer) && ./a.out train.mldf */
#include <coffer/coffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 1000, SIDE = 8, PIXELS = SIDE * SIDE, BATCH = 32, EPOCHS = 3, WORLD = 2 };

static int fail(const char *what, const coffer_error *err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, err->text, coffer_status_name(err->status));
    return 1;
}

/* ---- Writing ---- */

/* Class 1 has a bright square in the upper left quarter, class 0 in the lower right one; the rest is noise.
 */
static void draw(uint8_t pixels[PIXELS], int label, uint32_t *noise)
{
    int x, y;
    for (y = 0; y < SIDE; y++)
        for (x = 0; x < SIDE; x++) {
            int in_square = label ? x < 4 && y < 4 : x >= 4 && y >= 4;
            *noise = *noise * 1664525u + 1013904223u;
            pixels[y * SIDE + x] = (uint8_t)((*noise >> 24) / 2 + (in_square ? 16 : 0));
        }
}

static coffer_status write_samples(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    uint8_t pixels[PIXELS];
    uint32_t noise = 1;
    char caption[64];
    coffer_status status = COFFER_OK;
    int i;
    entry.height = entry.width = SIDE;
    entry.channels = 1;
    for (i = 0; i < SAMPLES && status == COFFER_OK; i++) {
        int label = (int)(noise >> 31);
        draw(pixels, label, &noise);
        snprintf(caption, sizeof caption, "square %d, %s", i, label ? "upper left" : "lower right");
        status = coffer_mldf_writer_set_bytes(writer, 0, pixels, sizeof pixels, &entry, err);
        if (status == COFFER_OK)
            status = coffer_mldf_writer_set_int(writer, 1, label, err);
        if (status == COFFER_OK)
            status = coffer_mldf_writer_set_text(writer, 2, caption, strlen(caption), err);
        if (status == COFFER_OK)
            status = coffer_mldf_writer_end_sample(writer, err);
    }
    return status;
}

static coffer_status write_set(const char *path, coffer_error *err)
{
    static const char schema[] = "[{\"name\": \"image\", \"type\": \"image-raw\"},"
                                 " {\"name\": \"label\", \"type\": \"int\"},"
                                 " {\"name\": \"caption\", \"type\": \"text\", \"zstd\": true}]";
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    opts.overwrite = true;
    status = coffer_mldf_writer_create_json(&writer, path, schema, strlen(schema), &opts, err);
    if (status != COFFER_OK)
        return status;
    status = write_samples(writer, err);
    if (status == COFFER_OK)
        return coffer_mldf_writer_commit(writer, err);
    coffer_mldf_writer_discard(writer);
    return status;
}

/* ---- Training ---- */

/* A perceptron: one weight a pixel, in whole numbers, so that it learns the same on every machine. */
typedef struct model {
    int64_t weights[PIXELS], bias;
} model;

static int learn(model *m, const uint8_t *pixels, int64_t label)
{
    int64_t sum = m->bias, step;
    int i, right;
    for (i = 0; i < PIXELS; i++)
        sum += m->weights[i] * pixels[i];
    right = (sum > 0) == (label != 0);
    step = right ? 0 : label ? 1 : -1;
    for (i = 0; i < PIXELS; i++)
        m->weights[i] += step * pixels[i];
    m->bias += step * 128;
    return right;
}

/* One process' part of an epoch, from a position on; gives how many it had right. */
static coffer_status train(int *right, model *m, coffer_mldf_batch *batch, const coffer_mldf_order *order,
                           uint64_t epoch, uint64_t from, uint64_t to, coffer_error *err)
{
    uint8_t pixels[BATCH * PIXELS];
    int64_t labels[BATCH];
    uint64_t samples[BATCH], position = from;
    coffer_mldf_target targets[2] = { COFFER_MLDF_TARGET_INIT, COFFER_MLDF_TARGET_INIT };
    coffer_status status = COFFER_OK;
    targets[0].field = 0;
    targets[0].data = pixels;
    targets[0].data_size = sizeof pixels;
    targets[0].stride = PIXELS; /* contiguous pictures, as a model needs them */
    targets[1].field = 1;
    targets[1].data = labels;
    targets[1].data_size = sizeof labels;
    while (position < to && status == COFFER_OK) {
        size_t count = 0, i;
        while (count < BATCH && position < to)
            samples[count++] = coffer_mldf_order_at(order, epoch, position++);
        status = coffer_mldf_batch_read(batch, samples, count, targets, 2, err);
        for (i = 0; i < count && status == COFFER_OK; i++)
            *right += learn(m, pixels + i * PIXELS, labels[i]);
    }
    return status;
}

static coffer_status run(const coffer_mldf *set, coffer_error *err)
{
    coffer_mldf_batch *batch = NULL;
    coffer_mldf_order order[WORLD];
    model models[WORLD], stopped;
    uint64_t half;
    int epoch, rank, right = 0, again;
    coffer_status status = coffer_mldf_batch_new(&batch, set, NULL, err);
    memset(models, 0, sizeof models);
    for (rank = 0; rank < WORLD && status == COFFER_OK; rank++) {
        coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
        coffer_mldf_order_init(&order[rank], sizeof order[rank]);
        opts.seed = 42;
        opts.rank = (uint32_t)rank;
        opts.world = WORLD;
        status = coffer_mldf_order_prepare(&order[rank], coffer_mldf_sample_count(set), &opts, err);
    }
    for (epoch = 0; epoch < EPOCHS && status == COFFER_OK; epoch++)
        for (rank = 0; rank < WORLD && status == COFFER_OK; rank++) {
            uint64_t length = coffer_mldf_order_length(&order[rank]);
            right = 0;
            status = train(&right, &models[rank], batch, &order[rank], (uint64_t)epoch, 0, length, err);
            printf("epoch %d, process %d: %d of %llu right\n", epoch, rank, right,
                   (unsigned long long)length);
        }
    if (status != COFFER_OK)
        goto out;

    /* A checkpoint is the model and a position. */
    half = coffer_mldf_order_length(&order[0]) / 2;
    right = again = 0;
    status = train(&right, &models[0], batch, &order[0], EPOCHS, 0, half, err);
    stopped = models[0];
    if (status == COFFER_OK)
        status = train(&right, &models[0], batch, &order[0], EPOCHS, half, 2 * half, err);
    if (status == COFFER_OK)
        status = train(&again, &stopped, batch, &order[0], EPOCHS, half, 2 * half, err);
    printf("stopped at position %llu, resumed: %s\n", (unsigned long long)half,
           memcmp(&stopped, &models[0], sizeof stopped) == 0 ? "the same weights" : "OTHER WEIGHTS");
out:
    coffer_mldf_batch_free(batch);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "train.mldf";
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf *set = NULL;
    coffer_bytes caption = COFFER_BYTES_INIT;
    coffer_status status = write_set(path, &err);
    if (status == COFFER_OK)
        status = coffer_mldf_open_path(&set, path, NULL, &err);
    if (status == COFFER_OK)
        status = coffer_mldf_get_text(&caption, set, 7, coffer_mldf_find_field(set, "caption"), &err);
    if (status == COFFER_OK) {
        printf("%llu samples; the caption of number 7: %s\n",
               (unsigned long long)coffer_mldf_sample_count(set), (const char *)caption.data);
        status = run(set, &err);
    }
    coffer_free(caption.data);
    coffer_mldf_close(set);
    return status == COFFER_OK ? 0 : fail(path, &err);
}
