/* Writes a scan of three sequences, opens it again, appends a fourth, and adds everything up.
 *
 *   cc mscan_scan.c $(pkg-config --cflags --libs coffer) && ./a.out scan.mscan */
#include <coffer/coffer.h>

#include <stdio.h>
#include <string.h>

#define LAYERS 4
#define BLOCKS 12

static const char *const kinds[] = { "self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.down_proj" };
#define KINDS (sizeof kinds / sizeof kinds[0])

static const char *const texts[] = {
    "It was a bright cold day in the valley, and the clocks had stopped.",
    "for (i = 0; i < n; i++) sum += x[i];",
    "Seven times eight is fifty-six.",
    "Appended: one more sequence, written into the same file.",
};

static int fail(const char *what, const coffer_error *err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, err->text, coffer_status_name(err->status));
    return 1;
}

/* A made-up model whose attention follows the text and whose last layers answer late. */
static uint16_t activation_of(size_t layer, size_t kind, unsigned block, unsigned token, const char *text)
{
    unsigned letter = (unsigned char)text[token];
    unsigned wave = (token * (2 + (unsigned)kind) + block * 3 + (unsigned)layer * 7) % 24;
    unsigned height = wave < 12 ? wave : 24 - wave;
    unsigned value = 6000 + 900 * height + 40 * letter;
    if (kind == 1 && letter == ' ')
        value += 14000;
    if (layer + 1 == LAYERS)
        value += 250 * token;
    return (uint16_t)value;
}

/* One character is one token; each has a record for every parameter and block. */
static coffer_status write_sequence(coffer_mscan_writer *writer, const char *text, coffer_error *err)
{
    unsigned token, block, tokens = (unsigned)strlen(text);
    size_t layer, kind;
    coffer_status status = coffer_mscan_writer_begin_sequence(writer, text, err);
    for (token = 0; status == COFFER_OK && token < tokens; token++) {
        coffer_mscan_record records[LAYERS * KINDS * BLOCKS];
        size_t count = 0;
        for (layer = 0; layer < LAYERS; layer++)
            for (kind = 0; kind < KINDS; kind++)
                for (block = 0; block < BLOCKS; block++) {
                    coffer_mscan_record *record = &records[count++];
                    record->token_idx = token;
                    record->param_id = (uint16_t)(layer * KINDS + kind);
                    record->block_idx = (uint16_t)block;
                    record->activation = activation_of(layer, kind, block, token, text);
                    record->grad_norm = (uint16_t)(65000 / (1 + layer + block));
                }
        status = coffer_mscan_writer_put_records(writer, records, count, err);
    }
    if (status == COFFER_OK)
        status = coffer_mscan_writer_end_sequence(writer, tokens, err);
    return status;
}

static coffer_status name_parameters(coffer_mscan_writer *writer, coffer_error *err)
{
    size_t layer, kind;
    for (layer = 0; layer < LAYERS; layer++)
        for (kind = 0; kind < KINDS; kind++) {
            char name[64];
            uint16_t id;
            snprintf(name, sizeof name, "model.layers.%u.%s.weight", (unsigned)layer, kinds[kind]);
            coffer_status status = coffer_mscan_writer_add_param(&id, writer, name, err);
            if (status != COFFER_OK)
                return status;
        }
    return COFFER_OK;
}

/* The file appears under its name when everything is in it, or not at all. */
static coffer_status create(const char *path, coffer_error *err)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization activation = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_mscan_quantization grad_norm = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_mscan_writer *writer = NULL;
    size_t i;
    activation.scale = 0.0001;
    grad_norm.scale = 0.00001;
    opts.overwrite = true;
    opts.model_name = "four-layer example";
    opts.activation = &activation;
    opts.grad_norm = &grad_norm;
    coffer_status status = coffer_mscan_writer_create(&writer, path, &opts, err);
    if (status != COFFER_OK)
        return status;
    status = name_parameters(writer, err);
    for (i = 0; status == COFFER_OK && i < 3; i++)
        status = write_sequence(writer, texts[i], err);
    if (status == COFFER_OK)
        return coffer_mscan_writer_commit(writer, err);
    coffer_mscan_writer_discard(writer);
    return status;
}

/* In place, under a journal: readers see the old scan until commit. */
static coffer_status append(const char *path, coffer_error *err)
{
    coffer_mscan_writer *writer = NULL;
    coffer_status status = coffer_mscan_writer_append_to(&writer, path, NULL, err);
    if (status != COFFER_OK)
        return status;
    status = write_sequence(writer, texts[3], err);
    if (status == COFFER_OK)
        return coffer_mscan_writer_commit(writer, err);
    coffer_mscan_writer_discard(writer);
    return status;
}

static coffer_status print_parameters(const coffer_mscan *scan, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    size_t i;
    query.by = COFFER_MSCAN_BY_PARAM;
    coffer_status status = coffer_mscan_stats_new(&stats, scan, &query, err);
    if (status != COFFER_OK)
        return status;
    for (i = 0; i < coffer_mscan_stats_count(stats); i++) {
        const coffer_mscan_group *group = coffer_mscan_stats_at(stats, i);
        uint16_t id = (uint16_t)group->key;
        const coffer_mscan_quantization *unit =
            coffer_mscan_quantization_of(scan, COFFER_MSCAN_ACTIVATION, id, 0);
        double scale = unit ? unit->scale : 1, offset = unit ? unit->offset : 0;
        printf("  %-39s %.3f ± %.3f\n", coffer_mscan_param_name(scan, id),
               offset + scale * coffer_mscan_mean(group, COFFER_MSCAN_ACTIVATION),
               scale * coffer_mscan_stddev(group, COFFER_MSCAN_ACTIVATION));
    }
    coffer_mscan_stats_free(stats);
    return COFFER_OK;
}

static coffer_status print_scan(const char *path, bool with_parameters, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_mscan *scan = NULL;
    size_t i;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (status == COFFER_OK)
        status = coffer_mscan_open(&scan, source, NULL, err);
    if (status == COFFER_OK) {
        printf("%s: %llu records, %llu tokens\n", coffer_mscan_model_name(scan),
               (unsigned long long)coffer_mscan_record_count(scan),
               (unsigned long long)coffer_mscan_total_tokens(scan));
        for (i = 0; i < coffer_mscan_sequence_count(scan); i++) {
            const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(scan, i);
            printf("  sequence %llu, from token %3llu: %s\n", (unsigned long long)sequence->sequence_id,
                   (unsigned long long)sequence->first_token, sequence->source);
        }
        if (with_parameters)
            status = print_parameters(scan, err);
    }
    coffer_mscan_close(scan);
    coffer_source_close(source);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "example.mscan";
    coffer_error err = COFFER_ERROR_INIT;
    if (create(path, &err) != COFFER_OK || print_scan(path, false, &err) != COFFER_OK)
        return fail(path, &err);
    if (append(path, &err) != COFFER_OK || print_scan(path, true, &err) != COFFER_OK)
        return fail(path, &err);
    return 0;
}
