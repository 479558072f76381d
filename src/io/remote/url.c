#include "io/remote/url.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/source.h"

#include <stdlib.h>
#include <string.h>

#define MAX_URL 8192

static const char *const schemes[] = { "http://", "https://", "s3://", "hf://" };

bool coffer_is_remote(const char *path)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(path, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

void coffer__url_free(coffer__url *url)
{
    coffer__free(url->scheme);
    coffer__free(url->user);
    coffer__free(url->host);
    coffer__free(url->path);
    coffer__free(url->query);
    *url = (coffer__url)COFFER__URL_INIT;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char *lower_copy(const char *text, size_t len)
{
    char *copy = coffer__strndup(text, len);
    for (size_t i = 0; copy && i < len; i++)
        copy[i] = lower(copy[i]);
    return copy;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

size_t coffer__url_unescape(char *text, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%' && i + 2 < len && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            text[to++] = (char)(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            text[to++] = text[i];
        }
    }
    text[to] = '\0';
    return to;
}

void coffer__url_escape(struct coffer__buffer *out, const char *text, size_t len, bool keep_slash)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~' || (keep_slash && c == '/');
        if (plain)
            coffer__buffer_append(out, &c, 1);
        else
            coffer__buffer_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

/* Neither control characters nor spaces: they would end a line of the request. */
static bool is_clean(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return true;
}

static coffer_status parse_port(uint16_t *out, const char *text, size_t len, coffer_error *err)
{
    unsigned long port = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || port > UINT16_MAX)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "the URL has a port that is not a number");
        port = port * 10 + (unsigned long)(text[i] - '0');
    }
    if (port > UINT16_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the URL has port %lu", port);
    *out = (uint16_t)port;
    return COFFER_OK;
}

/* [user@]host[:port] */
static coffer_status parse_authority(coffer__url *url, const char *text, size_t len, coffer_error *err)
{
    size_t at = len;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '@')
            at = i;
    if (at < len) {
        url->user = coffer__strndup(text, at);
        if (!url->user)
            return coffer__fail_no_memory(err, at + 1);
        coffer__url_unescape(url->user, at);
        text += at + 1;
        len -= at + 1;
    }
    size_t host = 0;
    bool bracket = len > 0 && text[0] == '[';
    while (host < len && (bracket || text[host] != ':')) {
        if (text[host] == ']')
            bracket = false;
        host++;
    }
    if (host < len) {
        coffer_status status = parse_port(&url->port, text + host + 1, len - host - 1, err);
        if (status)
            return status;
    }
    if (host == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the URL names no host");
    url->host = lower_copy(text, host);
    return url->host ? COFFER_OK : coffer__fail_no_memory(err, host + 1);
}

/* /path?query#fragment; may be empty. */
static coffer_status parse_rest(coffer__url *url, const char *text, coffer_error *err)
{
    size_t path = strcspn(text, "?#");
    url->path = path ? coffer__strndup(text, path) : coffer__strdup("/");
    if (url->path && text[path] == '?')
        url->query = coffer__strndup(text + path + 1, strcspn(text + path + 1, "#"));
    bool complete = url->path && (text[path] != '?' || url->query);
    return complete ? COFFER_OK : coffer__fail_no_memory(err, strlen(text) + 1);
}

coffer_status coffer__url_parse(coffer__url *out, const char *text, coffer_error *err)
{
    coffer__url url = COFFER__URL_INIT;
    const char *colon = strstr(text, "://");
    if (!colon || colon == text)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "not a URL");
    if (strlen(text) > MAX_URL)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the URL has more than %d characters", MAX_URL);
    if (!is_clean(text))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the URL has spaces or control characters; write a space as %%20");
    url.scheme = lower_copy(text, (size_t)(colon - text));
    if (!url.scheme)
        return coffer__fail_no_memory(err, (size_t)(colon - text) + 1);
    const char *authority = colon + 3;
    size_t len = strcspn(authority, "/?#");
    coffer_status status = parse_authority(&url, authority, len, err);
    if (!status)
        status = parse_rest(&url, authority + len, err);
    if (status)
        coffer__url_free(&url);
    else
        *out = url;
    return status;
}

static char *url_text(const coffer__url *url, bool with_query)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, "%s://%s", url->scheme, url->host);
    if (url->port)
        coffer__buffer_printf(&text, ":%u", (unsigned)url->port);
    coffer__buffer_append(&text, url->path, strlen(url->path));
    if (with_query && url->query)
        coffer__buffer_printf(&text, "?%s", url->query);
    coffer__buffer_append(&text, "", 1);
    if (text.failed) {
        coffer__buffer_free(&text);
        return NULL;
    }
    return (char *)coffer__buffer_release(&text, NULL);
}

char *coffer__url_without_secrets(const coffer__url *url)
{
    return url_text(url, false);
}

char *coffer__url_text(const coffer__url *url)
{
    return url_text(url, true);
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static uint16_t port_of(const coffer__url *url)
{
    return url->port ? url->port : same_text(url->scheme, "https") ? 443 : 80;
}

bool coffer__url_same_origin(const coffer__url *a, const coffer__url *b)
{
    return same_text(a->scheme, b->scheme) && same_text(a->host, b->host) && port_of(a) == port_of(b);
}

coffer_status coffer__url_resolve(coffer__url *out, const coffer__url *base, const char *reference,
                                  coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    size_t scheme = strcspn(reference, ":/?#");
    if (strncmp(reference + scheme, "://", 3) == 0)
        return coffer__url_parse(out, reference, err);
    coffer__buffer_printf(&text, "%s:", base->scheme);
    if (strncmp(reference, "//", 2) != 0) {
        coffer__buffer_printf(&text, "//%s", base->host);
        if (base->port)
            coffer__buffer_printf(&text, ":%u", (unsigned)base->port);
        if (reference[0] != '/')
            coffer__buffer_append(&text, base->path, (size_t)(strrchr(base->path, '/') - base->path) + 1);
    }
    coffer__buffer_append(&text, reference, strlen(reference));
    coffer_status status = text.failed ? coffer__fail_no_memory(err, strlen(reference))
                                       : coffer__url_parse(out, coffer__buffer_text(&text), err);
    coffer__buffer_free(&text);
    return status;
}
