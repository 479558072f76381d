#include "base/text.h"
#include "mscan_verbs.h"

int mscan_with_scan(const cli_args *args, coffer_source *src,
                    int (*work)(const cli_args *args, const coffer_mscan *scan))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan *scan = NULL;
    if (coffer_mscan_open(&scan, src, NULL, &err) != COFFER_OK)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    int result = work(args, scan);
    if (coffer_mscan_damage_count(scan) > 0 && result == CLI_OK) {
        fprintf(stderr,
                "coffer: %s: a repair could not verify parts of the scan (%zu marks): values may be wrong\n"
                "  hint: 'coffer check' lists them, 'coffer set FILE --delete damage' accepts them\n",
                cli_operand(args, 0), coffer_mscan_damage_count(scan));
        result = CLI_FINDINGS;
    }
    coffer_mscan_close(scan);
    return result;
}

size_t mscan_params_matching(const coffer_mscan *scan, const char *glob)
{
    size_t count = 0;
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        count += !glob || coffer__glob_match(glob, param->name, param->name_len);
    }
    return count;
}
