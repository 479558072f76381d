#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/utf8.h"
#include "coffer/coffer.h"

#include <errno.h>
#include <string.h>
#include <wchar.h>

static void failing_fills_the_error_and_gives_the_status_back(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__fail(&err, COFFER_E_TRUNCATED, 15, "header says %d records, file has %d", 300, 288);
    assert_int_equal(status, COFFER_E_TRUNCATED);
    assert_int_equal(err.status, COFFER_E_TRUNCATED);
    assert_int_equal(err.offset, 15);
    assert_string_equal(err.text, "header says 300 records, file has 288");
}

static void a_missing_error_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(coffer__fail(NULL, COFFER_E_BAD_VALUE, 0, "%s", "unheard"), COFFER_E_BAD_VALUE);
    assert_int_equal(coffer__fail_no_memory(NULL, 1), COFFER_E_NO_MEMORY);
    assert_int_equal(coffer__fail_prefix(NULL, COFFER_E_IO, "%s", "tensor"), COFFER_E_IO);
    assert_int_equal(coffer__fail_output(NULL, COFFER_E_IO), COFFER_E_IO);
    assert_int_equal(coffer__fail_other(NULL, COFFER_E_IO, "x"), COFFER_E_IO);
    assert_int_equal(coffer__fail_errno(NULL, "open", ENOENT), COFFER_E_IO);
}

static void a_text_that_just_fits_is_whole(void **state)
{
    (void)state;
    coffer_error err;
    char text[sizeof err.text];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    coffer__fail(&err, COFFER_E_IO, 0, "%s", text);
    assert_string_equal(err.text, text);
}

static void a_long_text_ends_in_an_ellipsis(void **state)
{
    (void)state;
    coffer_error err;
    char text[sizeof err.text + 1];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    coffer__fail(&err, COFFER_E_IO, 0, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 6, "xx…");
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = { "é", "€", "😀" };
    for (size_t which = 0; which < 3; which++) {
        for (size_t shift = 0; shift < 4; shift++) {
            coffer_error err;
            char text[600] = "abc";
            text[shift] = '\0';
            while (strlen(text) < 500)
                strcat(text, characters[which]);
            coffer__fail(&err, COFFER_E_IO, 0, "%s", text);
            size_t len = strlen(err.text);
            assert_true(coffer__utf8_valid(err.text, len));
            assert_true(len > sizeof err.text - 1 - 4);
            assert_string_equal(err.text + len - 3, "…");
            assert_memory_equal(err.text, text, len - 3);
            assert_null(strchr(err.text, '?'));
        }
    }
}

static void what_would_break_the_line_becomes_a_question_mark(void **state)
{
    (void)state;
    coffer_error err;
    coffer__fail(&err, COFFER_E_IO, 0, "a\nb\tc\x1b[31m\x7f \xff\xc3 \xc2\x9b é");
    assert_string_equal(err.text, "a?b?c?[31m? ?? ?? é");
}

static void what_cannot_be_formatted_leaves_its_format(void **state)
{
    (void)state;
    coffer_error err;
    coffer__fail(&err, COFFER_E_IO, 0, "no euro in the C locale: %lc", (wint_t)0x20AC);
    assert_string_equal(err.text, "no euro in the C locale: %lc");
}

static void words_can_be_put_before_an_error(void **state)
{
    (void)state;
    coffer_error err;
    coffer__fail(&err, COFFER_E_BAD_VALUE, 7, "dtype is 99");
    coffer__fail(&err, err.status, err.offset, "tensor \"wq\": %s", err.text);
    assert_string_equal(err.text, "tensor \"wq\": dtype is 99");
    assert_int_equal(err.offset, 7);
}

static void no_memory_says_how_much_was_wanted(void **state)
{
    (void)state;
    coffer_error err;
    assert_int_equal(coffer__fail_no_memory(&err, UINT64_MAX), COFFER_E_NO_MEMORY);
    assert_string_equal(err.text, "out of memory for 18446744073709551615 bytes");
    assert_true(err.offset == COFFER_OFFSET_NONE);
}

static void a_system_error_says_call_and_reason_and_keeps_the_number(void **state)
{
    (void)state;
    coffer_error err;
    assert_int_equal(coffer__fail_errno(&err, "cannot open", ENOENT), COFFER_E_IO);
    assert_string_equal(err.text, "cannot open: No such file or directory");
    assert_int_equal(err.system_error, ENOENT);
    assert_int_equal(err.subject, COFFER_SUBJECT_INPUT);
    /* The next failure does not inherit the number. */
    coffer__fail(&err, COFFER_E_BAD_VALUE, 0, "odd");
    assert_int_equal(err.system_error, 0);
}

static void words_before_a_failure_keep_its_number_and_subject(void **state)
{
    (void)state;
    coffer_error err;
    coffer__fail_output(&err, coffer__fail_errno(&err, "cannot write", ENOSPC));
    err.offset = 17;
    assert_int_equal(coffer__fail_prefix(&err, COFFER_E_IO, "tensor %d", 3), COFFER_E_IO);
    assert_string_equal(err.text, "tensor 3: cannot write: No space left on device");
    assert_int_equal(err.system_error, ENOSPC);
    assert_int_equal(err.subject, COFFER_SUBJECT_OUTPUT);
    assert_true(err.offset == 17);
    coffer_error copy;
    assert_int_equal(coffer__fail_copy(&copy, &err), COFFER_E_IO);
    assert_memory_equal(&copy, &err, sizeof err);
}

static void success_is_left_alone(void **state)
{
    (void)state;
    coffer_error err;
    coffer_error_init(&err);
    assert_int_equal(coffer__fail_prefix(&err, COFFER_OK, "%s", "words"), COFFER_OK);
    assert_int_equal(coffer__fail_output(&err, COFFER_OK), COFFER_OK);
    assert_int_equal(coffer__fail_other(&err, COFFER_OK, "shard"), COFFER_OK);
    assert_string_equal(err.text, "");
    assert_int_equal(err.subject, COFFER_SUBJECT_INPUT);
}

static void another_file_is_named_without_its_folder(void **state)
{
    (void)state;
    coffer_error err;
    coffer__fail_other(&err, coffer__fail_errno(&err, "cannot open", EACCES), "models/big/part-2.bin");
    assert_string_equal(err.text, "part-2.bin: cannot open: Permission denied");
    assert_int_equal(err.subject, COFFER_SUBJECT_OTHER);
    assert_int_equal(err.system_error, EACCES);
    /* It stays about the other file, whatever was being written. */
    coffer__fail_output(&err, err.status);
    assert_int_equal(err.subject, COFFER_SUBJECT_OTHER);
    coffer__fail(&err, COFFER_E_BAD_VALUE, 0, "odd");
    coffer__fail_other(&err, err.status, NULL);
    assert_string_equal(err.text, "odd");
    assert_int_equal(err.subject, COFFER_SUBJECT_INPUT);
}

static void a_long_name_loses_its_middle_and_not_the_reason(void **state)
{
    (void)state;
    coffer_error err;
    char name[601];
    for (size_t i = 0; i < 600; i += 2)
        memcpy(name + i, "\xc3\xa4", 2); /* two bytes a letter */
    memcpy(name, "begin", 5);
    name[5] = 'x';
    memcpy(name + 597, "end", 4);
    name[596] = 'x';
    coffer__fail_other(&err, coffer__fail_errno(&err, "cannot open", ENOENT), name);
    assert_int_equal(strncmp(err.text, "beginx\xc3\xa4", 8), 0);
    assert_non_null(strstr(err.text, "\xe2\x80\xa6\xc3\xa4"));
    assert_non_null(strstr(err.text, "xend: cannot open: No such file or directory"));
    assert_null(strchr(err.text, '?'));
    assert_true(strlen(err.text) < 140);
}

static void every_code_has_a_name_of_its_own(void **state)
{
    (void)state;
    const char *seen[64];
    size_t count = 0;
    for (int code = 0; code > -64; code--) {
        const char *name = coffer_status_name(code);
        bool is_code = code >= COFFER_E_UNDECODABLE || (code <= COFFER_E_IO && code >= COFFER_E_CHANGED);
        assert_int_equal(strcmp(name, "unknown") != 0, is_code);
        for (size_t i = 0; is_code && i < count; i++)
            assert_string_not_equal(name, seen[i]);
        if (is_code)
            seen[count++] = name;
    }
    assert_int_equal(count, 36);
    assert_string_equal(coffer_status_name(COFFER_E_BAD_CHECKSUM), "bad-checksum");
    assert_string_equal(coffer_status_name(COFFER_E_UNSAFE_PATH), "unsafe-path");
    assert_string_equal(coffer_status_name(COFFER_E_KEY_NEEDED), "key-needed");
    assert_string_equal(coffer_status_name(COFFER_E_AUTHENTICATION_FAILED), "authentication-failed");
    assert_string_equal(coffer_status_name(COFFER_E_UNDECODABLE), "undecodable");
    assert_string_equal(coffer_status_name(1), "unknown");
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(coffer_version(), COFFER_VERSION_STRING);
    assert_int_equal(coffer_version_number(), COFFER_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_fills_the_error_and_gives_the_status_back),
        cmocka_unit_test(a_missing_error_is_accepted),
        cmocka_unit_test(a_text_that_just_fits_is_whole),
        cmocka_unit_test(a_long_text_ends_in_an_ellipsis),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(what_would_break_the_line_becomes_a_question_mark),
        cmocka_unit_test(what_cannot_be_formatted_leaves_its_format),
        cmocka_unit_test(words_can_be_put_before_an_error),
        cmocka_unit_test(no_memory_says_how_much_was_wanted),
        cmocka_unit_test(a_system_error_says_call_and_reason_and_keeps_the_number),
        cmocka_unit_test(words_before_a_failure_keep_its_number_and_subject),
        cmocka_unit_test(success_is_left_alone),
        cmocka_unit_test(another_file_is_named_without_its_folder),
        cmocka_unit_test(a_long_name_loses_its_middle_and_not_the_reason),
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
