/* Converts heap profiles of pprof: the objects and bytes of each sample become allocations of its stack. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"
#include "outside/archives/unpack.h"
#include "outside/profiles/pprof.h"

#include <inttypes.h>
#include <string.h>

#define NO_TYPE SIZE_MAX

/* The meaning of the values of a sample; NO_TYPE = missing. */
typedef struct heap_types {
    size_t total_count, total_bytes, peak_count, peak_bytes, end_count, end_bytes;
} heap_types;

typedef struct heap_profile {
    const coffer__convert_job *job;
    coffer__mlyze_import import;
    coffer__pprof profile;
    heap_types types;
    coffer_mlyze_frame *frames; /* of one stack */
    size_t frame_capacity;
    coffer__mlyze_sample *samples;
} heap_profile;

/* ---- Which values ---- */

static bool text_is(coffer__pprof_text text, const char *wanted)
{
    return text.len == strlen(wanted) && memcmp(text.text, wanted, text.len) == 0;
}

static size_t find_type(const coffer__pprof *profile, const char *name)
{
    for (size_t i = 0; i < profile->type_count; i++) {
        if (text_is(coffer__pprof_string(profile, profile->types[i].name), name))
            return i;
    }
    return NO_TYPE;
}

static size_t find_unit(const coffer__pprof *profile, const char *unit)
{
    for (size_t i = profile->type_count; i-- > 0;) {
        if (text_is(coffer__pprof_string(profile, profile->types[i].unit), unit))
            return i;
    }
    return NO_TYPE;
}

static size_t first_of(size_t a, size_t b)
{
    return a != NO_TYPE ? a : b;
}

/* Go has alloc_ and inuse_, gperftools objects and space, coffer also peak_. Any other count of bytes is
 * treated as live bytes. */
static coffer_status choose_types(heap_types *out, const coffer__pprof *profile, coffer_error *err)
{
    out->total_count = find_type(profile, "alloc_objects");
    out->total_bytes = find_type(profile, "alloc_space");
    out->end_count = first_of(find_type(profile, "inuse_objects"), find_type(profile, "objects"));
    out->end_bytes = first_of(find_type(profile, "inuse_space"), find_type(profile, "space"));
    if (out->end_bytes == NO_TYPE && out->total_bytes == NO_TYPE) {
        out->end_bytes = find_unit(profile, "bytes");
        out->end_count = NO_TYPE;
    }
    if (out->end_bytes == NO_TYPE && out->total_bytes == NO_TYPE)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "none of the %zu types of values counts bytes: this is not a heap profile",
                            profile->type_count);
    out->peak_count = first_of(find_type(profile, "peak_objects"), out->end_count);
    out->peak_bytes = first_of(find_type(profile, "peak_space"), out->end_bytes);
    if (out->total_bytes == NO_TYPE) {
        out->total_bytes = out->end_bytes;
        out->total_count = out->end_count;
    }
    return COFFER_OK;
}

static coffer_status take_value(uint64_t *out, const heap_profile *from, size_t sample, size_t type,
                                coffer_error *err)
{
    *out = 0;
    if (type == NO_TYPE)
        return COFFER_OK;
    *out = from->profile.values[from->profile.samples[sample].value_at + type];
    if (*out > INT64_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "sample %zu: %" PRId64 ": differences of profiles cannot become traces", sample,
                            (int64_t)*out);
    return COFFER_OK;
}

static coffer_status take_values(coffer__mlyze_sample *out, const heap_profile *from, size_t sample,
                                 coffer_error *err)
{
    const heap_types *types = &from->types;
    const struct {
        uint64_t *to;
        size_t type;
    } values[] = {
        { &out->total.count, types->total_count }, { &out->total.bytes, types->total_bytes },
        { &out->peak.count, types->peak_count },   { &out->peak.bytes, types->peak_bytes },
        { &out->end.count, types->end_count },     { &out->end.bytes, types->end_bytes },
    };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < sizeof values / sizeof *values; i++)
        status = take_value(values[i].to, from, sample, values[i].type, err);
    return status;
}

/* ---- Stacks ---- */

static coffer_status name_line(coffer_mlyze_frame *frame, heap_profile *from, const coffer__pprof_line *line,
                               coffer_error *err)
{
    const coffer__pprof *profile = &from->profile;
    coffer__pprof_text name = { "?", 1 }, file = { "", 0 };
    if (line->function != SIZE_MAX) {
        name = coffer__pprof_string(profile, profile->functions[line->function].name);
        file = coffer__pprof_string(profile, profile->functions[line->function].file);
    }
    frame->line = line->line <= UINT32_MAX ? line->line : 0;
    coffer_status status =
        coffer__mlyze_import_function(&frame->func_id, &from->import, name.text, name.len, err);
    if (!status)
        status = coffer__mlyze_import_file(&frame->file_id, &from->import, file.text, file.len, err);
    return status;
}

static coffer_status name_address(coffer_mlyze_frame *frame, heap_profile *from,
                                  const coffer__pprof_location *location, coffer_error *err)
{
    const coffer__pprof_named *mapping = coffer__pprof_find_mapping(&from->profile, location->mapping);
    coffer__pprof_text module = { "", 0 };
    coffer__buffer name = COFFER__BUFFER_INIT;
    if (mapping)
        module = coffer__pprof_string(&from->profile, mapping->file);
    /* Addresses differ from run to run, offsets in a module do not. */
    if (mapping && module.len && location->address >= mapping->start) {
        coffer__buffer_append(&name, module.text, module.len);
        coffer__buffer_printf(&name, "+0x%" PRIx64, location->address - mapping->start + mapping->offset);
    } else {
        coffer__buffer_printf(&name, "0x%" PRIx64 "%s", location->address, module.len ? " in " : "");
        coffer__buffer_append(&name, module.text, module.len);
    }
    coffer_status status = name.failed
                               ? coffer__fail_no_memory(err, module.len)
                               : coffer__mlyze_import_function(&frame->func_id, &from->import,
                                                               coffer__buffer_text(&name), name.len, err);
    coffer__buffer_free(&name);
    frame->line = 0;
    return status ? status : coffer__mlyze_import_file(&frame->file_id, &from->import, "", 0, err);
}

/* Room for the frames of one sample. */
static coffer_status reserve_frames(heap_profile *from, const coffer__pprof_sample *sample, coffer_error *err)
{
    uint64_t depth = 0;
    for (size_t i = 0; i < sample->location_count; i++) {
        const coffer__pprof_location *location =
            coffer__pprof_find_location(&from->profile, from->profile.location_ids[sample->location_at + i]);
        depth += location->line_count ? location->line_count : 1;
    }
    coffer_status status = coffer__mlyze_import_walk(&from->import, depth, err);
    if (status || depth <= from->frame_capacity)
        return status;
    coffer__free(from->frames);
    from->frames = coffer__alloc_array((size_t)depth, 2 * sizeof *from->frames);
    from->frame_capacity = from->frames ? 2 * (size_t)depth : 0;
    return from->frames ? COFFER_OK : coffer__fail_no_memory(err, depth * sizeof *from->frames);
}

static coffer_status take_stack(uint64_t *stack, heap_profile *from, const coffer__pprof_sample *sample,
                                coffer_error *err)
{
    size_t depth = 0;
    coffer_status status = reserve_frames(from, sample, err);
    for (size_t i = 0; !status && i < sample->location_count; i++) {
        const coffer__pprof_location *location =
            coffer__pprof_find_location(&from->profile, from->profile.location_ids[sample->location_at + i]);
        if (location->line_count == 0)
            status = name_address(&from->frames[depth++], from, location, err);
        for (size_t j = 0; !status && j < location->line_count; j++)
            status =
                name_line(&from->frames[depth++], from, &from->profile.lines[location->line_at + j], err);
    }
    return status ? status : coffer__mlyze_import_stack(stack, &from->import, from->frames, depth, err);
}

/* ---- Import ---- */

/* The blocks that all samples count, before the trace is created. */
static coffer_status expect_samples(heap_profile *from, coffer_error *err)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < from->profile.sample_count; i++) {
        coffer__mlyze_sample sample = { 0 };
        coffer_status status = take_values(&sample, from, i, err);
        if (status)
            return status;
        if (__builtin_add_overflow(blocks, sample.total.count, &blocks) ||
            __builtin_add_overflow(blocks, sample.peak.count, &blocks) ||
            __builtin_add_overflow(blocks, sample.end.count, &blocks))
            blocks = UINT64_MAX;
    }
    coffer__json_key(&from->import.json, "has_total");
    coffer__json_write_bool(&from->import.json, find_type(&from->profile, "alloc_space") != NO_TYPE);
    coffer__json_key(&from->import.json, "has_peak");
    coffer__json_write_bool(&from->import.json, find_type(&from->profile, "peak_space") != NO_TYPE);
    return coffer__mlyze_import_expect(&from->import, blocks, err);
}

static coffer_status take_profile(heap_profile *from, coffer_error *err)
{
    size_t count = from->profile.sample_count;
    coffer_status status = choose_types(&from->types, &from->profile, err);
    if (!status)
        status = expect_samples(from, err);
    if (!status)
        status = coffer__mlyze_import_create(&from->import, NULL, 0, from->profile.time_nanos / 1000, err);
    if (status)
        return status;
    from->samples = coffer__calloc(count + 1, sizeof *from->samples);
    if (!from->samples)
        return coffer__fail_no_memory(err, count * sizeof *from->samples);
    for (size_t i = 0; !status && i < count; i++) {
        status = take_values(&from->samples[i], from, i, err);
        if (!status)
            status = take_stack(&from->samples[i].stack, from, &from->profile.samples[i], err);
    }
    if (!status)
        status = coffer__mlyze_import_samples(&from->import, from->samples, count, 0, 0, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_pprof(const coffer__convert_job *job, coffer_error *err)
{
    heap_profile from = { .job = job };
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer__mlyze_import_open(&from.import, job, true);
    coffer_status status = coffer__unpack_all(&bytes, job->in, job->limits.json_bytes, &job->limits, err);
    if (!status)
        status = coffer__pprof_read(&from.profile, coffer__buffer_text(&bytes), bytes.len, &job->limits, err);
    if (!status)
        status = take_profile(&from, err);
    coffer__mlyze_import_close(&from.import);
    coffer__pprof_free(&from.profile);
    coffer__buffer_free(&bytes);
    coffer__free(from.frames);
    coffer__free(from.samples);
    return status;
}
