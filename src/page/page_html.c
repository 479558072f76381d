/* One HTML file: the script and the style of the pages, and the chunks as base64 in blocks that a browser
 * does not run. No text of a file is in it other than as base64. */
#include "base/fail.h"
#include "page/page.h"
#include "page/web_bundle.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define BASE64_ROOM(len) sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL)
#define HASH_TEXT BASE64_ROOM(crypto_hash_sha256_BYTES)

/* The room of one chunk's element around its base64. */
enum { CHUNK_ROOM = 200, FRAME_ROOM = 2000 };

bool coffer_page_is_available(void)
{
    return coffer__web_script_size > 0;
}

uint64_t coffer__page_frame_size(const coffer_chunks *chunks)
{
    return coffer__web_script_size + coffer__web_style_size + FRAME_ROOM +
           (uint64_t)CHUNK_ROOM * (chunks->count + 1);
}

static void put(coffer__buffer *out, const char *text)
{
    coffer__buffer_append(out, text, strlen(text));
}

static void put_hash(coffer__buffer *out, const uint8_t *bytes, size_t size)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[HASH_TEXT];
    crypto_hash_sha256(hash, bytes, size);
    sodium_bin2base64(text, sizeof text, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
    coffer__buffer_printf(out, "'sha256-%s'", text);
}

static void put_base64(coffer__buffer *out, const uint8_t *bytes, size_t size)
{
    size_t room = BASE64_ROOM(size);
    uint8_t *text = coffer__buffer_extend(out, room);
    if (!text)
        return;
    sodium_bin2base64((char *)text, room, bytes, size, sodium_base64_VARIANT_ORIGINAL);
    out->len--; /* the NUL */
}

static void put_head(coffer__buffer *out)
{
    put(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src ");
    put_hash(out, coffer__web_script, coffer__web_script_size);
    put(out, "; style-src ");
    put_hash(out, coffer__web_style, coffer__web_style_size);
    put(out, "; img-src data: blob:; media-src blob:; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n"
             "<title>Coffer report</title>\n<style>");
    coffer__buffer_append(out, coffer__web_style, coffer__web_style_size);
    put(out,
        "</style>\n</head>\n<body>\n<div id=\"page\"></div>\n"
        "<noscript>This report is drawn by a script that it contains. 'coffer info' prints the same facts."
        "</noscript>\n");
}

static void put_chunk(coffer__buffer *out, const coffer__chunk *item)
{
    const coffer_chunk *shown = &item->shown;
    coffer__buffer_printf(out,
                          "<script type=\"application/octet-stream\" data-name=\"%s\" data-type=\"%s\" "
                          "data-count=\"%" PRIu64 "\" data-codec=\"%s\">",
                          shown->name, coffer_chunk_type_name(shown->type), shown->count,
                          item->packed ? "deflate-raw" : "none");
    put_base64(out, item->packed ? item->packed : shown->data,
               item->packed ? item->packed_size : shown->size);
    put(out, "</script>\n");
}

coffer_status coffer_page_write(coffer_bytes *out, const coffer_chunks *chunks, coffer_error *err)
{
    coffer__buffer html = COFFER__BUFFER_INIT;
    if (!coffer_page_is_available())
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "this build of Coffer does not contain the script of its pages; install node and npm, "
            "run 'npm ci' in web/ and build again");
    if (sodium_init() < 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "libsodium could not be initialized");
    put_head(&html);
    for (size_t i = 0; i < chunks->count; i++)
        put_chunk(&html, &chunks->items[i]);
    put(&html, "<script>");
    coffer__buffer_append(&html, coffer__web_script, coffer__web_script_size);
    put(&html, "</script>\n</body>\n</html>\n");
    if (html.failed) {
        coffer_status status = coffer__fail_no_memory(err, html.len);
        coffer__buffer_free(&html);
        return status;
    }
    coffer_free(out->data);
    out->capacity = html.capacity;
    out->data = coffer__buffer_release(&html, &out->size);
    return COFFER_OK;
}
