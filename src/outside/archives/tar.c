#include "outside/archives/tar.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names and pax records of one member. */
#define EXTRA_MAX ((uint64_t)1 << 20)

struct coffer__tar_reader {
    coffer__byte_stream *stream;
    coffer_limits limits;
    const char *source_name; /* NULL where the caller of the library named it */
    coffer__tar_member member;
    coffer__buffer name;      /* of the member */
    coffer__buffer long_name; /* said before its header; empty = not said */
    uint64_t pax_size;        /* UINT64_MAX = not said */
    uint64_t unread;          /* of the member's contents */
    size_t padding;           /* after them */
    bool ended;
};

static bool checksum_holds(const uint8_t *block)
{
    uint64_t sum = 8 * ' ', stated = 0;
    for (size_t i = 0; i < COFFER__TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : block[i];
    size_t at = 148;
    while (at < 156 && block[at] == ' ')
        at++;
    for (; at < 156 && block[at] >= '0' && block[at] <= '7'; at++)
        stated = 8 * stated + (uint64_t)(block[at] - '0');
    return sum == stated;
}

static bool is_zero(const uint8_t *block)
{
    return block[0] == 0 && memcmp(block, block + 1, COFFER__TAR_BLOCK - 1) == 0;
}

bool coffer__tar_probe(const uint8_t *head, size_t len)
{
    return len >= COFFER__TAR_BLOCK && !is_zero(head) && checksum_holds(head);
}

coffer_status coffer__tar_open(coffer__tar_reader **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer__tar_reader *reader = coffer__calloc(1, sizeof *reader);
    if (!reader)
        return coffer__fail_no_memory(err, sizeof *reader);
    reader->limits = coffer__limits(limits);
    reader->source_name = coffer__source_other_name(src);
    reader->pax_size = UINT64_MAX;
    coffer__buffer_init(&reader->name, SIZE_MAX);
    coffer__buffer_init(&reader->long_name, SIZE_MAX);
    coffer_status status = coffer__byte_stream_open(&reader->stream, src, &reader->limits, err);
    if (status) {
        coffer__tar_close(reader);
        return status;
    }
    *out = reader;
    return COFFER_OK;
}

void coffer__tar_close(coffer__tar_reader *reader)
{
    if (!reader)
        return;
    coffer__byte_stream_close(reader->stream);
    coffer__buffer_free(&reader->name);
    coffer__buffer_free(&reader->long_name);
    coffer__free(reader);
}

static coffer_status fail_at(const coffer__tar_reader *reader, coffer_status status, const char *what,
                             coffer_error *err)
{
    return coffer__fail_other(err,
                              coffer__fail(err, status, reader->member.offset,
                                           "%s in the header at byte %" PRIu64, what, reader->member.offset),
                              reader->source_name);
}

/* A number of a header: octal digits, or big-endian bytes after a set high bit. */
static bool parse_number(uint64_t *out, const uint8_t *at, size_t len)
{
    uint64_t value = 0;
    if (*at & 0x80) {
        value = *at & 0x3f;
        for (size_t i = 1; i < len; i++) {
            if (value >> 56 || *at & 0x40)
                return false;
            value = value << 8 | at[i];
        }
        *out = value;
        return true;
    }
    while (len && *at == ' ')
        at++, len--;
    for (; len && *at >= '0' && *at <= '7'; at++, len--)
        value = 8 * value + (uint64_t)(*at - '0');
    *out = value;
    return len == 0 || *at == ' ' || *at == 0;
}

/* Contents of a member that describes the next one. */
static coffer_status read_extra(coffer__buffer *out, coffer__tar_reader *reader, uint64_t size,
                                coffer_error *err)
{
    size_t got;
    if (size > EXTRA_MAX)
        return fail_at(reader, COFFER_E_LIMIT, "a name or record over 1 MiB", err);
    out->len = 0;
    uint8_t *to = coffer__buffer_extend(out, (size_t)size);
    if (!to)
        return coffer__fail_no_memory(err, size);
    coffer_status status = coffer__byte_stream_read(to, (size_t)size, &got, reader->stream, err);
    if (!status && got < size)
        status = fail_at(reader, COFFER_E_TRUNCATED, "the archive ends after a long name", err);
    return status ? status : coffer__byte_stream_skip(reader->stream, coffer__tar_padding(size), err);
}

/* One record "LEN KEY=VALUE\n"; *used is its length. */
static coffer_status take_pax_record(size_t *used, coffer__tar_reader *reader, const char *at, size_t left,
                                     coffer_error *err)
{
    uint64_t len = 0, size = 0;
    size_t digits = 0;
    for (; digits < left && digits < 8 && at[digits] >= '0' && at[digits] <= '9'; digits++)
        len = 10 * len + (uint64_t)(at[digits] - '0');
    if (digits == 0 || digits == left || at[digits] != ' ' || len > left || len < digits + 3 ||
        at[len - 1] != '\n')
        return fail_at(reader, COFFER_E_BAD_VALUE, "a pax record that does not end where it says", err);
    const char *key = at + digits + 1, *end = at + len - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (!equals)
        return fail_at(reader, COFFER_E_BAD_VALUE, "a pax record without a value", err);
    size_t key_len = (size_t)(equals - key), value_len = (size_t)(end - equals - 1);
    if (key_len == 4 && memcmp(key, "path", 4) == 0) {
        reader->long_name.len = 0;
        if (!coffer__buffer_append(&reader->long_name, equals + 1, value_len))
            return coffer__fail_no_memory(err, value_len);
    } else if (key_len == 4 && memcmp(key, "size", 4) == 0) {
        for (const char *digit = equals + 1; digit < end; digit++) {
            if (*digit < '0' || *digit > '9' || size > UINT64_MAX / 16)
                return fail_at(reader, COFFER_E_BAD_VALUE, "a pax size that is not a number", err);
            size = 10 * size + (uint64_t)(*digit - '0');
        }
        reader->pax_size = size;
    } else if (key_len > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
        return fail_at(reader, COFFER_E_UNSAFE_PATH, "a sparse file", err);
    }
    *used = (size_t)len;
    return COFFER_OK;
}

static coffer_status take_pax(coffer__tar_reader *reader, uint64_t size, coffer_error *err)
{
    coffer__buffer records = COFFER__BUFFER_INIT;
    coffer_status status = read_extra(&records, reader, size, err);
    for (size_t at = 0, used = 0; !status && at < records.len; at += used)
        status = take_pax_record(&used, reader, (const char *)records.data + at, records.len - at, err);
    coffer__buffer_free(&records);
    return status;
}

static coffer_status take_long_name(coffer__tar_reader *reader, uint64_t size, coffer_error *err)
{
    coffer_status status = read_extra(&reader->long_name, reader, size, err);
    while (!status && reader->long_name.len && reader->long_name.data[reader->long_name.len - 1] == 0)
        reader->long_name.len--;
    return status;
}

static void put_field(coffer__buffer *out, const uint8_t *field, size_t max)
{
    coffer__buffer_append(out, field, strnlen((const char *)field, max));
}

static coffer_status take_name(coffer__tar_reader *reader, const uint8_t *block, coffer_error *err)
{
    coffer__buffer *name = &reader->name;
    name->len = 0;
    if (reader->long_name.len) {
        coffer__buffer_append(name, reader->long_name.data, reader->long_name.len);
    } else {
        /* GNU's older headers have other things where the prefix is. */
        if (memcmp(block + 257, "ustar\0", 6) == 0 && block[345]) {
            put_field(name, block + 345, 155);
            coffer__buffer_append(name, "/", 1);
        }
        put_field(name, block, 100);
    }
    reader->member.name = coffer__buffer_text(name);
    reader->member.name_len = name->len;
    return name->failed ? coffer__fail_no_memory(err, name->len) : COFFER_OK;
}

/* A path that stays below where it begins. */
static bool stays_inside(const char *name, size_t len)
{
    if (len == 0 || name[0] == '/' || memchr(name, 0, len))
        return false;
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(name + at, '/', len - at);
        size_t part = slash ? (size_t)(slash - name) - at : len - at;
        if (part == 2 && name[at] == '.' && name[at + 1] == '.')
            return false;
        at += part + 1;
    }
    return true;
}

static coffer_status refuse(const coffer__tar_reader *reader, const char *why, coffer_error *err)
{
    return coffer__fail_other(err,
                              coffer__fail(err, COFFER_E_UNSAFE_PATH, reader->member.offset,
                                           "member \"%s\" %s", reader->member.name, why),
                              reader->source_name);
}

/* *is_file is false for members that are skipped. */
static coffer_status judge(bool *is_file, const coffer__tar_reader *reader, char type, coffer_error *err)
{
    *is_file = false;
    if (!stays_inside(reader->member.name, reader->member.name_len))
        return refuse(reader, "would be outside its folder", err);
    switch (type) {
    case 0:
    case '0':
    case '7':
        /* Old archives mark folders by their names. */
        *is_file = reader->member.name[reader->member.name_len - 1] != '/';
        return COFFER_OK;
    case '5':
        return COFFER_OK;
    case '1':
    case '2':
        return refuse(reader, "is a link", err);
    case '3':
    case '4':
    case '6':
        return refuse(reader, "is a device", err);
    case 'S':
        return refuse(reader, "has holes", err);
    default:
        return refuse(reader, "has an unsupported type", err);
    }
}

static coffer_status read_block(bool *end, uint8_t *block, coffer__tar_reader *reader, coffer_error *err)
{
    size_t got;
    reader->member.offset = coffer__byte_stream_position(reader->stream);
    coffer_status status = coffer__byte_stream_read(block, COFFER__TAR_BLOCK, &got, reader->stream, err);
    if (status)
        return status;
    *end = got == 0 || (got == COFFER__TAR_BLOCK && is_zero(block));
    if (!*end && got < COFFER__TAR_BLOCK)
        return fail_at(reader, COFFER_E_TRUNCATED, "the archive ends", err);
    if (!*end && !checksum_holds(block))
        return fail_at(reader, COFFER_E_BAD_CHECKSUM, "a wrong checksum", err);
    return COFFER_OK;
}

/* One header; *found when it is one of a file. */
static coffer_status take_header(bool *found, coffer__tar_reader *reader, const uint8_t *block,
                                 coffer_error *err)
{
    char type = (char)block[156];
    uint64_t size;
    *found = false;
    if (!parse_number(&size, block + 124, 12))
        return fail_at(reader, COFFER_E_BAD_VALUE, "a size that is not a number", err);
    if (type == 'x')
        return take_pax(reader, size, err);
    if (type == 'L')
        return take_long_name(reader, size, err);
    if (type == 'g' || type == 'K') {
        if (size > EXTRA_MAX)
            return fail_at(reader, COFFER_E_LIMIT, "a name or record over 1 MiB", err);
        return coffer__byte_stream_skip(reader->stream, size + coffer__tar_padding(size), err);
    }
    if (reader->pax_size != UINT64_MAX)
        size = reader->pax_size;
    coffer_status status = take_name(reader, block, err);
    if (!status)
        status = judge(found, reader, type, err);
    reader->long_name.len = 0;
    reader->pax_size = UINT64_MAX;
    if (status)
        return status;
    if (size > coffer__byte_stream_left(reader->stream))
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_TRUNCATED, reader->member.offset,
                                               "member \"%s\" has %" PRIu64 " bytes, %" PRIu64 " are left",
                                               reader->member.name, size,
                                               coffer__byte_stream_left(reader->stream)),
                                  reader->source_name);
    reader->member.size = reader->unread = size;
    reader->padding = coffer__tar_padding(size);
    return COFFER_OK;
}

static coffer_status skip_rest(coffer__tar_reader *reader, coffer_error *err)
{
    uint64_t left = coffer__byte_stream_left(reader->stream);
    uint64_t skip = reader->unread + reader->padding;
    /* The last member of a cut archive may lack its padding. */
    if (reader->unread <= left && skip > left)
        skip = left;
    reader->unread = 0;
    reader->padding = 0;
    return skip ? coffer__byte_stream_skip(reader->stream, skip, err) : COFFER_OK;
}

coffer_status coffer__tar_next(const coffer__tar_member **member, coffer__tar_reader *reader,
                               coffer_error *err)
{
    bool found = false;
    while (!found && !reader->ended) {
        uint8_t block[COFFER__TAR_BLOCK];
        coffer_status status = skip_rest(reader, err);
        if (!status)
            status = read_block(&reader->ended, block, reader, err);
        if (!status && !reader->ended)
            status = take_header(&found, reader, block, err);
        if (status)
            return status;
    }
    *member = found ? &reader->member : NULL;
    return COFFER_OK;
}

coffer_status coffer__tar_contents(const uint8_t **bytes, coffer__buffer *own, coffer__tar_reader *reader,
                                   coffer_error *err)
{
    uint64_t size = reader->unread;
    size_t got = 0;
    if (size > reader->limits.memory_bytes)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_LIMIT, reader->member.offset,
                                               "member \"%s\" has %" PRIu64 " bytes, the limit is %" PRIu64,
                                               reader->member.name, size, reader->limits.memory_bytes),
                                  reader->source_name);
    const uint8_t *view = coffer__byte_stream_view(reader->stream, (size_t)size);
    reader->unread = 0;
    if (view) {
        *bytes = view;
        return COFFER_OK;
    }
    own->len = 0;
    uint8_t *to = coffer__buffer_extend(own, (size_t)size);
    if (!to)
        return coffer__fail_no_memory(err, size);
    coffer_status status = coffer__byte_stream_read(to, (size_t)size, &got, reader->stream, err);
    if (!status && got < size)
        status =
            coffer__fail_other(err,
                               coffer__fail(err, COFFER_E_TRUNCATED, reader->member.offset,
                                            "the archive ends inside member \"%s\"", reader->member.name),
                               reader->source_name);
    *bytes = own->data;
    return status;
}

/* Headers of tar members. */

#define OCTAL_MAX ((UINT64_C(1) << 33) - 1) /* what eleven digits can say */

static void put_block(coffer__buffer *out, const char *name, size_t name_len, uint64_t size, char type)
{
    char block[COFFER__TAR_BLOCK] = { 0 };
    unsigned sum = 0;
    memcpy(block, name, name_len < 100 ? name_len : 100);
    snprintf(block + 100, 8, "%07o", 0644u);
    snprintf(block + 108, 8, "%07o", 0u);
    snprintf(block + 116, 8, "%07o", 0u);
    snprintf(block + 124, 12, "%011" PRIo64, size <= OCTAL_MAX ? size : 0);
    snprintf(block + 136, 12, "%011o", 0u);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    coffer__buffer_append(out, block, sizeof block);
}

/* "LEN KEY=VALUE\n", where LEN counts its own digits. */
static void put_record(coffer__buffer *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", len) + rest != len)
        len = strlen(digits) + rest;
    coffer__buffer_printf(out, "%s %s=%s\n", digits, key, value);
}

void coffer__tar_put_header(coffer__buffer *out, const char *name, uint64_t size)
{
    coffer__buffer records = COFFER__BUFFER_INIT;
    size_t len = strlen(name);
    char text[24];
    if (len > 100)
        put_record(&records, "path", name);
    if (size > OCTAL_MAX) {
        snprintf(text, sizeof text, "%" PRIu64, size);
        put_record(&records, "size", text);
    }
    if (records.len) {
        put_block(out, "pax", 3, records.len, 'x');
        coffer__buffer_append(out, records.data, records.len);
        coffer__buffer_fill(out, 0, coffer__tar_padding(records.len));
    }
    if (records.failed)
        out->failed = true;
    coffer__buffer_free(&records);
    put_block(out, name, len, size, '0');
}
