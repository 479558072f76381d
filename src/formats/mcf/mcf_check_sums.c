/* Compares every byte of a file with its Checksums, header and directory with their copy, and looks at
 * recorded damage. */
#include "formats/mcf/mcf_check.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/work.h"

#include <inttypes.h>

/* ---- DirectoryCopy ---- */

coffer_status coffer__mcf_check_copy(coffer__mcf_checker *check, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer__mcf_copy copy = { 0 };
    const coffer_mcf_section *listed = coffer__mcf_checker_section(check, COFFER_MCF_DIRECTORY_COPY);
    coffer_status status =
        coffer__mcf_copy_compare(check->source, &check->header, check->sections, &check->limits, &found);
    if (status)
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    if (!listed)
        return COFFER_OK;
    status = coffer__mcf_copy_load(&copy, check->source, listed->offset, &check->limits, &found);
    coffer__free(copy.sections);
    return status ? coffer__report_take(check->report, COFFER_ERROR, &found, err) : COFFER_OK;
}

/* ---- Checksums ---- */

/* The section or other part of the file at an offset, for messages. */
static coffer__mcf_label part_at(const coffer__mcf_checker *check, uint64_t offset)
{
    coffer__mcf_label label = { "unused bytes" };
    uint64_t directory_len = (uint64_t)check->header.section_count * COFFER__MCF_DIRECTORY_ENTRY;
    if (offset < check->header.header_size)
        return (coffer__mcf_label){ "the header" };
    if (offset >= check->header.directory && offset - check->header.directory < directory_len)
        return (coffer__mcf_label){ "the directory" };
    for (size_t i = 0; i < check->section_count; i++) {
        const coffer_mcf_section *section = &check->sections[i];
        if (offset >= section->offset && offset - section->offset < section->size)
            label = coffer__mcf_section_label(section->type);
    }
    return label;
}

static void report_chunk(const coffer__mcf_checker *check, uint64_t start, size_t size, uint32_t found,
                         uint32_t stored)
{
    coffer__mcf_names names = coffer__mcf_names_in(&check->index, start, start + size);
    bool several = strchr(names.text, ',') || strstr(names.text, " more");
    coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, start,
                       "%s%s: the CRC-32 of %zu bytes is %08" PRIx32 ", Checksums says %08" PRIx32,
                       !names.text[0] ? ""
                       : several      ? "tensors "
                                      : "tensor ",
                       names.text[0] ? names.text : part_at(check, start).text, size, found, stored);
}

static coffer_status compare_sums(const coffer__mcf_checker *check, const coffer__mcf_sums *stored,
                                  coffer_error *err)
{
    coffer__mcf_sums found = *stored;
    coffer__work_opts options = { .threads = check->opts->threads, .progress = check->opts->progress };
    found.sums = coffer__calloc(stored->sum_count ? stored->sum_count : 1, sizeof *found.sums);
    if (!found.sums)
        return coffer__fail_no_memory(err, stored->sum_count * sizeof *found.sums);
    coffer_status status = coffer__mcf_sums_compute(&found, NULL, check->source, &options, err);
    for (size_t i = 0; !status && i < stored->sum_count && !coffer__report_full(check->report); i++) {
        uint64_t start;
        size_t size;
        if (found.sums[i] == stored->sums[i])
            continue;
        coffer__mcf_sums_chunk(&start, &size, stored, i);
        report_chunk(check, start, size, found.sums[i], stored->sums[i]);
    }
    coffer__free(found.sums);
    return status;
}

/* Reports the first byte of a range that is not zero. */
static coffer_status check_zeros(const coffer__mcf_checker *check, uint64_t begin, uint64_t end,
                                 uint8_t *scratch, coffer_error *err)
{
    for (uint64_t at = begin; at < end;) {
        size_t n = end - at < COFFER__MCF_CHUNK ? (size_t)(end - at) : COFFER__MCF_CHUNK;
        coffer_status status = coffer_source_read_at(scratch, check->source, at, n, err);
        if (status)
            return status;
        for (size_t i = 0; i < n; i++) {
            if (scratch[i] == 0)
                continue;
            coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, at + i,
                               "bytes without a checksum are 0 in this file, this one is %u", scratch[i]);
            return COFFER_OK;
        }
        at += n;
    }
    return COFFER_OK;
}

/* Only alignment is outside of the ranges and of the table itself. */
static coffer_status check_gaps(const coffer__mcf_checker *check, const coffer__mcf_sums *sums,
                                const coffer_mcf_section *own, coffer_error *err)
{
    uint64_t at = 0, size = coffer_source_size(check->source);
    uint8_t *scratch = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = scratch ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    for (size_t i = 0; !status && i <= sums->range_count; i++) {
        uint64_t end = i < sums->range_count ? sums->ranges[i].offset : size;
        if (own->offset >= at && own->offset < end) {
            status = check_zeros(check, at, own->offset, scratch, err);
            at = own->offset + own->size;
        }
        if (!status && at < end)
            status = check_zeros(check, at, end, scratch, err);
        at = i < sums->range_count ? sums->ranges[i].offset + sums->ranges[i].size : size;
    }
    coffer__free(scratch);
    return status;
}

static bool fits(const coffer__mcf_sums *sums, uint64_t size)
{
    const coffer__mcf_range *last = sums->range_count ? &sums->ranges[sums->range_count - 1] : NULL;
    return !last || coffer__range_fits(last->offset, last->size, size);
}

static uint64_t bytes_of(const coffer__mcf_sums *sums)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < sums->range_count; i++)
        bytes += sums->ranges[i].size;
    return bytes;
}

static coffer_status verify(const coffer__mcf_checker *check, const coffer__mcf_sums *sums,
                            const coffer_mcf_section *section, coffer_error *err)
{
    uint64_t size = coffer_source_size(check->source), bytes = bytes_of(sums);
    bool verified = check->opts->full || bytes <= COFFER__MCF_FREE_OF_COST;
    if (!verified) {
        coffer__size_text text;
        coffer__report_set_limits(check->report, "structure only; --full verifies %s",
                                  coffer__size_text_of(text, bytes));
    }
    if (!verified || !fits(sums, size))
        return COFFER_OK;
    coffer_status status = compare_sums(check, sums, err);
    return !status && sums->version > 1 ? check_gaps(check, sums, section, err) : status;
}

coffer_status coffer__mcf_check_sums(coffer__mcf_checker *check, coffer_error *err)
{
    coffer__mcf_sums sums = { 0 };
    coffer_error wrong = COFFER_ERROR_INIT;
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_CHECKSUMS);
    coffer_status status = COFFER_OK;
    if (!section) {
        coffer__report_set_limits(check->report,
                                  "no checksums in this file; 'coffer set FILE --checksum' adds "
                                  "them");
        return COFFER_OK;
    }
    if (coffer__mcf_sums_load(&sums, check->source, section, &check->limits, &wrong))
        return coffer__report_take(check->report, COFFER_ERROR, &wrong, err);
    if (coffer__mcf_sums_stale(&sums, &check->header, coffer_source_size(check->source), section->offset,
                               check->has_data ? &check->data : NULL))
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, section->offset,
                           "stale checksums: another program changed the file after they were written; "
                           "'coffer set FILE --checksum' computes new ones");
    else
        status = verify(check, &sums, section, err);
    coffer__mcf_sums_free(&sums);
    return status;
}

/* ---- Damage ---- */

/* The bytes of a record in the file. order : of the index by name. */
static bool locate(uint64_t *offset, const coffer__mcf_checker *check, const uint32_t *order,
                   const coffer_mcf_damage *damage)
{
    uint64_t begin = 0, size = 0;
    size_t tensor = damage->section
                        ? COFFER_INDEX_NONE
                        : coffer__mcf_index_find(&check->index, order, damage->name, damage->name_len);
    if (damage->section) {
        const coffer_mcf_section *section = coffer__mcf_checker_section(check, damage->section);
        begin = section ? section->offset : 0;
        size = section ? section->size : 0;
    }
    if (tensor != COFFER_INDEX_NONE) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, tensor);
        begin = entry.offset;
        size = entry.size;
    }
    *offset = begin + damage->begin;
    return coffer__range_fits(damage->begin, damage->size, size) &&
           coffer__range_fits(*offset, damage->size, coffer_source_size(check->source));
}

static coffer_status crc_of(uint32_t *out, const coffer__mcf_checker *check, uint64_t offset, uint64_t size,
                            coffer_error *err)
{
    uint8_t *scratch = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = scratch ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    uint32_t crc = 0;
    for (uint64_t done = 0; !status && done < size;) {
        size_t n = size - done < COFFER__MCF_CHUNK ? (size_t)(size - done) : COFFER__MCF_CHUNK;
        status = coffer_source_read_at(scratch, check->source, offset + done, n, err);
        if (!status)
            crc = coffer__crc32(crc, scratch, n);
        done += n;
    }
    coffer__free(scratch);
    *out = crc;
    return status;
}

static void check_lost(const coffer__mcf_checker *check, const uint32_t *order,
                       const coffer_mcf_damage *damage)
{
    bool found = damage->section ? coffer__mcf_checker_section(check, damage->section) != NULL
                                 : coffer__mcf_index_find(&check->index, order, damage->name,
                                                          damage->name_len) != COFFER_INDEX_NONE;
    if (!found)
        coffer__report_add(check->report, COFFER_E_MISSING, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "%s %s was lost in a repair; 'coffer set FILE --delete Damage' accepts that",
                           damage->section ? "section" : "tensor", damage->name);
}

static coffer_status check_damage(const coffer__mcf_checker *check, const uint32_t *order,
                                  const coffer_mcf_damage *damage, coffer_error *err)
{
    uint64_t offset = 0;
    uint32_t crc = damage->found;
    coffer_status status = COFFER_OK;
    if (!locate(&offset, check, order, damage))
        return COFFER_OK; /* the tensor or section is no longer there */
    if (check->opts->full || damage->size <= COFFER__MCF_FREE_OF_COST)
        status = crc_of(&crc, check, offset, damage->size, err);
    if (status)
        return status;
    const char *kind = damage->section ? "section" : "tensor";
    bool replaced =
        damage->reason == COFFER_MCF_DAMAGE_CHECKSUM ? crc == damage->expected : crc != damage->found;
    if (replaced)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_NOTE, offset,
                           "%s %s: recorded damage has been replaced; 'coffer set FILE --delete Damage' "
                           "removes the record",
                           kind, damage->name);
    else if (damage->reason == COFFER_MCF_DAMAGE_CHECKSUM)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, offset,
                           "%s %s: %" PRIu64 " bytes from %" PRIu64
                           " on are known to be damaged: their CRC-32 was %08" PRIx32,
                           kind, damage->name, damage->size, damage->begin, damage->expected);
    else
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, offset,
                           "%s %s: %" PRIu64 " bytes from %" PRIu64
                           " on were saved from a damaged file and could not be verified",
                           kind, damage->name, damage->size, damage->begin);
    return COFFER_OK;
}

coffer_status coffer__mcf_check_damage(coffer__mcf_checker *check, coffer_error *err)
{
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_DAMAGE);
    coffer__mcf_damages damages = { 0 };
    coffer_error found = COFFER_ERROR_INIT;
    uint32_t *order = NULL;
    if (!section)
        return COFFER_OK;
    if (coffer__mcf_damages_load(&damages, check->source, section, &check->limits, &found))
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    coffer_status status = coffer__mcf_index_order(&order, &check->index, err);
    for (size_t i = 0; !status && i < damages.count && !coffer__report_full(check->report); i++) {
        if (damages.items[i].reason == COFFER_MCF_DAMAGE_LOST)
            check_lost(check, order, &damages.items[i]);
        else
            status = check_damage(check, order, &damages.items[i], err);
    }
    coffer__free(order);
    coffer__mcf_damages_free(&damages);
    return status;
}
