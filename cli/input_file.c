#include "input_file.h"

#include "args.h"
#include "base/fail.h"

#include <string.h>
#include <sys/stat.h>

enum { HEAD_SIZE = 4096 };

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

/* Not through coffer_source_open: a file that is only looked at here is not an input. */
static void warn_about_file(const char *path)
{
    uint8_t head[HEAD_SIZE];
    struct stat st;
    coffer_source *src = NULL;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    if (!file)
        return;
    size_t len = fread(head, 1, sizeof head, file);
    fclose(file);
    if (coffer_source_from_memory(&src, head, len, NULL) == COFFER_OK)
        cli_warn_version(path, src);
    coffer_source_close(src);
}

void cli_warn_versions(const cli_args *args)
{
    size_t count = cli_operand_count(args);
    /* A check reports the version among its findings. */
    if (strcmp(args->verb->name, "check") == 0 || args->verb->options_first)
        return;
    if (args->verb->writes == CLI_WRITES_LAST && count > 0)
        count--;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (strcmp(cli_operand(args, same), cli_operand(args, i)) != 0)
            same++;
        if (same == i)
            warn_about_file(cli_operand(args, i));
    }
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
