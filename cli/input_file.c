#include "input_file.h"

#include "base/fail.h"

#include <string.h>

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
    *out = file;
    return CLI_OK;
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
