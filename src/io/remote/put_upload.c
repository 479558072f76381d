/* The requests around an upload of parts: begin, list, complete, abort. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/remote/put.h"
#include "io/remote/s3_xml.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* "uploadId=…", and what comes before it. */
static char *id_query(const char *before, const char *upload_id)
{
    coffer__buffer query = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&query, "%suploadId=", before);
    coffer__url_escape(&query, upload_id, strlen(upload_id), false);
    coffer__buffer_append(&query, "", 1);
    char *text = query.failed ? NULL : (char *)coffer__buffer_release(&query, NULL);
    coffer__buffer_free(&query);
    return text;
}

static coffer__xml_part reply_of(coffer__s3_call *call)
{
    return (coffer__xml_part){ coffer__buffer_text(&call->reply), call->reply.len };
}

coffer_status coffer__put_abort_upload(coffer__s3_client *client, const char *upload_id, coffer_error *err)
{
    char *query = id_query("", upload_id);
    if (!query)
        return coffer__fail_no_memory(err, strlen(upload_id));
    coffer__s3_call call = { .method = "DELETE", .query = query };
    coffer_status status = coffer__s3_ask(client, &call, err);
    if (!status && call.answer.status / 100 != 2 && call.answer.status != 404)
        status = coffer__s3_fail(&call, "the server cannot remove the parts", err);
    coffer__s3_call_free(client, &call);
    coffer__free(query);
    return status;
}

static coffer_status create(coffer__put *put, coffer_error *err)
{
    coffer__s3_call call = { .method = "POST",
                             .query = "uploads=",
                             .body = "",
                             .headers = { { "x-amz-checksum-algorithm", "SHA256" } },
                             .header_count = 1 };
    coffer_status status = coffer__s3_ask(&put->client, &call, err);
    put->upload_id[0] = '\0';
    if (!status && call.answer.status != 200)
        status = coffer__s3_fail(&call, "the server does not begin an upload", err);
    if (!status && (!coffer__xml_text(put->upload_id, sizeof put->upload_id, reply_of(&call), "UploadId") ||
                    !put->upload_id[0] || strpbrk(put->upload_id, " \t")))
        status = coffer__fail_output(err, coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                                                       "the server began an upload without a usable ID"));
    put->uses_md5 = !call.answer.has_checksums;
    coffer__s3_call_free(&put->client, &call);
    return status ? status : coffer__put_state_save(put, err);
}

/* Keeps what the server says about parts; what makes no sense is sent again. */
static void take_parts(coffer__put *put, coffer__xml_part list)
{
    coffer__xml_part entry;
    while (coffer__xml_next(&entry, &list, "Part")) {
        uint64_t number;
        if (!coffer__xml_number(&number, entry, "PartNumber") || number < 1 || number > put->count)
            continue;
        coffer__put_part *part = &put->parts[number - 1];
        if (!coffer__xml_number(&part->found_size, entry, "Size") ||
            !coffer__xml_text(part->found_sha, sizeof part->found_sha, entry, "ChecksumSHA256") ||
            !coffer__xml_text(part->etag, sizeof part->etag, entry, "ETag"))
            part->etag[0] = '\0';
    }
}

/* One page of ListParts. *marker : the part it begins after, then that of the next page; 0 at the end. */
static coffer_status list_page(coffer__put *put, uint64_t *marker, bool *gone, coffer_error *err)
{
    char before[64];
    snprintf(before, sizeof before, "max-parts=1000&part-number-marker=%" PRIu64 "&", *marker);
    char *query = id_query(before, put->upload_id);
    if (!query)
        return coffer__fail_no_memory(err, sizeof before);
    coffer__s3_call call = { .method = "GET", .query = query };
    coffer_status status = coffer__s3_ask(&put->client, &call, err);
    *gone = !status && call.answer.status == 404;
    if (!status && !*gone && call.answer.status != 200)
        status = coffer__s3_fail(&call, "the server cannot list the parts of the earlier upload", err);
    uint64_t next = 0;
    if (!status && !*gone) {
        take_parts(put, reply_of(&call));
        if (coffer__xml_is_true(reply_of(&call), "IsTruncated") &&
            (!coffer__xml_number(&next, reply_of(&call), "NextPartNumberMarker") || next <= *marker))
            next = 0;
    }
    *marker = next;
    coffer__s3_call_free(&put->client, &call);
    coffer__free(query);
    return status;
}

static coffer_status find_parts(coffer__put *put, bool *gone, coffer_error *err)
{
    uint64_t marker = 0;
    coffer_status status;
    do
        status = list_page(put, &marker, gone, err);
    while (!status && !*gone && marker);
    return status;
}

coffer_status coffer__put_begin(coffer__put *put, coffer_error *err)
{
    bool gone = true;
    put->parts = coffer__calloc(put->count, sizeof *put->parts);
    if (!put->parts)
        return coffer__fail_no_memory(err, put->count * sizeof *put->parts);
    coffer_status status = COFFER_OK;
    if (put->state.is_used && put->state.part_size == put->part_size)
        status = find_parts(put, &gone, err);
    else if (put->state.is_used)
        coffer__ignore(coffer__put_abort_upload(&put->client, put->upload_id, NULL));
    return !status && gone ? create(put, err) : status;
}

/* The checksums of a joined object agree; some servers leave out the number of parts at the end. */
static bool same_checksum(const char *found, const char *expected)
{
    size_t len = strcspn(found, "-");
    return len > 0 && len == strcspn(expected, "-") && memcmp(found, expected, len) == 0;
}

/* The checksum and the ETag of an object that is made of these parts. etag : "" when it cannot be predicted.
 */
static void expect(const coffer__put *put, char checksum[96], coffer__put_etag etag)
{
    crypto_hash_sha256_state state;
    uint8_t sha[COFFER__PUT_SHA_SIZE], md5[COFFER__MD5_SIZE];
    char text[64];
    coffer__buffer sums = COFFER__BUFFER_INIT;
    crypto_hash_sha256_init(&state);
    for (uint32_t i = 0; i < put->count; i++) {
        const char *part = put->parts[i].etag;
        size_t len = 0;
        crypto_hash_sha256_update(&state, put->parts[i].sha, sizeof put->parts[i].sha);
        if (part[0] != '"' ||
            sodium_hex2bin(md5, sizeof md5, part + 1, strcspn(part + 1, "\""), NULL, &len, NULL) ||
            len != sizeof md5)
            sums.failed = true;
        coffer__buffer_append(&sums, md5, sizeof md5);
    }
    crypto_hash_sha256_final(&state, sha);
    sodium_bin2base64(text, sizeof text, sha, sizeof sha, sodium_base64_VARIANT_ORIGINAL);
    snprintf(checksum, 96, "%s-%" PRIu32, text, put->count);
    etag[0] = '\0';
    if (!sums.failed) {
        coffer__md5(md5, sums.data, sums.len);
        sodium_bin2hex(text, sizeof text, md5, sizeof md5);
        snprintf(etag, sizeof(coffer__put_etag), "\"%.32s-%" PRIu32 "\"", text, put->count);
    }
    coffer__buffer_free(&sums);
}

static void make_list(coffer__buffer *out, const coffer__put *put)
{
    coffer__buffer_printf(out, "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < put->count; i++) {
        char sha[48];
        sodium_bin2base64(sha, sizeof sha, put->parts[i].sha, sizeof put->parts[i].sha,
                          sodium_base64_VARIANT_ORIGINAL);
        coffer__buffer_printf(out, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>", i + 1);
        coffer__xml_escape(out, put->parts[i].etag);
        coffer__buffer_printf(out, "</ETag>");
        if (!put->uses_md5)
            coffer__buffer_printf(out, "<ChecksumSHA256>%s</ChecksumSHA256>", sha);
        coffer__buffer_printf(out, "</Part>");
    }
    coffer__buffer_printf(out, "</CompleteMultipartUpload>");
}

/* The request may have been repeated, here or in curl, because the answer to the first one was lost: then the
 * object is there, with our parts. */
static coffer_status take_lost_answer(coffer__put *put, coffer__s3_call *call, coffer_error *err)
{
    coffer__http_answer found;
    bool exists = false;
    char checksum[96];
    coffer__put_etag etag;
    coffer_status status = coffer__put_look(put, &found, &exists, err);
    if (status)
        return status;
    expect(put, checksum, etag);
    bool is_ours = exists && found.length == put->size &&
                   (same_checksum(found.checksum, checksum) || (etag[0] && strcmp(found.etag, etag) == 0));
    if (is_ours) {
        memcpy(put->etag, found.etag, sizeof found.etag);
        memcpy(put->checksum, found.checksum, sizeof found.checksum);
        return COFFER_OK;
    }
    return exists && !put->overwrite ? coffer__put_fail_exists(err)
                                     : coffer__s3_fail(call, "the server cannot join the parts", err);
}

static coffer_status take_completion(coffer__put *put, coffer__s3_call *call, coffer_error *err)
{
    coffer__xml_part reply = reply_of(call);
    char checksum[96];
    coffer__put_etag etag;
    expect(put, checksum, etag);
    if (!coffer__xml_text(put->etag, sizeof put->etag, reply, "ETag") ||
        !coffer__xml_text(put->checksum, sizeof put->checksum, reply, "ChecksumSHA256"))
        put->checksum[0] = '\0';
    if (put->checksum[0] && !same_checksum(put->checksum, checksum))
        return coffer__fail_output(
            err, coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                              "the server joined other parts than were sent (SHA-256 %s)", put->checksum));
    return COFFER_OK;
}

static coffer_status ask_completion(coffer__put *put, const coffer__buffer *list, const char *query,
                                    bool only_new, coffer_error *err)
{
    char hash[COFFER__SIGV4_HASH_HEX + 1];
    coffer__sigv4_hash(hash, list->data, list->len);
    coffer__s3_call call = { .method = "POST",
                             .query = query,
                             .body = list->data,
                             .body_len = list->len,
                             .payload_hash = hash,
                             .only_new = only_new,
                             .is_slow = true };
    coffer_status status = coffer__s3_ask(&put->client, &call, err);
    int answer = call.answer.status;
    if (!status && answer == 501 && only_new) {
        coffer__s3_call_free(&put->client, &call);
        return ask_completion(put, list, query, false, err);
    }
    if (!status && answer == 200)
        status = take_completion(put, &call, err);
    else if (!status && (answer == 412 || answer == 404))
        status = take_lost_answer(put, &call, err);
    else if (!status)
        status = coffer__s3_fail(&call, "the server cannot join the parts", err);
    coffer__s3_call_free(&put->client, &call);
    return status;
}

coffer_status coffer__put_complete(coffer__put *put, coffer_error *err)
{
    coffer__buffer list = COFFER__BUFFER_INIT;
    char *query = id_query("", put->upload_id);
    make_list(&list, put);
    coffer_status status = !query || list.failed ? coffer__fail_no_memory(err, list.len)
                                                 : ask_completion(put, &list, query, !put->overwrite, err);
    coffer__buffer_free(&list);
    coffer__free(query);
    return status;
}
