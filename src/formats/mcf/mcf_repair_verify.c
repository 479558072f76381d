/* Evidence for a repair: the checksums of the file tell which of the saved bytes are right. Bytes that are
 * not are taken from where an insertion or removal has moved them, from a copy, or are recorded as
 * damaged. */
#include "formats/mcf/mcf_repair.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

void coffer__mcf_rescue_free(coffer__mcf_rescue *work)
{
    coffer__free(work->left_out);
    coffer__free(work->from_copy);
    coffer__free(work->patches);
    coffer__free(work->moved);
    coffer__mcf_damages_free(&work->damages);
    coffer__mcf_sums_free(&work->sums);
    coffer_mcf_close(work->copy);
    coffer_mcf_close(work->model);
}

/* ---- Ranges ---- */

static coffer_status crc_of(uint32_t *out, coffer_source *src, uint64_t offset, uint64_t size,
                            coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    uint32_t crc = 0;
    for (uint64_t done = 0; !status && done < size;) {
        size_t n = size - done < COFFER__MCF_CHUNK ? (size_t)(size - done) : COFFER__MCF_CHUNK;
        status = coffer_source_read_at(piece, src, offset + done, n, err);
        if (!status)
            crc = coffer__crc32(crc, piece, n);
        done += n;
    }
    coffer__free(piece);
    *out = crc;
    return status;
}

/* True when the bytes are in the source and have the CRC-32. A failure to read them ends the repair later. */
static bool has_crc(coffer__mcf_rescue *work, coffer_source *src, uint64_t offset, uint64_t size,
                    uint32_t expected)
{
    uint32_t crc = 0;
    if (work->failure.status || !coffer__range_fits(offset, size, coffer_source_size(src)))
        return false;
    return !crc_of(&crc, src, offset, size, &work->failure) && crc == expected;
}

static bool range_matches(coffer__mcf_rescue *work, coffer_source *src, uint64_t offset,
                          const coffer__mcf_range *range)
{
    for (size_t i = 0; i < coffer__chunk_count(range->size); i++) {
        if (!has_crc(work, src, offset + i * COFFER__MCF_CHUNK, coffer__chunk_len(range->size, i),
                     work->sums.sums[range->first_sum + i]))
            return false;
    }
    return true;
}

/* ---- Checksums and copy ---- */

static bool belongs(const coffer__mcf_rescue *work, const coffer__mcf_sums *sums)
{
    const coffer_mcf_section *data = coffer_mcf_find_section(work->model, COFFER_MCF_TENSOR_DATA);
    if (sums->version == 1)
        return data && sums->range_count > 0 && sums->ranges[0].offset == data->offset &&
               sums->ranges[0].size == data->size;
    return sums->file_size == work->model->header.file_size ||
           sums->file_size == coffer_source_size(work->source);
}

static coffer_status find_sums(coffer__mcf_rescue *work, coffer_error *err)
{
    const coffer_mcf_section *listed = coffer_mcf_find_section(work->model, COFFER_MCF_CHECKSUMS);
    const coffer_limits *limits = &work->model->limits;
    coffer_mcf_section section = { 0 };
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    if (listed)
        status = coffer__mcf_sums_load(&work->sums, work->source, listed, limits, &cause);
    if (status && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &cause);
    work->has_sums = listed && !status;
    work->sums_lost = listed && status && status != COFFER_E_UNSUPPORTED_VERSION;
    if (work->has_sums) {
        section = *listed;
    } else {
        status = coffer__mcf_search_sums(&section, work->source, limits, err);
        if (status || section.size == 0)
            return status;
        status = coffer__mcf_sums_load(&work->sums, work->source, &section, limits, err);
        if (status)
            return status;
        work->has_sums = true;
        work->sums_lost = false;
        coffer__report_add(work->report, COFFER_E_MISSING, COFFER_NOTE, section.offset,
                           "the place of Checksums is damaged; the table was found at %" PRIu64,
                           section.offset);
    }
    if (!belongs(work, &work->sums)) {
        coffer__mcf_sums_free(&work->sums);
        work->has_sums = false;
        return COFFER_OK;
    }
    /* A table before the payloads does not move with them; then the size of the file tells. */
    uint64_t size = coffer_source_size(work->source);
    if (work->sums.version > 1 && section.offset != work->sums.place)
        work->shift = (int64_t)(section.offset - work->sums.place);
    else if (work->sums.version > 1)
        work->shift = (int64_t)(size - work->sums.file_size);
    work->has_shift = work->shift != 0;
    return COFFER_OK;
}

/* Reports once that bytes were inserted or removed before an offset. */
static void report_shift(coffer__mcf_rescue *work, uint64_t offset)
{
    if (work->shift_reported)
        return;
    work->shift_reported = true;
    coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_NOTE, offset,
                       "damage: bytes %s before %" PRIu64 ": %" PRIu64,
                       work->shift < 0 ? "removed" : "inserted", offset,
                       (uint64_t)(work->shift < 0 ? -work->shift : work->shift));
}

/* Sections that bytes inserted or removed before them have moved. */
static void relocate_sections(coffer__mcf_rescue *work)
{
    for (size_t i = 0; i < work->model->section_count; i++) {
        coffer_mcf_section *section = &work->model->sections[i];
        const coffer__mcf_range *range = coffer__mcf_sums_find(&work->sums, section->offset);
        uint64_t moved = section->offset + (uint64_t)work->shift;
        if (range && range->offset == section->offset && range->size == section->size &&
            !range_matches(work, work->source, section->offset, range) &&
            range_matches(work, work->source, moved, range)) {
            report_shift(work, moved);
            section->offset = moved;
        }
    }
}

coffer_status coffer__mcf_gather_evidence(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf_open_opts options = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = find_sums(work, err);
    if (!status && work->has_shift)
        relocate_sections(work);
    if (status || !work->opts->copy)
        return status;
    options.limits = &work->model->limits;
    options.lenient = true;
    status = coffer_mcf_open(&work->copy, work->opts->copy, &options, &cause);
    if (!status)
        return COFFER_OK;
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "the copy cannot be read: %s", cause.text);
}

/* ---- Collecting ---- */

static coffer_status add_damage(coffer__mcf_rescue *work, const coffer_mcf_damage *damage, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&work->damages.items, &work->damages.capacity,
                                                     work->damages.count, sizeof *damage, err);
    if (!status)
        work->damages.items[work->damages.count++] = *damage;
    return status;
}

void coffer__mcf_record_lost(coffer__mcf_rescue *work, uint32_t section, const char *name, size_t name_len)
{
    coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
    damage.reason = COFFER_MCF_DAMAGE_LOST;
    damage.section = section;
    damage.name = name;
    damage.name_len = name_len;
    if (!work->failure.status)
        (void)add_damage(work, &damage, &work->failure);
}

static coffer_status add_patch(coffer__mcf_rescue *work, coffer__mcf_patch patch, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&work->patches, &work->patch_capacity, work->patch_count,
                                                     sizeof patch, err);
    if (!status)
        work->patches[work->patch_count++] = patch;
    return status;
}

/* ---- Tensors ---- */

/* The same tensor in the copy; NULL when it has none. */
static const coffer_mcf_tensor *in_copy(size_t *index, const coffer__mcf_rescue *work,
                                        const coffer__mcf_entry *entry)
{
    if (!work->copy || !entry->name)
        return NULL;
    *index = coffer_mcf_find_tensor(work->copy, entry->name, entry->name_len);
    const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(work->copy, *index);
    if (!tensor || tensor->size != entry->size || tensor->dtype_code != entry->dtype ||
        tensor->rank != entry->rank || coffer__mcf_check_range(work->copy, *index, NULL))
        return NULL;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!entry->dims || tensor->dims[i] != entry->dims[i])
            return NULL;
    }
    return tensor;
}

static bool is_verified_in_copy(coffer__mcf_rescue *work, size_t tensor, uint64_t begin, uint64_t size)
{
    coffer_error cause = COFFER_ERROR_INIT;
    if (!work->copy->verifier || work->failure.status)
        return false;
    coffer_status status = coffer_mcf_verify(work->copy, tensor, begin, size, &cause);
    if (status && !coffer__is_about_file(status))
        work->failure = cause;
    return !status;
}

/* Verified by the checksums of the damaged file where it has them, else by those of the copy. */
static bool is_intact_in_copy(coffer__mcf_rescue *work, const coffer__mcf_entry *entry,
                              const coffer_mcf_tensor *tensor, size_t index)
{
    const coffer__mcf_range *range =
        work->has_sums && work->sums.version > 1 ? coffer__mcf_sums_find(&work->sums, entry->offset) : NULL;
    if (!range || range->offset != entry->offset || range->size != entry->size)
        return is_verified_in_copy(work, index, 0, entry->size);
    for (size_t i = 0; i < coffer__chunk_count(entry->size); i++) {
        if (!has_crc(work, work->copy->source, tensor->offset + i * COFFER__MCF_CHUNK,
                     coffer__chunk_len(entry->size, i), work->sums.sums[range->first_sum + i]))
            return false;
    }
    return true;
}

bool coffer__mcf_take_from_copy(coffer__mcf_rescue *work, size_t tensor)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(&work->model->index, tensor);
    size_t index = 0, count = work->model->index.count;
    const coffer_mcf_tensor *from = in_copy(&index, work, &entry);
    if (!from || !is_intact_in_copy(work, &entry, from, index))
        return false;
    if (!work->from_copy)
        work->from_copy = coffer__calloc(count, sizeof *work->from_copy);
    coffer__mcf_patch patch = { tensor, 0, entry.size, work->copy->source, from->offset };
    if (!work->from_copy)
        coffer__fail_no_memory(&work->failure, count);
    if (!work->from_copy || add_patch(work, patch, &work->failure))
        return false;
    work->from_copy[tensor] = true;
    coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_NOTE, entry.offset,
                       "tensor %s is taken from the copy",
                       coffer__mcf_entry_name(&work->model->index, tensor).text);
    return true;
}

/* Bytes of a tensor that do not have their checksum: from where they were moved to, from the copy, or
 * recorded. expected : NULL when only their neighborhood is known to be damaged. */
static coffer_status rescue_bytes(coffer__mcf_rescue *work, size_t tensor, uint64_t begin, uint64_t size,
                                  const uint32_t *expected, coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(&work->model->index, tensor);
    coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
    size_t index = 0;
    const coffer_mcf_tensor *copy = in_copy(&index, work, &entry);
    coffer__mcf_name name = coffer__mcf_entry_name(&work->model->index, tensor);
    uint64_t moved = entry.offset + begin + (uint64_t)work->shift;
    if (expected && has_crc(work, work->source, entry.offset + begin, size, *expected))
        return COFFER_OK;
    if (expected && work->has_shift && has_crc(work, work->source, moved, size, *expected)) {
        report_shift(work, moved);
        return add_patch(work, (coffer__mcf_patch){ tensor, begin, size, work->source, moved }, err);
    }
    if (copy && (expected ? has_crc(work, work->copy->source, copy->offset + begin, size, *expected)
                          : is_verified_in_copy(work, index, begin, size))) {
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_NOTE, entry.offset + begin,
                           "tensor %s: %" PRIu64 " damaged bytes are taken from the copy", name.text, size);
        return add_patch(work,
                         (coffer__mcf_patch){ tensor, begin, size, work->copy->source, copy->offset + begin },
                         err);
    }
    damage.name = entry.name;
    damage.name_len = entry.name_len;
    damage.begin = begin;
    damage.size = size;
    damage.reason = expected ? COFFER_MCF_DAMAGE_CHECKSUM : COFFER_MCF_DAMAGE_UNVERIFIED;
    damage.expected = expected ? *expected : 0;
    coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, entry.offset + begin,
                       expected ? "tensor %s: %" PRIu64 " bytes are damaged; copied, and recorded as damaged"
                                : "tensor %s: %" PRIu64 " bytes cannot be verified; copied, and recorded as "
                                  "unverified",
                       name.text, size);
    return add_damage(work, &damage, err);
}

/* Chunk by chunk; a chunk of version 1 may have bytes of several tensors. */
static coffer_status verify_tensor(coffer__mcf_rescue *work, size_t tensor, coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(&work->model->index, tensor);
    uint64_t at = entry.offset, end = entry.offset + entry.size;
    coffer_status status = COFFER_OK;
    while (!status && at < end) {
        const coffer__mcf_range *range = coffer__mcf_sums_find(&work->sums, at);
        uint64_t start;
        size_t size;
        if (!range)
            return rescue_bytes(work, tensor, at - entry.offset, end - at, NULL, err);
        size_t sum = range->first_sum + (size_t)((at - range->offset) / COFFER__MCF_CHUNK);
        coffer__mcf_sums_chunk(&start, &size, &work->sums, sum);
        uint64_t chunk_end = start + size;
        uint64_t last = chunk_end < end ? chunk_end : end;
        bool whole = at == start && last == chunk_end;
        if (!has_crc(work, work->source, start, size, work->sums.sums[sum]))
            status = rescue_bytes(work, tensor, at - entry.offset, last - at,
                                  whole ? &work->sums.sums[sum] : NULL, err);
        at = last;
    }
    return status;
}

/* Without checksums the bytes are in doubt when the file does not have the size it should have, or when the
 * checksums themselves are damaged. */
static bool in_doubt(const coffer__mcf_rescue *work)
{
    return work->directory_lost || work->sums_lost ||
           work->model->header.file_size != coffer_source_size(work->source);
}

static coffer_status verify_tensors(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < work->model->index.count; i++) {
        uint64_t size = coffer__mcf_index_entry(&work->model->index, i).size;
        if (work->left_out[i] || (work->from_copy && work->from_copy[i]) || size == 0)
            continue;
        if (work->has_sums)
            status = verify_tensor(work, i, err);
        else if (in_doubt(work))
            status = rescue_bytes(work, i, 0, size, NULL, err);
    }
    return status;
}

/* ---- Sections ---- */

static coffer_status add_moved(coffer__mcf_rescue *work, coffer__mcf_moved moved, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&work->moved, &work->moved_capacity, work->moved_count, sizeof moved, err);
    if (!status)
        work->moved[work->moved_count++] = moved;
    return status;
}

static bool is_rebuilt(uint32_t type)
{
    return type == COFFER_MCF_TENSOR_INDEX || type == COFFER_MCF_QUANT_INFO;
}

static coffer_status record_section(coffer__mcf_rescue *work, const coffer_mcf_section *section,
                                    const coffer__mcf_range *range, coffer_error *err)
{
    coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
    const char *name = coffer_mcf_section_name(section->type);
    damage.section = section->type;
    damage.name = name ? name : "section";
    damage.name_len = strlen(damage.name);
    damage.size = section->size;
    /* A section that is written again has other bytes, so its old checksum says nothing. */
    if (range && range->size <= COFFER__MCF_CHUNK && !is_rebuilt(section->type)) {
        damage.reason = COFFER_MCF_DAMAGE_CHECKSUM;
        damage.expected = work->sums.sums[range->first_sum];
    }
    if (is_rebuilt(section->type) && work->kept == 0) {
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, section->offset,
                           "%s is damaged and left out: no tensor was saved",
                           coffer__mcf_section_label(section->type).text);
        return COFFER_OK;
    }
    coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, section->offset,
                       range ? "%s is damaged; copied, and recorded as damaged"
                             : "%s cannot be verified; copied, and recorded as unverified",
                       coffer__mcf_section_label(section->type).text);
    return add_damage(work, &damage, err);
}

bool coffer__mcf_is_damaged_section(coffer__mcf_rescue *work, const coffer_mcf_section *section)
{
    const coffer__mcf_range *range =
        work->has_sums ? coffer__mcf_sums_find(&work->sums, section->offset) : NULL;
    return range && range->offset == section->offset && range->size == section->size &&
           !range_matches(work, work->source, section->offset, range);
}

static coffer_status verify_section(coffer__mcf_rescue *work, const coffer_mcf_section *section,
                                    coffer_error *err)
{
    const coffer__mcf_range *range = coffer__mcf_sums_find(&work->sums, section->offset);
    const coffer_mcf_section *copy = work->copy ? coffer_mcf_find_section(work->copy, section->type) : NULL;
    if (!coffer__mcf_is_damaged_section(work, section))
        return COFFER_OK;
    if (!is_rebuilt(section->type) && copy && copy->size == section->size &&
        range_matches(work, work->copy->source, copy->offset, range)) {
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_NOTE, section->offset,
                           "%s is damaged; it is taken from the copy",
                           coffer__mcf_section_label(section->type).text);
        return add_moved(work, (coffer__mcf_moved){ section->type, work->copy->source, copy->offset }, err);
    }
    return record_section(work, section, range, err);
}

static coffer_status verify_sections(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < work->model->section_count; i++) {
        uint32_t type = work->model->sections[i].type;
        if (type != COFFER_MCF_TENSOR_DATA && type != COFFER_MCF_CHECKSUMS &&
            type != COFFER_MCF_DIRECTORY_COPY && type != COFFER_MCF_DAMAGE)
            status = work->has_sums ? verify_section(work, &work->model->sections[i], err)
                                    : record_section(work, &work->model->sections[i], NULL, err);
    }
    return status;
}

/* ---- Damage that was known before ---- */

static coffer_status keep_known_damage(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf *model = work->model;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < model->damages.count; i++) {
        const coffer_mcf_damage *damage = &model->damages.items[i];
        size_t tensor = damage->section ? COFFER_INDEX_NONE
                                        : coffer_mcf_find_tensor(model, damage->name, damage->name_len);
        bool fits = tensor != COFFER_INDEX_NONE &&
                    coffer__range_fits(damage->begin, damage->size,
                                       coffer__mcf_index_entry(&model->index, tensor).size);
        if (damage->section || damage->reason == COFFER_MCF_DAMAGE_LOST)
            status = add_damage(work, damage, err);
        else if (fits && !work->left_out[tensor])
            status =
                rescue_bytes(work, tensor, damage->begin, damage->size,
                             damage->reason == COFFER_MCF_DAMAGE_CHECKSUM ? &damage->expected : NULL, err);
    }
    return status;
}

coffer_status coffer__mcf_verify_rescued(coffer__mcf_rescue *work, coffer_error *err)
{
    const coffer_mcf_section *known = coffer_mcf_find_section(work->model, COFFER_MCF_DAMAGE);
    coffer_status status = verify_tensors(work, err);
    if (!status && (work->has_sums || work->sums_lost))
        status = verify_sections(work, err);
    if (!status && known)
        status =
            coffer__mcf_damages_load(&work->model->damages, work->source, known, &work->model->limits, err);
    if (!status)
        status = keep_known_damage(work, err);
    return !status && work->failure.status ? coffer__fail_copy(err, &work->failure) : status;
}
