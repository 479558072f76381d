/* The front of a trace: its header, and metadata that is copied from another trace. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/write/mlyze_tables_pack.h"
#include "formats/mlyze/write/mlyze_write.h"

#include <string.h>

uint32_t coffer__mlyze_flags_of(const coffer_mlyze_writer_opts *opts, bool extensions, bool complete)
{
    const uint32_t sums = COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_FULL_SUMS;
    if (opts->plain)
        return 0;
    return COFFER__MLYZE_FLAG_BLOCKS | (opts->archive ? COFFER__MLYZE_FLAG_ARCHIVE : 0) |
           (opts->no_checksums ? 0 : sums) | (extensions ? COFFER__MLYZE_FLAG_EXTENSIONS : 0) |
           (complete ? COFFER__MLYZE_FLAG_COMPLETE : 0);
}

void coffer__mlyze_compose_header(uint8_t out[COFFER__MLYZE_HEADER_SIZE], const coffer__mlyze_front *front)
{
    memset(out, 0, COFFER__MLYZE_HEADER_SIZE);
    memcpy(out, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE);
    coffer__store_u32(out + COFFER__MLYZE_VERSION_AT,
                      front->version ? front->version : COFFER__MLYZE_VERSION);
    coffer__store_u64(out + COFFER__MLYZE_START_AT, front->start_time);
    coffer__store_u32(out + COFFER__MLYZE_METADATA_LENGTH_AT, front->metadata_len);
    if (front->reserved)
        memcpy(out + COFFER__MLYZE_RESERVED_AT, front->reserved,
               COFFER__MLYZE_HEADER_SIZE - COFFER__MLYZE_RESERVED_AT);
    if (front->flags == 0)
        return;
    coffer__store_u32(out + COFFER__MLYZE_FLAGS_AT, front->flags);
    coffer__store_u64(out + COFFER__MLYZE_EVENT_COUNT_AT, front->event_count);
    coffer__store_u64(out + COFFER__MLYZE_EVENT_LENGTH_AT, front->area_len);
    if (!(front->flags & COFFER__MLYZE_FLAG_CHECKSUMS))
        return;
    coffer__store_u32(out + COFFER__MLYZE_METADATA_CRC_AT, front->metadata_crc);
    coffer__store_u32(out + COFFER__MLYZE_HEADER_CRC_AT, coffer__mlyze_header_sum(out, front->flags));
}

/* ---- The checksum of a plain trace ---- */

void coffer__mlyze_put_digits(char *out, uint32_t sum)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < COFFER__MLYZE_PLAIN_SUM_DIGITS; i++)
        out[i] = digits[sum >> (28 - 4 * i) & 15];
}

static uint32_t plain_sum(const coffer__mlyze_front *front)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    coffer__mlyze_compose_header(header, front);
    uint32_t sum = coffer__crc32(0, header, sizeof header);
    sum = coffer__crc32_combine(sum, front->metadata_crc, front->metadata_len);
    return coffer__crc32_combine(sum, front->area_crc, front->area_len);
}

coffer_status coffer__mlyze_settle_sum(coffer__sink *sink, const coffer__mlyze_front *front,
                                       coffer_error *err)
{
    char digits[COFFER__MLYZE_PLAIN_SUM_DIGITS];
    coffer__mlyze_put_digits(digits, plain_sum(front));
    return coffer__sink_patch(sink,
                              COFFER__MLYZE_HEADER_SIZE + (uint64_t)front->json_len -
                                  COFFER__MLYZE_PLAIN_SUM_FROM_END,
                              digits, sizeof digits, err);
}

/* ---- New metadata ---- */

static coffer_status write_bytes(coffer__sink *sink, coffer__mlyze_front *front, const coffer__buffer *tables,
                                 coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    if (tables->len > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the metadata passes the 4 GiB that a header can say");
    front->flags |= COFFER__MLYZE_FLAG_TABLES;
    front->metadata_len = front->json_len = (uint32_t)tables->len;
    front->metadata_crc = coffer__crc32(0, tables->data, tables->len);
    coffer__mlyze_compose_header(header, front);
    coffer_status status = coffer__sink_write(sink, header, sizeof header, err);
    return status ? status : coffer__sink_write(sink, tables->data, tables->len, err);
}

static coffer_status write_tables(coffer__sink *sink, coffer__mlyze_front *front,
                                  const coffer__mlyze_draft *draft, coffer_error *err)
{
    coffer__buffer tables = COFFER__BUFFER_INIT;
    coffer_status status = coffer__mlyze_draft_tables(&tables, draft, err);
    if (!status)
        status = write_bytes(sink, front, &tables, err);
    coffer__buffer_free(&tables);
    return status;
}

coffer_status coffer__mlyze_write_front(coffer__sink *sink, coffer__mlyze_front *front,
                                        const coffer__mlyze_draft *draft, coffer_error *err)
{
    coffer__mlyze_draft settled = *draft;
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    uint32_t len, crc;
    if (coffer__mlyze_wants_tables(draft, front->flags))
        return write_tables(sink, front, draft, err);
    /* A sink may be a stream, so the header must be known before anything is written. */
    coffer_status status = coffer__mlyze_measure(&front->metadata_len, &front->metadata_crc, draft, err);
    if (status)
        return status;
    front->json_len = front->metadata_len;
    if (draft->summed && front->area_is_known)
        settled.sum = plain_sum(front);
    coffer__mlyze_compose_header(header, front);
    status = coffer__sink_write(sink, header, sizeof header, err);
    return status ? status : coffer__mlyze_send_metadata(&len, &crc, sink, 0, &settled, err);
}

/* The checksum of the metadata with the spaces after it. */
static uint32_t add_spaces(uint32_t crc, uint64_t count)
{
    uint8_t spaces[4096];
    memset(spaces, ' ', sizeof spaces);
    while (count > 0) {
        size_t len = count < sizeof spaces ? (size_t)count : sizeof spaces;
        crc = coffer__crc32(crc, spaces, len);
        count -= len;
    }
    return crc;
}

coffer_status coffer__mlyze_patch_front(coffer__sink *sink, coffer__mlyze_front *front, uint32_t room,
                                        const coffer__mlyze_draft *draft, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    uint32_t crc;
    coffer_status status =
        coffer__mlyze_send_metadata(&front->json_len, &crc, sink, COFFER__MLYZE_HEADER_SIZE, draft, err);
    if (status)
        return status;
    front->metadata_len = room;
    front->metadata_crc = add_spaces(crc, room - front->json_len);
    coffer__mlyze_compose_header(header, front);
    status = coffer__sink_patch(sink, 0, header, sizeof header, err);
    return status || !draft->summed ? status : coffer__mlyze_settle_sum(sink, front, err);
}

/* ---- Copied metadata ---- */

static size_t json_length(const char *text, size_t len)
{
    while (len > 0 && memchr(" \t\r\n", text[len - 1], 4))
        len--;
    return len;
}

/* at : after the brace that opens it. */
static bool is_empty_object(const char *text, size_t len, size_t at)
{
    while (at < len && memchr(" \t\r\n", text[at], 4))
        at++;
    return at < len && text[at] == '}';
}

static size_t brace_end(const char *text, size_t len)
{
    const char *brace = memchr(text, '{', len);
    return brace ? (size_t)(brace - text) + 1 : 0;
}

/* A checksum that is not where writers put it is none: its keys get other names, so that one can be added. */
static void rename_key(char *text, size_t len, const char *key)
{
    static const char other[] = "former"; /* as long as "coffer" */
    size_t depth = 0, key_len = strlen(key);
    for (size_t at = 0; at < len; at++) {
        depth += text[at] == '{' || text[at] == '[';
        depth -= text[at] == '}' || text[at] == ']';
        if (text[at] != '"')
            continue;
        size_t start = ++at;
        while (at < len && text[at] != '"')
            at += text[at] == '\\' ? 2 : 1;
        size_t next = at + 1;
        while (next < len && memchr(" \t\r\n", text[next], 4))
            next++;
        if (depth == 1 && next < len && text[next] == ':' && at - start == key_len &&
            memcmp(text + start, key, key_len) == 0)
            memcpy(text + start, other, sizeof other - 1);
    }
}

/* Zeros the digits of an existing checksum, adds one, or removes it without moving what follows. */
static void settle_text(coffer__mlyze_copied_text *out, coffer__mlyze_text_sum sum)
{
    uint32_t found;
    bool has = coffer__mlyze_find_plain_sum(&found, out->text, out->json_len);
    char *end = out->text + out->json_len;
    if (has && sum == COFFER__MLYZE_SUM_ADD) {
        memset(end - COFFER__MLYZE_PLAIN_SUM_FROM_END, '0', COFFER__MLYZE_PLAIN_SUM_DIGITS);
        out->summed = true;
    } else if (has && sum == COFFER__MLYZE_SUM_STRIP) {
        char *tail = end - COFFER__MLYZE_PLAIN_SUM_LENGTH;
        tail -= tail[-1] == ',';
        memset(tail, ' ', (size_t)(end - tail));
        *tail = '}';
        out->json_len = (size_t)(tail - out->text) + 1;
    } else if (!has && sum == COFFER__MLYZE_SUM_ADD) {
        rename_key(out->text, out->json_len, COFFER__MLYZE_PLAIN_SUM_KIND_KEY);
        rename_key(out->text, out->json_len, COFFER__MLYZE_PLAIN_SUM_KEY);
        bool first = is_empty_object(out->text, out->json_len, brace_end(out->text, out->json_len));
        size_t at = out->json_len - 1, add = COFFER__MLYZE_PLAIN_SUM_LENGTH - 1 + !first;
        memmove(out->text + out->json_len + add, out->text + out->json_len, out->len - out->json_len);
        if (!first)
            out->text[at++] = ',';
        memcpy(out->text + at, COFFER__MLYZE_PLAIN_SUM, COFFER__MLYZE_PLAIN_SUM_LENGTH);
        out->len += add;
        out->json_len += add;
        out->summed = true;
    }
}

coffer_status coffer__mlyze_copy_text(coffer__mlyze_copied_text *out, const char *text, size_t len,
                                      const char *members, coffer__mlyze_text_sum sum, coffer_error *err)
{
    size_t json_len = json_length(text, len), added = strlen(members);
    size_t room = len + added + COFFER__MLYZE_PLAIN_SUM_LENGTH + 1;
    *out = (coffer__mlyze_copied_text){ .text = coffer__malloc(room) };
    if (!out->text)
        return coffer__fail_no_memory(err, room);
    size_t head = brace_end(text, json_len);
    if (added > 0 && is_empty_object(text, json_len, head))
        added--; /* the comma */
    memcpy(out->text, text, head);
    memcpy(out->text + head, members, added);
    memcpy(out->text + head + added, text + head, len - head);
    out->len = len + added;
    out->json_len = json_len + added;
    settle_text(out, sum);
    return COFFER_OK;
}

void coffer__mlyze_copied_text_free(coffer__mlyze_copied_text *text)
{
    coffer__free(text->text);
    coffer__buffer_free(&text->tables);
    text->text = NULL;
}

coffer_status coffer__mlyze_copied_tables(coffer__mlyze_copied_text *text, uint32_t flags,
                                          const coffer_limits *limits, coffer_error *err)
{
    coffer__buffer_init(&text->tables, SIZE_MAX);
    if (!(flags & COFFER__MLYZE_FLAG_BLOCKS) ||
        (text->json_len < COFFER__MLYZE_TABLES_LEAST && !(flags & COFFER__MLYZE_FLAG_ARCHIVE)))
        return COFFER_OK;
    return coffer__mlyze_tables_from_text(&text->tables, text->text, text->len, limits, err);
}

coffer_status coffer__mlyze_write_text_front(coffer__sink *sink, coffer__mlyze_front *front,
                                             const coffer__mlyze_copied_text *text, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    if (text->tables.len > 0)
        return write_bytes(sink, front, &text->tables, err);
    if (text->len > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the metadata passes the 4 GiB that a header can say");
    front->metadata_len = (uint32_t)text->len;
    front->json_len = (uint32_t)text->json_len;
    front->metadata_crc = coffer__crc32(0, text->text, text->len);
    coffer__mlyze_compose_header(header, front);
    if (text->summed && front->area_is_known)
        coffer__mlyze_put_digits(text->text + text->json_len - COFFER__MLYZE_PLAIN_SUM_FROM_END,
                                 plain_sum(front));
    coffer_status status = coffer__sink_write(sink, header, sizeof header, err);
    return status ? status : coffer__sink_write(sink, text->text, text->len, err);
}
