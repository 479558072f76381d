/* The safetensors reader accepts a file or fails with an error; an accepted file survives a round trip
 * through a model. Half of the inputs get a correct header length. */
#include "base/bytes.h"
#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The header ends at the brace that closes the first one, or at the end of the input. */
static void repair_length(uint8_t *bytes, size_t size)
{
    size_t depth = 0, at;
    for (at = 8; at < size; at++) {
        if (bytes[at] == '{')
            depth++;
        else if (bytes[at] == '}' && --depth == 0)
            break;
    }
    coffer__store_u64(bytes, at < size ? at - 7 : size - 8);
}

static void read_all(const coffer_tensors *set)
{
    static uint8_t bytes[4096];
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        MUST(coffer_tensors_find(set, tensor->name) == i);
        if (tensor->size <= sizeof bytes)
            MUST(coffer_tensors_read(bytes, set, i, 0, (size_t)tensor->size, NULL) == COFFER_OK);
    }
}

static void must_be_same(const coffer_tensors *a, const coffer_tensors *b)
{
    MUST(coffer_tensors_count(a) == coffer_tensors_count(b));
    for (size_t i = 0; i < coffer_tensors_count(a); i++) {
        const coffer_tensor *x = coffer_tensors_at(a, i), *y = coffer_tensors_at(b, i);
        MUST(strcmp(x->name, y->name) == 0);
        MUST(strcmp(x->type_name, y->type_name) == 0);
        MUST(x->rank == y->rank && x->size == y->size);
        MUST(x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0);
        uint8_t *bytes = malloc((size_t)x->size * 2 + 1);
        MUST(bytes);
        MUST(coffer_tensors_read(bytes, a, i, 0, (size_t)x->size, NULL) == COFFER_OK);
        MUST(coffer_tensors_read(bytes + x->size, b, i, 0, (size_t)x->size, NULL) == COFFER_OK);
        MUST(memcmp(bytes, bytes + x->size, (size_t)x->size) == 0);
        free(bytes);
    }
}

static coffer_status convert(const char *from, coffer_source *in, const char *to, coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = in;
    if (!src)
        MUST(coffer_source_open(&src, from, NULL, NULL) == COFFER_OK);
    coffer_status status = coffer_convert(src, to, &opts, err);
    if (!in)
        coffer_source_close(src);
    return status;
}

static void must_round_trip(coffer_source *src, const coffer_tensors *set)
{
    coffer_tensors *again = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char model[64], back[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(model, sizeof model, "%s/coffer-fuzz-%d.mcf", folder, (int)getpid());
    snprintf(back, sizeof back, "%s/coffer-fuzz-%d.safetensors", folder, (int)getpid());
    if (convert(NULL, src, model, &err) != COFFER_OK) {
        MUST(err.text[0] != 0 && access(model, F_OK) != 0);
        return;
    }
    MUST(convert(model, NULL, back, &err) == COFFER_OK);
    MUST(coffer_tensors_open_path(&again, back, NULL, NULL) == COFFER_OK);
    must_be_same(set, again);
    coffer_tensors_close(again);
    unlink(model);
    unlink(back);
}

/* Whatever is saved of a damaged file is a file without damage. */
static void must_repair(const uint8_t *data, size_t size)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_tensors *set = NULL;
    char in[64], out[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(in, sizeof in, "%s/coffer-fuzz-%d-in.safetensors", folder, (int)getpid());
    snprintf(out, sizeof out, "%s/coffer-fuzz-%d-out.safetensors", folder, (int)getpid());
    FILE *file = fopen(in, "wb");
    MUST(file);
    MUST(fwrite(data, 1, size, file) == size);
    MUST(fclose(file) == 0);
    opts.overwrite = true;
    MUST(coffer_report_new(&report, 0, NULL) == COFFER_OK);
    if (coffer_tensors_repair(report, in, out, &opts, &err) == COFFER_OK) {
        MUST(coffer_tensors_open_path(&set, out, NULL, NULL) == COFFER_OK);
        coffer_tensors_close(set);
        unlink(out);
    } else {
        MUST(err.text[0] != 0 && access(out, F_OK) != 0);
    }
    coffer_report_free(report);
    unlink(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *set = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *bytes = malloc(size + 1);
    MUST(bytes);
    memcpy(bytes, data, size);
    if (size > 8 && size % 2)
        repair_length(bytes, size);
    limits.json_bytes = 1 << 20;
    opts.limits = &limits;
    MUST(coffer_source_from_memory(&src, bytes, size, NULL) == COFFER_OK);
    if (coffer_tensors_open(&set, src, &opts, &err) == COFFER_OK) {
        read_all(set);
        if (strcmp(coffer_tensors_kind(set), "safetensors") == 0)
            must_round_trip(src, set);
    } else {
        MUST(err.text[0] != 0);
        must_repair(bytes, size);
    }
    coffer_tensors_close(set);
    coffer_source_close(src);
    free(bytes);
    return 0;
}
