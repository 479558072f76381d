/* The table of HDF5 functions that asks the program coffer-hdf5. What the program says is checked like a
 * file: it may be in the hands of one. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "outside/arrays/hdf5_wire.h"

#include <inttypes.h>

/* Limits of what a listing may hand over. */
enum { MAX_ITEMS = 1 << 20 };
#define MAX_ITEM_BYTES ((size_t)1 << 28)
#define DEFAULT_MEMORY ((uint64_t)1 << 30)

struct coffer__hdf5 {
    coffer__helper helper;
    coffer__hdf5_bytes bytes;
    coffer_error failure;  /* of the disk: it explains every error after it */
    coffer__buffer frame;  /* the last one received */
    coffer__buffer answer; /* bytes of the file, for the program */
    int dimensions;        /* of the chosen dataset */
    uint64_t extent[COFFER__HDF5_MAX_DIMENSIONS];
};

/* A request expects items, data, or nothing but its end. */
typedef struct exchange {
    bool (*item)(struct exchange *request, coffer__cursor *from); /* false: not what was asked for */
    void *context;
    uint8_t *out; /* for DATA */
    uint64_t left;
    size_t items, item_bytes;
    coffer_status status; /* of the caller's function */
    coffer_error *err;
} exchange;

/* ---- Answers to the program ---- */

static bool answer_need(coffer__hdf5 *file, coffer__cursor *from)
{
    uint64_t offset = coffer__cursor_u64(from);
    uint32_t len = coffer__cursor_u32(from);
    file->answer.len = 0;
    if (from->failed || len == 0 || len > COFFER__HDF5_PIECE ||
        !coffer__range_fits(offset, len, file->bytes.size))
        return false;
    uint8_t *bytes = coffer__buffer_extend(&file->answer, len);
    if (!bytes) {
        if (!file->failure.status)
            coffer__fail_no_memory(&file->failure, len);
        len = 0;
    } else if (file->failure.status || file->bytes.read(bytes, &file->bytes, offset, len, &file->failure)) {
        len = 0;
    }
    return coffer__frame_send(file->helper.fd, COFFER__HDF5_BYTES, bytes, len, NULL, 0);
}

/* A write that fails is remembered; the program learns of it at the end of its request. */
static bool do_store(coffer__hdf5 *file, coffer__cursor *from)
{
    uint64_t offset = coffer__cursor_u64(from), end;
    size_t len = coffer__cursor_left(from);
    if (from->failed || !file->bytes.write || !coffer__add_u64(&end, offset, len))
        return false;
    if (!file->failure.status)
        file->bytes.write(&file->bytes, offset, from->at, len, &file->failure);
    if (end > file->bytes.size)
        file->bytes.size = end;
    return true;
}

static bool do_truncate(coffer__hdf5 *file, coffer__cursor *from)
{
    uint64_t size = coffer__cursor_u64(from);
    if (from->failed || !file->bytes.truncate)
        return false;
    if (!file->failure.status)
        file->bytes.truncate(&file->bytes, size, &file->failure);
    file->bytes.size = size;
    return true;
}

static bool take_item(exchange *request, coffer__cursor *from)
{
    request->item_bytes += coffer__cursor_left(from);
    if (!request->item || ++request->items > MAX_ITEMS || request->item_bytes > MAX_ITEM_BYTES)
        return false;
    return request->status != COFFER_OK || request->item(request, from);
}

static bool take_data(exchange *request, coffer__cursor *from)
{
    size_t len = coffer__cursor_left(from);
    if (len > request->left)
        return false;
    if (len == 0)
        return true;
    memcpy(request->out, from->at, len);
    request->out += len;
    request->left -= len;
    return true;
}

/* ---- Requests ---- */

/* The program ended, or says what it never should. */
static coffer_status fail_helper(coffer__hdf5 *file, coffer_error *err)
{
    coffer_status status = coffer__helper_fail(&file->helper, err);
    return coffer__fail_prefix(err, status, "HDF5");
}

static coffer_status fail_protocol(coffer__hdf5 *file, coffer_error *err)
{
    coffer__helper_stop(&file->helper);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "HDF5: coffer-hdf5 gave an impossible answer; the file is damaged or malicious");
}

static coffer_status finish(coffer__hdf5 *file, const exchange *request, coffer__cursor *from,
                            coffer_error *err)
{
    coffer_status status = (coffer_status)(int32_t)coffer__cursor_u32(from);
    size_t len;
    const char *text = coffer__hdf5_get_text(from, &len);
    bool known = status == COFFER_OK || strcmp(coffer_status_name(status), "unknown") != 0;
    if (!text || !known)
        return fail_protocol(file, err);
    if (file->failure.status)
        return coffer__fail_copy(err, &file->failure);
    if (request->status)
        return request->status;
    if (!status)
        return request->left == 0 ? COFFER_OK : fail_protocol(file, err);
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "%s",
                        len && *text && coffer__utf8_valid(text, len) ? text : "HDF5: no reason given");
}

/* Serves the program until the request is done. */
static coffer_status wait_for(coffer__hdf5 *file, exchange *request, coffer_error *err)
{
    uint32_t kind;
    for (;;) {
        if (!coffer__frame_receive(file->helper.fd, &kind, &file->frame))
            return fail_helper(file, err);
        coffer__cursor from = coffer__cursor_over(file->frame.data, file->frame.len, 0);
        bool good = false;
        switch (kind) {
        case COFFER__HDF5_NEED:
            good = answer_need(file, &from);
            break;
        case COFFER__HDF5_STORE:
            good = do_store(file, &from);
            break;
        case COFFER__HDF5_TRUNCATE:
            good = do_truncate(file, &from);
            break;
        case COFFER__HDF5_ITEM:
            good = take_item(request, &from);
            break;
        case COFFER__HDF5_DATA:
            good = take_data(request, &from);
            break;
        case COFFER__HDF5_DONE:
            return finish(file, request, &from, err);
        default:
            break;
        }
        if (!good)
            return fail_protocol(file, err);
    }
}

static coffer_status ask(coffer__hdf5 *file, coffer__hdf5_frame kind, coffer__buffer *arguments,
                         exchange *request, coffer_error *err)
{
    coffer_status status;
    if (file->failure.status)
        status = coffer__fail_copy(err, &file->failure);
    else if (arguments->failed || arguments->len > COFFER__FRAME_MAX)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "HDF5: a name or text is too long");
    else if (file->helper.fd < 0)
        status = fail_protocol(file, err);
    else if (!coffer__frame_send(file->helper.fd, kind, arguments->data, arguments->len, NULL, 0))
        status = fail_helper(file, err);
    else
        status = wait_for(file, request, err);
    coffer__buffer_free(arguments);
    return status;
}

/* ---- The table ---- */

static void free_file(coffer__hdf5 *file)
{
    coffer__helper_stop(&file->helper);
    coffer__buffer_free(&file->frame);
    coffer__buffer_free(&file->answer);
    coffer__free(file);
}

static coffer_status open_file(coffer__hdf5 **out, const coffer__hdf5_bytes *bytes, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { 0 };
    bool writes = bytes->write != NULL, passes = !writes && bytes->fd >= 0;
    coffer__hdf5 *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    file->helper.fd = -1;
    file->bytes = *bytes;
    coffer__buffer_init(&file->frame, COFFER__FRAME_MAX + 1);
    coffer__buffer_init(&file->answer, COFFER__FRAME_MAX);
    coffer_status status =
        coffer__helper_start(&file->helper, COFFER__MODULE_HDF5, passes ? bytes->fd : -1, &file->frame, err);
    if (!status) {
        const uint8_t flags[2] = { writes, passes };
        coffer__buffer_append(&arguments, flags, sizeof flags);
        coffer__hdf5_put_u64(&arguments, bytes->size);
        coffer__hdf5_put_u64(&arguments, bytes->memory_bytes ? bytes->memory_bytes : DEFAULT_MEMORY);
        status = ask(file, COFFER__HDF5_OPEN, &arguments, &request, err);
    }
    if (status)
        free_file(file);
    else
        *out = file;
    return status;
}

static coffer_status close_file(coffer__hdf5 *file, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { 0 };
    coffer_status status = COFFER_OK;
    if (!file)
        return COFFER_OK;
    if (file->bytes.write)
        status = ask(file, COFFER__HDF5_CLOSE, &arguments, &request, err);
    free_file(file);
    return status;
}

typedef struct list_visitor {
    void (*visit)(void *context, const char *name, bool is_matrix);
    void *context;
} list_visitor;

static bool take_name(exchange *request, coffer__cursor *from)
{
    const list_visitor *visitor = request->context;
    uint8_t is_matrix = coffer__cursor_u8(from);
    size_t len;
    const char *name = coffer__hdf5_get_text(from, &len);
    if (!name)
        return false;
    /* A name that is not UTF-8 could not be shown, and not be typed either. */
    if (len > 0 && coffer__utf8_valid(name, len))
        visitor->visit(visitor->context, name, is_matrix != 0);
    return true;
}

static coffer_status list(coffer__hdf5 *file, void (*visit)(void *context, const char *name, bool is_matrix),
                          void *context, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    list_visitor visitor = { visit, context };
    exchange request = { .item = take_name, .context = &visitor };
    return ask(file, COFFER__HDF5_LIST, &arguments, &request, err);
}

static bool take_extent(exchange *request, coffer__cursor *from)
{
    coffer__hdf5 *file = request->context;
    uint32_t dimensions = coffer__cursor_u32(from);
    if (dimensions > COFFER__HDF5_MAX_DIMENSIONS)
        return false;
    file->dimensions = (int)dimensions;
    for (uint32_t i = 0; i < dimensions; i++)
        file->extent[i] = coffer__cursor_u64(from);
    return !from->failed;
}

static coffer_status choose(coffer__hdf5 *file, const char *name, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { .item = take_extent, .context = file };
    file->dimensions = 0;
    coffer__hdf5_put_text(&arguments, name, strlen(name));
    return ask(file, COFFER__HDF5_CHOOSE, &arguments, &request, err);
}

static bool take_dataset(exchange *request, coffer__cursor *from)
{
    return coffer__hdf5_get_dataset_frame(request->context, from);
}

static coffer_status describe(coffer__hdf5_dataset *out, coffer__hdf5 *file, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { .item = take_dataset, .context = out };
    memset(out, 0, sizeof *out);
    coffer_status status = ask(file, COFFER__HDF5_DESCRIBE, &arguments, &request, err);
    return !status && request.items != 1 ? fail_protocol(file, err) : status;
}

static coffer_status read_block(void *out, coffer__hdf5 *file, coffer_dtype dtype, const uint64_t *start,
                                const uint64_t *count, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { .out = out, .left = coffer_dtype_size(dtype) };
    coffer__hdf5_put_u32(&arguments, (uint32_t)dtype);
    coffer__hdf5_put_u32(&arguments, (uint32_t)file->dimensions);
    for (int i = 0; i < file->dimensions; i++) {
        coffer__hdf5_put_u64(&arguments, start[i]);
        coffer__hdf5_put_u64(&arguments, count[i]);
        if (!coffer__range_fits(start[i], count[i], file->extent[i]) ||
            !coffer__mul_u64(&request.left, request.left, count[i])) {
            coffer__buffer_free(&arguments);
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "HDF5: %" PRIu64 " values from %" PRIu64
                                " on requested, dimension %d has %" PRIu64,
                                count[i], start[i], i, file->extent[i]);
        }
    }
    return ask(file, COFFER__HDF5_READ, &arguments, &request, err);
}

static coffer_status read_rows(void *out, coffer__hdf5 *file, coffer_dtype dtype, uint64_t row,
                               uint64_t count, coffer_error *err)
{
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { row }, size[COFFER__HDF5_MAX_DIMENSIONS] = { count };
    for (int i = 1; i < file->dimensions; i++)
        size[i] = file->extent[i];
    return read_block(out, file, dtype, start, size, err);
}

typedef struct attribute_visitor {
    coffer_status (*visit)(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err);
    void *context;
} attribute_visitor;

static bool take_attribute(exchange *request, coffer__cursor *from)
{
    const attribute_visitor *visitor = request->context;
    coffer__hdf5_attribute attribute;
    if (!coffer__hdf5_get_attribute_frame(&attribute, from) || !attribute.name[0] ||
        !coffer__utf8_valid(attribute.name, strlen(attribute.name)) ||
        (attribute.kind == COFFER__HDF5_TEXT && !coffer__utf8_valid(attribute.text, attribute.len)))
        return false;
    request->status = visitor->visit(visitor->context, &attribute, request->err);
    return true;
}

static coffer_status attributes(coffer__hdf5 *file, const char *object,
                                coffer_status (*visit)(void *context, const coffer__hdf5_attribute *attribute,
                                                       coffer_error *err),
                                void *context, coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    attribute_visitor visitor = { visit, context };
    exchange request = { .item = take_attribute, .context = &visitor, .err = err };
    coffer__hdf5_put_text(&arguments, object ? object : "", object ? strlen(object) : 0);
    return ask(file, COFFER__HDF5_ATTRIBUTES, &arguments, &request, err);
}

static coffer_status create_dataset(coffer__hdf5 *file, const char *name, coffer_dtype dtype, int dimensions,
                                    const uint64_t size[2], coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { 0 };
    coffer__hdf5_put_u32(&arguments, (uint32_t)dtype);
    coffer__hdf5_put_u32(&arguments, (uint32_t)dimensions);
    for (int i = 0; i < 2; i++)
        coffer__hdf5_put_u64(&arguments, i < dimensions ? size[i] : 1);
    coffer__hdf5_put_text(&arguments, name, strlen(name));
    file->dimensions = dimensions;
    file->extent[0] = coffer_dtype_size(dtype); /* a file is read or written: this is for write_tile */
    return ask(file, COFFER__HDF5_CREATE, &arguments, &request, err);
}

static coffer_status write_tile(coffer__hdf5 *file, const void *values, const uint64_t start[2],
                                const uint64_t size[2], coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { 0 };
    const uint8_t *at = values;
    uint64_t left = file->extent[0];
    if (file->failure.status)
        return coffer__fail_copy(err, &file->failure);
    for (int i = 0; i < file->dimensions; i++)
        left *= size[i];
    coffer__hdf5_put_u64(&arguments, left);
    for (int i = 0; i < 2; i++)
        coffer__hdf5_put_u64(&arguments, i < file->dimensions ? start[i] : 0);
    for (int i = 0; i < 2; i++)
        coffer__hdf5_put_u64(&arguments, i < file->dimensions ? size[i] : 1);
    bool sent =
        file->helper.fd >= 0 && !arguments.failed &&
        coffer__frame_send(file->helper.fd, COFFER__HDF5_WRITE, arguments.data, arguments.len, NULL, 0);
    coffer__buffer_free(&arguments);
    while (sent && left > 0) {
        size_t len = left < COFFER__HDF5_PIECE ? (size_t)left : COFFER__HDF5_PIECE;
        sent = coffer__frame_send(file->helper.fd, COFFER__HDF5_BYTES, at, len, NULL, 0);
        at += len;
        left -= len;
    }
    return sent ? wait_for(file, &request, err) : fail_helper(file, err);
}

static coffer_status put_attribute(coffer__hdf5 *file, const coffer__hdf5_attribute *attribute,
                                   coffer_error *err)
{
    coffer__buffer arguments = COFFER__BUFFER_INIT;
    exchange request = { 0 };
    coffer__hdf5_put_attribute_frame(&arguments, attribute);
    return ask(file, COFFER__HDF5_PUT, &arguments, &request, err);
}

static const char *library_version(void)
{
    return coffer__helper_version(COFFER__MODULE_HDF5, NULL);
}

const coffer__hdf5_module coffer__hdf5_remote = {
    COFFER__MODULE_INIT(coffer__hdf5_module, library_version),
    open_file,
    close_file,
    list,
    choose,
    describe,
    read_rows,
    read_block,
    attributes,
    create_dataset,
    write_tile,
    put_attribute,
};
