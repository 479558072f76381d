/* append, for training sets: the samples of another set, or of anything that 'pack' makes one of. */
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/mldf.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_value.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

/* Labels of two sets that name their classes: a name has the same number in both, whatever it was in the
 * second one. */

typedef struct class_entry {
    char *name;
    size_t len;
    int64_t label;
} class_entry;

typedef struct class_map {
    const coffer_mldf *from;
    size_t label, from_class; /* fields: of the first set's labels, of the second set's classes */
    bool is_used;             /* both sets have a number "label" and a text "class" */
    class_entry *slots;       /* a hash table; one without a name is free */
    size_t capacity, count;
    int64_t next; /* label of the next class that is new */
    coffer_bytes bytes;
} class_map;

enum { FIRST_CAPACITY = 64 };

static size_t field_of(const coffer_mldf *set, const char *name, uint16_t type)
{
    size_t field = coffer_mldf_find_field(set, name);
    return field != SIZE_MAX && coffer_mldf_field_at(set, field)->type == type ? field : SIZE_MAX;
}

/* FNV-1a, 32 bits. */
static uint32_t hash(const char *name, size_t len)
{
    uint32_t value = 2166136261U;
    for (size_t i = 0; i < len; i++)
        value = (value ^ (uint8_t)name[i]) * 16777619U;
    return value;
}

/* The slot of the name, or the free one where it belongs. */
static class_entry *find(class_entry *slots, size_t capacity, const char *name, size_t len)
{
    size_t at = hash(name, len) & (capacity - 1);
    while (slots[at].name && (slots[at].len != len || memcmp(slots[at].name, name, len) != 0))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(class_map *map)
{
    size_t capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY;
    class_entry *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].name)
            *find(slots, capacity, map->slots[i].name, map->slots[i].len) = map->slots[i];
    coffer__free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

/* The label of a name; one that is new gets the label given. */
static coffer_status look_up(int64_t *label, class_map *map, const char *name, size_t len, coffer_error *err)
{
    if (2 * map->count >= map->capacity && !grow(map))
        return coffer__fail_no_memory(err, 2 * map->capacity * sizeof *map->slots);
    class_entry *entry = find(map->slots, map->capacity, name, len);
    if (!entry->name) {
        entry->name = coffer__strndup(name, len);
        if (!entry->name)
            return coffer__fail_no_memory(err, len);
        entry->len = len;
        entry->label = *label;
        map->count++;
        if (*label >= map->next && *label < INT64_MAX)
            map->next = *label + 1;
    }
    *label = entry->label;
    return COFFER_OK;
}

static coffer_status read_classes(class_map *map, const coffer_mldf *old, size_t class_field,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint64_t last = 0; /* equal names that follow each other are mostly one payload */
    for (uint64_t i = 0; i < coffer_mldf_sample_count(old) && !status; i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        int64_t label;
        status = coffer_mldf_entry_at(&entry, old, i, class_field, err);
        if (status || !entry.present || entry.offset == last)
            continue;
        last = entry.offset;
        status = coffer_mldf_get_text(&map->bytes, old, i, class_field, err);
        if (!status)
            status = coffer_mldf_get_int(&label, old, i, map->label, err);
        if (!status)
            status = look_up(&label, map, (const char *)map->bytes.data, map->bytes.size, err);
    }
    return status;
}

static void class_map_free(class_map *map)
{
    for (size_t i = 0; i < map->capacity; i++)
        coffer__free(map->slots[i].name);
    coffer__free(map->slots);
    coffer_free(map->bytes.data);
}

/* Reads the classes of `old`. from : borrowed. */
static coffer_status class_map_new(class_map *out, const coffer_mldf *old, const coffer_mldf *from,
                                   coffer_error *err)
{
    class_map map = { .from = from, .bytes = COFFER_BYTES_INIT };
    size_t class_field = field_of(old, "class", COFFER_MLDF_TEXT);
    map.label = field_of(old, "label", COFFER_MLDF_INT);
    map.from_class = field_of(from, "class", COFFER_MLDF_TEXT);
    map.is_used = class_field != SIZE_MAX && map.label != SIZE_MAX && map.from_class != SIZE_MAX;
    coffer_status status = map.is_used ? read_classes(&map, old, class_field, err) : COFFER_OK;
    if (!status)
        *out = map;
    else
        class_map_free(&map);
    return status;
}

/* The label that a sample of `from` gets in field `field` of the first set: *label stays for fields that are
 * no labels, and for samples without a class. */
static coffer_status class_map_label(int64_t *label, class_map *map, uint64_t sample, size_t field,
                                     coffer_error *err)
{
    if (!map->is_used || field != map->label)
        return COFFER_OK;
    coffer_status status = coffer_mldf_get_text(&map->bytes, map->from, sample, map->from_class, err);
    if (status)
        return status == COFFER_E_MISSING ? COFFER_OK : status;
    *label = map->next;
    return look_up(label, map, (const char *)map->bytes.data, map->bytes.size, err);
}

static const cli_option options[] = {
    { "kind", 0, "KIND", "images|audio|text|arrays|webdataset|manifest", "kind of IN when it is not a set",
      "detected" },
    { "dedup", 0, NULL, NULL, "store equal values of the new samples once" },
    { "zstd-level", 0, "N", NULL, "level of compressed fields, 1 to 22", "3" },
    { "keep-going", 'k', NULL, NULL, "skip files that cannot be read" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, samples_added, samples" },
    CLI_KEY_OPTION,
    { 0 },
};

enum { SAMPLES_BETWEEN = 64 }; /* two looks at progress and signals */

typedef struct append_job {
    const cli_args *args;
    const cli_key *key;
    const char *path, *in_path;
    const coffer_mldf *old;
    coffer_mldf_writer_opts opts;
    coffer_source *src;
    coffer_mldf *new_set;
    char *temporary; /* while IN is packed */
    bool was_packed; /* false when IN is a set */
    class_map classes;
    size_t *fields; /* for each field of FILE the one of IN, or SIZE_MAX */
    coffer_bytes bytes;
    term_progress bar;
} append_job;

/* ---- Reading the input ---- */

static bool is_set(const char *path)
{
    coffer_source *src = NULL;
    const coffer_format *format = NULL;
    bool found = coffer_source_open(&src, path, NULL, NULL) == COFFER_OK &&
                 coffer_identify(&format, src, NULL) == COFFER_OK &&
                 strcmp(coffer_format_name(format), "mldf") == 0;
    coffer_source_close(src);
    return found;
}

/* Pixels are stored decoded where FILE has them so. */
static bool wants_pixels(const coffer_mldf *set)
{
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++)
        if (coffer_mldf_field_at(set, i)->type == COFFER_MLDF_IMAGE_RAW)
            return true;
    return false;
}

/* Anything but a set is packed first, under a temporary name next to FILE. */
static coffer_status pack_first(append_job *job, coffer_error *err)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_node *packed = NULL;
    coffer_status status = coffer_temporary_create(&job->temporary, job->path, err);
    if (status)
        return status;
    job->was_packed = true;
    opts.kind = cli_has(job->args, "kind") ? (coffer_dataset_kind)(cli_choice(job->args, "kind", 0) + 1)
                                           : COFFER_DATASET_AUTO;
    opts.raw = wants_pixels(job->old);
    opts.keep_going = cli_has(job->args, "keep-going");
    write.no_partial = true;
    write.threads = job->opts.threads;
    write.dedup = job->opts.dedup;
    write.overwrite = true; /* the temporary file exists */
    opts.write = &write;
    opts.progress = &job->bar.progress;
    term_progress_start(&job->bar, "packing", "samples");
    status = coffer_node_new(&packed, err);
    if (!status)
        status = coffer_mldf_pack(packed, &job->in_path, 1, job->temporary, &opts, err);
    coffer_node_free(packed);
    term_progress_end(&job->bar);
    return status;
}

static coffer_status open_new(append_job *job, coffer_error *err)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_status status = COFFER_OK;
    opts.key = job->key->at;
    opts.verify = true;
    if (!is_set(job->in_path))
        status = pack_first(job, err);
    if (!status)
        status = coffer_source_open(&job->src, job->temporary ? job->temporary : job->in_path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&job->new_set, job->src, &opts, err);
    /* Open files need no name: nothing is left of it whatever happens from here on. */
    coffer_temporary_remove(job->temporary);
    job->temporary = NULL;
    return status;
}

/* ---- Which field goes where ---- */

static coffer_status fail_field(coffer_error *err, const coffer_mldf_field *field, const char *what)
{
    sample_type_text type;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field \"%s\" (%s) %s",
                        field->name, sample_type_name(type, field), what);
}

static bool is_picture(uint16_t type)
{
    return type == COFFER_MLDF_IMAGE_RAW || type == COFFER_MLDF_IMAGE_JPEG || type == COFFER_MLDF_IMAGE_PNG;
}

/* True when values of one field can be stored in the other unchanged. */
static bool agrees(const coffer_mldf_field *old, const coffer_mldf_field *new_field)
{
    bool numbers = old->type == COFFER_MLDF_FLOAT && new_field->type == COFFER_MLDF_INT;
    bool pictures = is_picture(old->type) && is_picture(new_field->type) &&
                    (old->type == COFFER_MLDF_IMAGE_RAW) == (new_field->type == COFFER_MLDF_IMAGE_RAW);
    if (numbers || pictures)
        return true;
    if (old->type != new_field->type || old->dtype != new_field->dtype || old->ndim != new_field->ndim)
        return false;
    for (uint32_t i = 0; i < old->ndim; i++)
        if (old->dims[i] && old->dims[i] != new_field->dims[i])
            return false;
    return true;
}

static coffer_status match_fields(append_job *job, coffer_error *err)
{
    size_t count = coffer_mldf_field_count(job->old), matched = 0;
    job->fields = coffer__alloc_array(count + 1, sizeof *job->fields);
    if (!job->fields)
        return coffer__fail_no_memory(err, count * sizeof *job->fields);
    for (size_t i = 0; i < count; i++) {
        const coffer_mldf_field *old = coffer_mldf_field_at(job->old, i);
        size_t found = coffer_mldf_find_field(job->new_set, old->name);
        job->fields[i] = found;
        matched += found != SIZE_MAX;
        if (found == SIZE_MAX && !(old->flags & COFFER_MLDF_FIELD_OPTIONAL))
            return fail_field(err, old, "is missing in what shall be appended");
        if (found != SIZE_MAX && !agrees(old, coffer_mldf_field_at(job->new_set, found)))
            return fail_field(err, coffer_mldf_field_at(job->new_set, found),
                              "is of another type or shape than in the set");
    }
    if (matched == coffer_mldf_field_count(job->new_set))
        return COFFER_OK;
    for (size_t i = 0; i < coffer_mldf_field_count(job->new_set); i++) {
        const coffer_mldf_field *field = coffer_mldf_field_at(job->new_set, i);
        if (coffer_mldf_find_field(job->old, field->name) == SIZE_MAX)
            return fail_field(err, field, "is not in the set; 'coffer set --add-field' adds one");
    }
    return COFFER_OK;
}

/* ---- Copying ---- */

static coffer_status copy_value(append_job *job, coffer_mldf_writer *writer, uint64_t sample, size_t to,
                                coffer_error *err)
{
    size_t from = job->fields[to];
    const coffer_mldf_field *field = coffer_mldf_field_at(job->new_set, from);
    const coffer_mldf_field *target = coffer_mldf_field_at(job->old, to);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_status status = coffer_mldf_entry_at(&entry, job->new_set, sample, from, err);
    if (status || !entry.present)
        return status;
    if (target->kind == COFFER_MLDF_ENTRY_INT) {
        status = class_map_label(&entry.i64, &job->classes, sample, to, err);
        return status ? status : coffer_mldf_writer_set_int(writer, to, entry.i64, err);
    }
    if (target->kind == COFFER_MLDF_ENTRY_FLOAT)
        return coffer_mldf_writer_set_float(
            writer, to, field->kind == COFFER_MLDF_ENTRY_INT ? (double)entry.i64 : entry.f64, err);
    if (field->dtype != COFFER_DTYPE_NONE) {
        status = coffer_mldf_get_array(&job->bytes, dims, job->new_set, sample, from, err);
        return !status ? coffer_mldf_writer_set_array(writer, to, dims, job->bytes.data, job->bytes.size, err)
                       : status;
    }
    status = coffer_mldf_read(&job->bytes, &entry, job->new_set, sample, from, err);
    return !status ? coffer_mldf_writer_set_bytes(writer, to, job->bytes.data, job->bytes.size, &entry, err)
                   : status;
}

static coffer_status copy_samples(append_job *job, coffer_mldf_writer *writer, coffer_error *err)
{
    uint64_t count = coffer_mldf_sample_count(job->new_set);
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        for (size_t j = 0; j < coffer_mldf_field_count(job->old) && !status; j++)
            if (job->fields[j] != SIZE_MAX)
                status = copy_value(job, writer, i, j, err);
        if (!status)
            status = coffer_mldf_writer_end_sample(writer, err);
        if (!status && i % SAMPLES_BETWEEN == 0) {
            job->bar.progress.step(&job->bar, i, count);
            if (cli_signal_waits())
                status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "interrupted");
        }
    }
    return status;
}

/* Signals wait until FILE has its old content or all of IN, so that no journal is left. */
static coffer_status append(append_job *job, coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    cli_hold_signals();
    term_progress_start(&job->bar, "appending", "samples");
    coffer_status status = coffer_mldf_writer_append_to(&writer, job->path, &job->opts, err);
    if (!status) {
        status = copy_samples(job, writer, err);
        if (!status)
            status = coffer_mldf_writer_commit(writer, err);
        else
            coffer_mldf_writer_discard(writer);
    }
    term_progress_end(&job->bar);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return status;
}

/* ---- The verb ---- */

static int report(const append_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_text added, all;
    uint64_t more = coffer_mldf_sample_count(job->new_set), before = coffer_mldf_sample_count(job->old);
    if (!cli_has(job->args, "json")) {
        term_print_text(stdout, job->path, strlen(job->path), 0);
        printf(": samples added: %s, now %s\n", term_count(added, more), term_count(all, before + more));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(job->path, &err, NULL);
    coffer_node_add_text(root, "file", job->path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "samples_added", more, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "samples", before + more, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static void clean_up(append_job *job)
{
    coffer_mldf_close(job->new_set);
    coffer_source_close(job->src);
    coffer__free(job->fields);
    class_map_free(&job->classes);
    coffer_free(job->bytes.data);
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    append_job job = { .args = args,
                       .key = key,
                       .path = cli_operand(args, 0),
                       .in_path = cli_operand(args, 1),
                       .old = set,
                       .bytes = COFFER_BYTES_INIT };
    coffer_error err = COFFER_ERROR_INIT;
    int result = mldf_write_opts(&job.opts, args, key, NULL);
    if (result)
        return result;
    coffer_status status = open_new(&job, &err);
    if (!status)
        status = match_fields(&job, &err);
    if (!status)
        status = class_map_new(&job.classes, set, job.new_set, &err);
    if (status && job.was_packed)
        result = cli_fail_between(job.in_path, job.path, &err,
                                  coffer__is_about_file(status) ? "nothing was appended" : NULL);
    else if (status)
        result = mldf_fail(job.in_path, &err);
    else
        result = append(&job, &err) == COFFER_OK ? report(&job) : mldf_fail(job.path, &err);
    clean_up(&job);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    int result = mldf_expect_file(args);
    return result ? result : mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_append = {
    .format = "mldf",
    .verb = "append",
    .options = options,
    .examples = "  coffer append train.mldf more.mldf              # samples of another set\n"
                "  coffer append train.mldf new.jsonl              # lines of a manifest\n"
                "  coffer append train.mldf folder/                # what 'coffer pack' makes of it\n",
    .run = run,
};
