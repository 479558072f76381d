/* The header, the section directory, and the names of the numbers in them. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coffer__mcf_header decode_header(const uint8_t bytes[COFFER__MCF_HEADER_SIZE])
{
    coffer__mcf_header header;
    header.major = coffer__load_u16(bytes + COFFER__MCF_MAJOR_AT);
    header.minor = coffer__load_u16(bytes + COFFER__MCF_MINOR_AT);
    header.header_size = coffer__load_u32(bytes + COFFER__MCF_HEADER_SIZE_AT);
    header.section_count = coffer__load_u32(bytes + COFFER__MCF_SECTION_COUNT_AT);
    header.directory = coffer__load_u64(bytes + COFFER__MCF_DIRECTORY_AT);
    header.file_size = coffer__load_u64(bytes + COFFER__MCF_FILE_SIZE_AT);
    header.flags = coffer__load_u64(bytes + COFFER__MCF_FLAGS_AT);
    return header;
}

coffer_status coffer__mcf_read_header(coffer__mcf_header *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    uint8_t bytes[COFFER__MCF_HEADER_SIZE];
    size_t have = size < sizeof bytes ? (size_t)size : sizeof bytes;
    coffer__mcf_header header;
    coffer_status status = coffer_source_read_at(bytes, src, 0, have, err);
    if (status)
        return status;
    if (have < COFFER__MCF_MAGIC_SIZE || memcmp(bytes, COFFER__MCF_MAGIC, COFFER__MCF_MAGIC_SIZE) != 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0,
                            "not an MCF file: it does not begin with \"MCF\" and a zero byte");
    if (have < sizeof bytes)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "the header takes %d bytes, file has %" PRIu64,
                            COFFER__MCF_HEADER_SIZE, size);
    header = decode_header(bytes);
    if (header.major != COFFER__MCF_MAJOR)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__MCF_MAJOR_AT,
                            "unsupported major version %u, this program reads %d", header.major,
                            COFFER__MCF_MAJOR);
    if (header.header_size < COFFER__MCF_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__MCF_HEADER_SIZE_AT,
                            "header size %" PRIu32 " is less than %d", header.header_size,
                            COFFER__MCF_HEADER_SIZE);
    if (header.header_size > size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MCF_HEADER_SIZE_AT,
                            "the header ends at %" PRIu32 ", file has %" PRIu64, header.header_size, size);
    *out = header;
    return COFFER_OK;
}

void coffer__mcf_store_header(uint8_t out[COFFER__MCF_HEADER_SIZE], const coffer__mcf_header *header)
{
    memcpy(out, COFFER__MCF_MAGIC, COFFER__MCF_MAGIC_SIZE);
    coffer__store_u16(out + COFFER__MCF_MAJOR_AT, header->major);
    coffer__store_u16(out + COFFER__MCF_MINOR_AT, header->minor);
    coffer__store_u32(out + COFFER__MCF_HEADER_SIZE_AT, header->header_size);
    coffer__store_u32(out + COFFER__MCF_SECTION_COUNT_AT, header->section_count);
    coffer__store_u64(out + COFFER__MCF_DIRECTORY_AT, header->directory);
    coffer__store_u64(out + COFFER__MCF_FILE_SIZE_AT, header->file_size);
    coffer__store_u64(out + COFFER__MCF_FLAGS_AT, header->flags);
}

static coffer_mcf_section load_entry(const uint8_t *bytes)
{
    coffer_mcf_section section;
    section.type = coffer__load_u32(bytes + COFFER__MCF_DIRECTORY_TYPE_AT);
    section.version = coffer__load_u32(bytes + COFFER__MCF_DIRECTORY_VERSION_AT);
    section.offset = coffer__load_u64(bytes + COFFER__MCF_DIRECTORY_OFFSET_AT);
    section.size = coffer__load_u64(bytes + COFFER__MCF_DIRECTORY_SIZE_AT);
    return section;
}

static void decode_directory(coffer_mcf_section *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = load_entry(bytes + i * COFFER__MCF_DIRECTORY_ENTRY);
}

void coffer__mcf_store_directory(uint8_t *out, const coffer_mcf_section *sections, size_t count)
{
    for (size_t i = 0; i < count; i++, out += COFFER__MCF_DIRECTORY_ENTRY) {
        coffer__store_u32(out + COFFER__MCF_DIRECTORY_TYPE_AT, sections[i].type);
        coffer__store_u32(out + COFFER__MCF_DIRECTORY_VERSION_AT, sections[i].version);
        coffer__store_u64(out + COFFER__MCF_DIRECTORY_OFFSET_AT, sections[i].offset);
        coffer__store_u64(out + COFFER__MCF_DIRECTORY_SIZE_AT, sections[i].size);
    }
}

/* The u32 count times 24 cannot overflow 64 bits. */
static coffer_status check_directory(const coffer__mcf_header *header, uint64_t file_size,
                                     const coffer_limits *limits, coffer_error *err)
{
    uint64_t len = (uint64_t)header->section_count * COFFER__MCF_DIRECTORY_ENTRY;
    if (header->section_count == 0)
        return COFFER_OK;
    if (!coffer__range_fits(header->directory, len, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MCF_DIRECTORY_AT,
                            "the directory takes %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64, len,
                            header->directory, file_size);
    if (header->directory < header->header_size)
        return coffer__fail(err, COFFER_E_OVERLAP, COFFER__MCF_DIRECTORY_AT,
                            "the directory begins at %" PRIu64 ", inside the header of %" PRIu32 " bytes",
                            header->directory, header->header_size);
    if (header->section_count > limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MCF_SECTION_COUNT_AT,
                            "%" PRIu32 " sections, the limit is %" PRIu64, header->section_count,
                            limits->entries);
    return COFFER_OK;
}

coffer_status coffer__mcf_read_directory(coffer_mcf_section **out, coffer_source *src,
                                         const coffer__mcf_header *header, const coffer_limits *limits,
                                         coffer_error *err)
{
    size_t count = header->section_count, len = count * COFFER__MCF_DIRECTORY_ENTRY;
    coffer_mcf_section *sections;
    uint8_t *bytes;
    coffer_status status = check_directory(header, coffer_source_size(src), limits, err);
    if (status)
        return status;
    sections = coffer__alloc_array(count, sizeof *sections);
    bytes = coffer__malloc(len);
    if (!sections || !bytes)
        status = coffer__fail_no_memory(err, len);
    else if (count > 0)
        status = coffer_source_read_at(bytes, src, header->directory, len, err);
    if (!status) {
        decode_directory(sections, bytes, count);
        *out = sections;
        sections = NULL;
    }
    coffer__free(bytes);
    coffer__free(sections);
    return status;
}

static bool overlaps(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
    return a_len > 0 && b_len > 0 && a < b + b_len && b < a + a_len;
}

coffer_status coffer__mcf_check_section(const coffer_mcf_section *section, const coffer__mcf_header *header,
                                        uint64_t file_size, coffer_error *err)
{
    coffer__mcf_label label = coffer__mcf_section_label(section->type);
    uint64_t directory_len = (uint64_t)header->section_count * COFFER__MCF_DIRECTORY_ENTRY;
    if (!coffer__range_fits(section->offset, section->size, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, header->directory,
                            "%s takes %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64, label.text,
                            section->size, section->offset, file_size);
    if (overlaps(section->offset, section->size, 0, header->header_size))
        return coffer__fail(err, COFFER_E_OVERLAP, section->offset,
                            "%s begins at %" PRIu64 ", inside the header of %" PRIu32 " bytes", label.text,
                            section->offset, header->header_size);
    if (overlaps(section->offset, section->size, header->directory, directory_len))
        return coffer__fail(err, COFFER_E_OVERLAP, section->offset,
                            "%s, %" PRIu64 " bytes at %" PRIu64 ", overlaps the directory at %" PRIu64,
                            label.text, section->size, section->offset, header->directory);
    if (section->offset % COFFER__MCF_SECTION_ALIGNMENT != 0)
        return coffer__fail(err, COFFER_E_MISALIGNED, section->offset,
                            "%s begins at %" PRIu64 ", which is not a multiple of %d", label.text,
                            section->offset, COFFER__MCF_SECTION_ALIGNMENT);
    return COFFER_OK;
}

static int by_offset(const void *a, const void *b)
{
    const coffer_mcf_section *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

coffer_status coffer__mcf_check_overlap(const coffer_mcf_section *sections, size_t count, coffer_error *err)
{
    coffer_mcf_section *sorted = coffer__alloc_array(count, sizeof *sorted);
    coffer_status status = COFFER_OK;
    const coffer_mcf_section *before = NULL;
    if (!sorted)
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    if (count > 0) {
        memcpy(sorted, sections, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_offset);
    }
    for (size_t i = 0; i < count && !status; i++) {
        const coffer_mcf_section *here = &sorted[i];
        if (here->size == 0)
            continue;
        if (before && here->offset - before->offset < before->size)
            status =
                coffer__fail(err, COFFER_E_OVERLAP, here->offset,
                             "%s begins at %" PRIu64 ", before the end of %s at %" PRIu64,
                             coffer__mcf_section_label(here->type).text, here->offset,
                             coffer__mcf_section_label(before->type).text, before->offset + before->size);
        before = here;
    }
    coffer__free(sorted);
    return status;
}

const coffer_mcf_section *coffer__mcf_first_section(const coffer_mcf_section *sections, size_t count,
                                                    uint32_t type)
{
    for (size_t i = 0; i < count; i++) {
        if (sections[i].type == type)
            return &sections[i];
    }
    return NULL;
}

/* ---- Names of the numbers in the file ---- */

static const struct section_name {
    uint32_t type;
    const char *name;
} section_names[] = {
    { COFFER_MCF_MODEL_INFO, "ModelInfo" },
    { COFFER_MCF_QUANT_INFO, "QuantInfo" },
    { COFFER_MCF_TENSOR_INDEX, "TensorIndex" },
    { COFFER_MCF_TENSOR_DATA, "TensorData" },
    { COFFER_MCF_CONFIG, "config.json" },
    { COFFER_MCF_GENERATION_CONFIG, "generation_config.json" },
    { COFFER_MCF_TOKENIZER, "tokenizer.json" },
    { COFFER_MCF_TOKENIZER_CONFIG, "tokenizer_config.json" },
    { COFFER_MCF_VOCAB, "vocab.json" },
    { COFFER_MCF_MERGES, "merges.txt" },
    { COFFER_MCF_CHECKSUMS, "Checksums" },
    { COFFER_MCF_QUALITY, "QuantQuality" },
    { COFFER_MCF_DIRECTORY_COPY, "DirectoryCopy" },
    { COFFER_MCF_DAMAGE, "Damage" },
    { COFFER_MCF_FILES, "Files" },
};

const char *coffer_mcf_section_name(uint32_t type)
{
    for (size_t i = 0; i < sizeof section_names / sizeof section_names[0]; i++) {
        if (section_names[i].type == type)
            return section_names[i].name;
    }
    return NULL;
}

uint32_t coffer_mcf_section_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof section_names / sizeof section_names[0]; i++) {
        if (strcmp(section_names[i].name, name) == 0)
            return section_names[i].type;
    }
    return 0;
}

coffer__mcf_label coffer__mcf_section_label(uint32_t type)
{
    const char *name = coffer_mcf_section_name(type);
    coffer__mcf_label label;
    if (name)
        snprintf(label.text, sizeof label.text, "%s", name);
    else
        snprintf(label.text, sizeof label.text, "section 0x%" PRIx32, type);
    return label;
}

uint32_t coffer_mcf_dtype_code(coffer_dtype dtype)
{
    return coffer__dtype_code(dtype);
}

coffer_dtype coffer_mcf_dtype_from_code(uint32_t code)
{
    return coffer__dtype_of_code(code);
}

static const char *const arch_names[] = {
    "unknown", "llama", "mistral", "qwen", "gemma", "granite", "smollm3"
};
static const char *const rope_names[] = { "none", "standard", "linear", "yarn" };

#define ARCH_COUNT (sizeof arch_names / sizeof arch_names[0])
#define ROPE_COUNT (sizeof rope_names / sizeof rope_names[0])

const char *coffer_mcf_arch_name(uint32_t arch)
{
    return arch < ARCH_COUNT ? arch_names[arch] : "unknown";
}

uint32_t coffer_mcf_arch_by_name(const char *name)
{
    for (uint32_t i = 0; i < ARCH_COUNT; i++) {
        if (strcmp(arch_names[i], name) == 0)
            return i;
    }
    return 0;
}

const char *coffer_mcf_rope_name(uint32_t rope_type)
{
    return rope_type < ROPE_COUNT ? rope_names[rope_type] : "none";
}

/* DirectoryCopy: header and directory once more, right after the header. It locates the sections of a
 * truncated file, and a damaged directory entry differs from it. */

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
    coffer__mcf_copy copy = { .header = decode_header(bytes + COFFER__MCF_COPY_HEADER_AT) };
    if (crc_of(bytes, count) != coffer__load_u32(bytes + COFFER__MCF_COPY_CRC_AT) ||
        copy.header.section_count != count)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, place + COFFER__MCF_COPY_CRC_AT,
                            "the CRC-32 of DirectoryCopy does not match: the copy is damaged");
    copy.sections = coffer__alloc_array(count, sizeof *copy.sections);
    if (!copy.sections)
        return coffer__fail_no_memory(err, count * sizeof *copy.sections);
    decode_directory(copy.sections, bytes + COFFER__MCF_COPY_ENTRIES_AT, count);
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
