/* A small Hugging Face folder, packed by us and by the format's first program: the same model. */
#include "coffer/coffer.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER COFFER_TEST_DATA "/compat/mcf/"

typedef struct model {
    coffer_source *src;
    coffer_mcf *mcf;
    const coffer_mcf_model_info *info;
} model;

static model open_model(const char *path)
{
    model out = { NULL, NULL, NULL };
    assert_int_equal(coffer_source_open(&out.src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_open(&out.mcf, out.src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_get_model_info(&out.info, out.mcf, NULL), COFFER_OK);
    return out;
}

static void close_model(model *done)
{
    coffer_mcf_close(done->mcf);
    coffer_source_close(done->src);
}

/* The folder had the name "hf" then. */
static void pack_folder(const char *out, const coffer_mcf_pack_opts *opts)
{
    static const char *const files[] = { "model.safetensors", "config.json", "tokenizer.json",
                                         "tokenizer_config.json", "chat_template.jinja" };
    char folder[300], path[300];
    const char *input = folder;
    coffer_error err = COFFER_ERROR_INIT;
    snprintf(folder, sizeof folder, "%s/hf", temp_folder);
    snprintf(path, sizeof path, "%s/%s", temp_folder, out);
    mkdir(folder, 0777);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        temp_copy(temp_path(FOLDER "hf-folder", files[i]), temp_path(folder, files[i]));
    coffer_mcf_pack_opts overwrite = COFFER_MCF_PACK_OPTS_INIT;
    overwrite.overwrite = true;
    if (coffer_mcf_pack(path, &input, 1, opts ? opts : &overwrite, &err))
        fail_msg("%s", err.text);
}

static void assert_same_section(const model *a, const model *b, coffer_mcf_section section)
{
    uint8_t *x = NULL, *y = NULL;
    size_t x_len, y_len;
    assert_int_equal(coffer_mcf_read_section(&x, &x_len, a->mcf, section.type, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_read_section(&y, &y_len, b->mcf, section.type, NULL), COFFER_OK);
    assert_int_equal(x_len, y_len);
    assert_memory_equal(x, y, x_len);
    coffer_free(x);
    coffer_free(y);
}

static void the_folder_packs_to_the_same_sections_and_tensors(void **state)
{
    (void)state;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    opts.no_checksums = true;
    opts.no_files = true;
    pack_folder("out.mcf", &opts);
    model ours = open_model(temp_path(temp_folder, "out.mcf")), theirs = open_model(FOLDER "mantle-pack.mcf");
    assert_int_equal(coffer_mcf_flags(ours.mcf), coffer_mcf_flags(theirs.mcf));
    assert_int_equal(coffer_mcf_section_count(ours.mcf), coffer_mcf_section_count(theirs.mcf));
    for (size_t i = 0; i < coffer_mcf_section_count(theirs.mcf); i++) {
        coffer_mcf_section section = *coffer_mcf_section_at(theirs.mcf, i);
        /* Ours has the index before the payloads, so that these stand elsewhere. */
        if (section.type != COFFER_MCF_TENSOR_DATA && section.type != COFFER_MCF_TENSOR_INDEX)
            assert_same_section(&ours, &theirs, section);
    }
    uint64_t shift = coffer_mcf_tensor_at(ours.mcf, 0)->offset - coffer_mcf_tensor_at(theirs.mcf, 0)->offset;
    assert_int_equal(coffer_mcf_tensor_count(ours.mcf), coffer_mcf_tensor_count(theirs.mcf));
    for (size_t i = 0; i < coffer_mcf_tensor_count(theirs.mcf); i++) {
        coffer_mcf_tensor a = *coffer_mcf_tensor_at(ours.mcf, i), b = *coffer_mcf_tensor_at(theirs.mcf, i);
        assert_int_equal(a.name_len, b.name_len);
        assert_memory_equal(a.name, b.name, a.name_len);
        assert_int_equal(a.dtype_code, b.dtype_code);
        assert_int_equal(a.rank, b.rank);
        assert_memory_equal(a.dims, b.dims, a.rank * sizeof *a.dims);
        assert_int_equal(a.size, b.size);
        assert_int_equal(a.offset, b.offset + shift);
        assert_memory_equal(coffer_mcf_view(ours.mcf, i), coffer_mcf_view(theirs.mcf, i), (size_t)a.size);
    }
    close_model(&ours);
    close_model(&theirs);
}

static void the_folder_becomes_a_clean_model(void **state)
{
    (void)state;
    coffer_report *report = NULL;
    coffer_check_opts check = COFFER_CHECK_OPTS_INIT;
    check.full = true;
    pack_folder("out.mcf", NULL);
    model out = open_model(temp_path(temp_folder, "out.mcf"));
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, out.src, &check, NULL), COFFER_OK);
    assert_int_equal(coffer_report_count(report), 0);
    assert_int_equal(coffer_mcf_tensor_count(out.mcf), 6);
    size_t head = coffer_mcf_find_tensor(out.mcf, "lm_head.weight", 14);
    size_t embedding = coffer_mcf_find_tensor(out.mcf, "model.embed_tokens.weight", 25);
    assert_int_equal(coffer_mcf_tensor_at(out.mcf, head)->offset,
                     coffer_mcf_tensor_at(out.mcf, embedding)->offset);
    assert_string_equal(coffer_mcf_arch_name(out.info->arch), "llama");
    assert_string_equal(out.info->model_name, "hf");
    coffer_report_free(report);
    close_model(&out);
}

static void a_model_of_theirs_comes_back_as_the_folders_tensors(void **state)
{
    (void)state;
    coffer_source *src = NULL;
    coffer_tensors *folder = NULL, *back = NULL;
    const char *path = temp_path(temp_folder, "back.safetensors");
    assert_int_equal(coffer_source_open(&src, FOLDER "mantle-pack.mcf", NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open_path(&folder, FOLDER "hf-folder", NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open_path(&back, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_count(back), coffer_tensors_count(folder));
    for (size_t i = 0; i < coffer_tensors_count(folder); i++) {
        static uint8_t a[1 << 15], b[1 << 15];
        size_t size = (size_t)coffer_tensors_at(folder, i)->size;
        assert_string_equal(coffer_tensors_at(back, i)->name, coffer_tensors_at(folder, i)->name);
        assert_int_equal(coffer_tensors_read(a, folder, i, 0, size, NULL), COFFER_OK);
        assert_int_equal(coffer_tensors_read(b, back, i, 0, size, NULL), COFFER_OK);
        assert_memory_equal(a, b, size);
    }
    coffer_tensors_close(folder);
    coffer_tensors_close(back);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_packs_to_the_same_sections_and_tensors),
        cmocka_unit_test(the_folder_becomes_a_clean_model),
        cmocka_unit_test(a_model_of_theirs_comes_back_as_the_folders_tensors),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
