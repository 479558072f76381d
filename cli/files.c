/* The files of a verb: what it reads, what it may write, the key of encrypted values. */
#include "files.h"
#include "args.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "io/key_file.h"
#include "io/sink.h"
#include "term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_unknown(coffer_status status)
{
    return status == COFFER_E_NOT_RECOGNISED || status == COFFER_E_BAD_MAGIC;
}

int cli_file_open_known(coffer_file **out, const char *path)
{
    coffer_file *file = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_file_open(&file, path, &err) != COFFER_OK)
        return cli_fail(path, &err, cli_open_hint(&err));
    const coffer_error *unknown = coffer_file_unknown(file);
    if (unknown) {
        int status = cli_fail(path, unknown, cli_file_hint(file));
        coffer_file_close(file);
        return status;
    }
    if (strcmp(path, "-") == 0)
        cli_warn_version(path, coffer_file_source(file));
    *out = file;
    return CLI_OK;
}

void cli_warn_version(const char *path, coffer_source *src)
{
    coffer_format_version version = COFFER_FORMAT_VERSION_INIT;
    const coffer_format *format;
    if (!src || coffer_identify(&format, src, NULL) != COFFER_OK ||
        coffer_format_get_version(&version, format, src, NULL) != COFFER_OK || !version.is_newer)
        return;
    if (version.has_minor)
        cli_warn(path, "%s version %u.%u is newer than %u.%u: its new parts are not understood",
                 coffer_format_name(format), version.major, version.minor, version.newest_major,
                 version.newest_minor);
    else
        cli_warn(path, "%s version %u is newer than %u: its new parts are not understood",
                 coffer_format_name(format), version.major, version.newest_major);
}

static coffer_status read_stream(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    FILE *file = context;
    if (fseeko(file, (off_t)offset, SEEK_SET) == 0 && fread(out, 1, len, file) == len)
        return COFFER_OK;
    return coffer__fail_errno(err, "cannot read", errno);
}

static int run_notice(const char *path, coffer_source *src)
{
    const coffer_format *format;
    if (coffer_identify(&format, src, NULL))
        return CLI_OK;
    for (size_t i = 0; cli_format_notices[i]; i++)
        if (strcmp(cli_format_notices[i]->format, coffer_format_name(format)) == 0)
            return cli_format_notices[i]->run(path, src);
    return CLI_OK;
}

/* Not through coffer_source_open: a file that is only looked at here is not an input. */
static int look_at_file(const char *path, bool damage)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = read_stream };
    struct stat st;
    coffer_source *src = NULL;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    if (!file)
        return CLI_OK;
    int status = CLI_OK;
    if (!coffer_source_new(&src, &ops, file, (uint64_t)st.st_size, path, NULL)) {
        cli_warn_version(path, src);
        status = damage ? run_notice(path, src) : CLI_OK;
    }
    coffer_source_close(src);
    fclose(file);
    return status;
}

int cli_look_at_operands(const cli_args *args)
{
    const char *verb = args->verb->name;
    size_t count = cli_operand_count(args);
    int status = CLI_OK;
    /* A check reports version and damage among its findings, repair and info the damage. */
    if (strcmp(verb, "check") == 0 || args->verb->options_first)
        return CLI_OK;
    bool damage = strcmp(verb, "repair") != 0 && strcmp(verb, "info") != 0;
    if (args->verb->writes == CLI_WRITES_LAST && count > 0)
        count--;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (strcmp(cli_operand(args, same), cli_operand(args, i)) != 0)
            same++;
        if (same == i)
            status = cli_worse(status, look_at_file(cli_operand(args, i), damage));
    }
    return status;
}

bool cli_file_can_be_converted(const coffer_file *file)
{
    const char *kind;
    coffer_source *src = coffer_file_source(file);
    if (!src || coffer_file_format(file) || coffer_convert_kind(&kind, src, NULL) != COFFER_OK)
        return false;
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (strcmp(coffer_conversion_from(conversion), kind) == 0 &&
            coffer_format_by_name(coffer_conversion_to(conversion)))
            return true;
    }
    return false;
}

const char *cli_file_hint(const coffer_file *file)
{
    const coffer_error *unknown = coffer_file_unknown(file);
    const char *kind = coffer_file_kind(file);
    bool damaged =
        unknown && coffer__is_about_file(unknown->status) && unknown->status != COFFER_E_UNSUPPORTED;
    if (kind && damaged && (strcmp(kind, "gguf") == 0 || strncmp(kind, "safetensors", 11) == 0))
        return "'coffer repair %' saves the complete tensors";
    if (kind && !coffer_file_format(file))
        return "";
    if (unknown && is_unknown(unknown->status) && cli_file_can_be_converted(file))
        return "'coffer convert % OUT' converts it to a file that coffer can analyze; 'coffer convert "
               "--list' "
               "shows which";
    return NULL;
}

/* Text of a file on a terminal keeps its lines and nothing that could do more than show. */
static int show(const char *text, size_t len)
{
    term_put_safe(stdout, text, len);
    if (len > 0 && text[len - 1] != '\n')
        putchar('\n');
    return CLI_OK;
}

static coffer_status fill(coffer__sink *sink, const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = coffer__sink_write(sink, bytes, len, err);
    if (!status)
        return coffer__sink_commit(sink, err);
    coffer__sink_discard(sink);
    return status;
}

int cli_write_out(const char *path, bool replace, const void *bytes, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !replace };
    const char *output = path ? path : "-";
    if (strcmp(output, "-") == 0 && term_is_terminal(stdout))
        return show(bytes, len);
    coffer_status status = coffer__sink_create(&sink, output, &opts, &err);
    if (!status)
        status = fill(sink, bytes, len, &err);
    return !status ? CLI_OK : cli_fail(strcmp(output, "-") == 0 ? "standard output" : output, &err, NULL);
}

int cli_write_in(const char *folder, const char *name, bool replace, const void *bytes, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !replace };
    coffer_status status = coffer__sink_create_in(&sink, folder, name, &opts, &err);
    if (!status)
        status = fill(sink, bytes, len, &err);
    if (!status)
        return CLI_OK;
    coffer__buffer path = COFFER__BUFFER_INIT;
    size_t folder_len = strlen(folder);
    coffer__buffer_printf(&path, "%s%s%s", folder, folder_len && folder[folder_len - 1] == '/' ? "" : "/",
                          name);
    int result =
        cli_fail(path.failed ? folder : coffer__buffer_text(&path), &err,
                 err.status == COFFER_E_UNSAFE_PATH ? "remove the link, or name another folder" : NULL);
    coffer__buffer_free(&path);
    return result;
}

bool cli_is_stream(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static bool overwrites;

bool cli_overwrites(void)
{
    return overwrites;
}

static const char *operand_written(const cli_args *args)
{
    size_t count = cli_operand_count(args);
    if (count < 2 || args->verb->writes == CLI_WRITES_NONE)
        return NULL;
    return cli_operand(args, args->verb->writes == CLI_WRITES_FIRST ? 0 : count - 1);
}

static bool has_option(const cli_verb *verb, const char *name)
{
    cli_tables tables;
    cli_tables_of(&tables, verb, NULL);
    return cli_tables_find(&tables, name, strlen(name)) != NULL;
}

static int check_same(const cli_args *args, const char *output)
{
    for (size_t i = 0; output && i < cli_operand_count(args); i++) {
        const char *input = cli_operand(args, i);
        if (input == output || strcmp(output, "-") == 0)
            continue;
        if (cli_same_file(output, strcmp(input, "-") == 0 ? "/dev/stdin" : input))
            return cli_usage(args, "input and output are the same file: %s%s", output,
                             has_option(args->verb, "in-place")
                                 ? "; --in-place replaces it and keeps the original"
                                 : "");
    }
    return CLI_OK;
}

int cli_check_files(const cli_args *args)
{
    const char *output = cli_value(args, "output");
    struct stat st;
    overwrites = cli_has(args, "force");
    if (check_same(args, output) || check_same(args, operand_written(args)))
        return CLI_USAGE;
    if (overwrites || !output || stat(output, &st) != 0 || !S_ISREG(st.st_mode))
        return CLI_OK;
    const coffer_error err = { .status = COFFER_E_EXISTS,
                               .subject = COFFER_SUBJECT_OUTPUT,
                               .offset = COFFER_OFFSET_NONE,
                               .text = "already exists" };
    return cli_fail(output, &err, NULL);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static const char variable[] = "COFFER_KEY";

static int read_key_file(cli_key *out, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer__key_file_read(out->bytes, path, &err);
    if (status != COFFER_OK)
        return cli_fail(path, &err,
                        status == COFFER_E_INVALID_ARGUMENT
                            ? "'head -c 32 /dev/urandom >KEYFILE' makes a new key"
                            : NULL);
    out->at = out->bytes;
    return CLI_OK;
}

int cli_key_read(cli_key *out, const cli_args *args)
{
    const char *path = cli_value(args, "key-file"), *text = getenv(variable);
    out->at = NULL;
    if (path)
        return read_key_file(out, path);
    if (!text || !*text)
        return CLI_OK;
    if (!coffer__key_from_hex(out->bytes, text, strlen(text)))
        return cli_usage(args, "the environment's %s must be a key of 64 hexadecimal digits", variable);
    out->at = out->bytes;
    return CLI_OK;
}

void cli_key_wipe(cli_key *key)
{
    explicit_bzero(key->bytes, sizeof key->bytes);
    key->at = NULL;
}

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
