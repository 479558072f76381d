/* get, for training sets: a sample, a value of it, or a field of many. */
#include "mldf/get_mldf.h"

#include "base/fail.h"
#include "mldf/sample_table.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum as { AS_VALUE, AS_NPY, AS_PNG, AS_JPG, AS_WAV, AS_JSON, AS_BY_NAME };

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL,
      "write to FILE; .npy, .png, .jpg and .wav convert arrays, pictures and sound; FOLDER/ gets a file "
      "each" },
    { "field", 0, "NAME", NULL, "only this field, of the given samples or of all; repeatable" },
    MLDF_WHERE_OPTION,
    { "as", 0, "KIND", "value|npy|png|jpg|wav|json", "format of a value", "by the extension of FILE" },
    { "stored", 0, NULL, NULL, "bytes of a value as stored, compressed and encrypted" },
    { "raw", 0, NULL, NULL, "bytes of a value, decompressed and decrypted, without taking it apart" },
    { "csv", 0, NULL, NULL, "samples: print comma-separated values with a header line" },
    { "json", 0, NULL, NULL, "samples as objects, a field of many samples as a list, a value as it is" },
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    CLI_KEY_OPTION,
    CLI_DAMAGED_OPTION,
    { 0 },
};

static int fail(const mldf_get *job, const coffer_error *err)
{
    /* The value itself was read and matched its checksum. */
    if (job->reader.decoding && coffer__is_about_file(err->status))
        return cli_fail(job->path, err, "'coffer check --decode' names every value that cannot be decoded");
    return mldf_fail(job->path, err);
}

static bool to_terminal(const mldf_get *job)
{
    return (!job->output || strcmp(job->output, "-") == 0) && term_is_terminal(stdout);
}

/* ---- One sample ---- */

static coffer_status add_line(term_table *table, mldf_get *job, size_t index, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, index);
    coffer__buffer text = COFFER__BUFFER_INIT;
    sample_type_text type;
    coffer_status status = sample_put_text(&text, &job->reader, job->place.first, index, err);
    if (!status) {
        term_table_cell(table, field->name);
        term_table_style(table, TERM_DIM);
        term_table_cell(table, sample_type_name(type, field));
        term_table_cell_len(table, coffer__buffer_text(&text), text.len);
    }
    coffer__buffer_free(&text);
    return status;
}

static int show_sample(mldf_get *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    term_table *table = term_table_new();
    term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_indent(table, 2);
    term_table_uncut(table);
    coffer_status status = COFFER_OK;
    printf("sample %" PRIu64 "\n", job->place.first);
    for (size_t i = 0; i < sample_field_count(&job->reader) && !status; i++)
        status = add_line(table, job, sample_field_at(&job->reader, i), &err);
    term_table_print(table, stdout);
    return status ? fail(job, &err) : CLI_OK;
}

static int write_json(mldf_get *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    coffer__json_writer_init(&json, &text, to_terminal(job) ? 2 : 0);
    coffer_status status =
        job->place.field == MLDF_ALL_FIELDS
            ? sample_put_object(&json, &job->reader, job->place.first, &err)
            : sample_put_json(&json, &job->reader, job->place.first, job->place.field, true, &err);
    coffer__buffer_append(&text, "\n", 1);
    int result = status ? fail(job, &err) : cli_write_out(job->output, job->force, text.data, text.len);
    coffer__buffer_free(&text);
    return result;
}

static int get_sample(mldf_get *job)
{
    if (job->json)
        return write_json(job);
    if (job->output)
        return cli_usage(job->args, "-o is for one value: say %" PRIu64 ".FIELD, or --json for the sample",
                         job->place.first);
    return show_sample(job);
}

/* ---- One value ---- */

static int refuse_terminal(const mldf_get *job)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    sample_type_text type;
    return cli_usage(job->args,
                     "%" PRIu64 ".%s is of type %s and nothing to look at: -o names a file for it, --json "
                     "describes it",
                     job->place.first, field->name, sample_type_name(type, field));
}

static int get_stored(mldf_get *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes *bytes = &job->reader.bytes;
    if (to_terminal(job))
        return refuse_terminal(job);
    if (coffer_mldf_read_stored(bytes, job->reader.set, job->place.first, job->place.field, &err) !=
        COFFER_OK)
        return fail(job, &err);
    return cli_write_out(job->output, job->force, bytes->data, bytes->size);
}

static int get_raw(mldf_get *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes *bytes = &job->reader.bytes;
    if (to_terminal(job))
        return refuse_terminal(job);
    if (coffer_mldf_read(bytes, NULL, job->reader.set, job->place.first, job->place.field, &err) != COFFER_OK)
        return fail(job, &err);
    return cli_write_out(job->output, job->force, bytes->data, bytes->size);
}

/* Numbers and texts with a line break after them; a value that is absent or locked is an error, for scripts
 * to see. */
static int get_text(mldf_get *job)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    bool is_locked = (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) && !job->reader.has_key;
    uint64_t sample = job->place.first;
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, job->reader.set, sample, job->place.field, &err);
    if (!status && (!entry.present || is_locked))
        status = sample_put_file(&text, &job->reader, sample, job->place.field, SAMPLE_FILE_VALUE, &err);
    else if (!status)
        status = sample_put_text(&text, &job->reader, sample, job->place.field, &err);
    coffer__buffer_append(&text, "\n", 1);
    int result = status ? fail(job, &err) : cli_write_out(job->output, job->force, text.data, text.len);
    coffer__buffer_free(&text);
    return result;
}

static int get_file(mldf_get *job, sample_file as)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    if (to_terminal(job))
        return refuse_terminal(job);
    coffer_status status =
        sample_put_file(&bytes, &job->reader, job->place.first, job->place.field, as, &err);
    int result = status ? fail(job, &err) : cli_write_out(job->output, job->force, bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
    return result;
}

static int get_value(mldf_get *job)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(job->reader.set, job->place.field);
    enum as as = (enum as)cli_choice(job->args, "as", AS_BY_NAME);
    bool is_number = field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT;
    if (job->json || as == AS_JSON)
        return write_json(job);
    if (cli_has(job->args, "stored"))
        return get_stored(job);
    sample_file file = as == AS_BY_NAME ? sample_file_of_name(job->output, field) : (sample_file)as;
    bool readable = sample_is_readable(field) || field->kind == COFFER_MLDF_ENTRY_OPAQUE;
    if (cli_has(job->args, "raw"))
        return get_raw(job);
    if (file == SAMPLE_FILE_VALUE && as == AS_BY_NAME && (is_number || (readable && !job->output)))
        return get_text(job);
    return get_file(job, file);
}

/* ---- Which of them ---- */

static int get(mldf_get *job)
{
    bool many_fields = job->place.field == MLDF_ALL_FIELDS;
    if (cli_has(job->args, "csv") && (job->place.is_one || !many_fields))
        return cli_usage(
            job->args,
            "--csv prints a table: give a range of samples such as 0..10, without a field or with several");
    if (many_fields &&
        (cli_has(job->args, "stored") || cli_has(job->args, "as") || cli_has(job->args, "raw")))
        return cli_usage(job->args,
                         "--stored, --raw and --as are about one field: say SAMPLE.FIELD, or --field NAME");
    if (job->place.is_one)
        return many_fields ? get_sample(job) : get_value(job);
    if (!many_fields && mldf_output_is_folder(job))
        return mldf_get_files(job);
    if (!many_fields)
        return mldf_get_column(job);
    if (job->output)
        return cli_usage(job->args, "-o is for one field: --field says which");
    return sample_table_print(&job->reader, job->args, job->place.first, job->place.end);
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    mldf_get job = { .args = args,
                     .path = cli_operand(args, 0),
                     .output = cli_value(args, "output"),
                     .json = cli_has(args, "json"),
                     .force = cli_has(args, "force"),
                     .reader = SAMPLE_READER_INIT(set, key->at != NULL) };
    const char *what = cli_operand(args, 1);
    sample_list list = { NULL, 0 };
    bool selected = false;
    if (!what && !cli_has(args, "field") && !cli_has(args, "where"))
        return cli_usage(args, "say which sample: 0 for the first, 0.FIELD, 40..50, or --field NAME; 'coffer "
                               "head' shows the first ten");
    int result = cli_check_output(args);
    if (!result)
        result = sample_place_read(&job.place, args, set, what);
    if (!result)
        result = sample_fields_read(&job.reader, args);
    if (!result && job.reader.fields)
        job.place.field = job.reader.field_count == 1 ? job.reader.fields[0] : MLDF_ALL_FIELDS;
    if (!result)
        result = sample_where_read(&list, &selected, args, set);
    if (!result && selected && job.place.is_one)
        result = cli_usage(args, "--where selects among samples: give a range or no sample, not one");
    if (!result && selected) {
        sample_list_cut(&list, &job.place);
        job.reader.selection = list.at;
    }
    if (!result)
        result = get(&job);
    sample_list_free(&list);
    sample_reader_free(&job.reader);
    return result;
}

/* A payload by its offset, in whatever field it is used: also of a set whose rows are damaged. */
static int get_payload(const cli_args *args, coffer_source *src, const char *text)
{
    const char *output = cli_value(args, "output");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_mldf *set = NULL;
    uint64_t offset;
    if (!cli_read_digits(&offset, &text) || *text)
        return cli_usage(args, "%s is not an offset: @ and a number of 'coffer ls --what table'",
                         cli_operand(args, 1));
    if ((!output || strcmp(output, "-") == 0) && term_is_terminal(stdout))
        return cli_usage(args, "refusing to write binary data to a terminal; use -o FILE or redirect");
    coffer_status status = coffer_mldf_open(&set, src, NULL, &err);
    if (!status)
        status = coffer_mldf_read_payload(&bytes, set, offset, &err);
    int result = status ? mldf_fail(cli_operand(args, 0), &err)
                        : cli_write_out(output, cli_has(args, "force"), bytes.data, bytes.size);
    coffer_free(bytes.data);
    coffer_mldf_close(set);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    const char *what = cli_operand(args, 1);
    if (what && what[0] == '@')
        return get_payload(args, src, what + 1);
    return mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_get = {
    .format = "mldf",
    .verb = "get",
    .options = options,
    .examples = "  coffer get train.mldf 42                          # a sample: numbers, texts, sizes\n"
                "  coffer get train.mldf 42.image -o x.jpg           # a value of it\n"
                "  coffer get train.mldf 42.embedding -o x.npy       # as an array\n"
                "  coffer get train.mldf 40..50 --field caption      # a line each\n"
                "  coffer get train.mldf --field label -o labels.npy # of all samples\n"
                "  coffer get train.mldf 0..100.image -o pictures/   # a file each, by its path\n"
                "  coffer get train.mldf --field image --where label=3 -o threes/\n"
                "  coffer get train.mldf @4096 -o x.bin              # the stored payload at an offset\n",
    .run = run,
};
