/* Which files of a folder become samples: those of one kind. All others are named with the reason. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "io/os.h"
#include "outside/arrays/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

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

/* The kind of most files; files of an unknown kind count only when there are no others. */
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
