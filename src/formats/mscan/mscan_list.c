#include "formats/mscan/mscan_private.h"

#include "base/fail.h"
#include "base/glob.h"
#include "base/report.h"

#include <string.h>

static bool matches(const char *glob, const char *text, size_t len)
{
    return !glob || coffer__glob_match(glob, text ? text : "", len);
}

static coffer_status list_sequences(coffer_node *entries, const coffer_mscan *scan, const char *glob,
                                    coffer_error *err)
{
    bool sorted = false;
    coffer_status status = coffer_mscan_is_sorted(&sorted, scan, err);
    for (size_t i = 0; status == COFFER_OK && i < scan->metadata.sequence_count; i++) {
        const coffer_mscan_sequence *sequence = &scan->metadata.sequences[i];
        uint64_t first = 0, count = 0;
        coffer_node *entry;
        if (!matches(glob, sequence->source, sequence->source_len))
            continue;
        if (sorted)
            status = coffer_mscan_find_tokens(&first, &count, scan, sequence->first_token,
                                              sequence->first_token + sequence->num_tokens, err);
        if (status)
            break;
        entry = coffer__node_map(entries, NULL);
        coffer__node_u64(entry, "sequence_id", sequence->sequence_id, COFFER_UNIT_NONE);
        coffer__node_u64(entry, "num_tokens", sequence->num_tokens, COFFER_UNIT_NONE);
        coffer__node_u64(entry, "first_token", sequence->first_token, COFFER_UNIT_NONE);
        if (sorted)
            coffer__node_u64(entry, "records", count, COFFER_UNIT_NONE);
        else
            coffer__node_null(entry, "records");
        if (sequence->source)
            coffer__node_text_len(entry, "source", sequence->source, sequence->source_len);
        else
            coffer__node_null(entry, "source");
    }
    return status;
}

static void list_params(coffer_node *entries, const coffer_mscan *scan, const char *glob)
{
    for (size_t i = 0; i < scan->metadata.param_count; i++) {
        const coffer_mscan_param *param = &scan->metadata.params[i];
        coffer_node *entry;
        if (!matches(glob, param->name, param->name_len))
            continue;
        entry = coffer__node_map(entries, NULL);
        coffer__node_u64(entry, "id", param->id, COFFER_UNIT_NONE);
        coffer__node_text_len(entry, "name", param->name, param->name_len);
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
    coffer_node *entries = coffer__node_list(out, "entries");
    if (params)
        list_params(entries, scan, opts->glob);
    else
        status = list_sequences(entries, scan, opts->glob, err);
    coffer_mscan_close(scan);
    return status ? status : coffer__node_status(out, err);
}
