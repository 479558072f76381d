/* coffer-tiff, coffer-webp and coffer-sound: a codec in a process of its own. It gets a file over its socket
 * and gives back pixels or samples; memory and processor time are limited, and system calls that could reach
 * anything else are refused. Which of the three it is depends on the module that it is linked with. */
#include "base/checked.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/helper.h"
#include "base/memory.h"
#include "media/audio.h"
#include "media/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEP_SECONDS = 60 };
/* The program and its libraries need this much besides the data. */
#define OWN_MEMORY ((uint64_t)256 << 20)

#define MAYBE(name) \
    extern const coffer__module *const coffer_module_##name __attribute__((weak, visibility("hidden")))
MAYBE(tiff);
MAYBE(webp);
MAYBE(sound);

static coffer__buffer frame, file;
static bool sandboxed;

/* The library is gone, or does not say what it should: nobody is left to tell. */
_Noreturn static void leave(void)
{
    _exit(1);
}

static void send_frame(uint32_t kind, const void *head, size_t head_len, const void *tail, size_t tail_len)
{
    if (!coffer__frame_send(COFFER__HELPER_SOCKET, kind, head, head_len, tail, tail_len))
        leave();
}

/* The file, what becomes of it, and another copy of either: codecs have their own. */
static void enter_sandbox(uint64_t max_bytes)
{
    if (!sandboxed)
        coffer__sandbox_enter(max_bytes < UINT64_MAX / 8 ? 3 * max_bytes + OWN_MEMORY : UINT64_MAX / 2);
    sandboxed = true;
    coffer__sandbox_allow_seconds(STEP_SECONDS);
}

static void receive_file(uint64_t size)
{
    uint32_t kind;
    file.len = 0;
    while (file.len < size) {
        if (!coffer__frame_receive(COFFER__HELPER_SOCKET, &kind, &frame) || kind != COFFER__MEDIA_BYTES ||
            frame.len == 0 || frame.len > size - file.len ||
            !coffer__buffer_append(&file, frame.data, frame.len))
            leave();
    }
}

static void send_data(const uint8_t *data, size_t size)
{
    for (size_t at = 0, some; at < size; at += some) {
        some = size - at < COFFER__FRAME_MAX ? size - at : COFFER__FRAME_MAX;
        send_frame(COFFER__MEDIA_DATA, data + at, some, NULL, 0);
    }
}

static void send_pixels(const coffer_pixels *pixels)
{
    uint8_t head[COFFER__PICTURE_HEAD];
    size_t size = coffer__pixels_bytes(pixels);
    coffer__store_u32(head, pixels->width);
    coffer__store_u32(head + 4, pixels->height);
    coffer__store_u32(head + 8, pixels->channels);
    coffer__store_u32(head + 12, coffer__pixels_depth(pixels));
    send_frame(COFFER__PICTURE_SIZE, head, sizeof head, NULL, 0);
    send_data(pixels->data, size);
}

static void send_result(coffer_status status, const coffer_error *err)
{
    uint8_t number[4];
    coffer__store_u32(number, (uint32_t)(int32_t)status);
    send_frame(COFFER__MEDIA_DONE, number, sizeof number, err->text, strlen(err->text));
}

static void serve_picture(const coffer__picture_module *module)
{
    coffer__cursor from = coffer__cursor_over(frame.data, frame.len, 0);
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t size = coffer__cursor_u64(&from), max_bytes = coffer__cursor_u64(&from);
    info.width = coffer__cursor_u32(&from);
    info.height = coffer__cursor_u32(&from);
    info.channels = coffer__cursor_u32(&from);
    if (from.failed)
        leave();
    enter_sandbox(max_bytes);
    receive_file(size);
    coffer_status status = module->decode(&pixels, file.data, file.len, &info, &opts, max_bytes, &err);
    if (!status)
        send_pixels(&pixels);
    send_result(status, &err);
    coffer__free(pixels.data);
}

static void serve_sound(const coffer__sound_module *module)
{
    coffer__cursor from = coffer__cursor_over(frame.data, frame.len, 0);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t size = coffer__cursor_u64(&from), max_bytes = coffer__cursor_u64(&from), count;
    info.frames = coffer__cursor_u64(&from);
    info.channels = coffer__cursor_u32(&from);
    if (from.failed || !coffer__mul_u64(&count, info.frames, info.channels) ||
        count > SIZE_MAX / sizeof(float))
        leave();
    enter_sandbox(max_bytes);
    receive_file(size);
    float *samples = coffer__alloc_array((size_t)count, sizeof *samples);
    coffer_status status = samples ? module->read_frames(samples, &info, file.data, file.len, &err)
                                   : coffer__fail_no_memory(&err, count * sizeof *samples);
    if (!status)
        send_data((const uint8_t *)samples, (size_t)count * sizeof *samples);
    send_result(status, &err);
    coffer__free(samples);
}

static const coffer__module *linked_module(void)
{
    return &coffer_module_tiff   ? coffer_module_tiff
           : &coffer_module_webp ? coffer_module_webp
                                 : coffer_module_sound;
}

int main(void)
{
    static const char version[] = COFFER_VERSION_STRING;
    const coffer__module *module = linked_module();
    uint32_t kind;
    if (fcntl(COFFER__HELPER_SOCKET, F_GETFD) < 0) {
        fputs("this program is started by libcoffer, to decode pictures or sounds\n", stderr);
        return 2;
    }
    close_range(COFFER__HELPER_FILE, ~0U, 0);
    coffer__buffer_init(&frame, COFFER__FRAME_MAX + 1);
    coffer__buffer_init(&file, SIZE_MAX);
    const char *library = module->library_version();
    send_frame(COFFER__FRAME_HELLO, version, sizeof version, library, strlen(library));
    while (coffer__frame_receive(COFFER__HELPER_SOCKET, &kind, &frame)) {
        if (kind != COFFER__MEDIA_BEGIN)
            leave();
        if (&coffer_module_sound)
            serve_sound((const coffer__sound_module *)(const void *)module);
        else
            serve_picture((const coffer__picture_module *)(const void *)module);
    }
    _exit(0);
}
