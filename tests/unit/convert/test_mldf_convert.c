/* Sets as files of others, and back. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "coffer/coffer.h"
#include "coffer/mldf.h"
#include "outside/archives/tar.h"
#include "outside/records/tfrecord.h"

#include "support/archive.h"
#include "support/picture_bytes.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Converting ---- */

static coffer_status convert(const char *in, const char *out, const coffer_setting *settings, size_t count,
                             coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    opts.settings = settings;
    opts.setting_count = count;
    assert_int_equal(coffer_source_open(&source, temp_path(temp_folder, in), NULL, err), COFFER_OK);
    coffer_status status = coffer_convert(source, temp_path(temp_folder, out), &opts, err);
    coffer_source_close(source);
    return status;
}

static void must_convert(const char *in, const char *out)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (convert(in, out, NULL, 0, &err) != COFFER_OK)
        fail_msg("%s to %s: %s", in, out, err.text);
}

static void must_refuse(const char *in, const char *out, coffer_status status, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status got = convert(in, out, NULL, 0, &err);
    if (got != status)
        fail_msg("%s to %s gave %s: %s", in, out, coffer_status_name(got), err.text);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" is not in: %s", part, err.text);
    assert_false(temp_exists(temp_path(temp_folder, out)));
}

/* ---- Sets ---- */

typedef struct open_set {
    coffer_source *source;
    coffer_mldf *set;
} open_set;

static open_set open_named(const char *name)
{
    open_set out;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    opts.verify = true;
    assert_int_equal(coffer_source_open(&out.source, temp_path(temp_folder, name), NULL, &err), COFFER_OK);
    if (coffer_mldf_open(&out.set, out.source, &opts, &err) != COFFER_OK)
        fail_msg("%s: %s", name, err.text);
    return out;
}

static void close_set(open_set *one)
{
    coffer_mldf_close(one->set);
    coffer_source_close(one->source);
}

static void assert_same_value(const open_set *a, const open_set *b, uint64_t sample, size_t field)
{
    coffer_bytes x = COFFER_BYTES_INIT, y = COFFER_BYTES_INIT;
    coffer_mldf_entry p = COFFER_MLDF_ENTRY_INIT, q = COFFER_MLDF_ENTRY_INIT;
    assert_int_equal(coffer_mldf_read(&x, &p, a->set, sample, field, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_read(&y, &q, b->set, sample, field, NULL), COFFER_OK);
    assert_int_equal(p.present, q.present);
    assert_int_equal(x.size, y.size);
    if (x.size)
        assert_memory_equal(x.data, y.data, x.size);
    assert_int_equal(p.width, q.width);
    assert_int_equal(p.height, q.height);
    assert_int_equal(p.channels, q.channels);
    assert_int_equal(p.mode, q.mode);
    assert_int_equal(p.num_samples, q.num_samples);
    assert_int_equal(p.sample_rate, q.sample_rate);
    assert_int_equal(p.bit_depth, q.bit_depth);
    assert_int_equal(p.codec, q.codec);
    assert_int_equal(p.encoding, q.encoding);
    assert_int_equal(p.num_tokens, q.num_tokens);
    coffer_free(x.data);
    coffer_free(y.data);
}

/* The same fields in the same order with the same values. */
static void assert_same_sets(const char *first, const char *second)
{
    open_set a = open_named(first), b = open_named(second);
    assert_int_equal(coffer_mldf_sample_count(a.set), coffer_mldf_sample_count(b.set));
    assert_int_equal(coffer_mldf_field_count(a.set), coffer_mldf_field_count(b.set));
    for (size_t f = 0; f < coffer_mldf_field_count(a.set); f++) {
        const coffer_mldf_field *x = coffer_mldf_field_at(a.set, f), *y = coffer_mldf_field_at(b.set, f);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->ndim, y->ndim);
        assert_memory_equal(x->dims, y->dims, sizeof x->dims);
        for (uint64_t i = 0; i < coffer_mldf_sample_count(a.set); i++)
            assert_same_value(&a, &b, i, f);
    }
    close_set(&a);
    close_set(&b);
}

enum { F_IMAGE, F_RAW, F_AUDIO, F_FLAC, F_LABEL, F_WEIGHT, F_CAPTION, F_META, F_FEATURES, F_TOKENS, F_BLOB };

static void check(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s", err->text);
}

static void fill_sample(coffer_mldf_writer *writer, uint64_t i)
{
    static const int16_t sound[] = { 1, 2, 3, -4 };
    static const int32_t tokens[] = { 7, 8, -9 };
    static const float numbers[] = { 0.5f, 1.5f, -2.5f, 4, 5, 6 };
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t rows[4] = { 0, (uint8_t)i, 9, 200 };
    png_parts parts = { .width = 3, .height = 1, .bit_depth = 8, .rows = rows, .row_len = 4 };
    coffer__buffer png = png_build(&parts);
    size_t flac_size;
    uint8_t *flac = temp_read(COFFER_TEST_DATA "/media/ramp.flac", &flac_size);
    coffer_mldf_entry entry = { .struct_size = sizeof(coffer_mldf_entry),
                                .present = true,
                                .width = 3,
                                .height = 1,
                                .channels = 1,
                                .mode = 2 };
    check(coffer_mldf_writer_set_bytes(writer, F_IMAGE, png.data, png.len, &entry, &err), &err);
    entry = (coffer_mldf_entry){
        .struct_size = sizeof(coffer_mldf_entry), .present = true, .width = 1, .height = 2, .channels = 3
    };
    check(coffer_mldf_writer_set_bytes(writer, F_RAW, "abcdef", 6, &entry, &err), &err);
    entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                 .present = true,
                                 .num_samples = 2,
                                 .sample_rate = 8000,
                                 .channels = 2,
                                 .bit_depth = 16 };
    check(coffer_mldf_writer_set_bytes(writer, F_AUDIO, sound, sizeof sound, &entry, &err), &err);
    entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                 .present = true,
                                 .num_samples = 200,
                                 .sample_rate = 8000,
                                 .channels = 2,
                                 .bit_depth = 16,
                                 .codec = 1 };
    check(coffer_mldf_writer_set_bytes(writer, F_FLAC, flac, flac_size, &entry, &err), &err);
    check(coffer_mldf_writer_set_int(writer, F_LABEL, (int64_t)i * -1000000007, &err), &err);
    check(coffer_mldf_writer_set_float(writer, F_WEIGHT, 0.1 * (double)i, &err), &err);
    if (i % 2)
        check(coffer_mldf_writer_set_text(writer, F_CAPTION, "größer \"n\"\n", 13, &err), &err);
    check(coffer_mldf_writer_set_bytes(writer, F_META, "{\"a\":[1,2.5,null]}", 18, NULL, &err), &err);
    uint64_t dims[2] = { 2, 1 + i % 3 };
    check(coffer_mldf_writer_set_array(writer, F_FEATURES, dims, numbers, 8 * (1 + i % 3), &err), &err);
    entry = (coffer_mldf_entry){
        .struct_size = sizeof(coffer_mldf_entry), .present = true, .encoding = 1, .num_tokens = 3
    };
    check(coffer_mldf_writer_set_bytes(writer, F_TOKENS, tokens, sizeof tokens, &entry, &err), &err);
    if (i != 1)
        check(coffer_mldf_writer_set_bytes(writer, F_BLOB, "\0\xff", i == 0 ? 0 : 2, NULL, &err), &err);
    check(coffer_mldf_writer_end_sample(writer, &err), &err);
    coffer__buffer_free(&png);
    free(flac);
}

static void make_set(const char *name, uint64_t samples)
{
    static const char schema[] =
        "[{\"name\":\"image\",\"type\":\"image-png\"},{\"name\":\"Pixels\",\"type\":\"image-raw\"},"
        "{\"name\":\"wav\",\"type\":\"audio\"},{\"name\":\"sound\",\"type\":\"audio-compressed\"},"
        "{\"name\":\"label\",\"type\":\"int\"},{\"name\":\"weight\",\"type\":\"float\"},"
        "{\"name\":\"caption\",\"type\":\"text\",\"optional\":true},{\"name\":\"json\",\"type\":\"json\"},"
        "{\"name\":\"features\",\"type\":\"ndarray\",\"dtype\":\"f32\",\"shape\":[2,0]},"
        "{\"name\":\"tokens\",\"type\":\"text-tokenised\"},"
        "{\"name\":\"a blob\",\"type\":\"bytes\",\"optional\":true}]";
    coffer_mldf_writer *writer;
    coffer_error err = COFFER_ERROR_INIT;
    check(coffer_mldf_writer_create_json(&writer, temp_path(temp_folder, name), schema, sizeof schema - 1,
                                         NULL, &err),
          &err);
    for (uint64_t i = 0; i < samples; i++)
        fill_sample(writer, i);
    check(coffer_mldf_writer_commit(writer, &err), &err);
}

/* ---- There and back ---- */

static void a_tar_file_loses_nothing(void **state)
{
    (void)state;
    make_set("a.mldf", 5);
    must_convert("a.mldf", "a.tar");
    must_convert("a.tar", "b.mldf");
    assert_same_sets("a.mldf", "b.mldf");
}

static void json_lines_lose_nothing(void **state)
{
    (void)state;
    make_set("a.mldf", 5);
    must_convert("a.mldf", "a.jsonl");
    must_convert("a.jsonl", "b.mldf");
    /* Keys that the first line lacks come later, so the order of fields may differ; with one line it is the
     * same. */
    open_set a = open_named("a.mldf"), b = open_named("b.mldf");
    assert_int_equal(coffer_mldf_field_count(a.set), coffer_mldf_field_count(b.set));
    for (size_t f = 0; f < coffer_mldf_field_count(a.set); f++) {
        const coffer_mldf_field *x = coffer_mldf_field_at(a.set, f);
        size_t other = coffer_mldf_find_field(b.set, x->name);
        assert_true(other != SIZE_MAX);
        assert_int_equal(coffer_mldf_field_at(b.set, other)->type, x->type);
        for (uint64_t i = 0; i < 5; i++) {
            coffer_bytes p = COFFER_BYTES_INIT, q = COFFER_BYTES_INIT;
            assert_int_equal(coffer_mldf_read(&p, NULL, a.set, i, f, NULL), COFFER_OK);
            assert_int_equal(coffer_mldf_read(&q, NULL, b.set, i, other, NULL), COFFER_OK);
            assert_int_equal(p.size, q.size);
            if (p.size)
                assert_memory_equal(p.data, q.data, p.size);
            coffer_free(p.data);
            coffer_free(q.data);
        }
    }
    close_set(&a);
    close_set(&b);
}

static void a_webdataset_comes_back_member_by_member(void **state)
{
    (void)state;
    coffer__buffer tar = COFFER__BUFFER_INIT;
    static const char *const members[][2] = { { "d/1.cls", "4" },
                                              { "d/1.txt", "one" },
                                              { "d/1.seg.json", "[]" },
                                              { "d/2.cls", "-5" },
                                              { "d/2.bin", "raw" } };
    for (size_t i = 0; i < 5; i++) {
        coffer__tar_put_header(&tar, members[i][0], strlen(members[i][1]));
        coffer__buffer_append(&tar, members[i][1], strlen(members[i][1]));
        coffer__buffer_fill(&tar, 0, coffer__tar_padding(strlen(members[i][1])));
    }
    coffer__buffer_fill(&tar, 0, 1024);
    temp_write(temp_path(temp_folder, "w.tar"), tar.data, tar.len);
    coffer__buffer_free(&tar);
    must_convert("w.tar", "w.mldf");
    must_convert("w.mldf", "w2.tar");
    coffer_source *source;
    coffer__tar_reader *reader;
    const coffer__tar_member *member;
    coffer__buffer own = COFFER__BUFFER_INIT;
    assert_int_equal(coffer_source_open(&source, temp_path(temp_folder, "w2.tar"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__tar_open(&reader, source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__tar_next(&member, reader, NULL), COFFER_OK);
    assert_string_equal(member->name, "__mldf__/schema.json");
    for (size_t i = 0; i < 5; i++) {
        const uint8_t *bytes;
        assert_int_equal(coffer__tar_next(&member, reader, NULL), COFFER_OK);
        assert_non_null(member);
        assert_string_equal(member->name, members[i][0]);
        assert_int_equal(member->size, strlen(members[i][1]));
        assert_int_equal(coffer__tar_contents(&bytes, &own, reader, NULL), COFFER_OK);
        assert_memory_equal(bytes, members[i][1], strlen(members[i][1]));
    }
    assert_int_equal(coffer__tar_next(&member, reader, NULL), COFFER_OK);
    assert_null(member);
    coffer__tar_close(reader);
    coffer_source_close(source);
    coffer__buffer_free(&own);
}

static void numbers_and_arrays_become_numpy_and_come_back(void **state)
{
    (void)state;
    static const coffer_setting fixed = { "field", "label,weight,Pixels,tokens" };
    static const coffer_setting label = { "field", "label" };
    coffer_error err = COFFER_ERROR_INIT;
    make_set("a.mldf", 4);
    check(convert("a.mldf", "a.npz", &fixed, 1, &err), &err);
    must_convert("a.npz", "b.mldf");
    open_set b = open_named("b.mldf");
    int64_t whole;
    double real;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_bytes bytes = COFFER_BYTES_INIT;
    assert_int_equal(coffer_mldf_sample_count(b.set), 4);
    assert_int_equal(coffer_mldf_get_int(&whole, b.set, 3, coffer_mldf_find_field(b.set, "label"), NULL), 0);
    assert_int_equal(whole, 3 * (int64_t)-1000000007);
    assert_int_equal(coffer_mldf_get_float(&real, b.set, 3, coffer_mldf_find_field(b.set, "weight"), NULL),
                     0);
    assert_true(real == 0.1 * 3.0);
    assert_int_equal(
        coffer_mldf_get_array(&bytes, dims, b.set, 2, coffer_mldf_find_field(b.set, "Pixels"), NULL), 0);
    assert_int_equal(dims[0], 2);
    assert_int_equal(dims[2], 3);
    assert_memory_equal(bytes.data, "abcdef", 6);
    coffer_free(bytes.data);
    close_set(&b);
    check(convert("a.mldf", "a.npy", &label, 1, &err), &err);
    must_convert("a.npy", "c.mldf");
    must_refuse("a.mldf", "bad.npy", COFFER_E_INVALID_ARGUMENT, "--fields");
    must_refuse("a.mldf", "bad.npz", COFFER_E_UNSUPPORTED, "image");
}

static void tf_records_hold_numbers_texts_and_pictures(void **state)
{
    (void)state;
    static const coffer_setting most = { "field", "image,label,weight,caption,features" };
    coffer_error err = COFFER_ERROR_INIT;
    make_set("a.mldf", 4);
    check(convert("a.mldf", "a.tfrecord", &most, 1, &err), &err);
    must_convert("a.tfrecord", "b.mldf");
    open_set a = open_named("a.mldf"), b = open_named("b.mldf");
    int64_t whole;
    double real;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_bytes x = COFFER_BYTES_INIT, y = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    size_t image = coffer_mldf_find_field(b.set, "image"), caption = coffer_mldf_find_field(b.set, "caption");
    assert_int_equal(coffer_mldf_sample_count(b.set), 4);
    assert_int_equal(coffer_mldf_field_at(b.set, image)->type, COFFER_MLDF_IMAGE_PNG);
    assert_int_equal(coffer_mldf_field_at(b.set, caption)->type, COFFER_MLDF_TEXT);
    assert_int_equal(coffer_mldf_get_int(&whole, b.set, 2, coffer_mldf_find_field(b.set, "label"), NULL), 0);
    assert_int_equal(whole, 2 * (int64_t)-1000000007);
    assert_int_equal(coffer_mldf_get_float(&real, b.set, 3, coffer_mldf_find_field(b.set, "weight"), NULL),
                     0);
    assert_true(real == (double)(float)(0.1 * 3.0));
    assert_int_equal(coffer_mldf_read(&x, NULL, a.set, 3, F_IMAGE, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_read(&y, &entry, b.set, 3, image, NULL), COFFER_OK);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    assert_int_equal(entry.width, 3);
    assert_int_equal(coffer_mldf_entry_at(&entry, b.set, 0, caption, NULL), COFFER_OK);
    assert_false(entry.present);
    assert_int_equal(
        coffer_mldf_get_array(&y, dims, b.set, 2, coffer_mldf_find_field(b.set, "features"), NULL), 0);
    assert_int_equal(dims[0], 6);
    assert_int_equal(
        coffer_mldf_get_array(&y, dims, b.set, 2, coffer_mldf_find_field(b.set, "features/shape"), NULL), 0);
    assert_int_equal(coffer__load_u64(y.data + 8), 3);
    coffer_free(x.data);
    coffer_free(y.data);
    close_set(&a);
    close_set(&b);
}

static void damaged_records_are_found_by_their_checksums(void **state)
{
    (void)state;
    static const coffer_setting label = { "field", "label" };
    coffer_error err = COFFER_ERROR_INIT;
    size_t size;
    make_set("a.mldf", 3);
    check(convert("a.mldf", "a.tfrecord", &label, 1, &err), &err);
    uint8_t *bytes = temp_read(temp_path(temp_folder, "a.tfrecord"), &size);
    bytes[20] ^= 1;
    temp_write(temp_path(temp_folder, "bad.tfrecord"), bytes, size);
    must_refuse("bad.tfrecord", "x.mldf", COFFER_E_BAD_CHECKSUM, "record 0");
    bytes[20] ^= 1;
    temp_write(temp_path(temp_folder, "bad.tfrecord"), bytes, size - 1);
    must_refuse("bad.tfrecord", "x.mldf", COFFER_E_TRUNCATED, "record 2");
    free(bytes);
}

/* ---- FFCV ---- */

static void put(coffer__buffer *out, const void *bytes, size_t len)
{
    coffer__buffer_append(out, bytes, len);
}

static void put_u64(coffer__buffer *out, uint64_t value)
{
    uint8_t bytes[8];
    coffer__store_u64(bytes, value);
    put(out, bytes, 8);
}

static void put_beton_field(coffer__buffer *out, uint8_t type, const char *name, const void *arguments,
                            size_t len)
{
    char padded[16] = { 0 };
    memcpy(padded, name, strlen(name));
    put(out, &type, 1);
    put(out, padded, 16);
    put(out, arguments, len);
    coffer__buffer_fill(out, 0, 1024 - len);
}

enum { BETON_FIELDS = 5, BETON_PAYLOADS = 24 + BETON_FIELDS * 1041 + 2 * 56 };

/* Two samples: a raw picture of 1 × 2, a number, a real number, JSON, and an array of two 16-bit numbers. */
static coffer__buffer build_beton(void)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    uint8_t head[24] = { 2, 0, BETON_FIELDS, 0 }, shape[280] = { 2 };
    coffer__store_u32(head + 4, 1 << 21);
    coffer__store_u64(head + 8, 2);
    coffer__store_u64(head + 16, BETON_PAYLOADS + 2 * 18);
    shape[256] = 13;
    memcpy(shape + 264, "[[\"\", \"<i2\"]]", 13);
    put(&out, head, sizeof head);
    put_beton_field(&out, 2, "image", "", 0);
    put_beton_field(&out, 1, "label", "", 0);
    put_beton_field(&out, 0, "score", "", 0);
    put_beton_field(&out, 5, "meta", "", 0);
    put_beton_field(&out, 4, "array", shape, 277);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t at = BETON_PAYLOADS + 18 * i, bits;
        double score = 0.25 + (double)i;
        put(&out, "\1\2\0\1\0", 5); /* raw, width 2, height 1 */
        put_u64(&out, at);
        coffer__buffer_fill(&out, 0, 3);
        put_u64(&out, i + 40);
        memcpy(&bits, &score, sizeof bits);
        put_u64(&out, bits);
        put_u64(&out, at + 6);
        put_u64(&out, 8);
        put_u64(&out, at + 14);
    }
    for (int i = 0; i < 2; i++)
        put(&out, "rgbRGB{\"k\":1}\0\1\0\2\0", 18);
    for (uint64_t i = 0; i < 2; i++) {
        static const uint64_t begins[3] = { 0, 6, 14 }, sizes[3] = { 6, 8, 4 };
        for (size_t k = 0; k < 3; k++) {
            put_u64(&out, i);
            put_u64(&out, BETON_PAYLOADS + 18 * i + begins[k]);
            put_u64(&out, sizes[k]);
        }
    }
    return out;
}

static void an_ffcv_file_becomes_a_set(void **state)
{
    (void)state;
    coffer__buffer beton = build_beton();
    temp_write(temp_path(temp_folder, "a.beton"), beton.data, beton.len);
    coffer__buffer_free(&beton);
    must_convert("a.beton", "a.mldf");
    open_set a = open_named("a.mldf");
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    int64_t label;
    double score;
    assert_int_equal(coffer_mldf_sample_count(a.set), 2);
    assert_int_equal(coffer_mldf_read(&bytes, &entry, a.set, 1, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_field_at(a.set, 0)->type, COFFER_MLDF_IMAGE_RAW);
    assert_memory_equal(bytes.data, "rgbRGB", 6);
    assert_int_equal(entry.width, 2);
    assert_int_equal(entry.height, 1);
    assert_int_equal(coffer_mldf_get_int(&label, a.set, 1, 1, NULL), COFFER_OK);
    assert_int_equal(label, 41);
    assert_int_equal(coffer_mldf_get_float(&score, a.set, 1, 2, NULL), COFFER_OK);
    assert_true(score == 1.25);
    assert_int_equal(coffer_mldf_read(&bytes, NULL, a.set, 0, 3, NULL), COFFER_OK);
    assert_int_equal(bytes.size, 7);
    assert_memory_equal(bytes.data, "{\"k\":1}", 7);
    assert_int_equal(coffer_mldf_get_array(&bytes, dims, a.set, 0, 4, NULL), COFFER_OK);
    assert_int_equal(dims[0], 2);
    assert_memory_equal(bytes.data, "\1\0\2\0", 4);
    coffer_free(bytes.data);
    close_set(&a);
}

static void ffcv_files_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
        coffer_status status;
    } cases[] = {
        { 8, UINT64_MAX, COFFER_E_OUT_OF_BOUNDS }, /* samples */
        { 8, 1000, COFFER_E_OUT_OF_BOUNDS },
        { 16, UINT64_MAX, COFFER_E_OUT_OF_BOUNDS },                          /* the table */
        { 24 + BETON_FIELDS * 1041 + 5, 1u << 30, COFFER_E_OUT_OF_BOUNDS },  /* a picture */
        { 24 + BETON_FIELDS * 1041 + 40, 1u << 30, COFFER_E_OUT_OF_BOUNDS }, /* JSON */
        { 24 + 4 * 1041 + 17, UINT64_MAX, COFFER_E_LIMIT },                  /* a shape */
        { 24 + 4 * 1041 + 17 + 256, 5000, COFFER_E_OUT_OF_BOUNDS },          /* a description */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer__buffer beton = build_beton();
        coffer__store_u64(beton.data + cases[i].at, cases[i].value);
        temp_write(temp_path(temp_folder, "bad.beton"), beton.data, beton.len);
        coffer__buffer_free(&beton);
        must_refuse("bad.beton", "bad.mldf", cases[i].status, "");
    }
}

static void samples_without_rows_are_not_written_for_ever(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = temp_read(COFFER_TEST_DATA "/vectors/mldf/empty.mldf", &size);
    coffer__store_u64(bytes + 9 + 8, UINT64_MAX);
    coffer__store_u16(bytes + 9 + 16, 0);
    temp_write(temp_path(temp_folder, "in.mldf"), bytes, size);
    free(bytes);
    must_refuse("in.mldf", "out.jsonl", COFFER_E_INCONSISTENT, "no bytes");
    must_refuse("in.mldf", "out.tar", COFFER_E_INCONSISTENT, "no bytes");
    must_refuse("in.mldf", "out.tfrecord", COFFER_E_INCONSISTENT, "no bytes");
}

static void parquet_is_known_and_refused(void **state)
{
    (void)state;
    make_set("a.mldf", 1);
    must_refuse("a.mldf", "a.parquet", COFFER_E_UNSUPPORTED, "pyarrow");
}

static void encrypted_sets_are_converted_with_their_key(void **state)
{
    (void)state;
    static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    coffer_error err = COFFER_ERROR_INIT;
    temp_write(temp_path(temp_folder, "key"), key, sizeof key - 1);
    char path[512];
    snprintf(path, sizeof path, "%s/key", temp_folder);
    coffer_setting with_key = { "key-file", path };
    make_set("a.mldf", 3);
    must_convert("a.mldf", "a.tar");
    check(convert("a.tar", "sealed.mldf", &with_key, 1, &err), &err);
    must_refuse("sealed.mldf", "open.tar", COFFER_E_KEY_NEEDED, "key");
    check(convert("sealed.mldf", "open.tar", &with_key, 1, &err), &err);
    must_convert("open.tar", "b.mldf");
    assert_same_sets("a.mldf", "b.mldf");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_tar_file_loses_nothing),
        TEST(json_lines_lose_nothing),
        TEST(a_webdataset_comes_back_member_by_member),
        TEST(numbers_and_arrays_become_numpy_and_come_back),
        TEST(tf_records_hold_numbers_texts_and_pictures),
        TEST(damaged_records_are_found_by_their_checksums),
        TEST(an_ffcv_file_becomes_a_set),
        TEST(ffcv_files_that_lie_are_refused),
        TEST(samples_without_rows_are_not_written_for_ever),
        TEST(parquet_is_known_and_refused),
        TEST(encrypted_sets_are_converted_with_their_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
