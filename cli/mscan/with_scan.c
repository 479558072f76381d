#include "base/text.h"
#include "base/utf8.h"
#include "mscan_verbs.h"

#include <string.h>

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

const coffer_mscan_sequence *places_sequence_of(const coffer_mscan *scan, uint64_t token)
{
    return coffer_mscan_sequence_at(scan, coffer_mscan_sequence_of_token(scan, token));
}

const char *places_excerpt(places_text out, const coffer_mscan_sequence *sequence, size_t characters)
{
    static const char dots[] = "…";
    const uint8_t *at = (const uint8_t *)sequence->source;
    const uint8_t *end = at ? at + sequence->source_len : at;
    size_t used = 0;
    out[0] = '\0';
    for (size_t n = 0; at < end; n++) {
        uint32_t code_point;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0 || n == characters || used + step + sizeof dots > sizeof(places_text)) {
            memcpy(out + used, dots, sizeof dots);
            return out;
        }
        bool control = code_point < 0x20 || code_point == 0x7f;
        memcpy(out + used, control ? " " : (const char *)at, control ? 1 : step);
        used += control ? 1 : step;
        out[used] = '\0';
        at += step;
    }
    return out;
}
