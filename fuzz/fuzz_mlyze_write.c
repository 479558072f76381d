/* A trace gives the same events after it was compressed, made plain and repaired. */
#include "mlyze_input.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char packed[80], plain[80], saved[80];

static void name_files(void)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(packed, sizeof packed, "%s/coffer-fuzz-%d-packed", root, (int)getpid());
    snprintf(plain, sizeof plain, "%s/coffer-fuzz-%d-plain", root, (int)getpid());
    snprintf(saved, sizeof saved, "%s/coffer-fuzz-%d-saved", root, (int)getpid());
}

static bool same_block(const coffer_mlyze_events *a, size_t i, const coffer_mlyze_events *b, size_t j,
                       bool times)
{
    return a->type[i] == b->type[j] && a->address[i] == b->address[j] && a->size[i] == b->size[j] &&
           a->id[i] == b->id[j] && a->thread[i] == b->thread[j] && (!times || a->time[i] == b->time[j]);
}

/* times : false where blocks of the first go back in time, which the second cannot. */
static void compare(const coffer_mlyze *a, const coffer_mlyze *b, bool times)
{
    coffer_mlyze_events left = COFFER_MLYZE_EVENTS_INIT, right = COFFER_MLYZE_EVENTS_INIT;
    uint64_t count, other;
    size_t blocks, next = 0, at = 0;
    MUST(coffer_mlyze_event_count(&count, a, NULL) == COFFER_OK);
    MUST(coffer_mlyze_event_count(&other, b, NULL) == COFFER_OK && other == count);
    MUST(coffer_mlyze_block_count(&blocks, a, NULL) == COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        MUST(coffer_mlyze_read_block(&left, a, i, NULL) == COFFER_OK);
        for (size_t j = 0; j < left.count; j++, at++) {
            if (at == right.count) {
                MUST(coffer_mlyze_read_block(&right, b, next++, NULL) == COFFER_OK);
                at = 0;
            }
            MUST(same_block(&left, j, &right, at, times));
        }
    }
    coffer_mlyze_events_free(&left);
    coffer_mlyze_events_free(&right);
}

static bool goes_back(const coffer_mlyze *trace)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    uint64_t time = 0;
    size_t blocks;
    bool back = false;
    MUST(coffer_mlyze_block_count(&blocks, trace, NULL) == COFFER_OK);
    for (size_t i = 0; i < blocks; i++) {
        back |= fuzz_block(trace, i).time < time;
        MUST(coffer_mlyze_read_block(&events, trace, i, NULL) == COFFER_OK);
        time = events.time[events.count - 1];
    }
    coffer_mlyze_events_free(&events);
    return back;
}

typedef enum form { BLOCKS, PLAIN, ARCHIVE } form;

/* Rewrites, opens the copy, compares, and rewrites that in turn, in another form, when `next` is given. */
static void rewrite(const coffer_mlyze *trace, const char *path, form as, const char *next)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *source = NULL;
    coffer_mlyze *copy = NULL;
    opts.plain = as == PLAIN;
    opts.archive = as == ARCHIVE;
    opts.no_index = true;
    coffer_status status = coffer_mlyze_rewrite(trace, path, &opts, &err);
    MUST(status == COFFER_OK || err.text[0]);
    if (status)
        return;
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_mlyze_open(&copy, source, NULL, NULL) == COFFER_OK);
    MUST(coffer_mlyze_damage(copy, NULL) == COFFER_OK);
    compare(trace, copy, as == BLOCKS || !goes_back(trace));
    if (next)
        rewrite(copy, next, as == BLOCKS ? PLAIN : BLOCKS, NULL);
    coffer_mlyze_close(copy);
    coffer_source_close(source);
}

static void repair(const fuzz_input *input)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_source *source = NULL;
    coffer_mlyze *trace = NULL;
    opts.overwrite = true;
    opts.limits = &input->limits;
    MUST(coffer_report_new(&report, input->limits.findings, NULL) == COFFER_OK);
    coffer_status status = coffer_repair(report, input->source, saved, &opts, &err);
    MUST(status == COFFER_OK || err.text[0]);
    if (status == COFFER_OK) {
        MUST(coffer_source_open(&source, saved, NULL, NULL) == COFFER_OK);
        MUST(coffer_mlyze_open(&trace, source, NULL, NULL) == COFFER_OK);
        MUST(coffer_mlyze_damage(trace, NULL) == COFFER_OK);
    }
    coffer_mlyze_close(trace);
    coffer_source_close(source);
    coffer_report_free(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    name_files();
    opts.limits = &input.limits;
    if (coffer_mlyze_open(&trace, input.source, &opts, NULL) == COFFER_OK) {
        rewrite(trace, packed, BLOCKS, plain);
        rewrite(trace, plain, PLAIN, packed);
        rewrite(trace, packed, ARCHIVE, plain);
    }
    coffer_mlyze_close(trace);
    if (fuzz_input_is(&input, "mlyze"))
        repair(&input);
    unlink(packed);
    unlink(plain);
    unlink(saved);
    fuzz_input_close(&input);
    return 0;
}
