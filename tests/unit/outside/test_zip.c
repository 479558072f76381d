#include "outside/archives/zip.h"
#include "outside/arrays/npy.h"

#include "base/bytes.h"
#include "support/archive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LARGE ((size_t)1 << 20)

/* Compresses well, but not to nothing. */
static uint8_t *large_data(void)
{
    uint8_t *data = malloc(LARGE);
    assert_non_null(data);
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (uint8_t)(i % 251 ^ i >> 12);
    return data;
}

typedef struct opened {
    coffer__buffer bytes;
    coffer_source *src;
    coffer__zip *zip;
    coffer_status status;
    coffer_error err;
} opened;

/* Takes the bytes over. */
static opened open_bytes(coffer__buffer bytes)
{
    opened out = { bytes, NULL, NULL, COFFER_OK, COFFER_ERROR_INIT };
    assert_int_equal(coffer_source_from_memory(&out.src, out.bytes.data, out.bytes.len, NULL), COFFER_OK);
    out.status = coffer__zip_open(&out.zip, out.src, NULL, &out.err);
    return out;
}

static void close_archive(opened *archive)
{
    coffer__zip_close(archive->zip);
    coffer_source_close(archive->src);
    coffer__buffer_free(&archive->bytes);
}

static void expect_open(coffer__buffer bytes, coffer_status expected)
{
    opened archive = open_bytes(bytes);
    if (archive.status != expected)
        fail_msg("gives %s (%s), expected %s", coffer_status_name(archive.status), archive.err.text,
                 coffer_status_name(expected));
    close_archive(&archive);
}

static coffer_status read_all(const opened *archive, size_t index, coffer__zip_access access, uint8_t *out,
                              coffer_error *err)
{
    coffer_source *src = NULL;
    size_t size = (size_t)coffer__zip_at(archive->zip, index)->size, at = 0;
    coffer_status status = coffer__zip_source(&src, archive->zip, index, access, err);
    while (!status && at < size) {
        size_t some = size - at < 10007 ? size - at : 10007;
        status = coffer_source_read_at(out + at, src, at, some, err);
        at += some;
    }
    coffer_source_close(src);
    return status;
}

static void members_come_out_as_they_went_in(void **state)
{
    (void)state;
    uint8_t *data = large_data(), *back = malloc(LARGE);
    const archive_member members[] = { { .name = "plain", .data = data, .len = LARGE },
                                       { .name = "small", .data = "xyz", .len = 3 },
                                       { .name = "packed", .data = data, .len = LARGE, .deflate = true },
                                       { .name = "empty", .data = "", .len = 0 } };
    for (int zip64 = 0; zip64 < 2; zip64++) {
        opened archive = open_bytes(archive_build(members, 4, zip64));
        assert_int_equal(archive.status, COFFER_OK);
        assert_int_equal(coffer__zip_count(archive.zip), 4);
        assert_int_equal(coffer__zip_find(archive.zip, "small"), 1);
        assert_true(coffer__zip_find(archive.zip, "smal") == SIZE_MAX);
        for (int access = 0; access < 2; access++) {
            for (size_t i = 0; i < 4; i++) {
                assert_int_equal(read_all(&archive, i, (coffer__zip_access)access, back, NULL), COFFER_OK);
                assert_memory_equal(back, members[i].data, members[i].len);
            }
        }
        close_archive(&archive);
    }
    free(data);
    free(back);
}

static void a_forward_source_can_be_read_in_any_order(void **state)
{
    (void)state;
    uint8_t *data = large_data(), piece[100];
    const size_t places[] = { 12, 10, 500000, 499900, 0, LARGE - 100, 3 };
    const archive_member member = { .name = "packed", .data = data, .len = LARGE, .deflate = true };
    coffer_source *src = NULL;
    opened archive = open_bytes(archive_build(&member, 1, false));
    assert_int_equal(coffer__zip_source(&src, archive.zip, 0, COFFER__ZIP_FORWARD, NULL), COFFER_OK);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(coffer_source_read_at(piece, src, places[i], sizeof piece, NULL), COFFER_OK);
        assert_memory_equal(piece, data + places[i], sizeof piece);
    }
    assert_int_equal(coffer_source_read_at(piece, src, LARGE - 99, 100, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_source_close(src);
    close_archive(&archive);
    free(data);
}

static void a_stored_member_is_seen_in_place(void **state)
{
    (void)state;
    const archive_member member = { .name = "plain", .data = "0123456789", .len = 10 };
    coffer_source *src = NULL;
    opened archive = open_bytes(archive_build(&member, 1, false));
    assert_int_equal(coffer__zip_source(&src, archive.zip, 0, COFFER__ZIP_RANDOM, NULL), COFFER_OK);
    assert_ptr_equal(coffer_source_view(src, 4, 6),
                     archive.bytes.data + coffer__zip_at(archive.zip, 0)->offset + 4);
    assert_null(coffer_source_view(src, 4, 7));
    coffer_source_close(src);
    close_archive(&archive);
}

static void expect_contents(archive_member member, coffer_status expected)
{
    static uint8_t back[LARGE + 4096];
    coffer_error err = COFFER_ERROR_INIT;
    opened archive = open_bytes(archive_build(&member, 1, false));
    assert_int_equal(archive.status, COFFER_OK);
    for (int access = 0; access < 2; access++) {
        coffer_status status = read_all(&archive, 0, (coffer__zip_access)access, back, &err);
        if (status != expected)
            fail_msg("gives %s (%s), expected %s", coffer_status_name(status), err.text,
                     coffer_status_name(expected));
    }
    close_archive(&archive);
}

static void contents_that_are_not_as_declared_are_refused(void **state)
{
    (void)state;
    uint8_t *data = large_data();
    archive_member packed = { .name = "m", .data = data, .len = LARGE, .deflate = true };
    archive_member changed = packed;
    changed.crc = 1;
    expect_contents(changed, COFFER_E_BAD_CHECKSUM);
    changed.deflate = false;
    expect_contents(changed, COFFER_E_BAD_CHECKSUM);
    changed = packed;
    changed.size = LARGE + 1;
    expect_contents(changed, COFFER_E_TRUNCATED);
    changed.size = LARGE - 1;
    expect_contents(changed, COFFER_E_SIZE_MISMATCH);
    changed = packed;
    changed.method = 12;
    expect_contents(changed, COFFER_E_UNSUPPORTED);
    changed = packed;
    changed.flags = 1;
    expect_contents(changed, COFFER_E_UNSUPPORTED);
    memset(data, 0xff, 1000); /* read as if it had been deflated: a block of a type that does not exist */
    changed = (archive_member){ .name = "m", .data = data, .len = 1000, .method = 8 };
    expect_contents(changed, COFFER_E_BAD_VALUE);
    free(data);
}

static void declared_sizes_that_cannot_be_are_refused_at_once(void **state)
{
    (void)state;
    archive_member bomb = { .name = "m", .data = "0123456789", .len = 10, .size = 1u << 30, .method = 8 };
    expect_open(archive_build(&bomb, 1, false), COFFER_E_SIZE_MISMATCH);
    bomb.method = 0;
    expect_open(archive_build(&bomb, 1, false), COFFER_E_SIZE_MISMATCH);
    bomb.size = UINT64_MAX;
    expect_open(archive_build(&bomb, 1, true), COFFER_E_SIZE_MISMATCH);
}

static void a_directory_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    const archive_member members[] = { { .name = "a", .data = "1", .len = 1 },
                                       { .name = "b", .data = "2", .len = 1 } };
    const archive_member twins[] = { members[0], members[0] };
    const archive_member nameless = { .name = "", .data = "1", .len = 1 };
    const archive_member not_text = { .name = "\xff", .data = "1", .len = 1 };
    expect_open(archive_build(twins, 2, false), COFFER_E_DUPLICATE);
    expect_open(archive_build(&nameless, 1, false), COFFER_E_BAD_TEXT);
    expect_open(archive_build(&not_text, 1, false), COFFER_E_BAD_TEXT);
    expect_open(archive_build(NULL, 0, false), COFFER_OK);

    coffer__buffer bytes = archive_build(members, 2, false);
    coffer__store_u16(bytes.data + bytes.len - 12, 3); /* one more member than there are */
    expect_open(bytes, COFFER_E_TRUNCATED);
    bytes = archive_build(members, 2, false);
    coffer__store_u32(bytes.data + bytes.len - 6, (uint32_t)bytes.len);
    expect_open(bytes, COFFER_E_OUT_OF_BOUNDS);
    bytes = archive_build(members, 2, false);
    coffer__store_u32(bytes.data + bytes.len - 22 - 47 + 42, 0); /* b's local header is a's */
    expect_open(bytes, COFFER_E_INCONSISTENT);
    bytes = archive_build(members, 2, false);
    coffer__store_u32(bytes.data + bytes.len - 22 - 47 + 42, 1);
    expect_open(bytes, COFFER_E_BAD_MAGIC);
    bytes = archive_build(members, 2, true);
    coffer__store_u64(bytes.data + bytes.len - 22 - 12, UINT64_MAX - 8); /* the locator's place */
    expect_open(bytes, COFFER_E_OUT_OF_BOUNDS);
}

static void members_that_overlap_are_refused(void **state)
{
    (void)state;
    /* The second member lies inside the bytes of the first. */
    const archive_member inner = { .name = "b", .data = "2", .len = 1 };
    coffer__buffer nested = archive_build(&inner, 1, false);
    const archive_member members[] = { { .name = "a", .data = nested.data, .len = 32 }, inner };
    coffer__buffer bytes = archive_build(members, 2, false);
    coffer__store_u32(bytes.data + bytes.len - 22 - 47 + 42, 31);
    expect_open(bytes, COFFER_E_OVERLAP);
    coffer__buffer_free(&nested);
}

static void every_prefix_of_an_archive_is_refused(void **state)
{
    (void)state;
    const archive_member members[] = { { .name = "a", .data = "1", .len = 1 },
                                       { .name = "b", .data = "22222222", .len = 8, .deflate = true } };
    coffer__buffer bytes = archive_build(members, 2, true);
    for (size_t len = 0; len < bytes.len; len++) {
        coffer__buffer prefix = COFFER__BUFFER_INIT;
        coffer__buffer_append(&prefix, bytes.data, len);
        opened archive = open_bytes(prefix);
        assert_int_not_equal(archive.status, COFFER_OK);
        close_archive(&archive);
    }
    coffer__buffer_free(&bytes);
}

static void the_arrays_of_an_npz_are_found_by_name(void **state)
{
    (void)state;
    const double values[] = { 1, 2, 3, 4, 5, 6 };
    coffer__buffer npy =
        archive_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", values, sizeof values);
    const archive_member members[] = {
        { .name = "readme.txt", .data = "hello", .len = 5 },
        { .name = "plain.npy", .data = npy.data, .len = npy.len },
        { .name = "packed.npy", .data = npy.data, .len = npy.len, .deflate = true }
    };
    coffer__buffer bytes = archive_build(members, 3, false);
    coffer_source *src = NULL;
    coffer__npz npz;
    assert_int_equal(coffer_source_from_memory(&src, bytes.data, bytes.len, NULL), COFFER_OK);
    assert_int_equal(coffer__npz_open(&npz, src, NULL, NULL), COFFER_OK);
    assert_int_equal(npz.count, 2);
    assert_int_equal(coffer__npz_find(&npz, "packed"), 1);
    assert_true(coffer__npz_find(&npz, "packed.npy") == SIZE_MAX);
    assert_int_equal(npz.arrays[1].npy.shape[1], 3);
    assert_memory_equal(bytes.data + coffer__npz_plain_offset(&npz, 0), values, sizeof values);
    assert_true(coffer__npz_plain_offset(&npz, 1) == COFFER_OFFSET_NONE);
    coffer__npz_close(&npz);
    coffer_source_close(src);
    coffer__buffer_free(&bytes);
    coffer__buffer_free(&npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_out_as_they_went_in),
        cmocka_unit_test(a_forward_source_can_be_read_in_any_order),
        cmocka_unit_test(a_stored_member_is_seen_in_place),
        cmocka_unit_test(contents_that_are_not_as_declared_are_refused),
        cmocka_unit_test(declared_sizes_that_cannot_be_are_refused_at_once),
        cmocka_unit_test(a_directory_that_does_not_fit_is_refused),
        cmocka_unit_test(members_that_overlap_are_refused),
        cmocka_unit_test(every_prefix_of_an_archive_is_refused),
        cmocka_unit_test(the_arrays_of_an_npz_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
