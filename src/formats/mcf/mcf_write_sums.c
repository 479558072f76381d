/* Checksums of the payload area, computed from the new file itself while it is written, so that they cover
 * what was stored. */
#include "formats/mcf/mcf_writer.h"

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
    int to;
    size_t first; /* chunk of the first task that counts */
    uint64_t end; /* of the part of the area that is in the file */
} work;

static coffer_status count_chunk(const work *of, size_t chunk, uint32_t worker, coffer_error *err)
{
    coffer_mcf_writer *writer = of->writer;
    uint8_t *scratch = writer->scratch + (size_t)worker * COFFER__MCF_SCRATCH;
    uint64_t at = writer->area + (uint64_t)chunk * COFFER__MCF_CHUNK;
    uint64_t end = of->end - at < COFFER__MCF_CHUNK ? of->end : at + COFFER__MCF_CHUNK;
    uint32_t crc = 0;
    coffer_status status = COFFER_OK;
    while (status == COFFER_OK && at < end) {
        size_t n = end - at < COFFER__MCF_SCRATCH ? (size_t)(end - at) : COFFER__MCF_SCRATCH;
        status = coffer__fail_output(err, coffer__file_read_at(of->to, scratch, n, at, NULL, err));
        if (status == COFFER_OK)
            crc = coffer__crc32(crc, scratch, n);
        at += n;
    }
    writer->sums[chunk] = crc;
    return status;
}

static coffer_status run_task(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const work *of = context;
    if (of->copies && index == 0)
        return coffer__sink_copy_file(of->writer->sink, of->from, of->from_offset, of->len, of->from_name,
                                      err);
    return count_chunk(of, of->first + (size_t)index - of->copies, worker, err);
}

static coffer_status grow_sums(coffer_mcf_writer *writer, size_t count, coffer_error *err)
{
    size_t capacity = writer->sum_capacity ? writer->sum_capacity : 1024;
    uint32_t *sums;
    while (capacity < count)
        capacity *= 2;
    if (capacity == writer->sum_capacity)
        return COFFER_OK;
    sums = coffer__realloc(writer->sums, capacity * sizeof *sums);
    if (!sums)
        return coffer__fail_no_memory(err, capacity * sizeof *sums);
    writer->sums = sums;
    writer->sum_capacity = capacity;
    return COFFER_OK;
}

/* Complete chunks of the area; with `ended` also the last, shorter one. */
static size_t chunks_there(const coffer_mcf_writer *writer, bool ended)
{
    uint64_t len = coffer__sink_position(writer->sink) - writer->area;
    return (size_t)(len / COFFER__MCF_CHUNK + (ended && len % COFFER__MCF_CHUNK != 0));
}

/* Sums the waiting chunks, and meanwhile copies job->len bytes if job->copies. */
static coffer_status run(coffer_mcf_writer *writer, work *of, bool ended, coffer_error *err)
{
    size_t there = writer->opts.no_checksums ? writer->sum_count : chunks_there(writer, ended);
    coffer_status status;
    of->writer = writer;
    of->first = writer->sum_count;
    of->end = coffer__sink_position(writer->sink);
    if ((status = coffer__mcf_writer_pool(writer, err)) || (status = grow_sums(writer, there, err)) ||
        (status = coffer__sink_read_back(&of->to, writer->sink, err)) ||
        (status = coffer__pool_run(writer->pool, of->copies + there - writer->sum_count, run_task, of, err)))
        return status;
    writer->sum_count = there;
    return COFFER_OK;
}

coffer_status coffer__mcf_count_sums(coffer_mcf_writer *writer, bool ended, coffer_error *err)
{
    work of = { .copies = false };
    size_t waiting;
    if (writer->opts.no_checksums || !writer->area_begun)
        return COFFER_OK;
    waiting = chunks_there(writer, ended) - writer->sum_count;
    if (waiting == 0 || (!ended && waiting < WAITING / COFFER__MCF_CHUNK))
        return COFFER_OK;
    return run(writer, &of, ended, err);
}

/* Copies in pieces that end at chunk boundaries, and sums each while it is in the cache. */
static coffer_status copy_and_count(coffer_mcf_writer *writer, int fd, uint64_t offset, uint64_t len,
                                    const char *name, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COFFER__MCF_CHUNK);
    coffer_status status = piece ? COFFER_OK : coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
    for (uint64_t done = 0; status == COFFER_OK && done < len;) {
        uint64_t position = coffer__sink_position(writer->sink) - writer->area;
        uint64_t room = COFFER__MCF_CHUNK - position % COFFER__MCF_CHUNK;
        size_t n = (size_t)(len - done < room ? len - done : room);
        size_t chunk = (size_t)(position / COFFER__MCF_CHUNK);
        if ((status = coffer__file_read_at(fd, piece, n, offset + done, name, err)) ||
            (status = coffer__sink_write(writer->sink, piece, n, err)))
            break;
        done += n;
        if (writer->opts.no_checksums)
            continue;
        if (n == COFFER__MCF_CHUNK && chunk == writer->sum_count) {
            if ((status = grow_sums(writer, chunk + 1, err)) == COFFER_OK)
                writer->sums[writer->sum_count++] = coffer__crc32(0, piece, n);
        } else if (n == room) {
            work of = { .copies = false };
            status = run(writer, &of, false, err);
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
    for (uint64_t done = 0; status == COFFER_OK && done < len;) {
        uint64_t n = len - done < PIECE ? len - done : PIECE;
        work of = { .copies = true, .from = fd, .from_offset = offset + done, .len = n, .from_name = name };
        status = run(writer, &of, false, err);
        done += n;
    }
    return status;
}

void coffer__mcf_forget_sums(coffer_mcf_writer *writer, uint64_t position)
{
    size_t whole = (size_t)((position - writer->area) / COFFER__MCF_CHUNK);
    if (writer->sum_count > whole)
        writer->sum_count = whole;
}
