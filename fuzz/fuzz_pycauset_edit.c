/* A file has the changes that were committed to it, and the rest is unchanged. */
#include "formats/pycauset/pycauset_private.h"
#include "must.h"
#include "pycauset_input.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHANGES = 12 };

typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

static uint8_t next(bytes *from)
{
    if (from->left == 0)
        return 0;
    from->left--;
    return *from->at++;
}

/* A path of one to three keys out of few, so that changes meet each other. */
static void make_path(char *out, bytes *from)
{
    static const char *const keys[] = { "properties", "a", "b\\.c", "0", "1", "seed", "view", "cached", "π" };
    size_t steps = 1 + next(from) % 3;
    *out = '\0';
    for (size_t i = 0; i < steps; i++) {
        strcat(out, i > 0 ? "." : "");
        strcat(out, keys[next(from) % (sizeof keys / sizeof keys[0])]);
    }
}

static void add_change(coffer_pycauset_changes *changes, bytes *from)
{
    static const char *const texts[] = {
        "[1,-2,{\"b\":2.5}]", "{\"a\":{\"x\":true},\"0\":\"s\"}", "[]", "{}", "-7", "\"text\""
    };
    char path[100];
    make_path(path, from);
    uint8_t kind = next(from), value = next(from);
    const char *json = texts[value % (sizeof texts / sizeof texts[0])];
    switch (kind % 8) {
    case 0:
        MAY_FAIL(coffer_pycauset_changes_delete(changes, path, NULL));
        break;
    case 1:
        MAY_FAIL(coffer_pycauset_changes_set_bool(changes, path, value & 1, NULL));
        break;
    case 2:
        MAY_FAIL(coffer_pycauset_changes_set_i64(changes, path, (int8_t)value, NULL));
        break;
    case 3:
        MAY_FAIL(coffer_pycauset_changes_set_f64(changes, path, value / 7.0, NULL));
        break;
    case 4:
        MAY_FAIL(coffer_pycauset_changes_set_bytes(changes, path, &value, 1, NULL));
        break;
    case 5:
        MAY_FAIL(coffer_pycauset_changes_set_cached(changes, "trace", value, NULL));
        break;
    default:
        MAY_FAIL(coffer_pycauset_changes_set_json(changes, path, json, strlen(json), NULL));
    }
}

/* A reader finds the metadata that the editor has. */
static void must_be_in_file(const char *path, const coffer_pycauset_editor *editor, uint64_t generation)
{
    coffer_source *source = NULL;
    coffer_pycauset *matrix = NULL;
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_pycauset_open(&matrix, source, NULL, NULL) == COFFER_OK);
    MUST(coffer_pycauset_get_info(matrix)->generation == generation);
    MUST(coffer__pycauset_equal(coffer_pycauset_metadata(matrix), coffer_pycauset_editor_metadata(editor)));
    coffer_pycauset_close(matrix);
    coffer_source_close(source);
}

static void commit_all(const char *path, bytes from, const fuzz_input *input)
{
    coffer_pycauset_editor_opts opts = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
    coffer_pycauset_editor *editor = NULL;
    uint64_t generation = 0;
    opts.durability = COFFER_DURABILITY_NONE;
    opts.limits = &input->limits;
    coffer_pycauset *matrix = fuzz_open(input, NULL);
    bool editable = matrix && !coffer_pycauset_get_info(matrix)->newer_lost;
    MUST((coffer_pycauset_editor_open(&editor, path, &opts, NULL) == COFFER_OK) == editable);
    coffer_pycauset_close(matrix);
    if (!editor)
        return;
    for (int i = 0; i < CHANGES; i++) {
        coffer_pycauset_changes *changes = NULL;
        MUST(coffer_pycauset_changes_new(&changes, NULL) == COFFER_OK);
        for (unsigned k = next(&from) % 4; k > 0; k--)
            add_change(changes, &from);
        if (coffer_pycauset_editor_commit(&generation, editor, changes, NULL) == COFFER_OK)
            must_be_in_file(path, editor, generation);
        coffer_pycauset_changes_free(changes);
    }
    coffer_pycauset_editor_close(editor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    fuzz_input input;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-edited",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    FILE *file = fopen(path, "wb");
    MUST(file && fwrite(input.bytes, 1, size, file) == size && fclose(file) == 0);
    /* The end of the file says what is done to it: what changes there changes the changes. */
    size_t tail = size < 200 ? size : 200;
    commit_all(path, (bytes){ data + size - tail, tail }, &input);
    unlink(path);
    fuzz_input_close(&input);
    return 0;
}
