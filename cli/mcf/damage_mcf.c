/* Damage that a verb copied into a model. */
#include "coffer/mcf.h"
#include "mcf/mcf_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

int cli_report_damage(const char *path)
{
    coffer_mcf *model = NULL;
    size_t count = 0;
    if (cli_is_stream(path) || coffer_mcf_open_path(&model, path, NULL, NULL))
        return CLI_OK;
    count = coffer_mcf_damage_count(model);
    for (size_t i = 0; i < count; i++) {
        const coffer_mcf_damage *damage = coffer_mcf_damage_at(model, i);
        fputs("coffer: ", stderr);
        term_print_text(stderr, path, strlen(path), 0);
        fputs(damage->section ? ": section " : ": tensor ", stderr);
        term_print_text(stderr, damage->name, damage->name_len, 0);
        if (damage->reason == COFFER_MCF_DAMAGE_LOST) {
            fputs(" was lost in a repair; recorded in Damage\n", stderr);
            continue;
        }
        fprintf(stderr, ": %" PRIu64 " bytes from %" PRIu64 " on are %s; recorded in Damage\n", damage->size,
                damage->begin, damage->reason == COFFER_MCF_DAMAGE_CHECKSUM ? "damaged" : "not verified");
    }
    coffer_mcf_close(model);
    return count ? CLI_FINDINGS : CLI_OK;
}
