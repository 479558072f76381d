#include "io/remote/address.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/remote/remote.h"
#include "io/remote/sigv4.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void coffer__remote_address_free(coffer__remote_address *address)
{
    coffer__free(address->shown);
    coffer__url_free(&address->url);
    if (address->authorization)
        sodium_memzero(address->authorization, strlen(address->authorization));
    coffer__free(address->authorization);
    coffer__aws_settings_free(&address->aws);
    memset(address, 0, sizeof *address);
}

/* "Authorization: Basic …" from the user of a URL. */
static coffer_status basic_authorization(char **out, const char *user, coffer_error *err)
{
    size_t len = strlen(user);
    size_t coded = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
    static const char prefix[] = "Authorization: Basic ";
    char *line = coffer__malloc(sizeof prefix + coded);
    if (!line)
        return coffer__fail_no_memory(err, coded);
    memcpy(line, prefix, sizeof prefix);
    sodium_bin2base64(line + sizeof prefix - 1, coded, (const uint8_t *)user, len,
                      sodium_base64_VARIANT_ORIGINAL);
    *out = line;
    return COFFER_OK;
}

static coffer_status parse_http(coffer__remote_address *address, const char *text, coffer_error *err)
{
    coffer_status status = coffer__url_parse(&address->url, text, err);
    if (!status && address->url.user)
        status = basic_authorization(&address->authorization, address->url.user, err);
    if (status)
        return status;
    address->shown = coffer__url_without_secrets(&address->url);
    return address->shown ? COFFER_OK : coffer__fail_no_memory(err, strlen(text));
}

/* The URL of a bucket's key at an endpoint. */
static coffer_status place_key(coffer__remote_address *address, const char *bucket, size_t bucket_len,
                               const char *key, coffer_error *err)
{
    const coffer__aws_settings *aws = &address->aws;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__url endpoint = COFFER__URL_INIT;
    coffer_status status = COFFER_OK;
    /* A dot in a bucket's name does not fit Amazon's certificates. */
    bool in_path = aws->path_style || memchr(bucket, '.', bucket_len);
    if (aws->endpoint)
        status = coffer__url_parse(&endpoint, aws->endpoint, err);
    if (status)
        return coffer__fail_prefix(err, status, "AWS_ENDPOINT_URL");
    int shown = (int)bucket_len;
    coffer__buffer_printf(&text, "%s://", aws->endpoint ? endpoint.scheme : "https");
    if (!in_path)
        coffer__buffer_printf(&text, "%.*s.", shown, bucket);
    if (aws->endpoint)
        coffer__buffer_printf(&text, "%s", endpoint.host);
    else
        coffer__buffer_printf(&text, "s3.%s.amazonaws.com", aws->region);
    if (endpoint.port)
        coffer__buffer_printf(&text, ":%u", (unsigned)endpoint.port);
    if (aws->endpoint && strcmp(endpoint.path, "/") != 0)
        coffer__buffer_append(&text, endpoint.path, strlen(endpoint.path));
    coffer__buffer_append(&text, "/", 1);
    if (in_path)
        coffer__buffer_printf(&text, "%.*s/", shown, bucket);
    size_t key_at = text.len;
    coffer__url_escape(&text, key, strlen(key), true);
    size_t key_len = text.len - key_at;
    coffer__url_free(&endpoint);
    status = text.failed ? coffer__fail_no_memory(err, text.len)
                         : coffer__url_parse(&address->url, coffer__buffer_text(&text), err);
    if (!status)
        address->bucket_len = strlen(address->url.path) - key_len - 1;
    coffer__buffer_free(&text);
    return status;
}

/* s3://bucket/key; the key is taken as it is, whatever characters it has. */
static coffer_status parse_s3(coffer__remote_address *address, const char *text, coffer_error *err)
{
    const char *bucket = text + strlen("s3://");
    size_t bucket_len = strcspn(bucket, "/");
    if (bucket_len == 0 || bucket_len > 255 || bucket[bucket_len] != '/' || !bucket[bucket_len + 1])
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "an address of S3 is s3://bucket/key");
    address->is_s3 = true;
    coffer_status status = coffer__aws_settings_load(&address->aws, err);
    if (!status)
        status = place_key(address, bucket, bucket_len, bucket + bucket_len + 1, err);
    if (status)
        return status;
    address->shown = coffer__strdup(text);
    return address->shown ? COFFER_OK : coffer__fail_no_memory(err, strlen(text));
}

/* "Authorization: Bearer …" from HF_TOKEN, or the file that the hub's own program writes. */
static coffer_status hub_authorization(char **out, coffer_error *err)
{
    const char *token = getenv("HF_TOKEN"), *home = getenv("HF_HOME");
    coffer__buffer line = COFFER__BUFFER_INIT, path = COFFER__BUFFER_INIT;
    char kept[512] = "";
    if (!token && (home || getenv("HOME"))) {
        coffer__buffer_printf(&path, "%s%s", home ? home : getenv("HOME"),
                              home ? "/token" : "/.cache/huggingface/token");
        int fd = coffer__file_try_open(coffer__buffer_text(&path), O_RDONLY, 0);
        size_t got = 0;
        if (fd >= 0) {
            coffer__ignore(coffer__file_read_some(fd, kept, sizeof kept - 1, &got, NULL, NULL));
            coffer__file_close(fd);
        }
        kept[got] = '\0';
        token = kept;
    }
    size_t len = token ? strcspn(token, " \t\r\n") : 0;
    if (len) {
        coffer__buffer_printf(&line, "Authorization: Bearer %.*s", (int)len, token);
        coffer__buffer_append(&line, "", 1);
    }
    bool failed = line.failed || path.failed;
    sodium_memzero(kept, sizeof kept);
    coffer__buffer_free(&path);
    if (failed)
        coffer__buffer_free(&line);
    *out = len && !failed ? (char *)coffer__buffer_release(&line, NULL) : NULL;
    return failed ? coffer__fail_no_memory(err, len) : COFFER_OK;
}

/* hf://[datasets/]organisation/name[@revision]/file */
static coffer_status parse_hub(coffer__remote_address *address, const char *text, coffer_error *err)
{
    const char *name = text + strlen("hf://"), *host = getenv("HF_ENDPOINT");
    size_t kind = strncmp(name, "datasets/", 9) == 0 ? 9 : strncmp(name, "spaces/", 7) == 0 ? 7 : 0;
    const char *organisation = name + kind;
    size_t first = strcspn(organisation, "/");
    const char *model = organisation[first] ? organisation + first + 1 : "";
    size_t model_len = strcspn(model, "@/"), whole = strcspn(model, "/");
    const char *file = model[whole] ? model + whole + 1 : "";
    if (first == 0 || model_len == 0 || !*file)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "an address of the hub is hf://organisation/model/file");
    coffer__buffer url = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&url, "%s/%.*s%.*s/%.*s/resolve/", host && *host ? host : "https://huggingface.co",
                          (int)kind, name, (int)first, organisation, (int)model_len, model);
    if (model_len < whole) {
        coffer__url_escape(&url, model + model_len + 1, whole - model_len - 1, false);
    } else {
        coffer__buffer_append(&url, "main", 4);
    }
    coffer__buffer_append(&url, "/", 1);
    coffer__url_escape(&url, file, strlen(file), true);
    coffer_status status = url.failed ? coffer__fail_no_memory(err, url.len)
                                      : coffer__url_parse(&address->url, coffer__buffer_text(&url), err);
    coffer__buffer_free(&url);
    if (!status)
        status = hub_authorization(&address->authorization, err);
    if (status)
        return status;
    address->shown = coffer__strdup(text);
    return address->shown ? COFFER_OK : coffer__fail_no_memory(err, strlen(text));
}

coffer_status coffer__remote_address_parse(coffer__remote_address *out, const char *text, coffer_error *err)
{
    coffer__remote_address address = { 0 };
    coffer_status status;
    if (sodium_init() < 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "libsodium cannot be used");
    if (strncmp(text, "s3://", 5) == 0)
        status = parse_s3(&address, text, err);
    else if (strncmp(text, "hf://", 5) == 0)
        status = parse_hub(&address, text, err);
    else
        status = parse_http(&address, text, err);
    if (status)
        coffer__remote_address_free(&address);
    else
        *out = address;
    return status;
}

void coffer__remote_request_free(coffer__remote_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        coffer__free(request->headers[i]);
    coffer__free(request->url);
    memset(request, 0, sizeof *request);
}

coffer_status coffer__remote_request_add(coffer__remote_request *request, coffer_error *err,
                                         const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (len >= 0 && request->header_count < COFFER__MAX_REQUEST_HEADERS)
        line = coffer__malloc((size_t)len + 1);
    if (!line)
        return coffer__fail_no_memory(err, len < 0 ? 0 : (size_t)len);
    va_start(arguments, format);
    vsnprintf(line, (size_t)len + 1, format, arguments);
    va_end(arguments);
    request->headers[request->header_count++] = line;
    return COFFER_OK;
}

/* The value of the header Host: the port belongs to it unless it is the scheme's own. */
static void host_of(char *out, size_t size, const coffer__url *url)
{
    bool standard = !url->port || url->port == (strcmp(url->scheme, "https") == 0 ? 443 : 80);
    if (standard)
        snprintf(out, size, "%s", url->host);
    else
        snprintf(out, size, "%s:%u", url->host, (unsigned)url->port);
}

static int compare_headers(const void *a, const void *b)
{
    const coffer__sigv4_header *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The headers of a signed request, sorted; the caller adds what the request is about. */
static coffer_status add_s3_headers(coffer__remote_request *request, const coffer__remote_address *address,
                                    const coffer__url *url, const coffer__request_line *line, time_t now,
                                    coffer_error *err)
{
    const coffer__aws_settings *aws = &address->aws;
    char host[300], date[COFFER__SIGV4_DATE + 1], empty[COFFER__SIGV4_HASH_HEX + 1];
    char *authorization = NULL;
    coffer__sigv4_header headers[5 + COFFER__MAX_LINE_HEADERS];
    size_t count = 0;
    coffer__sigv4_hash(empty, "", 0);
    const char *payload_hash = line->payload_hash ? line->payload_hash : empty;
    coffer__sigv4_format_date(date, now);
    host_of(host, sizeof host, url);
    headers[count++] = (coffer__sigv4_header){ "host", host };
    headers[count++] = (coffer__sigv4_header){ "x-amz-content-sha256", payload_hash };
    headers[count++] = (coffer__sigv4_header){ "x-amz-date", date };
    if (aws->requester_pays)
        headers[count++] = (coffer__sigv4_header){ "x-amz-request-payer", "requester" };
    if (aws->token)
        headers[count++] = (coffer__sigv4_header){ "x-amz-security-token", aws->token };
    for (size_t i = 0; i < line->header_count && i < COFFER__MAX_LINE_HEADERS; i++)
        headers[count++] = line->headers[i];
    qsort(headers, count, sizeof headers[0], compare_headers);
    coffer__sigv4_request what = {
        .method = line->method,
        .path = url->path,
        .query = url->query,
        .headers = headers,
        .header_count = count,
        .payload_hash = payload_hash,
        .date = date,
        .region = aws->region,
        .service = "s3",
        .key_id = aws->key_id,
        .secret = aws->secret,
    };
    coffer_status status = coffer__sigv4_sign(&authorization, &what, err);
    for (size_t i = 0; i < count && !status; i++)
        if (strcmp(headers[i].name, "host") != 0)
            status = coffer__remote_request_add(request, err, "%s: %s", headers[i].name, headers[i].value);
    if (!status)
        status = coffer__remote_request_add(request, err, "Authorization: %s", authorization);
    coffer__free(authorization);
    return status;
}

static coffer_status add_plain_headers(coffer__remote_request *request, const coffer__remote_address *address,
                                       bool at_home, const coffer__request_line *line, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < line->header_count && !status; i++)
        status =
            coffer__remote_request_add(request, err, "%s: %s", line->headers[i].name, line->headers[i].value);
    if (!status && at_home && address->authorization)
        status = coffer__remote_request_add(request, err, "%s", address->authorization);
    return status;
}

coffer_status coffer__remote_request_make(coffer__remote_request *out, const coffer__remote_address *address,
                                          const coffer__url *url, const coffer__request_line *line,
                                          time_t now, coffer_error *err)
{
    coffer__remote_request request = { 0 };
    coffer_status status;
    bool at_home = coffer__url_same_origin(url, &address->url);
    request.url = coffer__url_text(url);
    if (!request.url)
        return coffer__fail_no_memory(err, strlen(url->path));
    if (at_home && address->is_s3 && address->aws.key_id)
        status = add_s3_headers(&request, address, url, line, now, err);
    else
        status = add_plain_headers(&request, address, at_home, line, err);
    if (status)
        coffer__remote_request_free(&request);
    else
        *out = request;
    return status;
}
