/* The calls of conversions on their job: typed settings, and progress. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "convert/convert.h"
#include "io/source_private.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const char *coffer__job_setting(const coffer__convert_job *job, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (strcmp(job->settings[i].name, name) == 0)
            value = job->settings[i].value ? job->settings[i].value : "";
    }
    return value;
}

coffer_dtype coffer__dtype_of_setting(const char *text)
{
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        if (strcasecmp(coffer_dtype_name((coffer_dtype)i), text) == 0)
            return (coffer_dtype)i;
    }
    return COFFER_DTYPE_NONE;
}

/* Digits only. */
static bool parse_whole(uint64_t *out, const char *text, size_t len, uint64_t max)
{
    coffer__number number;
    return coffer__number_parse(&number, text, len) && number.kind == COFFER__NUMBER_U64 &&
           coffer__number_as_u64(out, &number, max);
}

coffer_status coffer__job_number(uint64_t *out, const coffer__convert_job *job, const char *name,
                                 uint64_t max, coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    if (text && !parse_whole(out, text, strlen(text), max))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected a number from 0 to %" PRIu64 ", not \"%s\"", name, max, text);
    return COFFER_OK;
}

coffer_status coffer__job_range(uint64_t *begin, uint64_t *end, const coffer__convert_job *job,
                                const char *name, coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    uint64_t from = 0, to = UINT64_MAX;
    bool good;
    if (!text)
        return COFFER_OK;
    const char *dots = strstr(text, "..");
    if (dots) {
        good = dots == text || parse_whole(&from, text, (size_t)(dots - text), UINT64_MAX);
        good = good && (!dots[2] || parse_whole(&to, dots + 2, strlen(dots + 2), UINT64_MAX));
    } else {
        good = parse_whole(&from, text, strlen(text), UINT64_MAX - 1);
        to = from + 1;
    }
    if (!good || from > to)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected A..B, A.., ..B or A, not \"%s\"", name, text);
    *begin = from;
    *end = to;
    return COFFER_OK;
}

coffer_status coffer__job_json_file(char **text, size_t *len, const coffer__convert_job *job,
                                    const char *name, coffer_error *err)
{
    const char *path = coffer__job_setting(job, name);
    coffer_source *src = NULL;
    char *read = NULL;
    coffer_status status = coffer__source_open_other(&src, path, NULL, err);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    if (size > job->limits.json_bytes)
        status = coffer__fail_other(err,
                                    coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                 "%" PRIu64 " bytes of JSON, the limit is %" PRIu64, size,
                                                 job->limits.json_bytes),
                                    path);
    if (!status) {
        read = coffer__malloc((size_t)size + 1);
        status = read ? coffer_source_read_at(read, src, 0, (size_t)size, err)
                      : coffer__fail_no_memory(err, size + 1);
    }
    coffer_source_close(src);
    if (status) {
        coffer__free(read);
        return status;
    }
    read[size] = '\0';
    *text = read;
    *len = (size_t)size;
    return COFFER_OK;
}

coffer_status coffer__job_progress(const coffer__convert_job *job, uint64_t done, uint64_t total,
                                   coffer_error *err)
{
    return coffer__progress_step(job->progress, done, total, err);
}
