#include "media/media_helper.h"

#include "base/cursor.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <string.h>

static coffer_status fail_protocol(const coffer__media_call *call, coffer_error *err)
{
    coffer__helper_stop(call->helper);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "%s: the decoder gave an impossible answer; the file is damaged or malicious",
                        call->name);
}

static bool send_file(const coffer__media_call *call)
{
    const uint8_t *bytes = call->bytes;
    int fd = call->helper->fd;
    bool sent = coffer__frame_send(fd, COFFER__MEDIA_BEGIN, call->begin, call->begin_len, NULL, 0);
    for (size_t at = 0, some; sent && at < call->size; at += some) {
        some = call->size - at < COFFER__FRAME_MAX ? call->size - at : COFFER__FRAME_MAX;
        sent = coffer__frame_send(fd, COFFER__MEDIA_BYTES, bytes + at, some, NULL, 0);
    }
    return sent;
}

static coffer_status take_end(const coffer__media_call *call, size_t have, const coffer__buffer *frame,
                              bool *sane, coffer_error *err)
{
    coffer__cursor from = coffer__cursor_over(frame->data, frame->len, 0);
    coffer_status status = (coffer_status)(int32_t)coffer__cursor_u32(&from);
    size_t len = coffer__cursor_left(&from);
    *sane = !from.failed && (status ? strcmp(coffer_status_name(status), "unknown") != 0
                                    : call->out && have == call->out_size);
    if (!*sane || !status)
        return COFFER_OK;
    bool readable = len && len < 400 && coffer__utf8_valid((const char *)frame->data + 4, len);
    if (!readable)
        return coffer__fail(err, status, COFFER_OFFSET_NONE, "%s: not decoded", call->name);
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "%.*s", (int)len, (const char *)frame->data + 4);
}

static coffer_status receive(coffer__media_call *call, coffer__buffer *frame, coffer_error *err)
{
    uint32_t kind;
    size_t have = 0;
    while (coffer__frame_receive(call->helper->fd, &kind, frame)) {
        coffer_status status = COFFER_OK;
        bool sane = true;
        if (kind == COFFER__MEDIA_DONE) {
            status = take_end(call, have, frame, &sane, err);
            return sane ? status : fail_protocol(call, err);
        }
        if (kind == COFFER__MEDIA_DATA && call->out && frame->len <= call->out_size - have) {
            memcpy(call->out + have, frame->data, frame->len);
            have += frame->len;
        } else if (kind >= COFFER__MEDIA_OWN && call->take) {
            status = call->take(call, kind, frame, &sane, err);
        } else {
            sane = false;
        }
        if (!sane)
            return fail_protocol(call, err);
        if (status) {
            coffer__helper_stop(call->helper);
            return status;
        }
    }
    return coffer__fail_prefix(err, coffer__helper_fail(call->helper, err), "%s", call->name);
}

coffer_status coffer__media_decode(coffer__media_call *call, coffer__module_id id, coffer_error *err)
{
    coffer__buffer frame = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    coffer__buffer_init(&frame, COFFER__FRAME_MAX + 1);
    if (call->helper->fd < 0)
        status = coffer__helper_start(call->helper, id, -1, &frame, err);
    if (!status && !send_file(call))
        status = coffer__fail_prefix(err, coffer__helper_fail(call->helper, err), "%s", call->name);
    if (!status)
        status = receive(call, &frame, err);
    coffer__buffer_free(&frame);
    return status;
}
