/* One process commits, another reads: every look at the file shows a whole state. */
#include "support/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMITS = 1000 };

/* Each commit sets three keys to its number, and a text whose length changes the size of the block. */
static coffer_status commit(coffer_pycauset_editor *editor, uint64_t number, coffer_error *err)
{
    coffer_pycauset_changes *changes = NULL;
    char text[120];
    size_t len = number % sizeof text;
    memset(text, 'x', sizeof text);
    coffer_status status = coffer_pycauset_changes_new(&changes, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_u64(changes, "properties.first", number, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_u64(changes, "a_key_at_the_front", number, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_u64(changes, "zz.at.the.end", number, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_string(changes, "properties.text", text, len, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_editor_commit(NULL, editor, changes, err);
    coffer_pycauset_changes_free(changes);
    return status;
}

static void commit_all(const char *path)
{
    coffer_pycauset_editor_opts opts = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
    coffer_pycauset_editor *editor = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.durability = COFFER_DURABILITY_NONE; /* as fast as can be: the readers have it hardest */
    coffer_status status = coffer_pycauset_editor_open(&editor, path, &opts, &err);
    for (uint64_t i = 2; i <= COMMITS + 1 && status == COFFER_OK; i++) {
        status = commit(editor, i, &err);
        if (i % 4 == 0) /* bursts, between which a reader on the same core gets its turn */
            usleep(200);
    }
    if (status)
        fprintf(stderr, "%s\n", err.text);
    _exit(status == COFFER_OK ? 0 : 1);
}

static uint64_t number_at(const coffer_pycauset *matrix, const char *path)
{
    return coffer_pycauset_value_u64(coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), path));
}

/* A state is whole when its keys agree with its generation. */
static uint64_t assert_whole(const coffer_pycauset *matrix)
{
    uint64_t generation = coffer_pycauset_get_info(matrix)->generation;
    size_t len;
    double real, imag;
    coffer_pycauset_value_text(
        coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), "properties.text"), &len);
    if (generation > 1) {
        assert_int_equal(number_at(matrix, "properties.first"), generation);
        assert_int_equal(number_at(matrix, "a_key_at_the_front"), generation);
        assert_int_equal(number_at(matrix, "zz.at.the.end"), generation);
        assert_int_equal(len, generation % 120);
    }
    assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, 1, 2, NULL), COFFER_OK);
    assert_true(real == 5.5);
    return generation;
}

/* Gives false when commits overtook the look, which looking again cures. */
static bool look(uint64_t *generation, const char *path, coffer_access access)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_pycauset *matrix = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.access = access;
    coffer_status status = coffer_source_open(&src, path, &opts, &err);
    if (status == COFFER_OK)
        status = coffer_pycauset_open(&matrix, src, NULL, &err);
    if (status == COFFER_OK)
        *generation = assert_whole(matrix);
    else if (status != COFFER_E_CHANGED)
        fail_msg("%s", err.text);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return status == COFFER_OK;
}

static void readers_beside_a_thousand_commits_see_whole_states_only(void **state)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    container file = container_make("{}");
    uint64_t before = 1, now = 1, looks = 0, missed = 0, states = 0, kept_generation;
    coffer_source *kept_source;
    int result = 0;
    (void)state;
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    kept_source = scan_source(path);
    coffer_pycauset *kept = container_open(kept_source);
    kept_generation = assert_whole(kept);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        commit_all(path);
    bool running = true;
    while (running || now <= COMMITS) {
        running = running && waitpid(child, &result, WNOHANG) == 0;
        bool whole = look(&now, path, looks++ % 2 ? COFFER_ACCESS_READ : COFFER_ACCESS_MAP);
        assert_true(whole || running);
        assert_true(now >= before);
        missed += !whole;
        states += now != before;
        before = now;
        /* The reader that was there before all of it keeps its state. */
        assert_int_equal(assert_whole(kept), kept_generation);
        assert_true(looks < 10000000);
    }
    assert_int_equal(result, 0);
    assert_int_equal(now, COMMITS + 1);
    assert_true(states > 10);
    print_message("%llu looks saw %llu states, %llu were overtaken\n", (unsigned long long)looks,
                  (unsigned long long)states, (unsigned long long)missed);
    coffer_pycauset_close(kept);
    coffer_source_close(kept_source);
}

/* Every way in which the bytes of the slot being written may be half there. */
static void a_slot_caught_half_written_leaves_the_other_which_is_whole(void **state)
{
    const char *path = temp_path(temp_folder, "torn.pycauset");
    container file = container_make("{\"properties\":{\"v\":1}}");
    size_t len, new_len;
    (void)state;
    temp_write(path, file.bytes, file.len);
    container_free(&file);
    container_commit(path, "properties.v", 2);
    uint8_t *old = temp_read(path, &len);
    container_commit(path, "properties.v", 3);
    uint8_t *new = temp_read(path, &new_len);
    uint8_t *torn = malloc(new_len);
    for (size_t cut = 0; cut <= 128; cut++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            memcpy(torn, new, new_len);
            if (backwards)
                memcpy(torn + 16, old + 16, cut);
            else
                memcpy(torn + 16 + cut, old + 16 + cut, 128 - cut);
            coffer_source *src = scan_source_of(torn, new_len);
            coffer_pycauset *matrix = container_open(src);
            uint64_t generation = coffer_pycauset_get_info(matrix)->generation;
            assert_true(generation == 2 || generation == 3);
            assert_int_equal(number_at(matrix, "properties.v"), generation);
            coffer_pycauset_close(matrix);
            coffer_source_close(src);
        }
    }
    free(torn);
    free(old);
    free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_beside_a_thousand_commits_see_whole_states_only),
        cmocka_unit_test(a_slot_caught_half_written_leaves_the_other_which_is_whole),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
