/* Opens an archive block: checksum, directory, decompressed streams and imports. */
#include "formats/mlyze/archive/mlyze_archive.h"

#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/read/mlyze_decode.h"
#include "io/source_private.h"

#include <zstd.h>

static coffer_status fail(const coffer__mlyze_unpacker *unpacker, coffer_status code, const char *what,
                          coffer_error *err)
{
    return coffer__mlyze_fail_block(err, code, &unpacker->block, what);
}

/* The streams that say where blocks are; names do without them. */
static bool is_about_places(int stream)
{
    return stream == COFFER__MLYZE_PLACES || stream == COFFER__MLYZE_FAR_PLACES ||
           stream == COFFER__MLYZE_IMPORT_ADDRESSES || stream == COFFER__MLYZE_IMPORT_CLASSES;
}

typedef struct stream_sizes {
    uint32_t raw, stored;
} stream_sizes;

/* Reads the directory; afterwards all sizes add up to those of the block. */
static coffer_status read_directory(stream_sizes sizes[COFFER__MLYZE_STREAMS],
                                    coffer__mlyze_unpacker *unpacker, const uint8_t *bytes, coffer_error *err)
{
    const coffer__mlyze_block *block = &unpacker->block;
    uint64_t raw = COFFER__MLYZE_ARCHIVE_DIRECTORY, stored = COFFER__MLYZE_ARCHIVE_DIRECTORY;
    if (block->stored_size < COFFER__MLYZE_ARCHIVE_DIRECTORY ||
        memcmp(bytes, COFFER__MLYZE_ARCHIVE_MAGIC, 4) != 0 ||
        coffer__load_u32(bytes + COFFER__MLYZE_ARCHIVE_STREAMS_AT) != COFFER__MLYZE_STREAMS)
        return fail(unpacker, COFFER_E_BAD_VALUE, "its directory is not that of an archive block", err);
    unpacker->first_alloc = coffer__load_u64(bytes + COFFER__MLYZE_ARCHIVE_FIRST_AT);
    unpacker->alloc_count = coffer__load_u32(bytes + COFFER__MLYZE_ARCHIVE_ALLOCS_AT);
    unpacker->import_count = coffer__load_u32(bytes + COFFER__MLYZE_ARCHIVE_IMPORTS_AT);
    if (unpacker->alloc_count > block->event_count || unpacker->import_count > block->event_count ||
        unpacker->first_alloc > UINT64_MAX / 2)
        return fail(unpacker, COFFER_E_BAD_VALUE, "it has more allocations than events", err);
    for (int i = 0; i < COFFER__MLYZE_STREAMS; i++) {
        const uint8_t *at = bytes + COFFER__MLYZE_ARCHIVE_SIZES_AT + i * COFFER__MLYZE_ARCHIVE_STREAM;
        sizes[i] = (stream_sizes){ coffer__load_u32(at), coffer__load_u32(at + 4) };
        if (sizes[i].stored > sizes[i].raw || (sizes[i].stored == 0) != (sizes[i].raw == 0))
            return fail(unpacker, COFFER_E_BAD_VALUE, "a stream has impossible sizes", err);
        raw += sizes[i].raw;
        stored += sizes[i].stored;
    }
    if (raw != block->raw_size || stored != block->stored_size ||
        sizes[COFFER__MLYZE_KINDS].raw != block->event_count)
        return fail(unpacker, COFFER_E_SIZE_MISMATCH, "the sizes of its streams do not add up", err);
    return COFFER_OK;
}

static coffer_status decompress(coffer__mlyze_unpacker *unpacker, const uint8_t *bytes, coffer_error *err)
{
    stream_sizes sizes[COFFER__MLYZE_STREAMS] = { { 0 } };
    coffer_status status = read_directory(sizes, unpacker, bytes, err);
    if (status)
        return status;
    if (unpacker->raw_capacity < unpacker->block.raw_size) {
        coffer__free(unpacker->raw);
        unpacker->raw_capacity = 0;
        unpacker->raw = coffer__malloc(unpacker->block.raw_size);
        if (!unpacker->raw)
            return coffer__fail_no_memory(err, unpacker->block.raw_size);
        unpacker->raw_capacity = unpacker->block.raw_size;
    }
    const uint8_t *from = bytes + COFFER__MLYZE_ARCHIVE_DIRECTORY;
    uint8_t *to = unpacker->raw;
    for (int i = 0; i < COFFER__MLYZE_STREAMS; from += sizes[i].stored, i++) {
        size_t len = unpacker->by_name && is_about_places(i) ? 0 : sizes[i].raw;
        unpacker->streams[i] = (coffer__mlyze_stream_cursor){ to, to + len };
        if (len > 0 && sizes[i].stored == sizes[i].raw)
            memcpy(to, from, len);
        else if (len > 0 && ZSTD_decompress(to, len, from, sizes[i].stored) != len)
            return fail(unpacker, COFFER_E_BAD_VALUE, "a stream does not decompress to its size", err);
        to += len;
    }
    return COFFER_OK;
}

static coffer_status make_room(coffer__mlyze_unpacker *unpacker, coffer_error *err)
{
    size_t known = (size_t)unpacker->import_count + unpacker->alloc_count;
    if (!unpacker->model)
        unpacker->model = coffer__malloc(sizeof *unpacker->model);
    if (unpacker->known_capacity < known) {
        coffer__free(unpacker->values);
        coffer__free(unpacker->classes);
        unpacker->known_capacity = 0;
        unpacker->values = coffer__alloc_array(known, sizeof *unpacker->values);
        unpacker->classes = coffer__alloc_array(known, sizeof *unpacker->classes);
        if (unpacker->values && unpacker->classes)
            unpacker->known_capacity = known;
    }
    if (!unpacker->model || unpacker->known_capacity < known)
        return coffer__fail_no_memory(err, known * (sizeof(uint64_t) + sizeof(uint16_t)));
    coffer__mlyze_model_clear(unpacker->model);
    return COFFER_OK;
}

static bool take(uint64_t *out, coffer__mlyze_unpacker *unpacker, int stream)
{
    coffer__mlyze_stream_cursor *cursor = &unpacker->streams[stream];
    return coffer__varint_read(out, &cursor->at, cursor->end) <= COFFER__VARINT_OVERLONG;
}

/* Numbers ascend and precede those of the block. */
static coffer_status read_imports(coffer__mlyze_unpacker *unpacker, coffer_error *err)
{
    uint64_t number = 0, address = 0, step, distance, size_class;
    for (uint32_t i = 0; i < unpacker->import_count; i++) {
        if (!take(&step, unpacker, COFFER__MLYZE_IMPORT_NUMBERS) || (i > 0 && step == 0) ||
            step > unpacker->first_alloc || number + step >= unpacker->first_alloc)
            return fail(unpacker, COFFER_E_BAD_VALUE, "it frees blocks that were not allocated before it",
                        err);
        number += step;
        unpacker->values[i] = number;
        unpacker->classes[i] = 0;
        if (unpacker->by_name)
            continue;
        if (!take(&distance, unpacker, COFFER__MLYZE_IMPORT_ADDRESSES) ||
            !take(&size_class, unpacker, COFFER__MLYZE_IMPORT_CLASSES) || size_class >= COFFER__MLYZE_CLASSES)
            return fail(unpacker, COFFER_E_BAD_VALUE, "the address of a block that it frees is damaged", err);
        address += coffer__mlyze_unzigzag(distance);
        unpacker->values[i] = address;
        unpacker->classes[i] = (uint16_t)size_class;
        address += size_class << 4;
    }
    unpacker->known = unpacker->import_count;
    return COFFER_OK;
}

static coffer_status verify(coffer__mlyze_unpacker *unpacker, const uint8_t *stored, uint32_t crc,
                            coffer_error *err)
{
    const coffer__mlyze_header *header = &unpacker->trace->header;
    if (coffer__mlyze_has_sums(header) &&
        coffer__mlyze_block_sum(&unpacker->block, stored, coffer__mlyze_has_full_sums(header)) != crc)
        return fail(unpacker, COFFER_E_BAD_CHECKSUM, "its checksum does not match", err);
    coffer_status status = decompress(unpacker, stored, err);
    return status ? status : coffer_source_intact(unpacker->trace->source, err);
}

coffer_status coffer__mlyze_unpack_open(coffer__mlyze_unpacker *unpacker, const coffer_mlyze *trace,
                                        const coffer__mlyze_block *block, bool by_name, coffer_error *err)
{
    const uint8_t *stored = NULL;
    uint8_t *own = NULL;
    coffer__mlyze_block header;
    uint32_t crc;
    coffer_status status = coffer__mlyze_read_block_header(&header, &crc, trace, block->offset, err);
    if (status)
        return status;
    header.first_event = block->first_event;
    if (header.event_count != block->event_count)
        return coffer__fail(err, COFFER_E_CHANGED, block->offset, "changed while it was read");
    unpacker->trace = trace;
    unpacker->block = header;
    unpacker->by_name = by_name;
    unpacker->event = unpacker->known = unpacker->named = 0;
    unpacker->time = header.time;
    unpacker->place = unpacker->stack = 0;
    unpacker->thread = 0;
    unpacker->replaces = false;
    status = coffer__source_fetch_new(&stored, &own, trace->source,
                                      block->offset + COFFER__MLYZE_BLOCK_HEADER, header.stored_size, err);
    if (status)
        return status;
    status = verify(unpacker, stored, crc, err);
    coffer__free(own);
    if (!status)
        status = make_room(unpacker, err);
    if (!status)
        status = read_imports(unpacker, err);
    unpacker->others_before = unpacker->streams[COFFER__MLYZE_OTHERS].at;
    return status;
}

void coffer__mlyze_unpacker_free(coffer__mlyze_unpacker *unpacker)
{
    coffer__free(unpacker->raw);
    coffer__free(unpacker->values);
    coffer__free(unpacker->classes);
    coffer__free(unpacker->model);
    *unpacker = (coffer__mlyze_unpacker){ .raw = NULL };
}
