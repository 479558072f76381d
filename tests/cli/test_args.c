/* The parser against a small table of its own, and the real tables against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "args.h"
#include "convert/convert.h"
#include "verbs.h"

#include <string.h>

static const cli_old_spelling by_old[] = {
    { "--group", NULL },
    { "-g", NULL },
    { "layer", "block" },
    { 0 },
};

static const cli_option options[] = {
    { "by", 0, "WHAT", "param|block|token", "group", "param", by_old },
    { "output", 'o', "OUT", NULL, "result" },
    { "top", 0, "K", NULL, "how many" },
    { "tokens", 0, "A..B", NULL, "which" },
    { "json", 'j', NULL, NULL, "JSON" },
    { "jolly", 0, NULL, NULL, "begins like json" },
    { 0 },
};

static int do_nothing(const cli_args *args)
{
    (void)args;
    return CLI_OK;
}

static const cli_verb verb = {
    .name = "try",
    .usage = "FILE",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = do_nothing,
};

static int parse(cli_args *args, const char *line)
{
    static char text[256];
    char *words[32];
    int count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    return cli_parse(args, &verb, count, words);
}

static void assert_parses(cli_args *args, const char *line)
{
    assert_int_equal(parse(args, line), CLI_OK);
}

static void assert_refused(const char *line)
{
    cli_args args;
    assert_int_equal(parse(&args, line), CLI_USAGE);
    cli_args_free(&args);
}

static void options_may_be_anywhere(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "--json a.mscan -o out --by=block b.mscan");
    assert_int_equal(cli_operand_count(&args), 2);
    assert_string_equal(cli_operand(&args, 0), "a.mscan");
    assert_string_equal(cli_operand(&args, 1), "b.mscan");
    assert_null(cli_operand(&args, 2));
    assert_true(cli_has(&args, "json"));
    assert_false(cli_has(&args, "top"));
    assert_string_equal(cli_value(&args, "output"), "out");
    assert_int_equal(cli_choice(&args, "by", 0), 1);
    cli_args_free(&args);
}

static void a_value_may_stick_to_its_letter_and_letters_to_each_other(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "-jqoout x");
    assert_true(cli_has(&args, "json"));
    assert_true(cli_has(&args, "quiet"));
    assert_string_equal(cli_value(&args, "output"), "out");
    cli_args_free(&args);
}

static void a_long_bundle_of_letters_has_room(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "-jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj");
    assert_int_equal(args.given_count, 53);
    cli_args_free(&args);
}

static void an_abbreviation_works_as_long_as_it_is_clear(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "--out=x --js a");
    assert_string_equal(cli_value(&args, "output"), "x");
    assert_true(cli_has(&args, "json"));
    cli_args_free(&args);
    assert_refused("--j a");
    assert_refused("--to 3");
}

static void a_dash_and_a_negative_number_are_operands(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "- -5");
    assert_int_equal(cli_operand_count(&args), 2);
    cli_args_free(&args);
}

static void after_two_dashes_everything_is_an_operand(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "-- --json -o");
    assert_int_equal(cli_operand_count(&args), 2);
    assert_false(cli_has(&args, "json"));
    cli_args_free(&args);
}

static void a_choice_may_be_in_capitals(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "a --by BLOCK");
    assert_string_equal(cli_value(&args, "by"), "block");
    assert_int_equal(cli_choice(&args, "by", 0), 1);
    cli_args_free(&args);
}

static void old_spellings_mean_the_new_ones(void **state)
{
    (void)state;
    static const char *const lines[] = { "a --group layer -q", "a --group=BLOCK -q", "a -g layer -q",
                                         "a -glayer -q", "a --by Layer -q" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cli_args args;
        assert_parses(&args, lines[i]);
        assert_false(cli_has(&args, "group"));
        assert_string_equal(cli_value(&args, "by"), "block");
        cli_args_free(&args);
    }
    assert_refused("a --group layers");
    assert_refused("a --gro layer");
}

static void what_the_table_does_not_have_is_refused(void **state)
{
    (void)state;
    assert_refused("--jason a");
    assert_refused("-z a");
    assert_refused("--=x");
    assert_refused("--json=1");
    assert_refused("--top");
    assert_refused("-o");
    assert_refused("--by sequence");
    assert_refused("--by par");
    assert_refused("--by=");
}

static void of_an_option_given_twice_the_last_counts(void **state)
{
    (void)state;
    cli_args args;
    assert_parses(&args, "--top 1 --json --top 2");
    assert_string_equal(cli_value(&args, "top"), "2");
    cli_args_free(&args);
}

static bool number_of(uint64_t *out, const char *line)
{
    cli_args args;
    assert_parses(&args, line);
    bool good = cli_number(out, &args, "top", 7, 1, 100);
    cli_args_free(&args);
    return good;
}

static void a_number_is_whole_and_within_its_bounds(void **state)
{
    (void)state;
    uint64_t value = 0;
    assert_true(number_of(&value, ""));
    assert_int_equal(value, 7);
    assert_true(number_of(&value, "--top 100"));
    assert_int_equal(value, 100);
    assert_false(number_of(&value, "--top 101"));
    assert_false(number_of(&value, "--top 0"));
    assert_false(number_of(&value, "--top -1"));
    assert_false(number_of(&value, "--top +5"));
    assert_false(number_of(&value, "--top 5x"));
    assert_false(number_of(&value, "--top="));
    assert_false(number_of(&value, "--top 18446744073709551617"));
    assert_int_equal(value, 100);
}

static bool range_of(uint64_t *begin, uint64_t *end, const char *line)
{
    cli_args args;
    assert_parses(&args, line);
    bool good = cli_range(begin, end, &args, "tokens");
    cli_args_free(&args);
    return good;
}

static void a_range_may_leave_out_either_end(void **state)
{
    (void)state;
    uint64_t begin = 1, end = 2;
    assert_true(range_of(&begin, &end, ""));
    assert_true(begin == 1 && end == 2);
    assert_true(range_of(&begin, &end, "--tokens 10..20"));
    assert_true(begin == 10 && end == 20);
    assert_true(range_of(&begin, &end, "--tokens 10.."));
    assert_true(begin == 10 && end == UINT64_MAX);
    assert_true(range_of(&begin, &end, "--tokens ..20"));
    assert_true(begin == 0 && end == 20);
    assert_true(range_of(&begin, &end, "--tokens 4"));
    assert_true(begin == 4 && end == 5);
    assert_true(range_of(&begin, &end, "--tokens 4..4"));
    assert_true(begin == 4 && end == 4);
}

static void words_come_in_the_order_of_the_command_line(void **state)
{
    static const struct {
        const char *option, *value;
    } expected[] = { { "top", "3" },    { NULL, "a" },   { "json", NULL }, { "output", "x" },
                     { "jolly", NULL }, { NULL, "b=1" }, { "json", NULL } };
    cli_args args;
    cli_place place = { 0, 0 };
    cli_word word;
    (void)state;
    assert_parses(&args, "--top 3 a -jo x --jolly b=1 --json");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(cli_next_word(&word, &place, &args));
        if (expected[i].option)
            assert_string_equal(word.option, expected[i].option);
        else
            assert_null(word.option);
        if (expected[i].value)
            assert_string_equal(word.value, expected[i].value);
        else
            assert_null(word.value);
    }
    assert_false(cli_next_word(&word, &place, &args));
    cli_args_free(&args);
}

static void a_range_that_makes_no_sense_is_refused_and_moves_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = { "--tokens 20..10",
                                         "--tokens 1.2",
                                         "--tokens 1...2",
                                         "--tokens a..b",
                                         "--tokens 1..2x",
                                         "--tokens=",
                                         "--tokens 18446744073709551615",
                                         "--tokens 1-2",
                                         "--tokens 1..-2" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        uint64_t begin = 1, end = 2;
        assert_false(range_of(&begin, &end, lines[i]));
        assert_true(begin == 1 && end == 2);
    }
}

static void a_real_number_is_finite(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool good;
    } cases[] = { { "--top 0.5", true },  { "--top -1e-3", true }, { "--top 1.5x", false },
                  { "--top nan", false }, { "--top inf", false },  { "--top=", false } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cli_args args;
        double value = 0;
        assert_parses(&args, cases[i].line);
        assert_int_equal(cli_real(&value, &args, "top", 0.0), cases[i].good);
        cli_args_free(&args);
    }
}

static void the_distance_counts_changes_and_swaps(void **state)
{
    (void)state;
    assert_int_equal(cli_distance("check", "check"), 0);
    assert_int_equal(cli_distance("chekc", "check"), 1);
    assert_int_equal(cli_distance("chck", "check"), 1);
    assert_int_equal(cli_distance("", "abc"), 3);
    assert_int_equal(cli_distance("stats", "replay"), 6);
    char long_word[100];
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_true(cli_distance(long_word, "a") == SIZE_MAX);
    assert_false(cli_is_near(long_word, SIZE_MAX));
}

/* The parser must know whether a value follows before it knows the format. */
static void an_option_has_the_same_form_in_every_format(void **state)
{
    (void)state;
    for (size_t v = 0; cli_verbs[v]; v++) {
        cli_tables tables;
        cli_tables_of(&tables, cli_verbs[v], NULL);
        for (size_t t = 0; t < tables.count; t++)
            for (const cli_option *option = tables.at[t]; option->name; option++) {
                const cli_option *first = cli_tables_find(&tables, option->name, strlen(option->name));
                assert_int_equal(first->argument != NULL, option->argument != NULL);
                assert_int_equal(first->letter, option->letter);
                assert_true(option->help && *option->help);
                assert_true(option->argument || !option->choices);
                assert_true(option->letter != 'n' || option->argument);
                /* A default is in `initial`, from which the help takes it. */
                assert_true(cli_verbs[v]->make_options || !strstr(option->help, "(default"));
            }
    }
}

/* "mcf, gguf" */
static bool names_known_kinds(const char *kinds)
{
    char name[32];
    int len;
    for (; sscanf(kinds, "%31[^,]%n", name, &len) == 1; kinds += strspn(kinds, ", ")) {
        if (!coffer__kind_find(name))
            return false;
        kinds += len;
    }
    return true;
}

static void every_verb_has_what_the_help_needs(void **state)
{
    (void)state;
    for (size_t v = 0; cli_verbs[v]; v++) {
        assert_true(cli_verbs[v]->usage && cli_verbs[v]->summary && cli_verbs[v]->description);
        assert_true(cli_verbs[v]->min_operands <= cli_verbs[v]->max_operands);
        assert_ptr_equal(cli_find_verb(cli_verbs[v]->name), cli_verbs[v]);
    }
    for (size_t i = 0; cli_format_verbs[i]; i++) {
        const cli_verb *owner = cli_find_verb(cli_format_verbs[i]->verb);
        assert_non_null(owner);
        assert_true(owner->min_operands > 0);
        assert_true(owner->run == NULL || owner == &cli_verb_diff); /* which looks for its rows itself */
        assert_true(names_known_kinds(cli_format_verbs[i]->format));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_be_anywhere),
        cmocka_unit_test(a_value_may_stick_to_its_letter_and_letters_to_each_other),
        cmocka_unit_test(a_long_bundle_of_letters_has_room),
        cmocka_unit_test(an_abbreviation_works_as_long_as_it_is_clear),
        cmocka_unit_test(a_dash_and_a_negative_number_are_operands),
        cmocka_unit_test(after_two_dashes_everything_is_an_operand),
        cmocka_unit_test(a_choice_may_be_in_capitals),
        cmocka_unit_test(old_spellings_mean_the_new_ones),
        cmocka_unit_test(what_the_table_does_not_have_is_refused),
        cmocka_unit_test(of_an_option_given_twice_the_last_counts),
        cmocka_unit_test(a_number_is_whole_and_within_its_bounds),
        cmocka_unit_test(a_range_may_leave_out_either_end),
        cmocka_unit_test(words_come_in_the_order_of_the_command_line),
        cmocka_unit_test(a_range_that_makes_no_sense_is_refused_and_moves_nothing),
        cmocka_unit_test(a_real_number_is_finite),
        cmocka_unit_test(the_distance_counts_changes_and_swaps),
        cmocka_unit_test(an_option_has_the_same_form_in_every_format),
        cmocka_unit_test(every_verb_has_what_the_help_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
