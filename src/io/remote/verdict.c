/* Decides from the answer of a server how a fetch continues: with data, another try, or an error. */
#include "base/fail.h"
#include "io/remote/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_OPENING_TRIES 3 /* a server that nobody has heard of yet may not exist */
#define MAX_REDIRECTS 10
#define FIRST_PAUSE_MS 100
#define LONGEST_PAUSE_MS 15000

uint64_t coffer__remote_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool refuse(coffer__remote_fetch *fetch, coffer_status status, const char *text)
{
    coffer__fail(&fetch->error, status, COFFER_OFFSET_NONE, "%s", text);
    fetch->is_refused = true;
    return false;
}

static bool refuse_changed(coffer__remote_fetch *fetch, const char *what)
{
    coffer__fail(&fetch->error, COFFER_E_CHANGED, fetch->first,
                 "the file on the server was replaced while it was read (%s)", what);
    fetch->is_refused = true;
    return false;
}

/* The server's file is still the one that was opened. */
static bool is_same_file(coffer__remote_fetch *fetch)
{
    const coffer__remote_file *file = fetch->file;
    const coffer__http_answer *answer = &fetch->answer;
    if (fetch->is_opening)
        return true;
    if (answer->has_total && answer->total != file->size)
        return refuse_changed(fetch, "another size");
    if (strcmp(answer->etag, file->etag) != 0)
        return refuse_changed(fetch, "another ETag");
    if (!file->etag[0] && strcmp(answer->modified, file->modified) != 0)
        return refuse_changed(fetch, "another time of change");
    return true;
}

static bool accepts_range(coffer__remote_fetch *fetch)
{
    const coffer__http_answer *answer = &fetch->answer;
    if (answer->malformed || !answer->has_range || !answer->has_total)
        return refuse(fetch, COFFER_E_IO, "the server's answer has no Content-Range that can be read");
    if (answer->first != fetch->first + fetch->got)
        return refuse(fetch, COFFER_E_IO, "the server sent another range than the one asked for");
    if (answer->encoded)
        return refuse(fetch, COFFER_E_UNSUPPORTED,
                      "the server compresses the file on the way, so that ranges of it mean nothing");
    return is_same_file(fetch);
}

static bool accepts_whole(coffer__remote_fetch *fetch)
{
    if (!fetch->wants_whole)
        return refuse(fetch, COFFER_E_UNSUPPORTED, "the server sends whole files only, no ranges");
    if (fetch->got)
        return refuse(fetch, COFFER_E_IO, "the connection broke, and the server cannot resume");
    if (fetch->answer.encoded || fetch->answer.malformed)
        return refuse(fetch, COFFER_E_IO, "the server's answer is not the file as it is stored");
    return true;
}

bool coffer__remote_accepts(coffer__remote_fetch *fetch)
{
    if (fetch->is_accepted)
        return true;
    if (fetch->answer.status == 206)
        fetch->is_accepted = accepts_range(fetch);
    else if (fetch->answer.status == 200)
        fetch->is_accepted = accepts_whole(fetch);
    return fetch->is_accepted;
}

bool coffer__remote_find_between(char *out, size_t size, const char *text, const char *open,
                                 const char *close)
{
    const char *from = strstr(text, open);
    const char *to = from ? strstr(from, close) : NULL;
    if (!to)
        return false;
    from += strlen(open);
    size_t len = (size_t)(to - from);
    if (to < from || len >= size)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

coffer_status coffer__remote_fail_status(coffer_error *err, const coffer__http_answer *answer,
                                         const char *body, const char *denied, const char *what)
{
    char code[64] = "", details[200] = "";
    int n = 0;
    if (coffer__remote_find_between(code, sizeof code, body, "<Code>", "</Code>"))
        n = snprintf(details, sizeof details, ", %s", code);
    if (answer->request_id[0] && n >= 0 && (size_t)n < sizeof details)
        snprintf(details + n, sizeof details - (size_t)n, ", request %s", answer->request_id);
    int status = answer->status;
    bool is_denied = status == 401 || status == 403, is_missing = status == 404 || status == 410;
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__fail(&failure, COFFER_E_IO, COFFER_OFFSET_NONE, "%s (HTTP %d%s)", is_denied ? denied : what,
                 status, details);
    failure.system_error = is_denied ? EACCES : is_missing ? ENOENT : 0;
    return coffer__fail_copy(err, &failure);
}

static bool end_with_status(coffer__remote_fetch *fetch)
{
    const coffer__http_answer *answer = &fetch->answer;
    bool is_missing = answer->status == 404 || answer->status == 410;
    coffer__ignore(coffer__remote_fail_status(
        &fetch->error, answer, fetch->file->address.is_s3 ? fetch->words : "",
        "the server does not let us read it",
        is_missing ? "the server does not have this file" : "the server cannot give the file"));
    return true;
}

bool coffer__remote_is_busy(int status)
{
    return status == 429 || status == 408 || status >= 500;
}

bool coffer__remote_pause(coffer__remote_patience *patience, unsigned max_tries, unsigned retry_after)
{
    uint64_t now = coffer__remote_clock();
    unsigned deadline = coffer__remote_settings_now()->deadline_ms;
    uint64_t asked = (uint64_t)retry_after * 1000;
    if (++patience->tries >= max_tries || now - patience->progress_ms + asked >= deadline)
        return false;
    /* Between the shortest pause and twice the last one, so that many readers do not come back together. */
    uint64_t longest = patience->pause_ms ? 2 * patience->pause_ms : 2 * FIRST_PAUSE_MS;
    if (longest > LONGEST_PAUSE_MS)
        longest = LONGEST_PAUSE_MS;
    patience->pause_ms = FIRST_PAUSE_MS + randombytes_uniform((uint32_t)(longest - FIRST_PAUSE_MS) + 1);
    patience->resume_ms = now + (asked > patience->pause_ms ? asked : patience->pause_ms);
    return true;
}

/* Pauses, or gives up. `words` : why another try would be needed. */
static bool try_again(coffer__remote_fetch *fetch, const char *words)
{
    const coffer__remote_patience *patience = &fetch->patience;
    unsigned tries =
        fetch->is_opening && !fetch->answer.status ? MAX_OPENING_TRIES : COFFER__REMOTE_MAX_TRIES;
    if (coffer__remote_pause(&fetch->patience, tries, fetch->answer.retry_after))
        return false;
    coffer__fail(&fetch->error, COFFER_E_IO, fetch->is_opening ? COFFER_OFFSET_NONE : fetch->first,
                 "%s; gave up after %u tries in %" PRIu64 " s", words, patience->tries,
                 (coffer__remote_clock() - patience->progress_ms) / 1000);
    fetch->error.system_error = ETIMEDOUT;
    return true;
}

static bool follow_redirect(coffer__remote_fetch *fetch)
{
    coffer__remote_file *file = fetch->file;
    const coffer__url *base = file->has_moved ? &file->moved : &file->address.url;
    coffer__url target = COFFER__URL_INIT;
    if (++fetch->redirects > MAX_REDIRECTS || !fetch->answer.location[0]) {
        coffer__fail(&fetch->error, COFFER_E_IO, COFFER_OFFSET_NONE, "the server redirects without an end");
        return true;
    }
    if (coffer__url_resolve(&target, base, fetch->answer.location, NULL)) {
        coffer__fail(&fetch->error, COFFER_E_IO, COFFER_OFFSET_NONE,
                     "the server redirects to an address that is not followed");
        return true;
    }
    bool is_http = strcmp(target.scheme, "http") == 0, is_https = strcmp(target.scheme, "https") == 0;
    if (!is_https && !(is_http && strcmp(base->scheme, "http") == 0)) {
        coffer__fail(&fetch->error, COFFER_E_IO, COFFER_OFFSET_NONE,
                     "the server redirects from %s to %s, which is not followed", base->scheme,
                     target.scheme);
        coffer__url_free(&target);
        return true;
    }
    coffer__url_free(&file->moved);
    file->moved = target;
    file->has_moved = true;
    return false;
}

bool coffer__remote_learn_region(coffer__remote_address *address, const coffer__http_answer *answer)
{
    if (!address->is_s3 || !answer->region[0] || strcmp(answer->region, address->aws.region) == 0)
        return false;
    return coffer__aws_settings_move(&address->aws, &address->url, answer->region);
}

/* S3 says in which region a bucket is. */
static bool learn_region(coffer__remote_fetch *fetch)
{
    if (fetch->has_new_region)
        return false;
    fetch->has_new_region = coffer__remote_learn_region(&fetch->file->address, &fetch->answer);
    return fetch->has_new_region;
}

static bool end_refusal(coffer__remote_fetch *fetch)
{
    int status = fetch->answer.status;
    coffer__remote_file *file = fetch->file;
    if (learn_region(fetch))
        return false;
    /* Where a redirect led may have been good for some minutes only. */
    if (file->has_moved && fetch->redirects == 0 && (status == 401 || status == 403 || status == 410)) {
        coffer__url_free(&file->moved);
        file->has_moved = false;
        return false;
    }
    return end_with_status(fetch);
}

static bool is_empty_file(const coffer__remote_fetch *fetch)
{
    const coffer__http_answer *answer = &fetch->answer;
    return fetch->is_opening && answer->has_total && answer->total == 0;
}

static bool end_of_answer(coffer__remote_fetch *fetch)
{
    int status = fetch->answer.status;
    if (fetch->is_accepted) {
        bool whole = fetch->wants_whole ? !fetch->answer.has_length || fetch->got == fetch->answer.length
                                        : fetch->got == fetch->len ||
                                              (fetch->is_opening && fetch->got == fetch->answer.total);
        if (!whole)
            return try_again(fetch, "the server sent fewer bytes than it promised");
        fetch->error.status = COFFER_OK;
        return true;
    }
    if (status == 416 && is_empty_file(fetch)) {
        fetch->error.status = COFFER_OK;
        return true;
    }
    if ((status == 200 || status == 206) && !coffer__remote_accepts(fetch))
        return true; /* an empty body */
    if (status == 301 && learn_region(fetch))
        return false;
    if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308)
        return follow_redirect(fetch);
    if (status == 412 || status == 416) {
        refuse_changed(fetch, status == 412 ? "another ETag" : "another size");
        return true;
    }
    if (coffer__remote_is_busy(status) || strstr(fetch->words, "RequestTimeout")) {
        char words[80];
        snprintf(words, sizeof words, "the server is not ready (HTTP %d)", status);
        return try_again(fetch, words);
    }
    return end_refusal(fetch);
}

bool coffer__remote_has_ended(coffer__remote_fetch *fetch)
{
    if (fetch->is_refused || fetch->error.status)
        return true;
    switch (fetch->exchange.end) {
    case COFFER__HTTP_ANSWERED:
        return end_of_answer(fetch);
    case COFFER__HTTP_STOPPED: /* all bytes came, and more; or the header is too large */
        if (fetch->is_accepted && !fetch->wants_whole && fetch->got == fetch->len)
            return true;
        if (!fetch->is_accepted && fetch->answer.status >= 300)
            return end_of_answer(fetch); /* a long explanation was cut */
        coffer__fail(&fetch->error, COFFER_E_IO, COFFER_OFFSET_NONE,
                     "the server's answer has a header of more than %zu bytes", COFFER__HTTP_MAX_HEADER);
        return true;
    case COFFER__HTTP_BROKEN:
        return try_again(fetch, fetch->exchange.problem);
    default:
        coffer__fail(&fetch->error, COFFER_E_IO, COFFER_OFFSET_NONE, "%s", fetch->exchange.problem);
        return true;
    }
}
