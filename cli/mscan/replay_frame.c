#include "replay_frame.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "draw/picture.h"
#include "mscan_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS = 65536,
    SOURCE_CHARACTERS = 60,
    VALUE_COLUMNS = 24,
    LEAST_BAR = 6,
    WIDEST_NAME = 48,
    WIDEST_BAR = 50
};

typedef struct replay_bucket {
    uint64_t sum;
    uint32_t count;
} replay_bucket;

typedef struct replay_group {
    uint16_t key;
    double mean; /* raw */
    double z;
} replay_group;

struct replay_frame {
    const coffer_mscan *scan;
    replay_look look;
    size_t group_count;
    replay_group groups[KEYS];
    replay_bucket buckets[KEYS]; /* all zero between two steps */
};

replay_frame *replay_frame_new(const coffer_mscan *scan, const replay_look *look)
{
    replay_frame *frame = coffer__calloc(1, sizeof *frame);
    if (frame) {
        frame->scan = scan;
        frame->look = *look;
    }
    return frame;
}

void replay_frame_free(replay_frame *frame)
{
    coffer__free(frame);
}

void replay_frame_print_sequence(const replay_frame *frame, size_t index, FILE *out)
{
    const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(frame->scan, index);
    places_text excerpt;
    term_text tokens;
    places_excerpt(excerpt, sequence, SOURCE_CHARACTERS);
    fprintf(out, "%ssequence %" PRIu64 "%s, %s tokens", term_on(out, TERM_BOLD), sequence->sequence_id,
            term_off(out), term_count(tokens, sequence->num_tokens));
    if (*excerpt) {
        fputs(": ", out);
        term_print_text(out, excerpt, strlen(excerpt), 0);
    }
    fputc('\n', out);
}

/* ---- Largest z-scores ---- */

static int compare_groups(const void *a, const void *b)
{
    const replay_group *x = a, *y = b;
    double apart = fabs(y->z) - fabs(x->z);
    if (apart != 0)
        return apart > 0 ? 1 : -1;
    if (x->mean != y->mean)
        return x->mean < y->mean ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void collect(replay_frame *frame, const coffer_mscan_step *step)
{
    frame->group_count = 0;
    for (size_t i = 0; i < step->record_count; i++) {
        const coffer_mscan_record *record = &step->records[i];
        uint16_t key = frame->look.by_block ? record->block_idx : record->param_id;
        replay_bucket *bucket = &frame->buckets[key];
        if (bucket->count == 0)
            frame->groups[frame->group_count++].key = key;
        bucket->count++;
        bucket->sum += frame->look.metric == COFFER_MSCAN_ACTIVATION ? record->activation : record->grad_norm;
    }
    for (size_t i = 0; i < frame->group_count; i++) {
        replay_bucket *bucket = &frame->buckets[frame->groups[i].key];
        frame->groups[i].mean = (double)bucket->sum / bucket->count;
        *bucket = (replay_bucket){ 0 };
    }
}

/* z-scores of the groups among themselves; all 0 where they do not differ. */
static void score(replay_frame *frame)
{
    double count = (double)frame->group_count, sum = 0, squares = 0;
    for (size_t i = 0; i < frame->group_count; i++)
        sum += frame->groups[i].mean;
    double mean = sum / count;
    for (size_t i = 0; i < frame->group_count; i++)
        squares += (frame->groups[i].mean - mean) * (frame->groups[i].mean - mean);
    double deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
    for (size_t i = 0; i < frame->group_count; i++)
        frame->groups[i].z = deviation > 1e-9 ? (frame->groups[i].mean - mean) / deviation : 0;
    qsort(frame->groups, frame->group_count, sizeof frame->groups[0], compare_groups);
}

/* ---- Bars ---- */

static void print_bar(double share, unsigned columns, FILE *out)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    unsigned parts = (unsigned)lround((share < 1 ? share : 1) * columns * 8);
    unsigned used = 0;
    if (term_has_color(out)) {
        rgb color = colormap_at(COLORMAP_VIRIDIS, share);
        term_foreground(out, color.red, color.green, color.blue);
        for (; used < parts / 8; used++)
            fputs("█", out);
        fputs(eighths[parts % 8], out);
        used += parts % 8 != 0;
        fputs(term_off(out), out);
    } else {
        for (; used < (parts + 4) / 8; used++)
            fputc('#', out);
    }
    fprintf(out, "%*s", (int)(columns - used), "");
}

static const char *group_name(term_text number, const replay_frame *frame, uint16_t key)
{
    const char *name = frame->look.by_block ? NULL : coffer_mscan_param_name(frame->scan, key);
    if (name)
        return name;
    snprintf(number, sizeof(term_text), frame->look.by_block ? "block %u" : "(no name: %u)", key);
    return number;
}

static void print_value(const replay_frame *frame, const replay_group *group, size_t sequence, FILE *out)
{
    bool mixed = frame->look.by_block &&
                 coffer_mscan_quantization_scope(frame->scan, frame->look.metric) == COFFER_MSCAN_SCALE_PARAM;
    const coffer_mscan_quantization *unit =
        mixed ? NULL : coffer_mscan_quantization_of(frame->scan, frame->look.metric, group->key, sequence);
    if (unit)
        fprintf(out, " %10.5g", unit->offset + unit->scale * group->mean);
    else
        fprintf(out, " %10.1f", group->mean);
    fprintf(out, "  z %+.2f\n", group->z);
}

static void print_group(const replay_frame *frame, const replay_group *group, size_t sequence,
                        unsigned name_columns, unsigned bar_columns, FILE *out)
{
    term_text number;
    const char *name = group_name(number, frame, group->key);
    size_t len = strlen(name), width = coffer__utf8_width(name, len);
    fputs("  ", out);
    term_print_text(out, name, len, name_columns);
    fprintf(out, "%*s  ", width < name_columns ? (int)(name_columns - width) : 0, "");
    print_bar(frame->look.full_bar > 0 ? group->mean / frame->look.full_bar : 0, bar_columns, out);
    print_value(frame, group, sequence, out);
}

unsigned replay_frame_print_step(replay_frame *frame, const coffer_mscan_step *step, FILE *out)
{
    const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(frame->scan, step->sequence);
    term_text records;
    collect(frame, step);
    score(frame);
    fprintf(out, "token %" PRIu64 "  sequence %" PRIu64 ", %" PRIu64 " of %" PRIu64 "  %s records\n",
            step->token, sequence->sequence_id, step->position + 1, sequence->num_tokens,
            term_count(records, step->record_count));

    size_t shown = frame->group_count < frame->look.top ? frame->group_count : frame->look.top;
    size_t widest = 0;
    for (size_t i = 0; i < shown; i++) {
        term_text number;
        const char *name = group_name(number, frame, frame->groups[i].key);
        size_t width = coffer__utf8_width(name, strlen(name));
        widest = width > widest ? width : widest;
    }
    unsigned width = term_width(out);
    unsigned name_columns = widest < WIDEST_NAME ? (unsigned)widest : WIDEST_NAME;
    unsigned most = width > VALUE_COLUMNS + 2 * LEAST_BAR ? width - VALUE_COLUMNS - LEAST_BAR : LEAST_BAR;
    most = most < width / 2 ? most : width / 2;
    if (name_columns > most)
        name_columns = most;
    unsigned taken = name_columns + VALUE_COLUMNS;
    unsigned bar_columns = width > taken + LEAST_BAR ? width - taken : LEAST_BAR;
    bar_columns = bar_columns < WIDEST_BAR ? bar_columns : WIDEST_BAR;
    for (size_t i = 0; i < shown; i++)
        print_group(frame, &frame->groups[i], step->sequence, name_columns, bar_columns, out);
    return 1 + (unsigned)shown;
}
