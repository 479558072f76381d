/* A scan that is written again reads the same, and appending gives the same file as writing at once. */
#include "clean.h"
#include "mscan_input.h"

#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORK = 1 << 18 };

/* Names with a NUL cannot be C strings; large inputs take too long. */
static bool can_be_written(const coffer_mscan *scan)
{
    uint64_t sequences = coffer_mscan_sequence_count(scan);
    if (sequences * (coffer_mscan_record_count(scan) + 1) > MOST_WORK ||
        coffer_mscan_total_tokens(scan) > UINT32_MAX)
        return false;
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        if (param->id > UINT16_MAX || strlen(param->name) != param->name_len)
            return false;
    }
    return true;
}

static bool is_in(const coffer_mscan_record *record, const coffer_mscan_sequence *sequence)
{
    return record->token_idx >= sequence->first_token &&
           record->token_idx - sequence->first_token < sequence->num_tokens;
}

static void write_sequence(coffer_mscan_writer *writer, const coffer_mscan *scan, size_t index)
{
    const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(scan, index);
    MUST(coffer_mscan_writer_begin_sequence_len(writer, sequence->source, sequence->source_len, NULL) ==
         COFFER_OK);
    for (uint64_t i = 0; i < coffer_mscan_record_count(scan); i++) {
        coffer_mscan_record record;
        MUST(coffer_mscan_read(&record, scan, i, 1, NULL) == COFFER_OK);
        if (!is_in(&record, sequence))
            continue;
        record.token_idx -= (uint32_t)sequence->first_token;
        MUST(coffer_mscan_writer_put_records(writer, &record, 1, NULL) == COFFER_OK);
    }
    MUST(coffer_mscan_writer_end_sequence(writer, sequence->num_tokens, NULL) == COFFER_OK);
}

/* The first `split` sequences at once, the others appended one by one. */
static void write_scan(const char *path, const coffer_mscan *scan, size_t split)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    opts.overwrite = true;
    opts.model_name = coffer_mscan_model_name(scan);
    MUST(coffer_mscan_writer_create(&writer, path, &opts, NULL) == COFFER_OK);
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        MUST(coffer_mscan_writer_add_param_id(writer, (uint16_t)param->id, param->name, NULL) == COFFER_OK);
    }
    for (size_t i = 0; i < split; i++)
        write_sequence(writer, scan, i);
    MUST(coffer_mscan_writer_commit(writer, NULL) == COFFER_OK);
    for (size_t i = split; i < coffer_mscan_sequence_count(scan); i++) {
        MUST(coffer_mscan_writer_append_to(&writer, path, NULL, NULL) == COFFER_OK);
        write_sequence(writer, scan, i);
        MUST(coffer_mscan_writer_commit(writer, NULL) == COFFER_OK);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_source(const coffer_mscan_sequence *a, const coffer_mscan_sequence *b)
{
    return !a->source == !b->source && a->source_len == b->source_len &&
           (!a->source || memcmp(a->source, b->source, a->source_len) == 0);
}

/* The writer groups records by sequence; inside one they keep their order. */
static void compare_records(const coffer_mscan *old, const coffer_mscan *new)
{
    uint64_t at = 0;
    MUST(coffer_mscan_record_count(old) == coffer_mscan_record_count(new));
    for (size_t s = 0; s < coffer_mscan_sequence_count(old); s++) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(old, s);
        for (uint64_t i = 0; i < coffer_mscan_record_count(old); i++) {
            coffer_mscan_record a, b;
            MUST(coffer_mscan_read(&a, old, i, 1, NULL) == COFFER_OK);
            if (!is_in(&a, sequence))
                continue;
            MUST(coffer_mscan_read(&b, new, at++, 1, NULL) == COFFER_OK);
            MUST(a.token_idx == b.token_idx && a.param_id == b.param_id && a.block_idx == b.block_idx);
            MUST(a.activation == b.activation && a.grad_norm == b.grad_norm);
        }
    }
    MUST(at == coffer_mscan_record_count(new));
}

static void compare(const coffer_mscan *old, const char *path)
{
    coffer_source *source = NULL;
    coffer_mscan *new = NULL;
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_mscan_open(&new, source, NULL, NULL) == COFFER_OK);
    MUST(same_text(coffer_mscan_model_name(old), coffer_mscan_model_name(new)));
    MUST(coffer_mscan_param_count(old) == coffer_mscan_param_count(new));
    MUST(coffer_mscan_sequence_count(old) == coffer_mscan_sequence_count(new));
    MUST(coffer_mscan_total_tokens(old) == coffer_mscan_total_tokens(new));
    for (size_t i = 0; i < coffer_mscan_param_count(old); i++) {
        const coffer_mscan_param *a = coffer_mscan_param_at(old, i), *b = coffer_mscan_param_at(new, i);
        MUST(a->id == b->id && same_text(a->name, b->name));
    }
    for (size_t i = 0; i < coffer_mscan_sequence_count(old); i++) {
        const coffer_mscan_sequence *a = coffer_mscan_sequence_at(old, i),
                                    *b = coffer_mscan_sequence_at(new, i);
        MUST(a->num_tokens == b->num_tokens && same_source(a, b));
    }
    compare_records(old, new);
    coffer_mscan_close(new);
    coffer_source_close(source);
}

/* Read into memory, so that two files can be compared byte by byte. */
static uint8_t *load(const char *path, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    MUST(file && fstat(fileno(file), &status) == 0);
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    MUST(bytes);
    *size = fread(bytes, 1, (size_t)status.st_size + 1, file);
    fclose(file);
    return bytes;
}

static void must_be_the_same_bytes(const char *a, const char *b)
{
    size_t size_a, size_b;
    uint8_t *bytes_a = load(a, &size_a), *bytes_b = load(b, &size_b);
    MUST(size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0);
    free(bytes_a);
    free(bytes_b);
}

static void round_trip(const coffer_mscan *scan)
{
    char once[64], again[64], appended[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    int process = (int)getpid();
    size_t sequences = coffer_mscan_sequence_count(scan);
    snprintf(once, sizeof once, "%s/coffer-fuzz-%d-once", folder, process);
    snprintf(again, sizeof again, "%s/coffer-fuzz-%d-again", folder, process);
    snprintf(appended, sizeof appended, "%s/coffer-fuzz-%d-appended", folder, process);
    write_scan(once, scan, sequences);
    write_scan(again, scan, sequences);
    must_be_the_same_bytes(once, again);
    compare(scan, once);
    if (sequences > 1 && sequences < 16) {
        write_scan(appended, scan, 1);
        compare(scan, appended);
    }
    unlink(once);
    unlink(again);
    unlink(appended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mscan *scan = NULL;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.limits = &input.limits;
    if (fuzz_is_clean(input.source, &input.limits) &&
        coffer_mscan_open(&scan, input.source, &opts, NULL) == COFFER_OK && can_be_written(scan))
        round_trip(scan);
    coffer_mscan_close(scan);
    fuzz_input_close(&input);
    return 0;
}
