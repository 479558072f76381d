#include "outside/archives/unpack.h"

#include "base/fail.h"
#include "base/memory.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#define OUTPUT_SIZE ((size_t)1 << 16)
#define GZIP_LEVEL 3
#define ZSTD_LEVEL 3

struct coffer__pack {
    coffer__sink *sink;
    coffer__packing packing;
    struct isal_zstream *deflate;
    uint8_t *level_buffer;
    ZSTD_CCtx *zstd;
    uint8_t *output;
};

static coffer_status prepare_gzip(coffer__pack *pack, coffer_error *err)
{
    pack->deflate = coffer__malloc(sizeof *pack->deflate);
    pack->level_buffer = coffer__malloc(ISAL_DEF_LVL3_DEFAULT);
    if (!pack->deflate || !pack->level_buffer)
        return coffer__fail_no_memory(err, sizeof *pack->deflate + ISAL_DEF_LVL3_DEFAULT);
    isal_deflate_init(pack->deflate);
    pack->deflate->gzip_flag = IGZIP_GZIP;
    pack->deflate->level = GZIP_LEVEL;
    pack->deflate->level_buf = pack->level_buffer;
    pack->deflate->level_buf_size = ISAL_DEF_LVL3_DEFAULT;
    return COFFER_OK;
}

static coffer_status prepare(coffer__pack *pack, coffer_error *err)
{
    if (pack->packing == COFFER__PACKING_NONE)
        return COFFER_OK;
    pack->output = coffer__malloc(OUTPUT_SIZE);
    if (!pack->output)
        return coffer__fail_no_memory(err, OUTPUT_SIZE);
    if (pack->packing == COFFER__PACKING_GZIP)
        return prepare_gzip(pack, err);
    pack->zstd = ZSTD_createCCtx();
    if (!pack->zstd)
        return coffer__fail_no_memory(err, OUTPUT_SIZE);
    ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_checksumFlag, 1);
    return COFFER_OK;
}

coffer_status coffer__pack_open(coffer__pack **out, coffer__sink *sink, coffer__packing packing,
                                coffer_error *err)
{
    coffer__pack *pack = coffer__calloc(1, sizeof *pack);
    if (!pack)
        return coffer__fail_no_memory(err, sizeof *pack);
    pack->sink = sink;
    pack->packing = packing;
    coffer_status status = prepare(pack, err);
    if (status) {
        coffer__pack_close(pack);
        return status;
    }
    *out = pack;
    return COFFER_OK;
}

void coffer__pack_close(coffer__pack *pack)
{
    if (!pack)
        return;
    ZSTD_freeCCtx(pack->zstd);
    coffer__free(pack->deflate);
    coffer__free(pack->level_buffer);
    coffer__free(pack->output);
    coffer__free(pack);
}

static coffer_status run_gzip(coffer__pack *pack, const uint8_t *bytes, size_t len, bool last,
                              coffer_error *err)
{
    struct isal_zstream *deflate = pack->deflate;
    deflate->next_in = (uint8_t *)(uintptr_t)bytes;
    deflate->avail_in = (uint32_t)len;
    deflate->end_of_stream = last;
    do {
        deflate->next_out = pack->output;
        deflate->avail_out = (uint32_t)OUTPUT_SIZE;
        if (isal_deflate(deflate) != COMP_OK)
            return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "gzip cannot pack %zu bytes", len);
        coffer_status status =
            coffer__sink_write(pack->sink, pack->output, OUTPUT_SIZE - deflate->avail_out, err);
        if (status)
            return status;
    } while (deflate->avail_out == 0);
    return COFFER_OK;
}

static coffer_status run_zstd(coffer__pack *pack, const uint8_t *bytes, size_t len, bool last,
                              coffer_error *err)
{
    ZSTD_inBuffer in = { bytes, len, 0 };
    size_t left;
    do {
        ZSTD_outBuffer out = { pack->output, OUTPUT_SIZE, 0 };
        left = ZSTD_compressStream2(pack->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "zstd cannot pack %zu bytes: %s",
                                len, ZSTD_getErrorName(left));
        coffer_status status = coffer__sink_write(pack->sink, pack->output, out.pos, err);
        if (status)
            return status;
    } while (last ? left > 0 : in.pos < in.size);
    return COFFER_OK;
}

static coffer_status run(coffer__pack *pack, const uint8_t *bytes, size_t len, bool last, coffer_error *err)
{
    return pack->packing == COFFER__PACKING_GZIP ? run_gzip(pack, bytes, len, last, err)
                                                 : run_zstd(pack, bytes, len, last, err);
}

coffer_status coffer__pack_write(coffer__pack *pack, const void *bytes, size_t len, coffer_error *err)
{
    const size_t most = (size_t)1 << 30; /* the libraries use 32-bit counts */
    const uint8_t *at = bytes;
    if (pack->packing == COFFER__PACKING_NONE)
        return coffer__sink_write(pack->sink, bytes, len, err);
    while (len > 0) {
        size_t some = len < most ? len : most;
        coffer_status status = run(pack, at, some, false, err);
        if (status)
            return status;
        at += some;
        len -= some;
    }
    return COFFER_OK;
}

coffer_status coffer__pack_finish(coffer__pack *pack, coffer_error *err)
{
    static const uint8_t nothing = 0;
    return pack->packing == COFFER__PACKING_NONE ? COFFER_OK : run(pack, &nothing, 0, true, err);
}
