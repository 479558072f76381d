#include "outside/models/safetensors.h"

#include "base/bytes.h"
#include "base/json_write.h"

#include <string.h>
#include <strings.h>

#define PREFIX 8
#define ALIGNMENT 8

static void put_metadata(coffer__json_writer *writer, const coffer__safetensors_metadata *metadata)
{
    coffer__json_key(writer, COFFER__SAFETENSORS_METADATA);
    coffer__json_open_object(writer);
    for (size_t i = 0; i < metadata->count; i++) {
        coffer__json_key(writer, metadata->items[i].key);
        coffer__json_string_len(writer, metadata->items[i].text, metadata->items[i].text_len);
    }
    coffer__json_close_object(writer);
}

static void put_entry(coffer__json_writer *writer, const coffer__safetensors_entry *entry, uint64_t begin)
{
    coffer__json_key(writer, entry->name);
    coffer__json_open_object(writer);
    coffer__json_key(writer, "dtype");
    coffer__json_string(writer, entry->type);
    coffer__json_key(writer, "shape");
    coffer__json_open_array(writer);
    for (uint32_t i = 0; i < entry->rank; i++)
        coffer__json_write_u64(writer, entry->dims[i]);
    coffer__json_close_array(writer);
    coffer__json_key(writer, "data_offsets");
    coffer__json_open_array(writer);
    coffer__json_write_u64(writer, begin);
    coffer__json_write_u64(writer, begin + entry->size);
    coffer__json_close_array(writer);
    coffer__json_close_object(writer);
}

void coffer__safetensors_put_header(coffer__buffer *out, const coffer__safetensors_entry *entries,
                                    size_t count, const coffer__safetensors_metadata *metadata)
{
    coffer__json_writer writer;
    size_t start = out->len;
    uint64_t begin = 0;
    coffer__buffer_fill(out, 0, PREFIX);
    coffer__json_writer_init(&writer, out, 0);
    coffer__json_open_object(&writer);
    if (metadata->count)
        put_metadata(&writer, metadata);
    for (size_t i = 0; i < count; i++) {
        put_entry(&writer, &entries[i], begin);
        begin += entries[i].size;
    }
    coffer__json_close_object(&writer);
    coffer__buffer_fill(out, ' ', (ALIGNMENT - (out->len - start) % ALIGNMENT) % ALIGNMENT);
    if (!out->failed)
        coffer__store_u64(out->data + start, out->len - start - PREFIX);
}

void coffer__safetensors_put_shard_name(coffer__buffer *out, const char *path, size_t shard,
                                        size_t shard_count)
{
    static const char extension[] = ".safetensors";
    size_t len = strlen(path), extension_len = sizeof extension - 1;
    if (len > extension_len && strcasecmp(path + len - extension_len, extension) == 0)
        len -= extension_len;
    coffer__buffer_append(out, path, len);
    coffer__buffer_printf(out, "-%05zu-of-%05zu%s", shard + 1, shard_count, extension);
}
