/* Folders, shards and manifests into sets: what is stored, in which order, and what is refused. */
#include "coffer/coffer.h"
#include "coffer/dataset.h"
#include "coffer/media.h"
#include "coffer/mldf.h"

#include "outside/archives/tar.h"
#include "support/picture_bytes.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Input files ---- */

static coffer__buffer tiny_png(uint8_t gray)
{
    uint8_t rows[4] = { 0, gray, gray, gray };
    png_parts parts = { .width = 3, .height = 1, .bit_depth = 8, .rows = rows, .row_len = sizeof rows };
    return png_build(&parts);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(temp_path(temp_folder, name), 0777), 0);
}

static void put_text(const char *name, const char *text)
{
    temp_write(temp_path(temp_folder, name), text, strlen(text));
}

static void put_buffer(const char *name, coffer__buffer bytes)
{
    assert_false(bytes.failed);
    temp_write(temp_path(temp_folder, name), bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
}

static void put_jpeg(const char *name, uint32_t width, uint32_t height)
{
    coffer_pixels pixels = {
        sizeof(coffer_pixels), calloc(3, (size_t)width * height), width, height, 3, 0, 8
    };
    uint8_t *bytes;
    size_t size;
    for (size_t i = 0; i < (size_t)width * height * 3; i++)
        pixels.data[i] = (uint8_t)(i / 3 % 200);
    assert_int_equal(coffer_image_encode_jpeg(&bytes, &size, &pixels, 90, NULL), COFFER_OK);
    temp_write(temp_path(temp_folder, name), bytes, size);
    coffer_free(bytes);
    free(pixels.data);
}

/* ---- Packing, and looking at the result ---- */

static coffer_status pack(coffer_node **facts, const char *input, const coffer_mldf_pack_opts *opts,
                          coffer_error *err)
{
    const char *path = temp_path(temp_folder, input);
    char out[512];
    snprintf(out, sizeof out, "%s/out.mldf", temp_folder);
    assert_int_equal(coffer_node_new(facts, NULL), COFFER_OK);
    return coffer_mldf_pack(*facts, &path, 1, out, opts, err);
}

static void must_pack(const char *input, const coffer_mldf_pack_opts *opts)
{
    coffer_node *facts;
    coffer_error err = COFFER_ERROR_INIT;
    if (pack(&facts, input, opts, &err) != COFFER_OK)
        fail_msg("%s: %s", input, err.text);
    coffer_node_free(facts);
}

static void must_refuse(const char *input, const coffer_mldf_pack_opts *opts, coffer_status status,
                        const char *part)
{
    coffer_node *facts;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(pack(&facts, input, opts, &err), status);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" is not in: %s", part, err.text);
    assert_false(temp_exists(temp_path(temp_folder, "out.mldf")));
    coffer_node_free(facts);
}

static coffer_source *source;
static coffer_mldf *set;

static void open_result(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    opts.verify = true;
    assert_int_equal(coffer_source_open(&source, temp_path(temp_folder, "out.mldf"), NULL, &err), COFFER_OK);
    if (coffer_mldf_open(&set, source, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
}

static void close_result(void)
{
    coffer_mldf_close(set);
    coffer_source_close(source);
    unlink(temp_path(temp_folder, "out.mldf"));
}

static size_t field_of(const char *name)
{
    size_t field = coffer_mldf_find_field(set, name);
    if (field == SIZE_MAX)
        fail_msg("no field %s", name);
    return field;
}

static uint16_t type_of(const char *name)
{
    return coffer_mldf_field_at(set, field_of(name))->type;
}

static void assert_bytes(uint64_t sample, const char *name, const void *expected, size_t size)
{
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mldf_read(&bytes, NULL, set, sample, field_of(name), &err) != COFFER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(bytes.size, size);
    assert_memory_equal(bytes.data, expected, size);
    coffer_free(bytes.data);
}

static void assert_text(uint64_t sample, const char *name, const char *expected)
{
    assert_bytes(sample, name, expected, strlen(expected));
}

static void assert_file(uint64_t sample, const char *name, const char *file)
{
    size_t size;
    uint8_t *bytes = temp_read(temp_path(temp_folder, file), &size);
    assert_non_null(bytes);
    assert_bytes(sample, name, bytes, size);
    free(bytes);
}

static int64_t int_of(uint64_t sample, const char *name)
{
    int64_t value;
    assert_int_equal(coffer_mldf_get_int(&value, set, sample, field_of(name), NULL), COFFER_OK);
    return value;
}

static double float_of(uint64_t sample, const char *name)
{
    double value;
    assert_int_equal(coffer_mldf_get_float(&value, set, sample, field_of(name), NULL), COFFER_OK);
    return value;
}

static coffer_mldf_entry entry_of(uint64_t sample, const char *name)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    assert_int_equal(coffer_mldf_entry_at(&entry, set, sample, field_of(name), NULL), COFFER_OK);
    return entry;
}

/* ---- Folders ---- */

static void make_animals(void)
{
    make_folder("animals");
    make_folder("animals/dog");
    make_folder("animals/cat");
    make_folder("animals/cat/deep");
    make_folder("animals/cat-big");
    put_jpeg("animals/dog/a.jpg", 20, 10);
    put_jpeg("animals/cat/b.JPEG", 8, 8);
    put_buffer("animals/cat/deep/c.png", tiny_png(7));
    put_jpeg("animals/cat-big/d.jpg", 9, 5);
    put_text("animals/cat/Thumbs.db", "x");
    put_text("animals/.hidden.jpg", "x");
    put_text("animals/notes.txt", "not a picture");
}

static void a_folder_of_pictures_has_its_folders_as_classes(void **state)
{
    (void)state;
    make_animals();
    must_pack("animals", NULL);
    open_result();
    assert_int_equal(coffer_mldf_sample_count(set), 4);
    assert_int_equal(coffer_mldf_field_count(set), 4);
    assert_int_equal(type_of("image"), COFFER_MLDF_IMAGE_JPEG);
    static const char *const paths[] = { "cat/b.JPEG", "cat/deep/c.png", "cat-big/d.jpg", "dog/a.jpg" };
    static const char *const classes[] = { "cat", "cat", "cat-big", "dog" };
    static const int labels[] = { 0, 0, 1, 2 };
    for (uint64_t i = 0; i < 4; i++) {
        char file[64];
        snprintf(file, sizeof file, "animals/%s", paths[i]);
        assert_text(i, "path", paths[i]);
        assert_text(i, "class", classes[i]);
        assert_int_equal(int_of(i, "label"), labels[i]);
        assert_file(i, "image", file);
    }
    assert_int_equal(entry_of(1, "image").mode, 2);
    assert_int_equal(entry_of(1, "image").width, 3);
    assert_int_equal(entry_of(1, "image").channels, 1);
    assert_int_equal(entry_of(3, "image").mode, 1);
    assert_int_equal(entry_of(3, "image").width, 20);
    assert_int_equal(entry_of(3, "image").height, 10);
    /* The class of two samples is stored once. */
    assert_int_equal(entry_of(0, "class").offset, entry_of(1, "class").offset);
    close_result();
}

static void pictures_can_be_made_smaller_encoded_again_or_decoded(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    make_animals();
    opts.max_size = 8;
    must_pack("animals", &opts);
    open_result();
    assert_file(0, "image", "animals/cat/b.JPEG");
    assert_int_equal(entry_of(3, "image").width, 8);
    assert_int_equal(entry_of(3, "image").height, 4);
    assert_int_equal(entry_of(2, "image").width, 8);
    assert_int_equal(entry_of(2, "image").height, 4);
    close_result();

    opts = (coffer_mldf_pack_opts)COFFER_MLDF_PACK_OPTS_INIT;
    opts.jpeg_quality = 70;
    must_pack("animals", &opts);
    open_result();
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(entry_of(i, "image").mode, 1);
    assert_int_equal(coffer_mldf_field_at(set, field_of("image"))->jpeg_quality, 70);
    close_result();

    opts.jpeg_quality = 0;
    opts.raw = true;
    must_pack("animals", &opts);
    open_result();
    assert_int_equal(type_of("image"), COFFER_MLDF_IMAGE_RAW);
    assert_bytes(1, "image", "\7\7\7", 3);
    assert_int_equal(entry_of(3, "image").size, 20 * 10 * 3);
    close_result();
}

static void a_broken_picture_is_named_or_left_out(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_node *facts;
    make_animals();
    put_text("animals/cat/bad.jpg", "no picture at all");
    must_refuse("animals", NULL, COFFER_E_NOT_RECOGNISED, "cat/bad.jpg");
    assert_true(temp_exists(temp_path(temp_folder, "out.mldf.partial")));
    opts.keep_going = opts.restart = true;
    assert_int_equal(pack(&facts, "animals", &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "samples")), 4);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "skipped")),
                     4); /* and hidden files, a text */
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "classes")), 3);
    const coffer_node *left = coffer_node_first(coffer_node_find(facts, "left_out"));
    assert_string_equal(coffer_node_get_text(coffer_node_find(left, "sample"), NULL), "cat/bad.jpg");
    coffer_node_free(facts);
    open_result();
    assert_int_equal(coffer_mldf_sample_count(set), 4);
    close_result();
}

static void a_pack_that_fails_at_once_leaves_nothing(void **state)
{
    (void)state;
    make_folder("bad");
    put_text("bad/1.jpg", "no picture at all");
    put_jpeg("bad/2.jpg", 8, 8);
    must_refuse("bad", NULL, COFFER_E_NOT_RECOGNISED, "1.jpg");
    temp_assert_only(temp_folder, "bad", NULL);
}

static void links_are_refused(void **state)
{
    (void)state;
    make_animals();
    assert_int_equal(symlink("/etc/hostname", temp_path(temp_folder, "animals/dog/link.jpg")), 0);
    must_refuse("animals", NULL, COFFER_E_UNSAFE_PATH, "dog/link.jpg");
}

static void a_link_to_a_folder_is_not_passed_by_unsaid(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_node *facts;
    make_animals();
    assert_int_equal(symlink("dog", temp_path(temp_folder, "animals/wolf")), 0);
    assert_int_equal(symlink("nowhere", temp_path(temp_folder, "animals/notes")), 0); /* no picture anyway */
    must_refuse("animals", NULL, COFFER_E_UNSAFE_PATH, "wolf");
    opts.keep_going = opts.restart = true;
    assert_int_equal(pack(&facts, "animals", &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "samples")), 4);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "skipped")),
                     5); /* with the other link, hidden files, a text */
    coffer_node_free(facts);
}

static void what_holds_nothing_to_pack_says_so(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    make_folder("empty");
    must_refuse("empty", NULL, COFFER_E_NOT_FOUND, "no files in the folder");
    put_text("empty/1.txt", "one");
    opts.kind = COFFER_DATASET_IMAGES;
    must_refuse("empty", &opts, COFFER_E_NOT_FOUND, "none of its 1 files is a picture");
    put_text("none.jsonl", "");
    must_refuse("none.jsonl", NULL, COFFER_E_MISSING, "no samples in it");
}

static void a_pack_that_a_file_has_stopped_can_go_on_without_it(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_node *facts;
    make_animals();
    put_text("animals/dog/bad.jpg", "no picture at all");
    assert_int_equal(pack(&facts, "animals", NULL, NULL), COFFER_E_NOT_RECOGNISED);
    assert_string_equal(coffer_node_get_text(coffer_node_find(facts, "failed"), NULL), "dog/bad.jpg");
    coffer_node_free(facts);
    opts.keep_going = opts.resume = true;
    assert_int_equal(pack(&facts, "animals", &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "samples")), 4);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "skipped")), 4);
    assert_null(coffer_node_find(facts, "failed"));
    coffer_node_free(facts);
}

static int stop_after_a_batch(void *context, uint64_t done, uint64_t total)
{
    (void)context, (void)total;
    return done >= 8;
}

static uint64_t number_of(const coffer_node *facts, const char *name)
{
    return coffer_node_get_u64(coffer_node_find(facts, name));
}

static void what_was_left_out_before_a_resume_is_listed_too(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_progress stop = { sizeof(coffer_progress), stop_after_a_batch, NULL };
    coffer_node *facts;
    char name[32];
    make_folder("many");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "many/%02d.png", i);
        if (i == 2 || i == 30)
            put_text(name, "no picture at all");
        else
            put_buffer(name, tiny_png((uint8_t)i));
    }
    opts.keep_going = true;
    opts.progress = &stop;
    assert_int_equal(pack(&facts, "many", &opts, NULL), COFFER_E_CANCELLED);
    coffer_node_free(facts);
    opts.progress = NULL;
    opts.resume = true;
    assert_int_equal(pack(&facts, "many", &opts, NULL), COFFER_OK);
    assert_true(number_of(facts, "resumed") > 0);
    assert_int_equal(number_of(facts, "found"), 40);
    assert_int_equal(number_of(facts, "packed"), 38);
    assert_int_equal(number_of(facts, "skipped"), 2);
    const coffer_node *left = coffer_node_first(coffer_node_find(facts, "left_out"));
    assert_string_equal(coffer_node_get_text(coffer_node_find(left, "sample"), NULL), "02.png");
    left = coffer_node_next(left);
    assert_string_equal(coffer_node_get_text(coffer_node_find(left, "sample"), NULL), "30.png");
    coffer_node_free(facts);
    temp_assert_only(temp_folder, "many", "out.mldf", NULL);
}

static void several_folders_become_one_set(void **state)
{
    (void)state;
    make_folder("cats");
    make_folder("dogs");
    put_buffer("cats/1.png", tiny_png(1));
    put_buffer("dogs/1.png", tiny_png(2));
    put_buffer("dogs/2.png", tiny_png(3));
    char dogs[512], cats[512], out[512];
    snprintf(dogs, sizeof dogs, "%s/dogs/", temp_folder);
    snprintf(cats, sizeof cats, "%s/cats", temp_folder);
    snprintf(out, sizeof out, "%s/out.mldf", temp_folder);
    const char *folders[] = { dogs, cats };
    coffer_node *facts;
    assert_int_equal(coffer_node_new(&facts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_pack(facts, folders, 2, out, NULL, NULL), COFFER_OK);
    assert_int_equal(number_of(facts, "classes"), 2);
    assert_int_equal(number_of(facts, "found"), 3);
    coffer_node_free(facts);
    open_result();
    int64_t label;
    coffer_bytes text = COFFER_BYTES_INIT;
    size_t labels = coffer_mldf_find_field(set, "label"), classes = coffer_mldf_find_field(set, "class");
    assert_int_equal(coffer_mldf_get_int(&label, set, 0, labels, NULL), COFFER_OK);
    assert_int_equal(label, 0);
    assert_int_equal(coffer_mldf_get_text(&text, set, 0, classes, NULL), COFFER_OK);
    assert_string_equal(text.data, "cats");
    assert_int_equal(coffer_mldf_get_int(&label, set, 2, labels, NULL), COFFER_OK);
    assert_int_equal(label, 1);
    coffer_free(text.data);
    close_result();
}

static void sounds_are_stored_as_their_samples(void **state)
{
    (void)state;
    static const int16_t samples[] = { 1, -2, 300, -400 };
    make_folder("sounds");
    put_buffer("sounds/a.wav", wav_build(16000, 2, samples, 4));
    temp_copy(COFFER_TEST_DATA "/media/ramp.flac", temp_path(temp_folder, "sounds/b.flac"));
    must_pack("sounds", NULL);
    open_result();
    assert_int_equal(coffer_mldf_field_count(set), 2);
    assert_bytes(0, "audio", samples, sizeof samples);
    assert_int_equal(entry_of(0, "audio").num_samples, 2);
    assert_int_equal(entry_of(0, "audio").sample_rate, 16000);
    assert_int_equal(entry_of(0, "audio").codec, 0);
    assert_file(1, "audio", "sounds/b.flac");
    assert_int_equal(entry_of(1, "audio").codec, 1);
    assert_int_equal(entry_of(1, "audio").num_samples, 200);
    close_result();
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT; /* of a file that is stored with its header */
    coffer__buffer wav = wav_build(16000, 2, samples, 4);
    assert_int_equal(coffer_mldf_describe_sound(&entry, wav.data, wav.len, NULL), COFFER_OK);
    assert_int_equal(entry.codec, COFFER_MLDF_CODEC_FILE);
    assert_int_equal(entry.num_samples, 2);
    coffer__buffer_free(&wav);
}

static void texts_can_be_packed_with_a_dictionary(void **state)
{
    (void)state;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    char name[64], text[200];
    make_folder("texts");
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "texts/%03d.txt", i);
        snprintf(text, sizeof text, "The caption of picture %d shows a cat on a %s mat near window %d.", i,
                 i % 3 ? "red" : "green", i * 7);
        put_text(name, text);
    }
    opts.zstd = true;
    opts.dictionary = 2048;
    must_pack("texts", &opts);
    open_result();
    assert_int_equal(type_of("text"), COFFER_MLDF_TEXT);
    assert_true(coffer_mldf_field_at(set, field_of("text"))->flags & COFFER_MLDF_FIELD_ZSTD);
    assert_true(coffer_mldf_field_at(set, field_of("text"))->dictionary_size > 0);
    assert_text(7, "text", "The caption of picture 7 shows a cat on a red mat near window 49.");
    assert_true(entry_of(7, "text").size < 50);
    close_result();
    put_text("texts/200.txt", "\xff\xfe no text");
    must_refuse("texts", &opts, COFFER_E_BAD_TEXT, "200.txt");
}

/* A .npy file of 32-bit numbers. */
static void put_npy(const char *name, const char *shape, const char *type, const void *data, size_t len)
{
    char header[160], file[300];
    int text = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type,
                        shape);
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(file + 10, header, (size_t)text);
    file[127] = '\n';
    memcpy(file + 128, data, len);
    temp_write(temp_path(temp_folder, name), file, 128 + len);
}

static void arrays_keep_what_they_have_in_common(void **state)
{
    (void)state;
    static const uint8_t numbers[] = { 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0 };
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_bytes bytes = COFFER_BYTES_INIT;
    make_folder("arrays");
    put_npy("arrays/a.npy", "(2, 1)", "<i4", numbers, 8);
    put_npy("arrays/b.npy", "(2, 2)", "<i4", numbers, 16);
    must_pack("arrays", NULL);
    open_result();
    const coffer_mldf_field *field = coffer_mldf_field_at(set, field_of("array"));
    assert_int_equal(field->dtype, COFFER_DTYPE_I32);
    assert_int_equal(field->ndim, 2);
    assert_int_equal(field->dims[0], 2);
    assert_int_equal(field->dims[1], 0);
    assert_int_equal(coffer_mldf_get_array(&bytes, dims, set, 1, field_of("array"), NULL), COFFER_OK);
    assert_int_equal(dims[1], 2);
    assert_memory_equal(bytes.data, numbers, 16);
    coffer_free(bytes.data);
    close_result();

    must_pack("arrays/b.npy", NULL);
    open_result();
    assert_int_equal(coffer_mldf_sample_count(set), 2);
    assert_bytes(1, "array", numbers + 8, 8);
    close_result();
    put_npy("arrays/c.npy", "(2, 1)", "<f4", numbers, 8);
    must_refuse("arrays", NULL, COFFER_E_INCONSISTENT, "array");
}

/* ---- Shards ---- */

static void put_member(coffer__buffer *tar, const char *name, const void *bytes, size_t len)
{
    coffer__tar_put_header(tar, name, len);
    coffer__buffer_append(tar, bytes, len);
    coffer__buffer_fill(tar, 0, coffer__tar_padding(len));
}

static void put_shard(const char *name, coffer__buffer *tar)
{
    coffer__buffer_fill(tar, 0, 1024);
    put_buffer(name, *tar);
    *tar = (coffer__buffer)COFFER__BUFFER_INIT;
}

static void shards_become_samples_by_their_stems(void **state)
{
    (void)state;
    coffer__buffer tar = COFFER__BUFFER_INIT, png = tiny_png(9);
    make_folder("shards");
    put_member(&tar, "x/0001.PNG", png.data, png.len);
    put_member(&tar, "x/0001.cls", "5", 1);
    put_member(&tar, "x/0001.json", "{\"a\": 1}", 8);
    put_member(&tar, "x/0002.png", png.data, png.len);
    put_member(&tar, "x/0002.cls", "-3\n", 3);
    put_member(&tar, "x/0002.seg.txt", "hello", 5);
    put_member(&tar, "no-extension", "?", 1);
    put_member(&tar, "__meta__/x.json", "{}", 2);
    put_shard("shards/b.tar", &tar);
    put_member(&tar, "0000.cls", "7", 1);
    put_member(&tar, "0000.png", png.data, png.len);
    put_member(&tar, "0000.bin", "\xff\0", 2);
    put_shard("shards/a.tar", &tar);
    must_pack("shards", NULL);
    open_result();
    assert_int_equal(coffer_mldf_sample_count(set), 3);
    assert_int_equal(type_of("cls"), COFFER_MLDF_INT);
    assert_int_equal(type_of("png"), COFFER_MLDF_IMAGE_PNG);
    assert_int_equal(type_of("json"), COFFER_MLDF_JSON);
    assert_int_equal(type_of("seg.txt"), COFFER_MLDF_TEXT);
    assert_int_equal(type_of("bin"), COFFER_MLDF_BYTES);
    assert_text(0, "__key__", "0000");
    assert_text(1, "__key__", "x/0001");
    assert_int_equal(int_of(0, "cls"), 7);
    assert_int_equal(int_of(1, "cls"), 5);
    assert_int_equal(int_of(2, "cls"), -3);
    assert_bytes(2, "png", png.data, png.len);
    assert_text(2, "seg.txt", "hello");
    assert_false(entry_of(1, "seg.txt").present);
    assert_false(entry_of(0, "json").present);
    close_result();
    coffer__buffer_free(&png);
}

static void members_that_could_do_harm_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        char type;
    } cases[] = { { "../up.txt", '0' },  { "/abs.txt", '0' },   { "a/../../b.txt", '0' }, { "link.txt", '2' },
                  { "hard.txt", '1' },   { "device.txt", '3' }, { "block.txt", '4' },     { "pipe.txt", '6' },
                  { "sparse.txt", 'S' }, { "a/..", '0' } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer__buffer tar = COFFER__BUFFER_INIT;
        put_member(&tar, cases[i].name, "", 0);
        /* The sum of the header's bytes changes with the type. */
        unsigned sum = 0;
        tar.data[156] = (uint8_t)cases[i].type;
        memset(tar.data + 148, ' ', 8);
        for (size_t k = 0; k < 512; k++)
            sum += tar.data[k];
        snprintf((char *)tar.data + 148, 8, "%06o", sum);
        put_shard("bad.tar", &tar);
        must_refuse("bad.tar", NULL, COFFER_E_UNSAFE_PATH, cases[i].name);
    }
}

/* ---- Manifests ---- */

static void a_manifest_brings_the_files_that_it_names(void **state)
{
    (void)state;
    make_folder("m");
    make_folder("m/img");
    put_buffer("m/img/1.png", tiny_png(1));
    put_buffer("m/img/2.png", tiny_png(2));
    put_text("m/list.jsonl",
             "{\"image\": \"img/1.png\", \"n\": 1, \"w\": 0.5, \"t\": \"one.png\", \"o\": {\"k\": [1]}}\n"
             "{\"image\": \"img/2.png\", \"n\": -2, \"w\": 3, \"t\": \"zwei\", \"o\": null}\n");
    must_pack("m/list.jsonl", NULL);
    open_result();
    assert_int_equal(type_of("image"), COFFER_MLDF_IMAGE_PNG);
    assert_int_equal(type_of("n"), COFFER_MLDF_INT);
    assert_int_equal(type_of("w"), COFFER_MLDF_FLOAT);
    assert_int_equal(type_of("t"), COFFER_MLDF_TEXT);
    assert_int_equal(type_of("o"), COFFER_MLDF_JSON);
    assert_file(1, "image", "m/img/2.png");
    assert_int_equal(int_of(1, "n"), -2);
    assert_true(float_of(0, "w") == 0.5 && float_of(1, "w") == 3);
    assert_text(0, "t", "one.png");
    assert_text(0, "o", "{\"k\": [1]}");
    assert_false(entry_of(1, "o").present);
    close_result();

    put_text("m/list.csv", "file,label,score,code\nimg/2.png,4,1.5,007\nimg/1.png,5,,008\n");
    must_pack("m/list.csv", NULL);
    open_result();
    assert_file(0, "file", "m/img/2.png");
    assert_int_equal(int_of(1, "label"), 5);
    assert_text(0, "score", "1.5"); /* one is missing, and a number cannot be */
    assert_text(0, "code", "007");
    close_result();
}

static void a_manifest_whose_files_are_elsewhere_says_so(void **state)
{
    (void)state;
    coffer_node *facts;
    make_folder("m");
    put_buffer("m/1.png", tiny_png(1));
    put_text("m/a.csv", "file,text\nfar/1.png,one\nfar/2.png,two\n");
    assert_int_equal(pack(&facts, "m/a.csv", NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_text(coffer_node_find(facts, "kept_as_text"), NULL), "file");
    coffer_node_free(facts);
    open_result();
    assert_int_equal(type_of("file"), COFFER_MLDF_TEXT);
    close_result();
    put_text("m/b.csv", "file,text\n1.png,one\n1.png,see notes.txt\n");
    assert_int_equal(pack(&facts, "m/b.csv", NULL, NULL), COFFER_OK);
    assert_null(coffer_node_find(facts, "kept_as_text"));
    coffer_node_free(facts);
}

static void a_manifest_cannot_reach_outside_its_folder(void **state)
{
    (void)state;
    make_folder("m");
    put_buffer("secret.png", tiny_png(1));
    put_buffer("m/1.png", tiny_png(1));
    assert_int_equal(symlink("..", temp_path(temp_folder, "m/up")), 0);
    put_text("m/a.csv", "file\n../secret.png\n");
    must_refuse("m/a.csv", NULL, COFFER_E_UNSAFE_PATH, "../secret.png");
    temp_assert_no_litter(temp_folder, "m", "secret.png", NULL);
    put_text("m/b.csv", "file\n/etc/x.png\n");
    must_refuse("m/b.csv", NULL, COFFER_E_UNSAFE_PATH, "/etc/x.png");
    put_text("m/c.csv", "file\nup/secret.png\n");
    must_refuse("m/c.csv", NULL, COFFER_E_UNSAFE_PATH, "up/secret.png");
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    opts.restart = true;
    put_text("m/d.csv", "file\n1.png\n../secret.png\n");
    must_refuse("m/d.csv", &opts, COFFER_E_UNSAFE_PATH, "line 3");
    put_text("m/e.csv", "file\n1.png\nnot-there.png\n");
    must_refuse("m/e.csv", &opts, COFFER_E_NOT_FOUND, "line 3");
}

/* ---- Interruptions ---- */

static int stop_at(void *context, uint64_t done, uint64_t total)
{
    (void)total;
    return done >= *(const uint64_t *)context;
}

static void make_numbers(int count)
{
    char name[64], text[64];
    make_folder("numbers");
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "numbers/%04d.txt", i);
        snprintf(text, sizeof text, "number %d", i);
        put_text(name, text);
    }
}

static void an_interrupted_pack_goes_on_where_it_was(void **state)
{
    (void)state;
    uint64_t at = 100;
    coffer_progress progress = { sizeof progress, stop_at, &at };
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    coffer_node *facts;
    size_t whole_size, size;
    make_numbers(700);
    must_pack("numbers", NULL);
    uint8_t *whole = temp_read(temp_path(temp_folder, "out.mldf"), &whole_size);
    unlink(temp_path(temp_folder, "out.mldf"));

    opts.progress = &progress;
    must_refuse("numbers", &opts, COFFER_E_CANCELLED, "cancelled");
    assert_true(temp_exists(temp_path(temp_folder, "out.mldf.partial")));
    opts.progress = NULL;
    must_refuse("numbers", &opts, COFFER_E_EXISTS, "resume");
    opts.resume = true;
    assert_int_equal(pack(&facts, "numbers", &opts, NULL), COFFER_OK);
    assert_true(coffer_node_get_u64(coffer_node_find(facts, "resumed")) > 0);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(facts, "samples")), 700);
    coffer_node_free(facts);
    uint8_t *resumed = temp_read(temp_path(temp_folder, "out.mldf"), &size);
    assert_int_equal(size, whole_size);
    assert_memory_equal(resumed, whole, size);
    free(whole);
    free(resumed);
}

static void another_input_is_not_resumed_into(void **state)
{
    (void)state;
    uint64_t at = 100;
    coffer_progress progress = { sizeof progress, stop_at, &at };
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    make_numbers(300);
    opts.progress = &progress;
    must_refuse("numbers", &opts, COFFER_E_CANCELLED, "cancelled");
    put_text("numbers/0000a.txt", "new");
    opts.progress = NULL;
    opts.resume = true;
    must_refuse("numbers", &opts, COFFER_E_INCONSISTENT, "");
}

static void the_bytes_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    uint8_t *first = NULL;
    size_t first_size = 0;
    make_animals();
    for (uint32_t threads = 1; threads <= 3; threads++) {
        coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
        coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
        size_t size;
        opts.jpeg_quality = 80;
        write.threads = threads;
        write.overwrite = true;
        opts.write = &write;
        must_pack("animals", &opts);
        uint8_t *bytes = temp_read(temp_path(temp_folder, "out.mldf"), &size);
        if (!first) {
            first = bytes;
            first_size = size;
            continue;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
    }
    free(first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_of_pictures_has_its_folders_as_classes),
        TEST(pictures_can_be_made_smaller_encoded_again_or_decoded),
        TEST(a_broken_picture_is_named_or_left_out),
        TEST(a_pack_that_fails_at_once_leaves_nothing),
        TEST(links_are_refused),
        TEST(a_link_to_a_folder_is_not_passed_by_unsaid),
        TEST(what_holds_nothing_to_pack_says_so),
        TEST(a_pack_that_a_file_has_stopped_can_go_on_without_it),
        TEST(what_was_left_out_before_a_resume_is_listed_too),
        TEST(several_folders_become_one_set),
        TEST(sounds_are_stored_as_their_samples),
        TEST(texts_can_be_packed_with_a_dictionary),
        TEST(arrays_keep_what_they_have_in_common),
        TEST(shards_become_samples_by_their_stems),
        TEST(members_that_could_do_harm_are_refused_by_name),
        TEST(a_manifest_brings_the_files_that_it_names),
        TEST(a_manifest_whose_files_are_elsewhere_says_so),
        TEST(a_manifest_cannot_reach_outside_its_folder),
        TEST(an_interrupted_pack_goes_on_where_it_was),
        TEST(another_input_is_not_resumed_into),
        TEST(the_bytes_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
