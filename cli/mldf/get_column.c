/* One field of many samples. */
#include "mldf/get_mldf.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/sink.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { SCALARS_AT_ONCE = 1 << 16 };

static bool is_scalar(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT;
}

/* ---- Lines and lists ---- */

/* A terminal gets what cannot harm it, everything else the bytes. */
static coffer_status put_out(coffer__sink *sink, coffer__buffer *text, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (text->failed)
        return coffer__fail_no_memory(err, text->len);
    if (sink) {
        status = coffer__sink_write(sink, text->data, text->len, err);
    } else {
        bool ends = text->len > 0 && text->data[text->len - 1] == '\n';
        term_print_text(stdout, coffer__buffer_text(text), text->len - ends, 0);
        if (ends)
            putchar('\n');
    }
    text->len = 0;
    return status;
}

/* A line is a value: its own line breaks are shown as escapes. */
static void put_line(coffer__buffer *out, const coffer__buffer *value)
{
    for (size_t i = 0; i < value->len; i++) {
        char c = (char)value->data[i];
        if (c == '\n' || c == '\r')
            coffer__buffer_append(out, c == '\n' ? "\\n" : "\\r", 2);
        else
            coffer__buffer_append(out, &c, 1);
    }
    coffer__buffer_append(out, "\n", 1);
}

static coffer_status put_lines(coffer__sink *sink, mldf_get *job, coffer_error *err)
{
    coffer__buffer value = COFFER__BUFFER_INIT, line = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (uint64_t i = job->place.first; i < job->place.end && !status; i++) {
        value.len = 0;
        status = sample_put_text(&value, &job->reader, sample_at(&job->reader, i), job->place.field, err);
        put_line(&line, &value);
        if (!status)
            status = put_out(sink, &line, err);
    }
    coffer__buffer_free(&value);
    coffer__buffer_free(&line);
    return status;
}

static coffer_status put_list(coffer__sink *sink, mldf_get *job, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    coffer_status status = COFFER_OK;
    coffer__json_writer_init(&json, &text, 0);
    coffer__json_open_array(&json);
    for (uint64_t i = job->place.first; i < job->place.end && !status; i++) {
        status =
            sample_put_json(&json, &job->reader, sample_at(&job->reader, i), job->place.field, true, err);
        if (!status)
            status = put_out(sink, &text, err);
    }
    coffer__json_close_array(&json);
    coffer__buffer_append(&text, "\n", 1);
    if (!status)
        status = put_out(sink, &text, err);
    coffer__buffer_free(&text);
    return status;
}

/* ---- Arrays ---- */

static coffer_status put_header(coffer__sink *sink, const mldf_get *job, coffer_error *err)
{
    const coffer_mldf_field *about = coffer_mldf_field_at(job->reader.set, job->place.field);
    coffer_dtype dtype = about->kind == COFFER_MLDF_ENTRY_INT     ? COFFER_DTYPE_I64
                         : about->kind == COFFER_MLDF_ENTRY_FLOAT ? COFFER_DTYPE_F64
                                                                  : about->dtype;
    uint64_t dims[COFFER_MLDF_MAX_DIMS + 1] = { job->place.end - job->place.first };
    size_t ndim = 1, len = 0;
    for (uint32_t i = 0; !is_scalar(about) && i < about->ndim; i++)
        dims[ndim++] = about->dims[i];
    uint8_t *header = NULL;
    coffer_status status = coffer_npy_header(&header, &len, dtype, dims, ndim, err);
    if (!status)
        status = coffer__sink_write(sink, header, len, err);
    coffer_free(header);
    return status;
}

static coffer_status put_scalars(coffer__sink *sink, const mldf_get *job, coffer_error *err)
{
    const coffer_mldf_column_opts one_thread = { sizeof one_thread, 1 };
    uint64_t *values = coffer__alloc_array(SCALARS_AT_ONCE, sizeof *values);
    if (!values)
        return coffer__fail_no_memory(err, SCALARS_AT_ONCE * sizeof *values);
    coffer_status status = COFFER_OK;
    for (uint64_t at = job->place.first; at < job->place.end && !status;) {
        uint64_t count = job->place.end - at < SCALARS_AT_ONCE ? job->place.end - at : SCALARS_AT_ONCE;
        if (job->reader.selection)
            count = 1;
        status = coffer_mldf_read_column(values, job->reader.set, job->place.field,
                                         sample_at(&job->reader, at), count, &one_thread, err);
        if (!status)
            status = coffer__sink_write(sink, values, (size_t)count * sizeof *values, err);
        at += count;
    }
    coffer__free(values);
    return status;
}

static coffer_status put_arrays(coffer__sink *sink, mldf_get *job, coffer_error *err)
{
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_status status = COFFER_OK;
    for (uint64_t i = job->place.first; i < job->place.end && !status; i++) {
        status = coffer_mldf_get_array(&job->reader.bytes, dims, job->reader.set, sample_at(&job->reader, i),
                                       job->place.field, err);
        if (!status)
            status = coffer__sink_write(sink, job->reader.bytes.data, job->reader.bytes.size, err);
    }
    return status;
}

static bool stacks(const coffer_mldf_field *field)
{
    if (is_scalar(field))
        return true;
    for (uint32_t i = 0; i < field->ndim; i++)
        if (field->dims[i] == 0)
            return false;
    return field->kind == COFFER_MLDF_ENTRY_BYTES && field->dtype != COFFER_DTYPE_NONE;
}

static coffer_status put_array(coffer__sink *sink, mldf_get *job, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    coffer_status status = put_header(sink, job, err);
    if (status)
        return status;
    return is_scalar(field) ? put_scalars(sink, job, err) : put_arrays(sink, job, err);
}

/* ---- Output ---- */

static bool wants_array(const mldf_get *job)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    const char *as = cli_value(job->args, "as");
    return as ? strcmp(as, "npy") == 0 : sample_file_of_name(job->output, field) == SAMPLE_FILE_NPY;
}

int mldf_get_column(mldf_get *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !job->force };
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    const char *output = job->output ? job->output : "-";
    bool array = wants_array(job), terminal = strcmp(output, "-") == 0 && term_is_terminal(stdout);
    coffer_status status = COFFER_OK;
    if (array && !stacks(field))
        return cli_usage(job->args,
                         "values of \"%s\" are not all of one shape: FOLDER/ as output gets a file each",
                         field->name);
    if (array && terminal)
        return cli_usage(job->args, "npy is nothing to look at: -o names a file for it");
    if (cli_has(job->args, "stored") || (cli_has(job->args, "as") && !array))
        return cli_usage(job->args, "of many samples a field can be had as text, as --json or --as npy; "
                                    "FOLDER/ as output gets a file each");
    if (!terminal)
        status = coffer__sink_create(&sink, output, &opts, &err);
    if (!status)
        status = array       ? put_array(sink, job, &err)
                 : job->json ? put_list(sink, job, &err)
                             : put_lines(sink, job, &err);
    if (!status && sink)
        status = coffer__sink_commit(sink, &err);
    else
        coffer__sink_discard(sink);
    if (!status)
        return CLI_OK;
    return mldf_fail_between(job->path, output, &err);
}

/* ---- A folder ---- */

bool mldf_output_is_folder(const mldf_get *job)
{
    struct stat st;
    size_t len = job->output ? strlen(job->output) : 0;
    return len > 0 && (job->output[len - 1] == '/' || (stat(job->output, &st) == 0 && S_ISDIR(st.st_mode)));
}

/* The path that a sample was packed from, when it can be one below the folder; "" otherwise. */
static void read_path(coffer__buffer *out, mldf_get *job, uint64_t sample)
{
    size_t field = coffer_mldf_find_field(job->reader.set, "path");
    out->len = 0;
    if (field == SIZE_MAX || field == job->place.field ||
        coffer_mldf_field_at(job->reader.set, field)->type != COFFER_MLDF_TEXT ||
        sample_put_text(out, &job->reader, sample, field, NULL) != COFFER_OK)
        out->len = 0;
    const char *path = coffer__buffer_text(out);
    bool safe = out->len > 0 && path[0] != '/' && path[out->len - 1] != '/' && strlen(path) == out->len;
    for (const char *part = path; safe && part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        safe = len > 0 && !(len <= 2 && strncmp(part, "..", len) == 0);
    }
    if (!safe)
        out->len = 0;
}

/* The path of the sample, with the extension of what is stored now; NUMBER.EXT without a path. */
static coffer_status make_name(coffer__buffer *name, mldf_get *job, uint64_t sample, const char *extension,
                               coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    read_path(&path, job, sample);
    name->len = 0;
    if (path.len == 0) {
        coffer__buffer_printf(name, "%" PRIu64 ".%s", sample, extension);
    } else {
        const char *text = coffer__buffer_text(&path), *slash = strrchr(text, '/'), *dot = strrchr(text, '.');
        size_t stem = dot && dot > (slash ? slash + 1 : text) ? (size_t)(dot - text) : path.len;
        /* A picture that was stored in another form gets the extension of that form after its own. */
        bool same =
            text[stem] &&
            (strcasecmp(text + stem + 1, extension) == 0 ||
             (strcmp(extension, "jpg") == 0 && strncasecmp(text + stem, ".jp", 3) == 0) ||
             strcmp(extension, "bin") == 0 || strcmp(extension, "aac") == 0 || strcmp(extension, "txt") == 0);
        coffer__buffer_printf(name, "%s%s%s", text, same ? "" : ".", same ? "" : extension);
    }
    coffer__buffer_free(&path);
    coffer__buffer_append(name, "", 1);
    return name->failed ? coffer__fail_no_memory(err, name->len) : COFFER_OK;
}

static int write_one(mldf_get *job, uint64_t sample, coffer__buffer *name, coffer__buffer *bytes)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    sample_file as;
    if (coffer_mldf_entry_at(&entry, job->reader.set, sample, job->place.field, &err) != COFFER_OK)
        return mldf_fail(job->path, &err);
    if (!entry.present)
        return CLI_OK;
    const char *extension = sample_file_extension(&as, field, &entry);
    bytes->len = 0;
    if (make_name(name, job, sample, extension, &err) != COFFER_OK)
        return cli_fail(job->output, &err, NULL);
    if (sample_put_file(bytes, &job->reader, sample, job->place.field, as, &err) != COFFER_OK)
        return mldf_fail(job->path, &err);
    return cli_write_in(job->output, (const char *)name->data, job->force, bytes->data, bytes->len);
}

int mldf_get_files(mldf_get *job)
{
    coffer__buffer name = COFFER__BUFFER_INIT, bytes = COFFER__BUFFER_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    int result = CLI_OK;
    if (is_scalar(coffer_mldf_field_at(job->reader.set, job->place.field)))
        return cli_usage(job->args, "numbers need no file each: name one file, such as %slabels.npy",
                         job->output);
    if (mkdir(job->output, 0777) != 0 && errno != EEXIST) {
        coffer__fail_errno(&err, "cannot create the folder", errno);
        return cli_fail(job->output, &err, NULL);
    }
    term_progress_start(&bar, "writing", "files");
    for (uint64_t i = job->place.first; i < job->place.end && !result; i++) {
        result = write_one(job, sample_at(&job->reader, i), &name, &bytes);
        bar.progress.step(&bar, i - job->place.first, job->place.end - job->place.first);
    }
    term_progress_end(&bar);
    coffer__buffer_free(&name);
    coffer__buffer_free(&bytes);
    return result;
}
