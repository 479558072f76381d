/* Events wait here for the metadata, which stands before them in the file and is known after them. */
#include "formats/mlyze/mlyze_write.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <string.h>

#define BUFFER_SIZE ((size_t)1 << 20)
#define NAME "temporary file"

coffer_status coffer__mlyze_area_init(coffer__mlyze_area *area, const char *path, bool elsewhere,
                                      coffer_error *err)
{
    *area = (coffer__mlyze_area){ .path = path, .elsewhere = elsewhere, .fd = -1 };
    area->buffer = coffer__malloc(BUFFER_SIZE);
    return area->buffer ? COFFER_OK : coffer__fail_no_memory(err, BUFFER_SIZE);
}

void coffer__mlyze_area_free(coffer__mlyze_area *area)
{
    if (area->buffer)
        coffer__file_close(area->fd);
    coffer__free(area->buffer);
    area->buffer = NULL;
}

/* In the folder of the trace, where there is room for it, and gone with the process. */
static coffer_status open_file(coffer__mlyze_area *area, coffer_error *err)
{
    char *name = NULL;
    if (area->elsewhere)
        return coffer__temporary_unnamed(&area->fd, err);
    coffer_status status = coffer__temporary_create(&area->fd, &name, area->path, err);
    if (status)
        return status;
    status = coffer__file_unlink(name, err);
    coffer__temporary_forget(name);
    coffer__free(name);
    return status;
}

static coffer_status write_out(coffer__mlyze_area *area, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (area->fd < 0)
        status = open_file(area, err);
    if (status == COFFER_OK)
        status = coffer__file_write_at(area->fd, area->buffer, area->buffered, area->written, NAME, err);
    if (status)
        return status;
    area->written += area->buffered;
    area->buffered = 0;
    return COFFER_OK;
}

coffer_status coffer__mlyze_area_add(coffer__mlyze_area *area, const uint8_t *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (len > BUFFER_SIZE - area->buffered)
        status = write_out(area, err);
    if (status)
        return status;
    memcpy(area->buffer + area->buffered, bytes, len);
    area->buffered += len;
    return COFFER_OK;
}

coffer_status coffer__mlyze_area_copy(coffer__sink *sink, const coffer__mlyze_area *area, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (area->written > 0)
        status = coffer__sink_copy_file(sink, area->fd, 0, area->written, NAME, err);
    return status ? status : coffer__sink_write(sink, area->buffer, area->buffered, err);
}
