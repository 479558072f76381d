/* Reads the pieces of archive blocks. */
#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

coffer_status coffer__mlyze_readers_init(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_readers *readers = &pass->readers;
    if (!coffer__mlyze_has_archive(&pass->trace->header))
        return COFFER_OK;
    readers->items = coffer__calloc(pass->threads, sizeof *readers->items);
    if (!readers->items)
        return coffer__fail_no_memory(err, pass->threads * sizeof *readers->items);
    readers->count = pass->threads;
    coffer__mlyze_readers_rewind(pass);
    return COFFER_OK;
}

void coffer__mlyze_readers_rewind(coffer__mlyze_pass *pass)
{
    for (size_t i = 0; i < pass->readers.count; i++)
        pass->readers.items[i].block = SIZE_MAX;
}

void coffer__mlyze_readers_free(coffer__mlyze_pass *pass)
{
    for (size_t i = 0; i < pass->readers.count; i++)
        coffer__mlyze_unpacker_free(&pass->readers.items[i].unpacker);
    coffer__free(pass->readers.items);
    pass->readers.items = NULL;
    pass->readers.count = 0;
}

/* Opens the block of a piece, unless it is open and has not passed the piece. */
static coffer_status reach(coffer__mlyze_reader *reader, const coffer__mlyze_piece *piece,
                           const coffer__mlyze_pass *pass, coffer_error *err)
{
    const coffer__mlyze_unpacker *unpacker = &reader->unpacker;
    coffer__mlyze_block block;
    if (reader->block == piece->block && unpacker->block.first_event + unpacker->event <= piece->from)
        return COFFER_OK;
    reader->block = SIZE_MAX;
    coffer_status status = coffer__mlyze_find_block(&block, pass->trace, piece->block, err);
    if (!status)
        status = coffer__mlyze_unpack_open(&reader->unpacker, pass->trace, &block, false, err);
    if (!status || coffer__is_about_file(status)) {
        reader->block = piece->block;
        reader->failed = status != COFFER_OK;
        reader->unpacker.event = 0;
    }
    return status;
}

static coffer_status read(coffer__mlyze_reader *reader, coffer__mlyze_piece *piece, coffer_error *err)
{
    coffer__mlyze_unpacker *unpacker = &reader->unpacker;
    coffer_status status = coffer__mlyze_events_reserve_rows(&piece->events, COFFER__MLYZE_SEGMENT, err);
    while (!status) {
        uint64_t at = unpacker->block.first_event + unpacker->event;
        uint64_t count = (at < piece->from ? piece->from : piece->to) - at;
        status =
            coffer__mlyze_unpack_some(&piece->events, unpacker,
                                      count < COFFER__MLYZE_SEGMENT ? (size_t)count : COFFER__MLYZE_SEGMENT,
                                      err);
        if (at >= piece->from)
            break;
    }
    return status;
}

coffer_status coffer__mlyze_read_segment(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass,
                                         coffer_error *err)
{
    coffer__mlyze_reader *reader = &pass->readers.items[piece->block % pass->readers.count];
    piece->events.count = 0;
    coffer_status status = reach(reader, piece, pass, err);
    if (!status && reader->failed)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "the block is damaged");
    if (!status)
        status = read(reader, piece, err);
    if (status && coffer__is_about_file(status)) {
        reader->failed = true;
        coffer__mlyze_note_lost(pass->trace, piece->block);
    }
    return status;
}
