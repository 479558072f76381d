/* Whatever header a server sends: it is read within bounds, data is accepted only when it is the range that
 * was asked for, of the version that was opened, and a redirect leads to http or https. */
#include "io/remote/remote.h"
#include "must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_lines(coffer__http_answer *answer, const uint8_t *data, size_t size)
{
    while (size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) + 1 : size;
        char *line = malloc(len); /* without a NUL, as it comes from a connection */
        MUST(line);
        memcpy(line, data, len);
        bool taken = coffer__http_answer_line(answer, line, len);
        free(line);
        if (!taken)
            return;
        data += len;
        size -= len;
    }
}

static void must_be_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    MUST(len < size);
    for (size_t i = 0; i < len; i++)
        MUST((unsigned char)text[i] >= ' ' && (unsigned char)text[i] < 0x7f);
}

static void must_judge(const coffer__http_answer *answer, bool opening)
{
    coffer__remote_file file = { .size = 100000, .etag = "\"v1\"" };
    coffer__remote_fetch fetch = { .file = &file, .len = 65536, .is_opening = opening, .answer = *answer };
    MUST(!coffer__url_parse(&file.address.url, "http://host/a/b", NULL));
    fetch.patience.progress_ms = coffer__remote_clock();
    fetch.exchange.end = COFFER__HTTP_ANSWERED;
    if (coffer__remote_accepts(&fetch)) {
        MUST(answer->status == 206 && answer->has_range && answer->has_total && answer->first == 0);
        MUST(answer->last < answer->total && !answer->encoded);
        MUST(opening || (answer->total == file.size && strcmp(answer->etag, file.etag) == 0));
    }
    if (coffer__remote_has_ended(&fetch) && !fetch.error.status)
        MUST(opening && answer->total == 0);
    if (file.has_moved)
        MUST(strcmp(file.moved.scheme, "http") == 0 || strcmp(file.moved.scheme, "https") == 0);
    coffer__url_free(&file.moved);
    coffer__url_free(&file.address.url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer__http_answer answer = { 0 };
    take_lines(&answer, data, size);
    must_be_text(answer.etag, sizeof answer.etag);
    must_be_text(answer.modified, sizeof answer.modified);
    must_be_text(answer.location, sizeof answer.location);
    must_be_text(answer.request_id, sizeof answer.request_id);
    must_be_text(answer.region, sizeof answer.region);
    must_judge(&answer, false);
    must_judge(&answer, true);
    return 0;
}
