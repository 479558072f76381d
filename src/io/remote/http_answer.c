#include "io/remote/http_answer.h"

#include <string.h>
#include <strings.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void trim(const char **text, size_t *len)
{
    while (*len && is_space(**text)) {
        ++*text;
        --*len;
    }
    while (*len && is_space((*text)[*len - 1]))
        --*len;
}

/* A whole number that ends at `end` at the latest; NULL where no digit is. */
static const char *parse_number(uint64_t *out, const char *text, const char *end)
{
    uint64_t value = 0;
    const char *at = text;
    while (at < end && *at >= '0' && *at <= '9') {
        unsigned digit = (unsigned)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return NULL;
        value = value * 10 + digit;
        at++;
    }
    *out = value;
    return at > text ? at : NULL;
}

/* Texts that are too long, or have bytes that could end a line of a request, count as missing. */
static void keep_text(char *out, size_t size, const char *text, size_t len)
{
    out[0] = '\0';
    if (len >= size)
        return;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] >= 0x7f)
            return;
    memcpy(out, text, len);
    out[len] = '\0';
}

static void parse_status(coffer__http_answer *answer, const char *line, size_t len)
{
    const char *space = memchr(line, ' ', len);
    uint64_t status = 0;
    *answer = (coffer__http_answer){ .header_bytes = answer->header_bytes };
    if (space && parse_number(&status, space + 1, line + len) == space + 4)
        answer->status = (int)status;
    else
        answer->malformed = true;
}

/* "bytes 0-99/1234", "bytes 0-99/" with an asterisk, or an asterisk and "/1234" */
static void parse_content_range(coffer__http_answer *answer, const char *text, size_t len)
{
    const char *end = text + len;
    answer->malformed = true;
    if (len < 6 || strncasecmp(text, "bytes ", 6) != 0)
        return;
    const char *at = text + 6;
    if (*at == '*') {
        at++;
    } else {
        at = parse_number(&answer->first, at, end);
        if (!at || at == end || *at != '-')
            return;
        at = parse_number(&answer->last, at + 1, end);
        if (!at || answer->last < answer->first)
            return;
        answer->has_range = true;
    }
    if (at == end || *at != '/')
        return;
    at++;
    if (at < end && *at == '*') {
        at++;
    } else {
        at = parse_number(&answer->total, at, end);
        if (!at)
            return;
        answer->has_total = true;
    }
    answer->malformed =
        at != end || (answer->has_total && answer->has_range && answer->last >= answer->total);
}

static void parse_length(coffer__http_answer *answer, const char *text, size_t len)
{
    uint64_t length = 0;
    bool is_number = parse_number(&length, text, text + len) == text + len;
    if (!is_number || (answer->has_length && answer->length != length))
        answer->malformed = true;
    answer->has_length = is_number;
    answer->length = length;
}

static void parse_retry_after(coffer__http_answer *answer, const char *text, size_t len)
{
    uint64_t seconds = 0;
    if (parse_number(&seconds, text, text + len) == text + len)
        answer->retry_after = seconds < 3600 ? (unsigned)seconds : 3600;
}

static bool is_named(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && strncasecmp(name, wanted, len) == 0;
}

static void take_field(coffer__http_answer *answer, const char *name, size_t name_len, const char *text,
                       size_t len)
{
    if (is_named(name, name_len, "Content-Length"))
        parse_length(answer, text, len);
    else if (is_named(name, name_len, "Content-Range"))
        parse_content_range(answer, text, len);
    else if (is_named(name, name_len, "Content-Encoding"))
        answer->encoded = !is_named(text, len, "identity");
    else if (is_named(name, name_len, "ETag"))
        keep_text(answer->etag, sizeof answer->etag, text, len);
    else if (is_named(name, name_len, "Last-Modified"))
        keep_text(answer->modified, sizeof answer->modified, text, len);
    else if (is_named(name, name_len, "Location"))
        keep_text(answer->location, sizeof answer->location, text, len);
    else if (is_named(name, name_len, "Retry-After"))
        parse_retry_after(answer, text, len);
    else if (is_named(name, name_len, "x-amz-request-id"))
        keep_text(answer->request_id, sizeof answer->request_id, text, len);
    else if (is_named(name, name_len, "x-amz-bucket-region"))
        keep_text(answer->region, sizeof answer->region, text, len);
    else if (is_named(name, name_len, "x-amz-checksum-sha256"))
        keep_text(answer->checksum, sizeof answer->checksum, text, len);
    else if (is_named(name, name_len, "x-amz-checksum-algorithm"))
        answer->has_checksums = is_named(text, len, "SHA256");
    else if (is_named(name, name_len, "x-amz-server-side-encryption") ||
             is_named(name, name_len, "x-amz-server-side-encryption-customer-algorithm"))
        answer->has_own_key = name_len > 28 || !is_named(text, len, "AES256");
}

bool coffer__http_answer_line(coffer__http_answer *answer, const char *line, size_t len)
{
    if (len > COFFER__HTTP_MAX_HEADER - answer->header_bytes)
        return false;
    answer->header_bytes += len;
    trim(&line, &len);
    if (len >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        parse_status(answer, line, len);
        return true;
    }
    const char *colon = memchr(line, ':', len);
    if (!colon)
        return true;
    const char *text = colon + 1;
    size_t text_len = len - (size_t)(text - line);
    trim(&text, &text_len);
    take_field(answer, line, (size_t)(colon - line), text, text_len);
    return true;
}

bool coffer__http_answer_has_strong_etag(const coffer__http_answer *answer)
{
    return answer->etag[0] == '"';
}
