/* Recognizes a file by its first bytes, and guesses what happened to a file that is not recognized. */
#include "base/buffer.h"
#include "base/fail.h"
#include "formats/format.h"

#include <string.h>
#include <strings.h>

#define HEAD_SIZE 64
#define SHOWN 12       /* first bytes in a message */
#define MANGLED_MAX 64 /* a magic after the worst of the transformations below */

static bool begins_with(const uint8_t *head, size_t len, const void *start, size_t start_len)
{
    return len >= start_len && memcmp(head, start, start_len) == 0;
}

/* ---- Damage to a magic in transfer: each function gives the bytes that it becomes ---- */

static size_t strip_high_bit(uint8_t *out, const uint8_t *magic, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = magic[i] & 0x7f;
    return len;
}

static size_t crlf_to_lf(uint8_t *out, const uint8_t *magic, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (magic[i] != '\r' || i + 1 == len || magic[i + 1] != '\n')
            out[n++] = magic[i];
    }
    return n;
}

static size_t lf_to_crlf(uint8_t *out, const uint8_t *magic, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (magic[i] == '\n')
            out[n++] = '\r';
        out[n++] = magic[i];
    }
    return n;
}

static size_t to_cr(uint8_t *out, const uint8_t *magic, size_t len)
{
    size_t n = crlf_to_lf(out, magic, len);
    for (size_t i = 0; i < n; i++) {
        if (out[i] == '\n')
            out[i] = '\r';
    }
    return n;
}

static size_t strip_and_to_lf(uint8_t *out, const uint8_t *magic, size_t len)
{
    return strip_high_bit(out, out, crlf_to_lf(out, magic, len));
}

static size_t latin1_to_utf8(uint8_t *out, const uint8_t *magic, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (magic[i] < 0x80) {
            out[n++] = magic[i];
        } else {
            out[n++] = (uint8_t)(0xc0 | magic[i] >> 6);
            out[n++] = (uint8_t)(0x80 | (magic[i] & 0x3f));
        }
    }
    return n;
}

static size_t invalid_to_replacement(uint8_t *out, const uint8_t *magic, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (magic[i] < 0x80) {
            out[n++] = magic[i];
        } else {
            memcpy(out + n, "\xef\xbf\xbd", 3);
            n += 3;
        }
    }
    return n;
}

static size_t add_utf8_mark(uint8_t *out, const uint8_t *magic, size_t len)
{
    memcpy(out, "\xef\xbb\xbf", 3);
    memcpy(out + 3, magic, len);
    return len + 3;
}

static size_t to_utf16_le(uint8_t *out, const uint8_t *magic, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = magic[i];
        out[2 * i + 1] = 0;
    }
    return 2 * len;
}

static size_t to_utf16_le_marked(uint8_t *out, const uint8_t *magic, size_t len)
{
    memcpy(out, "\xff\xfe", 2);
    return to_utf16_le(out + 2, magic, len) + 2;
}

static size_t to_utf16_be_marked(uint8_t *out, const uint8_t *magic, size_t len)
{
    memcpy(out, "\xfe\xff\0", 3);
    return to_utf16_le(out + 3, magic, len) + 2; /* its last zero belongs to the character after it */
}

static size_t swap(uint8_t *out, const uint8_t *magic, size_t len, size_t unit)
{
    size_t whole = len / unit * unit;
    for (size_t i = 0; i < whole; i++)
        out[i] = magic[i / unit * unit + (unit - 1 - i % unit)];
    return whole;
}

static size_t swap_pairs(uint8_t *out, const uint8_t *magic, size_t len)
{
    return swap(out, magic, len, 2);
}

static size_t swap_fours(uint8_t *out, const uint8_t *magic, size_t len)
{
    return swap(out, magic, len, 4);
}

static const struct mangling {
    size_t (*apply)(uint8_t *out, const uint8_t *magic, size_t len);
    const char *cause;
} manglings[] = {
    { strip_high_bit, "transferred as 7-bit text: the high bit of every byte was stripped" },
    { crlf_to_lf, "line endings were converted in transfer: CR LF became LF" },
    { lf_to_crlf, "line endings were converted in transfer: LF became CR LF" },
    { to_cr, "line endings were converted in transfer: LF became CR" },
    { strip_and_to_lf, "transferred as 7-bit text: high bits were stripped, line endings were converted" },
    { latin1_to_utf8, "the bytes were encoded as UTF-8 as if they were text" },
    { invalid_to_replacement, "the bytes were decoded as UTF-8 text and some are lost" },
    { add_utf8_mark, "a byte order mark was put in front" },
    { to_utf16_le, "the bytes were encoded as UTF-16 as if they were text" },
    { to_utf16_le_marked, "the bytes were encoded as UTF-16 as if they were text" },
    { to_utf16_be_marked, "the bytes were encoded as UTF-16 as if they were text" },
    { swap_pairs, "every two bytes were swapped" },
    { swap_fours, "every four bytes were swapped" },
};

static const char *mangled_by(const coffer_format *format, const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < sizeof manglings / sizeof manglings[0]; i++) {
        uint8_t bytes[MANGLED_MAX];
        size_t n = manglings[i].apply(bytes, format->magic, format->magic_len);
        bool changed = n != format->magic_len || memcmp(bytes, format->magic, n) != 0;
        if (changed && n >= 4 && begins_with(head, len, bytes, n))
            return manglings[i].cause;
    }
    return NULL;
}

/* ---- Other kinds of file ---- */

static const struct known_start {
    const char *bytes;
    size_t len;
    const char *meaning;
} known_starts[] = {
    { "\x1f\x8b", 2, "a gzip file; decompress it first" },
    { "\x28\xb5\x2f\xfd", 4, "a zstd file; decompress it first" },
    { "\x04\x22\x4d\x18", 4, "an LZ4 file; decompress it first" },
    { "\xfd"
      "7zXZ",
      5, "an xz file; decompress it first" },
    { "BZh", 3, "a bzip2 file; decompress it first" },
    { "PK\x03\x04", 4, "a zip archive; unpack it first" },
    { "version https://git-lfs", 23, "a Git LFS pointer, not the file itself; git lfs pull fetches it" },
    { "SQLite format 3", 16, "an SQLite database; the first scanner kept its scans in one" },
    { "\x93NUMPY", 6, "a numpy array" },
    { "GGUF", 4, "a GGUF model" },
};

static bool looks_like_html(const uint8_t *head, size_t len)
{
    static const char *const starts[] = { "<!doctype html", "<html", "<?xml" };
    size_t at = 0;
    while (at < len && (head[at] == ' ' || head[at] == '\n' || head[at] == '\r' || head[at] == '\t'))
        at++;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t n = strlen(starts[i]);
        if (len - at >= n && strncasecmp((const char *)head + at, starts[i], n) == 0)
            return true;
    }
    return false;
}

static bool all_zero(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (head[i])
            return false;
    }
    return len > 0;
}

static const char *meaning_of(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < sizeof known_starts / sizeof known_starts[0]; i++) {
        if (begins_with(head, len, known_starts[i].bytes, known_starts[i].len))
            return known_starts[i].meaning;
    }
    if (looks_like_html(head, len))
        return "a web page, perhaps an error message saved in place of the file";
    if (all_zero(head, len))
        return "zeros, perhaps of a download or copy that was not finished";
    return NULL;
}

/* Same letters in another case, one byte off, or cut: worth saying, too little to be sure. */
static const char *resemblance(const coffer_format *format, const uint8_t *head, size_t len)
{
    size_t shared = len < format->magic_len ? len : format->magic_len, different = 0;
    for (size_t i = 0; i < shared; i++)
        different += head[i] != format->magic[i];
    if (len < format->magic_len)
        return len > 1 && different == 0 ? "it may be the beginning of" : NULL;
    if (strncasecmp((const char *)head, (const char *)format->magic, format->magic_len) == 0)
        return "in another case it would be";
    return different == 1 ? "one byte differs from the beginning of" : NULL;
}

/* ---- The message ---- */

static void add_first_bytes(coffer__buffer *text, const uint8_t *head, size_t len)
{
    size_t shown = len < SHOWN ? len : SHOWN;
    coffer__buffer_printf(text, "begins with");
    for (size_t i = 0; i < shown; i++)
        coffer__buffer_printf(text, " %02x", head[i]);
    coffer__buffer_printf(text, " \"");
    for (size_t i = 0; i < shown; i++)
        coffer__buffer_printf(text, "%c", head[i] >= 0x20 && head[i] < 0x7f ? head[i] : '.');
    coffer__buffer_printf(text, "\"");
}

static void add_known_formats(coffer__buffer *text)
{
    coffer__buffer_printf(text, "; known formats:");
    for (size_t i = 0; i < coffer_format_count(); i++)
        coffer__buffer_printf(text, "%s %s", i ? "," : "", coffer_format_at(i)->name);
    coffer__buffer_printf(text, ", and those of other programs");
}

static coffer_status fail_not_recognized(const uint8_t *head, size_t len, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    const char *meaning = meaning_of(head, len);
    coffer_status status;

    if (len == 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "the file is empty");
    if (meaning)
        coffer__buffer_printf(&text, "this is %s (it ", meaning);
    add_first_bytes(&text, head, len);
    if (meaning)
        coffer__buffer_printf(&text, ")");
    for (size_t i = 0; !meaning && i < coffer_format_count(); i++) {
        const char *words = resemblance(coffer_format_at(i), head, len);
        if (words)
            coffer__buffer_printf(&text, "; %s %s", words, coffer_format_at(i)->name);
    }
    add_known_formats(&text);
    status = text.failed ? coffer__fail_no_memory(err, HEAD_SIZE)
                         : coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "%s", coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return status;
}

coffer_status coffer__fail_magic(const coffer_format *format, const uint8_t *head, size_t len,
                                 coffer_error *err)
{
    const char *cause = mangled_by(format, head, len);
    if (cause)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "looks like a damaged %s file: %s", format->name,
                            cause);
    return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "not a %s file", format->name);
}

coffer_status coffer_identify(const coffer_format **out, coffer_source *src, coffer_error *err)
{
    uint8_t head[HEAD_SIZE];
    uint64_t size = coffer_source_size(src);
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    coffer_status status = coffer_source_read_at(head, src, 0, len, err);
    if (status)
        return status;
    for (size_t i = 0; i < coffer_format_count(); i++) {
        if (coffer_format_at(i)->probe(head, len)) {
            *out = coffer_format_at(i);
            return COFFER_OK;
        }
    }
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const char *cause = mangled_by(coffer_format_at(i), head, len);
        if (cause)
            return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "looks like a damaged %s file: %s",
                                coffer_format_at(i)->name, cause);
    }
    return fail_not_recognized(head, len, err);
}
