/* The files of a sample: an interrupted pack is not resumed over files that have changed since. */
#include "base/fail.h"
#include "base/table.h"
#include "convert/datasets/dataset_input.h"
#include "io/os.h"

#include <errno.h>
#include <string.h>

coffer_status coffer__dataset_read_file(coffer__buffer *out, coffer__dataset_sample *sample, int fd,
                                        uint64_t limit, const char *path, coffer_error *err)
{
    coffer_mldf_origin *origin = &sample->origin;
    struct stat st;
    if (coffer__os_fstat(fd, &st) != 0)
        return coffer__fail_errno(err, "cannot examine", errno);
    int64_t time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (time > origin->time)
        origin->time = time;
    origin->size += (uint64_t)st.st_size;
    if (sample->only_examine)
        return COFFER_OK;
    coffer_status status = coffer__folder_read_file(out, fd, limit, path, err);
    /* The hash of several files is that of the chain. */
    if (!status)
        coffer__hash_seeded(origin->hash, out->data ? out->data : (const uint8_t *)"", out->len,
                            origin->hash[0]);
    return status;
}

/* ---- Resuming ---- */

static void clear(coffer__dataset_sample *sample, size_t fields)
{
    for (size_t f = 0; f < fields; f++) {
        sample->values[f].form = COFFER__DATASET_ABSENT;
        sample->values[f].is_path = sample->values[f].has_entry = false;
        sample->values[f].own.len = 0;
    }
    sample->name.len = 0;
    sample->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
}

/* The sample that got this mark; *found is false when the input ends before it. */
static coffer_status advance(bool *found, coffer__dataset_resume *resume, uint64_t mark, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool more = true;
    while (!status && more && resume->index < mark) {
        clear(resume->sample, resume->input->schema.count);
        resume->sample->index = resume->index;
        status = resume->input->next(&more, resume->sample, resume->input, err);
        resume->index++;
    }
    *found = more;
    return status;
}

static bool load(coffer__dataset_resume *resume, bool only_examine)
{
    coffer__dataset_sample *sample = resume->sample;
    sample->only_examine = only_examine;
    sample->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
    coffer_status status = resume->input->load(sample, resume->input, NULL);
    sample->only_examine = false;
    return status == COFFER_OK;
}

/* Loading replaces the paths of a manifest by what they name: they are put back to load again. */
static bool load_again(coffer__dataset_resume *resume, const coffer__dataset_value *before)
{
    for (size_t f = 0; f < resume->input->schema.count; f++) {
        coffer__dataset_value *value = &resume->sample->values[f];
        value->is_path = before[f].is_path;
        if (!value->is_path)
            continue;
        value->bytes = before[f].bytes;
        value->size = before[f].size;
        value->own.len = 0;
    }
    return load(resume, false);
}

coffer_status coffer__dataset_unchanged(bool *same, void *context, uint64_t mark,
                                        const coffer_mldf_origin *origin, coffer_error *err)
{
    coffer__dataset_resume *resume = context;
    const coffer_mldf_origin *now = &resume->sample->origin;
    coffer__dataset_value before[COFFER__DATASET_EXAMINED_MAX] = { 0 };
    size_t fields = resume->input->schema.count;
    coffer_status status = advance(same, resume, mark, err);
    if (status || !*same || !resume->input->load || (origin->size == 0 && origin->time == 0))
        return status;
    bool can_repeat = fields <= COFFER__DATASET_EXAMINED_MAX;
    if (can_repeat)
        memcpy(before, resume->sample->values, fields * sizeof *before);
    *same = load(resume, can_repeat);
    if (*same && can_repeat && now->size == origin->size && now->time == origin->time)
        return COFFER_OK;
    if (*same && can_repeat)
        *same = load_again(resume, before);
    *same = *same && now->size == origin->size && memcmp(now->hash, origin->hash, sizeof now->hash) == 0;
    resume->changed = resume->changed || !*same;
    return COFFER_OK;
}
