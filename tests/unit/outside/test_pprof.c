#include "outside/archives/unpack.h"
#include "outside/profiles/pprof.h"
#include "support/profile.h"

#include <stdlib.h>
#include <string.h>

/* Strings of the profiles below, by number. */
static const char *const strings[] = { "",           "inuse_objects", "count",     "inuse_space",
                                       "bytes",      "main",          "work",      "a.go",
                                       "cpu",        "nanoseconds",   "/lib/x.so", "alloc_objects",
                                       "alloc_space" };

typedef struct builder {
    coffer__buffer out, message, inner;
} builder;

static void put_message(builder *to, uint32_t number)
{
    coffer__protobuf_put_bytes(&to->out, number, to->message.data, to->message.len);
    to->message.len = 0;
}

static void put_type(builder *to, uint64_t type, uint64_t unit)
{
    coffer__protobuf_put_u64(&to->message, 1, type);
    coffer__protobuf_put_u64(&to->message, 2, unit);
    put_message(to, COFFER__PPROF_SAMPLE_TYPE);
}

static void put_function(builder *to, uint64_t id, uint64_t name)
{
    coffer__protobuf_put_u64(&to->message, 1, id);
    coffer__protobuf_put_u64(&to->message, 2, name);
    coffer__protobuf_put_u64(&to->message, 4, 7);
    put_message(to, COFFER__PPROF_FUNCTION);
}

static void put_location(builder *to, uint64_t id, uint64_t function, uint64_t mapping)
{
    coffer__protobuf_put_u64(&to->message, 1, id);
    if (mapping)
        coffer__protobuf_put_u64(&to->message, 2, mapping);
    coffer__protobuf_put_u64(&to->message, 3, 0x1000 + id);
    if (function) {
        to->inner.len = 0;
        coffer__protobuf_put_u64(&to->inner, 1, function);
        coffer__protobuf_put_u64(&to->inner, 2, 10 * function);
        coffer__protobuf_put_bytes(&to->message, 4, to->inner.data, to->inner.len);
    }
    put_message(to, COFFER__PPROF_LOCATION);
}

/* packed : numbers as newer writers put them, else one field for each. */
static void put_sample(builder *to, const uint64_t *locations, size_t depth, const uint64_t *values,
                       size_t count, bool packed)
{
    const uint64_t *lists[] = { locations, values };
    const size_t counts[] = { depth, count };
    for (uint32_t field = 0; field < 2; field++) {
        to->inner.len = 0;
        for (size_t i = 0; i < counts[field]; i++) {
            if (packed)
                coffer__protobuf_put_varint(&to->inner, lists[field][i]);
            else
                coffer__protobuf_put_u64(&to->message, field + 1, lists[field][i]);
        }
        if (packed)
            coffer__protobuf_put_bytes(&to->message, field + 1, to->inner.data, to->inner.len);
    }
    put_message(to, COFFER__PPROF_SAMPLE);
}

static void put_strings(builder *to)
{
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        coffer__protobuf_put_bytes(&to->out, COFFER__PPROF_STRING, strings[i], strlen(strings[i]));
}

static void put_tables(builder *to)
{
    put_type(to, 1, 2);
    put_type(to, 3, 4);
    put_function(to, 1, 5);
    put_function(to, 9, 6);
    put_location(to, 1, 1, 0);
    put_location(to, 77, 9, 0);
    coffer__protobuf_put_u64(&to->message, 1, 3);
    coffer__protobuf_put_u64(&to->message, 5, 10);
    put_message(to, COFFER__PPROF_MAPPING);
    put_location(to, 5, 0, 3);
}

static void dispose(builder *of)
{
    coffer__buffer_free(&of->out);
    coffer__buffer_free(&of->message);
    coffer__buffer_free(&of->inner);
}

#define NEW_BUILDER                                                   \
    {                                                                 \
        COFFER__BUFFER_INIT, COFFER__BUFFER_INIT, COFFER__BUFFER_INIT \
    }
#define LIST(...) ((const uint64_t[]){ __VA_ARGS__ })

static void samples_are_read_packed_or_not(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        builder made = NEW_BUILDER;
        put_tables(&made);
        put_sample(&made, LIST(77, 1), 2, LIST(2, 300), 2, packed);
        put_sample(&made, LIST(5, 1), 2, LIST(1, 40), 2, packed);
        put_strings(&made);
        temp_write(temp_path(temp_folder, "a.pprof"), made.out.data, made.out.len);
        profile_must("a.pprof", "a.mlyze", NULL);
        profile_expect("a.mlyze", 3, 340, 340, 340);
        assert_int_equal(profile_bytes("a.mlyze", "main;work", "leaks"), 300);
        assert_int_equal(profile_bytes("a.mlyze", "main;/lib/x.so+0x1005", "leaks"), 40);
        dispose(&made);
    }
}

static void refuse(builder *made, coffer_status status, const char *part)
{
    profile_refuses("b.pprof", made->out.data, made->out.len, status, part);
    dispose(made);
}

static void references_that_lead_nowhere_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t location, function, mapping;
        const char *part;
    } cases[] = { { 6, 1, 0, "a sample at location 6" },
                  { 50, 2, 0, "a line of function 2" },
                  { 50, 0, 4, "a location in mapping 4" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder made = NEW_BUILDER;
        put_tables(&made);
        put_location(&made, 50, cases[i].function, cases[i].mapping);
        put_sample(&made, LIST(cases[i].location), 1, LIST(1, 1), 2, true);
        put_strings(&made);
        refuse(&made, COFFER_E_DANGLING_REFERENCE, cases[i].part);
    }
    builder names = NEW_BUILDER;
    put_tables(&names);
    put_function(&names, 20, 1000);
    put_strings(&names);
    refuse(&names, COFFER_E_DANGLING_REFERENCE, "string 1000");
}

static void ids_are_unique_and_not_0(void **state)
{
    (void)state;
    builder twice = NEW_BUILDER, zero = NEW_BUILDER;
    put_tables(&twice);
    put_location(&twice, 77, 1, 0);
    put_strings(&twice);
    refuse(&twice, COFFER_E_DUPLICATE, "two locations have the id 77");
    put_tables(&zero);
    put_function(&zero, 0, 5);
    put_strings(&zero);
    refuse(&zero, COFFER_E_BAD_VALUE, "a function has the id 0");
}

static void values_are_as_many_as_their_types_and_not_negative(void **state)
{
    (void)state;
    builder few = NEW_BUILDER, negative = NEW_BUILDER, no_strings = NEW_BUILDER;
    put_tables(&few);
    put_sample(&few, LIST(1), 1, LIST(1), 1, true);
    put_strings(&few);
    refuse(&few, COFFER_E_SIZE_MISMATCH, "1 values, the profile 2");
    put_tables(&negative);
    put_sample(&negative, LIST(1), 1, LIST(1, (uint64_t)-5), 2, true);
    put_strings(&negative);
    refuse(&negative, COFFER_E_BAD_VALUE, "-5");
    put_tables(&no_strings);
    refuse(&no_strings, COFFER_E_BAD_VALUE, "the first of the 0 strings");
}

static void profiles_of_time_are_refused(void **state)
{
    (void)state;
    builder made = NEW_BUILDER;
    put_type(&made, 8, 9);
    put_strings(&made);
    refuse(&made, COFFER_E_UNSUPPORTED, "not a heap profile");
}

static void a_message_cut_at_any_byte_is_refused_or_read(void **state)
{
    (void)state;
    builder made = NEW_BUILDER;
    coffer_limits limits = COFFER_LIMITS_INIT;
    put_tables(&made);
    put_sample(&made, LIST(77, 1), 2, LIST(2, 300), 2, true);
    put_strings(&made);
    for (size_t len = 0; len < made.out.len; len++) {
        coffer__pprof profile;
        coffer_error err = COFFER_ERROR_INIT;
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, made.out.data, len);
        if (coffer__pprof_read(&profile, copy, len, &limits, &err) == COFFER_OK)
            coffer__pprof_free(&profile);
        else
            assert_true(err.text[0] != 0);
        free(copy);
    }
    dispose(&made);
}

static void frames_shared_by_many_samples_are_bounded(void **state)
{
    builder made = NEW_BUILDER;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    put_tables(&made);
    coffer__protobuf_put_u64(&made.message, 1, 60);
    for (int i = 0; i < 1000; i++)
        coffer__protobuf_put_bytes(&made.message, 4, "\x08\x01", 2);
    put_message(&made, COFFER__PPROF_LOCATION);
    for (int i = 0; i < 1000; i++)
        put_sample(&made, LIST(60, 60, 60, 60), 4, LIST(1, 1), 2, true);
    put_strings(&made);
    temp_write(temp_path(temp_folder, "wide.pprof"), made.out.data, made.out.len);
    limits.entries = 10000;
    assert_int_equal(profile_convert(&err, &limits, "wide.pprof", "wide.mlyze", NULL), COFFER_E_LIMIT);
    dispose(&made);
}

static void a_sample_survives_the_way_there_and_back(void **state)
{
    (void)state;
    static const char *const what[] = { "peak", "leaks", "total" };
    profile_sample("s.mlyze", 6000);
    profile_must("s.mlyze", "s.pb.gz", NULL);
    profile_must("s.pb.gz", "back.mlyze", NULL);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    profile_expect("back.mlyze", (int64_t)totals.allocs, (int64_t)totals.total_allocated_bytes,
                   (int64_t)totals.peak_bytes, (int64_t)totals.live_bytes_at_end);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        profile_same("s.mlyze", "back.mlyze", what[i]);
}

static void a_gzip_file_of_something_else_is_not_taken_for_a_profile(void **state)
{
    (void)state;
    static const uint8_t hello[] = { 0x1f, 0x8b, 8, 0, 0,    0,    0,    0,    0, 3, 0xcb, 0x48, 0xcd,
                                     0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0,    0 };
    profile_refuses("hello.pb.gz", hello, sizeof hello, COFFER_E_NOT_RECOGNISED, "gzip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_packed_or_not),
        cmocka_unit_test(references_that_lead_nowhere_are_refused),
        cmocka_unit_test(ids_are_unique_and_not_0),
        cmocka_unit_test(values_are_as_many_as_their_types_and_not_negative),
        cmocka_unit_test(profiles_of_time_are_refused),
        cmocka_unit_test(a_message_cut_at_any_byte_is_refused_or_read),
        cmocka_unit_test(frames_shared_by_many_samples_are_bounded),
        cmocka_unit_test(a_sample_survives_the_way_there_and_back),
        cmocka_unit_test(a_gzip_file_of_something_else_is_not_taken_for_a_profile),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
