/* set, for matrices: changes to metadata and elements, all of one command in one commit. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    { "string", 0, NULL, NULL,
      "the next VALUE is a text, even if it looks like a number or like true or false" },
    { "int", 0, NULL, NULL, "the next VALUE is an integer" },
    { "uint", 0, NULL, NULL, "the next VALUE is an integer of at least 0" },
    { "float", 0, NULL, NULL, "the next VALUE is a floating-point number (nan and inf included)" },
    { "bool", 0, NULL, NULL, "the next VALUE is true or false" },
    { "bytes-hex", 0, NULL, NULL, "the next VALUE is bytes, two hexadecimal digits each" },
    { "json", 0, NULL, NULL,
      "the next VALUE is JSON (objects become maps); before FILE or as the last word: report as JSON" },
    { "cached", 0, NULL, NULL,
      "the next KEY=VALUE is a computed result (a number), valid for this payload and view only" },
    { "delete", 'd', "KEY", NULL, "remove the value at KEY" },
    { "checksum", 0, NULL, NULL, "store checksums of the payload, which 'coffer check --full' verifies" },
    { "message", 'm', "TEXT", NULL, "what the change is for; 'coffer log' shows it" },
    { "author", 0, "NAME", NULL, "who makes the change; 'coffer log' shows it" },
    { "any-key", 0, NULL, NULL, "accept a new KEY at the top level that the format does not define" },
    { "durability", 0, "HOW", "full|ordered|none",
      "when the change reaches the disk (before the command ends; later, a crash restores the old state; "
      "any time)",
      "full" },
    { 0 },
};

typedef struct set_job {
    const cli_args *args;
    coffer_pycauset_changes *changes;
    size_t count;
    bool as_json;             /* the report */
    const char *unknown_word; /* the first KEY=VALUE whose key the format does not define, or NULL */
} set_job;

/* ---- Values ---- */

typedef coffer_status put_value(coffer_pycauset_changes *changes, const char *key, const char *text,
                                coffer_error *err);

static coffer_status refuse(const char *key, const char *text, const char *wanted, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s: '%s' is not %s", key, text,
                        wanted);
}

static coffer_status put_string(coffer_pycauset_changes *changes, const char *key, const char *text,
                                coffer_error *err)
{
    return coffer_pycauset_changes_set_string(changes, key, text, strlen(text), err);
}

static bool is_integer(const char *text)
{
    return isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1]));
}

/* Integers that are not negative are stored as unsigned, so that equal numbers have equal bytes. */
static coffer_status put_int(coffer_pycauset_changes *changes, const char *key, const char *text,
                             coffer_error *err)
{
    char *end = NULL;
    bool negative = text[0] == '-';
    errno = 0;
    long long low = negative ? strtoll(text, &end, 10) : 0;
    unsigned long long high = negative ? 0 : strtoull(text, &end, 10);
    if (!is_integer(text) || *end || errno)
        return refuse(key, text, "an integer of 64 bits", err);
    return negative ? coffer_pycauset_changes_set_i64(changes, key, low, err)
                    : coffer_pycauset_changes_set_u64(changes, key, high, err);
}

static coffer_status put_uint(coffer_pycauset_changes *changes, const char *key, const char *text,
                              coffer_error *err)
{
    return text[0] == '-' ? refuse(key, text, "an integer of at least 0", err)
                          : put_int(changes, key, text, err);
}

static coffer_status put_float(coffer_pycauset_changes *changes, const char *key, const char *text,
                               coffer_error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        return refuse(key, text, "a number", err);
    return coffer_pycauset_changes_set_f64(changes, key, value, err);
}

static coffer_status put_bool(coffer_pycauset_changes *changes, const char *key, const char *text,
                              coffer_error *err)
{
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return refuse(key, text, "true or false", err);
    return coffer_pycauset_changes_set_bool(changes, key, is_true, err);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

static coffer_status put_bytes(coffer_pycauset_changes *changes, const char *key, const char *text,
                               coffer_error *err)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    const char *at = text;
    for (int high, low; (high = hex_digit(at[0])) >= 0 && (low = hex_digit(at[1])) >= 0; at += 2)
        coffer__buffer_append(&bytes, &(uint8_t){ (uint8_t)(high << 4 | low) }, 1);
    coffer_status status = *at ? refuse(key, text, "pairs of hexadecimal digits", err)
                           : bytes.failed
                               ? coffer__fail_no_memory(err, strlen(text) / 2)
                               : coffer_pycauset_changes_set_bytes(changes, key, bytes.data, bytes.len, err);
    coffer__buffer_free(&bytes);
    return status;
}

static coffer_status put_json(coffer_pycauset_changes *changes, const char *key, const char *text,
                              coffer_error *err)
{
    return coffer_pycauset_changes_set_json(changes, key, text, strlen(text), err);
}

static coffer_status put_cached(coffer_pycauset_changes *changes, const char *key, const char *text,
                                coffer_error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        return refuse(key, text, "a number", err);
    return coffer_pycauset_changes_set_cached(changes, key, value, err);
}

/* Numbers and booleans in JSON syntax keep their type; everything else is a text. */
static coffer_status put_untyped(coffer_pycauset_changes *changes, const char *key, const char *text,
                                 coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_limits limits = COFFER_LIMITS_INIT;
    if (coffer__json_parse(&json, text, strlen(text), 0, &limits, NULL))
        return put_string(changes, key, text, err);
    const coffer__json_value *value = coffer__json_root(json);
    coffer_status status;
    switch (value->kind) {
    case COFFER__JSON_BOOL:
        status = coffer_pycauset_changes_set_bool(changes, key, value->as.boolean, err);
        break;
    case COFFER__JSON_U64:
        status = coffer_pycauset_changes_set_u64(changes, key, value->as.u64, err);
        break;
    case COFFER__JSON_I64:
        status = coffer_pycauset_changes_set_i64(changes, key, value->as.i64, err);
        break;
    case COFFER__JSON_F64:
        status = coffer_pycauset_changes_set_f64(changes, key, value->as.f64, err);
        break;
    default:
        status = put_string(changes, key, text, err);
    }
    coffer__json_free(json);
    return status;
}

static const struct value_type {
    const char *option;
    put_value *put;
} types[] = {
    { "string", put_string }, { "int", put_int },         { "uint", put_uint }, { "float", put_float },
    { "bool", put_bool },     { "bytes-hex", put_bytes }, { "json", put_json }, { "cached", put_cached },
};

static const struct value_type *find_type(const char *option)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].option, option) == 0)
            return &types[i];
    return NULL;
}

/* ---- The command line ---- */

/* "[3,4]=7" or "[3]=7": an element of the matrix. */
static coffer_status add_element(set_job *job, const char *word, coffer_error *err)
{
    uint64_t at[2] = { 0, 0 };
    size_t given = 0;
    const char *text = word + 1;
    pycauset_number number;
    for (; given < 2 && isdigit((unsigned char)*text); given++) {
        char *end;
        errno = 0;
        at[given] = strtoull(text, &end, 10);
        if (errno)
            break;
        text = end + (*end == ',');
        if (*end != ',') {
            given++;
            break;
        }
    }
    if (given == 0 || text[0] != ']' || text[1] != '=')
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "'%s' is not [ROW,COLUMN]=VALUE", word);
    if (!pycauset_parse_number(&number, text + 2))
        return refuse("element", text + 2, "a number", err);
    job->count++;
    return coffer_pycauset_changes_set_element(job->changes, at[0], at[1], number.bytes, number.dtype, err);
}

/* "3,4=7" would be a key named "3,4", which nobody wants. */
static coffer_status refuse_place(const char *word, size_t len, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "'%.*s' is not a key; an element is changed with '[%.*s]%s'", (int)len, word,
                        (int)len, word, word + len);
}

static bool is_known_key(const char *key)
{
    static const char *const known[] = { "properties",
                                         "cached",
                                         "provenance",
                                         "view",
                                         "seed",
                                         "spacetime",
                                         "rows",
                                         "cols",
                                         "matrix_type",
                                         "data_type",
                                         "payload_layout",
                                         "payload_uuid",
                                         "block_manifest",
                                         "object_type",
                                         "n",
                                         "commit",
                                         "element_changes",
                                         "payload_checksums" };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t len = strlen(known[i]);
        if (strncmp(key, known[i], len) == 0 && (!key[len] || key[len] == '.'))
            return true;
    }
    return false;
}

static coffer_status add_assignment(set_job *job, const char *word, put_value *put, coffer_error *err)
{
    const char *equals = strchr(word, '=');
    coffer__buffer key = COFFER__BUFFER_INIT;
    if (!equals || equals == word)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "'%s' is not KEY=VALUE",
                            word);
    if (word[0] == '[')
        return add_element(job, word, err);
    if (strspn(word, "0123456789,") == (size_t)(equals - word))
        return refuse_place(word, (size_t)(equals - word), err);
    coffer__buffer_append(&key, word, (size_t)(equals - word));
    const char *text = coffer__buffer_text(&key);
    if (put != put_cached && !is_known_key(text) && !job->unknown_word)
        job->unknown_word = word;
    coffer_status status = key.failed ? coffer__fail_no_memory(err, (size_t)(equals - word))
                                      : put(job->changes, text, equals + 1, err);
    coffer__buffer_free(&key);
    job->count++;
    return status;
}

/* An option that does not set the type of a value. */
static coffer_status add_option(set_job *job, const cli_word *word, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (strcmp(word->option, "delete") == 0)
        status = coffer_pycauset_changes_delete(job->changes, word->value, err);
    else if (strcmp(word->option, "checksum") == 0)
        status = coffer_pycauset_changes_set_checksums(job->changes, err);
    else
        return COFFER_OK;
    job->count++;
    return status;
}

/* --json without a KEY=VALUE after it asks for a report in JSON; the other types require one. */
static bool ends_well(set_job *job, const struct value_type *type)
{
    bool reports = type && type->put == put_json;
    job->as_json |= reports;
    return !type || reports;
}

/* A type applies to the next KEY=VALUE only; FILE may be between them. */
static int gather(set_job *job, coffer_error *err)
{
    cli_place place = { 0, 0 };
    cli_word word;
    const struct value_type *type = NULL;
    bool file_seen = false;
    coffer_status status = COFFER_OK;
    while (!status && cli_next_word(&word, &place, job->args)) {
        if (!word.option && !file_seen) {
            job->as_json |= type && type->put == put_json;
            file_seen = true;
            continue;
        }
        if (word.option && !ends_well(job, type))
            break;
        if (!word.option)
            status = add_assignment(job, word.value, type ? type->put : put_untyped, err);
        else if (!find_type(word.option))
            status = add_option(job, &word, err);
        type = word.option ? find_type(word.option) : NULL;
    }
    if (status)
        return cli_usage(job->args, "%s", err->text);
    if (!ends_well(job, type))
        return cli_usage(job->args, "--%s must be followed by KEY=VALUE", type->option);
    return job->count
               ? CLI_OK
               : cli_usage(
                     job->args,
                     "nothing to change: give KEY=VALUE, '[ROW,COLUMN]=VALUE', --delete KEY or --checksum");
}

/* ---- The commit ---- */

static int report(const set_job *job, uint64_t generation)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(job->args, 0);
    if (!job->as_json) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": generation %" PRIu64 ", %zu change%s\n", generation, job->count,
               job->count == 1 ? "" : "s");
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err))
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "pycauset");
    coffer_node_add_u64(root, "generation", generation, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "changes", job->count, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int fail(const set_job *job, const coffer_error *err)
{
    const char *path = cli_operand(job->args, 0);
    if (err->status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(job->args, "%s", err->text);
    if (err->status != COFFER_E_NOT_FOUND)
        return cli_fail(path, err, NULL);
    cli_fail(path, err, "'coffer get %' lists the keys; nothing was changed");
    return CLI_USAGE;
}

/* Warns of a view that the program pycauset does not understand. */
static void warn_misread(const char *path)
{
    coffer_pycauset *matrix = NULL;
    if (coffer_pycauset_open_path(&matrix, path, NULL, NULL) != COFFER_OK)
        return;
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    bool view = info->transposed || info->scalar_real != 1.0 || info->scalar_imag != 0.0;
    const char *misread = coffer_pycauset_misread(info);
    if (view && misread) {
        fflush(stdout);
        fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_YELLOW), term_off(stderr));
        term_print_text(stderr, path, strlen(path), 0);
        fprintf(stderr, ": warning: %s\n", misread);
    }
    coffer_pycauset_close(matrix);
}

/* A new key at the top level is nearly always a slip: notes about a matrix are in "properties". */
static int check_keys(const set_job *job, const coffer_pycauset_editor *editor)
{
    const char *word = job->unknown_word;
    coffer__buffer key = COFFER__BUFFER_INIT;
    if (!word || cli_has(job->args, "any-key"))
        return CLI_OK;
    coffer__buffer_append(&key, word, strcspn(word, ".="));
    bool exists = coffer_pycauset_value_find(coffer_pycauset_editor_metadata(editor),
                                             coffer__buffer_text(&key)) != NULL;
    coffer__buffer_free(&key);
    return exists ? CLI_OK
                  : cli_usage(job->args,
                              "the format does not define the key \"%.*s\"; use properties.%s, or --any-key "
                              "to add it at the top level",
                              (int)strcspn(word, ".="), word, word);
}

/* A signal waits until the file has its old content or all changes. */
static int commit(const set_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_editor_opts opts = COFFER_PYCAUSET_EDITOR_OPTS_INIT;
    coffer_pycauset_editor *editor = NULL;
    uint64_t generation = 0;
    opts.durability = (coffer_durability)cli_choice(job->args, "durability", COFFER_DURABILITY_FULL);
    opts.message = cli_value(job->args, "message");
    opts.author = cli_value(job->args, "author");
    opts.time = pycauset_now();
    coffer_status status = coffer_pycauset_editor_open(&editor, cli_operand(job->args, 0), &opts, &err);
    if (!status && check_keys(job, editor)) {
        coffer_pycauset_editor_close(editor);
        return CLI_USAGE;
    }
    cli_hold_signals();
    if (!status)
        status = coffer_pycauset_editor_commit(&generation, editor, job->changes, &err);
    coffer_pycauset_editor_close(editor);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    if (status)
        return fail(job, &err);
    int result = report(job, generation);
    warn_misread(cli_operand(job->args, 0));
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    set_job job = { .args = args };
    (void)src; /* NULL: the editor opens the file, to lock it */
    if (strcmp(cli_operand(args, 0), "-") == 0)
        return cli_usage(args, "standard input cannot be changed in place; name a file");
    if (coffer_pycauset_changes_new(&job.changes, &err))
        return cli_fail(cli_operand(args, 0), &err, NULL);
    int result = gather(&job, &err);
    if (!result)
        result = commit(&job);
    coffer_pycauset_changes_free(job.changes);
    return result;
}

const cli_format_verb cli_pycauset_set = {
    .format = "pycauset",
    .verb = "set",
    .options = options,
    .examples =
        "  coffer set m.pycauset properties.label='first run' properties.beta=0.5   # a text and a number\n"
        "  coffer set m.pycauset --string properties.version=1.10 --json properties.tags='[\"a\",\"b\"]'\n"
        "  coffer set m.pycauset --cached trace=2.5 --delete properties.old\n"
        "  coffer set m.pycauset '[3,4]=7' -m 'typing error'           # an element, in place\n"
        "  coffer set m.pycauset --checksum\n",
    .run = run,
    .opens_file = true,
};
