/* Written values are read back unchanged, for any values, options and order. */
#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 4, SAMPLES_MAX = 64 };

typedef struct script {
    const uint8_t *at, *end;
} script;

/* A value of the script: its bytes, or NULL for none. */
typedef struct value {
    const uint8_t *bytes;
    size_t size;
} value;

static uint8_t next(script *of)
{
    return of->at < of->end ? *of->at++ : 0;
}

static value next_value(script *of)
{
    static const uint8_t nothing[1];
    uint8_t kind = next(of);
    size_t left = (size_t)(of->end - of->at), len = kind & 63;
    value found = { of->at, len < left ? len : left };
    if (kind >= 224)
        return (value){ NULL, 0 };
    of->at += found.size;
    if (found.size == 0)
        found.bytes = nothing;
    return found;
}

/* Sets of the script, in the order of the samples. */
static uint64_t write_all(coffer_mldf_writer *writer, script *of, value values[SAMPLES_MAX][FIELDS],
                          uint64_t written)
{
    while (of->at < of->end && written < SAMPLES_MAX) {
        for (size_t i = 0; i < FIELDS; i++) {
            value *to = &values[written][i];
            *to = next_value(of);
            if (to->bytes)
                MUST(coffer_mldf_writer_set_bytes(writer, i, to->bytes, to->size, NULL, NULL) == COFFER_OK);
        }
        MUST(coffer_mldf_writer_end_sample(writer, NULL) == COFFER_OK);
        written++;
        if (next(of) >= 240)
            break;
    }
    MUST(coffer_mldf_writer_commit(writer, NULL) == COFFER_OK);
    return written;
}

static void expect(const char *path, const uint8_t *key, value values[SAMPLES_MAX][FIELDS], uint64_t count)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    opts.verify = true;
    opts.key = key;
    MUST(coffer_source_open(&src, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_mldf_open(&set, src, &opts, NULL) == COFFER_OK);
    MUST(coffer_mldf_sample_count(set) == count);
    for (uint64_t i = 0; i < count; i++) {
        for (size_t f = 0; f < FIELDS; f++) {
            coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
            MUST(coffer_mldf_read(&bytes, &entry, set, i, f, NULL) == COFFER_OK);
            MUST(entry.present == (values[i][f].bytes != NULL));
            MUST(bytes.size == values[i][f].size);
            MUST(bytes.size == 0 || memcmp(bytes.data, values[i][f].bytes, bytes.size) == 0);
        }
    }
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    MUST(coffer_check(report, src, NULL, NULL) == COFFER_OK);
    MUST(coffer_report_total(report, COFFER_ERROR) == 0);
    coffer_report_free(report);
    coffer_free(bytes.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "fuzz";
    static const char *const names[FIELDS] = { "plain", "packed", "sealed", "both" };
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    value values[SAMPLES_MAX][FIELDS];
    coffer_mldf_field fields[FIELDS];
    coffer_mldf_writer *writer = NULL;
    script of = { data, data + size };
    uint8_t choice = next(&of);
    uint64_t count;
    char path[256];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/fuzz-mldf-write-%ld", folder, (long)getpid());
    for (uint16_t i = 0; i < FIELDS; i++) {
        fields[i] = (coffer_mldf_field)COFFER_MLDF_FIELD_INIT;
        fields[i].name = names[i];
        fields[i].type = COFFER_MLDF_BYTES;
        fields[i].flags = i;
    }
    opts.page_size = 4096;
    opts.overwrite = true;
    opts.key = key;
    opts.threads = 1;
    opts.dedup = choice & 1;
    opts.no_checksums = (choice & 2) != 0;
    opts.descriptor_stride = choice & 4 ? 204 : 208;
    MUST(coffer_mldf_writer_create(&writer, path, fields, FIELDS, &opts, NULL) == COFFER_OK);
    count = write_all(writer, &of, values, 0);
    expect(path, key, values, count);
    while (of.at < of.end && count < SAMPLES_MAX) {
        MUST(coffer_mldf_writer_append_to(&writer, path, &opts, NULL) == COFFER_OK);
        count = write_all(writer, &of, values, count);
        expect(path, key, values, count);
    }
    unlink(path);
    return 0;
}
