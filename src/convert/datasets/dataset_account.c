/* The account of a pack: which files become samples, what was left out and why, what was changed. */
#include "convert/datasets/dataset_input.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/os.h"
#include "outside/arrays/npy.h"
#include "outside/text/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

/* Which files of a folder become samples: those of one kind. All others are named with the reason. */

static const char *const image_names[] = { ".jpg",  ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp",
                                           ".tiff", ".tif",  ".ppm", ".pgm",  ".pbm", ".pnm",  NULL };
static const char *const audio_names[] = { ".wav",  ".flac", ".mp3", ".ogg", ".oga",
                                           ".opus", ".m4a",  ".aac", NULL };
static const char *const text_names[] = { ".txt", ".text", ".md", NULL };
static const char *const array_names[] = { ".npy", NULL };
static const char *const video_names[] = { ".mp4", ".m4v", ".mov",  ".mkv", ".webm",
                                           ".avi", ".mpg", ".mpeg", NULL };
static const char *const no_names[] = { NULL };

/* The last one is for anything else, when there is nothing of the others. */
static const coffer__file_kind kinds[] = {
    { COFFER_DATASET_IMAGES, "image", COFFER_MLDF_IMAGE_JPEG, "a picture", "not a picture", image_names },
    { COFFER_DATASET_AUDIO, "audio", COFFER_MLDF_AUDIO, "a sound", "not a sound", audio_names },
    { COFFER_DATASET_TEXT, "text", COFFER_MLDF_TEXT, "a text", "not a text", text_names },
    { COFFER_DATASET_ARRAYS, "array", COFFER_MLDF_NDARRAY, "an array", "not an array", array_names },
    { COFFER_DATASET_VIDEO, "video", COFFER_MLDF_VIDEO_COMPRESSED, "a video", "not a video", video_names },
    { COFFER_DATASET_AUTO, "data", COFFER_MLDF_BYTES, "of that kind", "of another kind", no_names },
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds, OTHER_KIND = KIND_COUNT - 1, SNIFFED = 4096 };

/* Kinds that are known but cannot be decoded: the reason says more than "not a picture". */
static const struct {
    const char *extension, *why;
} undecodable[] = {
    { ".heic", "HEIC pictures cannot be decoded: convert it to JPEG or PNG" },
    { ".heif", "HEIF pictures cannot be decoded: convert it to JPEG or PNG" },
    { ".avif", "AVIF pictures cannot be decoded: convert it to JPEG or PNG" },
    { ".jxl", "JPEG XL pictures cannot be decoded: convert it to JPEG or PNG" },
    { ".jp2", "JPEG 2000 pictures cannot be decoded: convert it to PNG" },
    { ".svg", "SVG drawings have no pixels: convert it to PNG" },
    { ".aif", "AIFF sounds are not supported: convert it to WAV or FLAC" },
    { ".aiff", "AIFF sounds are not supported: convert it to WAV or FLAC" },
    { ".wma", "WMA sounds are not supported: convert it to WAV or FLAC" },
};

static size_t kind_by_name(const char *path)
{
    for (size_t k = 0; k < OTHER_KIND; k++)
        for (const char *const *extension = kinds[k].extensions; *extension; extension++)
            if (coffer__file_has_extension(path, *extension))
                return k;
    return OTHER_KIND;
}

/* A header that is recognized but cut after SNIFFED bytes is still one of that kind. */
static size_t kind_by_bytes(const uint8_t *head, size_t size)
{
    coffer_image_info image = COFFER_IMAGE_INFO_INIT;
    coffer_video_info video = COFFER_VIDEO_INFO_INIT;
    coffer_audio_info audio = COFFER_AUDIO_INFO_INIT;
    if (coffer_image_probe(&image, head, size, NULL) != COFFER_E_NOT_RECOGNISED)
        return 0;
    if (size > 6 && coffer__npy_probe(head, size))
        return 3;
    if (coffer_video_probe(&video, head, size, NULL) == COFFER_OK)
        return 4;
    coffer_status status = coffer_audio_probe(&audio, head, size, NULL);
    return status != COFFER_E_NOT_RECOGNISED && status != COFFER_E_UNSUPPORTED ? 1 : OTHER_KIND;
}

/* By the first bytes, for files whose names say nothing. */
static size_t kind_of(const coffer__folder_file *file, const int *folders)
{
    uint8_t head[SNIFFED];
    size_t kind = kind_by_name(file->path), got = 0;
    if (kind != OTHER_KIND || file->entry != COFFER__ENTRY_FILE)
        return kind;
    int fd = coffer__os_open_at(folders[file->root], file->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return OTHER_KIND;
    coffer_status status = coffer__file_read_some(fd, head, sizeof head, &got, file->path, NULL);
    coffer__file_close(fd);
    return status ? OTHER_KIND : kind_by_bytes(head, got);
}

/* A link to a folder may lead to many samples: it is refused, not left out. */
static bool leads_to_folder(const coffer__folder_file *file, const int *folders)
{
    int fd = file->entry == COFFER__ENTRY_LINK
                 ? coffer__os_open_at(folders[file->root], file->path, O_RDONLY | O_DIRECTORY)
                 : -1;
    coffer__file_close(fd);
    return fd >= 0;
}

static bool is_excluded(const char *path, const coffer_mldf_pack_opts *opts)
{
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < opts->exclude_count; i++)
        if (fnmatch(opts->exclude[i], path, 0) == 0 ||
            fnmatch(opts->exclude[i], slash ? slash + 1 : path, 0) == 0)
            return true;
    return false;
}

/* The kind of most files. An unknown kind wins only when every file is of it. */
static size_t most_common(const uint8_t *kind_of_file, const bool *out, size_t count)
{
    uint64_t counts[KIND_COUNT] = { 0 };
    size_t best = OTHER_KIND;
    for (size_t i = 0; i < count; i++)
        counts[kind_of_file[i]] += !out[i];
    for (size_t k = OTHER_KIND; k-- > 0;)
        if (counts[k] && (best == OTHER_KIND || counts[k] >= counts[best]))
            best = k;
    return best;
}

static const char *reason_for(const coffer__folder_file *file, const coffer__file_kind *kind)
{
    if (file->entry != COFFER__ENTRY_FILE)
        return coffer__folder_entry_name(file->entry);
    for (size_t i = 0; i < sizeof undecodable / sizeof *undecodable; i++)
        if (coffer__file_has_extension(file->path, undecodable[i].extension))
            return undecodable[i].why;
    return kind->other_title;
}

static coffer_status leave_out(coffer__dataset_input *input, const coffer__folder_file *file, size_t kind,
                               bool excluded, bool asked_kind, coffer_error *err)
{
    if (excluded)
        return coffer__dataset_leave_out(input, file->path, COFFER_E_UNSUPPORTED,
                                         file->hidden ? "hidden" : "excluded", true, err);
    bool plain = file->entry == COFFER__ENTRY_FILE;
    return coffer__dataset_leave_out(input, file->path,
                                     plain                                     ? COFFER_E_UNSUPPORTED
                                     : file->entry == COFFER__ENTRY_UNREADABLE ? COFFER_E_IO
                                                                               : COFFER_E_UNSAFE_PATH,
                                     reason_for(file, &kinds[kind]), asked_kind && plain, err);
}

static coffer_status choose(size_t *out, const coffer__folder_list *list, const uint8_t *kind_of_file,
                            const bool *excluded, coffer_dataset_kind wanted, coffer_error *err)
{
    size_t kind = most_common(kind_of_file, excluded, list->count), usable = 0;
    for (size_t k = 0; wanted != COFFER_DATASET_AUTO && k < OTHER_KIND; k++)
        if (kinds[k].kind == wanted)
            kind = k;
    for (size_t i = 0; i < list->count; i++)
        usable += !excluded[i] && kind_of_file[i] == kind;
    *out = kind;
    if (usable)
        return COFFER_OK;
    if (list->count == 0)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no files in the folder");
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "none of its %zu files is %s",
                        list->count, kinds[kind].title);
}

coffer_status coffer__dataset_sort_out(const coffer__file_kind **out, coffer__folder_list *list,
                                       const int *folders, coffer__dataset_input *input,
                                       const coffer_mldf_pack_opts *opts, coffer_error *err)
{
    uint8_t *kind_of_file = coffer__calloc(list->count + 1, sizeof *kind_of_file);
    bool *excluded = coffer__calloc(list->count + 1, sizeof *excluded);
    size_t kind = OTHER_KIND, kept = 0;
    coffer_status status = COFFER_OK;
    if (!kind_of_file || !excluded)
        status = coffer__fail_no_memory(err, list->count);
    for (size_t i = 0; !status && i < list->count; i++) {
        excluded[i] = list->files[i].hidden || is_excluded(list->files[i].path, opts);
        kind_of_file[i] = (uint8_t)(excluded[i] ? OTHER_KIND : kind_of(&list->files[i], folders));
    }
    if (!status)
        status = choose(&kind, list, kind_of_file, excluded, opts->kind, err);
    input->found = list->count;
    for (size_t i = 0; !status && i < list->count; i++) {
        const coffer__folder_file *file = &list->files[i];
        /* Links and devices with the name of the kind stay, to be refused one by one. */
        bool is_kind = kind_of_file[i] == kind && file->entry != COFFER__ENTRY_UNREADABLE &&
                       (kind != OTHER_KIND || file->entry == COFFER__ENTRY_FILE);
        if (!excluded[i] && (is_kind || leads_to_folder(file, folders)))
            list->files[kept++] = *file;
        else
            status =
                leave_out(input, &list->files[i], kind, excluded[i], opts->kind != COFFER_DATASET_AUTO, err);
    }
    if (!status) {
        list->count = kept;
        *out = &kinds[kind];
    }
    coffer__free(kind_of_file);
    coffer__free(excluded);
    return status;
}

/* The account of a pack: what was packed, what was left out and why, what was changed. Samples that were left
 * out are also noted in OUT.partial-skipped, so that a resumed pack reports those of the first run. */

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
        [COFFER__NOT_DECODED] = "values not decoded: Coffer has no decoder for them",
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
