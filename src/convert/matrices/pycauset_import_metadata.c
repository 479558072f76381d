/* Metadata out of a JSON file, as the conversions from pycauset write it. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_import.h"

#include <string.h>

/* Keys that describe the payload of the other file; the new file has its own. */
static bool is_about_payload(const coffer__json_value *value)
{
    static const char *const keys[] = { "rows",
                                        "cols",
                                        "matrix_type",
                                        "data_type",
                                        "payload_layout",
                                        "payload_uuid",
                                        "seed",
                                        "view",
                                        "cached",
                                        "block_manifest",
                                        "object_type",
                                        "n",
                                        "payload_checksums",
                                        "commit",
                                        "element_changes" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i]) == value->key_len && memcmp(keys[i], value->key, value->key_len) == 0)
            return true;
    }
    return false;
}

/* A path of one key: quotes dots, which would separate keys. */
static void put_path(coffer__buffer *out, const char *key, size_t len)
{
    out->len = 0;
    for (size_t i = 0; i < len; i++) {
        if (key[i] == '.' || key[i] == '\\')
            coffer__buffer_append(out, "\\", 1);
        coffer__buffer_append(out, &key[i], 1);
    }
}

static coffer_status set_keys(coffer_pycauset_changes *changes, const coffer__json_value *root,
                              coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT, text = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (const coffer__json_value *value = coffer__json_first(root); value && !status;
         value = coffer__json_next(root, value)) {
        coffer__json_writer writer;
        if (is_about_payload(value))
            continue;
        text.len = 0;
        put_path(&path, value->key, value->key_len);
        coffer__json_writer_init(&writer, &text, 0);
        coffer__json_write_value(&writer, value);
        const char *name = coffer__buffer_text(&path);
        if (path.failed || text.failed)
            status = coffer__fail_no_memory(err, text.len);
        else
            status = coffer_pycauset_changes_set_json(changes, name, (const char *)text.data, text.len, err);
    }
    coffer__buffer_free(&path);
    coffer__buffer_free(&text);
    return status;
}

coffer_status coffer__pycauset_import_metadata(coffer_pycauset_changes *changes,
                                               const coffer__convert_job *job, coffer_error *err)
{
    char *text = NULL;
    size_t len;
    coffer__json *json = NULL;
    const char *path = coffer__job_setting(job, "metadata");
    if (!path)
        return COFFER_OK;
    coffer_status status = coffer__job_json_file(&text, &len, job, "metadata", err);
    if (status)
        return status;
    status = coffer__json_parse(&json, text, len, 0, &job->limits, err);
    if (!status && coffer__json_root(json)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail(err, COFFER_E_BAD_JSON, 0, "metadata is an object");
    if (!status)
        status = set_keys(changes, coffer__json_root(json), err);
    coffer__fail_other(err, status, path);
    coffer__json_free(json);
    coffer__free(text);
    return status;
}
