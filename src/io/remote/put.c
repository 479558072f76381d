/* Uploading a file to S3. */
#include "io/remote/put.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/os.h"
#include "io/remote/s3_xml.h"
#include "io/source_struct.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PART_DEFAULT (UINT64_C(8) << 20)
#define PART_SMALLEST (UINT64_C(5) << 20)
#define PART_LARGEST (UINT64_C(5) << 30)
#define PARALLEL_DEFAULT 8
#define PARALLEL_MOST 64
#define MAX_KEY 1100                 /* S3 allows 1024 bytes */
#define MEMORY (UINT64_C(512) << 20) /* for parts on their way */

COFFER__INIT_FUNCTION(coffer_put_opts, COFFER_PUT_OPTS_INIT)

coffer_status coffer__put_fail_exists(coffer_error *err)
{
    return coffer__fail_output(err,
                               coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE, "the object exists"));
}

coffer_status coffer__put_check_file(const coffer__put *put, coffer_error *err)
{
    const char *path = coffer__source_path(put->src);
    struct stat now;
    bool is_same = coffer__source_settled(put->src);
    if (is_same && path)
        is_same = coffer__os_stat(path, &now) == 0 && now.st_ino == put->src->facts.file.st_ino &&
                  now.st_dev == put->src->facts.file.st_dev;
    return is_same ? COFFER_OK
                   : coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                                  "the file was changed while it was uploaded; the object was not written");
}

coffer_status coffer__put_look(coffer__put *put, coffer__http_answer *out, bool *exists, coffer_error *err)
{
    coffer__s3_call call = { .method = "HEAD",
                             .headers = { { "x-amz-checksum-mode", "ENABLED" } },
                             .header_count = 1 };
    coffer_status status = coffer__s3_ask(&put->client, &call, err);
    *out = call.answer;
    *exists = !status && call.answer.status == 200;
    /* Without the right to list, S3 answers 403 for an object that does not exist. */
    if (!status && !*exists && call.answer.status != 404 && call.answer.status != 403)
        status = coffer__s3_fail(&call, "the server does not say whether the object exists", err);
    coffer__s3_call_free(&put->client, &call);
    return status;
}

/* "s3://bucket/folder/" and "path/name" make "s3://bucket/folder/name". */
static coffer_status full_address(char **out, const char *path, const char *address, coffer_error *err)
{
    size_t len = strlen(address);
    const char *name = path ? path + coffer__file_folder_len(path) : "";
    if (strncmp(address, "s3://", 5) != 0)
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                                     "uploads go to s3://bucket/key"));
    bool is_folder = address[len - 1] == '/';
    if (is_folder && (!*name || strcmp(name, "-") == 0))
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                                     "the address ends in '/'; add a name"));
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, "%s%s", address, is_folder ? name : "");
    coffer__buffer_append(&text, "", 1);
    if (text.failed) {
        coffer__buffer_free(&text);
        return coffer__fail_no_memory(err, len);
    }
    *out = (char *)coffer__buffer_release(&text, NULL);
    return COFFER_OK;
}

static coffer_status send_whole(coffer__put *put, const uint8_t *bytes, coffer__put_digest *digest,
                                bool only_new, coffer_error *err)
{
    size_t len = (size_t)put->size;
    coffer__s3_call call = { .method = "PUT",
                             .body = bytes,
                             .body_len = len,
                             .payload_hash = digest->hex,
                             .headers = { { "x-amz-checksum-sha256", digest->sha },
                                          { "content-md5", digest->md5 } },
                             .header_count = 2,
                             .only_new = only_new };
    coffer__http_answer found;
    bool exists = false;
    coffer_status status = coffer__s3_ask(&put->client, &call, err);
    int answer = call.answer.status;
    found = call.answer;
    bool again = !status && answer == 501 && only_new;
    if (!status && answer == 412) /* an earlier try may have stored it, and its answer was lost */
        status = coffer__put_look(put, &found, &exists, err);
    bool is_ours = exists && found.length == put->size &&
                   (strcmp(found.checksum, digest->sha) == 0 || strcmp(found.etag, digest->etag) == 0);
    if (!status && answer == 412 && !is_ours)
        status = coffer__put_fail_exists(err);
    else if (!status && !again && answer != 200 && answer != 412)
        status = coffer__s3_fail(&call, "the server cannot store the object", err);
    if (!status && !again)
        status = coffer__put_check_stored(put, digest, bytes, len, &found, 0, err);
    coffer__s3_call_free(&put->client, &call);
    if (again)
        return send_whole(put, bytes, digest, false, err);
    if (!status) {
        memcpy(put->etag, found.etag, sizeof found.etag);
        memcpy(put->checksum, found.checksum, sizeof found.checksum);
        put->sent = put->size;
    }
    return status;
}

static coffer_status put_whole(coffer__put *put, coffer_error *err)
{
    coffer__put_digest digest;
    uint8_t *bytes = coffer__malloc((size_t)put->size + 1);
    if (!bytes)
        return coffer__fail_no_memory(err, put->size + 1);
    coffer_status status = coffer_source_read_at(bytes, put->src, 0, (size_t)put->size, err);
    if (!status)
        status = coffer__put_check_file(put, err);
    if (!status) {
        coffer__put_digest_of(&digest, bytes, (size_t)put->size, true);
        status = send_whole(put, bytes, &digest, !put->overwrite, err);
    }
    coffer__free(bytes);
    return status;
}

static coffer_status put_parts(coffer__put *put, coffer_error *err)
{
    coffer_status status = coffer__put_begin(put, err);
    if (!status)
        status = coffer__put_send_parts(put, err);
    if (!status)
        status = coffer__put_check_file(put, err);
    if (!status)
        status = coffer__put_complete(put, err);
    /* An upload that cannot be continued leaves nothing on the server. */
    if (status && !put->state.path && put->upload_id[0]) {
        put->client.progress = NULL;
        coffer__ignore(coffer__put_abort_upload(&put->client, put->upload_id, NULL));
    }
    return status;
}

/* The size that was asked for, that of the unfinished upload, or what keeps the number of parts allowed. */
static coffer_status choose_parts(coffer__put *put, const coffer_put_opts *opts, coffer_error *err)
{
    uint64_t earlier = put->state.is_used ? put->state.part_size : 0;
    if (opts->part_size && (opts->part_size < PART_SMALLEST || opts->part_size > PART_LARGEST))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a part of %" PRIu64 " bytes: parts have from 5 MiB to 5 GiB", opts->part_size);
    bool fits = earlier >= PART_SMALLEST && earlier <= PART_LARGEST &&
                coffer__divide_up(put->size, earlier) <= COFFER__PUT_MAX_PARTS;
    put->part_size = opts->part_size ? opts->part_size : fits ? earlier : PART_DEFAULT;
    uint64_t needed = coffer__divide_up(put->size, COFFER__PUT_MAX_PARTS);
    if (!opts->part_size && put->part_size < needed)
        put->part_size = coffer__divide_up(needed, 1 << 20) << 20;
    uint64_t count = coffer__divide_up(put->size, put->part_size);
    if (count > COFFER__PUT_MAX_PARTS || put->part_size > PART_LARGEST)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%" PRIu64 " parts of %" PRIu64 " bytes; S3 takes %d parts of 5 GiB at most",
                            count, put->part_size, COFFER__PUT_MAX_PARTS);
    put->count = (uint32_t)count;
    put->parallel = opts->parallel ? opts->parallel : PARALLEL_DEFAULT;
    if (put->parallel > PARALLEL_MOST)
        put->parallel = PARALLEL_MOST;
    uint64_t room = MEMORY / put->part_size;
    if (put->parallel > room)
        put->parallel = room ? (unsigned)room : 1;
    return COFFER_OK;
}

/* The object is there with its size; servers that do not let us look are believed. */
static coffer_status confirm(coffer__put *put, coffer_error *err)
{
    coffer__http_answer found;
    bool exists = false;
    coffer_status status = coffer__put_look(put, &found, &exists, err);
    if (status || !exists || found.length == put->size)
        return status;
    return coffer__fail_output(err, coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                                                 "the object has %" PRIu64 " bytes, the file %" PRIu64,
                                                 found.length, put->size));
}

static coffer_status upload(coffer__put *put, const coffer_put_opts *opts, coffer_error *err)
{
    coffer__http_answer found;
    bool exists = false, done = false;
    const char *path = coffer__source_path(put->src), *name = coffer_source_name(put->src);
    coffer_status status = coffer__put_look(put, &found, &exists, err);
    if (!status && exists && !put->overwrite)
        status = coffer__put_fail_exists(err);
    char *url = coffer__url_without_secrets(&put->client.address.url);
    if (!status && !url)
        status = coffer__fail_no_memory(err, strlen(name));
    if (!status && (path || coffer_is_remote(name)))
        status = coffer__put_state_open(put, opts->state_folder, path ? path : name, url, err);
    if (!status)
        status = choose_parts(put, opts, err);
    if (!status)
        status = put->count > 1 ? put_parts(put, err) : put_whole(put, err);
    done = !status;
    if (!status)
        status = confirm(put, err);
    coffer__put_state_close(&put->state, done);
    coffer__free(url);
    return status;
}

static void describe(coffer_node *out, const coffer__put *put, const char *address)
{
    coffer_node_add_text(out, "address", address);
    coffer_node_add_u64(out, "size", put->size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "parts", put->count > 1 ? put->count : 1, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "parts_found", put->found, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "bytes_sent", put->sent, COFFER_UNIT_BYTES);
    coffer_node_add_text(out, "etag", put->etag[0] ? put->etag : NULL);
    coffer_node_add_text(out, "checksum", put->checksum[0] ? put->checksum : NULL);
    coffer_node_add_text(out, "verified", put->has_unverified ? NULL : put->has_md5_only ? "md5" : "sha256");
}

coffer_status coffer_put(coffer_node *out, const char *path, const char *address, const coffer_put_opts *opts,
                         coffer_error *err)
{
    coffer_put_opts known = COFFER_PUT_OPTS_INIT;
    coffer_source_opts reading = COFFER_SOURCE_OPTS_INIT;
    coffer__put put = { .state = { .fd = -1 } };
    char *full = NULL;
    coffer_status status = coffer__take_options(&known, sizeof known, opts, err);
    if (!status)
        status = full_address(&full, path, address, err);
    if (status)
        return status;
    reading.access = COFFER_ACCESS_READ;
    status = coffer_source_open(&put.src, path, &reading, err);
    if (!status)
        status = coffer__fail_output(err, coffer__s3_client_open(&put.client, full, err));
    if (!status) {
        put.size = put.client.total = coffer_source_size(put.src);
        put.client.progress = known.progress;
        put.overwrite = known.overwrite;
        status = upload(&put, &known, err);
        coffer__s3_client_close(&put.client);
    }
    if (!status)
        describe(out, &put, full);
    coffer_source_close(put.src);
    coffer__free(put.parts);
    coffer__free(full);
    return status ? status : coffer_node_status(out, err);
}

/* One page of the unfinished uploads under a prefix. *key, *id : where it begins, then where the next one
 * does; "" at the end. */
static coffer_status abort_page(coffer__s3_client *client, const char *wanted, char key[MAX_KEY], char *id,
                                uint64_t *removed, coffer_error *err)
{
    coffer__buffer query = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&query, "uploads=&prefix=");
    coffer__url_escape(&query, wanted, strlen(wanted), false);
    if (*key) {
        coffer__buffer_printf(&query, "&key-marker=");
        coffer__url_escape(&query, key, strlen(key), false);
        coffer__buffer_printf(&query, "&upload-id-marker=");
        coffer__url_escape(&query, id, strlen(id), false);
    }
    coffer__s3_call call = { .method = "GET", .query = coffer__buffer_text(&query), .to_bucket = true };
    coffer_status status =
        query.failed ? coffer__fail_no_memory(err, query.len) : coffer__s3_ask(client, &call, err);
    if (!status && call.answer.status != 200)
        status = coffer__s3_fail(&call, "the server cannot list unfinished uploads", err);
    coffer__xml_part list = { coffer__buffer_text(&call.reply), call.reply.len }, entry, rest = list;
    while (!status && coffer__xml_next(&entry, &rest, "Upload")) {
        char found[MAX_KEY], found_id[COFFER__PUT_MAX_ID + 1];
        if (!coffer__xml_text(found, sizeof found, entry, "Key") || strcmp(found, wanted) != 0 ||
            !coffer__xml_text(found_id, sizeof found_id, entry, "UploadId") || !found_id[0])
            continue;
        status = coffer__put_abort_upload(client, found_id, err);
        *removed += !status;
    }
    char next_key[MAX_KEY], next_id[COFFER__PUT_MAX_ID + 1];
    bool more = coffer__xml_is_true(list, "IsTruncated") &&
                coffer__xml_text(next_key, sizeof next_key, list, "NextKeyMarker") &&
                coffer__xml_text(next_id, sizeof next_id, list, "NextUploadIdMarker");
    /* Uploads come in the order of their keys: a page that begins where the last one did never ends. */
    if (!status && more && strcmp(next_key, key) == 0 && strcmp(next_id, id) == 0)
        status = coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                              "the server repeats its list of unfinished uploads");
    snprintf(key, MAX_KEY, "%s", more ? next_key : "");
    snprintf(id, COFFER__PUT_MAX_ID + 1, "%s", more ? next_id : "");
    coffer__s3_call_free(client, &call);
    coffer__buffer_free(&query);
    return status;
}

coffer_status coffer_put_abort(coffer_node *out, const char *path, const char *address,
                               const coffer_put_opts *opts, coffer_error *err)
{
    coffer_put_opts known = COFFER_PUT_OPTS_INIT;
    coffer__s3_client client;
    char *full = NULL, key[MAX_KEY] = "", id[COFFER__PUT_MAX_ID + 1] = "";
    uint64_t removed = 0;
    coffer_status status = coffer__take_options(&known, sizeof known, opts, err);
    if (!status)
        status = full_address(&full, path, address, err);
    if (status)
        return status;
    status = coffer__s3_client_open(&client, full, err);
    if (!status) {
        client.progress = known.progress;
        const char *wanted = strchr(full + strlen("s3://"), '/') + 1;
        do
            status = abort_page(&client, wanted, key, id, &removed, err);
        while (!status && key[0]);
        coffer__s3_client_close(&client);
    }
    coffer_node_add_text(out, "address", full);
    coffer_node_add_u64(out, "uploads_removed", removed, COFFER_UNIT_NONE);
    coffer__free(full);
    return status ? coffer__fail_output(err, status) : coffer_node_status(out, err);
}
