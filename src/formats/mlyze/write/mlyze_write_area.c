#include "formats/mlyze/write/mlyze_write.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <string.h>

#define BUFFER_SIZE ((size_t)1 << 20)
/* Names and stacks go on to come after the first megabyte of events: room for twice what there is, and some.
 */
#define ROOM_MIN ((uint64_t)32 << 10)
#define ROOM_MAX ((uint64_t)64 << 20)
#define SPOOL "temporary file"

coffer_status coffer__mlyze_area_init(coffer__mlyze_area *area, coffer__sink *sink, coffer_error *err)
{
    *area = (coffer__mlyze_area){ .sink = sink, .fd = -1 };
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

bool coffer__mlyze_area_needs_room(const coffer__mlyze_area *area, size_t len)
{
    return area->room == 0 && len > BUFFER_SIZE - area->buffered && coffer__sink_can_patch(area->sink);
}

coffer_status coffer__mlyze_area_place(coffer__mlyze_area *area, uint64_t metadata_len, coffer_error *err)
{
    uint64_t room = metadata_len < ROOM_MAX ? 2 * metadata_len : metadata_len + ROOM_MAX;
    coffer_status status;
    if (room > UINT32_MAX)
        room = UINT32_MAX;
    area->room = room > ROOM_MIN ? room : ROOM_MIN;
    status = coffer__sink_fill(area->sink, ' ', COFFER__MLYZE_HEADER_SIZE + area->room, err);
    if (status == COFFER_OK)
        status = coffer__sink_write(area->sink, area->buffer, area->buffered, err);
    area->written = area->buffered;
    area->buffered = 0;
    return status;
}

static coffer_status spool(coffer__mlyze_area *area, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (area->fd < 0)
        status = coffer__temporary_unnamed(&area->fd, err);
    if (status == COFFER_OK)
        status = coffer__file_write_at(area->fd, area->buffer, area->buffered, area->written, SPOOL, err);
    area->written += area->buffered;
    area->buffered = 0;
    return status;
}

coffer_status coffer__mlyze_area_add(coffer__mlyze_area *area, const uint8_t *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (area->room) {
        area->written += len;
        return coffer__sink_write(area->sink, bytes, len, err);
    }
    if (len > BUFFER_SIZE - area->buffered)
        status = spool(area, err);
    if (status)
        return status;
    memcpy(area->buffer + area->buffered, bytes, len);
    area->buffered += len;
    return COFFER_OK;
}

uint64_t coffer__mlyze_area_size(const coffer__mlyze_area *area)
{
    return area->written + area->buffered;
}

coffer_status coffer__mlyze_area_copy(coffer__sink *sink, const coffer__mlyze_area *area, coffer_error *err)
{
    uint64_t from = area->room ? COFFER__MLYZE_HEADER_SIZE + area->room : 0;
    coffer_status status = COFFER_OK;
    int fd = area->fd;
    if (area->room)
        status = coffer__sink_read_back(&fd, area->sink, err);
    if (status == COFFER_OK && area->written > 0)
        status = coffer__sink_copy_file(sink, fd, from, area->written, SPOOL, err);
    return status ? status : coffer__sink_write(sink, area->buffer, area->buffered, err);
}
