/* Every allocation and every file operation of packing and exporting fails once: no leak, no litter, the old
 * file as it was. */
#include "support/fault.h"
#include "support/safetensors.h"

#include "coffer/coffer.h"

#include <stdlib.h>
#include <string.h>

static const char header[] = "{\"__metadata__\":{\"k\":\"v\"},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                             "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[16,20]},"
                             "\"c\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[20,28]},"
                             "\"d\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[28,44]}}";
static const char old_bytes[] = "what was there before";

static void setup(const char *folder, void *context)
{
    const char *out = context;
    safetensors_write(temp_path(folder, "model.safetensors"), header, 44);
    temp_write(temp_path(folder, "config.json"), "{\"model_type\":\"llama\"}", 22);
    temp_write(temp_path(folder, "tokenizer_config.json"), "{\"a\":[1]}", 9);
    temp_write(temp_path(folder, "chat_template.jinja"), "x", 1);
    temp_copy(COFFER_TEST_DATA "/compat/mcf/mantle-pack.mcf", temp_path(folder, "in.mcf"));
    if (out)
        temp_write(temp_path(folder, out), old_bytes, sizeof old_bytes);
}

static coffer_status pack(const char *folder, void *context, coffer_error *err)
{
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    opts.cast = COFFER_DTYPE_BF16;
    opts.threads = 1;
    return coffer_mcf_pack(temp_path(folder, context), &folder, 1, &opts, err);
}

static coffer_status export(const char *folder, const char *out, const coffer_setting *setting,
                            coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    opts.settings = setting;
    opts.setting_count = setting != NULL;
    coffer_status status = coffer_source_open(&src, temp_path(folder, "in.mcf"), NULL, err);
    if (!status)
        status = coffer_convert(src, temp_path(folder, out), &opts, err);
    coffer_source_close(src);
    return status;
}

static coffer_status export_one(const char *folder, void *context, coffer_error *err)
{
    return export(folder, context, NULL, err);
}

static coffer_status export_shards(const char *folder, void *context, coffer_error *err)
{
    static const coffer_setting setting = { "shard-size", "16000" };
    (void)context;
    return export(folder, "s.safetensors", &setting, err);
}

static bool leaves_things(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

/* A failure after the rename leaves the new file, whole. */
static const char *verify_one(const char *folder, void *context, const fault_case *which)
{
    const char *out = context;
    bool is_old = temp_holds(temp_path(folder, out), old_bytes, sizeof old_bytes);
    coffer_tensors *set = NULL;
    if (!leaves_things(which))
        temp_assert_no_litter(folder, "model.safetensors", "config.json", "tokenizer_config.json",
                              "chat_template.jinja", "in.mcf", out, NULL);
    if (is_old)
        return which->status == COFFER_OK ? "reported as done, and is not" : NULL;
    if (coffer_tensors_open_path(&set, temp_path(folder, out), NULL, NULL))
        return "neither old nor new";
    coffer_tensors_close(set);
    return NULL;
}

/* An index is there with its shards or not at all. When only the last sync failed it is there. */
static const char *verify_shards(const char *folder, void *context, const fault_case *which)
{
    coffer_tensors *set = NULL;
    (void)context;
    bool is_there = temp_exists(temp_path(folder, "s.safetensors.index.json"));
    if (which->status == COFFER_OK && !is_there)
        return "reported as done, and is not";
    if (is_there && coffer_tensors_open_path(&set, temp_path(folder, "s.safetensors.index.json"), NULL, NULL))
        return "an index without its shards";
    coffer_tensors_close(set);
    if (!is_there && !leaves_things(which))
        temp_assert_no_litter(folder, "model.safetensors", "config.json", "tokenizer_config.json",
                              "chat_template.jinja", "in.mcf", NULL);
    return NULL;
}

/* ---- Repair and comparison ---- */

static void setup_damaged(const char *folder, void *context)
{
    size_t len;
    const char *out = context;
    uint8_t *bytes = safetensors_make(&len, header, 44);
    temp_write(temp_path(folder, "m-00001-of-00002.safetensors"), bytes, len - 1);
    free(bytes);
    safetensors_write(temp_path(folder, "m-00002-of-00002.safetensors"),
                      "{\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    temp_write(temp_path(folder, out), old_bytes, sizeof old_bytes);
}

static coffer_status repair(const char *folder, void *context, coffer_error *err)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    opts.overwrite = true;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (!status)
        status = coffer_tensors_repair(report, folder, temp_path(folder, context), &opts, err);
    coffer_report_free(report);
    return status;
}

static const char *verify_repair(const char *folder, void *context, const fault_case *which)
{
    const char *out = context;
    coffer_tensors *set = NULL;
    if (!leaves_things(which))
        temp_assert_no_litter(folder, "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", out,
                              NULL);
    if (temp_holds(temp_path(folder, out), old_bytes, sizeof old_bytes))
        return which->status == COFFER_OK ? "reported as done, and is not" : NULL;
    if (coffer_tensors_open_path(&set, temp_path(folder, out), NULL, NULL))
        return "neither old nor new";
    bool complete = coffer_tensors_count(set) == 4;
    coffer_tensors_close(set);
    return complete ? NULL : "complete tensors are missing";
}

static coffer_status compare(const char *folder, void *context, coffer_error *err)
{
    coffer_tensors *a = NULL, *b = NULL;
    coffer_node *root = NULL;
    (void)context;
    coffer_status status = coffer_tensors_open_path(&a, folder, NULL, err);
    if (!status)
        status = coffer_tensors_open_path(&b, temp_path(folder, "in.mcf"), NULL, err);
    if (!status)
        status = coffer_node_new(&root, err);
    if (!status)
        status = coffer_tensors_diff(root, a, b, NULL, err);
    coffer_node_free(root);
    coffer_tensors_close(a);
    coffer_tensors_close(b);
    return status;
}

static const char *verify_nothing(const char *folder, void *context, const fault_case *which)
{
    (void)folder;
    (void)context;
    (void)which;
    return NULL;
}

static void repair_fails_cleanly(void **state)
{
    (void)state;
    char out[] = "out.bin";
    fault_test test = { setup_damaged, repair, verify_repair, out };
    fault_each(&test);
}

static void comparison_of_files_fails_cleanly(void **state)
{
    (void)state;
    fault_test test = { setup, compare, verify_nothing, NULL };
    fault_each(&test);
}

static void packing_fails_cleanly(void **state)
{
    (void)state;
    char out[] = "out.mcf";
    fault_test test = { setup, pack, verify_one, out };
    fault_each(&test);
}

static void exporting_fails_cleanly(void **state)
{
    (void)state;
    char out[] = "out.safetensors";
    fault_test test = { setup, export_one, verify_one, out };
    fault_each(&test);
}

static void exporting_shards_fails_cleanly(void **state)
{
    (void)state;
    fault_test test = { setup, export_shards, verify_shards, NULL };
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_fails_cleanly),
        cmocka_unit_test(exporting_fails_cleanly),
        cmocka_unit_test(exporting_shards_fails_cleanly),
        cmocka_unit_test(repair_fails_cleanly),
        cmocka_unit_test(comparison_of_files_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
