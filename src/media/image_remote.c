/* TIFF pictures by the program coffer-tiff. What the program says is checked like a file: it may be in the
 * hands of one. */
#include "base/cursor.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "media/image_wire.h"

#include <inttypes.h>
#include <string.h>

static coffer_status fail_protocol(coffer__helper *helper, coffer_error *err)
{
    coffer__helper_stop(helper);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "TIFF: coffer-tiff gave an impossible answer; the file is damaged or malicious");
}

static bool send_file(const coffer__helper *helper, const uint8_t *bytes, size_t size,
                      const coffer_image_info *info, uint64_t max_bytes)
{
    uint8_t head[28];
    coffer__store_u64(head, size);
    coffer__store_u64(head + 8, max_bytes);
    coffer__store_u32(head + 16, info->width);
    coffer__store_u32(head + 20, info->height);
    coffer__store_u32(head + 24, info->channels);
    bool sent = coffer__frame_send(helper->fd, COFFER__PICTURE_BEGIN, head, sizeof head, NULL, 0);
    for (size_t at = 0, some; sent && at < size; at += some) {
        some = size - at < COFFER__FRAME_MAX ? size - at : COFFER__FRAME_MAX;
        sent = coffer__frame_send(helper->fd, COFFER__PICTURE_BYTES, bytes + at, some, NULL, 0);
    }
    return sent;
}

typedef struct answer {
    coffer_pixels *out;
    size_t have, size; /* bytes of the pixels */
    bool has_size;
} answer;

static coffer_status take_size(answer *taken, const coffer__buffer *frame, const coffer_image_info *info,
                               uint64_t max_bytes, bool *sane, coffer_error *err)
{
    coffer__cursor from = coffer__cursor_over(frame->data, frame->len, 0);
    uint32_t width = coffer__cursor_u32(&from), height = coffer__cursor_u32(&from);
    uint32_t channels = coffer__cursor_u32(&from), depth = coffer__cursor_u32(&from);
    *sane = !from.failed && !taken->has_size && width == info->width && height == info->height &&
            channels >= 1 && channels <= 4 && (depth == 8 || depth == 16);
    if (!*sane)
        return COFFER_OK;
    coffer_status status = coffer__pixels_reserve(taken->out, width, height, channels, depth, max_bytes, err);
    taken->has_size = true;
    taken->size = status ? 0 : coffer__pixels_bytes(taken->out);
    return status;
}

static coffer_status take_end(const answer *taken, const coffer__buffer *frame, bool *sane, coffer_error *err)
{
    coffer__cursor from = coffer__cursor_over(frame->data, frame->len, 0);
    coffer_status status = (coffer_status)(int32_t)coffer__cursor_u32(&from);
    size_t len = coffer__cursor_left(&from);
    *sane = !from.failed && (status ? strcmp(coffer_status_name(status), "unknown") != 0
                                    : taken->has_size && taken->have == taken->size);
    if (!*sane || !status)
        return COFFER_OK;
    bool readable = len && len < 400 && coffer__utf8_valid((const char *)frame->data + 4, len);
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "%.*s", readable ? (int)len : 18,
                        readable ? (const char *)frame->data + 4 : "TIFF: not decoded");
}

static coffer_status receive(answer *taken, coffer__helper *helper, const coffer_image_info *info,
                             uint64_t max_bytes, coffer__buffer *frame, coffer_error *err)
{
    uint32_t kind;
    bool sane = true;
    while (coffer__frame_receive(helper->fd, &kind, frame)) {
        coffer_status status = COFFER_OK;
        if (kind == COFFER__PICTURE_DONE) {
            status = take_end(taken, frame, &sane, err);
            return sane ? status : fail_protocol(helper, err);
        }
        if (kind == COFFER__PICTURE_SIZE) {
            status = take_size(taken, frame, info, max_bytes, &sane, err);
        } else if (kind == COFFER__PICTURE_PIXELS && frame->len <= taken->size - taken->have) {
            memcpy(taken->out->data + taken->have, frame->data, frame->len);
            taken->have += frame->len;
        } else {
            sane = false;
        }
        if (!sane)
            return fail_protocol(helper, err);
        if (status) {
            coffer__helper_stop(helper);
            return status;
        }
    }
    return coffer__fail_prefix(err, coffer__helper_fail(helper, err), "TIFF");
}

coffer_status coffer__image_decode_remote(coffer_pixels *out, coffer__helper *helper, const void *bytes,
                                          size_t size, const coffer_image_info *info, uint64_t max_bytes,
                                          coffer_error *err)
{
    coffer__buffer frame = COFFER__BUFFER_INIT;
    answer taken = { .out = out };
    coffer_status status = COFFER_OK;
    coffer__buffer_init(&frame, COFFER__FRAME_MAX + 1);
    if (helper->fd < 0)
        status = coffer__helper_start(helper, COFFER__MODULE_TIFF, -1, &frame, err);
    if (!status && !send_file(helper, bytes, size, info, max_bytes))
        status = coffer__fail_prefix(err, coffer__helper_fail(helper, err), "TIFF");
    if (!status)
        status = receive(&taken, helper, info, max_bytes, &frame, err);
    coffer__buffer_free(&frame);
    return status;
}
