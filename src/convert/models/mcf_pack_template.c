/* A chat template that is a file of its own goes into tokenizer_config.json, where programs look for it. The
 * bytes are those that Go's encoder gives, keys sorted, <, > and & escaped, so that models packed here and by
 * the format's first program are the same. Never rendered: a template is data. */
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "convert/models/mcf_pack.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *left, const void *right)
{
    return strcmp((*(const coffer__json_value *const *)left)->key,
                  (*(const coffer__json_value *const *)right)->key);
}

/* Depth is bounded by the parser's. */
static bool write_sorted(coffer__json_writer *writer, const coffer__json_value *value,
                         const coffer__json_value *chat_template);

static bool write_object(coffer__json_writer *writer, const coffer__json_value *object,
                         const coffer__json_value *chat_template)
{
    size_t count = 0;
    bool done = true;
    const coffer__json_value **members = coffer__alloc_array((size_t)object->as.count + 1, sizeof *members);
    if (!members)
        return false;
    for (const coffer__json_value *at = coffer__json_first(object); at; at = coffer__json_next(object, at)) {
        if (!chat_template || strcmp(at->key, chat_template->key) != 0)
            members[count++] = at;
    }
    if (chat_template)
        members[count++] = chat_template;
    qsort(members, count, sizeof *members, by_key);
    coffer__json_open_object(writer);
    for (size_t i = 0; done && i < count; i++) {
        coffer__json_key_len(writer, members[i]->key, members[i]->key_len);
        done = write_sorted(writer, members[i], NULL);
    }
    coffer__json_close_object(writer);
    coffer__free(members);
    return done;
}

static bool write_sorted(coffer__json_writer *writer, const coffer__json_value *value,
                         const coffer__json_value *chat_template)
{
    bool done = true;
    if (value->kind == COFFER__JSON_OBJECT)
        return write_object(writer, value, chat_template);
    if (value->kind != COFFER__JSON_ARRAY) {
        coffer__json_write_value(writer, value);
        return true;
    }
    coffer__json_open_array(writer);
    for (const coffer__json_value *at = coffer__json_first(value); done && at;
         at = coffer__json_next(value, at))
        done = write_sorted(writer, at, NULL);
    coffer__json_close_array(writer);
    return done;
}

/* These characters occur in JSON only inside strings. */
static void escape(coffer__buffer *out, const coffer__buffer *json)
{
    for (size_t i = 0; i < json->len; i++) {
        uint8_t c = json->data[i];
        bool separator = c == 0xe2 && json->len - i >= 3 && json->data[i + 1] == 0x80 &&
                         (json->data[i + 2] & 0xfe) == 0xa8;
        if (separator) {
            coffer__buffer_printf(out, "\\u%04x", 0x2028 + (json->data[i + 2] & 1));
            i += 2;
        } else if (c == '<' || c == '>' || c == '&') {
            coffer__buffer_printf(out, "\\u%04x", c);
        } else {
            coffer__buffer_append(out, &c, 1);
        }
    }
}

static coffer_status parse_config(coffer__json **out, const coffer__mcf_resource *config,
                                  const coffer_limits *limits, coffer_error *err)
{
    static const char nothing[] = "{}";
    coffer_error failure = COFFER_ERROR_INIT;
    const char *text = config ? (const char *)config->bytes : nothing;
    const char *name = config ? config->path : nothing;
    coffer_status status =
        coffer__json_parse_python(out, text, config ? config->len : sizeof nothing - 1, 0, limits, &failure);
    if (status)
        return coffer__fail_other(err, coffer__fail_copy(err, &failure), name);
    if (coffer__json_root(*out)->kind != COFFER__JSON_OBJECT)
        return coffer__fail_other(err, coffer__fail(err, COFFER_E_BAD_JSON, 0, "not a JSON object"), name);
    return COFFER_OK;
}

coffer_status coffer__mcf_pack_fold(coffer__buffer *out, const coffer__mcf_resource *config,
                                    const char *chat_template, size_t template_len,
                                    const coffer_limits *limits, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json *parsed = NULL;
    coffer__json_value value = {
        .key = "chat_template", .key_len = 13, .kind = COFFER__JSON_STRING, .span = 1
    };
    if (template_len > UINT32_MAX || !coffer__utf8_valid(chat_template, template_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "the chat template is not UTF-8");
    value.as.string = chat_template;
    value.string_len = (uint32_t)template_len;
    coffer_status status = parse_config(&parsed, config, limits, err);
    if (!status) {
        coffer__json_writer_init(&writer, &json, 0);
        bool done = write_sorted(&writer, coffer__json_root(parsed), &value);
        escape(out, &json);
        if (!done || json.failed || out->failed)
            status = coffer__fail_no_memory(err, json.len);
    }
    coffer__buffer_free(&json);
    coffer__json_free(parsed);
    return status;
}
