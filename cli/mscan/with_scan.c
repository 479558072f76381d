#include "mscan_verbs.h"

int mscan_with_scan(const cli_args *args, coffer_source *src,
                    int (*work)(const cli_args *args, const coffer_mscan *scan))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan *scan = NULL;
    if (coffer_mscan_open(&scan, src, NULL, &err) != COFFER_OK)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    int result = work(args, scan);
    coffer_mscan_close(scan);
    return result;
}
