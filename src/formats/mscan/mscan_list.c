#include "formats/mscan/mscan_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <string.h>

static bool matches(const char *glob, const char *text, size_t len)
{
    return !glob || coffer__glob_match(glob, text ? text : "", len);
}

/* Records of each sequence, by index; coffer__free. */
static coffer_status count_records(uint64_t **out, const coffer_mscan *scan, coffer_error *err)
{
    size_t sequences = scan->metadata.sequence_count;
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_status status = COFFER_OK;
    bool sorted = false;
    uint64_t first, *counts = coffer__calloc(sequences ? sequences : 1, sizeof *counts);

    if (!counts)
        return coffer__fail_no_memory(err, sequences * sizeof *counts);
    query.by = COFFER_MSCAN_BY_SEQUENCE;
    query.limits = &scan->limits;
    status = coffer_mscan_is_sorted(&sorted, scan, err);
    for (size_t i = 0; !status && sorted && i < sequences; i++) {
        const coffer_mscan_sequence *sequence = &scan->metadata.sequences[i];
        status = coffer_mscan_find_tokens(&first, &counts[i], scan, sequence->first_token,
                                          sequence->first_token + sequence->num_tokens, err);
    }
    if (!status && !sorted)
        status = coffer_mscan_stats_new(&stats, scan, &query, err);
    if (!status && !sorted)
        for (size_t i = 0; i < coffer_mscan_stats_count(stats); i++)
            counts[coffer_mscan_stats_at(stats, i)->key] = coffer_mscan_stats_at(stats, i)->count;
    coffer_mscan_stats_free(stats);
    if (status)
        coffer__free(counts);
    else
        *out = counts;
    return status;
}

static coffer_status list_sequences(coffer_node *entries, const coffer_mscan *scan, const char *glob,
                                    coffer_error *err)
{
    uint64_t *counts = NULL;
    coffer_status status = count_records(&counts, scan, err);
    for (size_t i = 0; !status && i < scan->metadata.sequence_count; i++) {
        const coffer_mscan_sequence *sequence = &scan->metadata.sequences[i];
        coffer_node *entry;
        if (!matches(glob, sequence->source, sequence->source_len))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "sequence_id", sequence->sequence_id, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "num_tokens", sequence->num_tokens, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "first_token", sequence->first_token, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "records", counts[i], COFFER_UNIT_NONE);
        if (sequence->source)
            coffer_node_add_text_len(entry, "source", sequence->source, sequence->source_len);
        else
            coffer_node_add_null(entry, "source");
    }
    coffer__free(counts);
    return status;
}

static void list_params(coffer_node *entries, const coffer_mscan *scan, const char *glob)
{
    for (size_t i = 0; i < scan->metadata.param_count; i++) {
        const coffer_mscan_param *param = &scan->metadata.params[i];
        coffer_node *entry;
        if (!matches(glob, param->name, param->name_len))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_u64(entry, "id", param->id, COFFER_UNIT_NONE);
        coffer_node_add_text_len(entry, "name", param->name, param->name_len);
    }
}

coffer_status coffer__mscan_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err)
{
    coffer_mscan_open_opts open_options = COFFER_MSCAN_OPEN_OPTS_INIT;
    const char *what = opts->what ? opts->what : "sequences";
    bool params = strcmp(what, "params") == 0;
    coffer_mscan *scan;
    coffer_status status;

    if (!params && strcmp(what, "sequences") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a scan lists sequences or params, not \"%s\"", what);
    open_options.limits = opts->limits;
    status = coffer_mscan_open(&scan, src, &open_options, err);
    if (status)
        return status;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    if (params)
        list_params(entries, scan, opts->glob);
    else
        status = list_sequences(entries, scan, opts->glob, err);
    coffer_mscan_close(scan);
    return status ? status : coffer_node_status(out, err);
}
