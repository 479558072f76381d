/* Checksums, computed from the new file itself while it is written, so that they cover what was stored. */
#include "formats/mcf/mcf_writer.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

#define PIECE ((uint64_t)64 << 20)  /* copied while the sums of the one before are counted */
#define LITTLE ((uint64_t)16 << 20) /* not worth waking another thread for */
#define WAITING                                                                                 \
    ((uint64_t)32 << 20) /* bytes that may wait to be counted: they are still in the page cache \
                          */

typedef struct work {
    coffer_mcf_writer *writer;
    bool copies; /* task 0 copies */
    int from;
    uint64_t from_offset, len;
    const char *from_name;
    int output;
    size_t first; /* chunk of the first task that counts */
} work;

static coffer_status crc_of_output(uint32_t *out, int fd, uint64_t offset, size_t len, uint8_t *scratch,
                                   coffer_error *err)
{
    uint32_t crc = 0;
    coffer_status status = COFFER_OK;
    for (size_t done = 0; !status && done < len;) {
        size_t n = len - done < COFFER__MCF_SCRATCH ? len - done : COFFER__MCF_SCRATCH;
        status = coffer__fail_output(err, coffer__file_read_at(fd, scratch, n, offset + done, NULL, err));
        if (!status)
            crc = coffer__crc32(crc, scratch, n);
        done += n;
    }
    *out = crc;
    return status;
}

static coffer_status run_task(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const work *job = context;
    coffer_mcf_writer *writer = job->writer;
    if (job->copies && index == 0)
        return coffer__sink_copy_file(writer->sink, job->from, job->from_offset, job->len, job->from_name,
                                      err);
    coffer__mcf_chunk *chunk = &writer->chunks[job->first + (size_t)index - job->copies];
    return crc_of_output(&chunk->crc, job->output, chunk->offset, chunk->len,
                         writer->scratch + (size_t)worker * COFFER__MCF_SCRATCH, err);
}

static coffer_status add_chunk(coffer_mcf_writer *writer, uint64_t offset, uint64_t len, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&writer->chunks, &writer->chunk_capacity,
                                                     writer->chunk_count, sizeof *writer->chunks, err);
    if (!status)
        writer->chunks[writer->chunk_count++] = (coffer__mcf_chunk){ offset, (uint32_t)len, 0 };
    return status;
}

/* Where the chunks of the open tensor end so far. */
static uint64_t chunks_end(const coffer_mcf_writer *writer)
{
    uint64_t begin = writer->tensors[writer->tensor_count - 1].offset;
    const coffer__mcf_chunk *last = writer->chunk_count ? &writer->chunks[writer->chunk_count - 1] : NULL;
    return last && last->offset >= begin ? last->offset + last->len : begin;
}

/* Adds the chunks of the open tensor that are complete; with `ended` also the last, shorter one. */
static coffer_status add_chunks(coffer_mcf_writer *writer, bool ended, coffer_error *err)
{
    uint64_t written = coffer__sink_position(writer->sink), at = chunks_end(writer);
    coffer_status status = COFFER_OK;
    if (writer->tensors[writer->tensor_count - 1].size == 0)
        return COFFER_OK;
    while (!status && at < written && (ended || written - at >= COFFER__MCF_CHUNK)) {
        uint64_t len = written - at < COFFER__MCF_CHUNK ? written - at : COFFER__MCF_CHUNK;
        status = add_chunk(writer, at, len, err);
        at += len;
    }
    return status;
}

/* Sums the waiting chunks, and meanwhile copies job->len bytes if job->copies. */
static coffer_status run(coffer_mcf_writer *writer, work *job, coffer_error *err)
{
    size_t there = writer->chunk_count;
    job->writer = writer;
    job->first = writer->summed;
    coffer_status status = coffer__mcf_writer_pool(writer, err);
    if (!status)
        status = coffer__sink_read_back(&job->output, writer->sink, err);
    if (!status)
        status = coffer__pool_run(writer->pool, job->copies + there - writer->summed, run_task, job, err);
    if (!status)
        writer->summed = there;
    return status;
}

/* From the first chunk that waits to the end of the last, with what is between them. */
static uint64_t waiting_bytes(const coffer_mcf_writer *writer)
{
    if (writer->summed == writer->chunk_count)
        return 0;
    const coffer__mcf_chunk *last = &writer->chunks[writer->chunk_count - 1];
    return last->offset + last->len - writer->chunks[writer->summed].offset;
}

coffer_status coffer__mcf_count_sums(coffer_mcf_writer *writer, bool ended, coffer_error *err)
{
    work job = { .copies = false };
    coffer_status status = COFFER_OK;
    if (writer->opts.no_checksums)
        return COFFER_OK;
    status = add_chunks(writer, ended, err);
    return status || waiting_bytes(writer) < WAITING ? status : run(writer, &job, err);
}

coffer_status coffer__mcf_finish_sums(coffer_mcf_writer *writer, coffer_error *err)
{
    work job = { .copies = false };
    return writer->summed == writer->chunk_count ? COFFER_OK : run(writer, &job, err);
}

/* Copies in pieces that end at chunk boundaries, and sums each while it is in the cache. */
static coffer_status copy_and_count(coffer_mcf_writer *writer, int fd, uint64_t offset, uint64_t len,
                                    const char *name, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    uint64_t begin = writer->tensors[writer->tensor_count - 1].offset;
    for (uint64_t done = 0; !status && done < len;) {
        uint64_t position = coffer__sink_position(writer->sink);
        uint64_t room = COFFER__MCF_CHUNK - (position - begin) % COFFER__MCF_CHUNK;
        size_t n = (size_t)(len - done < room ? len - done : room);
        status = coffer__file_read_at(fd, piece, n, offset + done, name, err);
        if (!status)
            status = coffer__sink_write(writer->sink, piece, n, err);
        done += n;
        if (status || writer->opts.no_checksums)
            continue;
        if (n == COFFER__MCF_CHUNK && writer->summed == writer->chunk_count &&
            chunks_end(writer) == position) {
            status = add_chunk(writer, position, n, err);
            if (!status)
                writer->chunks[writer->summed++].crc = coffer__crc32(0, piece, n);
        } else {
            status = coffer__mcf_count_sums(writer, false, err);
        }
    }
    coffer__free(piece);
    return status;
}

/* The kernel copies whole pages, and some file systems share them, when both offsets agree modulo the page
 * size. Otherwise reading and writing is faster, and the bytes are in memory for their checksums. */
static bool pages_match(const coffer_mcf_writer *writer, uint64_t offset)
{
    return (coffer__sink_position(writer->sink) - offset) % 4096 == 0;
}

coffer_status coffer__mcf_copy_in(coffer_mcf_writer *writer, int fd, uint64_t offset, uint64_t len,
                                  const char *name, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!writer->overwritten && !pages_match(writer, offset))
        return copy_and_count(writer, fd, offset, len, name, err);
    if (len < LITTLE) {
        status = coffer__sink_copy_file(writer->sink, fd, offset, len, name, err);
        return status ? status : coffer__mcf_count_sums(writer, false, err);
    }
    for (uint64_t done = 0; !status && done < len;) {
        uint64_t n = len - done < PIECE ? len - done : PIECE;
        work job = { .copies = true, .from = fd, .from_offset = offset + done, .len = n, .from_name = name };
        if (!writer->opts.no_checksums && !writer->overwritten)
            status = add_chunks(writer, false, err);
        if (!status)
            status = run(writer, &job, err);
        done += n;
    }
    return status;
}

void coffer__mcf_forget_sums(coffer_mcf_writer *writer, uint64_t position)
{
    while (writer->chunk_count > 0) {
        const coffer__mcf_chunk *last = &writer->chunks[writer->chunk_count - 1];
        if (last->offset + last->len <= position)
            break;
        writer->chunk_count--;
    }
    if (writer->summed > writer->chunk_count)
        writer->summed = writer->chunk_count;
}

coffer_status coffer__mcf_crc_of_output(uint32_t *out, coffer_mcf_writer *writer, uint64_t offset,
                                        uint64_t size, coffer_error *err)
{
    int fd = -1;
    size_t len;
    coffer_status status = coffer__mcf_writer_pool(writer, err);
    if (!status)
        status = coffer__sink_read_back(&fd, writer->sink, err);
    if (status)
        return status;
    return coffer__to_size(&len, size) ? crc_of_output(out, fd, offset, len, writer->scratch, err)
                                       : coffer__fail_no_memory(err, size);
}

/* ---- The section ---- */

typedef struct sum_rest {
    coffer_mcf_writer *writer;
    coffer__mcf_sums *sums;
    const bool *known;
    int output;
} sum_rest;

static coffer_status sum_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const sum_rest *job = context;
    uint64_t offset;
    size_t size;
    if (job->known[index])
        return COFFER_OK;
    coffer__mcf_sums_chunk(&offset, &size, job->sums, (size_t)index);
    return crc_of_output(&job->sums->sums[index], job->output, offset, size,
                         job->writer->scratch + (size_t)worker * COFFER__MCF_SCRATCH, err);
}

/* The sums of payloads are known; those of sections, header and directory are computed from the file. */
static coffer_status sum_everything(coffer_mcf_writer *writer, coffer__mcf_sums *sums, coffer_error *err)
{
    bool *known = coffer__calloc(sums->sum_count ? sums->sum_count : 1, sizeof *known);
    sum_rest job = { .writer = writer, .sums = sums, .known = known };
    if (!known)
        return coffer__fail_no_memory(err, sums->sum_count);
    for (size_t i = 0; i < writer->chunk_count; i++) {
        const coffer__mcf_range *range = coffer__mcf_sums_find(sums, writer->chunks[i].offset);
        size_t sum =
            range->first_sum + (size_t)((writer->chunks[i].offset - range->offset) / COFFER__MCF_CHUNK);
        sums->sums[sum] = writer->chunks[i].crc;
        known[sum] = true;
    }
    coffer_status status = coffer__mcf_writer_pool(writer, err);
    if (!status)
        status = coffer__sink_read_back(&job.output, writer->sink, err);
    if (!status)
        status = coffer__pool_run(writer->pool, sums->sum_count, sum_one, &job, err);
    coffer__free(known);
    return status;
}

coffer_status coffer__mcf_write_sums(coffer_mcf_writer *writer, coffer__mcf_sums *sums, uint64_t place,
                                     coffer_error *err)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = sum_everything(writer, sums, err);
    if (!status)
        status = coffer__mcf_sums_encode(&bytes, sums, err);
    if (!status)
        status = coffer__sink_patch(writer->sink, place, bytes.data, bytes.len, err);
    coffer__buffer_free(&bytes);
    return status;
}
