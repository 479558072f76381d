/* zstd dictionaries: trained, stored with the field, used by everything that writes and reads. */
#include "coffer/mldf_select.h"
#include "support/dataset_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 2000

static const char *path(const char *name)
{
    return temp_path(temp_folder, name);
}

static size_t text_of(char out[200], uint64_t sample)
{
    return (size_t)snprintf(
        out, 200, "{\"caption\": \"a photograph of a %s\", \"license\": \"public domain\", \"id\": %llu}",
        sample % 3 ? "mountain" : "river", (unsigned long long)(sample * 7919));
}

static void write_texts(coffer_mldf_writer *writer, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        char text[200];
        size_t len = text_of(text, i);
        assert_int_equal(coffer_mldf_writer_set_text(writer, 0, text, len, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
}

static size_t create(const char *name, const coffer_bytes *dictionary)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_field field = dataset_field_of("text", COFFER_MLDF_JSON, COFFER_MLDF_FIELD_ZSTD);
    coffer_mldf_writer *writer = NULL;
    size_t len = 0;
    if (dictionary) {
        field.dictionary = dictionary->data;
        field.dictionary_size = (uint32_t)dictionary->size;
    }
    assert_int_equal(coffer_mldf_writer_create(&writer, path(name), &field, 1, &opts, NULL), COFFER_OK);
    write_texts(writer, 0, SAMPLES);
    free(temp_read(path(name), &len));
    return len;
}

static void expect_texts(const char *name, uint64_t count)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    opts.verify = true;
    assert_int_equal(coffer_source_open(&src, path(name), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_sample_count(set), count);
    for (uint64_t i = 0; i < count; i++) {
        char text[200];
        size_t len = text_of(text, i);
        assert_int_equal(coffer_mldf_read(&value, NULL, set, i, 0, NULL), COFFER_OK);
        assert_int_equal(value.size, len);
        assert_memory_equal(value.data, text, len);
    }
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    dataset_expect_clean(path(name));
}

static coffer_status train(coffer_bytes *out, const char *name, size_t field, size_t size)
{
    coffer_mldf_train_opts opts = COFFER_MLDF_TRAIN_OPTS_INIT;
    opts.size = size;
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, path(name), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    coffer_status status = coffer_mldf_train_dictionary(out, set, field, &opts, NULL);
    coffer_mldf_close(set);
    coffer_source_close(src);
    return status;
}

static void a_trained_dictionary_makes_the_set_smaller_and_stays_with_it(void **state)
{
    coffer_bytes dictionary = COFFER_BYTES_INIT;
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    coffer_source *src = NULL;
    size_t plain = create("plain.mldf", NULL), smaller;
    (void)state;
    assert_int_equal(train(&dictionary, "plain.mldf", 0, 4096), COFFER_OK);
    assert_true(dictionary.size > 0 && dictionary.size <= 4096);
    smaller = create("small.mldf", &dictionary);
    assert_true(smaller < plain * 8 / 10);
    expect_texts("small.mldf", SAMPLES);
    /* Appended values are compressed with the dictionary. */
    assert_int_equal(coffer_mldf_writer_append_to(&writer, path("small.mldf"), &opts, NULL), COFFER_OK);
    write_texts(writer, SAMPLES, 100);
    expect_texts("small.mldf", SAMPLES + 100);
    /* A part of the set takes it along. */
    assert_int_equal(coffer_source_open(&src, path("small.mldf"), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    static uint64_t first[50];
    for (uint64_t i = 0; i < 50; i++)
        first[i] = i;
    assert_int_equal(dataset_extract(path("part.mldf"), set, first, 50, NULL, 0, &opts, NULL), COFFER_OK);
    coffer_mldf_close(set);
    coffer_source_close(src);
    expect_texts("part.mldf", 50);
    coffer_free(dictionary.data);
}

static void what_cannot_be_trained_is_refused(void **state)
{
    coffer_bytes dictionary = COFFER_BYTES_INIT;
    (void)state;
    assert_int_equal(dataset_create(path("few.mldf"), 3, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(train(&dictionary, "few.mldf", SMALL_LABEL, 4096), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(train(&dictionary, "few.mldf", 99, 4096), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(train(&dictionary, "few.mldf", SMALL_CAPTION, 4096), COFFER_E_UNSUPPORTED);
    coffer_free(dictionary.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trained_dictionary_makes_the_set_smaller_and_stays_with_it),
        cmocka_unit_test(what_cannot_be_trained_is_refused),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
