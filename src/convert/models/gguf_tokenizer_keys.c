/* The tokenizer of llama.cpp from tokenizer.json: byte-level BPE ("gpt2"), SentencePiece BPE with bytes as a
 * fallback ("llama") and WordPiece ("bert"). */
#include "convert/models/gguf_keys.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOKENIZER "tokenizer.ggml."
#define REASON_SIZE 160
#define MAX_TOKENS ((uint64_t)1 << 24)
#define UNSCORED 1.0f             /* scores of merged tokens are 0 and less */
#define WORD_START "\xe2\x96\x81" /* U+2581, SentencePiece's space */

enum { /* tokenizer.ggml.token_type */
       TOKEN_NORMAL = 1,
       TOKEN_UNKNOWN = 2,
       TOKEN_CONTROL = 3,
       TOKEN_USER_DEFINED = 4,
       TOKEN_UNUSED = 5,
       TOKEN_BYTE = 6
};

typedef struct token {
    const char *text; /* borrowed from tokenizer.json */
    size_t len;
    float score;
    uint8_t type; /* 0 = the number is free */
} token;

typedef struct tokenizer {
    coffer__json *json, *settings_json;
    const coffer__json_value *root, *model, *settings; /* settings : tokenizer_config.json, or NULL */
    const char *kind;                                  /* "gpt2", "llama", "bert" */
    token *tokens;
    size_t count;
    coffer__table table;      /* of texts */
    char reason[REASON_SIZE]; /* why it is not converted, or converted differently */
} tokenizer;

static const char *text_of(const coffer__json_value *value)
{
    return value && value->kind == COFFER__JSON_STRING ? value->as.string : "";
}

static bool is_true(const coffer__json_value *value)
{
    return value && value->kind == COFFER__JSON_BOOL && value->as.boolean;
}

static bool is_false(const coffer__json_value *value)
{
    return value && value->kind == COFFER__JSON_BOOL && !value->as.boolean;
}

/* A part of the tokenizer of that type, or one inside a "Sequence" of them. */
static const coffer__json_value *find_part(const coffer__json_value *part, const char *type)
{
    static const char *const lists[] = { "pretokenizers", "normalizers", "decoders", "processors" };
    if (strcmp(text_of(coffer__gguf_look_up(part, "type")), type) == 0)
        return part;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const coffer__json_value *list = coffer__gguf_look_up(part, lists[i]);
        for (const coffer__json_value *item = coffer__json_first(list); item;
             item = coffer__json_next(list, item)) {
            if (strcmp(text_of(coffer__gguf_look_up(item, "type")), type) == 0)
                return item;
        }
    }
    return NULL;
}

/* ---- Tokens ---- */

static void set_token(tokenizer *made, uint64_t id, const char *text, size_t len, uint8_t type)
{
    if (id < made->count)
        made->tokens[id] = (token){ .text = text, .len = len, .type = type, .score = UNSCORED };
}

/* The number after the last token of vocabulary and added tokens. */
static uint64_t end_of_ids(const tokenizer *made)
{
    const coffer__json_value *vocab = coffer__gguf_look_up(made->model, "vocab"),
                             *added = coffer__gguf_look_up(made->root, "added_tokens");
    uint64_t end = 0, id;
    for (const coffer__json_value *item = coffer__json_first(vocab); item;
         item = coffer__json_next(vocab, item)) {
        if (coffer__json_u64(&id, item) && id >= end)
            end = id + 1;
    }
    for (const coffer__json_value *item = coffer__json_first(added); item;
         item = coffer__json_next(added, item)) {
        if (coffer__json_u64(&id, coffer__gguf_look_up(item, "id")) && id >= end)
            end = id + 1;
    }
    return end;
}

/* "<0x0A>". */
static bool is_byte(const char *text)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    return strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 && strspn(text + 3, digits) == 2 &&
           text[5] == '>';
}

static uint8_t type_of(const tokenizer *made, const char *text)
{
    if (strcmp(made->kind, "llama") != 0)
        return TOKEN_NORMAL;
    if (strcmp(text, text_of(coffer__gguf_look_up(made->model, "unk_token"))) == 0)
        return TOKEN_UNKNOWN;
    return is_byte(text) ? TOKEN_BYTE : TOKEN_NORMAL;
}

static void take_tokens(tokenizer *made)
{
    const coffer__json_value *vocab = coffer__gguf_look_up(made->model, "vocab"),
                             *added = coffer__gguf_look_up(made->root, "added_tokens");
    uint64_t id;
    for (const coffer__json_value *item = coffer__json_first(vocab); item;
         item = coffer__json_next(vocab, item)) {
        if (coffer__json_u64(&id, item))
            set_token(made, id, item->key, item->key_len, type_of(made, item->key));
    }
    for (const coffer__json_value *item = coffer__json_first(added); item;
         item = coffer__json_next(added, item)) {
        const coffer__json_value *content = coffer__gguf_look_up(item, "content");
        bool is_unknown = type_of(made, text_of(content)) == TOKEN_UNKNOWN;
        if (content && content->kind == COFFER__JSON_STRING &&
            coffer__json_u64(&id, coffer__gguf_look_up(item, "id")))
            set_token(made, id, content->as.string, content->string_len,
                      is_unknown                                       ? TOKEN_UNKNOWN
                      : is_true(coffer__gguf_look_up(item, "special")) ? TOKEN_CONTROL
                                                                       : TOKEN_USER_DEFINED);
    }
}

static coffer_status make_tokens(tokenizer *made, uint32_t vocab_size, coffer_error *err)
{
    uint64_t end = end_of_ids(made);
    if (vocab_size && end > vocab_size)
        snprintf(made->reason, REASON_SIZE,
                 "%" PRIu64 " tokens past the %" PRIu32 " of the model are left out", end - vocab_size,
                 vocab_size);
    made->count = vocab_size ? vocab_size : (size_t)(end < MAX_TOKENS ? end : MAX_TOKENS);
    if (made->count > MAX_TOKENS)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "config.json: vocab_size %zu is too large", made->count);
    made->tokens = coffer__calloc(made->count + 1, sizeof *made->tokens);
    if (!made->tokens)
        return coffer__fail_no_memory(err, made->count * sizeof *made->tokens);
    take_tokens(made);
    coffer__table_init_keyed(&made->table);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < made->count; i++) {
        if (made->tokens[i].type)
            status =
                coffer__table_add(&made->table,
                                  coffer__table_hash(&made->table, made->tokens[i].text, made->tokens[i].len),
                                  (uint32_t)i, err);
    }
    return status;
}

/* The number of a token, or -1. */
static int64_t find_token(const tokenizer *made, const char *text, size_t len)
{
    coffer__table_probe probe =
        coffer__table_begin(&made->table, coffer__table_hash(&made->table, text, len));
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        if (made->tokens[found].len == len && memcmp(made->tokens[found].text, text, len) == 0)
            return found;
    }
    return -1;
}

/* ---- Merges ---- */

/* The two parts of a merge: "a b" or ["a", "b"]. */
static bool split_merge(const char **left, size_t *left_len, const char **right, size_t *right_len,
                        const coffer__json_value *merge)
{
    if (merge->kind == COFFER__JSON_ARRAY) {
        const coffer__json_value *first = coffer__json_first(merge),
                                 *second = first ? coffer__json_next(merge, first) : NULL;
        if (!second || first->kind != COFFER__JSON_STRING || second->kind != COFFER__JSON_STRING)
            return false;
        *left = first->as.string;
        *left_len = first->string_len;
        *right = second->as.string;
        *right_len = second->string_len;
        return true;
    }
    const char *space = merge->kind == COFFER__JSON_STRING ? strchr(merge->as.string, ' ') : NULL;
    if (!space)
        return false;
    *left = merge->as.string;
    *left_len = (size_t)(space - *left);
    *right = space + 1;
    *right_len = merge->string_len - *left_len - 1;
    return true;
}

static coffer_status put_merges(coffer__gguf_keys *keys, const tokenizer *made, coffer_error *err)
{
    const coffer__json_value *merges = coffer__gguf_look_up(made->model, "merges");
    const char *left, *right;
    size_t left_len, right_len;
    uint64_t count = 0;
    coffer__buffer items = COFFER__BUFFER_INIT, line = COFFER__BUFFER_INIT;
    for (const coffer__json_value *merge = coffer__json_first(merges); merge;
         merge = coffer__json_next(merges, merge)) {
        if (!split_merge(&left, &left_len, &right, &right_len, merge))
            continue;
        line.len = 0;
        coffer__buffer_append(&line, left, left_len);
        coffer__buffer_append(&line, " ", 1);
        coffer__buffer_append(&line, right, right_len);
        coffer__gguf_put_string(&items, (const char *)line.data, line.len);
        count++;
    }
    coffer_status status = coffer__gguf_keys_array(keys, TOKENIZER "merges", COFFER__GGUF_STRING, count, err);
    if (!status && (items.failed || line.failed))
        status = coffer__fail_no_memory(err, items.len);
    if (!status)
        coffer__buffer_append(keys->out, items.data, items.len);
    coffer__buffer_free(&items);
    coffer__buffer_free(&line);
    return status;
}

/* SentencePiece merges the pair whose result has the best score. tokenizer.json has the order of the merges
 * instead, which gives the same scores up to their size. */
static coffer_status score_tokens(tokenizer *made, coffer_error *err)
{
    const coffer__json_value *merges = coffer__gguf_look_up(made->model, "merges");
    const char *left, *right;
    size_t left_len, right_len;
    coffer__buffer whole = COFFER__BUFFER_INIT;
    uint32_t rank = 0;
    for (const coffer__json_value *merge = coffer__json_first(merges); merge;
         merge = coffer__json_next(merges, merge), rank++) {
        if (!split_merge(&left, &left_len, &right, &right_len, merge))
            continue;
        whole.len = 0;
        coffer__buffer_append(&whole, left, left_len);
        coffer__buffer_append(&whole, right, right_len);
        int64_t id = whole.failed ? -1 : find_token(made, (const char *)whole.data, whole.len);
        if (id >= 0 && made->tokens[id].score == UNSCORED)
            made->tokens[id].score = rank ? -(float)rank : 0;
    }
    for (size_t i = 0; i < made->count; i++) {
        if (made->tokens[i].score == UNSCORED) /* letters and bytes, which no merge makes */
            made->tokens[i].score = made->tokens[i].type == TOKEN_NORMAL ? -1e6f : 0.0f;
    }
    coffer_status status = whole.failed ? coffer__fail_no_memory(err, whole.len) : COFFER_OK;
    coffer__buffer_free(&whole);
    return status;
}

/* ---- Kinds ---- */

/* How words are split before they are merged. llama.cpp has a fixed list of ways. */
static const char *splitter_of(const tokenizer *made)
{
    static const struct {
        const char *begin, *part, *name;
    } known[] = {
        { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|", "", "llama-bpe" },
        { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|", "", "qwen2" },
        { "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|", "", "qwen35" },
        { "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*", "|\\p{N}{1,3}|", "gpt-4o" },
        { "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*", "|\\p{N}|", "tekken" },
    };
    const coffer__json_value *pre = coffer__gguf_look_up(made->root, "pre_tokenizer"),
                             *split = find_part(pre, "Split");
    const char *regex = text_of(coffer__gguf_look_up(coffer__gguf_look_up(split, "pattern"), "Regex"));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(regex, known[i].begin, strlen(known[i].begin)) == 0 && strstr(regex, known[i].part))
            return known[i].name;
    }
    const coffer__json_value *bytes = find_part(pre, "ByteLevel");
    if (!split && bytes && !is_false(coffer__gguf_look_up(bytes, "use_regex")))
        return is_true(coffer__gguf_look_up(find_part(pre, "Digits"), "individual_digits")) ? "smollm"
                                                                                            : "gpt-2";
    return NULL;
}

static void choose_kind(tokenizer *made)
{
    const char *type = text_of(coffer__gguf_look_up(made->model, "type"));
    if (strcmp(type, "WordPiece") == 0)
        made->kind = "bert";
    else if (find_part(coffer__gguf_look_up(made->root, "pre_tokenizer"), "ByteLevel"))
        made->kind = "gpt2";
    else if (is_true(coffer__gguf_look_up(made->model, "byte_fallback")) &&
             coffer__gguf_look_up(made->model, "merges"))
        made->kind = "llama";
    else
        snprintf(made->reason, REASON_SIZE,
                 "tokenizer.json has a model of type \"%.24s\", which is not converted", *type ? type : "?");
}

/* SentencePiece puts a space before the first word, unless the tokenizer says otherwise. */
static bool adds_space(const tokenizer *made)
{
    const coffer__json_value *space =
        find_part(coffer__gguf_look_up(made->root, "pre_tokenizer"), "Metaspace");
    if (find_part(coffer__gguf_look_up(made->root, "normalizer"), "Prepend"))
        return true;
    return space && strcmp(text_of(coffer__gguf_look_up(space, "prepend_scheme")), "never") != 0 &&
           !is_false(coffer__gguf_look_up(space, "add_prefix_space"));
}

/* ---- Special tokens ---- */

/* A token of tokenizer_config.json: a text, or a map with the text. */
static int64_t find_setting(const tokenizer *made, const char *name)
{
    const coffer__json_value *value = coffer__gguf_look_up(made->settings, name);
    if (value && value->kind == COFFER__JSON_OBJECT)
        value = coffer__gguf_look_up(value, "content");
    return value && value->kind == COFFER__JSON_STRING ? find_token(made, value->as.string, value->string_len)
                                                       : -1;
}

static int64_t find_special(const tokenizer *made, const coffer__gguf_hf *hf, const char *name)
{
    char key[32];
    int64_t id = find_setting(made, name);
    uint64_t number;
    if (id >= 0)
        return id;
    snprintf(key, sizeof key, "%s_id", name);
    const coffer__json_value *value = coffer__gguf_look_up(hf->config, key);
    if (value && value->kind == COFFER__JSON_ARRAY)
        value = coffer__json_first(value);
    return coffer__json_u64(&number, value) && number < made->count ? (int64_t)number : -1;
}

/* Whether the template that is put around a text has the token, before it or after it. */
static bool template_has(const tokenizer *made, int64_t id, bool before)
{
    const coffer__json_value *part =
        find_part(coffer__gguf_look_up(made->root, "post_processor"), "TemplateProcessing");
    const coffer__json_value *single = coffer__gguf_look_up(part, "single");
    bool is_before = true;
    for (const coffer__json_value *item = coffer__json_first(single); item && id >= 0;
         item = coffer__json_next(single, item)) {
        const coffer__json_value *name =
            coffer__gguf_look_up(coffer__gguf_look_up(item, "SpecialToken"), "id");
        if (coffer__gguf_look_up(item, "Sequence"))
            is_before = false;
        else if (is_before == before && name && name->kind == COFFER__JSON_STRING &&
                 find_token(made, name->as.string, name->string_len) == id)
            return true;
    }
    return false;
}

static coffer_status put_addition(coffer__gguf_keys *keys, const tokenizer *made, const char *setting,
                                  int64_t id, bool before, coffer_error *err)
{
    const coffer__json_value *value = coffer__gguf_look_up(made->settings, setting);
    bool adds =
        value && value->kind == COFFER__JSON_BOOL ? value->as.boolean : template_has(made, id, before);
    return coffer__gguf_keys_bool(keys, TOKENIZER, setting, adds, err);
}

static coffer_status put_special(coffer__gguf_keys *keys, const tokenizer *made, const coffer__gguf_hf *hf,
                                 coffer_error *err)
{
    static const char *const names[][2] = {
        { "bos_token", "bos_token_id" },     { "eos_token", "eos_token_id" },
        { "unk_token", "unknown_token_id" }, { "sep_token", "seperator_token_id" },
        { "pad_token", "padding_token_id" }, { "mask_token", "mask_token_id" },
    };
    bool is_bert = strcmp(made->kind, "bert") == 0;
    coffer_status status = COFFER_OK;
    int64_t ids[6];
    for (size_t i = 0; i < 6; i++)
        ids[i] = find_special(made, hf, names[i][0]);
    if (is_bert && ids[0] < 0)
        ids[0] = find_setting(made, "cls_token");
    for (size_t i = 0; !status && i < 6; i++) {
        if (ids[i] >= 0)
            status = coffer__gguf_keys_u32(keys, TOKENIZER, names[i][1], (uint32_t)ids[i], err);
    }
    if (!status && !is_bert)
        status = put_addition(keys, made, "add_bos_token", ids[0], true, err);
    if (!status && !is_bert)
        status = put_addition(keys, made, "add_eos_token", ids[1], false, err);
    return status;
}

/* ---- Keys ---- */

/* WordPiece marks what continues a word, llama.cpp what begins one. */
static void put_word_piece(coffer__buffer *out, const token *from)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    bool special = from->len && from->text[0] == '[' && from->text[from->len - 1] == ']';
    bool continues = from->len > 2 && memcmp(from->text, "##", 2) == 0;
    if (!special && !continues)
        coffer__buffer_append(&text, WORD_START, strlen(WORD_START));
    coffer__buffer_append(&text, from->text + (continues ? 2 : 0), from->len - (continues ? 2 : 0));
    if (text.failed)
        out->failed = true;
    coffer__gguf_put_string(out, (const char *)text.data, text.len);
    coffer__buffer_free(&text);
}

static coffer_status put_tokens(coffer__gguf_keys *keys, const tokenizer *made, coffer_error *err)
{
    coffer_status status =
        coffer__gguf_keys_array(keys, TOKENIZER "tokens", COFFER__GGUF_STRING, made->count, err);
    for (size_t i = 0; !status && i < made->count; i++) {
        const token *item = &made->tokens[i];
        char free_name[32];
        snprintf(free_name, sizeof free_name, "[PAD%zu]", i);
        if (item->type && strcmp(made->kind, "bert") == 0)
            put_word_piece(keys->out, item);
        else
            coffer__gguf_put_string(keys->out, item->type ? item->text : free_name,
                                    item->type ? item->len : strlen(free_name));
    }
    if (!status)
        status = coffer__gguf_keys_array(keys, TOKENIZER "token_type", COFFER__GGUF_I32, made->count, err);
    for (size_t i = 0; !status && i < made->count; i++)
        coffer__gguf_put_integer(keys->out, COFFER__GGUF_I32,
                                 made->tokens[i].type ? made->tokens[i].type : TOKEN_UNUSED);
    return status;
}

static coffer_status put_scores(coffer__gguf_keys *keys, tokenizer *made, coffer_error *err)
{
    coffer_status status = score_tokens(made, err);
    if (!status)
        status = coffer__gguf_keys_array(keys, TOKENIZER "scores", COFFER__GGUF_F32, made->count, err);
    for (size_t i = 0; !status && i < made->count; i++)
        coffer__gguf_put_float(keys->out, COFFER__GGUF_F32, (double)made->tokens[i].score);
    if (!status)
        status = coffer__gguf_keys_bool(keys, TOKENIZER, "add_space_prefix", adds_space(made), err);
    return status;
}

static coffer_status put_kind(coffer__gguf_keys *keys, tokenizer *made, const coffer__gguf_hf *hf,
                              coffer_error *err)
{
    coffer_status status =
        coffer__gguf_keys_text(keys, TOKENIZER, "model", made->kind, strlen(made->kind), err);
    const char *splitter = "default";
    uint64_t types = 1;
    if (strcmp(made->kind, "gpt2") == 0) {
        splitter = splitter_of(made);
        if (!splitter)
            snprintf(made->reason, REASON_SIZE,
                     "llama.cpp may split words in another way: the pattern of tokenizer.json is not known");
        splitter = splitter ? splitter : "default";
    }
    if (!status)
        status = coffer__gguf_keys_text(keys, TOKENIZER, "pre", splitter, strlen(splitter), err);
    if (!status)
        status = put_tokens(keys, made, err);
    if (!status && strcmp(made->kind, "llama") == 0)
        status = put_scores(keys, made, err);
    if (!status && strcmp(made->kind, "gpt2") == 0)
        status = put_merges(keys, made, err);
    if (!status && strcmp(made->kind, "bert") == 0) {
        (void)coffer__json_u64(&types, coffer__gguf_look_up(hf->config, "type_vocab_size"));
        status = coffer__gguf_keys_u32(keys, TOKENIZER, "token_type_count", (uint32_t)types, err);
    }
    return status;
}

static coffer_status parse(coffer__json **out, const coffer_mcf *model, uint32_t section,
                           const coffer_limits *limits, coffer_error *err)
{
    uint8_t *text = NULL;
    size_t len = 0;
    if (!coffer_mcf_find_section(model, section))
        return COFFER_OK;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer_mcf_read_section(&text, &len, model, section, err);
    if (!status && coffer__json_parse_python(out, (const char *)text, len, 0, limits, &cause))
        status = coffer__fail_other(err, coffer__fail_copy(err, &cause), coffer_mcf_section_name(section));
    coffer_free(text);
    return status;
}

coffer_status coffer__gguf_put_tokenizer(coffer__gguf_keys *keys, char reason[REASON_SIZE],
                                         const coffer__gguf_hf *hf, const coffer_mcf *model,
                                         const coffer_limits *limits, coffer_error *err)
{
    tokenizer made = { .table = COFFER__TABLE_INIT };
    coffer_status status = COFFER_OK;
    if (coffer__gguf_keys_have(keys, TOKENIZER, "model")) /* of a GGUF file that the model came from */
        return COFFER_OK;
    status = parse(&made.json, model, COFFER_MCF_TOKENIZER, limits, err);
    if (!status)
        status = parse(&made.settings_json, model, COFFER_MCF_TOKENIZER_CONFIG, limits, err);
    if (status || !made.json)
        goto out;
    made.root = coffer__json_root(made.json);
    made.model = coffer__gguf_look_up(made.root, "model");
    made.settings = made.settings_json ? coffer__json_root(made.settings_json) : NULL;
    choose_kind(&made);
    if (!made.kind)
        goto out;
    status = make_tokens(&made, hf->vocab_size, err);
    if (!status)
        status = put_kind(keys, &made, hf, err);
    if (!status)
        status = put_special(keys, &made, hf, err);
    const coffer__json_value *chat = coffer__gguf_look_up(made.settings, "chat_template");
    if (!status && chat && chat->kind == COFFER__JSON_STRING)
        status = coffer__gguf_keys_text(keys, "tokenizer.", "chat_template", chat->as.string,
                                        chat->string_len, err);
out:
    snprintf(reason, REASON_SIZE, "%s", made.reason);
    coffer__table_free(&made.table);
    coffer__free(made.tokens);
    coffer__json_free(made.settings_json);
    coffer__json_free(made.json);
    return status;
}
