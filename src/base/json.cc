#include "base/json.h"

#include "base/real.h"

extern "C" {
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
}

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <simdjson.h>

#define STRING_OF_TOKEN(token) #token
#define STRING_OF(macro) STRING_OF_TOKEN(macro)

struct coffer__json {
    coffer__json_value *values;
    uint8_t *strings; /* simdjson's, taken from its document: every key and string points into it */
    char *numbers;    /* texts of the numbers that simdjson cannot read, or NULL */
};

namespace
{

/* simdjson leaves its result on a "tape" of 64-bit words: a type in the top byte, a payload below. Numbers
 * have a second word; a string's payload is the place of its length in the string buffer, where its text
 * follows, and then a NUL; the first word's payload is the number of words. */
constexpr uint64_t payload_mask = (UINT64_C(1) << 56) - 1;

/* On big-endian machines simdjson mixes up the digits of long fractions. */
constexpr bool misreads_fractions = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

struct walk {
    const uint64_t *tape;
    const char *strings;
    coffer__json_value *values;
    uint32_t count;
    uint32_t depth, max_depth;
    coffer__json_key_table keys;
    const coffer__json_value *duplicate;
    uint32_t open[COFFER__JSON_MAX_DEPTH]; /* the containers around the next value */
};

const char *string_at(const walk &w, uint64_t place, uint32_t *len)
{
    std::memcpy(len, w.strings + place, sizeof *len);
    return w.strings + place + sizeof *len;
}

/* Fills in one value from the tape. Returns the number of words it takes. */
uint64_t read_value(coffer__json_value *value, const walk &w, uint64_t at)
{
    const uint64_t word = w.tape[at];
    switch (word >> 56) {
    case '"':
        value->kind = COFFER__JSON_STRING;
        value->as.string = string_at(w, word & payload_mask, &value->string_len);
        return 1;
    case 'u':
        value->kind = COFFER__JSON_U64;
        value->as.u64 = w.tape[at + 1];
        return 2;
    case 'l':
        value->as.u64 = w.tape[at + 1];
        value->kind = value->as.i64 < 0 ? COFFER__JSON_I64 : COFFER__JSON_U64;
        return 2;
    case 'd':
        value->kind = COFFER__JSON_F64;
        std::memcpy(&value->as.f64, &w.tape[at + 1], sizeof value->as.f64);
        return 2;
    case 't':
    case 'f':
        value->kind = COFFER__JSON_BOOL;
        value->as.boolean = word >> 56 == 't';
        return 1;
    case 'n':
        value->kind = COFFER__JSON_NULL;
        return 1;
    default:
        value->kind = word >> 56 == '{' ? COFFER__JSON_OBJECT : COFFER__JSON_ARRAY;
        return 1;
    }
}

coffer_status close_container(walk *w)
{
    coffer__json_value *container = &w->values[w->open[--w->depth]];
    container->span = static_cast<uint32_t>(&w->values[w->count] - container);
    if (container->kind == COFFER__JSON_ARRAY)
        return COFFER_OK;
    return coffer__json_check_keys(&w->duplicate, &w->keys, container);
}

/* Turns the tape into values. The failures are COFFER_E_NO_MEMORY, COFFER_E_DUPLICATE (w->duplicate says
 * which) and COFFER_E_LIMIT: simdjson does not count the depth of empty containers. */
coffer_status flatten(walk *w)
{
    const uint64_t end = (w->tape[0] & payload_mask) - 1;
    for (uint64_t at = 1; at < end;) {
        const uint64_t type = w->tape[at] >> 56;
        if (type == '}' || type == ']') {
            const coffer_status status = close_container(w);
            if (status)
                return status;
            at++;
            continue;
        }
        coffer__json_value *value = &w->values[w->count];
        std::memset(value, 0, sizeof *value);
        value->span = 1;
        if (w->depth > 0) {
            coffer__json_value *parent = &w->values[w->open[w->depth - 1]];
            parent->as.count++;
            if (parent->kind == COFFER__JSON_OBJECT)
                value->key = string_at(*w, w->tape[at++] & payload_mask, &value->key_len);
        }
        at += read_value(value, *w, at);
        if (value->kind == COFFER__JSON_ARRAY || value->kind == COFFER__JSON_OBJECT) {
            if (w->depth == w->max_depth)
                return COFFER_E_LIMIT;
            w->open[w->depth++] = w->count;
        }
        w->count++;
    }
    return COFFER_OK;
}

/* The text, its place and what was allowed: all that is needed to say what is wrong with it. */
struct input {
    const char *text;
    size_t len;
    uint64_t base;
    uint32_t max_depth;
    bool python; /* NaN and Infinity are numbers */
};

coffer_status fail_duplicate(const input &in, const walk &w, coffer_error *err)
{
    const uint64_t index = static_cast<uint64_t>(w.duplicate - w.values);
    const size_t at = coffer__json_key_position(in.text, in.len, index);
    return coffer__fail(err, COFFER_E_DUPLICATE, in.base + at,
                        "JSON, byte %zu of %zu: duplicate key \"%.*s\" in an object", at, in.len,
                        static_cast<int>(std::min<uint32_t>(w.duplicate->key_len, 100)), w.duplicate->key);
}

/* simdjson does not report the offset of an error, so the text is scanned again to find it. */
coffer_status fail_syntax(const input &in, simdjson::error_code code, coffer_error *err)
{
    if (code == simdjson::MEMALLOC)
        return coffer__fail_no_memory(err, in.len);
    const coffer_status status = coffer__json_explain(in.text, in.len, in.base, in.max_depth, in.python, err);
    if (status)
        return status;
    return coffer__fail(err, COFFER_E_BAD_JSON, in.base, "JSON: %s", simdjson::error_message(code));
}

/* Numbers that simdjson cannot read. It is given a 0 in their place. */
struct odd_numbers {
    coffer__json_odd_number *items = nullptr;
    size_t count = 0;
    ~odd_numbers()
    {
        coffer__free(items);
    }
};

void blank_out(uint8_t *text, const odd_numbers &odd)
{
    for (size_t i = 0; i < odd.count; i++) {
        std::memset(text + odd.items[i].at, ' ', odd.items[i].len);
        text[odd.items[i].at] = '0';
    }
}

/* Replaces the zeros by the texts of the numbers. */
bool restore(coffer__json *json, const input &in, const odd_numbers &odd)
{
    size_t room = 0;
    for (size_t i = 0; i < odd.count; i++)
        room += odd.items[i].len + 1;
    json->numbers = static_cast<char *>(coffer__malloc(room));
    if (!json->numbers)
        return false;
    char *to = json->numbers;
    for (size_t i = 0; i < odd.count; i++) {
        const coffer__json_odd_number &number = odd.items[i];
        coffer__json_value *value = &json->values[number.value];
        std::memcpy(to, in.text + number.at, number.len);
        to[number.len] = '\0';
        value->kind = COFFER__JSON_NUMBER;
        value->as.string = to;
        value->string_len = static_cast<uint32_t>(number.len);
        to += number.len + 1;
    }
    return true;
}

/* Parses a padded copy of the text: simdjson may read past the end. */
simdjson::error_code parse_padded(simdjson::dom::parser *parser, const input &in, const odd_numbers &odd)
{
    uint8_t *padded = static_cast<uint8_t *>(coffer__malloc(in.len + simdjson::SIMDJSON_PADDING));
    if (!padded)
        return simdjson::MEMALLOC;
    std::memcpy(padded, in.text, in.len);
    std::memset(padded + in.len, 0, simdjson::SIMDJSON_PADDING);
    blank_out(padded, odd);
    /* One level more than ours, because its first is the document. */
    simdjson::error_code code = parser->allocate(in.len, in.max_depth + 1);
    if (code == simdjson::SUCCESS)
        code = parser->parse(padded, in.len, false).error();
    coffer__free(padded);
    return code;
}

bool is_plain_scalar(const coffer__json_value &value)
{
    return value.kind != COFFER__JSON_STRING && value.kind != COFFER__JSON_ARRAY &&
           value.kind != COFFER__JSON_OBJECT;
}

/* The next number, true, false or null at or after `at`, which is not inside a string. */
size_t next_plain_scalar(const input &in, size_t at)
{
    for (; at < in.len; at++) {
        if (in.text[at] != '"' && !std::strchr("{}[],: \t\r\n", in.text[at]))
            return at;
        if (in.text[at] == '"')
            for (at++; in.text[at] != '"'; at++)
                at += in.text[at] == '\\';
    }
    return at;
}

/* Reads the numbers with a fraction again, without simdjson. The text is valid JSON. */
void reread_reals(const walk &w, const input &in)
{
    size_t at = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        if (!is_plain_scalar(w.values[i]))
            continue;
        at = next_plain_scalar(in, at);
        size_t end = at;
        while (end < in.len && !std::strchr("]}, \t\r\n", in.text[end]))
            end++;
        if (w.values[i].kind == COFFER__JSON_F64)
            coffer__parse_f64(&w.values[i].as.f64, in.text + at, end - at);
        at = end;
    }
}

coffer_status build(coffer__json *json, simdjson::dom::parser *parser, const input &in, coffer_error *err)
{
    walk w;
    w.tape = parser->doc.tape.get();
    w.strings = reinterpret_cast<const char *>(parser->doc.string_buf.get());
    w.count = w.depth = 0;
    w.max_depth = in.max_depth;
    w.keys = coffer__json_key_table();
    w.duplicate = nullptr;
    const size_t words = static_cast<size_t>(w.tape[0] & payload_mask); /* no value takes less than one */
    w.values = static_cast<coffer__json_value *>(coffer__alloc_array(words, sizeof *w.values));
    if (!w.values)
        return coffer__fail_no_memory(err, uint64_t(words) * sizeof *w.values);

    coffer_status status = flatten(&w);
    if (status == COFFER_E_DUPLICATE)
        status = fail_duplicate(in, w, err);
    else if (status == COFFER_E_LIMIT)
        status = coffer__json_explain(in.text, in.len, in.base, in.max_depth, in.python, err);
    else if (status == COFFER_E_NO_MEMORY)
        status = coffer__fail_no_memory(err, uint64_t(w.count) * 2 * sizeof *w.keys.slots);
    coffer__json_key_table_free(&w.keys);
    if (status) {
        coffer__free(w.values);
        return status;
    }
    if (misreads_fractions)
        reread_reals(w, in);
    void *fitted = coffer__realloc(w.values, w.count * sizeof *w.values);
    json->values = fitted ? static_cast<coffer__json_value *>(fitted) : w.values;
    json->strings = parser->doc.string_buf.release();
    return COFFER_OK;
}

/* Parses the text, and parses it again without the numbers that simdjson cannot read, if it has such numbers.
 */
coffer_status parse(simdjson::dom::parser *parser, odd_numbers *odd, const input &in, coffer_error *err)
{
    simdjson::error_code code = parse_padded(parser, in, *odd);
    const bool doubtful = code == simdjson::SUCCESS ? misreads_fractions : code != simdjson::MEMALLOC;
    if (doubtful && coffer__json_odd_numbers(&odd->items, &odd->count, in.text, in.len, in.max_depth,
                                             in.python) == COFFER_OK)
        code = parse_padded(parser, in, *odd);
    return code == simdjson::SUCCESS ? COFFER_OK : fail_syntax(in, code, err);
}

coffer_status parse_text(coffer__json **out, const char *text, size_t len, uint64_t base,
                         const coffer_limits *limits, bool python, coffer_error *err)
{
    const coffer_limits allowed = coffer__limits(limits);
    const uint64_t most = std::min<uint64_t>(allowed.json_bytes, UINT32_MAX - simdjson::SIMDJSON_PADDING);
    if (len > most)
        return coffer__fail(err, COFFER_E_LIMIT, base, "JSON of %zu bytes, the limit is %" PRIu64, len, most);
    const input in = { len ? text : "", len, base,
                       std::min<uint32_t>(allowed.json_depth, COFFER__JSON_MAX_DEPTH), python };
    if (len == 0 || text[0] == '\xEF') /* newer versions of simdjson skip a byte order mark */
        return coffer__json_explain(in.text, len, base, in.max_depth, in.python, err);

    simdjson::dom::parser parser;
    odd_numbers odd;
    coffer_status status = parse(&parser, &odd, in, err);
    if (status)
        return status;
    coffer__json *json = static_cast<coffer__json *>(coffer__calloc(1, sizeof *json));
    if (!json)
        return coffer__fail_no_memory(err, sizeof *json);
    status = build(json, &parser, in, err);
    if (!status && odd.count > 0 && !restore(json, in, odd))
        status = coffer__fail_no_memory(err, in.len);
    if (status) {
        coffer__json_free(json);
        return status;
    }
    *out = json;
    return COFFER_OK;
}

} // namespace

coffer_status coffer__json_parse(coffer__json **out, const char *text, size_t len, uint64_t base,
                                 const coffer_limits *limits, coffer_error *err)
{
    return parse_text(out, text, len, base, limits, false, err);
}

coffer_status coffer__json_parse_python(coffer__json **out, const char *text, size_t len, uint64_t base,
                                        const coffer_limits *limits, coffer_error *err)
{
    return parse_text(out, text, len, base, limits, true, err);
}

void coffer__json_free(coffer__json *json)
{
    if (!json)
        return;
    delete[] json->strings;
    coffer__free(json->numbers);
    coffer__free(json->values);
    coffer__free(json);
}

const coffer__json_value *coffer__json_root(const coffer__json *json)
{
    return json->values;
}

const char *coffer__json_library(void)
{
    return "simdjson " STRING_OF(SIMDJSON_VERSION);
}
