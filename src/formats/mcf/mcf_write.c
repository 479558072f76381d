/* Writing a new model: sections and tensors stream into a file that takes its name at the end. */
#include "formats/mcf/mcf_writer.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "io/source_private.h"

#define COPY_SIZE ((size_t)1 << 20)

/* ---- The writer ---- */

COFFER__INIT_FUNCTION(coffer_mcf_writer_opts, COFFER_MCF_WRITER_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mcf_new_tensor, COFFER_MCF_NEW_TENSOR_INIT)

static coffer_status check_options(coffer_mcf_writer_opts *options, coffer_error *err)
{
    uint32_t align = options->align ? options->align : COFFER__MCF_PAYLOAD_ALIGNMENT;
    if (align < COFFER__MCF_PAYLOAD_ALIGNMENT || align > COFFER__MCF_MAX_ALIGNMENT ||
        (align & (align - 1)) != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "an alignment of %lu: it must be a power of two from %d to %lu",
                            (unsigned long)align, COFFER__MCF_PAYLOAD_ALIGNMENT,
                            (unsigned long)COFFER__MCF_MAX_ALIGNMENT);
    options->align = align;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_create(coffer_mcf_writer **out, const char *path,
                                       const coffer_mcf_writer_opts *opts, coffer_error *err)
{
    coffer_mcf_writer_opts options = COFFER_MCF_WRITER_OPTS_INIT;
    coffer__sink_opts sink_options = { 0 };
    coffer_mcf_writer *writer;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = check_options(&options, err)))
        return status;
    writer = coffer__calloc(1, sizeof *writer);
    if (!writer)
        return coffer__fail_no_memory(err, sizeof *writer);
    writer->opts = options;
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
    if (status == COFFER_OK && !coffer__sink_can_patch(writer->sink))
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "%s: a model cannot be written to a stream, its header is written last", path);
    if (status == COFFER_OK)
        status = coffer__sink_fill(writer->sink, 0, COFFER__MCF_HEADER_SIZE, err);
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
    coffer__mcf_table_free(&writer->by_name);
    coffer__mcf_table_free(&writer->by_sample);
    coffer__free(writer->sums);
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
    if (status == COFFER_OK && !writer->scratch) {
        writer->scratch = coffer__alloc_array(coffer__pool_threads(writer->pool), COFFER__MCF_SCRATCH);
        if (!writer->scratch)
            status = coffer__fail_no_memory(err, coffer__pool_threads(writer->pool) * COFFER__MCF_SCRATCH);
    }
    return status;
}

static coffer_status align_to(coffer_mcf_writer *writer, uint64_t alignment, coffer_error *err)
{
    uint64_t at = coffer__sink_position(writer->sink), aligned;
    if (!coffer__align_up(&aligned, at, alignment))
        return coffer__fail(err, COFFER_E_LIMIT, at, "%s: no room behind %llu bytes", writer->path,
                            (unsigned long long)at);
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
    coffer_status status;
    if ((status = coffer__array_reserve_one(&writer->sections, &writer->section_capacity,
                                            writer->section_count, sizeof *writer->sections, err)) ||
        (status = align_to(writer, COFFER__MCF_SECTION_ALIGNMENT, err)))
        return status;
    writer->sections[writer->section_count] =
        (coffer_mcf_section){ type, version, coffer__sink_position(writer->sink), len };
    status = coffer__sink_write(writer->sink, bytes, len, err);
    if (status == COFFER_OK)
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
    coffer_status status;
    if ((status = coffer__array_reserve_one(&writer->sections, &writer->section_capacity,
                                            writer->section_count, sizeof *writer->sections, err)) ||
        (status = align_to(writer, COFFER__MCF_SECTION_ALIGNMENT, err)))
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
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "%s was added already",
                            coffer__mcf_section_label(type).text);
    return writer->area_begun ? add_section_late(writer, type, version, bytes, len, err)
                              : add_section_now(writer, type, version, bytes, len, err);
}

coffer_status coffer_mcf_writer_add_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                            const void *bytes, size_t len, coffer_error *err)
{
    if (type == COFFER_MCF_MODEL_INFO || type == COFFER_MCF_QUANT_INFO || type == COFFER_MCF_TENSOR_INDEX ||
        type == COFFER_MCF_TENSOR_DATA || type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is made by the writer itself", coffer__mcf_section_label(type).text);
    return coffer__mcf_add_raw_section(writer, type, version, bytes, len, err);
}

coffer_status coffer_mcf_writer_set_model_info(coffer_mcf_writer *writer, const coffer_mcf_model_info *info,
                                               coffer_error *err)
{
    coffer_mcf_model_info known = COFFER_MCF_MODEL_INFO_INIT;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status;
    if ((status = coffer__take_options(&known, sizeof known, info, err)) ||
        (status = coffer__mcf_encode_model_info(&bytes, &known, err)))
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
                            "room for the index is made once, before the first tensor");
    if ((status = align_to(writer, COFFER__MCF_SECTION_ALIGNMENT, err)))
        return status;
    writer->index_at = coffer__sink_position(writer->sink);
    writer->index_room = coffer__mcf_index_size(tensors, dims, name_bytes);
    return coffer__sink_fill(writer->sink, 0, writer->index_room, err);
}

/* ---- Tensors ---- */

static const char *name_of(const coffer_mcf_writer *writer, const coffer__mcf_new *tensor)
{
    return (const char *)writer->names.data + tensor->name_at;
}

static coffer_status check_name(const coffer_mcf_writer *writer, const char *name, size_t name_len,
                                coffer_error *err)
{
    uint64_t hash = coffer__hash(name, name_len);
    size_t at = 0;
    uint32_t item;
    if (name_len > UINT32_MAX || writer->names.len > UINT32_MAX - name_len)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "names of %zu and %zu bytes: an index has room for 4 GiB", writer->names.len,
                            name_len);
    while ((item = coffer__mcf_table_next(&writer->by_name, hash, &at)) != UINT32_MAX) {
        const coffer__mcf_new *other = &writer->tensors[item];
        if (coffer__mcf_compare_names(name_of(writer, other), other->name_len, name, name_len) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                "tensor \"%.*s\" was added already", (int)(name_len < 64 ? name_len : 64),
                                name);
    }
    return COFFER_OK;
}

static coffer_status check_room(const coffer_mcf_writer *writer, uint32_t rank, coffer_error *err)
{
    uint64_t dims = writer->dims.len / sizeof(uint64_t);
    if (writer->in_tensor)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor was not ended before the next began");
    if (writer->tensor_count >= UINT32_MAX - 1 || rank > UINT32_MAX - dims)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%zu tensors with %llu dims: an index has no room for more", writer->tensor_count,
                            (unsigned long long)dims);
    return COFFER_OK;
}

static coffer_status begin_area(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer_status status;
    if (writer->area_begun)
        return COFFER_OK;
    status = align_to(writer, writer->opts.align, err);
    if (status == COFFER_OK) {
        writer->area = coffer__sink_position(writer->sink);
        writer->area_begun = true;
    }
    return status;
}

/* Takes a tensor into the list; its payload is wherever tensor->offset says. */
static coffer_status add_tensor(coffer_mcf_writer *writer, coffer__mcf_new *tensor, const char *name,
                                size_t name_len, const uint64_t *dims, coffer_error *err)
{
    coffer_status status;
    if ((status = check_name(writer, name, name_len, err)) ||
        (status = coffer__array_reserve_one(&writer->tensors, &writer->tensor_capacity, writer->tensor_count,
                                            sizeof *tensor, err)))
        return status;
    tensor->name_at = writer->names.len;
    tensor->name_len = (uint32_t)name_len;
    tensor->dim_at = (uint32_t)(writer->dims.len / sizeof(uint64_t));
    coffer__buffer_append(&writer->names, name, name_len);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint8_t dim[sizeof(uint64_t)];
        coffer__store_u64(dim, dims[i]);
        coffer__buffer_append(&writer->dims, dim, sizeof dim);
    }
    if (writer->names.failed || writer->dims.failed)
        return coffer__fail_no_memory(err, name_len);
    writer->foreign_names = writer->foreign_names || !coffer__utf8_valid(name, name_len);
    status = coffer__mcf_table_add(&writer->by_name, coffer__hash(name, name_len),
                                   (uint32_t)writer->tensor_count, err);
    if (status == COFFER_OK)
        writer->tensors[writer->tensor_count++] = *tensor;
    return status;
}

coffer_status coffer__mcf_begin_raw(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, uint64_t size,
                                    const coffer__mcf_quant_record *quant, coffer_error *err)
{
    coffer__mcf_new tensor = { .dtype = dtype, .rank = rank, .size = size, .quantized = quant != NULL };
    coffer_status status;
    if (quant)
        tensor.quant = *quant;
    if ((status = check_room(writer, rank, err)) || (status = begin_area(writer, err)))
        return status;
    writer->payload_end = coffer__sink_position(writer->sink);
    tensor.offset = writer->area; /* of a tensor without bytes: inside TensorData, and aligned */
    if (size > 0) {
        if ((status = align_to(writer, writer->opts.align, err)))
            return status;
        tensor.offset = coffer__sink_position(writer->sink);
    }
    status = add_tensor(writer, &tensor, name, name_len, dims, err);
    if (status == COFFER_OK) {
        writer->in_tensor = true;
        writer->written = 0;
    }
    return status;
}

coffer_status coffer__mcf_add_alias(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, size_t original,
                                    const coffer__mcf_quant_record *quant, coffer_error *err)
{
    coffer__mcf_new tensor = { .dtype = dtype,
                               .rank = rank,
                               .offset = writer->tensors[original].offset,
                               .size = writer->tensors[original].size,
                               .quantized = quant != NULL };
    coffer_status status = check_room(writer, rank, err);
    if (quant)
        tensor.quant = *quant;
    return status ? status : add_tensor(writer, &tensor, name, name_len, dims, err);
}

/* quant : of the caller, or NULL. */
static coffer_status make_record(coffer__mcf_quant_record *out, const coffer_mcf_new_tensor *tensor,
                                 const coffer_mcf_quant *quant, coffer_error *err)
{
    coffer_mcf_quant implied = coffer__mcf_implied_quant(tensor->dtype);
    if (quant && quant->method != tensor->dtype && quant->method != COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor of type %s with the record of a %s one",
                            coffer_dtype_name(tensor->dtype), coffer_dtype_name(quant->method));
    *out = (coffer__mcf_quant_record){ .method = (uint8_t)coffer_mcf_dtype_code(tensor->dtype),
                                       .block_size = implied.block_size,
                                       .super_size = implied.super_size };
    if (quant) {
        out->domain = quant->activations ? COFFER__MCF_DOMAIN_ACTIVATIONS : COFFER__MCF_DOMAIN_WEIGHTS;
        out->min_clip = quant->min_clip;
        out->max_clip = quant->max_clip;
    }
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_begin_tensor(coffer_mcf_writer *writer, const coffer_mcf_new_tensor *tensor,
                                             coffer_error *err)
{
    coffer_mcf_new_tensor known = COFFER_MCF_NEW_TENSOR_INIT;
    coffer_mcf_quant quant = COFFER_MCF_QUANT_INIT;
    coffer__mcf_quant_record record = { 0 };
    uint64_t size;
    coffer_status status = coffer__take_options(&known, sizeof known, tensor, err);
    if (!status && known.quant)
        status = coffer__take_options(&quant, sizeof quant, known.quant, err);
    if (status)
        return status;
    bool quantized = coffer_dtype_is_quantized(known.dtype);
    if (!coffer__utf8_valid(known.name, known.name_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "a tensor's name is not UTF-8");
    if (known.quant && !quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor of type %s has no quantization record", coffer_dtype_name(known.dtype));
    status = coffer_mcf_payload_size(&size, known.dtype, known.rank, known.dims, quant.activations, err);
    if (!status && quantized)
        status = make_record(&record, &known, known.quant ? &quant : NULL, err);
    if (status)
        return status;
    return coffer__mcf_begin_raw(writer, known.name, known.name_len, coffer_mcf_dtype_code(known.dtype),
                                 known.rank, known.dims, size, quantized ? &record : NULL, err);
}

/* ---- Payloads ---- */

static coffer_status expect_room(const coffer_mcf_writer *writer, uint64_t len, coffer_error *err)
{
    const coffer__mcf_new *tensor;
    if (!writer->in_tensor)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no tensor was begun");
    tensor = &writer->tensors[writer->tensor_count - 1];
    if (len > tensor->size - writer->written)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "tensor \"%.*s\" takes %llu bytes, %llu more than %llu were written",
                            (int)(tensor->name_len < 64 ? tensor->name_len : 64), name_of(writer, tensor),
                            (unsigned long long)tensor->size, (unsigned long long)len,
                            (unsigned long long)writer->written);
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_write(coffer_mcf_writer *writer, const void *bytes, size_t len,
                                      coffer_error *err)
{
    coffer_status status;
    if ((status = expect_room(writer, len, err)) ||
        (status = coffer__sink_write(writer->sink, bytes, len, err)))
        return status;
    writer->written += len;
    return writer->overwritten ? COFFER_OK : coffer__mcf_count_sums(writer, false, err);
}

coffer_status coffer_mcf_writer_skip(coffer_mcf_writer *writer, uint64_t len, coffer_error *err)
{
    coffer_status status;
    if ((status = expect_room(writer, len, err)) || (status = coffer__sink_fill(writer->sink, 0, len, err)))
        return status;
    writer->written += len;
    writer->overwritten = true;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_write_at(coffer_mcf_writer *writer, uint64_t begin, const void *bytes,
                                         size_t len, coffer_error *err)
{
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    uint64_t offset = writer->tensors[writer->tensor_count - 1].offset;
    if (!coffer__range_fits(begin, len, writer->written))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "%zu bytes at %llu of a tensor of which %llu were written", len,
                            (unsigned long long)begin, (unsigned long long)writer->written);
    writer->overwritten = true;
    coffer__mcf_forget_sums(writer, offset + begin);
    return coffer__sink_patch(writer->sink, offset + begin, bytes, len, err);
}

coffer_status coffer_mcf_writer_set_clip(coffer_mcf_writer *writer, float min_clip, float max_clip,
                                         coffer_error *err)
{
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    coffer__mcf_new *tensor = &writer->tensors[writer->tensor_count - 1];
    if (!tensor->quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor that is not quantized has no clip bounds");
    tensor->quant.min_clip = min_clip;
    tensor->quant.max_clip = max_clip;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_set_quality(coffer_mcf_writer *writer, const coffer_mcf_quality *quality,
                                            coffer_error *err)
{
    coffer_mcf_quality known = COFFER_MCF_QUALITY_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, quality, err);
    if (!status)
        status = expect_room(writer, 0, err);
    if (status)
        return status;
    coffer__mcf_new *tensor = &writer->tensors[writer->tensor_count - 1];
    if (!tensor->quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor that is not quantized has no quantization error");
    tensor->quality = known;
    tensor->quality.importance = NULL;
    tensor->importance_at = writer->importances.len;
    tensor->importance_len = known.importance ? strlen(known.importance) : 0;
    tensor->measured = true;
    coffer__buffer_append(&writer->importances, known.importance, tensor->importance_len);
    return writer->importances.failed ? coffer__fail_no_memory(err, tensor->importance_len) : COFFER_OK;
}

static coffer_status write_piecewise(coffer_mcf_writer *writer, coffer_source *src, uint64_t offset,
                                     uint64_t len, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COPY_SIZE);
    coffer_status status = COFFER_OK;
    if (!piece)
        return coffer__fail_no_memory(err, COPY_SIZE);
    for (uint64_t done = 0; status == COFFER_OK && done < len;) {
        size_t n = len - done < COPY_SIZE ? (size_t)(len - done) : COPY_SIZE;
        status = coffer_source_read_at(piece, src, offset + done, n, err);
        if (status == COFFER_OK)
            status = coffer_mcf_writer_write(writer, piece, n, err);
        done += n;
    }
    coffer__free(piece);
    return status;
}

coffer_status coffer_mcf_writer_write_from(coffer_mcf_writer *writer, coffer_source *src, uint64_t offset,
                                           uint64_t len, coffer_error *err)
{
    coffer_status status = expect_room(writer, len, err);
    if (status)
        return status;
    if (!coffer__range_fits(offset, len, coffer_source_size(src)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                            "%llu bytes at %llu requested, the file has %llu", (unsigned long long)len,
                            (unsigned long long)offset, (unsigned long long)coffer_source_size(src));
    /* Under a journal the file's own bytes are not those that the source shows. */
    int fd = coffer__source_descriptor(src);
    if (fd < 0)
        return write_piecewise(writer, src, offset, len, err);
    status = coffer__mcf_copy_in(writer, fd, offset, len, coffer__source_other_name(src), err);
    if (status == COFFER_OK)
        writer->written += len;
    return status;
}

coffer_status coffer_mcf_writer_end_tensor(coffer_mcf_writer *writer, coffer_error *err)
{
    const coffer__mcf_new *tensor;
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    tensor = &writer->tensors[writer->tensor_count - 1];
    if (writer->written != tensor->size)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "tensor \"%.*s\" takes %llu bytes, %llu were written",
                            (int)(tensor->name_len < 64 ? tensor->name_len : 64), name_of(writer, tensor),
                            (unsigned long long)tensor->size, (unsigned long long)writer->written);
    writer->in_tensor = false;
    writer->overwritten = false;
    return writer->opts.no_dedup ? COFFER_OK : coffer__mcf_deduplicate(writer, err);
}

/* ---- The end ---- */

coffer_status coffer_mcf_writer_commit(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__sink *sink;
    coffer_status status;
    if (writer->in_tensor)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "the last tensor was begun and not ended");
    else
        status = coffer__mcf_finish(writer, err);
    if (status == COFFER_OK) {
        sink = writer->sink;
        writer->sink = NULL; /* commit frees it */
        status = coffer__sink_commit(sink, err);
    }
    coffer__mcf_writer_free(writer);
    return status;
}
