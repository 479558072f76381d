#include "support/gguf.h"

#include <string.h>

static size_t padded(size_t len)
{
    return (len + 31) / 32 * 32;
}

coffer__buffer gguf_make(const made_tensor *tensors, size_t count, const coffer__buffer *keys,
                         uint64_t key_count)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    uint64_t offset = 0;
    coffer__gguf_put_header(&out, count, key_count);
    if (keys)
        coffer__buffer_append(&out, keys->data, keys->len);
    for (size_t i = 0; i < count; i++) {
        const made_tensor *tensor = &tensors[i];
        coffer__gguf_put_tensor(&out, tensor->name, strlen(tensor->name), tensor->rank, tensor->dims,
                                coffer__gguf_find_type(tensor->type), offset);
        offset += padded(tensor->len);
    }
    coffer__buffer_fill(&out, 0, padded(out.len) - out.len);
    for (size_t i = 0; i < count; i++) {
        coffer__buffer_append(&out, tensors[i].bytes, tensors[i].len);
        coffer__buffer_fill(&out, 0, padded(tensors[i].len) - tensors[i].len);
    }
    assert_false(out.failed);
    return out;
}

gguf_set gguf_open_set(const made_tensor *tensors, size_t count, const coffer__buffer *keys,
                       uint64_t key_count)
{
    gguf_set out = { gguf_make(tensors, count, keys, key_count), NULL, NULL };
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_from_memory(&out.src, out.bytes.data, out.bytes.len, NULL), COFFER_OK);
    if (coffer_tensors_open(&out.set, out.src, NULL, &err))
        fail_msg("%s", err.text);
    return out;
}

void gguf_close_set(gguf_set *open)
{
    coffer_tensors_close(open->set);
    coffer_source_close(open->src);
    coffer__buffer_free(&open->bytes);
}
