/* coffer-hdf5: libhdf5 in a process of its own. It has a socket to the library and, for a plain file, a
 * descriptor to read from; memory and processor time are limited, and system calls that could reach anything
 * else are refused. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/helper.h"
#include "base/memory.h"
#include "io/file.h"
#include "outside/arrays/hdf5_wire.h"

#define H5_USE_110_API
#include <hdf5.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For one request. A request reads at most a band of rows, which takes libhdf5 a second or two. */
enum { STEP_SECONDS = 60 };
/* The program and its libraries need this much besides the data. */
#define OWN_MEMORY ((uint64_t)256 << 20)

extern const coffer__module *const coffer_module_hdf5;

typedef struct server {
    const coffer__hdf5_module *hdf5;
    coffer__hdf5 *file;
    coffer__buffer frame; /* the request */
    coffer__buffer piece; /* a frame that is received while a request is worked on */
    coffer__buffer item;  /* a frame that is built */
} server;

static server state;

/* The library is gone, or does not say what it should: nobody is left to tell. */
static void leave(void)
{
    _exit(1);
}

static void send_frame(uint32_t kind, const void *head, size_t head_len, const void *tail, size_t tail_len)
{
    if (!coffer__frame_send(COFFER__HELPER_SOCKET, kind, head, head_len, tail, tail_len))
        leave();
}

static void send_item(uint32_t kind)
{
    if (state.item.failed)
        leave();
    send_frame(kind, state.item.data, state.item.len, NULL, 0);
    state.item.len = 0;
}

/* ---- Bytes of the file ---- */

static coffer_status ask_for(uint8_t *out, uint64_t offset, size_t len, coffer_error *err)
{
    uint8_t numbers[12];
    uint32_t kind;
    while (len > 0) {
        size_t some = len < COFFER__HDF5_PIECE ? len : COFFER__HDF5_PIECE;
        coffer__store_u64(numbers, offset);
        coffer__store_u32(numbers + 8, (uint32_t)some);
        send_frame(COFFER__HDF5_NEED, numbers, sizeof numbers, NULL, 0);
        if (!coffer__frame_receive(COFFER__HELPER_SOCKET, &kind, &state.piece) || kind != COFFER__HDF5_BYTES)
            leave();
        if (state.piece.len != some) /* the library knows why */
            return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "cannot read");
        memcpy(out, state.piece.data, some);
        out += some;
        offset += some;
        len -= some;
    }
    return COFFER_OK;
}

static coffer_status read_bytes(void *out, const coffer__hdf5_bytes *bytes, uint64_t offset, size_t len,
                                coffer_error *err)
{
    if (bytes->fd >= 0)
        return coffer__file_read_at(bytes->fd, out, len, offset, NULL, err);
    return ask_for(out, offset, len, err);
}

static coffer_status write_bytes(const coffer__hdf5_bytes *bytes, uint64_t offset, const void *data,
                                 size_t len, coffer_error *err)
{
    const uint8_t *at = data;
    (void)bytes, (void)err;
    while (len > 0) {
        uint8_t number[8];
        size_t some = len < COFFER__HDF5_PIECE ? len : COFFER__HDF5_PIECE;
        coffer__store_u64(number, offset);
        send_frame(COFFER__HDF5_STORE, number, sizeof number, at, some);
        at += some;
        offset += some;
        len -= some;
    }
    return COFFER_OK;
}

static coffer_status truncate_bytes(const coffer__hdf5_bytes *bytes, uint64_t size, coffer_error *err)
{
    uint8_t number[8];
    (void)bytes, (void)err;
    coffer__store_u64(number, size);
    send_frame(COFFER__HDF5_TRUNCATE, number, sizeof number, NULL, 0);
    return COFFER_OK;
}

/* ---- Requests ---- */

static coffer_status do_open(coffer__cursor *from, coffer_error *err)
{
    bool writes = coffer__cursor_u8(from), has_file = coffer__cursor_u8(from);
    coffer__hdf5_bytes bytes = { .fd = has_file ? COFFER__HELPER_FILE : -1, .read = read_bytes };
    uint64_t memory;
    bytes.size = coffer__cursor_u64(from);
    if (!coffer__add_u64(&memory, coffer__cursor_u64(from), OWN_MEMORY) || from->failed || state.file)
        leave();
    if (writes) {
        bytes.write = write_bytes;
        bytes.truncate = truncate_bytes;
    }
    coffer__sandbox_enter(memory);
    coffer__sandbox_allow_seconds(STEP_SECONDS);
    return state.hdf5->open(&state.file, &bytes, err);
}

static void send_name(void *context, const char *name, bool is_matrix)
{
    const uint8_t flag = is_matrix;
    size_t len = strlen(name);
    (void)context;
    if (len > COFFER__HDF5_MAX_TEXT)
        return;
    coffer__buffer_append(&state.item, &flag, 1);
    coffer__hdf5_put_text(&state.item, name, len);
    send_item(COFFER__HDF5_ITEM);
}

static coffer_status do_choose(coffer__cursor *from, coffer_error *err)
{
    coffer__hdf5_dataset dataset;
    const char *name = coffer__hdf5_get_text(from, NULL);
    if (!name)
        leave();
    coffer_status status = state.hdf5->choose(state.file, name, err);
    if (!status)
        status = state.hdf5->describe(&dataset, state.file, err);
    if (status)
        return status;
    uint32_t dimensions = dataset.dimensions > 0 ? (uint32_t)dataset.dimensions : 0;
    coffer__hdf5_put_u32(&state.item, dimensions);
    for (uint32_t i = 0; i < dimensions; i++)
        coffer__hdf5_put_u64(&state.item, dataset.extent[i]);
    send_item(COFFER__HDF5_ITEM);
    return COFFER_OK;
}

static coffer_status do_describe(coffer_error *err)
{
    coffer__hdf5_dataset dataset;
    coffer_status status = state.hdf5->describe(&dataset, state.file, err);
    if (status)
        return status;
    coffer__hdf5_put_dataset_frame(&state.item, &dataset);
    send_item(COFFER__HDF5_ITEM);
    return COFFER_OK;
}

static coffer_status do_read(coffer__cursor *from, coffer_error *err)
{
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { 0 }, count[COFFER__HDF5_MAX_DIMENSIONS] = { 0 };
    coffer_dtype dtype = (coffer_dtype)coffer__cursor_u32(from);
    uint32_t dimensions = coffer__cursor_u32(from);
    uint64_t bytes = coffer_dtype_size(dtype);
    bool good = dimensions <= COFFER__HDF5_MAX_DIMENSIONS && bytes > 0;
    for (uint32_t i = 0; good && i < dimensions; i++) {
        start[i] = coffer__cursor_u64(from);
        count[i] = coffer__cursor_u64(from);
        good = coffer__mul_u64(&bytes, bytes, count[i]);
    }
    if (!good || from->failed || bytes > SIZE_MAX)
        leave();
    uint8_t *values = coffer__malloc((size_t)bytes);
    if (!values)
        return coffer__fail_no_memory(err, bytes);
    coffer_status status = state.hdf5->read_block(values, state.file, dtype, start, count, err);
    for (size_t at = 0, some; !status && at < bytes; at += some) {
        some = bytes - at < COFFER__HDF5_PIECE ? (size_t)bytes - at : COFFER__HDF5_PIECE;
        send_frame(COFFER__HDF5_DATA, values + at, some, NULL, 0);
    }
    coffer__free(values);
    return status;
}

static coffer_status send_attribute(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    (void)context, (void)err;
    coffer__hdf5_put_attribute_frame(&state.item, attribute);
    send_item(COFFER__HDF5_ITEM);
    return COFFER_OK;
}

static coffer_status do_attributes(coffer__cursor *from, coffer_error *err)
{
    const char *object = coffer__hdf5_get_text(from, NULL);
    if (!object)
        leave();
    return state.hdf5->attributes(state.file, *object ? object : NULL, send_attribute, NULL, err);
}

static coffer_status do_create(coffer__cursor *from, coffer_error *err)
{
    coffer_dtype dtype = (coffer_dtype)coffer__cursor_u32(from);
    int dimensions = (int)coffer__cursor_u32(from);
    uint64_t size[2];
    for (int i = 0; i < 2; i++)
        size[i] = coffer__cursor_u64(from);
    const char *name = coffer__hdf5_get_text(from, NULL);
    if (!name)
        leave();
    return state.hdf5->create_dataset(state.file, name, dtype, dimensions, size, err);
}

static coffer_status do_write(coffer__cursor *from, coffer_error *err)
{
    uint64_t bytes = coffer__cursor_u64(from), start[2], size[2];
    uint32_t kind;
    for (int i = 0; i < 2; i++)
        start[i] = coffer__cursor_u64(from);
    for (int i = 0; i < 2; i++)
        size[i] = coffer__cursor_u64(from);
    uint8_t *values = from->failed || bytes > SIZE_MAX ? NULL : coffer__malloc((size_t)bytes);
    if (!values)
        leave();
    for (size_t at = 0; at < bytes; at += state.piece.len) {
        if (!coffer__frame_receive(COFFER__HELPER_SOCKET, &kind, &state.piece) ||
            kind != COFFER__HDF5_BYTES || state.piece.len == 0 || state.piece.len > bytes - at)
            leave();
        memcpy(values + at, state.piece.data, state.piece.len);
    }
    coffer_status status = state.hdf5->write_tile(state.file, values, start, size, err);
    coffer__free(values);
    return status;
}

static coffer_status do_put(coffer__cursor *from, coffer_error *err)
{
    coffer__hdf5_attribute attribute;
    if (!coffer__hdf5_get_attribute_frame(&attribute, from))
        leave();
    return state.hdf5->put_attribute(state.file, &attribute, err);
}

static coffer_status do_close(coffer_error *err)
{
    coffer_status status = state.hdf5->close(state.file, err);
    state.file = NULL;
    return status;
}

static coffer_status serve(uint32_t kind, coffer__cursor *from, coffer_error *err)
{
    if (kind != COFFER__HDF5_OPEN && !state.file)
        leave();
    switch (kind) {
    case COFFER__HDF5_OPEN:
        return do_open(from, err);
    case COFFER__HDF5_CLOSE:
        return do_close(err);
    case COFFER__HDF5_LIST:
        return state.hdf5->list(state.file, send_name, NULL, err);
    case COFFER__HDF5_CHOOSE:
        return do_choose(from, err);
    case COFFER__HDF5_DESCRIBE:
        return do_describe(err);
    case COFFER__HDF5_READ:
        return do_read(from, err);
    case COFFER__HDF5_ATTRIBUTES:
        return do_attributes(from, err);
    case COFFER__HDF5_CREATE:
        return do_create(from, err);
    case COFFER__HDF5_WRITE:
        return do_write(from, err);
    case COFFER__HDF5_PUT:
        return do_put(from, err);
    default:
        leave();
        return COFFER_OK;
    }
}

static void say_hello(void)
{
    static const char version[] = COFFER_VERSION_STRING;
    const char *library = state.hdf5->common.library_version();
    send_frame(COFFER__FRAME_HELLO, version, sizeof version, library, strlen(library));
}

int main(void)
{
    uint32_t kind;
    if (fcntl(COFFER__HELPER_SOCKET, F_GETFD) < 0) {
        fputs("coffer-hdf5 is started by libcoffer, to read HDF5 files\n", stderr);
        return 2;
    }
    close_range(COFFER__HELPER_FILE + 1, ~0U, 0);
    state.hdf5 = (const coffer__hdf5_module *)(const void *)coffer_module_hdf5;
    coffer__buffer_init(&state.frame, COFFER__FRAME_MAX + 1);
    coffer__buffer_init(&state.piece, COFFER__FRAME_MAX + 1);
    coffer__buffer_init(&state.item, COFFER__FRAME_MAX);
    /* After a damaged file, the work of libhdf5 at the end of a program may never finish. */
    H5dont_atexit();
    if (H5open() < 0 || H5PLset_loading_state(0) < 0)
        return 1;
    say_hello();
    while (coffer__frame_receive(COFFER__HELPER_SOCKET, &kind, &state.frame)) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer__cursor from = coffer__cursor_over(state.frame.data, state.frame.len, 0);
        coffer__sandbox_allow_seconds(STEP_SECONDS);
        coffer_status status = serve(kind, &from, &err);
        state.item.len = 0;
        coffer__hdf5_put_u32(&state.item, (uint32_t)(int32_t)status);
        coffer__hdf5_put_text(&state.item, err.text, strlen(err.text));
        send_item(COFFER__HDF5_DONE);
    }
    _exit(0);
}
