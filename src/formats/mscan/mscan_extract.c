/* New scans from sequences of existing ones: extract, concatenate, delete. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STEPS_BETWEEN 64 /* tokens between two calls of progress */

typedef struct copying {
    coffer_mscan_writer *writer;
    const coffer_mscan_extract_opts *opts;
    uint16_t *ids; /* by param_id of the scan that is copied */
    bool *left_out;
    uint64_t done, total; /* records */
} copying;

COFFER__INIT_FUNCTION(coffer_mscan_extract_opts, COFFER_MSCAN_EXTRACT_OPTS_INIT)

size_t coffer_mscan_damage_count(const coffer_mscan *scan)
{
    return scan->metadata.mark_count;
}

/* Damage must not get lost in a new file, and records that belong to no sequence neither. */
static coffer_status refuse_damaged(const coffer_mscan *scan, coffer_error *err)
{
    if (scan->metadata.mark_count > 0)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MSCAN_HEADER_SIZE,
                            "a repair could not verify parts of the scan (%zu marks): accept them with "
                            "'coffer set FILE --delete damage'",
                            scan->metadata.mark_count);
    /* The new scan could not tell the records that the caller accepted from the others. */
    coffer_status status = coffer__mscan_verify_all(scan->verifier, scan->record_count, err);
    if (status)
        return status;
    coffer__mscan_survey_opts opts = { .source = scan->source,
                                       .area = scan->record_area,
                                       .count = scan->record_count,
                                       .metadata = &scan->metadata };
    coffer__mscan_survey *survey = coffer__malloc(sizeof *survey);
    if (!survey)
        return coffer__fail_no_memory(err, sizeof *survey);
    status = coffer__mscan_survey_records(survey, &opts, err);
    if (!status && survey->past_count > 0)
        status = coffer__fail(err, COFFER_E_INCONSISTENT,
                              scan->record_area + survey->past_first * COFFER__MSCAN_RECORD_SIZE,
                              "%" PRIu64 " records belong to no sequence; repair the scan first",
                              survey->past_count);
    coffer__free(survey);
    return status;
}

/* ---- Metadata without sequences ---- */

static bool is_scale_of_sequences(const coffer__json_value *entry)
{
    const coffer__json_value *scope = coffer__json_find(entry, "scope");
    return scope && scope->kind == COFFER__JSON_STRING && strcmp(scope->as.string, "sequence") == 0;
}

/* Scales of sequences are a list in their order: those of the selected ones stay. */
static void write_scale_entry(coffer__json_writer *json, const coffer__json_value *entry,
                              const coffer_mscan_extract_opts *opts)
{
    const coffer__json_value *value;
    coffer__json_open_object(json);
    for (value = coffer__json_first(entry); value; value = coffer__json_next(entry, value)) {
        coffer__json_key_len(json, value->key, value->key_len);
        if (strcmp(value->key, "values") != 0 || value->kind != COFFER__JSON_ARRAY) {
            coffer__json_write_value(json, value);
            continue;
        }
        size_t index = 0, next = 0;
        coffer__json_open_array(json);
        for (const coffer__json_value *scale = coffer__json_first(value); scale;
             scale = coffer__json_next(value, scale), index++) {
            if (next < opts->sequence_count && opts->sequences[next] == index) {
                coffer__json_write_value(json, scale);
                next++;
            }
        }
        coffer__json_close_array(json);
    }
    coffer__json_close_object(json);
}

static void write_scales(coffer__json_writer *json, const coffer__json_value *scales,
                         const coffer_mscan_extract_opts *opts)
{
    coffer__json_open_object(json);
    for (const coffer__json_value *entry = coffer__json_first(scales); entry;
         entry = coffer__json_next(scales, entry)) {
        coffer__json_key_len(json, entry->key, entry->key_len);
        if (is_scale_of_sequences(entry))
            write_scale_entry(json, entry, opts);
        else
            coffer__json_write_value(json, entry);
    }
    coffer__json_close_object(json);
}

static void write_names(coffer__json_writer *json, const coffer__mscan_metadata *metadata,
                        const char *without)
{
    char key[24];
    coffer__json_open_object(json);
    for (size_t i = 0; i < metadata->param_count; i++) {
        const coffer_mscan_param *param = &metadata->params[i];
        if (without && coffer__glob_match(without, param->name, param->name_len))
            continue;
        snprintf(key, sizeof key, "%" PRIu64, param->id);
        coffer__json_key(json, key);
        coffer__json_string_len(json, param->name, param->name_len);
    }
    coffer__json_close_object(json);
}

static coffer_status compose_base(coffer__buffer *out, const coffer_mscan *scan,
                                  const coffer_mscan_extract_opts *opts, coffer_error *err)
{
    const coffer__json_value *root = scan->metadata.root, *value;
    coffer__json_writer json;
    coffer__json_writer_init(&json, out, 0);
    coffer__json_open_object(&json);
    for (value = coffer__json_first(root); value; value = coffer__json_next(root, value)) {
        coffer__json_key_len(&json, value->key, value->key_len);
        if (strcmp(value->key, "sequences") == 0) {
            coffer__json_open_array(&json);
            coffer__json_close_array(&json);
        } else if (strcmp(value->key, "id_to_param_name_map") == 0) {
            write_names(&json, &scan->metadata, opts->without_params);
        } else if (strcmp(value->key, "quantization") == 0 && value->kind == COFFER__JSON_OBJECT &&
                   opts->sequences) {
            write_scales(&json, value, opts);
        } else {
            coffer__json_write_value(&json, value);
        }
    }
    coffer__json_close_object(&json);
    coffer__buffer_append(out, "", 1);
    return out->failed ? coffer__fail_no_memory(err, out->len) : COFFER_OK;
}

static coffer_status create_writer(coffer_mscan_writer **out, const char *path, const coffer_mscan *scan,
                                   const coffer_mscan_extract_opts *opts, bool rewrites, coffer_error *err)
{
    coffer_mscan_writer_opts settings = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer__buffer base = COFFER__BUFFER_INIT;
    coffer_status status = compose_base(&base, scan, opts, err);
    settings.overwrite = opts->overwrite;
    settings.limits = opts->limits;
    settings.metadata_json = (const char *)base.data;
    if (!status)
        status = coffer__mscan_writer_begin(out, path, &settings, rewrites, err);
    coffer__buffer_free(&base);
    return status;
}

/* ---- Copying ---- */

static coffer_status match_params(copying *work, const coffer_mscan *scan, coffer_error *err)
{
    const char *without = work->opts->without_params;
    coffer_status status = COFFER_OK;
    memset(work->left_out, 0, COFFER__MSCAN_PARAM_IDS * sizeof *work->left_out);
    for (size_t i = 0; !status && i < scan->metadata.param_count; i++) {
        const coffer_mscan_param *param = &scan->metadata.params[i];
        if (param->id >= COFFER__MSCAN_PARAM_IDS)
            continue;
        work->left_out[param->id] = without && coffer__glob_match(without, param->name, param->name_len);
        if (!work->left_out[param->id])
            status = coffer_mscan_writer_add_param(&work->ids[param->id], work->writer, param->name, err);
    }
    return status;
}

static coffer_status copy_step(copying *work, const coffer_mscan *scan, const coffer_mscan_step *step,
                               coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < step->record_count; i++) {
        coffer_mscan_record record = step->records[i];
        if (!coffer_mscan_param_name(scan, record.param_id))
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "a record of token %" PRIu64 " has param_id %u, which has no name",
                                step->token, record.param_id);
        if (work->left_out[record.param_id])
            continue;
        record.token_idx = (uint32_t)step->position;
        record.param_id = work->ids[record.param_id];
        status = coffer_mscan_writer_put_records(work->writer, &record, 1, err);
    }
    work->done += step->record_count;
    const coffer_progress *progress = work->opts->progress;
    if (!status && progress && progress->step && step->position % STEPS_BETWEEN == 0 &&
        progress->step(progress->context, work->done, work->total))
        status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
    return status;
}

/* Begins a sequence with the id, the source and the other keys of one that is copied. */
static coffer_status begin_copy(copying *work, const coffer_mscan *scan, size_t index, coffer_error *err)
{
    const coffer_mscan_sequence *sequence = &scan->metadata.sequences[index];
    coffer_mscan_writer *writer = work->writer;
    if (sequence->sequence_id > writer->next_sequence_id)
        writer->next_sequence_id = sequence->sequence_id;
    coffer_status status =
        coffer_mscan_writer_begin_sequence_len(writer, sequence->source, sequence->source_len, err);
    if (!status)
        writer->sequences[writer->sequence_count - 1].others = scan->metadata.sequence_values[index];
    return status;
}

static coffer_status copy_sequence(copying *work, const coffer_mscan *scan, coffer_mscan_replay *replay,
                                   size_t index, coffer_error *err)
{
    const coffer_mscan_sequence *sequence = &scan->metadata.sequences[index];
    coffer_status status = begin_copy(work, scan, index, err);
    if (!status)
        status = coffer_mscan_replay_seek(replay, sequence->first_token, err);
    for (uint64_t i = 0; !status && i < sequence->num_tokens; i++) {
        coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
        bool more;
        status = coffer_mscan_replay_next(&more, &step, replay, err);
        if (!status)
            status = copy_step(work, scan, &step, err);
    }
    return status ? status : coffer_mscan_writer_end_sequence(work->writer, sequence->num_tokens, err);
}

/* opts : the selection, used for the first scan only. */
static coffer_status copy_scan(copying *work, const coffer_mscan *scan, coffer_error *err)
{
    coffer_mscan_replay *replay = NULL;
    const coffer_mscan_extract_opts *opts = work->opts;
    size_t count = opts->sequences ? opts->sequence_count : scan->metadata.sequence_count;
    coffer_status status = match_params(work, scan, err);
    if (!status)
        status = coffer_mscan_replay_new(&replay, scan, NULL, err);
    for (size_t i = 0; !status && i < count; i++)
        status = copy_sequence(work, scan, replay, opts->sequences ? opts->sequences[i] : i, err);
    coffer_mscan_replay_free(replay);
    return status;
}

/* Writes all scans to the writer and commits or discards it. */
static coffer_status copy_all(coffer_mscan_writer *writer, const coffer_mscan *const *scans, size_t count,
                              const coffer_mscan_extract_opts *opts, coffer_error *err)
{
    copying work = { .writer = writer, .opts = opts };
    coffer_status status = COFFER_OK;
    work.ids = coffer__calloc(COFFER__MSCAN_PARAM_IDS, sizeof *work.ids);
    work.left_out = coffer__calloc(COFFER__MSCAN_PARAM_IDS, sizeof *work.left_out);
    if (!work.ids || !work.left_out)
        status = coffer__fail_no_memory(err, COFFER__MSCAN_PARAM_IDS * sizeof *work.ids);
    for (size_t i = 0; i < count; i++)
        work.total += scans[i]->record_count;
    for (size_t i = 0; !status && i < count; i++) {
        status = copy_scan(&work, scans[i], err);
        if (status && i > 0)
            coffer__fail_input(err, status, coffer_source_name(scans[i]->source));
    }
    if (status)
        coffer_mscan_writer_discard(writer);
    else
        status = coffer_mscan_writer_commit(writer, err);
    coffer__free(work.ids);
    coffer__free(work.left_out);
    return status;
}

static coffer_status check_selection(const coffer_mscan *scan, const coffer_mscan_extract_opts *opts,
                                     coffer_error *err)
{
    for (size_t i = 0; opts->sequences && i < opts->sequence_count; i++) {
        if (opts->sequences[i] >= scan->metadata.sequence_count ||
            (i > 0 && opts->sequences[i] <= opts->sequences[i - 1]))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "sequence %zu requested, the scan has %zu; they must be in order",
                                opts->sequences[i], scan->metadata.sequence_count);
    }
    return refuse_damaged(scan, err);
}

coffer_status coffer_mscan_extract(const char *out_path, const coffer_mscan *scan,
                                   const coffer_mscan_extract_opts *opts, coffer_error *err)
{
    coffer_mscan_extract_opts options = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_selection(scan, &options, err);
    if (!status)
        status = create_writer(&writer, out_path, scan, &options, false, err);
    return status ? status : copy_all(writer, &scan, 1, &options, err);
}

/* ---- Several scans ---- */

static bool is_same_value(const coffer__json_value *a, const coffer__json_value *b)
{
    coffer__buffer left = COFFER__BUFFER_INIT, right = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    if (!a || !b)
        return !a && !b;
    coffer__json_writer_init(&json, &left, 0);
    coffer__json_write_value(&json, a);
    coffer__json_writer_init(&json, &right, 0);
    coffer__json_write_value(&json, b);
    bool same = !left.failed && !right.failed && left.len == right.len &&
                memcmp(left.data, right.data, left.len) == 0;
    coffer__buffer_free(&left);
    coffer__buffer_free(&right);
    return same;
}

/* Integers of one file must mean the same throughout it. */
static coffer_status compare_scales(const coffer_mscan *first, const coffer_mscan *scan, coffer_error *err)
{
    const coffer__json_value *scales = coffer__json_find(first->metadata.root, "quantization");
    const coffer__json_value *others = coffer__json_find(scan->metadata.root, "quantization");
    bool by_sequence = is_scale_of_sequences(coffer__json_find(scales, "activation")) ||
                       is_scale_of_sequences(coffer__json_find(scales, "grad_norm"));
    bool by_param = first->metadata.scales[0].scope == COFFER_MSCAN_SCALE_PARAM ||
                    first->metadata.scales[1].scope == COFFER_MSCAN_SCALE_PARAM;
    if (by_sequence)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER__MSCAN_HEADER_SIZE,
                            "each sequence has a scale of its own: such scans cannot be joined");
    if (!is_same_value(scales, others) ||
        (by_param && !is_same_value(coffer__json_find(first->metadata.root, "id_to_param_name_map"),
                                    coffer__json_find(scan->metadata.root, "id_to_param_name_map"))))
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER__MSCAN_HEADER_SIZE,
                            "its values are quantized in another way than those of the first scan");
    return COFFER_OK;
}

coffer_status coffer_mscan_concat(const char *out_path, const coffer_mscan *const *scans, size_t count,
                                  const coffer_mscan_extract_opts *opts, coffer_error *err)
{
    coffer_mscan_extract_opts options = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    options.sequences = NULL;
    options.without_params = NULL;
    if (!status && count == 0)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no scans to join");
    for (size_t i = 0; !status && i < count; i++) {
        status = refuse_damaged(scans[i], err);
        if (!status && i > 0)
            status = compare_scales(scans[0], scans[i], err);
        if (status && i > 0)
            coffer__fail_input(err, status, coffer_source_name(scans[i]->source));
    }
    if (!status)
        status = create_writer(&writer, out_path, scans[0], &options, false, err);
    return status ? status : copy_all(writer, scans, count, &options, err);
}

/* ---- In place ---- */

coffer_status coffer_mscan_update_keep(const char *path, const coffer_mscan_extract_opts *opts,
                                       coffer_error *err)
{
    coffer_mscan_extract_opts options = COFFER_MSCAN_EXTRACT_OPTS_INIT;
    coffer_mscan_open_opts open_options = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mscan_writer *writer = NULL;
    coffer_mscan *scan = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    options.overwrite = true;
    open_options.limits = options.limits;
    if (!status)
        status = coffer__update_open(&update, path, NULL, err);
    if (!status)
        status = coffer_mscan_open(&scan, coffer__update_source(update), &open_options, err);
    if (!status)
        status = check_selection(scan, &options, err);
    if (!status)
        status = create_writer(&writer, path, scan, &options, true, err);
    if (!status) {
        const coffer_mscan *only = scan;
        status = copy_all(writer, &only, 1, &options, err);
    }
    coffer_mscan_close(scan);
    coffer__update_close(update);
    return status;
}
