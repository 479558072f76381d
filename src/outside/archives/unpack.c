#include "outside/archives/unpack.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/source_private.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <string.h>
#include <strings.h>
#include <zstd.h>

#define INPUT_SIZE ((size_t)1 << 16)
struct coffer__unpack {
    coffer_source *src;
    coffer__packing packing;
    uint64_t size, taken; /* bytes of the file: all, read */
    uint64_t given, max_given;
    bool inside; /* a member or frame has begun and not ended */
    struct inflate_state *inflate;
    ZSTD_DCtx *zstd;
    uint8_t *input;
    size_t at, end; /* packed bytes that are buffered */
};

coffer__packing coffer__packing_of(const uint8_t *head, size_t len)
{
    static const uint8_t gzip[] = { 0x1f, 0x8b, 8 }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
    if (len >= sizeof gzip && memcmp(head, gzip, sizeof gzip) == 0)
        return COFFER__PACKING_GZIP;
    if (len >= sizeof zstd && memcmp(head, zstd, sizeof zstd) == 0)
        return COFFER__PACKING_ZSTD;
    return COFFER__PACKING_NONE;
}

coffer__packing coffer__packing_by_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".gz") == 0)
        return COFFER__PACKING_GZIP;
    return dot && strcasecmp(dot, ".zst") == 0 ? COFFER__PACKING_ZSTD : COFFER__PACKING_NONE;
}

coffer__packing coffer__unpack_packing(const coffer__unpack *unpack)
{
    return unpack->packing;
}

uint64_t coffer__unpack_position(const coffer__unpack *unpack)
{
    return unpack->taken - (unpack->end - unpack->at);
}

static coffer_status prepare(coffer__unpack *unpack, coffer_error *err)
{
    uint8_t head[4];
    size_t len = unpack->size < sizeof head ? (size_t)unpack->size : sizeof head;
    coffer_status status = coffer_source_read_at(head, unpack->src, 0, len, err);
    if (status)
        return status;
    unpack->packing = coffer__packing_of(head, len);
    if (unpack->packing == COFFER__PACKING_NONE)
        return COFFER_OK;
    unpack->input = coffer__malloc(INPUT_SIZE);
    if (unpack->packing == COFFER__PACKING_GZIP)
        unpack->inflate = coffer__malloc(sizeof *unpack->inflate);
    else
        unpack->zstd = ZSTD_createDCtx();
    if (!unpack->input || (!unpack->inflate && !unpack->zstd))
        return coffer__fail_no_memory(err, INPUT_SIZE + sizeof *unpack->inflate);
    return COFFER_OK;
}

uint64_t coffer__unpack_limit(uint64_t packed, uint64_t least, const coffer_limits *limits)
{
    uint64_t most;
    if (!coffer__mul_u64(&most, packed, limits->unpack_ratio))
        return UINT64_MAX;
    return most < least ? least : most;
}

coffer_status coffer__unpack_open(coffer__unpack **out, coffer_source *src, const coffer_limits *limits,
                                  coffer_error *err)
{
    coffer__unpack *unpack = coffer__calloc(1, sizeof *unpack);
    if (!unpack)
        return coffer__fail_no_memory(err, sizeof *unpack);
    unpack->src = src;
    unpack->size = coffer_source_size(src);
    unpack->max_given = coffer__unpack_limit(unpack->size, limits->unpacked_bytes, limits);
    coffer_status status = prepare(unpack, err);
    if (status) {
        coffer__unpack_close(unpack);
        return status;
    }
    *out = unpack;
    return COFFER_OK;
}

void coffer__unpack_close(coffer__unpack *unpack)
{
    if (!unpack)
        return;
    ZSTD_freeDCtx(unpack->zstd);
    coffer__free(unpack->inflate);
    coffer__free(unpack->input);
    coffer__free(unpack);
}

/* ---- Packed bytes to plain ones ---- */

static coffer_status refill(coffer__unpack *unpack, coffer_error *err)
{
    uint64_t left = unpack->size - unpack->taken;
    size_t some = left < INPUT_SIZE ? (size_t)left : INPUT_SIZE;
    coffer_status status = coffer_source_read_at(unpack->input, unpack->src, unpack->taken, some, err);
    if (status)
        return status;
    unpack->taken += some;
    unpack->at = 0;
    unpack->end = some;
    return COFFER_OK;
}

static coffer_status fail_damaged(const coffer__unpack *unpack, coffer_status status, const char *what,
                                  coffer_error *err)
{
    return coffer__fail_other(err,
                              coffer__fail(err, status, coffer__unpack_position(unpack),
                                           "the %s stream is damaged near byte %" PRIu64 " (%" PRIu64
                                           " bytes came out before): %s",
                                           unpack->packing == COFFER__PACKING_GZIP ? "gzip" : "zstd",
                                           coffer__unpack_position(unpack), unpack->given, what),
                              coffer__source_other_name(unpack->src));
}

static coffer_status run_gzip(void *out, size_t len, size_t *got, coffer__unpack *unpack, coffer_error *err)
{
    struct inflate_state *inflate = unpack->inflate;
    if (!unpack->inside) {
        isal_inflate_init(inflate);
        inflate->crc_flag = ISAL_GZIP;
        unpack->inside = true;
    }
    inflate->next_in = unpack->input + unpack->at;
    inflate->avail_in = (uint32_t)(unpack->end - unpack->at);
    inflate->next_out = out;
    inflate->avail_out = (uint32_t)len;
    int result = isal_inflate(inflate);
    unpack->at = unpack->end - inflate->avail_in;
    *got = len - inflate->avail_out;
    if (result < 0 || result == ISAL_NEED_DICT)
        return fail_damaged(unpack,
                            result == ISAL_INCORRECT_CHECKSUM ? COFFER_E_BAD_CHECKSUM : COFFER_E_BAD_VALUE,
                            result == ISAL_INCORRECT_CHECKSUM ? "wrong checksum" : "invalid deflate data",
                            err);
    if (inflate->block_state == ISAL_BLOCK_FINISH)
        unpack->inside = false;
    return COFFER_OK;
}

static coffer_status run_zstd(void *out, size_t len, size_t *got, coffer__unpack *unpack, coffer_error *err)
{
    ZSTD_inBuffer in = { unpack->input, unpack->end, unpack->at };
    ZSTD_outBuffer to = { out, len, 0 };
    size_t result = ZSTD_decompressStream(unpack->zstd, &to, &in);
    unpack->at = in.pos;
    *got = to.pos;
    if (ZSTD_isError(result))
        return fail_damaged(unpack, COFFER_E_BAD_VALUE, ZSTD_getErrorName(result), err);
    unpack->inside = result != 0;
    return COFFER_OK;
}

static coffer_status run(void *out, size_t len, size_t *got, coffer__unpack *unpack, coffer_error *err)
{
    *got = 0;
    while (*got == 0) {
        bool exhausted = unpack->at == unpack->end && unpack->taken == unpack->size;
        if (exhausted && !unpack->inside)
            return COFFER_OK;
        if (unpack->at == unpack->end && !exhausted) {
            coffer_status status = refill(unpack, err);
            if (status)
                return status;
        }
        coffer_status status = unpack->packing == COFFER__PACKING_GZIP ? run_gzip(out, len, got, unpack, err)
                                                                       : run_zstd(out, len, got, unpack, err);
        if (status)
            return status;
        if (exhausted && *got == 0 && unpack->inside)
            return coffer__fail_other(err,
                                      coffer__fail(err, COFFER_E_TRUNCATED, unpack->size,
                                                   "the packed stream ends too early, after %" PRIu64
                                                   " bytes (%" PRIu64 " came out)",
                                                   unpack->size, unpack->given),
                                      coffer__source_other_name(unpack->src));
    }
    return COFFER_OK;
}

static coffer_status copy_plain(void *out, size_t len, size_t *got, coffer__unpack *unpack, coffer_error *err)
{
    uint64_t left = unpack->size - unpack->taken;
    *got = left < len ? (size_t)left : len;
    coffer_status status = coffer_source_read_at(out, unpack->src, unpack->taken, *got, err);
    unpack->taken += *got;
    return status;
}

coffer_status coffer__unpack_read(void *out, size_t len, size_t *got, coffer__unpack *unpack,
                                  coffer_error *err)
{
    const size_t most = (size_t)1 << 30; /* the libraries use 32-bit counts */
    if (unpack->packing == COFFER__PACKING_NONE)
        return copy_plain(out, len, got, unpack, err);
    coffer_status status = run(out, len < most ? len : most, got, unpack, err);
    if (status)
        return status;
    unpack->given += *got;
    if (unpack->given > unpack->max_given)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                               "more than %" PRIu64 " bytes come out of %" PRIu64
                                               ", which is the limit (\"max-unpacked\" raises it)",
                                               unpack->max_given, unpack->size),
                                  coffer__source_other_name(unpack->src));
    return COFFER_OK;
}

/* ---- All, or the beginning ---- */

#define PIECE ((size_t)1 << 20)

coffer_status coffer__unpack_to_source(coffer_source **out, coffer_source *src, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer__unpack *unpack = NULL;
    uint8_t *piece = coffer__malloc(PIECE);
    uint64_t size = 0;
    size_t got = 1;
    int fd = -1;
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, PIECE);
    if (!status)
        status = coffer__unpack_open(&unpack, src, limits, err);
    if (!status)
        status = coffer__temporary_unnamed(&fd, err);
    while (!status && got > 0) {
        status = coffer__unpack_read(piece, PIECE, &got, unpack, err);
        if (!status && got > 0)
            status = coffer__file_write_at(fd, piece, got, size, "temporary file", err);
        size += got;
    }
    if (!status)
        status = coffer__source_over_fd(out, fd, true, size, coffer_source_name(src), NULL, err);
    if (status)
        coffer__file_close(fd);
    coffer__unpack_close(unpack);
    coffer__free(piece);
    return status;
}

coffer_status coffer__unpack_all(coffer__buffer *out, coffer_source *src, uint64_t max,
                                 const coffer_limits *limits, coffer_error *err)
{
    coffer__unpack *unpack = NULL;
    size_t got = 0;
    coffer_status status = coffer__unpack_open(&unpack, src, limits, err);
    while (!status) {
        uint8_t *to = coffer__buffer_extend(out, INPUT_SIZE);
        if (!to) {
            status = coffer__fail_no_memory(err, INPUT_SIZE);
            break;
        }
        status = coffer__unpack_read(to, INPUT_SIZE, &got, unpack, err);
        out->len -= INPUT_SIZE - (status ? 0 : got);
        if (!status && got == 0)
            break;
        if (!status && out->len > max)
            status = coffer__fail_other(err,
                                        coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                     "more than %" PRIu64 " bytes, which is the limit", max),
                                        coffer__source_other_name(src));
    }
    coffer__unpack_close(unpack);
    return status;
}

coffer_status coffer__unpack_head(uint8_t *out, size_t len, size_t *got, coffer_source *src,
                                  coffer_error *err)
{
    const coffer_limits limits = coffer__limits(NULL);
    coffer__unpack *unpack = NULL;
    coffer_status status = coffer__unpack_open(&unpack, src, &limits, err);
    *got = 0;
    if (status)
        return status;
    for (size_t some = 1; *got < len && some > 0; *got += some) {
        if (coffer__unpack_read(out + *got, len - *got, &some, unpack, NULL))
            break;
    }
    coffer__unpack_close(unpack);
    return COFFER_OK;
}
