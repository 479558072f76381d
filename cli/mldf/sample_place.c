#include "mldf/sample_place.h"

#include "args.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields ---- */

static const char *nearest_field(const coffer_mldf *set, const char *name)
{
    const char *found = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++) {
        const char *candidate = coffer_mldf_field_at(set, i)->name;
        size_t distance = cli_distance(name, candidate);
        if (distance < least) {
            least = distance;
            found = candidate;
        }
    }
    return found && cli_is_near(name, least) ? found : NULL;
}

int sample_field_find(size_t *out, const cli_args *args, const coffer_mldf *set, const char *name)
{
    enum { SHOWN = 12 };
    coffer__buffer names = COFFER__BUFFER_INIT;
    size_t count = coffer_mldf_field_count(set), index = coffer_mldf_find_field(set, name);
    if (index != SIZE_MAX) {
        *out = index;
        return CLI_OK;
    }
    const char *meant = nearest_field(set, name);
    if (meant) {
        coffer__buffer_printf(&names, "did you mean \"%s\"?", meant);
    } else {
        coffer__buffer_printf(&names, "there %s", count ? "are " : "is none");
        for (size_t i = 0; i < count && i < SHOWN; i++)
            coffer__buffer_printf(&names, "%s%s", i ? ", " : "", coffer_mldf_field_at(set, i)->name);
        if (count > SHOWN)
            coffer__buffer_printf(&names, " and %zu more", count - SHOWN);
    }
    int status = cli_usage(args, "%s has no field \"%s\"; %s", cli_operand(args, 0), name,
                           coffer__buffer_text(&names));
    coffer__buffer_free(&names);
    return status;
}

static bool is_chosen(const sample_reader *reader, size_t field)
{
    for (size_t i = 0; i < reader->field_count; i++)
        if (reader->fields[i] == field)
            return true;
    return false;
}

int sample_field_choose(sample_reader *out, const cli_args *args, size_t field)
{
    out->fields = coffer__calloc(1, sizeof *out->fields);
    if (!out->fields)
        return cli_usage(args, "out of memory");
    out->fields[out->field_count++] = field;
    return CLI_OK;
}

int sample_fields_read(sample_reader *out, const cli_args *args)
{
    cli_place place = { 0 };
    cli_word word;
    if (!cli_has(args, "field"))
        return CLI_OK;
    out->fields = coffer__calloc(coffer_mldf_field_count(out->set) + 1, sizeof *out->fields);
    if (!out->fields)
        return cli_usage(args, "out of memory");
    while (cli_next_word(&word, &place, args)) {
        size_t field;
        if (!word.option || strcmp(word.option, "field") != 0)
            continue;
        int status = sample_field_find(&field, args, out->set, word.value);
        if (status)
            return status;
        if (!is_chosen(out, field))
            out->fields[out->field_count++] = field;
    }
    return CLI_OK;
}

/* ---- Places ---- */

static int fail_no_sample(const cli_args *args, uint64_t sample, uint64_t count)
{
    term_text shown;
    if (count == 0)
        return cli_usage(args, "%s has no samples", cli_operand(args, 0));
    return cli_usage(args, "no sample %" PRIu64 ": %s has %s, from 0 to %" PRIu64, sample,
                     cli_operand(args, 0), term_count(shown, count), count - 1);
}

/* "42", "40..50", "40..", "..50"; *text is moved past it. */
static bool read_samples(sample_place *out, const char **text)
{
    const char *at = *text;
    bool has_first = cli_read_digits(&out->first, &at);
    out->is_one = strncmp(at, "..", 2) != 0;
    if (out->is_one) {
        out->end = out->first + 1;
        *text = at;
        return has_first && out->end > out->first;
    }
    if (!has_first)
        out->first = 0;
    at += 2;
    if (!cli_read_digits(&out->end, &at))
        out->end = UINT64_MAX;
    *text = at;
    return true;
}

static int check_samples(sample_place *place, const cli_args *args, uint64_t count)
{
    if (place->first > place->end)
        return cli_usage(args, "%" PRIu64 "..%" PRIu64 " ends before it begins", place->first, place->end);
    if (place->is_one ? place->first >= count : place->first > count)
        return fail_no_sample(args, place->first, count);
    if (place->end != UINT64_MAX && place->end > count)
        return fail_no_sample(args, place->end - 1, count);
    if (place->end > count)
        place->end = count;
    return CLI_OK;
}

int sample_place_read(sample_place *out, const cli_args *args, const coffer_mldf *set, const char *what)
{
    sample_place place = { .first = 0, .end = UINT64_MAX, .field = MLDF_ALL_FIELDS };
    const char *at = what ? what : "..";
    int status = CLI_OK;
    if (read_samples(&place, &at) && (!*at || *at == '.')) {
        /* Nothing in the file bounds the number of samples without rows. */
        if (!place.is_one && coffer_mldf_sample_count(set) > 0 && coffer_mldf_row_size(set) == 0)
            return cli_usage(args, "%s has samples without a field, and nothing to show of them",
                             cli_operand(args, 0));
        status = check_samples(&place, args, coffer_mldf_sample_count(set));
        if (!status && *at)
            status = sample_field_find(&place.field, args, set, at + 1);
    } else {
        place = (sample_place){ .first = 0, .end = coffer_mldf_sample_count(set) };
        status = sample_field_find(&place.field, args, set, what);
    }
    *out = place;
    return status;
}

/* ---- Lists ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_unique(sample_list *list)
{
    size_t kept = 0;
    qsort(list->at, list->count, sizeof *list->at, compare);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->at[kept - 1] != list->at[i])
            list->at[kept++] = list->at[i];
    list->count = kept;
}

static int add_range(sample_list *list, const cli_args *args, const char *text, uint64_t sample_count)
{
    sample_place place = { .field = MLDF_ALL_FIELDS };
    const char *at = text;
    if (!read_samples(&place, &at) || *at)
        return cli_usage(args, "'%s' is not a sample: write 3 for one, 7..9 for 7 and 8", text);
    int status = check_samples(&place, args, sample_count);
    if (status)
        return status;
    size_t more = (size_t)(place.end - place.first);
    uint64_t *grown = coffer__realloc(list->at, (list->count + more + 1) * sizeof *grown);
    if (!grown)
        return cli_usage(args, "not enough memory for %zu sample numbers", list->count + more);
    list->at = grown;
    for (uint64_t sample = place.first; sample < place.end; sample++)
        list->at[list->count++] = sample;
    return CLI_OK;
}

int sample_list_read(sample_list *out, const cli_args *args, size_t first, uint64_t sample_count)
{
    int status = CLI_OK;
    *out = (sample_list){ NULL, 0 };
    for (size_t i = first; i < cli_operand_count(args) && !status; i++)
        status = add_range(out, args, cli_operand(args, i), sample_count);
    if (!status)
        sort_unique(out);
    return status;
}

void sample_list_free(sample_list *list)
{
    coffer__free(list->at);
    *list = (sample_list){ NULL, 0 };
}

/* ---- Conditions ---- */

int sample_where_read(sample_list *out, bool *given, const cli_args *args, const coffer_mldf *set)
{
    coffer_error err = COFFER_ERROR_INIT;
    cli_place place = { 0 };
    cli_word word;
    size_t words = 0, count = 0;
    *out = (sample_list){ NULL, 0 };
    *given = cli_has(args, "where");
    if (!*given)
        return CLI_OK;
    for (cli_place at = { 0 }; cli_next_word(&word, &at, args);)
        words++;
    const char **conditions = coffer__calloc(words + 1, sizeof *conditions);
    if (!conditions)
        return cli_usage(args, "out of memory");
    while (cli_next_word(&word, &place, args))
        if (word.option && strcmp(word.option, "where") == 0)
            conditions[count++] = word.value;
    uint64_t found = 0;
    coffer_status status = coffer_mldf_select(&out->at, &found, set, conditions, count, NULL, &err);
    coffer__free(conditions);
    out->count = (size_t)found;
    if (status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(args, "%s", err.text);
    return status ? mldf_fail(cli_operand(args, 0), &err) : CLI_OK;
}

void sample_list_cut(sample_list *list, sample_place *place)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] >= place->first && list->at[i] < place->end)
            list->at[kept++] = list->at[i];
    list->count = kept;
    place->first = 0;
    place->end = kept;
}
