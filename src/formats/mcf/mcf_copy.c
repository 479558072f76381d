/* DirectoryCopy: header and directory once more, right after the header. It locates the sections of a
 * truncated file, and a damaged directory entry differs from it. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

static uint32_t crc_of(const uint8_t *copy, size_t count)
{
    return coffer__crc32(0, copy + COFFER__MCF_COPY_HEADER_AT,
                         COFFER__MCF_HEADER_SIZE + count * COFFER__MCF_DIRECTORY_ENTRY);
}

void coffer__mcf_copy_store(uint8_t *out, size_t size, const coffer__mcf_header *header,
                            const coffer_mcf_section *sections)
{
    memset(out, 0, size);
    coffer__store_u32(out + COFFER__MCF_COPY_TYPE_AT, COFFER_MCF_DIRECTORY_COPY);
    coffer__store_u32(out + COFFER__MCF_COPY_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(out + COFFER__MCF_COPY_COUNT_AT, header->section_count);
    coffer__mcf_store_header(out + COFFER__MCF_COPY_HEADER_AT, header);
    coffer__mcf_store_directory(out + COFFER__MCF_COPY_ENTRIES_AT, sections, header->section_count);
    coffer__store_u32(out + COFFER__MCF_COPY_CRC_AT, crc_of(out, header->section_count));
}

static coffer_status decode(coffer__mcf_copy *out, const uint8_t *bytes, size_t count, uint64_t place,
                            coffer_error *err)
{
    coffer__mcf_copy copy = { .header = coffer__mcf_decode_header(bytes + COFFER__MCF_COPY_HEADER_AT) };
    if (crc_of(bytes, count) != coffer__load_u32(bytes + COFFER__MCF_COPY_CRC_AT) ||
        copy.header.section_count != count)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, place + COFFER__MCF_COPY_CRC_AT,
                            "the CRC-32 of DirectoryCopy does not match: the copy is damaged");
    copy.sections = coffer__alloc_array(count, sizeof *copy.sections);
    if (!copy.sections)
        return coffer__fail_no_memory(err, count * sizeof *copy.sections);
    coffer__mcf_decode_directory(copy.sections, bytes + COFFER__MCF_COPY_ENTRIES_AT, count);
    *out = copy;
    return COFFER_OK;
}

coffer_status coffer__mcf_copy_load(coffer__mcf_copy *out, coffer_source *src, uint64_t place,
                                    const coffer_limits *limits, coffer_error *err)
{
    uint8_t head[COFFER__MCF_COPY_ENTRIES_AT];
    uint64_t size = coffer_source_size(src);
    if (!coffer__range_fits(place, sizeof head, size))
        return coffer__fail(err, COFFER_E_MISSING, place, "the file has no DirectoryCopy");
    coffer_status status = coffer_source_read_at(head, src, place, sizeof head, err);
    if (status)
        return status;
    uint64_t count = coffer__load_u32(head + COFFER__MCF_COPY_COUNT_AT);
    uint64_t len = sizeof head + count * COFFER__MCF_DIRECTORY_ENTRY;
    if (coffer__load_u32(head + COFFER__MCF_COPY_TYPE_AT) != COFFER_MCF_DIRECTORY_COPY ||
        coffer__load_u32(head + COFFER__MCF_COPY_VERSION_AT) != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_MISSING, place, "the file has no DirectoryCopy");
    if (!coffer__range_fits(place, len, size) || count > limits->entries)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, place + COFFER__MCF_COPY_COUNT_AT,
                            "DirectoryCopy says %" PRIu64 " entries: the copy is damaged", count);
    uint8_t *bytes = coffer__malloc((size_t)len);
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    status = coffer_source_read_at(bytes, src, place, (size_t)len, err);
    if (!status)
        status = decode(out, bytes, (size_t)count, place, err);
    coffer__free(bytes);
    return status;
}

static bool same_section(const coffer_mcf_section *a, const coffer_mcf_section *b)
{
    return a->type == b->type && a->version == b->version && a->offset == b->offset && a->size == b->size;
}

/* A copy for a file of another size was copied by a program that moved the rest, so it says nothing. */
coffer_status coffer__mcf_copy_compare(coffer_source *src, const coffer__mcf_header *header,
                                       const coffer_mcf_section *sections, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer__mcf_copy copy = { 0 };
    uint8_t here[COFFER__MCF_HEADER_SIZE], there[COFFER__MCF_HEADER_SIZE];
    coffer_error found = COFFER_ERROR_INIT;
    const coffer_mcf_section *listed =
        coffer__mcf_first_section(sections, header->section_count, COFFER_MCF_DIRECTORY_COPY);
    coffer_status status = coffer__mcf_copy_load(&copy, src, COFFER__MCF_COPY_PLACE, limits, &found);
    if (status == COFFER_E_MISSING && listed)
        status = coffer__mcf_copy_load(&copy, src, listed->offset, limits, &found);
    if (status == COFFER_E_MISSING || status == COFFER_E_BAD_CHECKSUM)
        return COFFER_OK; /* damage to the copy itself is found by its checksum */
    if (status)
        return coffer__fail_copy(err, &found);
    coffer__mcf_store_header(here, header);
    coffer__mcf_store_header(there, &copy.header);
    if (copy.header.file_size == coffer_source_size(src)) {
        if (memcmp(here, there, sizeof here) != 0)
            status = coffer__fail(err, COFFER_E_INCONSISTENT, 0,
                                  "the header differs from its copy: one of them is damaged");
        for (size_t i = 0; !status && i < copy.header.section_count; i++) {
            if (!same_section(&sections[i], &copy.sections[i]))
                status = coffer__fail(err, COFFER_E_INCONSISTENT,
                                      header->directory + i * COFFER__MCF_DIRECTORY_ENTRY,
                                      "entry %zu of the directory differs from its copy: one of them is "
                                      "damaged",
                                      i);
        }
    }
    coffer__free(copy.sections);
    return status;
}
