#include "places.h"

#include "base/utf8.h"

#include <string.h>

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
