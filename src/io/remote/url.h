/* Addresses of remote files. */
#ifndef COFFER_IO_REMOTE_URL_H
#define COFFER_IO_REMOTE_URL_H

#include "coffer/error.h"

typedef struct coffer__url {
    char *scheme;  /* in lower case */
    char *user;    /* "name:password" with its escapes resolved; NULL for none */
    char *host;    /* in lower case; an IPv6 address keeps its brackets */
    char *path;    /* as it is written, "/" at least */
    char *query;   /* as it is written, without '?'; NULL for none */
    uint16_t port; /* 0 for none */
} coffer__url;

#define COFFER__URL_INIT                \
    {                                   \
        NULL, NULL, NULL, NULL, NULL, 0 \
    }

/* Parses scheme://[user@]host[:port][/path][?query][#fragment]; the fragment is left out. */
coffer_status coffer__url_parse(coffer__url *out, const char *text, coffer_error *err);
void coffer__url_free(coffer__url *url);
/* The text of a URL without user and query; NULL without memory. */
char *coffer__url_without_secrets(const coffer__url *url);
/* The text that is sent to the server: no user. NULL without memory. */
char *coffer__url_text(const coffer__url *url);
/* Resolves `reference`, the value of a Location header, against `base`. */
coffer_status coffer__url_resolve(coffer__url *out, const coffer__url *base, const char *reference,
                                  coffer_error *err);
/* The same scheme, host and port: credentials may be sent to both. */
bool coffer__url_same_origin(const coffer__url *a, const coffer__url *b);
/* Appends text with everything escaped but A-Z a-z 0-9 - . _ ~ and, where keep_slash, '/': what signatures
 * are made of. */
struct coffer__buffer;
void coffer__url_escape(struct coffer__buffer *out, const char *text, size_t len, bool keep_slash);
/* Resolves the escapes of len bytes in place; returns the new length. */
size_t coffer__url_unescape(char *text, size_t len);

#endif
