#include "support/profile.h"

#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *place_of(const char *name)
{
    return name[0] == '/' ? name : temp_path(temp_folder, name);
}

coffer_status profile_convert(coffer_error *err, const coffer_limits *limits, const char *in, const char *out,
                              ...)
{
    coffer_setting settings[8];
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    va_list arguments;
    va_start(arguments, out);
    for (;;) {
        const char *name = va_arg(arguments, const char *);
        if (!name)
            break;
        settings[opts.setting_count].name = name;
        settings[opts.setting_count++].value = va_arg(arguments, const char *);
    }
    va_end(arguments);
    opts.settings = settings;
    opts.limits = limits;
    coffer_status status = coffer_source_open(&src, place_of(in), NULL, err);
    if (!status)
        status = coffer_convert(src, place_of(out), &opts, err);
    coffer_source_close(src);
    return status;
}

void profile_refuses(const char *name, const void *bytes, size_t len, coffer_status status, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    temp_write(place_of(name), bytes, len);
    coffer_status got = profile_convert(&err, NULL, name, "refused.mlyze", NULL);
    if (got != status || !strstr(err.text, part))
        fail_msg("%s: gives %s (%s), expected %s (%s)", name, coffer_status_name(got), err.text,
                 coffer_status_name(status), part);
    assert_false(temp_exists(place_of("refused.mlyze")));
}

void profile_write(const char *name, const char *text)
{
    temp_write(place_of(name), text, strlen(text));
}

char *profile_text(const char *name)
{
    char *text = (char *)temp_read(place_of(name), NULL);
    assert_non_null(text);
    return text;
}

void profile_sample(const char *name, uint32_t events)
{
    trace_builder sample;
    trace_sample(&sample, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS, events, 100);
    temp_write(place_of(name), sample.file.data, sample.file.len);
    trace_dispose(&sample);
}

coffer_mlyze_totals profile_totals(const char *name)
{
    coffer_source *src = NULL;
    coffer_mlyze_stats *stats = NULL;
    assert_int_equal(coffer_source_open(&src, place_of(name), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    coffer_mlyze_totals totals = *coffer_mlyze_stats_totals(stats);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return totals;
}

static int by_text(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* Lines, sorted. */
static char *sorted(char *text)
{
    char *lines[4096], *out = malloc(strlen(text) + 2), *at = out;
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(count < 4096);
        lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "%s\n", lines[i]);
    *at = '\0';
    free(text);
    return out;
}

uint64_t profile_bytes(const char *name, const char *stack, const char *what)
{
    uint64_t bytes = 0;
    profile_must(name, "bytes.collapsed", "what", what, NULL);
    char *text = profile_text("bytes.collapsed");
    size_t len = strlen(stack);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, stack, len) == 0 && line[len] == ' ' && !strchr(line + len + 1, ' '))
            bytes += strtoull(line + len + 1, NULL, 10);
    }
    free(text);
    return bytes;
}

static void expect_one(const char *name, const char *what, int64_t wanted, uint64_t found)
{
    if (wanted >= 0 && (uint64_t)wanted != found)
        fail_msg("%s: %s is %llu, expected %lld", name, what, (unsigned long long)found, (long long)wanted);
}

void profile_expect(const char *name, int64_t allocs, int64_t total, int64_t peak, int64_t live)
{
    coffer_mlyze_totals totals = profile_totals(name);
    expect_one(name, "allocations", allocs, totals.allocs);
    expect_one(name, "total", total, totals.total_allocated_bytes);
    expect_one(name, "peak", peak, totals.peak_bytes);
    expect_one(name, "live", live, totals.live_bytes_at_end);
    assert_int_equal(totals.unknown_frees, 0);
    assert_int_equal(totals.double_allocs, 0);
}

void profile_same(const char *a, const char *b, const char *what)
{
    profile_must(a, "a.collapsed", "what", what, "lines", NULL, NULL);
    profile_must(b, "b.collapsed", "what", what, "lines", NULL, NULL);
    char *text_a = sorted(profile_text("a.collapsed")), *text_b = sorted(profile_text("b.collapsed"));
    assert_string_equal(text_a, text_b);
    free(text_a);
    free(text_b);
}
