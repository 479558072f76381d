/* head, for training sets: the first samples as a table. */
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "mldf/sample_table.h"
#include "term.h"

static const cli_option options[] = {
    { "max", 'n', "N", NULL, "number of samples", "10", mldf_max_old },
    { "from", 0, "N", NULL, "first sample", "0" },
    { "field", 0, "NAME", NULL, "only this field; repeatable", "all fields" },
    MLDF_WHERE_OPTION,
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one JSON object per line: sample, and each field by its name" },
    CLI_KEY_OPTION,
    CLI_DAMAGED_OPTION,
    { 0 },
};

static int show(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    sample_reader reader = SAMPLE_READER_INIT(set, key->at != NULL);
    uint64_t samples = coffer_mldf_sample_count(set), count, from;
    sample_list list = { NULL, 0 };
    bool selected;
    if (!cli_number(&count, args, "max", 10, 0, UINT64_MAX) ||
        !cli_number(&from, args, "from", 0, 0, UINT64_MAX))
        return CLI_USAGE;
    int result = sample_where_read(&list, &selected, args, set);
    if (selected) {
        samples = list.count;
        reader.selection = list.at;
    }
    if (from > samples)
        from = samples;
    uint64_t end = count < samples - from ? from + count : samples;
    bool for_people = !cli_has(args, "json") && !cli_has(args, "csv");
    if (!result)
        result = cli_check_output(args);
    if (!result)
        result = sample_fields_read(&reader, args);
    if (!result)
        result = sample_table_print(&reader, args, from, end);
    term_text left;
    if (!result && for_people && end < samples)
        printf("%s… and %s more%s\n", term_on(stdout, TERM_DIM), term_count(left, samples - end),
               term_off(stdout));
    sample_reader_free(&reader);
    sample_list_free(&list);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mldf_with_set(args, src, show);
}

const cli_format_verb cli_mldf_head = {
    .format = "mldf",
    .verb = "head",
    .options = options,
    .examples = "  coffer head train.mldf                   # ten samples\n"
                "  coffer head train.mldf -n 3 --from 5000\n"
                "  coffer head train.mldf --json | jq .label\n"
                "  coffer head train.mldf --field label --field caption --csv\n"
                "  coffer head train.mldf --where label=3 --where 'image.width<64'\n",
    .run = run,
};
