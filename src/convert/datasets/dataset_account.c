/* The account of a pack: what was packed, what was left out and why, what was changed. Samples that were left
 * out are also noted in OUT.partial-skipped, so that a resumed pack reports those of the first run. */
#include "convert/datasets/dataset_account.h"
#include "base/array.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "outside/text/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static void list(coffer__dataset_account *account, const char *name, size_t len, const char *code,
                 const char *text)
{
    coffer_node *entry = coffer_node_add_map(account->list, NULL);
    coffer_node_add_text_len(entry, "sample", name, len);
    coffer_node_add_text(entry, "code", code);
    coffer_node_add_text(entry, "text", text);
}

/* ---- Samples that an interrupted pack has left out ---- */

static coffer_status take_earlier(coffer__dataset_account *account, const coffer__json_value *object,
                                  coffer_error *err)
{
    const coffer__json_value *index = coffer__json_find(object, "index"), *name, *code, *text;
    name = coffer__json_find(object, "sample");
    code = coffer__json_find(object, "code");
    text = coffer__json_find(object, "text");
    if (!index || index->kind != COFFER__JSON_U64 || !name || name->kind != COFFER__JSON_STRING || !code ||
        code->kind != COFFER__JSON_STRING || !text || text->kind != COFFER__JSON_STRING)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&account->earlier, &account->earlier_capacity,
                                                     account->earlier_count, sizeof *account->earlier, err);
    if (status)
        return status;
    coffer__earlier_skip skip = { index->as.u64,
                                  coffer__arena_text(&account->texts, name->as.string, name->string_len),
                                  name->string_len,
                                  coffer__arena_text(&account->texts, code->as.string, code->string_len),
                                  coffer__arena_text(&account->texts, text->as.string, text->string_len) };
    if (account->texts.failed)
        return coffer__fail_no_memory(err, name->string_len);
    account->earlier[account->earlier_count++] = skip;
    return COFFER_OK;
}

/* A line that a crash cut is not one: the sample comes again. */
static coffer_status read_earlier(coffer__dataset_account *account, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer__jsonl_reader *reader = NULL;
    const coffer__json_value *object = NULL;
    coffer_limits limits = coffer__limits(NULL);
    struct stat st;
    if (coffer__os_stat(account->path, &st) != 0 || st.st_size == 0)
        return COFFER_OK;
    coffer_status status = coffer_source_open(&src, account->path, NULL, err);
    if (!status)
        status = coffer__jsonl_open(&reader, src, &limits, err);
    while (!status && coffer__jsonl_next(&object, reader, NULL) == COFFER_OK && object)
        status = take_earlier(account, object, err);
    coffer__jsonl_close(reader);
    coffer_source_close(src);
    return status;
}

static const coffer__earlier_skip *find_earlier(const coffer__dataset_account *account, uint64_t index)
{
    for (size_t i = 0; i < account->earlier_count; i++)
        if (account->earlier[i].index == index)
            return &account->earlier[i];
    return NULL;
}

/* ---- The account ---- */

coffer_status coffer__dataset_account_open(coffer__dataset_account *account, coffer_node *out,
                                           const char *out_path, bool resumed, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    account->fd = -1;
    account->out = out;
    account->list = out ? coffer_node_add_list(out, "left_out") : NULL;
    if (!out_path)
        return COFFER_OK;
    coffer__buffer_printf(&path, "%s.partial-skipped", out_path);
    account->path = path.failed ? NULL : coffer__strdup(coffer__buffer_text(&path));
    coffer__buffer_free(&path);
    if (!account->path)
        return coffer__fail_no_memory(err, strlen(out_path));
    if (resumed)
        return read_earlier(account, err);
    coffer__os_unlink(account->path);
    return COFFER_OK;
}

void coffer__dataset_account_close(coffer__dataset_account *account, bool done)
{
    coffer__file_close(account->fd);
    if (done && account->path)
        coffer__os_unlink(account->path);
    coffer__free(account->path);
    coffer__free(account->earlier);
    coffer__arena_free(&account->texts);
}

void coffer__dataset_account_resumed(coffer__dataset_account *account, const coffer__dataset_sample *sample)
{
    const coffer__earlier_skip *skip = find_earlier(account, sample->index);
    if (!skip) {
        account->packed += sample->units;
        return;
    }
    account->skipped += sample->units;
    account->unexpected += sample->units;
    list(account, skip->name, skip->name_len, skip->code, skip->text);
}

static coffer_status note_skip(coffer__dataset_account *account, const coffer__dataset_sample *sample,
                               coffer_error *err)
{
    coffer__buffer line = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    coffer_status status = COFFER_OK;
    if (!account->path)
        return COFFER_OK;
    if (account->fd < 0)
        status = coffer__file_open(&account->fd, account->path, O_WRONLY | O_CREAT | O_APPEND, 0666, err);
    coffer__json_writer_init(&json, &line, 0);
    coffer__json_open_object(&json);
    coffer__json_key(&json, "index");
    coffer__json_write_u64(&json, sample->index);
    coffer__json_key(&json, "sample");
    coffer__json_string_len(&json, (const char *)sample->name.data, sample->name.len);
    coffer__json_key(&json, "code");
    coffer__json_string(&json, coffer_status_name(sample->failure.status));
    coffer__json_key(&json, "text");
    coffer__json_string(&json, sample->failure.text);
    coffer__json_close_object(&json);
    coffer__buffer_append(&line, "\n", 1);
    if (!status)
        status = line.failed ? coffer__fail_no_memory(err, line.len)
                             : coffer__file_write(account->fd, line.data, line.len, account->path, err);
    coffer__buffer_free(&line);
    return status;
}

coffer_status coffer__dataset_account_skip(coffer__dataset_account *account,
                                           const coffer__dataset_sample *sample, coffer_error *err)
{
    account->skipped += sample->units;
    account->unexpected += sample->units;
    list(account, (const char *)sample->name.data, sample->name.len,
         coffer_status_name(sample->failure.status), sample->failure.text);
    return note_skip(account, sample, err);
}

static void add_notes(coffer__dataset_account *account, const coffer__dataset_input *input,
                      const uint64_t changes[COFFER__CHANGE_COUNT], bool of_part)
{
    static const char *const texts[COFFER__CHANGE_COUNT] = {
        [COFFER__STORED_AS_PNG] =
            "pictures decoded and stored as PNG, because the format has JPEG and PNG only",
        [COFFER__KEPT_AS_PNG] =
            "pictures stored as PNG, because the form asked for cannot hold 16 bits or alpha",
        [COFFER__TURNED] = "pictures turned upright as their EXIF orientation says",
        [COFFER__FIRST_FRAME] = "pictures with several frames or pages, of which only the first is stored",
        [COFFER__STORED_WHOLE] =
            "sounds stored as complete WAV files, because their samples are not plain integers",
        [COFFER__NOT_DECODED] = "values not decoded: there is no decoder for them",
        [COFFER__STORED_DAMAGED] = "values stored although they are damaged",
    };
    coffer_node *notes = coffer_node_add_list(account->out, "notes");
    for (size_t i = 0; i < COFFER__CHANGE_COUNT; i++) {
        if (changes[i] == 0)
            continue;
        coffer_node *note = coffer_node_add_map(notes, NULL);
        coffer_node_add_u64(note, "count", changes[i], COFFER_UNIT_NONE);
        coffer_node_add_text(note, "text", texts[i]);
    }
    if (!input->note || of_part)
        return;
    coffer_node *note = coffer_node_add_map(notes, NULL);
    coffer_node_add_u64(note, "count", input->count, COFFER_UNIT_NONE);
    coffer_node_add_text(note, "text", input->note);
}

void coffer__dataset_account_describe(coffer__dataset_account *account, const coffer__dataset_input *input,
                                      const uint64_t changes[COFFER__CHANGE_COUNT], bool of_part)
{
    size_t left_out = of_part ? 0 : input->left_out_count;
    for (size_t i = 0; i < left_out; i++) {
        const coffer__left_out *one = &input->left_out[i];
        account->unexpected += !one->expected;
        list(account, one->name, strlen(one->name), coffer_status_name(one->code), one->text);
    }
    coffer_node_add_text(account->out, "unit", input->unit ? input->unit : "samples");
    coffer_node_add_u64(account->out, "found", input->unit ? input->found : input->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(account->out, "packed", account->packed, COFFER_UNIT_NONE);
    coffer_node_add_u64(account->out, "skipped", account->skipped + left_out, COFFER_UNIT_NONE);
    coffer_node_add_bool(account->out, "complete",
                         account->unexpected == 0 && changes[COFFER__FIRST_FRAME] == 0 &&
                             changes[COFFER__STORED_DAMAGED] == 0);
    add_notes(account, input, changes, of_part);
}
