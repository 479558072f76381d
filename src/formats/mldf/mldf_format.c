/* The row of the format table, and the types of fields. */
#include "formats/format.h"
#include "formats/mldf/mldf_private.h"

static bool probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__MLDF_MAGIC_SIZE && memcmp(head, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE) == 0;
}

static const char *const lists[] = { "fields", "samples", "table", NULL };

const coffer_format coffer__mldf_format = {
    .name = "mldf",
    .extension = ".mldf",
    .title = "training set",
    .magic = (const uint8_t *)COFFER__MLDF_MAGIC,
    .magic_len = COFFER__MLDF_MAGIC_SIZE,
    .version = { COFFER__MLDF_HEADER_AT + COFFER__MLDF_MINOR_AT, 2, true, COFFER__MLDF_MAJOR,
                 COFFER__MLDF_MINOR },
    .repairs_from_copy = true,
    .lists = lists,
    .probe = probe,
    .describe = coffer__mldf_describe,
    .check = coffer__mldf_check,
    .list = coffer__mldf_list,
    .diff = coffer__mldf_diff,
    .repair = coffer__mldf_repair_file,
    .compact = coffer__mldf_compact,
};

/* ---- Types ---- */

static const coffer__mldf_type_info types[] = {
    { COFFER_MLDF_INT, "int", COFFER_MLDF_ENTRY_INT, false },
    { COFFER_MLDF_FLOAT, "float", COFFER_MLDF_ENTRY_FLOAT, false },
    { COFFER_MLDF_BYTES, "bytes", COFFER_MLDF_ENTRY_BYTES, false },
    { COFFER_MLDF_NDARRAY, "ndarray", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_JSON, "json", COFFER_MLDF_ENTRY_BYTES, false },
    { COFFER_MLDF_IMAGE_RAW, "image-raw", COFFER_MLDF_ENTRY_IMAGE, false },
    { COFFER_MLDF_IMAGE_JPEG, "image-jpeg", COFFER_MLDF_ENTRY_IMAGE, false },
    { COFFER_MLDF_IMAGE_PNG, "image-png", COFFER_MLDF_ENTRY_IMAGE, false },
    { COFFER_MLDF_AUDIO, "audio", COFFER_MLDF_ENTRY_AUDIO, false },
    { COFFER_MLDF_AUDIO_COMPRESSED, "audio-compressed", COFFER_MLDF_ENTRY_AUDIO, false },
    { COFFER_MLDF_SPECTROGRAM, "spectrogram", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_CODEC_TOKENS, "codec-tokens", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_VIDEO_FRAMES, "video-frames", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_VIDEO_COMPRESSED, "video-compressed", COFFER_MLDF_ENTRY_BYTES, false },
    { COFFER_MLDF_OPTICAL_FLOW, "optical-flow", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_TEXT, "text", COFFER_MLDF_ENTRY_TEXT, false },
    { COFFER_MLDF_TEXT_TOKENISED, "text-tokenised", COFFER_MLDF_ENTRY_TEXT, false },
    { COFFER_MLDF_TEXT_PACKED, "text-packed", COFFER_MLDF_ENTRY_BYTES, true },
    { COFFER_MLDF_TEXT_HIERARCHICAL, "text-hierarchical", COFFER_MLDF_ENTRY_BYTES, false },
    { COFFER_MLDF_MULTIMODAL, "multimodal", COFFER_MLDF_ENTRY_BYTES, false },
};

#define TYPE_COUNT (sizeof types / sizeof types[0])

const coffer__mldf_type_info *coffer__mldf_type_at(size_t index)
{
    return index < TYPE_COUNT ? &types[index] : NULL;
}

const coffer__mldf_type_info *coffer__mldf_type_info_of(uint16_t type)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].type == type)
            return &types[i];
    }
    return NULL;
}

const char *coffer_mldf_type_name(uint16_t type)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(type);
    return info ? info->name : NULL;
}

uint16_t coffer_mldf_type_by_name(const char *name)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    }
    return 0;
}

uint32_t coffer__mldf_entry_size(coffer_mldf_entry_kind kind)
{
    static const uint32_t sizes[] = {
        [COFFER_MLDF_ENTRY_OPAQUE] = 0, [COFFER_MLDF_ENTRY_INT] = 8,    [COFFER_MLDF_ENTRY_FLOAT] = 8,
        [COFFER_MLDF_ENTRY_BYTES] = 16, [COFFER_MLDF_ENTRY_IMAGE] = 24, [COFFER_MLDF_ENTRY_AUDIO] = 24,
        [COFFER_MLDF_ENTRY_TEXT] = 16,
    };
    return sizes[kind];
}

uint32_t coffer__mldf_alignment_of(uint32_t entry_size)
{
    uint32_t alignment = 8;
    while (entry_size % alignment != 0)
        alignment /= 2;
    return alignment;
}
