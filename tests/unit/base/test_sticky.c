#include "base/fail.h"

#include "support/temp.h"

static void the_first_failure_is_repeated(void **state)
{
    coffer__sticky sticky = COFFER__STICKY_INIT;
    coffer_error failure = COFFER_ERROR_INIT, err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer__sticky_check(&sticky, &err), COFFER_OK);
    assert_int_equal(coffer__sticky_keep(&sticky, COFFER_OK, &failure, &err), COFFER_OK);
    assert_int_equal(coffer__sticky_check(&sticky, &err), COFFER_OK);

    coffer_status status = coffer__fail(&failure, COFFER_E_IO, 12, "disk full");
    assert_int_equal(coffer__sticky_keep(&sticky, status, &failure, NULL), COFFER_E_IO);
    status = coffer__fail(&failure, COFFER_E_BAD_VALUE, 13, "second");
    assert_int_equal(coffer__sticky_keep(&sticky, status, &failure, &err), COFFER_E_IO);
    assert_string_equal(err.text, "disk full");

    err = (coffer_error)COFFER_ERROR_INIT;
    assert_int_equal(coffer__sticky_check(&sticky, &err), COFFER_E_IO);
    assert_int_equal(err.offset, 12);
    assert_string_equal(err.text, "disk full");
    assert_int_equal(coffer__sticky_check(&sticky, NULL), COFFER_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_failure_is_repeated) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
