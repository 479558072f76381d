/* Places in the payload, the bytes there, and their checksums. */
#include "formats/pycauset/pycauset_payload.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/pycauset/pycauset_private.h"
#include "io/chunk_sums.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

/* Places in the payload, and the bytes there. */

/* ---- Places ---- */

void coffer__pycauset_grid_init(coffer__pycauset_grid *out, const coffer_pycauset_info *info)
{
    bool vector = info->type == COFFER_PYCAUSET_VECTOR;
    coffer__pycauset_grid grid = {
        .rows = vector ? 1 : info->stored_rows,
        .cols = vector ? info->rows * info->cols : info->stored_cols,
        .dtype = info->dtype,
        .element = coffer_dtype_size(info->dtype == COFFER_DTYPE_C32 ? COFFER_DTYPE_F16 : info->dtype),
        .triangular = coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_RAW_TRIANGULAR,
        .has_diagonal = info->has_diagonal,
        .diagonal = info->type == COFFER_PYCAUSET_DIAGONAL,
        .transposed = vector ? info->rows != 1 : info->transposed && info->type != COFFER_PYCAUSET_DIAGONAL,
        .mirrored = info->type == COFFER_PYCAUSET_SYMMETRIC || info->type == COFFER_PYCAUSET_ANTISYMMETRIC,
        .negative = info->type == COFFER_PYCAUSET_ANTISYMMETRIC,
        .plane_bytes = info->payload_needed / 2,
    };
    if (!grid.triangular)
        (void)coffer__pycauset_dense_row_bytes(&grid.row_bytes, grid.dtype, grid.cols);
    *out = grid;
}

uint64_t coffer__pycauset_grid_first(const coffer__pycauset_grid *grid, uint64_t row)
{
    return grid->diagonal ? row : grid->triangular ? row + !grid->has_diagonal : 0;
}

uint64_t coffer__pycauset_grid_end(const coffer__pycauset_grid *grid, uint64_t row)
{
    return grid->diagonal ? row + 1 : grid->cols;
}

/* For a triangle whose size is known not to overflow. */
static uint64_t triangle_bytes(const coffer__pycauset_grid *grid, uint64_t longest)
{
    uint64_t bytes = 0;
    (void)coffer__pycauset_triangle_bytes(&bytes, grid->dtype, longest);
    return bytes;
}

static uint64_t row_offset(const coffer__pycauset_grid *grid, uint64_t row)
{
    if (grid->diagonal)
        return row * grid->element;
    if (!grid->triangular)
        return row * grid->row_bytes;
    uint64_t longest = grid->cols - !grid->has_diagonal;
    return triangle_bytes(grid, longest) - triangle_bytes(grid, longest - row);
}

uint64_t coffer__pycauset_grid_offset(const coffer__pycauset_grid *grid, uint64_t row, uint64_t col,
                                      unsigned *first_bit)
{
    uint64_t offset = row_offset(grid, row), index = col - coffer__pycauset_grid_first(grid, row);
    if (grid->dtype != COFFER_DTYPE_BIT)
        return offset + index * grid->element;
    if (first_bit)
        *first_bit = index % 8;
    return offset + index / 8;
}

uint64_t coffer__pycauset_grid_length(const coffer__pycauset_grid *grid, unsigned first_bit, uint64_t count)
{
    if (grid->dtype == COFFER_DTYPE_BIT)
        return (first_bit + count + 7) / 8;
    return count * grid->element;
}

uint64_t coffer__pycauset_grid_row_bytes(const coffer__pycauset_grid *grid, uint64_t row)
{
    uint64_t bytes = grid->row_bytes;
    if (grid->triangular)
        (void)coffer__pycauset_triangle_row_bytes(&bytes, grid->dtype,
                                                  grid->cols - coffer__pycauset_grid_first(grid, row));
    return bytes;
}

/* ---- Recipes ---- */

coffer__pycauset_recipe coffer__pycauset_recipe_for(const coffer_pycauset_info *info, coffer_dtype dtype)
{
    bool scaled = info->scalar_real != 1.0 || info->scalar_imag != 0.0;
    coffer__cpu_level level = coffer__cpu();
    return (coffer__pycauset_recipe){
        .stored = info->dtype,
        .to = dtype,
        .scaled = scaled,
        .conjugated = info->conjugated && (coffer_dtype_is_complex(info->dtype) || info->scalar_imag != 0.0),
        .scalar_real = info->scalar_real,
        .scalar_imag = info->scalar_imag,
        .level = level,
        .kernels = coffer__elements_kernels_for(level),
    };
}

bool coffer__pycauset_recipe_changes(const coffer__pycauset_recipe *recipe)
{
    return recipe->scaled || recipe->conjugated || recipe->stored != recipe->to ||
           recipe->stored == COFFER_DTYPE_C32;
}

/* ---- Bytes ---- */

void coffer__pycauset_payload_init(coffer__pycauset_payload *reader, const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = &matrix->info;
    memset(reader, 0, sizeof *reader);
    reader->matrix = matrix;
    reader->source = matrix->source;
    reader->payload_offset = info->payload_offset;
    reader->number = coffer_dtype_size(info->dtype) / (coffer_dtype_is_complex(info->dtype) ? 2 : 1);
    if (info->payload_needed <= SIZE_MAX && !(COFFER__BIG_ENDIAN && reader->number > 1))
        reader->view = coffer_source_view(matrix->source, info->payload_offset, (size_t)info->payload_needed);
}

void coffer__pycauset_payload_free(coffer__pycauset_payload *reader)
{
    coffer__free(reader->windows[0].bytes);
    coffer__free(reader->windows[1].bytes);
}

/* Bytes [offset, offset + len) of the payload, until the next call for that plane. */
static coffer_status get_bytes(const uint8_t **out, coffer__pycauset_payload *reader, unsigned plane,
                               uint64_t offset, size_t len, uint64_t needed_until, coffer_error *err)
{
    if (reader->view) {
        *out = reader->view + offset;
        return coffer__pycauset_verify_read(reader->matrix, offset, len, err);
    }
    struct coffer__pycauset_payload_window *window = &reader->windows[plane];
    if (!window->bytes && !(window->bytes = coffer__malloc(COFFER__PYCAUSET_PAYLOAD_WINDOW)))
        return coffer__fail_no_memory(err, COFFER__PYCAUSET_PAYLOAD_WINDOW);
    if (offset < window->begin || offset + len > window->end) {
        uint64_t wanted = needed_until > offset + len ? needed_until - offset : len;
        size_t size =
            wanted < COFFER__PYCAUSET_PAYLOAD_WINDOW ? (size_t)wanted : COFFER__PYCAUSET_PAYLOAD_WINDOW;
        window->begin = window->end = 0;
        coffer_status status = coffer__pycauset_verify_read(reader->matrix, offset, size, err);
        if (status)
            return status;
        status =
            coffer_source_read_at(window->bytes, reader->source, reader->payload_offset + offset, size, err);
        if (status)
            return status;
        if (reader->number > 1)
            coffer__swap_numbers(window->bytes, reader->number, size / reader->number);
        window->begin = offset;
        window->end = offset + size;
    }
    *out = window->bytes + (size_t)(offset - window->begin);
    return COFFER_OK;
}

coffer_status coffer__pycauset_payload_row(coffer__pycauset_stored_row *out, coffer__pycauset_payload *reader,
                                           const coffer__pycauset_grid *grid, uint64_t row, uint64_t col,
                                           uint64_t count, uint64_t needed_until, coffer_error *err)
{
    *out = (coffer__pycauset_stored_row){ 0 };
    uint64_t offset = coffer__pycauset_grid_offset(grid, row, col, &out->first_bit);
    size_t len = (size_t)coffer__pycauset_grid_length(grid, out->first_bit, count);
    coffer_status status = get_bytes(&out->bytes, reader, 0, offset, len, needed_until, err);
    if (!status && grid->dtype == COFFER_DTYPE_C32)
        status = get_bytes(&out->imaginary, reader, 1, grid->plane_bytes + offset, len,
                           needed_until ? grid->plane_bytes + needed_until : 0, err);
    return status;
}

coffer_status coffer__pycauset_payload_intact(coffer__pycauset_payload *reader, coffer_error *err)
{
    return reader->view ? coffer_source_intact(reader->source, err) : COFFER_OK;
}

/* CRC-32 checksums of the payload, one for each MiB, in the metadata. */

void coffer__pycauset_put_sums(coffer__buffer *out, const uint32_t *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        coffer__store_u32(bytes, sums[i]);
        coffer__buffer_append(out, bytes, sizeof bytes);
    }
}

/* ---- Checksums in the metadata ---- */

typedef struct kept_sums {
    const uint8_t *bytes;
    uint64_t length; /* of the payload they cover */
    uint64_t groups;
} kept_sums;

/* The checksums in the metadata; COFFER_E_NOT_FOUND when it has no checksums. offset : of the block. */
static coffer_status find_sums(kept_sums *out, const coffer_pycauset_value *root,
                               const coffer_pycauset_info *info, uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *map = coffer__pycauset_get_key(root, COFFER__PYCAUSET_CHECKSUMS_KEY);
    const coffer_pycauset_value *crcs = coffer__pycauset_get_key(map, "crc32");
    uint64_t group;
    if (!map)
        return COFFER_E_NOT_FOUND;
    if (!coffer__pycauset_is_u64(&group, coffer__pycauset_get_key(map, "group_bytes")) ||
        group != COFFER__CHUNK_BYTES ||
        !coffer__pycauset_is_u64(&out->length, coffer__pycauset_get_key(map, "length")) ||
        coffer_pycauset_value_kind(crcs) != COFFER_PYCAUSET_BYTES)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "\"%s\" is not a map of group_bytes %" PRIu64
                            ", length and the checksums as bytes",
                            COFFER__PYCAUSET_CHECKSUMS_KEY, (uint64_t)COFFER__CHUNK_BYTES);
    if (out->length != info->payload_needed)
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset,
                            "the checksums cover %" PRIu64 " bytes of payload, it has %" PRIu64, out->length,
                            info->payload_needed);
    out->groups = coffer__chunk_count(out->length);
    out->bytes = (const uint8_t *)crcs->as.text;
    if (crcs->count / 4 != out->groups || crcs->count % 4 != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, offset,
                            "%lu bytes of checksums for %" PRIu64 " groups", (unsigned long)crcs->count,
                            out->groups);
    return COFFER_OK;
}

/* ---- New checksums ---- */

static coffer_status fail_damaged(const coffer_pycauset_info *info, uint64_t group, coffer_error *err)
{
    uint64_t from = group * COFFER__CHUNK_BYTES;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, info->payload_offset + from,
                        "the payload is damaged: bytes %" PRIu64 " to %" PRIu64
                        " of it do not match their checksum",
                        from, from + coffer__chunk_len(info->payload_needed, group));
}

typedef struct sum_job {
    coffer_source *source;
    const coffer_pycauset_info *info;
    const coffer__pycauset_patches *patches;
    uint32_t *sums;
    const kept_sums *kept; /* NULL: nothing to verify with */
    uint8_t *chunk;
} sum_job;

/* Sums a group as it will be, with the patches from *next on that are in it; an element is in one group,
 * since the size of a group is a multiple of that of any element. */
static coffer_status sum_group(const sum_job *job, uint64_t group, size_t *next, coffer_error *err)
{
    size_t len = coffer__chunk_len(job->info->payload_needed, group);
    uint64_t begin = group * COFFER__CHUNK_BYTES, end = begin + len;
    coffer_status status =
        coffer_source_read_at(job->chunk, job->source, job->info->payload_offset + begin, len, err);
    if (status)
        return status;
    if (job->kept && coffer__crc32(0, job->chunk, len) != coffer__load_u32(job->kept->bytes + 4 * group))
        return fail_damaged(job->info, group, err);
    for (; *next < job->patches->count && job->patches->items[*next].offset < end; ++*next) {
        const coffer__pycauset_patch *patch = &job->patches->items[*next];
        memcpy(job->chunk + (patch->offset - begin), patch->after, patch->size);
    }
    job->sums[group] = coffer__crc32(0, job->chunk, len);
    return COFFER_OK;
}

static coffer_status sum_patched(const sum_job *job, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < job->patches->count && !status;)
        status = sum_group(job, job->patches->items[i].offset / COFFER__CHUNK_BYTES, &i, err);
    return status;
}

/* The checksums of all groups as they are now. */
static coffer_status sum_all(coffer__chunk_sums *out, const sum_job *job, bool verify, coffer_error *err)
{
    coffer_status status = coffer__chunk_sums_compute(out, job->source, job->info->payload_offset,
                                                      job->info->payload_needed, NULL, err);
    for (size_t i = 0; !status && verify && job->kept && i < out->count; i++) {
        if (out->sums[i] != coffer__load_u32(job->kept->bytes + 4 * i)) {
            coffer__chunk_sums_free(out);
            return fail_damaged(job->info, i, err);
        }
    }
    return status;
}

coffer_status coffer__pycauset_sum_payload(coffer__buffer *out, coffer_source *src,
                                           const coffer_pycauset_info *info,
                                           const coffer_pycauset_value *root,
                                           const coffer__pycauset_patches *patches, bool verify_all,
                                           coffer_error *err)
{
    kept_sums kept;
    coffer__chunk_sums sums = { .sums = NULL };
    sum_job job = { .source = src, .info = info, .patches = patches };
    coffer_status status = COFFER_OK;
    if (find_sums(&kept, root, info, 0, NULL) == COFFER_OK)
        job.kept = &kept;
    if (job.kept && !verify_all) {
        sums.count = (size_t)kept.groups;
        sums.sums = coffer__alloc_array(sums.count, sizeof *sums.sums);
        if (!sums.sums)
            return coffer__fail_no_memory(err, sums.count * sizeof *sums.sums);
        for (size_t i = 0; i < sums.count; i++)
            sums.sums[i] = coffer__load_u32(kept.bytes + 4 * i);
    } else {
        status = sum_all(&sums, &job, verify_all, err);
        if (status)
            return status;
    }
    job.sums = sums.sums;
    if (patches->count > 0 && !(job.chunk = coffer__malloc(COFFER__CHUNK_BYTES)))
        status = coffer__fail_no_memory(err, COFFER__CHUNK_BYTES);
    if (!status)
        status = sum_patched(&job, err);
    coffer__pycauset_put_sums(out, sums.sums, sums.count);
    if (!status && out->failed)
        status = coffer__fail_no_memory(err, sums.count * 4);
    coffer__free(job.chunk);
    coffer__chunk_sums_free(&sums);
    return status;
}

/* ---- Verified reading ---- */

coffer_status coffer__pycauset_start_verifying(coffer_pycauset *matrix, coffer_error *err)
{
    kept_sums kept;
    coffer__chunk_sums sums = { .offset = matrix->info.payload_offset };
    if (find_sums(&kept, matrix->metadata.root, &matrix->info, 0, NULL) != COFFER_OK || kept.groups == 0)
        return COFFER_OK;
    sums.size = kept.length;
    sums.count = (size_t)kept.groups;
    sums.sums = coffer__alloc_array(sums.count, sizeof *sums.sums);
    if (!sums.sums)
        return coffer__fail_no_memory(err, sums.count * sizeof *sums.sums);
    for (size_t i = 0; i < sums.count; i++)
        sums.sums[i] = coffer__load_u32(kept.bytes + 4 * i);
    coffer_status status = coffer__chunk_verifier_new(&matrix->verifier, matrix->source, &sums, err);
    if (status)
        coffer__chunk_sums_free(&sums);
    return status;
}

static coffer_status verify_range(const coffer_pycauset *matrix, uint64_t offset, uint64_t len,
                                  coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    uint64_t needed = matrix->info.payload_needed;
    if (!matrix->verifier || len == 0 || offset >= needed)
        return COFFER_OK;
    if (len >
        needed - offset) /* a reader may fetch the padding of a last row that the payload does not have */
        len = needed - offset;
    coffer_status status =
        coffer__chunk_verify(matrix->verifier, matrix->info.payload_offset + offset, len, &why);
    if (!status)
        return COFFER_OK;
    if (status != COFFER_E_BAD_CHECKSUM)
        return coffer__fail_copy(err, &why);
    if (!coffer__source_settled(matrix->source))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "changed since it was opened: open it again");
    if (matrix->info.generation != matrix->header.slots[matrix->header.active].generation)
        return coffer__fail(err, COFFER_E_CHANGED, why.offset,
                            "the values of generation %" PRIu64 " were changed by a later one",
                            matrix->info.generation);
    return fail_damaged(&matrix->info, (why.offset - matrix->info.payload_offset) / COFFER__CHUNK_BYTES, err);
}

coffer_status coffer_pycauset_verify(const coffer_pycauset *matrix, coffer_error *err)
{
    return verify_range(matrix, 0, matrix->info.payload_needed, err);
}

coffer_status coffer__pycauset_verify_read(const coffer_pycauset *matrix, uint64_t offset, uint64_t len,
                                           coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    while ((status = verify_range(matrix, offset, len, &why)) == COFFER_E_BAD_CHECKSUM) {
        uint64_t next = why.offset - matrix->info.payload_offset + COFFER__CHUNK_BYTES;
        status = coffer__source_accept_damage(matrix->source, &why, &why);
        if (status || next >= offset + len)
            break;
        len -= next - offset;
        offset = next;
    }
    return status ? coffer__fail_copy(err, &why) : COFFER_OK;
}

/* Runs of groups that do not match are one finding. */
static void report_damage(coffer_report *out, const coffer_pycauset *matrix, const kept_sums *kept,
                          const uint32_t *found)
{
    for (uint64_t i = 0; i < kept->groups; i++) {
        uint64_t end = i;
        while (end < kept->groups && found[end] != coffer__load_u32(kept->bytes + 4 * end))
            end++;
        if (end == i)
            continue;
        uint64_t from = i * COFFER__CHUNK_BYTES,
                 to = end * COFFER__CHUNK_BYTES < kept->length ? end * COFFER__CHUNK_BYTES : kept->length;
        coffer__report_add(out, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, matrix->info.payload_offset + from,
                           "bytes %" PRIu64 " to %" PRIu64
                           " of the payload do not match their checksum (CRC-32 "
                           "%08lx, computed %08lx)",
                           from, to, (unsigned long)coffer__load_u32(kept->bytes + 4 * i),
                           (unsigned long)found[i]);
        i = end;
    }
}

coffer_status coffer__pycauset_verify_checksums(coffer_report *out, const coffer_pycauset *matrix,
                                                const coffer_check_opts *opts, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__work_opts work = { .threads = opts->threads, .progress = opts->progress };
    kept_sums kept;
    coffer_status status =
        find_sums(&kept, matrix->metadata.root, &matrix->info, matrix->metadata_offset, &failure);
    if (status == COFFER_E_NOT_FOUND)
        return COFFER_OK;
    if (status) {
        coffer__report_add_error(out, COFFER_ERROR, &failure);
        return COFFER_OK;
    }
    coffer__chunk_sums found;
    status = coffer__chunk_sums_compute(&found, matrix->source, matrix->info.payload_offset, kept.length,
                                        &work, err);
    if (status)
        return status;
    report_damage(out, matrix, &kept, found.sums);
    coffer__chunk_sums_free(&found);
    return COFFER_OK;
}
