/* The part of the page of a set that covers all samples: numbers to filter by, the order of a training run,
 * damage. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_set.h"

#include <inttypes.h>

enum { MOST_ROWS = 200000, MOST_POSITIONS = 4096, MOST_DAMAGED = 10000, MOST_REASONS = 200, AT_ONCE = 4096 };

/* ---- Damage ---- */

coffer_status coffer__page_find_damage(coffer__page_set_state *page, const coffer_chunks *chunks,
                                       coffer_error *err)
{
    coffer_mldf_find_damaged_opts opts = COFFER_MLDF_FIND_DAMAGED_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    opts.threads = chunks->opts.threads;
    if (coffer_mldf_stats_payload_bytes(page->stats[0]) > chunks->opts.max_read_bytes)
        return COFFER_OK;
    coffer_status status =
        coffer_mldf_find_damaged(&page->damaged, &page->damaged_count, page->sets[0], &opts, &found);
    page->is_verified = status == COFFER_OK;
    return status && !coffer__is_about_file(status) ? coffer__fail_copy(err, &found) : COFFER_OK;
}

/* Why a sample cannot be read: the message of its first field that cannot. */
static uint32_t reason_of(coffer_chunks *chunks, const coffer_mldf *set, coffer_bytes *bytes, uint64_t sample)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < coffer_mldf_field_count(set) && text.len == 0; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        if (coffer_mldf_read(bytes, NULL, set, sample, i, &err))
            coffer__buffer_printf(&text, "%s: %s", coffer_mldf_field_at(set, i)->name, err.text);
    }
    if (text.len == 0)
        coffer__buffer_printf(&text, "the checksum of a value is wrong, or a value cannot be decoded");
    chunks->failed |= text.failed;
    uint32_t number = text.failed ? 0 : coffer__chunks_text(chunks, coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return number;
}

static void add_damage(coffer_chunks *chunks, const coffer__page_set_state *page, uint32_t detail)
{
    size_t most = MOST_DAMAGED / detail, reasons = MOST_REASONS / detail;
    size_t count = page->damaged_count < most ? (size_t)page->damaged_count : most;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_node_add_bool(chunks->view, "verified", page->is_verified);
    coffer_node_add_u64(chunks->view, "damaged", page->damaged_count, COFFER_UNIT_NONE);
    double *sample = coffer__chunks_f64(chunks, "damaged.sample", count);
    uint32_t *reason = coffer__chunks_u32(chunks, "damaged.reason", count < reasons ? count : reasons);
    for (size_t i = 0; reason && i < count; i++) {
        sample[i] = (double)page->damaged[i];
        if (i < reasons)
            reason[i] = reason_of(chunks, page->sets[0], &bytes, page->damaged[i]);
    }
    coffer_free(bytes.data);
    if (!page->is_verified)
        coffer__chunks_note(chunks, "damaged samples are not marked: the values were not all read "
                                    "('coffer check --full' reads them)");
    if (count < page->damaged_count)
        coffer__chunks_note(chunks, "the first %zu of %" PRIu64 " damaged samples are listed", count,
                            page->damaged_count);
}

/* ---- Numbers ---- */

static coffer_status add_numbers(coffer_chunks *chunks, const coffer_mldf *set, size_t field, uint64_t count,
                                 coffer_mldf_entry *entries, coffer_error *err)
{
    char name[32];
    bool is_int = coffer_mldf_field_at(set, field)->kind == COFFER_MLDF_ENTRY_INT;
    snprintf(name, sizeof name, "columns.%zu", field);
    double *out = coffer__chunks_f64(chunks, name, (size_t)count);
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; out && done < count && !status; done += AT_ONCE) {
        uint64_t step = count - done < AT_ONCE ? count - done : AT_ONCE;
        entries[0].struct_size = sizeof *entries;
        status = coffer_mldf_read_entries(entries, set, field, done, step, err);
        for (uint64_t i = 0; i < step && !status; i++)
            out[done + i] = is_int ? (double)entries[i].i64 : entries[i].f64;
    }
    return status;
}

/* A set with more samples than the page has room for is filtered among the samples that are shown. */
static coffer_status add_columns(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                                 coffer_error *err)
{
    uint64_t count = coffer_mldf_sample_count(set);
    if (count > MOST_ROWS / detail)
        return COFFER_OK;
    coffer_mldf_entry *entries = coffer__calloc(AT_ONCE, sizeof *entries);
    coffer_status status = entries ? COFFER_OK : coffer__fail_no_memory(err, AT_ONCE * sizeof *entries);
    for (size_t i = 0; i < coffer_mldf_field_count(set) && !status; i++) {
        coffer_mldf_entry_kind kind = coffer_mldf_field_at(set, i)->kind;
        if (kind == COFFER_MLDF_ENTRY_INT || kind == COFFER_MLDF_ENTRY_FLOAT)
            status = add_numbers(chunks, set, i, count, entries, err);
    }
    coffer__free(entries);
    return status;
}

/* ---- Order ---- */

static coffer_status add_order(coffer_chunks *chunks, const coffer_mldf *set, uint32_t detail,
                               coffer_error *err)
{
    coffer_mldf_order order = COFFER_MLDF_ORDER_INIT;
    coffer_status status = coffer_mldf_order_prepare(&order, coffer_mldf_sample_count(set), NULL, err);
    if (status)
        return status;
    uint64_t length = coffer_mldf_order_length(&order), most = MOST_POSITIONS / detail;
    size_t count = (size_t)(length < most ? length : most);
    double *sample = coffer__chunks_f64(chunks, "order.sample", count);
    for (size_t i = 0; sample && i < count; i++)
        sample[i] = (double)coffer_mldf_order_at(&order, 0, i);
    return COFFER_OK;
}

coffer_status coffer__page_add_whole(coffer_chunks *chunks, const coffer__page_set_state *page,
                                     uint32_t detail, coffer_error *err)
{
    add_damage(chunks, page, detail);
    coffer_status status = add_columns(chunks, page->sets[0], detail, err);
    return status ? status : add_order(chunks, page->sets[0], detail, err);
}
