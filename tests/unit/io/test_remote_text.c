/* Addresses, headers and signatures: the text around remote files. */
#include "base/buffer.h"
#include "base/memory.h"
#include "coffer/source.h"
#include "io/remote/address.h"
#include "io/remote/http_answer.h"
#include "io/remote/md5.h"
#include "io/remote/s3_xml.h"
#include "io/remote/sigv4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- URLs ---- */

static void a_url_is_taken_apart(void **state)
{
    coffer__url url;
    (void)state;
    assert_int_equal(coffer__url_parse(&url, "HTTPS://me:p%40ss@Host.Example:8443/a%20b/c.mcf?x=1&y#part",
                                       NULL),
                     COFFER_OK);
    assert_string_equal(url.scheme, "https");
    assert_string_equal(url.user, "me:p@ss");
    assert_string_equal(url.host, "host.example");
    assert_int_equal(url.port, 8443);
    assert_string_equal(url.path, "/a%20b/c.mcf");
    assert_string_equal(url.query, "x=1&y");
    char *shown = coffer__url_without_secrets(&url);
    assert_string_equal(shown, "https://host.example:8443/a%20b/c.mcf");
    coffer__free(shown);
    coffer__url_free(&url);
    assert_int_equal(coffer__url_parse(&url, "http://[::1]:80", NULL), COFFER_OK);
    assert_string_equal(url.host, "[::1]");
    assert_string_equal(url.path, "/");
    coffer__url_free(&url);
}

static void what_is_not_a_url_is_refused(void **state)
{
    static const char *const wrong[] = { "",
                                         "http:/x",
                                         "http://",
                                         "http:///x",
                                         "://x",
                                         "http://x:70000/y",
                                         "http://x:7z/",
                                         "http://a b/",
                                         "http://a\n/",
                                         "http://a/\x01" };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        coffer__url url;
        assert_int_equal(coffer__url_parse(&url, wrong[i], NULL), COFFER_E_INVALID_ARGUMENT);
    }
}

static void a_redirect_is_relative_to_where_it_came_from(void **state)
{
    static const char *const cases[][2] = {
        { "http://other/x", "http://other/x" },
        { "//other:81/x?y", "http://other:81/x?y" },
        { "/root", "http://host:8080/root" },
        { "beside?q", "http://host:8080/a/beside?q" },
    };
    coffer__url base;
    (void)state;
    assert_int_equal(coffer__url_parse(&base, "http://host:8080/a/b?c", NULL), COFFER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        coffer__url url;
        assert_int_equal(coffer__url_resolve(&url, &base, cases[i][0], NULL), COFFER_OK);
        char *text = coffer__url_text(&url);
        assert_string_equal(text, cases[i][1]);
        coffer__free(text);
        coffer__url_free(&url);
    }
    coffer__url_free(&base);
}

static void passwords_and_signatures_get_a_name(void **state)
{
    char *first, *second, *again, *plain;
    (void)state;
    assert_int_equal(coffer_remote_name(&first, "https://u:secret@h/f.mcf?X-Amz-Signature=abc", NULL),
                     COFFER_OK);
    assert_int_equal(coffer_remote_name(&second, "https://h/f.mcf?X-Amz-Signature=other", NULL), COFFER_OK);
    assert_int_equal(coffer_remote_name(&again, "https://u:secret@h/f.mcf?X-Amz-Signature=abc", NULL),
                     COFFER_OK);
    assert_int_equal(coffer_remote_name(&plain, "https://h/f.mcf", NULL), COFFER_OK);
    assert_string_equal(first, "https://h/f.mcf?…");
    assert_string_equal(second, "https://h/f.mcf?…2");
    assert_string_equal(again, first);
    assert_string_equal(plain, "https://h/f.mcf");
    coffer_free(first);
    coffer_free(second);
    coffer_free(again);
    coffer_free(plain);
}

/* ---- Answers ---- */

static coffer__http_answer answer_of(const char *const *lines)
{
    coffer__http_answer answer = { 0 };
    for (; *lines; lines++)
        assert_true(coffer__http_answer_line(&answer, *lines, strlen(*lines)));
    return answer;
}

static void an_answer_says_range_size_and_validators(void **state)
{
    static const char *const lines[] = { "HTTP/1.1 100 Continue\r\n",
                                         "\r\n",
                                         "HTTP/1.1 206 Partial Content\r\n",
                                         "content-range: bytes 5-9/100\r\n",
                                         "Content-Length: 5\r\n",
                                         "ETag: \"abc\"\r\n",
                                         "Last-Modified: Fri, 24 May 2013 00:00:00 GMT\r\n",
                                         "Retry-After: 7\r\n",
                                         NULL };
    (void)state;
    coffer__http_answer answer = answer_of(lines);
    assert_int_equal(answer.status, 206);
    assert_true(answer.has_range && answer.has_total && answer.has_length && !answer.malformed);
    assert_int_equal(answer.first, 5);
    assert_int_equal(answer.last, 9);
    assert_int_equal(answer.total, 100);
    assert_string_equal(answer.etag, "\"abc\"");
    assert_true(coffer__http_answer_has_strong_etag(&answer));
    assert_int_equal(answer.retry_after, 7);
}

static void ranges_that_make_no_sense_are_marked(void **state)
{
    static const char *const wrong[] = {
        "bytes 9-5/100",
        "bytes 0-100/100",
        "bytes 0-9/x",
        "bytes -/10",
        "lines 0-9/10",
        "bytes 0-9/10junk",
        "bytes 0-9",
        "bytes 0-99999999999999999999/100",
        "",
        "bytes",
        "bytes 0-9/10/10",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[100] = "Content-Range: ";
        strcat(line, wrong[i]);
        const char *const lines[] = { "HTTP/1.1 206 x", line, NULL };
        assert_true(answer_of(lines).malformed);
    }
    const char *const empty[] = { "HTTP/1.1 416 x", "Content-Range: bytes */0", NULL };
    coffer__http_answer answer = answer_of(empty);
    assert_true(!answer.malformed && answer.has_total && !answer.has_range);
}

static void a_header_without_end_is_refused(void **state)
{
    coffer__http_answer answer = { 0 };
    char line[1000];
    size_t taken = 0;
    (void)state;
    memset(line, 'x', sizeof line);
    while (coffer__http_answer_line(&answer, line, sizeof line))
        assert_true(++taken < 100);
    assert_int_equal(taken, COFFER__HTTP_MAX_HEADER / sizeof line);
}

/* ---- Signatures: the examples in Amazon's documentation of S3 ---- */

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void expect_signature(coffer__sigv4_request request, const char *signature)
{
    char *value = NULL;
    request.date = "20130524T000000Z";
    request.region = "us-east-1";
    request.service = "s3";
    request.key_id = "AKIAIOSFODNN7EXAMPLE";
    request.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    assert_int_equal(coffer__sigv4_sign(&value, &request, NULL), COFFER_OK);
    const char *found = strstr(value, "Signature=");
    assert_non_null(found);
    assert_string_equal(found + strlen("Signature="), signature);
    coffer__free(value);
}

static void signatures_are_those_of_the_published_examples(void **state)
{
    const coffer__sigv4_header host = { "host", "examplebucket.s3.amazonaws.com" };
    const coffer__sigv4_header date = { "x-amz-date", "20130524T000000Z" };
    const coffer__sigv4_header empty = { "x-amz-content-sha256", EMPTY };
    static const char put_hash[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const coffer__sigv4_header get[] = { host, { "range", "bytes=0-9" }, empty, date };
    const coffer__sigv4_header put[] = { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
                                         host,
                                         { "x-amz-content-sha256", put_hash },
                                         date,
                                         { "x-amz-storage-class", "REDUCED_REDUNDANCY" } };
    const coffer__sigv4_header plain[] = { host, empty, date };
    (void)state;
    expect_signature(
        (coffer__sigv4_request){
            .method = "GET", .path = "/test.txt", .headers = get, .header_count = 4, .payload_hash = EMPTY },
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    expect_signature((coffer__sigv4_request){ .method = "PUT",
                                              .path = "/test%24file.text",
                                              .headers = put,
                                              .header_count = 5,
                                              .payload_hash = put_hash },
                     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    expect_signature((coffer__sigv4_request){ .method = "GET",
                                              .path = "/",
                                              .query = "lifecycle",
                                              .headers = plain,
                                              .header_count = 3,
                                              .payload_hash = EMPTY },
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    expect_signature((coffer__sigv4_request){ .method = "GET",
                                              .path = "/",
                                              .query = "prefix=J&max-keys=2",
                                              .headers = plain,
                                              .header_count = 3,
                                              .payload_hash = EMPTY },
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* ---- Where s3 and hf lead ---- */

static void expect_address(const char *text, const char *url)
{
    coffer__remote_address address;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer__remote_address_parse(&address, text, &err), COFFER_OK);
    char *found = coffer__url_text(&address.url);
    assert_string_equal(found, url);
    coffer__free(found);
    coffer__remote_address_free(&address);
}

static void keys_are_escaped_once_whatever_they_contain(void **state)
{
    (void)state;
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    unsetenv("AWS_ENDPOINT_URL");
    setenv("AWS_REGION", "eu-west-3", 1);
    expect_address("s3://models/a b+c@(1)=ä?%20#.mcf",
                   "https://models.s3.eu-west-3.amazonaws.com/a%20b%2Bc%40%281%29%3D%C3%A4%3F%2520%23.mcf");
    expect_address("s3://with.dots/k", "https://s3.eu-west-3.amazonaws.com/with.dots/k");
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000", 1);
    expect_address("s3://models/dir/k", "http://127.0.0.1:9000/models/dir/k");
    setenv("AWS_VIRTUAL_HOSTING", "yes", 1);
    expect_address("s3://models/dir/k", "http://models.127.0.0.1:9000/dir/k");
    unsetenv("AWS_VIRTUAL_HOSTING");
    unsetenv("AWS_ENDPOINT_URL");
}

static void the_hub_has_models_datasets_and_revisions(void **state)
{
    (void)state;
    setenv("HF_TOKEN", "hf_x", 1);
    unsetenv("HF_ENDPOINT");
    expect_address("hf://org/model/dir/f.mcf", "https://huggingface.co/org/model/resolve/main/dir/f.mcf");
    expect_address("hf://datasets/org/set@v1/f.mldf",
                   "https://huggingface.co/datasets/org/set/resolve/v1/f.mldf");
    coffer__remote_address address;
    assert_int_equal(coffer__remote_address_parse(&address, "hf://org/model", NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer__remote_address_parse(&address, "s3://bucket", NULL), COFFER_E_INVALID_ARGUMENT);
}

/* ---- Uploads ---- */

static void md5_gives_the_sums_of_the_standard(void **state)
{
    static const char *const texts[] = {
        "", "abc", "message digest", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        ("1234567890123456789012345678901234567890123456789012345678901234567890"
         "1234567890")
    };
    static const char *const sums[] = { "d41d8cd98f00b204e9800998ecf8427e",
                                        "900150983cd24fb0d6963f7d28e17f72",
                                        "f96b697d7cb7938d525a2f31aaf161d0",
                                        "d174ab98d277d9f5a5611c2c9f419d9f",
                                        "57edf4a22be3c955ac49da2e2107b67a" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint8_t sum[COFFER__MD5_SIZE];
        char hex[2 * COFFER__MD5_SIZE + 1];
        coffer__md5(sum, texts[i], strlen(texts[i]));
        for (size_t j = 0; j < sizeof sum; j++)
            snprintf(hex + 2 * j, 3, "%02x", sum[j]);
        assert_string_equal(hex, sums[i]);
    }
}

static void answers_of_s3_are_taken_apart(void **state)
{
    static const char text[] =
        "<L><IsTruncated>true</IsTruncated><Part><PartNumber>7</PartNumber><ETag>&quot;a&amp;b"
        "&quot;</ETag></Part><Part><PartNumber>x</PartNumber><ETag>\n</ETag></Part><Part>";
    coffer__xml_part list = { text, sizeof text - 1 }, entry;
    char etag[16];
    uint64_t number = 0;
    (void)state;
    assert_true(coffer__xml_is_true(list, "IsTruncated"));
    assert_true(coffer__xml_next(&entry, &list, "Part"));
    assert_true(coffer__xml_number(&number, entry, "PartNumber"));
    assert_int_equal(number, 7);
    assert_true(coffer__xml_text(etag, sizeof etag, entry, "ETag"));
    assert_string_equal(etag, "\"a&b\"");
    assert_false(coffer__xml_text(etag, 4, entry, "ETag"));
    assert_true(coffer__xml_next(&entry, &list, "Part"));
    assert_false(coffer__xml_number(&number, entry, "PartNumber"));
    assert_false(coffer__xml_text(etag, sizeof etag, entry, "ETag"));
    assert_false(coffer__xml_next(&entry, &list, "Part"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_taken_apart),
        cmocka_unit_test(what_is_not_a_url_is_refused),
        cmocka_unit_test(a_redirect_is_relative_to_where_it_came_from),
        cmocka_unit_test(passwords_and_signatures_get_a_name),
        cmocka_unit_test(an_answer_says_range_size_and_validators),
        cmocka_unit_test(ranges_that_make_no_sense_are_marked),
        cmocka_unit_test(a_header_without_end_is_refused),
        cmocka_unit_test(signatures_are_those_of_the_published_examples),
        cmocka_unit_test(keys_are_escaped_once_whatever_they_contain),
        cmocka_unit_test(the_hub_has_models_datasets_and_revisions),
        cmocka_unit_test(md5_gives_the_sums_of_the_standard),
        cmocka_unit_test(answers_of_s3_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
