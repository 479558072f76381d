/* The verbs and notices that differ by format: the second table of the command. */
#include "mcf/mcf_verbs.h"
#include "mldf/mldf_verbs.h"
#include "mlyze/mlyze_verbs.h"
#include "mscan/mscan_verbs.h"
#include "pycauset/pycauset_verbs.h"
#include "tensors/tensors_verbs.h"
#include "verbs.h"

#include <string.h>

const cli_format_verb *const cli_format_verbs[] = {
    &cli_mscan_append,      &cli_mscan_get,        &cli_mscan_stats,
    &cli_mscan_heatmap,     &cli_mscan_replay,     &cli_mscan_set,
    &cli_mscan_delete,      &cli_mscan_concat,     &cli_mscan_split,
    &cli_mscan_diff,        &cli_pycauset_get,     &cli_pycauset_set,
    &cli_pycauset_revert,   &cli_pycauset_pack,    &cli_pycauset_log,
    &cli_pycauset_stats,    &cli_pycauset_heatmap, &cli_tensors_get,
    &cli_tensors_stats,     &cli_tensors_heatmap,  &cli_mcf_pack,
    &cli_mcf_set,           &cli_mcf_unpack,       &cli_mldf_append,
    &cli_mldf_concat,       &cli_mldf_delete,      &cli_mldf_get,
    &cli_mldf_head,         &cli_mldf_order,       &cli_mldf_pack,
    &cli_mldf_rename,       &cli_mldf_set,         &cli_mldf_sheet,
    &cli_mldf_split,        &cli_mldf_stats,       &cli_mlyze_get,
    &cli_mlyze_stats,       &cli_mlyze_peak,       &cli_mlyze_leaks,
    &cli_mlyze_temporaries, &cli_mlyze_heap,       &cli_mlyze_flame,
    &cli_mlyze_timeline,    &cli_mlyze_diff,       NULL,
};

const cli_format_notice *const cli_format_notices[] = { &cli_pycauset_notice, NULL };

bool cli_row_is_for(const cli_format_verb *row, const char *format)
{
    size_t len = strlen(format);
    for (const char *name = row->format; *name;) {
        size_t name_len = strcspn(name, ",");
        if (name_len == len && memcmp(name, format, len) == 0)
            return true;
        name += name_len;
        name += strspn(name, ", ");
    }
    return false;
}

const cli_format_verb *cli_find_format_verb(const char *verb, const char *format)
{
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (strcmp(cli_format_verbs[i]->verb, verb) == 0 && cli_row_is_for(cli_format_verbs[i], format))
            return cli_format_verbs[i];
    return NULL;
}
