/* The parts of an upload: read, hashed and sent, several at once. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "io/remote/put.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

void coffer__put_digest_of(coffer__put_digest *out, const void *bytes, size_t len, bool with_md5)
{
    uint8_t md5[COFFER__MD5_SIZE];
    coffer__sha256_of(out->raw, bytes, len);
    sodium_bin2hex(out->hex, sizeof out->hex, out->raw, sizeof out->raw);
    sodium_bin2base64(out->sha, sizeof out->sha, out->raw, sizeof out->raw, sodium_base64_VARIANT_ORIGINAL);
    out->md5[0] = out->etag[0] = '\0';
    if (!with_md5)
        return;
    coffer__md5(md5, bytes, len);
    sodium_bin2base64(out->md5, sizeof out->md5, md5, sizeof md5, sodium_base64_VARIANT_ORIGINAL);
    char digits[2 * COFFER__MD5_SIZE + 1];
    sodium_bin2hex(digits, sizeof digits, md5, sizeof md5);
    snprintf(out->etag, sizeof out->etag, "\"%s\"", digits);
}

/* An ETag that looks like an MD5. */
static bool is_md5(const char *etag)
{
    return strlen(etag) == 2 * COFFER__MD5_SIZE + 2 && etag[0] == '"' &&
           strspn(etag + 1, "0123456789abcdef") == (size_t)2 * COFFER__MD5_SIZE;
}

coffer_status coffer__put_check_stored(coffer__put *put, coffer__put_digest *digest, const void *bytes,
                                       size_t len, const coffer__http_answer *answer, uint32_t part,
                                       coffer_error *err)
{
    bool is_same = true;
    if (answer->checksum[0]) {
        is_same = strcmp(answer->checksum, digest->sha) == 0;
    } else if (is_md5(answer->etag) && !answer->has_own_key) {
        if (!digest->etag[0])
            coffer__put_digest_of(digest, bytes, len, true);
        is_same = strcmp(answer->etag, digest->etag) == 0;
        put->has_md5_only = true;
    } else {
        put->has_unverified = true;
    }
    if (is_same)
        return COFFER_OK;
    char where[40] = "";
    if (part)
        snprintf(where, sizeof where, " in part %" PRIu32, part);
    return coffer__fail_output(err, coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                                                 "the server stored other bytes than were sent%s (%s %.80s)",
                                                 where, answer->checksum[0] ? "SHA-256" : "ETag",
                                                 answer->checksum[0] ? answer->checksum : answer->etag));
}

/* A part on its way. */
typedef struct sending {
    coffer__s3_call call;
    coffer__put_digest digest;
    uint8_t *bytes;
    size_t len;
    char *query;
    uint32_t part; /* from 0 on */
    bool is_busy;
} sending;

typedef struct slots {
    sending *list;
    unsigned count;
} slots;

static void free_slots(slots *all, coffer__s3_client *client)
{
    for (unsigned i = 0; all->list && i < all->count; i++) {
        coffer__s3_call_free(client, &all->list[i].call);
        coffer__free(all->list[i].bytes);
        coffer__free(all->list[i].query);
    }
    coffer__free(all->list);
}

static coffer_status make_slots(slots *out, const coffer__put *put, coffer_error *err)
{
    out->count = put->parallel < put->count ? put->parallel : put->count;
    out->list = coffer__calloc(out->count, sizeof *out->list);
    bool complete = out->list != NULL;
    for (unsigned i = 0; complete && i < out->count; i++) {
        out->list[i].bytes = coffer__malloc((size_t)put->part_size);
        complete = out->list[i].bytes != NULL;
    }
    return complete ? COFFER_OK : coffer__fail_no_memory(err, out->count * put->part_size);
}

/* The server has the part from an earlier upload. */
static bool was_found(const coffer__put *put, sending *slot)
{
    const coffer__put_part *part = &put->parts[slot->part];
    if (!part->etag[0] || part->found_size != slot->len)
        return false;
    if (part->found_sha[0])
        return strcmp(part->found_sha, slot->digest.sha) == 0;
    if (!slot->digest.etag[0])
        coffer__put_digest_of(&slot->digest, slot->bytes, slot->len, true);
    return strcmp(part->etag, slot->digest.etag) == 0;
}

static coffer_status begin(coffer__put *put, sending *slot, coffer_error *err)
{
    char number[40];
    snprintf(number, sizeof number, "partNumber=%" PRIu32 "&", slot->part + 1);
    coffer__free(slot->query);
    slot->query = coffer__put_query(number, put->upload_id);
    if (!slot->query)
        return coffer__fail_no_memory(err, sizeof number);
    coffer__s3_call_free(&put->client, &slot->call);
    slot->call = (coffer__s3_call){
        .method = "PUT",
        .query = slot->query,
        .body = slot->bytes,
        .body_len = slot->len,
        .payload_hash = slot->digest.hex,
        .owner = slot,
        .header_count = 1,
    };
    slot->call.headers[0] = put->uses_md5
                                ? (coffer__sigv4_header){ "content-md5", slot->digest.md5 }
                                : (coffer__sigv4_header){ "x-amz-checksum-sha256", slot->digest.sha };
    coffer_status status = coffer__s3_begin(&put->client, &slot->call, err);
    slot->is_busy = !status;
    return status;
}

/* Reads a part and sends it, unless the server has it. */
static coffer_status fill(coffer__put *put, sending *slot, uint32_t part, uint32_t *ended, coffer_error *err)
{
    uint64_t offset = part * put->part_size, left = put->size - offset;
    slot->part = part;
    slot->len = (size_t)(left < put->part_size ? left : put->part_size);
    coffer_status status = coffer_source_read_at(slot->bytes, put->src, offset, slot->len, err);
    if (status)
        return status;
    coffer__put_digest_of(&slot->digest, slot->bytes, slot->len, put->uses_md5);
    memcpy(put->parts[part].sha, slot->digest.raw, sizeof slot->digest.raw);
    if (!was_found(put, slot))
        return begin(put, slot, err);
    put->found++;
    put->stored += slot->len;
    put->has_md5_only = put->has_md5_only || !put->parts[part].found_sha[0];
    ++*ended;
    return COFFER_OK;
}

static coffer_status take_answer(coffer__put *put, sending *slot, coffer_error *err)
{
    coffer__s3_call *call = &slot->call;
    coffer__put_part *part = &put->parts[slot->part];
    slot->is_busy = false;
    if (call->error.status)
        return coffer__fail_output(err, coffer__fail_copy(err, &call->error));
    if (call->answer.status != 200) {
        char what[64];
        snprintf(what, sizeof what, "the server cannot store part %" PRIu32, slot->part + 1);
        return coffer__s3_fail(call, what, err);
    }
    if (!call->answer.etag[0] || strlen(call->answer.etag) >= sizeof part->etag)
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                                                     "the server stored part %" PRIu32 " without an ETag",
                                                     slot->part + 1));
    coffer_status status = coffer__put_check_stored(put, &slot->digest, slot->bytes, slot->len, &call->answer,
                                                    slot->part + 1, err);
    if (status)
        return status;
    memcpy(part->etag, call->answer.etag, strlen(call->answer.etag) + 1);
    put->stored += slot->len;
    put->sent += slot->len;
    return COFFER_OK;
}

static sending *find_idle(const slots *all)
{
    for (unsigned i = 0; i < all->count; i++)
        if (!all->list[i].is_busy)
            return &all->list[i];
    return NULL;
}

static coffer_status report(coffer__put *put, const slots *all, coffer_error *err)
{
    uint64_t done = put->stored;
    for (unsigned i = 0; i < all->count; i++)
        if (all->list[i].is_busy)
            done += all->list[i].call.exchange.sent;
    if (done > put->client.done)
        put->client.done = done;
    return coffer__s3_report(&put->client, err);
}

coffer_status coffer__put_send_parts(coffer__put *put, coffer_error *err)
{
    slots all = { 0 };
    uint32_t next = 0, ended = 0;
    coffer_status status = make_slots(&all, put, err);
    while (!status && ended < put->count) {
        sending *idle = next < put->count ? find_idle(&all) : NULL;
        if (idle)
            status = fill(put, idle, next++, &ended, err);
        if (status || !put->client.calls)
            continue;
        const coffer__s3_call *call = coffer__s3_wait(&put->client, idle ? 0 : COFFER__PUT_STEP_MS);
        if (call) {
            status = take_answer(put, call->owner, err);
            ended++;
        }
        if (!status)
            status = report(put, &all, err);
    }
    free_slots(&all, &put->client);
    return status;
}
