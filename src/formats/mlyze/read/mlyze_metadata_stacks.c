/* The stacks of a trace, read from the text into an array of frames: there may be millions of them. */
#include "formats/mlyze/read/mlyze_metadata.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_layout.h"

#include <inttypes.h>
#include <string.h>

enum { FILE_ID, LINE, FUNC_ID, MEMBERS };
static const char *const member_names[MEMBERS] = { "file_id", "line", "func_id" };

typedef struct reader {
    coffer__mlyze_text *in;
    coffer__mlyze_stack_table *stacks;
    uint64_t stack; /* the current one, for messages */
    coffer_error *err;
} reader;

static uint64_t offset_of(const reader *r)
{
    return COFFER__MLYZE_HEADER_SIZE + (uint64_t)(r->in->at - r->in->start);
}

/* Skips a value of the wrong type, which must be valid JSON nevertheless. */
static coffer_status skip_odd_value(const reader *r)
{
    const char *begin = r->in->at;
    bool good = coffer__mlyze_text_skip(r->in) &&
                coffer__json_explain(begin, (size_t)(r->in->at - begin), 0, COFFER__JSON_MAX_DEPTH, false,
                                     NULL) == COFFER_OK;
    return good ? COFFER_OK : COFFER_E_BAD_JSON;
}

/* An unknown key may have any valid value. */
static coffer_status check_odd_key(const char *key, size_t len, const char *begin)
{
    bool plain = key == begin + 1; /* one with escapes was parsed to get at it */
    if (plain && coffer__json_explain(begin, len + 2, 0, COFFER__JSON_MAX_DEPTH, false, NULL))
        return COFFER_E_BAD_JSON;
    return COFFER_OK;
}

/* Digits without a sign, a point or an exponent. Leaves in->at unchanged for anything else. */
static bool take_integer(uint64_t *out, coffer__mlyze_text *in)
{
    const char *at = in->at;
    uint64_t value = 0;
    size_t len;
    while (at < in->end && *at >= '0' && *at <= '9')
        at++;
    len = (size_t)(at - in->at);
    if (at < in->end && (*at == '.' || *at == 'e' || *at == 'E'))
        return false;
    if (!coffer__mlyze_parse_id(&value, in->at, len))
        return false;
    in->at = at;
    *out = value;
    return true;
}

static void report_member(const reader *r, coffer_status code, int member, const char *what)
{
    if (r->in->report)
        coffer__report_add(r->in->report, code, COFFER_ERROR, offset_of(r),
                           "stack %" PRIu64 ": a frame %s %s", r->stack, what, member_names[member]);
}

static int member_of(const char *key, size_t len)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (strlen(member_names[i]) == len && memcmp(key, member_names[i], len) == 0)
            return i;
    }
    return MEMBERS;
}

static coffer_status read_member(const reader *r, uint64_t values[MEMBERS], unsigned *seen)
{
    char room[COFFER__MLYZE_KEY_ROOM];
    const char *begin, *key = NULL;
    size_t len = 0;
    coffer_status status;
    int member;
    coffer__mlyze_text_space(r->in);
    begin = r->in->at;
    if (!coffer__mlyze_text_key(&key, &len, r->in, room))
        return COFFER_E_BAD_JSON;
    coffer__mlyze_text_space(r->in);
    member = member_of(key, len);
    if (member == MEMBERS) {
        status = check_odd_key(key, len, begin);
        return status ? status : skip_odd_value(r);
    }
    if (*seen & 1u << member)
        report_member(r, COFFER_E_DUPLICATE, member, "has more than one");
    *seen |= 1u << member;
    if (take_integer(&values[member], r->in))
        return COFFER_OK;
    report_member(r, COFFER_E_BAD_VALUE, member, "has a value that is not an integer as its");
    return skip_odd_value(r);
}

/* ---- Frames as every writer writes them: there may be many millions ---- */

static inline bool pass_word(const char **at, const char *end, const char *word, size_t len)
{
    if ((size_t)(end - *at) < len || memcmp(*at, word, len) != 0)
        return false;
    *at += len;
    *at += *at < end && **at == ' ';
    return true;
}

/* At most 19 digits, so that they fit. */
static inline bool pass_digits(uint64_t *out, const char **at, const char *end)
{
    const char *begin = *at, *stop = end - begin > 20 ? begin + 20 : end;
    uint64_t value = 0;
    while (*at < stop && **at >= '0' && **at <= '9')
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    *out = value;
    return *at > begin && *at < stop && (**at == ',' || **at == '}') && (*begin != '0' || *at == begin + 1);
}

#define PASS_WORD(at, end, word) pass_word(at, end, word, sizeof(word) - 1)

static bool take_usual_frame(uint64_t values[MEMBERS], coffer__mlyze_text *in)
{
    const char *at = in->at, *end = in->end;
    uint64_t taken[MEMBERS];
    if (!PASS_WORD(&at, end, "{\"file_id\":") || !pass_digits(&taken[FILE_ID], &at, end) ||
        !PASS_WORD(&at, end, ",") || !PASS_WORD(&at, end, "\"line\":") ||
        !pass_digits(&taken[LINE], &at, end) || !PASS_WORD(&at, end, ",") ||
        !PASS_WORD(&at, end, "\"func_id\":") || !pass_digits(&taken[FUNC_ID], &at, end) ||
        !PASS_WORD(&at, end, "}"))
        return false;
    memcpy(values, taken, sizeof taken);
    in->at = at;
    return true;
}

/* ---- Frames with any content ---- */

static coffer_status read_odd_frame(const reader *r, uint64_t values[MEMBERS])
{
    coffer_status status;
    unsigned seen = 0;
    if (!coffer__mlyze_text_take(r->in, '{')) {
        if (r->in->report)
            coffer__report_add(r->in->report, COFFER_E_BAD_VALUE, COFFER_ERROR, offset_of(r),
                               "stack %" PRIu64 ": a frame is not an object", r->stack);
        status = skip_odd_value(r);
        if (status)
            return status;
        seen = (1u << MEMBERS) - 1;
    } else if (!coffer__mlyze_text_take(r->in, '}')) {
        do {
            status = read_member(r, values, &seen);
            if (status)
                return status;
        } while (coffer__mlyze_text_take(r->in, ','));
        if (!coffer__mlyze_text_take(r->in, '}'))
            return COFFER_E_BAD_JSON;
    }
    for (int i = 0; i < MEMBERS; i++) {
        if (!(seen & 1u << i))
            report_member(r, COFFER_E_MISSING, i, "has no");
    }
    return COFFER_OK;
}

static coffer_status read_frame(const reader *r)
{
    uint64_t values[MEMBERS] = { COFFER__MLYZE_NO_ID, 0, COFFER__MLYZE_NO_ID };
    coffer__mlyze_stack_table *stacks = r->stacks;
    coffer_status status = COFFER_OK;
    coffer__mlyze_text_space(r->in);
    if (!take_usual_frame(values, r->in))
        status = read_odd_frame(r, values);
    if (!status)
        status = coffer__array_reserve_one(&stacks->frames, &stacks->frames_capacity, stacks->frame_count,
                                           sizeof *stacks->frames, r->err);
    if (status)
        return status;
    stacks->frames[stacks->frame_count++] =
        (coffer_mlyze_frame){ values[FILE_ID], values[LINE], values[FUNC_ID] };
    return COFFER_OK;
}

static coffer_status read_frames(const reader *r)
{
    coffer_status status;
    if (!coffer__mlyze_text_take(r->in, '[')) {
        if (r->in->report)
            coffer__report_add(r->in->report, COFFER_E_BAD_VALUE, COFFER_ERROR, offset_of(r),
                               "stack %" PRIu64 " is not a list of frames", r->stack);
        return skip_odd_value(r);
    }
    if (coffer__mlyze_text_take(r->in, ']'))
        return COFFER_OK;
    do {
        status = read_frame(r);
        if (status)
            return status;
    } while (coffer__mlyze_text_take(r->in, ','));
    return coffer__mlyze_text_take(r->in, ']') ? COFFER_OK : COFFER_E_BAD_JSON;
}

static coffer_status add_stack(const reader *r)
{
    coffer__mlyze_stack_table *stacks = r->stacks;
    if (stacks->ids.count >= r->in->limits->entries)
        return coffer__fail(r->err, COFFER_E_LIMIT, offset_of(r), "more than %" PRIu64 " stacks",
                            r->in->limits->entries);
    coffer_status status = coffer__array_reserve_one(&stacks->ends, &stacks->ends_capacity, stacks->ids.count,
                                                     sizeof *stacks->ends, r->err);
    if (status)
        return status;
    stacks->ends[stacks->ids.count] = stacks->frame_count;
    return coffer__mlyze_ids_add(&stacks->ids, r->stack, r->err);
}

static coffer_status read_stack(reader *r)
{
    char room[COFFER__MLYZE_KEY_ROOM];
    const char *begin, *key = NULL;
    size_t len = 0;
    coffer_status status;
    coffer__mlyze_text_space(r->in);
    begin = r->in->at;
    if (!coffer__mlyze_text_key(&key, &len, r->in, room))
        return COFFER_E_BAD_JSON;
    coffer__mlyze_text_space(r->in);
    if (coffer__mlyze_parse_id(&r->stack, key, len)) {
        status = read_frames(r);
        return status ? status : add_stack(r);
    }
    if (r->in->report)
        coffer__report_add(r->in->report, COFFER_E_BAD_VALUE, COFFER_ERROR, offset_of(r),
                           "stack_traces: \"%.*s\" is not an id", len < 40 ? (int)len : 40, key);
    status = check_odd_key(key, len, begin);
    return status ? status : skip_odd_value(r);
}

coffer_status coffer__mlyze_stack_table_read(coffer__mlyze_stack_table *out, coffer__mlyze_text *in,
                                             coffer_error *err)
{
    reader r = { .in = in, .stacks = out, .err = err };
    coffer_status status;
    if (!coffer__mlyze_text_take(in, '{'))
        return COFFER_E_BAD_JSON;
    if (coffer__mlyze_text_take(in, '}'))
        return COFFER_OK;
    do {
        status = read_stack(&r);
        if (status)
            return status;
    } while (coffer__mlyze_text_take(in, ','));
    return coffer__mlyze_text_take(in, '}') ? COFFER_OK : COFFER_E_BAD_JSON;
}

void coffer__mlyze_stack_table_free(coffer__mlyze_stack_table *stacks)
{
    coffer__mlyze_ids_free(&stacks->ids);
    coffer__free(stacks->ends);
    coffer__free(stacks->frames);
    *stacks = (coffer__mlyze_stack_table){ .ends = NULL };
}
