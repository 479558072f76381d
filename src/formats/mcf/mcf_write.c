/* Writing a new model: sections and tensors stream into a file that takes its name at the end. */
#include "formats/mcf/mcf_writer.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>

/* ---- The writer ---- */

COFFER__INIT_FUNCTION(coffer_mcf_writer_opts, COFFER_MCF_WRITER_OPTS_INIT)

static coffer_status check_options(coffer_mcf_writer_opts *options, coffer_error *err)
{
    uint32_t align = options->align ? options->align : COFFER__MCF_PAYLOAD_ALIGNMENT;
    if (align < COFFER__MCF_PAYLOAD_ALIGNMENT || align > COFFER__MCF_MAX_ALIGNMENT ||
        (align & (align - 1)) != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "alignment %" PRIu32 " must be a power of two from %d to %" PRIu32, align,
                            COFFER__MCF_PAYLOAD_ALIGNMENT, COFFER__MCF_MAX_ALIGNMENT);
    options->align = align;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_create(coffer_mcf_writer **out, const char *path,
                                       const coffer_mcf_writer_opts *opts, coffer_error *err)
{
    coffer_mcf_writer_opts options = COFFER_MCF_WRITER_OPTS_INIT;
    coffer__sink_opts sink_options = { 0 };
    coffer_mcf_writer *writer;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_options(&options, err);
    if (status)
        return status;
    writer = coffer__calloc(1, sizeof *writer);
    if (!writer)
        return coffer__fail_no_memory(err, sizeof *writer);
    writer->opts = options;
    coffer__table_init_keyed(&writer->by_name);
    coffer__buffer_init(&writer->names, SIZE_MAX);
    coffer__buffer_init(&writer->dims, SIZE_MAX);
    coffer__buffer_init(&writer->importances, SIZE_MAX);
    sink_options.exclusive = !options.overwrite;
    sink_options.no_sync = options.durability == COFFER_DURABILITY_NONE;
    writer->path = coffer__strdup(path);
    if (!writer->path)
        status = coffer__fail_no_memory(err, strlen(path) + 1);
    else
        status = coffer__sink_create(&writer->sink, path, &sink_options, err);
    if (!status && !coffer__sink_can_patch(writer->sink))
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "%s: cannot write a model to a stream, its header is written last", path);
    writer->copy_room = options.no_checksums ? 0 : COFFER__MCF_COPY_SIZE;
    if (!status)
        status = coffer__sink_fill(writer->sink, 0, COFFER__MCF_HEADER_SIZE + writer->copy_room, err);
    if (status) {
        coffer__mcf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

void coffer__mcf_writer_free(coffer_mcf_writer *writer)
{
    if (!writer)
        return;
    coffer__sink_discard(writer->sink);
    coffer__pool_free(writer->pool);
    for (size_t i = 0; i < writer->late_count; i++)
        coffer__free(writer->late[i].bytes);
    coffer__free(writer->late);
    coffer__free(writer->sections);
    coffer__free(writer->tensors);
    coffer__buffer_free(&writer->names);
    coffer__buffer_free(&writer->dims);
    coffer__buffer_free(&writer->importances);
    coffer__table_free(&writer->by_name);
    coffer__table_free(&writer->by_sample);
    coffer__free(writer->chunks);
    coffer__mcf_files_free(&writer->files);
    for (size_t i = 0; i < writer->damage_count; i++)
        coffer__free(writer->damages[i].name);
    coffer__free(writer->damages);
    coffer__free(writer->scratch);
    coffer__free(writer->path);
    coffer__free(writer);
}

void coffer_mcf_writer_discard(coffer_mcf_writer *writer)
{
    coffer__mcf_writer_free(writer);
}

coffer_status coffer__mcf_writer_pool(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!writer->pool)
        status = coffer__pool_new(&writer->pool, writer->opts.threads, err);
    if (!status && !writer->scratch) {
        writer->scratch = coffer__alloc_array(coffer__pool_threads(writer->pool), COFFER__MCF_SCRATCH);
        if (!writer->scratch)
            status = coffer__fail_no_memory(err, coffer__pool_threads(writer->pool) * COFFER__MCF_SCRATCH);
    }
    return status;
}

coffer_status coffer__mcf_writer_align(coffer_mcf_writer *writer, uint64_t alignment, coffer_error *err)
{
    uint64_t at = coffer__sink_position(writer->sink), aligned;
    if (!coffer__align_up(&aligned, at, alignment))
        return coffer__fail(err, COFFER_E_LIMIT, at, "%s: no room after %" PRIu64 " bytes", writer->path, at);
    return coffer__sink_fill(writer->sink, 0, aligned - at, err);
}

/* ---- Sections ---- */

static bool has_section(const coffer_mcf_writer *writer, uint32_t type)
{
    if (coffer__mcf_first_section(writer->sections, writer->section_count, type))
        return true;
    for (size_t i = 0; i < writer->late_count; i++) {
        if (writer->late[i].type == type)
            return true;
    }
    return false;
}

static coffer_status add_section_now(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                     const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&writer->sections, &writer->section_capacity,
                                                     writer->section_count, sizeof *writer->sections, err);
    if (!status)
        status = coffer__mcf_writer_align(writer, COFFER__MCF_SECTION_ALIGNMENT, err);
    if (status)
        return status;
    writer->sections[writer->section_count] =
        (coffer_mcf_section){ type, version, coffer__sink_position(writer->sink), len };
    status = coffer__sink_write(writer->sink, bytes, len, err);
    if (!status)
        writer->section_count++;
    return status;
}

/* The payloads have begun: the section waits until they have ended. */
static coffer_status add_section_late(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                      const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&writer->late, &writer->late_capacity,
                                                     writer->late_count, sizeof *writer->late, err);
    uint8_t *copy;
    if (status)
        return status;
    copy = coffer__malloc(len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    if (len > 0)
        memcpy(copy, bytes, len);
    writer->late[writer->late_count++] = (coffer__mcf_late_section){ type, version, copy, len };
    return COFFER_OK;
}

coffer_status coffer__mcf_copy_section(coffer_mcf_writer *writer, coffer_source *src,
                                       const coffer_mcf_section *section, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&writer->sections, &writer->section_capacity,
                                                     writer->section_count, sizeof *writer->sections, err);
    if (!status)
        status = coffer__mcf_writer_align(writer, COFFER__MCF_SECTION_ALIGNMENT, err);
    if (status)
        return status;
    writer->sections[writer->section_count++] =
        (coffer_mcf_section){ section->type, section->version, coffer__sink_position(writer->sink),
                              section->size };
    return coffer__sink_copy_source(writer->sink, src, section->offset, section->size, NULL, err);
}

coffer_status coffer__mcf_add_raw_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                          const void *bytes, size_t len, coffer_error *err)
{
    if (has_section(writer, type))
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "%s was already added",
                            coffer__mcf_section_label(type).text);
    return writer->area_begun ? add_section_late(writer, type, version, bytes, len, err)
                              : add_section_now(writer, type, version, bytes, len, err);
}

coffer_status coffer_mcf_writer_add_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                            const void *bytes, size_t len, coffer_error *err)
{
    if (type == COFFER_MCF_MODEL_INFO || type == COFFER_MCF_QUANT_INFO || type == COFFER_MCF_TENSOR_INDEX ||
        type == COFFER_MCF_TENSOR_DATA || type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY ||
        type == COFFER_MCF_DIRECTORY_COPY || type == COFFER_MCF_DAMAGE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s is created by the writer",
                            coffer__mcf_section_label(type).text);
    return coffer__mcf_add_raw_section(writer, type, version, bytes, len, err);
}

coffer_status coffer_mcf_writer_set_model_info(coffer_mcf_writer *writer, const coffer_mcf_model_info *info,
                                               coffer_error *err)
{
    coffer_mcf_model_info known = COFFER_MCF_MODEL_INFO_INIT;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, info, err);
    if (!status)
        status = coffer__mcf_encode_model_info(&bytes, &known, err);
    if (status)
        goto out;
    status = coffer__mcf_add_raw_section(writer, COFFER_MCF_MODEL_INFO, COFFER__MCF_SECTION_VERSION,
                                         bytes.data, bytes.len, err);
out:
    coffer__buffer_free(&bytes);
    return status;
}

coffer_status coffer_mcf_writer_reserve_index(coffer_mcf_writer *writer, uint32_t tensors, uint32_t dims,
                                              uint64_t name_bytes, coffer_error *err)
{
    coffer_status status;
    if (writer->area_begun || writer->index_room > 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "reserve the index once, before the first tensor");
    status = coffer__mcf_write_files(writer, err);
    if (!status)
        status = coffer__mcf_writer_align(writer, COFFER__MCF_SECTION_ALIGNMENT, err);
    if (status)
        return status;
    writer->index_at = coffer__sink_position(writer->sink);
    writer->index_room = coffer__mcf_index_size(tensors, dims, name_bytes);
    return coffer__sink_fill(writer->sink, 0, writer->index_room, err);
}

/* Room for this many sections that are added later: index, QuantInfo, QuantQuality, Damage and others. */
#define LATER_SECTIONS 8

coffer_status coffer_mcf_writer_reserve_checksums(coffer_mcf_writer *writer, uint32_t tensors, uint64_t bytes,
                                                  coffer_error *err)
{
    coffer_status status;
    if (writer->area_begun || writer->sums_room > 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "reserve the checksums once, before the first tensor");
    if (writer->opts.no_checksums)
        return COFFER_OK;
    status = coffer__mcf_write_files(writer, err);
    if (!status)
        status = coffer__mcf_writer_align(writer, COFFER__MCF_SECTION_ALIGNMENT, err);
    if (status)
        return status;
    writer->sums_at = coffer__sink_position(writer->sink);
    /* Each range may have one shorter chunk. */
    uint64_t ranges = (uint64_t)tensors + writer->section_count + LATER_SECTIONS;
    uint64_t chunks = ranges + bytes / COFFER__MCF_CHUNK + writer->sums_at / COFFER__MCF_CHUNK;
    writer->sums_room = COFFER__MCF_SUMS_HEADER + ranges * COFFER__MCF_SUMS_RANGE + chunks * sizeof(uint32_t);
    return coffer__sink_fill(writer->sink, 0, writer->sums_room, err);
}

coffer_status coffer_mcf_writer_add_damage(coffer_mcf_writer *writer, const coffer_mcf_damage *damage,
                                           coffer_error *err)
{
    coffer_mcf_damage known = COFFER_MCF_DAMAGE_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, damage, err);
    if (!status)
        status = coffer__array_reserve_one(&writer->damages, &writer->damage_capacity, writer->damage_count,
                                           sizeof known, err);
    if (status)
        return status;
    char *name = coffer__strndup(known.name, known.name_len);
    if (!name)
        return coffer__fail_no_memory(err, known.name_len);
    known.name = name;
    writer->damages[writer->damage_count++] = known;
    return COFFER_OK;
}

/* ---- Commit ---- */

coffer_status coffer_mcf_writer_commit(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__sink *sink;
    coffer_status status;
    if (writer->in_tensor)
        status =
            coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the last tensor was not ended");
    else
        status = coffer__mcf_finish(writer, err);
    if (!status) {
        sink = writer->sink;
        writer->sink = NULL; /* commit frees it */
        status = coffer__sink_commit(sink, err);
    }
    coffer__mcf_writer_free(writer);
    return status;
}
