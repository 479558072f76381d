#include "io/remote/sigv4.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define HASH crypto_auth_hmacsha256_BYTES
#define MAX_PARAMETERS 256

typedef struct parameter {
    const char *text;
    size_t len;
} parameter;

static void add_text(coffer__buffer *out, const char *text)
{
    coffer__buffer_append(out, text, strlen(text));
}

/* '=' sorts before every character of a name, so that whole parameters can be compared. */
static int compare_parameters(const void *a, const void *b)
{
    const parameter *x = a, *y = b;
    size_t x_name = strcspn(x->text, "=&"), y_name = strcspn(y->text, "=&");
    int order = memcmp(x->text, y->text, x_name < y_name ? x_name : y_name);
    if (order || x_name != y_name)
        return order ? order : x_name < y_name ? -1 : 1;
    size_t shorter = x->len < y->len ? x->len : y->len;
    order = memcmp(x->text, y->text, shorter);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* Parameters sorted by name, each with a '='. */
static coffer_status add_query(coffer__buffer *out, const char *query, coffer_error *err)
{
    parameter found[MAX_PARAMETERS];
    size_t count = 0;
    while (query && *query) {
        size_t len = strcspn(query, "&");
        if (count == MAX_PARAMETERS)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "the URL has more than %d parameters", MAX_PARAMETERS);
        if (len)
            found[count++] = (parameter){ query, len };
        query += len + (query[len] == '&');
    }
    qsort(found, count, sizeof found[0], compare_parameters);
    for (size_t i = 0; i < count; i++) {
        if (i)
            add_text(out, "&");
        coffer__buffer_append(out, found[i].text, found[i].len);
        if (!memchr(found[i].text, '=', found[i].len))
            add_text(out, "=");
    }
    return COFFER_OK;
}

static void add_signed_names(coffer__buffer *out, const coffer__sigv4_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        coffer__buffer_printf(out, "%s%s", i ? ";" : "", request->headers[i].name);
}

static coffer_status canonical_request(coffer__buffer *out, const coffer__sigv4_request *request,
                                       coffer_error *err)
{
    coffer__buffer_printf(out, "%s\n%s\n", request->method, request->path);
    coffer_status status = add_query(out, request->query, err);
    if (status)
        return status;
    add_text(out, "\n");
    for (size_t i = 0; i < request->header_count; i++)
        coffer__buffer_printf(out, "%s:%s\n", request->headers[i].name, request->headers[i].value);
    add_text(out, "\n");
    add_signed_names(out, request);
    coffer__buffer_printf(out, "\n%s", request->payload_hash);
    return out->failed ? coffer__fail_no_memory(err, out->len) : COFFER_OK;
}

static void mac(uint8_t out[HASH], const void *key, size_t key_len, const char *text, size_t len)
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, key_len);
    crypto_auth_hmacsha256_update(&state, (const uint8_t *)text, len);
    crypto_auth_hmacsha256_final(&state, out);
    sodium_memzero(&state, sizeof state);
}

static coffer_status signing_key(uint8_t key[HASH], const coffer__sigv4_request *request, coffer_error *err)
{
    coffer__buffer first = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&first, "AWS4%s", request->secret);
    if (first.failed)
        return coffer__fail_no_memory(err, strlen(request->secret));
    mac(key, first.data, first.len, request->date, 8);
    mac(key, key, HASH, request->region, strlen(request->region));
    mac(key, key, HASH, request->service, strlen(request->service));
    mac(key, key, HASH, "aws4_request", strlen("aws4_request"));
    sodium_memzero(first.data, first.len);
    coffer__buffer_free(&first);
    return COFFER_OK;
}

static void hex(char *out, const uint8_t hash[HASH])
{
    sodium_bin2hex(out, COFFER__SIGV4_HASH_HEX + 1, hash, HASH);
}

void coffer__sigv4_hash(char out[COFFER__SIGV4_HASH_HEX + 1], const void *bytes, size_t len)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, bytes, len);
    hex(out, hash);
}

void coffer__sigv4_format_date(char out[COFFER__SIGV4_DATE + 1], time_t when)
{
    struct tm parts;
    gmtime_r(&when, &parts);
    strftime(out, COFFER__SIGV4_DATE + 1, "%Y%m%dT%H%M%SZ", &parts);
}

static coffer_status string_to_sign(coffer__buffer *out, const coffer__sigv4_request *request,
                                    coffer_error *err)
{
    coffer__buffer canonical = COFFER__BUFFER_INIT;
    char digest[COFFER__SIGV4_HASH_HEX + 1];
    coffer_status status = canonical_request(&canonical, request, err);
    if (!status) {
        coffer__sigv4_hash(digest, canonical.data, canonical.len);
        coffer__buffer_printf(out, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", request->date,
                              request->date, request->region, request->service, digest);
        if (out->failed)
            status = coffer__fail_no_memory(err, out->len);
    }
    coffer__buffer_free(&canonical);
    return status;
}

coffer_status coffer__sigv4_sign(char **out, const coffer__sigv4_request *request, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT, value = COFFER__BUFFER_INIT;
    uint8_t key[HASH];
    char signature[COFFER__SIGV4_HASH_HEX + 1];
    coffer_status status = string_to_sign(&text, request, err);
    if (!status)
        status = signing_key(key, request, err);
    if (status)
        goto out;
    mac(key, key, HASH, (const char *)text.data, text.len);
    hex(signature, key);
    coffer__buffer_printf(&value, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=",
                          request->key_id, request->date, request->region, request->service);
    add_signed_names(&value, request);
    coffer__buffer_printf(&value, ",Signature=%s", signature);
    coffer__buffer_append(&value, "", 1);
    if (value.failed)
        status = coffer__fail_no_memory(err, value.len);
    else
        *out = (char *)coffer__buffer_release(&value, NULL);
out:
    sodium_memzero(key, sizeof key);
    coffer__buffer_free(&text);
    coffer__buffer_free(&value);
    return status;
}
