#include "formats/mldf/write/mldf_write.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <string.h>

#define PIECE ((size_t)1 << 20)

static const char name[] = "a temporary file";

void coffer__mldf_spill_init(coffer__mldf_spill *spill, size_t limit)
{
    memset(spill, 0, sizeof *spill);
    spill->fd = -1;
    spill->limit = limit > PIECE ? limit : PIECE;
}

void coffer__mldf_spill_free(coffer__mldf_spill *spill)
{
    if (spill->has_file)
        coffer__file_close(spill->fd);
    coffer__free(spill->memory);
    memset(spill, 0, sizeof *spill);
}

uint64_t coffer__mldf_spill_size(const coffer__mldf_spill *spill)
{
    return spill->in_file + spill->buffered;
}

static coffer_status write_file(coffer__mldf_spill *spill, const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!spill->has_file)
        status = coffer__temporary_unnamed(&spill->fd, err);
    if (status)
        return status;
    spill->has_file = true;
    status = coffer__file_write_at(spill->fd, bytes, len, spill->in_file, name, err);
    if (status)
        return status;
    spill->in_file += len;
    return COFFER_OK;
}

/* len fits the limit. */
static coffer_status make_room(coffer__mldf_spill *spill, size_t len, coffer_error *err)
{
    size_t wanted = spill->capacity ? spill->capacity : (size_t)4096;
    uint8_t *grown;
    while (wanted < spill->buffered + len)
        wanted *= 2;
    if (wanted > spill->limit)
        wanted = spill->limit;
    if (wanted == spill->capacity)
        return COFFER_OK;
    grown = coffer__realloc(spill->memory, wanted);
    if (!grown)
        return coffer__fail_no_memory(err, wanted);
    spill->memory = grown;
    spill->capacity = wanted;
    return COFFER_OK;
}

coffer_status coffer__mldf_spill_add(coffer__mldf_spill *spill, const void *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status;
    if (len == 0)
        return COFFER_OK;
    if (len > spill->limit - spill->buffered) {
        status = write_file(spill, spill->memory, spill->buffered, err);
        if (status)
            return status;
        spill->buffered = 0;
    }
    if (len > spill->limit)
        return write_file(spill, bytes, len, err);
    status = make_room(spill, len, err);
    if (status)
        return status;
    memcpy(spill->memory + spill->buffered, bytes, len);
    spill->buffered += len;
    return COFFER_OK;
}

coffer_status coffer__mldf_spill_read(const coffer__mldf_spill *spill, uint64_t offset, void *out, size_t len,
                                      coffer_error *err)
{
    size_t in_file = offset >= spill->in_file        ? 0
                     : len < spill->in_file - offset ? len
                                                     : (size_t)(spill->in_file - offset);
    coffer_status status = COFFER_OK;
    if (in_file > 0)
        status = coffer__file_read_at(spill->fd, out, in_file, offset, name, err);
    if (!status && len > in_file)
        memcpy((uint8_t *)out + in_file, spill->memory + (offset + in_file - spill->in_file), len - in_file);
    return status;
}

static coffer_status each_in_file(const coffer__mldf_spill *spill, coffer__mldf_spill_take take,
                                  void *context, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint8_t *piece = coffer__malloc(PIECE);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    for (uint64_t done = 0; !status && done < spill->in_file;) {
        size_t len = spill->in_file - done < PIECE ? (size_t)(spill->in_file - done) : PIECE;
        status = coffer__file_read_at(spill->fd, piece, len, done, name, err);
        if (!status)
            status = take(context, piece, len, err);
        done += len;
    }
    coffer__free(piece);
    return status;
}

coffer_status coffer__mldf_spill_each(const coffer__mldf_spill *spill, coffer__mldf_spill_take take,
                                      void *context, coffer_error *err)
{
    coffer_status status = spill->in_file > 0 ? each_in_file(spill, take, context, err) : COFFER_OK;
    if (!status && spill->buffered > 0)
        status = take(context, spill->memory, spill->buffered, err);
    return status;
}
