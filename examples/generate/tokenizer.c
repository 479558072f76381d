/* Byte-pair encoding as tokenizer.json describes it: of bytes (Llama 3, Qwen) or of characters with bytes as
 * a fallback (SentencePiece: Llama 2, Mistral). */
#include "generate.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#define WORD_START "\xe2\x96\x81" /* U+2581, the space of SentencePiece */

/* Maps a text, or two tokens, to a number. */
typedef struct slot {
    const char *text; /* NULL for a pair */
    uint64_t pair;
    int id, rank; /* id : -1 = free */
} slot;

typedef struct added {
    const char *text;
    int id;
} added;

struct tokenizer {
    slot *slots;
    size_t mask;
    const char **texts; /* by token; NULL for numbers that are not used */
    bool *special;
    int count;
    added *added;
    size_t added_count;
    bool bytes;       /* byte-level */
    bool whole_words; /* a word that is a token is not merged */
    bool prefix;      /* a space goes before the text */
    int digits;       /* of a number that stay together */
    bool gpt2;        /* the older pattern of words */
    int begin, unknown;
    int byte_tokens[256];
};

/* ---- Table ---- */

static uint64_t hash(const char *text, size_t len, uint64_t pair)
{
    uint64_t h = 0xcbf29ce484222325u ^ pair * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static slot *look_up(const tokenizer *tok, const char *text, size_t len, uint64_t pair)
{
    size_t i = hash(text, len, pair) & tok->mask;
    for (;; i = (i + 1) & tok->mask) {
        slot *s = &tok->slots[i];
        bool same =
            text ? s->text && strncmp(s->text, text, len) == 0 && !s->text[len] : !s->text && s->pair == pair;
        if (s->id < 0 || same)
            return s;
    }
}

static int find_token(const tokenizer *tok, const char *text, size_t len)
{
    return look_up(tok, text, len, 0)->id;
}

static uint64_t pair_of(int left, int right)
{
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

/* ---- Loading ---- */

/* A part of that type, alone or in a "Sequence". */
static const json *find_part(const json *part, const char *list, const char *type)
{
    if (strcmp(json_text(part, "type"), type) == 0)
        return part;
    const json *parts = json_get(part, list);
    for (const json *item = parts ? parts->first : NULL; item; item = item->next) {
        if (strcmp(json_text(item, "type"), type) == 0)
            return item;
    }
    return NULL;
}

static size_t count_members(const json *list)
{
    size_t count = 0;
    for (const json *item = list ? list->first : NULL; item; item = item->next)
        count++;
    return count;
}

static void add_token(tokenizer *tok, const char *text, double number)
{
    int id = (int)number;
    if (!(number >= 0) || id >= tok->count)
        die("tokenizer.json: token \"%s\" has the number %g, outside of the vocabulary", text, number);
    slot *s = look_up(tok, text, strlen(text), 0);
    *s = (slot){ .text = text, .id = id };
    tok->texts[id] = text;
}

static void load_vocab(tokenizer *tok, const json *root, const json *bpe)
{
    const json *vocab = json_get(bpe, "vocab"), *specials = json_get(root, "added_tokens");
    size_t tokens = count_members(vocab) + count_members(specials),
           merges = count_members(json_get(bpe, "merges"));
    size_t size = 1024;
    while (size < 2 * (tokens + merges))
        size *= 2;
    tok->mask = size - 1;
    tok->slots = allocate(size, sizeof *tok->slots);
    for (size_t i = 0; i < size; i++)
        tok->slots[i].id = -1;
    tok->count = (int)tokens;
    for (const json *item = specials ? specials->first : NULL; item; item = item->next) {
        if (json_number(item, "id", 0) >= tok->count)
            tok->count = (int)json_number(item, "id", 0) + 1;
    }
    tok->texts = allocate((size_t)tok->count, sizeof *tok->texts);
    tok->special = allocate((size_t)tok->count, sizeof *tok->special);
    tok->added = allocate(count_members(specials) + 1, sizeof *tok->added);
    for (const json *item = vocab ? vocab->first : NULL; item; item = item->next)
        add_token(tok, item->key, item->number);
    for (const json *item = specials ? specials->first : NULL; item; item = item->next) {
        const char *text = json_text(item, "content");
        add_token(tok, text, json_number(item, "id", -1));
        int id = find_token(tok, text, strlen(text));
        tok->added[tok->added_count++] = (added){ text, id };
        tok->special[id] = json_true(item, "special");
    }
}

/* "a b" or ["a", "b"]. */
static void load_merges(tokenizer *tok, const json *bpe)
{
    const json *merges = json_get(bpe, "merges");
    int rank = 0;
    for (const json *merge = merges ? merges->first : NULL; merge; merge = merge->next, rank++) {
        const char *left = merge->kind == JSON_LIST && merge->first ? merge->first->text : merge->text;
        const char *space = merge->kind == JSON_TEXT ? strchr(left, ' ') : NULL;
        const char *right = space                                ? space + 1
                            : merge->first && merge->first->next ? merge->first->next->text
                                                                 : NULL;
        if (!left || !right)
            die("tokenizer.json: merge %d is not a pair", rank);
        size_t left_len = space ? (size_t)(space - left) : strlen(left), right_len = strlen(right);
        char *both = allocate(left_len + right_len + 1, 1);
        memcpy(both, left, left_len);
        memcpy(both + left_len, right, right_len);
        int a = find_token(tok, left, left_len), b = find_token(tok, right, right_len);
        int id = find_token(tok, both, left_len + right_len);
        if (a < 0 || b < 0 || id < 0)
            continue;
        slot *s = look_up(tok, NULL, 0, pair_of(a, b));
        if (s->id < 0)
            *s = (slot){ .pair = pair_of(a, b), .id = id, .rank = rank };
    }
}

/* Splitting text into words: the patterns of GPT-2, Llama 3 and Qwen, which differ in numbers. */
static void choose_pattern(tokenizer *tok, const json *root)
{
    static const char words[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}";
    const json *pre = json_get(root, "pre_tokenizer"), *split = find_part(pre, "pretokenizers", "Split");
    const char *regex = json_text(json_get(split, "pattern"), "Regex");
    tok->gpt2 = !split;
    tok->digits = strncmp(regex + (split ? sizeof words - 1 : 0), "{1,3}", 5) == 0 ? 3 : 1;
    if (split && strncmp(regex, words, sizeof words - 1) != 0)
        die("tokenizer.json: the pattern of words is not that of Llama 3 or Qwen: %.60s", regex);
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        die("the locale C.UTF-8 is missing, which says what a letter is");
}

static void load_begin(tokenizer *tok, const json *root, const json *settings)
{
    const json *template = find_part(json_get(root, "post_processor"), "processors", "TemplateProcessing");
    const json *single = json_get(template, "single"), *setting = json_get(settings, "add_bos_token");
    const char *text =
        single && single->first ? json_text(json_get(single->first, "SpecialToken"), "id") : "";
    if (!*text && setting && setting->number != 0) {
        const json *begin = json_get(settings, "bos_token");
        text = begin && begin->kind == JSON_TEXT ? begin->text : json_text(begin, "content");
    }
    tok->begin = *text ? find_token(tok, text, strlen(text)) : -1;
}

tokenizer *tokenizer_open(const coffer_mcf *file)
{
    const json *root = json_section(file, COFFER_MCF_TOKENIZER), *bpe = json_get(root, "model");
    const json *settings = json_section(file, COFFER_MCF_TOKENIZER_CONFIG),
               *pre = json_get(root, "pre_tokenizer");
    const json *space = find_part(pre, "pretokenizers", "Metaspace");
    tokenizer *tok = allocate(1, sizeof *tok);
    if (!root)
        die("the file has no tokenizer.json: pack the whole folder of the model with `coffer pack`");
    if (strcmp(json_text(bpe, "type"), "BPE") != 0)
        die("tokenizer.json: a model of type \"%s\" is not supported; BPE is", json_text(bpe, "type"));
    tok->bytes = find_part(pre, "pretokenizers", "ByteLevel") != NULL;
    tok->whole_words = json_true(bpe, "ignore_merges");
    tok->prefix = find_part(json_get(root, "normalizer"), "normalizers", "Prepend") ||
                  (space && strcmp(json_text(space, "prepend_scheme"), "never") != 0);
    load_vocab(tok, root, bpe);
    load_merges(tok, bpe);
    if (tok->bytes)
        choose_pattern(tok, root);
    load_begin(tok, root, settings);
    tok->unknown = find_token(tok, json_text(bpe, "unk_token"), strlen(json_text(bpe, "unk_token")));
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        tok->byte_tokens[i] = find_token(tok, name, 6);
    }
    return tok;
}

/* ---- Encoding ---- */

/* Merges the pair that was learned first, again and again. */
static size_t merge(const tokenizer *tok, int *tokens, size_t count)
{
    for (;;) {
        const slot *best = NULL;
        size_t place = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const slot *s = look_up(tok, NULL, 0, pair_of(tokens[i], tokens[i + 1]));
            if (s->id >= 0 && (!best || s->rank < best->rank)) {
                best = s;
                place = i;
            }
        }
        if (!best)
            return count;
        tokens[place] = best->id;
        count--;
        memmove(tokens + place + 1, tokens + place + 2, (count - place - 1) * sizeof *tokens);
    }
}

static size_t char_length(const char *text)
{
    unsigned char c = (unsigned char)*text;
    size_t length = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 1; /* not UTF-8: a byte by itself */
    }
    return length;
}

/* The characters of a text, or their bytes where the vocabulary does not have them. */
static size_t encode_chars(const tokenizer *tok, int *tokens, const char *text, size_t len)
{
    size_t count = 0;
    for (size_t at = 0, n; at < len; at += n) {
        n = char_length(text + at);
        int id = find_token(tok, text + at, n);
        for (size_t i = 0; id < 0 && i < n; i++) {
            int byte = tok->byte_tokens[(unsigned char)text[at + i]];
            if (byte < 0 && tok->unknown < 0)
                die("the vocabulary has no token for \"%.*s\"", (int)n, text + at);
            tokens[count++] = byte >= 0 ? byte : tok->unknown;
        }
        if (id >= 0)
            tokens[count++] = id;
    }
    return merge(tok, tokens, count);
}

/* Bytes are written as printable characters: most as themselves, the others from U+0100 on. */
static unsigned char_of_byte(unsigned byte)
{
    unsigned shifted = 0;
    for (unsigned i = 0; i < byte; i++)
        shifted += !((i >= '!' && i <= '~') || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE);
    bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    return printable ? byte : 0x100 + shifted;
}

static size_t encode_bytes(const tokenizer *tok, int *tokens, const char *word, size_t len)
{
    char *spelled = malloc(2 * len + 1);
    size_t used = 0;
    if (!spelled)
        die("out of memory");
    for (size_t i = 0; i < len; i++) {
        unsigned code = char_of_byte((unsigned char)word[i]);
        if (code >= 0x80)
            spelled[used++] = (char)(0xC0 | code >> 6);
        spelled[used++] = (char)(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
    }
    int whole = tok->whole_words ? find_token(tok, spelled, used) : -1;
    size_t count = 1;
    if (whole >= 0)
        tokens[0] = whole;
    else
        count = encode_chars(tok, tokens, spelled, used);
    free(spelled);
    return count;
}

/* ---- Words of byte-level tokenizers ---- */

typedef enum char_kind { LETTER, NUMBER, SPACE, LINE_END, OTHER, TEXT_END } char_kind;

/* The kind of the character at `at`, as the C library knows it. */
static char_kind kind_at(const char *text, size_t len, size_t at, size_t *n)
{
    *n = 0;
    if (at >= len)
        return TEXT_END;
    *n = char_length(text + at);
    wint_t c = (unsigned char)text[at];
    if (*n > 1)
        c &= 0x7Fu >> *n;
    for (size_t i = 1; i < *n; i++)
        c = c << 6 | ((unsigned char)text[at + i] & 0x3F);
    if (c == '\r' || c == '\n')
        return LINE_END;
    if (iswspace(c) || c == 0xA0 || c == 0x2007 || c == 0x202F || c == 0x85)
        return SPACE;
    bool is_number = (c >= '0' && c <= '9') || c == 0xB2 || c == 0xB3 || c == 0xB9 ||
                     (c >= 0xBC && c <= 0xBE) || (c >= 0x660 && c <= 0x669) || (c >= 0x966 && c <= 0x96F) ||
                     (c >= 0x2070 && c <= 0x2089) || (c >= 0x2150 && c <= 0x2189) ||
                     (c >= 0x2460 && c <= 0x249B) || (c >= 0xFF10 && c <= 0xFF19);
    return is_number ? NUMBER : iswalpha(c) ? LETTER : OTHER;
}

/* The length of a run of one kind, at most `max` characters. */
static size_t run(const char *text, size_t len, size_t at, char_kind kind, int max)
{
    size_t start = at, n;
    while (max-- > 0 && kind_at(text, len, at, &n) == kind)
        at += n;
    return at - start;
}

static size_t contraction(const tokenizer *tok, const char *text, size_t len)
{
    static const char *const ends[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (size_t i = 0; text[0] == '\'' && i < 7; i++) {
        size_t n = strlen(ends[i]), j = 0;
        while (j < n && j + 1 < len && (tok->gpt2 ? text[j + 1] : (text[j + 1] | 0x20)) == ends[i][j])
            j++;
        if (j == n)
            return n + 1;
    }
    return 0;
}

/* White space up to the end of a line, or all but the last space before a word. */
static size_t space_length(const tokenizer *tok, const char *text, size_t len, size_t at)
{
    size_t end = at, last = at, line = at, n;
    char_kind kind;
    while ((kind = kind_at(text, len, end, &n)) == SPACE || kind == LINE_END) {
        last = end;
        end += n;
        line = kind == LINE_END ? end : line;
    }
    if (line > at && !tok->gpt2)
        return line - at;
    return kind == TEXT_END || last == at ? end - at : last - at;
}

static size_t word_length(const tokenizer *tok, const char *text, size_t len, size_t at)
{
    size_t n, next, length = contraction(tok, text + at, len - at);
    char_kind kind = kind_at(text, len, at, &n), after = kind_at(text, len, at + n, &next);
    bool space = text[at] == ' ';
    if (length)
        return length;
    if (kind == LETTER)
        return run(text, len, at, LETTER, INT32_MAX);
    if (after == LETTER && (tok->gpt2 ? space : kind == SPACE || kind == OTHER))
        return n + run(text, len, at + n, LETTER, INT32_MAX);
    if (kind == NUMBER)
        return run(text, len, at, NUMBER, tok->gpt2 ? INT32_MAX : tok->digits);
    if (tok->gpt2 && space && after == NUMBER)
        return 1 + run(text, len, at + 1, NUMBER, INT32_MAX);
    if (kind == OTHER || (space && after == OTHER)) {
        size_t signs =
            (kind == OTHER ? 0 : 1) + run(text, len, at + (kind == OTHER ? 0 : 1), OTHER, INT32_MAX);
        return signs + (tok->gpt2 ? 0 : run(text, len, at + signs, LINE_END, INT32_MAX));
    }
    return space_length(tok, text, len, at);
}

static size_t encode_plain(const tokenizer *tok, int *tokens, const char *text, size_t len, bool first)
{
    size_t count = 0;
    if (tok->bytes) {
        for (size_t at = 0, n; at < len; at += n) {
            n = word_length(tok, text, len, at);
            count += encode_bytes(tok, tokens + count, text + at, n);
        }
        return count;
    }
    char *spelled = malloc(3 * len + 4);
    size_t used = 0;
    if (!spelled)
        die("out of memory");
    for (size_t i = first && tok->prefix && len ? 0 : 1; i <= len;
         i++) { /* from the space before the text on */
        bool space = i == 0 || text[i - 1] == ' ';
        memcpy(spelled + used, space ? WORD_START : text + i - 1, space ? 3 : 1);
        used += space ? 3 : 1;
    }
    count = encode_chars(tok, tokens, spelled, used);
    free(spelled);
    return count;
}

/* The longest token that was added to the vocabulary and is at the start of the text. */
static const added *added_at(const tokenizer *tok, const char *text)
{
    const added *best = NULL;
    for (size_t i = 0; i < tok->added_count; i++) {
        size_t n = strlen(tok->added[i].text);
        if (n && strncmp(text, tok->added[i].text, n) == 0 && (!best || n > strlen(best->text)))
            best = &tok->added[i];
    }
    return best;
}

size_t tokenizer_encode(const tokenizer *tok, int *tokens, const char *text)
{
    size_t count = 0;
    bool first = true;
    if (tok->begin >= 0)
        tokens[count++] = tok->begin;
    while (*text) {
        size_t len = 0;
        while (text[len] && !added_at(tok, text + len))
            len++;
        count += encode_plain(tok, tokens + count, text, len, first);
        first = false;
        text += len;
        const added *special = *text ? added_at(tok, text) : NULL;
        if (special) {
            tokens[count++] = special->id;
            text += strlen(special->text);
        }
    }
    return count;
}

/* ---- Printing ---- */

static void print_bytes(FILE *out, const char *text)
{
    for (; *text; text += char_length(text)) {
        unsigned code = (unsigned char)*text;
        if (char_length(text) == 2)
            code = (code & 0x1F) << 6 | ((unsigned char)text[1] & 0x3F);
        unsigned byte = code;
        for (unsigned i = 0; code >= 0x100 && i < 256; i++)
            byte = char_of_byte(i) == code ? i : byte;
        putc((int)byte, out);
    }
}

void tokenizer_print(const tokenizer *tok, FILE *out, int token, bool first)
{
    const char *text = token >= 0 && token < tok->count ? tok->texts[token] : NULL;
    unsigned byte;
    if (!text || tok->special[token])
        return;
    if (tok->bytes) {
        print_bytes(out, text);
        return;
    }
    if (strlen(text) == 6 && sscanf(text, "<0x%2X>", &byte) == 1) {
        putc((int)byte, out);
        return;
    }
    for (; *text; first = false) {
        bool space = strncmp(text, WORD_START, 3) == 0;
        if (!space)
            putc(*text, out);
        else if (!(first && tok->prefix))
            putc(' ', out);
        text += space ? 3 : 1;
    }
}
