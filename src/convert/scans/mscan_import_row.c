#include "convert/scans/mscan_import.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define ROWS_BETWEEN_STEPS 4096

coffer_status coffer__mscan_import_fail(coffer_error *err, coffer_status status,
                                        const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                        coffer__mscan_field field, const char *format, ...)
{
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    return coffer__fail(err, status, row->offset, "%s %" PRIu64 ", column %s: %s", input->place_name,
                        row->place, coffer__mscan_field_names[field], text);
}

coffer_status coffer__mscan_import_whole(uint64_t *out, const coffer__mscan_input *input,
                                         const coffer__mscan_input_row *row, coffer__mscan_field field,
                                         uint64_t max, coffer_error *err)
{
    char text[COFFER__NUMBER_TEXT];
    if (coffer__number_as_u64(out, &row->value[field], max))
        return COFFER_OK;
    bool is_metric = field == COFFER__MSCAN_ACTIVATION || field == COFFER__MSCAN_GRAD_NORM;
    return coffer__mscan_import_fail(err, COFFER_E_BAD_VALUE, input, row, field,
                                     "%s is not an integer from 0 to %" PRIu64 "%s",
                                     coffer__number_text(text, &row->value[field]), max,
                                     is_metric ? " (quantize takes real values)" : "");
}

static coffer_status param_by_name(uint16_t *out, coffer__mscan_import *import,
                                   const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                   coffer_error *err)
{
    uint32_t id = coffer__id_names_find(&import->names, row->param_name, row->param_name_len);
    if (id == COFFER__MSCAN_IDS) {
        id = coffer__id_names_free_id(&import->names);
        if (id == COFFER__MSCAN_IDS)
            return coffer__mscan_import_fail(err, COFFER_E_LIMIT, input, row, COFFER__MSCAN_PARAM_NAME,
                                             "more than %d parameters", COFFER__MSCAN_IDS);
        coffer_status status =
            coffer__id_names_add(&import->names, (uint16_t)id, row->param_name, row->param_name_len, err);
        if (status)
            return status;
    }
    *out = (uint16_t)id;
    return COFFER_OK;
}

/* The row has an id; if it also has a name, it must be the name of that id. */
static coffer_status param_by_id(uint16_t *out, coffer__mscan_import *import,
                                 const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                 coffer_error *err)
{
    uint64_t id = 0;
    coffer_status status =
        coffer__mscan_import_whole(&id, input, row, COFFER__MSCAN_PARAM_ID, UINT16_MAX, err);
    if (status)
        return status;
    *out = (uint16_t)id;
    const coffer__id_name *name = &import->names.by_id[id];
    if (!input->has[COFFER__MSCAN_PARAM_NAME])
        return COFFER_OK;
    if (!name->text)
        return coffer__id_names_add(&import->names, (uint16_t)id, row->param_name, row->param_name_len, err);
    if (name->len != row->param_name_len || memcmp(name->text, row->param_name, name->len) != 0)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_PARAM_NAME,
                                         "\"%.*s\" is not the name of param_id %" PRIu64 ", which is \"%s\"",
                                         (int)(row->param_name_len < 60 ? row->param_name_len : 60),
                                         row->param_name, id, name->text);
    return COFFER_OK;
}

coffer_status coffer__mscan_import_param(uint16_t *out, coffer__mscan_import *import,
                                         const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                         coffer_error *err)
{
    if (input->has[COFFER__MSCAN_PARAM_NAME] && !coffer__utf8_valid(row->param_name, row->param_name_len))
        return coffer__mscan_import_fail(err, COFFER_E_BAD_TEXT, input, row, COFFER__MSCAN_PARAM_NAME,
                                         "not UTF-8");
    return input->has[COFFER__MSCAN_PARAM_ID] ? param_by_id(out, import, input, row, err)
                                              : param_by_name(out, import, input, row, err);
}

coffer_status coffer__mscan_import_progress(const coffer__mscan_import *import, unsigned pass,
                                            const coffer__mscan_input_row *row, coffer_error *err)
{
    uint64_t size = coffer_source_size(import->job->in);
    if (row->place % ROWS_BETWEEN_STEPS != 0)
        return COFFER_OK;
    return coffer__job_progress(import->job, (pass - 1) * size + row->offset, 2 * size, err);
}
