#include "outside/profiles/memray.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <lz4frame.h>
#include <string.h>

#define PIECE ((size_t)1 << 16)
#define TEXT_MAX ((size_t)1 << 20) /* of a name, and of a line table */

static const uint8_t lz4_magic[] = { 0x04, 0x22, 0x4d, 0x18 };
static const char magic[] = "memray"; /* with its NUL */

enum {
    END = 1,
    RSS = 2,
    NATIVE_FRAME = 5,
    MODULES = 6,
    MODULE = 7,
    SEGMENT = 8,
    THREAD_NAME = 10,
    SWITCH = 12,
    CODE = 14,
    POP = 0x10,
    OBJECT = 0x20,
    PUSH = 0x40,
    ALLOCATION = 0x80
};
/* Allocators; the others allocate. */
enum { PYMALLOC_FREE = 1, FREE = 5, MMAP = 14, MUNMAP = 15 };

bool coffer__memray_probe(const uint8_t *head, size_t len)
{
    enum { WITHIN = 40 }; /* the first bytes of an LZ4 frame are literals */
    if (len >= sizeof magic && memcmp(head, magic, sizeof magic) == 0)
        return true;
    return len > sizeof lz4_magic && memcmp(head, lz4_magic, sizeof lz4_magic) == 0 &&
           memmem(head, len < WITHIN ? len : WITHIN, magic, sizeof magic);
}

/* ---- Bytes ---- */

static coffer_status fail(const coffer__memray *capture, const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "memray capture, unpacked byte %" PRIu64 ": %s", capture->consumed + capture->at,
                        what);
}

/* Reads more of the file into `to`. *len 0 : the end. */
static coffer_status read_file(uint8_t *to, size_t *len, coffer__memray *capture, coffer_error *err)
{
    uint64_t left = coffer_source_size(capture->source) - capture->offset;
    *len = left < PIECE ? (size_t)left : PIECE;
    coffer_status status =
        *len ? coffer_source_read_at(to, capture->source, capture->offset, *len, err) : COFFER_OK;
    capture->offset += *len;
    return status;
}

/* Fills `bytes` again; they stay empty at the end of the file. */
static coffer_status refill(coffer__memray *capture, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    capture->consumed += capture->len;
    capture->len = capture->at = 0;
    if (!capture->unpacker)
        return read_file(capture->bytes, &capture->len, capture, err);
    while (!status && capture->len == 0) {
        if (capture->packed_at == capture->packed_len) {
            capture->packed_at = 0;
            status = read_file(capture->packed, &capture->packed_len, capture, err);
            if (status || capture->packed_len == 0)
                return status;
        }
        size_t to = PIECE, from = capture->packed_len - capture->packed_at;
        size_t result = LZ4F_decompress(capture->unpacker, capture->bytes, &to,
                                        capture->packed + capture->packed_at, &from, NULL);
        if (LZ4F_isError(result))
            return fail(capture, "the LZ4 frame is damaged", err);
        capture->packed_at += from;
        capture->len = to;
    }
    return status;
}

/* *found : false at the end of the capture. */
static coffer_status maybe_byte(bool *found, uint8_t *out, coffer__memray *capture, coffer_error *err)
{
    coffer_status status = capture->at < capture->len ? COFFER_OK : refill(capture, err);
    *found = !status && capture->at < capture->len;
    if (*found)
        *out = capture->bytes[capture->at++];
    return status;
}

static coffer_status take(void *out, size_t len, coffer__memray *capture, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint8_t *to = out; len > 0 && !status;) {
        if (capture->at == capture->len)
            status = refill(capture, err);
        size_t part = capture->len - capture->at < len ? capture->len - capture->at : len;
        if (!status && part == 0)
            return coffer__fail(
                err, COFFER_E_TRUNCATED, capture->offset,
                "the memray capture ends within a record (\"partial\" takes the part before)");
        if (!status)
            memcpy(to, capture->bytes + capture->at, part);
        capture->at += part;
        to += part;
        len -= part;
    }
    return status;
}

static coffer_status take_varint(uint64_t *out, coffer__memray *capture, coffer_error *err)
{
    uint8_t byte = 0x80;
    coffer_status status = COFFER_OK;
    *out = 0;
    for (unsigned shift = 0; byte & 0x80 && !status; shift += 7) {
        if (shift >= 64)
            return fail(capture, "a number of more than 64 bits", err);
        status = take(&byte, 1, capture, err);
        *out |= (uint64_t)(byte & 0x7f) << shift;
    }
    return status;
}

static coffer_status take_signed(int64_t *out, coffer__memray *capture, coffer_error *err)
{
    uint64_t zigzag = 0;
    coffer_status status = take_varint(&zigzag, capture, err);
    *out = (int64_t)(zigzag >> 1 ^ (0 - (zigzag & 1)));
    return status;
}

/* Adds a difference to *last. */
static coffer_status take_delta(uint64_t *last, coffer__memray *capture, coffer_error *err)
{
    int64_t delta = 0;
    coffer_status status = take_signed(&delta, capture, err);
    *last += (uint64_t)delta;
    return status;
}

static coffer_status take_u64(uint64_t *out, coffer__memray *capture, coffer_error *err)
{
    uint8_t bytes[8] = { 0 };
    coffer_status status = take(bytes, sizeof bytes, capture, err);
    *out = coffer__load_u64(bytes);
    return status;
}

static coffer_status take_text(coffer__buffer *out, coffer__memray *capture, coffer_error *err)
{
    uint8_t byte = 1;
    coffer_status status = COFFER_OK;
    out->len = 0;
    while (byte != 0 && !status) {
        status = take(&byte, 1, capture, err);
        if (!status && byte != 0)
            coffer__buffer_append(out, &byte, 1);
        if (out->len > TEXT_MAX)
            return fail(capture, "a text of more than 1 MiB", err);
    }
    return !status && out->failed ? coffer__fail_no_memory(err, out->len) : status;
}

/* ---- The header ---- */

/* Paths of modules, up to an empty one. */
static coffer_status skip_paths(coffer__memray *capture, coffer_error *err)
{
    coffer_status status;
    do
        status = take_text(&capture->text, capture, err);
    while (!status && capture->text.len > 0);
    return status;
}

static coffer_status read_header(coffer__memray *capture, coffer_error *err)
{
    enum { FIXED = sizeof magic + 4 + 4 + 1 + 1 + 4 * 8, AFTER_COMMAND = 4 + 8 + 8 + 3 };
    uint8_t head[FIXED] = { 0 }, rest[AFTER_COMMAND] = { 0 };
    coffer_status status = take(head, sizeof head, capture, err);
    if (!status && memcmp(head, magic, sizeof magic) != 0)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "this is not a capture of memray");
    uint32_t version = coffer__load_u32(head + sizeof magic);
    if (!status && version != COFFER__MEMRAY_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER_OFFSET_NONE,
                            "a memray capture of version %" PRIu32
                            "; Coffer reads version %d, which memray 1.20 writes",
                            version, COFFER__MEMRAY_VERSION);
    capture->python = coffer__load_u32(head + sizeof magic + 4);
    capture->native = head[sizeof magic + 8];
    if (!status && head[sizeof magic + 9] != 0)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "an aggregated memray capture has sums and no events; record without --aggregate");
    capture->start_ms = coffer__load_u64(head + sizeof magic + 10 + 16);
    if (!status)
        status = take_text(&capture->command, capture, err);
    if (!status)
        status = take(rest, sizeof rest, capture, err);
    capture->main_thread = coffer__load_u64(rest + 4);
    capture->skipped_frames = coffer__load_u64(rest + 12);
    if (!status)
        status = take_text(&capture->text, capture, err);
    if (!status)
        status = skip_paths(capture, err);
    return status ? status : skip_paths(capture, err);
}

coffer_status coffer__memray_open(coffer__memray *out, coffer_source *source, coffer_error *err)
{
    uint8_t head[sizeof lz4_magic] = { 0 };
    LZ4F_dctx *unpacker = NULL;
    *out = (coffer__memray){ .source = source,
                             .text = COFFER__BUFFER_INIT,
                             .file = COFFER__BUFFER_INIT,
                             .table = COFFER__BUFFER_INIT,
                             .command = COFFER__BUFFER_INIT };
    out->bytes = coffer__malloc(PIECE);
    out->packed = coffer__malloc(PIECE);
    if (!out->bytes || !out->packed)
        return coffer__fail_no_memory(err, PIECE);
    if (coffer_source_size(source) < sizeof head)
        return coffer__fail(err, COFFER_E_TRUNCATED, 0, "the memray capture ends within its header");
    coffer_status status = coffer_source_read_at(head, source, 0, sizeof head, err);
    if (status)
        return status;
    if (memcmp(head, lz4_magic, sizeof head) == 0) {
        if (LZ4F_isError(LZ4F_createDecompressionContext(&unpacker, LZ4F_VERSION)))
            return coffer__fail_no_memory(err, PIECE);
        out->unpacker = unpacker;
    }
    return read_header(out, err);
}

void coffer__memray_close(coffer__memray *capture)
{
    LZ4F_freeDecompressionContext(capture->unpacker);
    coffer__free(capture->bytes);
    coffer__free(capture->packed);
    coffer__buffer_free(&capture->text);
    coffer__buffer_free(&capture->file);
    coffer__buffer_free(&capture->table);
    coffer__buffer_free(&capture->command);
    *capture = (coffer__memray){ .source = NULL };
}

/* ---- Records ---- */

/* An address is one of the last fifteen, or a difference. */
static coffer_status take_address(uint64_t *out, coffer__memray *capture, unsigned cached, coffer_error *err)
{
    if (cached < COFFER__MEMRAY_CACHE) {
        *out = capture->recent[cached];
        return COFFER_OK;
    }
    coffer_status status = take_delta(&capture->last_address, capture, err);
    memmove(capture->recent + 1, capture->recent, sizeof capture->recent - sizeof *capture->recent);
    *out = capture->recent[0] = capture->last_address << 3;
    return status;
}

static coffer_status take_allocation(coffer__memray_record *out, coffer__memray *capture, unsigned flags,
                                     coffer_error *err)
{
    uint8_t allocator = flags & 7;
    coffer_status status = take_address(&out->address, capture, flags >> 3, err);
    if (!status && allocator == 0)
        status = take(&allocator, 1, capture, err);
    bool frees = allocator == PYMALLOC_FREE || allocator == FREE;
    if (!status && (allocator == 0 || allocator > MUNMAP))
        return fail(capture, "an unknown allocator", err);
    if (!status && capture->native && !frees) {
        capture->left_out++;
        status = take_delta(&capture->last_native, capture, err);
    }
    if (!status && !frees)
        status = take_varint(&out->size, capture, err);
    out->type = frees                 ? COFFER__MEMRAY_FREE
                : allocator == MMAP   ? COFFER__MEMRAY_MAP
                : allocator == MUNMAP ? COFFER__MEMRAY_UNMAP
                                      : COFFER__MEMRAY_ALLOC;
    return status;
}

static coffer_status take_code(coffer__memray_record *out, coffer__memray *capture, coffer_error *err)
{
    uint64_t len = 0;
    int64_t delta = 0;
    out->type = COFFER__MEMRAY_CODE;
    coffer_status status = take_varint(&out->id, capture, err);
    if (!status)
        status = take_text(&capture->text, capture, err);
    if (!status)
        status = take_text(&capture->file, capture, err);
    if (!status)
        status = take_signed(&delta, capture, err);
    capture->last_line = (int64_t)((uint64_t)capture->last_line + (uint64_t)delta);
    out->instruction = capture->last_line;
    if (!status)
        status = take_varint(&len, capture, err);
    if (!status && len > TEXT_MAX)
        return fail(capture, "a line table of more than 1 MiB", err);
    capture->table.len = 0;
    for (uint8_t byte; len > 0 && !status; len--) {
        status = take(&byte, 1, capture, err);
        if (!status)
            coffer__buffer_append(&capture->table, &byte, 1);
    }
    return !status && capture->table.failed ? coffer__fail_no_memory(err, len) : status;
}

static coffer_status skip_native(coffer__memray *capture, uint8_t type, coffer_error *err)
{
    uint64_t number;
    coffer_status status = COFFER_OK;
    capture->left_out++;
    if (type == NATIVE_FRAME) {
        status = take_delta(&capture->last_pointer, capture, err);
        return status ? status : take_delta(&capture->last_native, capture, err);
    }
    if (type == MODULE) {
        status = take_text(&capture->text, capture, err);
        if (!status)
            status = take_varint(&number, capture, err);
        return status ? status : take_u64(&number, capture, err);
    }
    if (type == SEGMENT) {
        status = take_u64(&number, capture, err);
        return status ? status : take_varint(&number, capture, err);
    }
    return status;
}

static coffer_status skip_object(coffer__memray *capture, unsigned flags, coffer_error *err)
{
    uint64_t address;
    coffer_status status = take_address(&address, capture, flags >> 1 & 15, err);
    capture->left_out++;
    if (!status && capture->native && flags & 1)
        status = take_delta(&capture->last_native, capture, err);
    return status;
}

/* A record without flags. *taken : false when it was skipped. */
static coffer_status take_plain(bool *taken, coffer__memray_record *out, coffer__memray *capture,
                                uint8_t type, coffer_error *err)
{
    coffer_status status;
    switch (type) {
    case END:
        out->type = COFFER__MEMRAY_END;
        capture->complete = true;
        return COFFER_OK;
    case RSS:
        out->type = COFFER__MEMRAY_RSS;
        status = take_varint(&out->size, capture, err);
        return status ? status : take_varint(&out->id, capture, err);
    case THREAD_NAME:
        out->type = COFFER__MEMRAY_NAME;
        return take_text(&capture->text, capture, err);
    case SWITCH:
        out->type = COFFER__MEMRAY_SWITCH;
        return take_u64(&out->id, capture, err);
    case CODE:
        return take_code(out, capture, err);
    case NATIVE_FRAME:
    case MODULES:
    case MODULE:
    case SEGMENT:
        *taken = false;
        return skip_native(capture, type, err);
    case 0:
        *taken = false;
        return COFFER_OK;
    default:
        return fail(capture, "an unknown record", err);
    }
}

coffer_status coffer__memray_next(coffer__memray_record *out, coffer__memray *capture, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (bool taken = false; !taken && !status;) {
        uint8_t type = END;
        bool found = false;
        *out = (coffer__memray_record){ .type = COFFER__MEMRAY_END };
        taken = true;
        status = maybe_byte(&found, &type, capture, err);
        if (status || !found)
            return status;
        if (type & ALLOCATION) {
            status = take_allocation(out, capture, type & 0x7f, err);
        } else if (type & PUSH) {
            out->type = COFFER__MEMRAY_PUSH;
            status = take_varint(&out->id, capture, err);
            if (!status)
                status = take_signed(&out->instruction, capture, err);
        } else if (type & OBJECT) {
            taken = false;
            status = skip_object(capture, type & 0x1f, err);
        } else if (type & POP) {
            out->type = COFFER__MEMRAY_POP;
            out->id = (type & 15) + 1u;
        } else {
            status = take_plain(&taken, out, capture, type, err);
        }
    }
    return status;
}
