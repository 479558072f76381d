/* The state of a writer, shared by mcf_write*.c. */
#ifndef COFFER_FORMATS_MCF_WRITER_H
#define COFFER_FORMATS_MCF_WRITER_H

#include "base/buffer.h"
#include "base/table.h"
#include "base/work.h"
#include "formats/mcf/mcf_private.h"
#include "io/sink.h"

typedef struct coffer__mcf_new {
    uint64_t name_at; /* in the names */
    uint32_t name_len;
    uint32_t dtype; /* as the file has it */
    uint32_t rank;
    uint32_t dim_at; /* in the dims */
    uint64_t offset, size;
    bool quantized;
    coffer__mcf_quant_record quant; /* its tensor is filled in when the order is known */
    bool measured;
    coffer_mcf_quality quality; /* without its importance, which is in `importances` */
    size_t importance_at, importance_len;
    bool hashed;
    uint64_t hash[2]; /* of the whole payload, made when another looks like it */
} coffer__mcf_new;

/* A piece of a payload with a checksum of its own. */
typedef struct coffer__mcf_chunk {
    uint64_t offset;
    uint32_t len, crc;
} coffer__mcf_chunk;

typedef struct coffer__mcf_late_section {
    uint32_t type, version;
    uint8_t *bytes;
    size_t len;
} coffer__mcf_late_section;

struct coffer_mcf_writer {
    coffer_mcf_writer_opts opts;
    char *path;
    coffer__sink *sink;
    coffer__pool *pool; /* made when first needed */

    coffer_mcf_section *sections; /* in the file already */
    size_t section_count, section_capacity;
    coffer__mcf_late_section *late; /* written after the payloads */
    size_t late_count, late_capacity;
    uint64_t index_at, index_room; /* in front of the payloads; 0 = none */
    uint64_t sums_at, sums_room;   /* for Checksums, in front of the payloads; 0 = none */
    uint64_t copy_room;            /* for the DirectoryCopy, after the header; 0 = none */

    bool area_begun;
    uint64_t area; /* where TensorData starts */

    coffer__mcf_new *tensors;
    size_t tensor_count, tensor_capacity;
    coffer__buffer names, dims; /* dims : u64 each */
    coffer__buffer importances; /* without NULs */
    bool foreign_names;         /* one is not UTF-8 */
    coffer__table by_name, by_sample;
    bool in_tensor;
    bool overwritten;     /* bytes of the open tensor may still change: its sums wait for its end */
    uint64_t written;     /* of the payload under way */
    uint64_t payload_end; /* of the one before */

    coffer__mcf_chunk *chunks; /* of the payloads, in the order of the file */
    size_t chunk_count, chunk_capacity;
    size_t summed;           /* this many chunks at the start have their sum */
    coffer__mcf_files files; /* written before the first tensor */
    coffer_mcf_damage *damages;
    size_t damage_count, damage_capacity;
    uint8_t *scratch; /* SCRATCH for each thread */
};

/* ---- mcf_write_tensor.c ---- */

/* Not NUL-terminated. */
const char *coffer__mcf_new_name(const coffer_mcf_writer *writer, const coffer__mcf_new *tensor);

/* A tensor whose payload size the caller knows, of any type. quant : may be NULL. */
coffer_status coffer__mcf_begin_raw(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, uint64_t size,
                                    const coffer__mcf_quant_record *quant, coffer_error *err);
/* Another name for the payload of a tensor that was written. */
coffer_status coffer__mcf_add_alias(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, size_t original,
                                    const coffer__mcf_quant_record *quant, coffer_error *err);
/* ---- mcf_write.c ---- */

/* Writes zeros up to the next multiple. */
coffer_status coffer__mcf_writer_align(coffer_mcf_writer *writer, uint64_t alignment, coffer_error *err);
/* Any section but TensorIndex, TensorData, QuantInfo and the sums. */
coffer_status coffer__mcf_add_raw_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                          const void *bytes, size_t len, coffer_error *err);
/* A section of another file, of a type that was not added, before the first tensor. */
coffer_status coffer__mcf_copy_section(coffer_mcf_writer *writer, coffer_source *src,
                                       const coffer_mcf_section *section, coffer_error *err);
void coffer__mcf_writer_free(coffer_mcf_writer *writer);
/* A pool and its scratch memory. */
coffer_status coffer__mcf_writer_pool(coffer_mcf_writer *writer, coffer_error *err);
#define COFFER__MCF_SCRATCH ((size_t)256 << 10)

/* Writes the Files section, once. (mcf_files.c) */
coffer_status coffer__mcf_write_files(coffer_mcf_writer *writer, coffer_error *err);

/* ---- mcf_write_sums.c ---- */

/* Appends a range of an open file, and meanwhile sums the chunks written before. */
coffer_status coffer__mcf_copy_in(coffer_mcf_writer *writer, int fd, uint64_t offset, uint64_t len,
                                  const char *name, coffer_error *err);
/* Sums the complete chunks of the open tensor when enough of them are waiting. ended : the payload is
 * complete. */
coffer_status coffer__mcf_count_sums(coffer_mcf_writer *writer, bool ended, coffer_error *err);
/* Sums all chunks that wait. */
coffer_status coffer__mcf_finish_sums(coffer_mcf_writer *writer, coffer_error *err);
/* Drops the chunks that end after a position. */
void coffer__mcf_forget_sums(coffer_mcf_writer *writer, uint64_t position);
/* CRC-32 of bytes that were written. */
coffer_status coffer__mcf_crc_of_output(uint32_t *out, coffer_mcf_writer *writer, uint64_t offset,
                                        uint64_t size, coffer_error *err);
/* Writes the Checksums section over the `size` zeros at `place`, when the rest of the file is complete. */
coffer_status coffer__mcf_write_sums(coffer_mcf_writer *writer, coffer__mcf_sums *sums, uint64_t place,
                                     coffer_error *err);

/* ---- mcf_write_end.c ---- */

uint64_t coffer__mcf_index_size(uint64_t tensors, uint64_t dims, uint64_t name_bytes);
/* Writes what follows the payloads, and the header. */
coffer_status coffer__mcf_finish(coffer_mcf_writer *writer, coffer_error *err);

/* ---- mcf_rewrite.c: compact and repair ---- */

/* Bytes of a payload that are taken from another file. */
typedef struct coffer__mcf_patch {
    size_t tensor;
    uint64_t begin, size; /* in the payload */
    coffer_source *source;
    uint64_t from; /* offset in the source */
} coffer__mcf_patch;

/* A section that is taken from another place or file. */
typedef struct coffer__mcf_moved {
    uint32_t type;
    coffer_source *source;
    uint64_t offset;
} coffer__mcf_moved;

typedef struct coffer__mcf_rewrite {
    const coffer_mcf *model;
    const bool *left_out; /* by tensor; NULL = copy all */
    const coffer_progress *progress;
    bool verified; /* the caller has verified what is copied */
    const coffer__mcf_patch *patches;
    size_t patch_count;
    const coffer__mcf_moved *moved;
    size_t moved_count;
} coffer__mcf_rewrite;

/* The alignment that all payloads share, as a writer's option. */
uint32_t coffer__mcf_common_alignment(const coffer_mcf *model);
/* Copies the sections except those that the writer creates, then the tensors in the order of their
 * payloads. Names of one payload share it again. */
coffer_status coffer__mcf_take_over(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                    coffer_error *err);

#endif
