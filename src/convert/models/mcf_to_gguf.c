/* MCF models as GGUF files. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/convert.h"
#include "convert/models/gguf_model_info.h"
#include "convert/models/gguf_names.h"
#include "convert/models/gguf_repack.h"
#include "convert/tensors/tensor_selection.h"
#include "convert/tensors/tensors.h"
#include "io/os.h"
#include "io/sink.h"

#include <inttypes.h>
#include <string.h>

const coffer_convert_option coffer__to_gguf_options[] = {
    COFFER__TENSOR_OPTIONS,
    { "round-scales", NULL, "keep k types as blocks also where their scales have to be rounded" },
    { "as-is", NULL, "keep the names and types of all tensors, also those that llama.cpp refuses" },
    { NULL, NULL, NULL },
};

typedef struct export_tensor {
    const coffer__gguf_type *type;
    uint64_t offset; /* from the start of the payloads */
    uint64_t size;
    bool repacked; /* as blocks of the same codes and scales */
    bool rounded;  /* some of the scales */
} export_tensor;

typedef struct gguf_job {
    const coffer__convert_job *job;
    coffer__tensors_settings settings;
    coffer_tensors *set;
    coffer__selection selection;
    export_tensor *tensors; /* one for each of the selection */
    uint64_t end;           /* of their payloads */
    bool quantized;
    bool round_scales;
    size_t not_rounded; /* tensors that it would keep as blocks */
    bool as_is;         /* also names and types that llama.cpp refuses */
    coffer__gguf_hf hf; /* of a model that gets the names of llama.cpp */
    bool renamed;
    size_t left_out; /* tensors that llama.cpp computes itself */
    const char
        *unknown; /* the first of the tensors that its architecture does not have; they keep their names */
    size_t unknown_count;
    coffer__type_changes changes;
    coffer__tensors_stream *stream;
    coffer__sink *sink;
} gguf_job;

/* ---- Names and forms of llama.cpp ---- */

/* A model of transformers has its embedding under one of its names. */
static bool has_hf_names(const gguf_job *export)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    bool found = false;
    for (size_t i = 0; !found && i < coffer_tensors_count(export->set); i++) {
        name.len = 0;
        found = coffer__gguf_name_of(&name, export->hf.arch, coffer_tensors_at(export->set, i)->name) ==
                    COFFER__GGUF_RENAMED &&
                strcmp(coffer__buffer_text(&name), "token_embd.weight") == 0;
    }
    coffer__buffer_free(&name);
    return found;
}

static coffer_status rename_chosen(coffer__gguf_match *match, gguf_job *export, coffer__chosen_tensor *chosen,
                                   coffer_error *err)
{
    const char *name = chosen->tensor->name;
    coffer__buffer gguf_name = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    *match = coffer__gguf_name_of(&gguf_name, export->hf.arch, name);
    if (*match == COFFER__GGUF_UNKNOWN && !export->unknown_count++)
        export->unknown = name;
    if (gguf_name.failed)
        status = coffer__fail_no_memory(err, gguf_name.len);
    if (!status && *match == COFFER__GGUF_RENAMED) {
        if (coffer__gguf_prefix_len(export->hf.arch, name))
            export->hf.has_prefix = true;
        status = coffer__gguf_reshape(export->set, chosen->index, export->hf.arch, name, export->hf.heads,
                                      COFFER__TO_GGUF, err);
        if (!status)
            status = coffer__tensors_rename(export->set, chosen->index, coffer__buffer_text(&gguf_name), err);
    }
    coffer__buffer_free(&gguf_name);
    return status;
}

/* Tensors of a model from transformers get the names, rows and numbers that llama.cpp expects. */
static coffer_status rename_all(gguf_job *export, coffer_error *err)
{
    coffer__selection *selection = &export->selection;
    size_t count = 0;
    coffer_status status =
        coffer__gguf_hf_open(&export->hf, coffer__mcf_model_of(export->set), &export->job->limits, err);
    if (status || !export->hf.arch || !has_hf_names(export))
        return status;
    export->renamed = true;
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__gguf_match match;
        status = rename_chosen(&match, export, &selection->items[i], err);
        if (match == COFFER__GGUF_LEFT_OUT) {
            export->left_out++;
            selection->bytes -= selection->items[i].size;
        } else {
            selection->items[count++] = selection->items[i];
        }
    }
    if (!status)
        selection->count = count;
    return status;
}

/* ---- The plan ---- */

/* GGUF has no unsigned integers: the next larger type holds them all. */
static coffer_dtype widened(coffer_dtype dtype)
{
    switch (dtype) {
    case COFFER_DTYPE_U8:
        return COFFER_DTYPE_I16;
    case COFFER_DTYPE_U16:
        return COFFER_DTYPE_I32;
    case COFFER_DTYPE_U32:
        return COFFER_DTYPE_I64;
    default:
        return dtype;
    }
}

/* llama.cpp computes with norms and biases in float32 only. */
static bool must_be_f32(const gguf_job *export, const coffer__chosen_tensor *chosen)
{
    return !export->as_is && chosen->tensor->rank == 1 && coffer_dtype_is_float(chosen->tensor->dtype) &&
           coffer__elements_can_convert(COFFER_DTYPE_F32, chosen->tensor->dtype);
}

static coffer_status check_tensor(const gguf_job *export, const coffer_tensor *tensor, coffer_error *err)
{
    if (tensor->rank > COFFER__GGUF_MAX_RANK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu32
                            " dimensions, GGUF allows at most %d: leave it out with --exclude",
                            tensor->name, tensor->rank, COFFER__GGUF_MAX_RANK);
    if (!export->as_is && strlen(tensor->name) > COFFER__GGUF_MAX_NAME)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "a name of %zu bytes, llama.cpp loads at most %d (--exclude leaves the tensor out, "
            "--as-is writes it all the same): \"%s\"",
            strlen(tensor->name), COFFER__GGUF_MAX_NAME, tensor->name);
    return COFFER_OK;
}

static coffer_status plan_blocks(export_tensor *out, gguf_job *export, const coffer__chosen_tensor *chosen,
                                 coffer_error *err)
{
    bool exact = true;
    if (export->settings.selection.cast != COFFER_DTYPE_NONE ||
        !coffer_dtype_is_quantized(chosen->tensor->dtype))
        return COFFER_OK;
    coffer_status status = coffer__gguf_repack_type(&out->type, &exact, chosen->set, chosen->index, err);
    if (status || !out->type)
        return status;
    if (!exact && !export->round_scales) {
        export->not_rounded++;
        return COFFER_OK;
    }
    out->rounded = !exact;
    out->repacked = true;
    out->size =
        chosen->tensor->elements / out->type->elements * out->type->bytes; /* less than the elements' */
    return COFFER_OK;
}

static coffer_status plan_elements(export_tensor *out, coffer__chosen_tensor *chosen, coffer_dtype dtype,
                                   coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    if (dtype != chosen->dtype) {
        chosen->dtype = dtype;
        chosen->as_is = dtype == tensor->dtype;
    }
    out->type = coffer__gguf_type_for(dtype);
    if (!out->type)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "\"%s\" is %s, which GGUF does not support: cast it, or leave it out with --exclude",
            tensor->name, tensor->type_name);
    if (!coffer__mul_u64(&out->size, tensor->elements, out->type->bytes))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " elements, too many", tensor->name, tensor->elements);
    chosen->size = out->size;
    return COFFER_OK;
}

static coffer_status plan_tensor(export_tensor *out, gguf_job *export, coffer__chosen_tensor *chosen,
                                 coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_status status = check_tensor(export, tensor, err);
    if (!status)
        status = plan_blocks(out, export, chosen, err);
    if (status)
        return status;
    if (out->repacked) {
        if (tensor->dtype != COFFER_DTYPE_Q8 && tensor->dtype != COFFER_DTYPE_Q4)
            coffer__type_changes_add(&export->changes, tensor,
                                     out->rounded ? "stored with rounded scales as" : "stored exactly as",
                                     out->type->name, out->size);
        return COFFER_OK;
    }
    bool small = must_be_f32(export, chosen);
    status = plan_elements(out, chosen, small ? COFFER_DTYPE_F32 : widened(chosen->dtype), err);
    /* A cast of plain floats is what the caller asked for. */
    bool is_cast = export->settings.selection.cast && chosen->dtype == export->settings.selection.cast &&
                   coffer_dtype_is_float(tensor->dtype);
    if (status || chosen->as_is || is_cast)
        return status;
    const char *how = coffer_dtype_is_quantized(tensor->dtype)     ? "decoded to"
                      : small && tensor->dtype == COFFER_DTYPE_F64 ? "with one dimension rounded to"
                      : small                                      ? "with one dimension converted to"
                                                                   : "converted to";
    coffer__type_changes_add(&export->changes, tensor, how, out->type->name, out->size);
    return COFFER_OK;
}

static coffer_status plan(gguf_job *export, coffer_error *err)
{
    uint64_t end = 0;
    coffer_status status = COFFER_OK;
    export->tensors = coffer__calloc(export->selection.count, sizeof *export->tensors);
    if (!export->tensors)
        return coffer__fail_no_memory(err, export->selection.count * sizeof *export->tensors);
    for (size_t i = 0; !status && i < export->selection.count; i++) {
        export_tensor *tensor = &export->tensors[i];
        status = plan_tensor(tensor, export, &export->selection.items[i], err);
        if (status)
            break;
        tensor->offset = end;
        export->quantized |= tensor->repacked;
        if (!coffer__add_u64(&end, end, tensor->size) || !coffer__align_up(&end, end, COFFER__GGUF_ALIGNMENT))
            status = coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                  "the size of the tensors does not fit into 64 bits");
    }
    export->end = end;
    return status;
}

/* ---- Requirements of llama.cpp ---- */

static bool has_tensor(const gguf_job *export, const char *name)
{
    for (size_t i = 0; i < export->selection.count; i++) {
        if (strcmp(export->selection.items[i].tensor->name, name) == 0)
            return true;
    }
    return false;
}

static void note_changes(const gguf_job *export)
{
    coffer_report *notes = export->job->notes;
    coffer__type_changes_note(notes, &export->changes);
    if (notes && export->left_out)
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%zu tensors were left out: llama.cpp has them in another form, or not at all",
                           export->left_out);
    if (notes && export->not_rounded)
        coffer__report_add(
            notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
            "%zu of the decoded tensors have scales or rows that blocks of GGUF do not have: --round-scales "
            "rounds the scales and keeps the tensors quantized",
            export->not_rounded);
}

/* Names and types that --as-is keeps. */
static void put_refused(coffer__buffer *text, const gguf_job *export)
{
    size_t names = 0, types = 0;
    for (size_t i = 0; i < export->selection.count; i++) {
        const coffer_tensor *tensor = export->selection.items[i].tensor;
        names += strlen(tensor->name) > COFFER__GGUF_MAX_NAME;
        types += tensor->rank == 1 && coffer_dtype_is_float(tensor->dtype) &&
                 export->tensors[i].type->dtype != COFFER_DTYPE_F32;
    }
    if (names)
        coffer__buffer_printf(text, "names longer than %d bytes: %zu; ", COFFER__GGUF_MAX_NAME, names);
    if (types)
        coffer__buffer_printf(text, "tensors of one dimension that are not F32: %zu; ", types);
}

/* llama.cpp aborts on a file that lacks one of these; other programs read it. */
static void note_missing(const gguf_job *export, const coffer__gguf_written *written)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    put_refused(&text, export);
    if (export->unknown)
        coffer__buffer_printf(
            &text,
            "tensors that its architecture \"%s\" does not have: %zu (\"%s\"; --exclude leaves "
            "them out); ",
            export->hf.arch->name, export->unknown_count, export->unknown);
    if (!written->has_arch)
        coffer__buffer_printf(&text, "general.architecture is \"%s\"; ", written->arch);
    if (export->selection.count && !has_tensor(export, "token_embd.weight"))
        coffer__buffer_printf(&text, "tensor names are not its own (no token_embd.weight); ");
    if (!written->has_tokenizer)
        coffer__buffer_printf(&text, "%s; ",
                              written->reason[0] ? written->reason : "no key tokenizer.ggml.model");
    else if (written->reason[0])
        coffer__report_add(export->job->notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE, "%s",
                           written->reason);
    if (text.len > 2) /* without the last separator */
        coffer__report_add(export->job->notes, COFFER_E_MISSING, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "llama.cpp cannot run this file: %.*s", (int)text.len - 2,
                           coffer__buffer_text(&text));
    coffer__buffer_free(&text);
}

static coffer_status check_output(const gguf_job *export, coffer_error *err)
{
    struct stat in, out;
    const char *in_path = coffer_source_name(export->job->in);
    if (coffer__os_stat(in_path, &in) == 0 && coffer__os_stat(export->job->out_path, &out) == 0 &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "input and output are the same file: %s", in_path);
    return COFFER_OK;
}

/* ---- Writing ---- */

/* The type of most weights; NULL without weights. */
static const coffer__gguf_type *main_type(const gguf_job *export)
{
    coffer__gguf_type_totals totals = { 0 };
    for (size_t i = 0; i < export->selection.count; i++) {
        const coffer_tensor *tensor = export->selection.items[i].tensor;
        coffer__gguf_count_type(&totals, export->tensors[i].type, tensor->rank, tensor->elements);
    }
    return totals.largest;
}

/* Returns the number of keys. */
static unsigned put_names(coffer__buffer *keys, const char *key, const coffer__tensors_names *names)
{
    if (names->count == 0)
        return 0;
    coffer__gguf_put_key(keys, key, strlen(key), COFFER__GGUF_ARRAY);
    coffer__tensors_names_put_gguf(keys, names);
    return 1;
}

static const char rope_factors_name[] = "rope_freqs.weight";

static coffer_status write_header(const gguf_job *export, coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(export->set);
    coffer__buffer header = COFFER__BUFFER_INIT, keys = COFFER__BUFFER_INIT;
    coffer__gguf_written written = { .quantized = export->quantized,
                                     .main_type = main_type(export),
                                     .hf = export->renamed ? &export->hf : NULL };
    coffer__tensors_names damaged = { 0 }, lost = { 0 };
    coffer_status status = coffer__gguf_put_model(&keys, &written, model, &export->job->limits, err);
    if (!status)
        status = coffer__tensors_damaged_names(&damaged, export->set, &export->selection, err);
    if (!status)
        status = coffer__tensors_lost_names(&lost, export->set, err);
    written.key_count += put_names(&keys, COFFER__TENSORS_DAMAGED_KEY, &damaged);
    written.key_count += put_names(&keys, COFFER__TENSORS_LOST_KEY, &lost);
    coffer__tensors_note_lost(export->job->notes, &lost);
    coffer__tensors_names_free(&damaged);
    coffer__tensors_names_free(&lost);
    bool has_factors = export->renamed && export->hf.rope_factors;
    coffer__gguf_put_header(&header, export->selection.count + has_factors, written.key_count);
    coffer__buffer_append(&header, keys.data, keys.len);
    for (size_t i = 0; i < export->selection.count; i++) {
        const coffer_tensor *tensor = export->selection.items[i].tensor;
        coffer__gguf_put_tensor(&header, tensor->name, strlen(tensor->name), tensor->rank, tensor->dims,
                                export->tensors[i].type, export->tensors[i].offset);
    }
    if (has_factors) {
        uint64_t dims[1] = { export->hf.rope_factor_count };
        coffer__gguf_put_tensor(&header, rope_factors_name, sizeof rope_factors_name - 1, 1, dims,
                                coffer__gguf_type_for(COFFER_DTYPE_F32), export->end);
    }
    coffer__buffer_fill(&header, 0, (0 - header.len) % COFFER__GGUF_ALIGNMENT);
    if (!status && header.failed)
        status = coffer__fail_no_memory(err, header.len);
    if (!status)
        status = coffer__sink_write(export->sink, header.data, header.len, err);
    if (!status && export->job->notes)
        note_missing(export, &written);
    coffer__buffer_free(&keys);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status put(void *context, const void *bytes, size_t len, coffer_error *err)
{
    return coffer__sink_write(context, bytes, len, err);
}

static coffer_status write_tensors(gguf_job *export, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < export->selection.count; i++) {
        const coffer__chosen_tensor *chosen = &export->selection.items[i];
        status = export->tensors[i].repacked
                     ? coffer__gguf_repack_out(chosen, export->tensors[i].type, export->stream, put,
                                               export->sink, err)
                     : coffer__tensors_stream_run(export->stream, chosen, put, export->sink, err);
        if (!status)
            status =
                coffer__sink_fill(export->sink, 0,
                                  (0 - coffer__sink_position(export->sink)) % COFFER__GGUF_ALIGNMENT, err);
    }
    if (!status && export->renamed && export->hf.rope_factors) {
        size_t size = export->hf.rope_factor_count * sizeof *export->hf.rope_factors;
        status = coffer__sink_write(export->sink, export->hf.rope_factors, size, err);
        if (!status)
            status = coffer__sink_fill(export->sink, 0, (0 - size) % COFFER__GGUF_ALIGNMENT, err);
    }
    return status;
}

static coffer_status prepare(gguf_job *export, coffer_error *err)
{
    coffer_status status = check_output(export, err);
    if (!status)
        status = coffer__tensors_settings_read(&export->settings, export->job, err);
    if (!status)
        status = coffer__tensors_settings_open(&export->set, export->job, err);
    if (!status)
        status = coffer__selection_add(&export->selection, export->set, &export->settings.selection, err);
    if (!status)
        status = coffer__selection_finish(&export->selection, (const coffer_tensors *const *)&export->set, 1,
                                          &export->settings.selection, err);
    export->as_is = coffer__job_has(export->job, "as-is");
    if (!status && !export->as_is)
        status = rename_all(export, err);
    export->round_scales = coffer__job_has(export->job, "round-scales");
    if (!status)
        status = plan(export, err);
    if (!status)
        note_changes(export);
    if (!status)
        status = coffer__tensors_stream_new(&export->stream, 0, &export->job->limits, export->job->progress,
                                            export->selection.bytes, err);
    return status;
}

coffer_status coffer__to_gguf(const coffer__convert_job *job, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !job->overwrite };
    gguf_job export = { .job = job };
    coffer_status status = prepare(&export, err);
    if (!status)
        status = coffer__sink_create(&export.sink, job->out_path, &opts, err);
    if (!status)
        status = write_header(&export, err);
    if (!status)
        status = write_tensors(&export, err);
    if (status)
        coffer__sink_discard(export.sink);
    else
        status = coffer__sink_commit(export.sink, err);
    coffer__tensors_stream_free(export.stream);
    coffer__free(export.tensors);
    coffer__selection_free(&export.selection);
    coffer__tensors_settings_free(&export.settings);
    coffer__gguf_hf_close(&export.hf);
    coffer_tensors_close(export.set);
    return status;
}
