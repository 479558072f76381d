/* The file of another program that a trace was made of: which answers come from it. */
#include "base/options.h"
#include "formats/mlyze/mlyze_private.h"

static const char *text_of(const coffer__json_value *object, const char *key)
{
    const coffer__json_value *value = object ? coffer__json_find(object, key) : NULL;
    return value && value->kind == COFFER__JSON_STRING ? value->as.string : NULL;
}

/* Absent means `otherwise`. */
static bool is_true(const coffer__json_value *object, const char *key, bool otherwise)
{
    const coffer__json_value *value = object ? coffer__json_find(object, key) : NULL;
    return value && value->kind == COFFER__JSON_BOOL ? value->as.boolean : otherwise;
}

/* Version 0.1 kept the names that valgrind's tools use. */
static const char *unit_of(const coffer__json_value *source)
{
    const char *unit = text_of(source, "time_unit");
    if (!unit || strcmp(unit, "ms") == 0)
        return NULL;
    if (strcmp(unit, "i") == 0 || strcmp(unit, "instrs") == 0)
        return "instructions";
    return strcmp(unit, "B") == 0 ? "allocated bytes" : unit;
}

coffer_status coffer_mlyze_source_of(coffer_mlyze_source_info *out, const coffer_mlyze *trace,
                                     coffer_error *err)
{
    coffer_mlyze_source_info info = COFFER_MLYZE_SOURCE_INFO_INIT;
    const coffer__json_value *source = coffer__json_find(coffer__json_root(trace->metadata.json), "source");
    if (source && source->kind != COFFER__JSON_OBJECT)
        source = NULL;
    const coffer__json_value *blocks = source ? coffer__json_find(source, "blocks_per_event") : NULL;
    info.format = text_of(source, "format");
    info.synthetic = is_true(source, "synthetic", false);
    info.time_unit = unit_of(source);
    if (blocks)
        coffer__json_u64(&info.blocks_per_event, blocks);
    bool massif = info.format && strcmp(info.format, "massif") == 0;
    bool pprof = info.format && strcmp(info.format, "pprof") == 0;
    info.has_total = is_true(source, "has_total", !massif);
    info.has_peak = is_true(source, "has_peak", !pprof);
    info.has_leaks = !massif;
    info.has_order = !info.synthetic;
    return coffer__give_struct(out, &info, sizeof info, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_source_info, COFFER_MLYZE_SOURCE_INFO_INIT)
