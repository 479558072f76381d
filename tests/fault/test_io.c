/* Every allocation and every file operation of reading, replacing and updating a file fails once. */
#include "base/work.h"
#include "coffer/format.h"
#include "io/journal.h"
#include "io/os.h"
#include "io/sink.h"
#include "io/source_private.h"
#include "support/fault.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { OLD_SIZE = 3000, NEW_SIZE = 5000, HEAD = 100 };

static uint8_t old_bytes[OLD_SIZE], new_bytes[NEW_SIZE];

static void fill_samples(void)
{
    for (size_t i = 0; i < OLD_SIZE; i++)
        old_bytes[i] = (uint8_t)(i % 253);
    memcpy(new_bytes, old_bytes, OLD_SIZE);
    memset(new_bytes, 'H', HEAD);
    memset(new_bytes + OLD_SIZE, 'T', NEW_SIZE - OLD_SIZE);
}

static void write_old(const char *folder, void *context)
{
    (void)context;
    temp_write(temp_path(folder, "file"), old_bytes, OLD_SIZE);
}

/* Old when the operation failed, new when it succeeded; only the sync of the folder, the very last step, may
 * fail with the new file in place. */
static const char *old_or_new(const char *folder, const fault_case *which)
{
    coffer_source *src;
    uint8_t seen[NEW_SIZE];
    if (coffer_source_open(&src, temp_path(folder, "file"), NULL, NULL) != COFFER_OK)
        return "cannot be read afterwards";
    size_t size = (size_t)coffer_source_size(src);
    bool read = size <= NEW_SIZE && coffer_source_read_at(seen, src, 0, size, NULL) == COFFER_OK;
    coffer_source_close(src);
    if (!read)
        return "cannot be read afterwards";
    bool is_new = size == NEW_SIZE && memcmp(seen, new_bytes, NEW_SIZE) == 0;
    bool is_old = size == OLD_SIZE && memcmp(seen, old_bytes, OLD_SIZE) == 0;
    if (which->status == COFFER_OK)
        return is_new ? NULL : "it said it succeeded, the new state is not there";
    if (which->fault != SHIM_DEAD_DISK)
        temp_assert_only(folder, "file", NULL);
    return is_old || is_new ? NULL : "neither the old state nor the new one";
}

static const char *verify_replaced(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    return old_or_new(folder, which);
}

/* ---- Replacing ---- */

static coffer_status replace(const char *folder, void *context, coffer_error *err)
{
    coffer__sink *sink;
    int fd = -1;
    (void)context;
    coffer_status status = coffer__sink_create(&sink, temp_path(folder, "file"), NULL, err);
    if (status != COFFER_OK)
        return status;
    status = coffer__sink_write(sink, "....", 4, err);
    if (status == COFFER_OK)
        status = coffer__sink_fill(sink, 'H', HEAD - 4, err);
    if (status == COFFER_OK && (fd = coffer__os_open(temp_path(folder, "file"), O_RDONLY, 0)) >= 0)
        status = coffer__sink_copy_file(sink, fd, HEAD, OLD_SIZE - HEAD, "file", err);
    else if (status == COFFER_OK)
        status = coffer__sink_write(sink, new_bytes + HEAD, OLD_SIZE - HEAD, err);
    if (fd >= 0)
        coffer__os_close(fd);
    if (status == COFFER_OK)
        status = coffer__sink_lock(sink, err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, new_bytes + OLD_SIZE, NEW_SIZE - OLD_SIZE, err);
    if (status == COFFER_OK)
        status = coffer__sink_patch(sink, 0, "HHHH", 4, err);
    if (status == COFFER_OK)
        return coffer__sink_commit(sink, err);
    coffer__sink_discard(sink);
    return status;
}

static void replacing_a_file_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { write_old, replace, verify_replaced, NULL };
    fault_each(&test);
}

static coffer_status create(const char *folder, void *context, coffer_error *err)
{
    coffer__sink *sink;
    coffer__sink_opts opts = { .exclusive = true };
    (void)context;
    coffer_status status = coffer__sink_create(&sink, temp_path(folder, "file"), &opts, err);
    if (status != COFFER_OK)
        return status;
    coffer__sink_crc_begin(sink);
    status = coffer__sink_write(sink, new_bytes, NEW_SIZE, err);
    int fd = -1;
    if (status == COFFER_OK) {
        status = coffer__sink_commit_open(sink, &fd, err);
        if (status == COFFER_OK)
            coffer__os_close(fd);
        return status;
    }
    coffer__sink_discard(sink);
    return status;
}

static const char *complete_or_not_there(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    if (temp_exists(temp_path(folder, "file")))
        return old_or_new(folder, which);
    if (which->status == COFFER_OK)
        return "it said it succeeded, and the file is missing";
    if (which->fault != SHIM_DEAD_DISK)
        temp_assert_only(folder, NULL);
    return NULL;
}

static void creating_a_file_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { NULL, create, complete_or_not_there, NULL };
    fault_each(&test);
}

static coffer_status write_memory(const char *folder, void *context, coffer_error *err)
{
    coffer__buffer buffer;
    coffer__sink *sink;
    (void)folder;
    (void)context;
    coffer__buffer_init(&buffer, SIZE_MAX);
    coffer_status status = coffer__sink_to_buffer(&sink, &buffer, err);
    if (status == COFFER_OK) {
        coffer__sink_write(sink, new_bytes, NEW_SIZE, NULL);
        status = coffer__sink_commit(sink, err);
    }
    if (status == COFFER_OK)
        assert_memory_equal(buffer.data, new_bytes, NEW_SIZE);
    coffer__buffer_free(&buffer);
    return status;
}

static void writing_to_memory_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { NULL, write_memory, NULL, NULL };
    fault_each(&test);
}

/* ---- Updating ---- */

static coffer_status update(const char *folder, void *context, coffer_error *err)
{
    const coffer__range head = { 0, HEAD };
    coffer__update *u;
    (void)context;
    coffer_status status = coffer__update_open(&u, temp_path(folder, "file"), NULL, err);
    if (status != COFFER_OK)
        return status;
    status = coffer__update_begin(u, &head, 1, err);
    if (status == COFFER_OK)
        status = coffer__update_append(u, new_bytes + OLD_SIZE, NEW_SIZE - OLD_SIZE, err);
    if (status == COFFER_OK)
        status = coffer__update_overwrite(u, 0, new_bytes, HEAD, err);
    if (status == COFFER_OK)
        status = coffer__update_overwrite(u, OLD_SIZE, new_bytes + OLD_SIZE, 10, err);
    if (status == COFFER_OK)
        status = coffer__update_commit(u, err);
    if (status != COFFER_OK) {
        assert_int_not_equal(coffer__update_append(u, "x", 1, NULL), COFFER_OK);
    }
    coffer__update_close(u);
    return status;
}

static void updating_a_file_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { write_old, update, verify_replaced, NULL };
    fault_each(&test);
}

/* ---- Rolling back and reading beside a journal ---- */

static uint8_t *journal;
static size_t journal_len;

static int take_journal(void **state)
{
    const coffer__range head = { 0, HEAD };
    coffer__update *u;
    char *folder = temp_make();
    (void)state;
    fill_samples();
    write_old(folder, NULL);
    if (coffer__update_open(&u, temp_path(folder, "file"), NULL, NULL) != COFFER_OK ||
        coffer__update_begin(u, &head, 1, NULL) != COFFER_OK)
        return -1;
    journal = temp_read(temp_path(folder, "file-journal"), &journal_len);
    coffer__update_close(u);
    temp_remove(folder);
    return 0;
}

static int free_journal(void **state)
{
    (void)state;
    free(journal);
    return 0;
}

static void write_interrupted(const char *folder, void *context)
{
    (void)context;
    temp_write(temp_path(folder, "file"), new_bytes, NEW_SIZE);
    temp_write(temp_path(folder, "file-journal"), journal, journal_len);
}

static coffer_status roll_back(const char *folder, void *context, coffer_error *err)
{
    (void)context;
    return coffer_roll_back(NULL, temp_path(folder, "file"), err);
}

static const char *still_old(const char *folder, void *context, const fault_case *which)
{
    const char *path = temp_path(folder, "file");
    (void)context;
    if (which->status == COFFER_OK && temp_exists(temp_path(folder, "file-journal")))
        return "the journal is still there";
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back again";
    return temp_holds(path, old_bytes, OLD_SIZE) ? NULL : "not the old state";
}

static void rolling_back_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { write_interrupted, roll_back, still_old, NULL };
    fault_each(&test);
}

static coffer_status read_all(const char *folder, void *context, coffer_error *err)
{
    coffer_source *src;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    uint8_t seen[OLD_SIZE];
    opts.access = *(const coffer_access *)context;
    coffer_status status = coffer_source_open(&src, temp_path(folder, "file"), &opts, err);
    if (status != COFFER_OK)
        return status;
    assert_int_equal(coffer_source_size(src), OLD_SIZE);
    status = coffer_source_read_at(seen, src, 0, OLD_SIZE, err);
    if (status == COFFER_OK)
        assert_memory_equal(seen, old_bytes, OLD_SIZE);
    coffer__source_settled(src);
    coffer_source_close(src);
    return status;
}

static const char *nothing_changed(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    (void)which;
    temp_assert_only(folder, "file", "file-journal", NULL);
    return temp_holds(temp_path(folder, "file"), new_bytes, NEW_SIZE) ? NULL : "a reader changed the file";
}

static void reading_beside_a_journal_survives_every_fault(void **state)
{
    (void)state;
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        fault_test test = { write_interrupted, read_all, nothing_changed, &access };
        fault_each(&test);
    }
}

static coffer_status spool(const char *folder, void *context, coffer_error *err)
{
    coffer_source *src;
    (void)folder;
    (void)context;
    coffer_status status = coffer_source_open(&src, "/dev/null", NULL, err);
    if (status == COFFER_OK)
        coffer_source_close(src);
    return status;
}

static void spooling_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { NULL, spool, NULL, NULL };
    fault_each(&test);
}

/* ---- Threads ---- */

static coffer_status do_nothing(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    (void)context;
    (void)index;
    (void)worker;
    (void)err;
    return COFFER_OK;
}

static coffer_status use_pool(const char *folder, void *context, coffer_error *err)
{
    coffer__pool *pool;
    (void)folder;
    (void)context;
    coffer_status status = coffer__pool_new(&pool, 2, err);
    if (status != COFFER_OK)
        return status;
    status = coffer__pool_run(pool, 4, do_nothing, NULL, err);
    coffer__pool_free(pool);
    return status;
}

static void a_pool_survives_every_fault(void **state)
{
    (void)state;
    fault_test test = { NULL, use_pool, NULL, NULL };
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replacing_a_file_survives_every_fault),
        cmocka_unit_test(creating_a_file_survives_every_fault),
        cmocka_unit_test(writing_to_memory_survives_every_fault),
        cmocka_unit_test(updating_a_file_survives_every_fault),
        cmocka_unit_test(rolling_back_survives_every_fault),
        cmocka_unit_test(reading_beside_a_journal_survives_every_fault),
        cmocka_unit_test(spooling_survives_every_fault),
        cmocka_unit_test(a_pool_survives_every_fault),
    };
    return cmocka_run_group_tests(tests, take_journal, free_journal);
}
