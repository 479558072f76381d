/* Continues a text with a model: `generate model.mcf -p "Once upon a time"`. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "generate.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: generate [options] MODEL.mcf\n"
    "  -p, --prompt TEXT       text to continue (default: empty)\n"
    "  -n, --tokens N          tokens to generate (default: 128)\n"
    "  -t, --temperature T     0 takes the most likely token (default: 0.8)\n"
    "      --top-k N           choose among the N most likely tokens (default: 40; 0 = all)\n"
    "      --top-p P           choose among the tokens that make up this probability (default: 0.95)\n"
    "      --seed N            of the choices (default: by the clock)\n"
    "      --threads N         default: one per core\n"
    "      --context N         tokens of prompt and text (default: the model's, at most 4096)\n"
    "      --exact             do not round the inputs of products with quantized weights to 8 bits\n"
    "      --ignore-end        continue after the token that ends a text\n"
    "      --logits            print the logits after the prompt, one a line, instead of a text\n"
    "      --list-tokens       print the numbers of the tokens: of the prompt with -n 0, else of the text\n";

typedef struct options {
    const char *path, *prompt;
    size_t tokens, top_k;
    double temperature, top_p;
    uint64_t seed;
    model_opts model;
    bool ignore_end, logits, list_tokens;
} options;

typedef struct block {
    struct block *next;
    max_align_t start;
} block;

static block *blocks;

_Noreturn void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("generate: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(3);
}

void *allocate(size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - sizeof(block)) / size)
        die("out of memory");
    block *b = calloc(1, sizeof *b + count * size);
    if (!b)
        die("out of memory");
    b->next = blocks;
    blocks = b;
    return &b->start;
}

static void free_blocks(void)
{
    while (blocks) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

/* ---- Options ---- */

static double parse_number(const char *option, const char *text, double least, double most)
{
    char *end;
    double number = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(number >= least && number <= most)) {
        fprintf(stderr, "generate: %s requires a number from %g to %g\n%s", option, least, most, usage);
        exit(2);
    }
    return number;
}

static bool is(const char *argument, const char *letter, const char *word)
{
    return strcmp(argument, letter) == 0 || strcmp(argument, word) == 0;
}

static options parse_options(int argc, char **argv)
{
    options o = { .prompt = "", .tokens = 128, .top_k = 40, .temperature = 0.8, .top_p = 0.95 };
    const struct {
        const char *name;
        bool *value;
    } switches[] = { { "--exact", &o.model.exact },
                     { "--ignore-end", &o.ignore_end },
                     { "--logits", &o.logits },
                     { "--list-tokens", &o.list_tokens } };
    o.seed = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i], *value = argv[i + 1];
        bool takes_value = true;
        if (is(argument, "-p", "--prompt"))
            o.prompt = value ? value : "";
        else if (is(argument, "-n", "--tokens"))
            o.tokens = (size_t)parse_number(argument, value, 0, 1e6);
        else if (is(argument, "-t", "--temperature"))
            o.temperature = parse_number(argument, value, 0, 100);
        else if (is(argument, "", "--top-k"))
            o.top_k = (size_t)parse_number(argument, value, 0, 1e6);
        else if (is(argument, "", "--top-p"))
            o.top_p = parse_number(argument, value, 0, 1);
        else if (is(argument, "", "--seed"))
            o.seed = (uint64_t)parse_number(argument, value, 0, 9e15);
        else if (is(argument, "", "--threads"))
            o.model.threads = (uint32_t)parse_number(argument, value, 0, 1024);
        else if (is(argument, "", "--context"))
            o.model.context = (uint32_t)parse_number(argument, value, 1, 1 << 24);
        else {
            bool is_switch = false;
            takes_value = false;
            for (size_t j = 0; j < sizeof switches / sizeof *switches; j++) {
                if (strcmp(argument, switches[j].name) == 0)
                    is_switch = *switches[j].value = true;
            }
            if (is(argument, "-h", "--help")) {
                fputs(usage, stdout);
                exit(0);
            }
            if (!is_switch && argument[0] == '-') {
                fprintf(stderr, "generate: unknown option %s\n%s", argument, usage);
                exit(2);
            }
            if (!is_switch)
                o.path = argument;
        }
        i += takes_value;
    }
    if (!o.path) {
        fprintf(stderr, "generate: no model given\n%s", usage);
        exit(2);
    }
    return o;
}

/* ---- Sampling ---- */

typedef struct candidate {
    float logit;
    int token;
} candidate;

static int by_logit(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

/* A number from 0 to 1 (splitmix64). */
static double next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static int choose(const options *o, candidate *candidates, const float *logits, size_t count,
                  uint64_t *random)
{
    double sum = 0, kept = 0, limit = 0;
    size_t best = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        candidates[i] = (candidate){ logits[i], (int)i };
        best = logits[i] > logits[best] ? i : best;
    }
    if (o->temperature == 0)
        return (int)best;
    qsort(candidates, count, sizeof *candidates, by_logit);
    if (o->top_k && o->top_k < count)
        count = o->top_k;
    double top = (double)candidates[0].logit;
    for (size_t i = 0; i < count; i++)
        sum += exp(((double)candidates[i].logit - top) / o->temperature);
    for (last = 0; last < count && (last == 0 || kept < o->top_p * sum); last++)
        kept += exp(((double)candidates[last].logit - top) / o->temperature);
    limit = next_random(random) * kept;
    for (size_t i = 0; i < last; i++) {
        limit -= exp(((double)candidates[i].logit - top) / o->temperature);
        if (limit < 0)
            return candidates[i].token;
    }
    return candidates[last - 1].token;
}

/* ---- Text ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void generate(const options *o, model *m, const tokenizer *tok, const int *prompt, size_t prompt_count)
{
    double start = now(), prompted;
    const float *logits = model_forward(m, prompt, prompt_count);
    candidate *candidates = allocate(model_vocab_size(m), sizeof *candidates);
    uint64_t random = o->seed;
    size_t count = 0, room = model_context(m) - prompt_count;
    prompted = now();
    if (!o->list_tokens)
        fputs(o->prompt, stdout);
    while (count < o->tokens) {
        int token = choose(o, candidates, logits, model_vocab_size(m), &random);
        if (model_is_end(m, token) && !o->ignore_end)
            break;
        if (o->list_tokens)
            printf("%d\n", token);
        else
            tokenizer_print(tok, stdout, token, count == 0 && !*o->prompt);
        fflush(stdout);
        if (++count >= o->tokens || count > room)
            break;
        logits = model_forward(m, &token, 1);
    }
    if (!o->list_tokens)
        putchar('\n');
    fprintf(stderr, "prompt: %zu tokens, %.1f tokens/s; text: %zu tokens, %.1f tokens/s\n", prompt_count,
            (double)prompt_count / (prompted - start), count, (double)count / (now() - prompted));
}

int main(int argc, char **argv)
{
    options o = parse_options(argc, argv);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf *file = NULL;
    if (coffer_mcf_open_path(&file, o.path, NULL, &err))
        die("%s: %s", o.path, err.text);
    tokenizer *tok = tokenizer_open(file);
    int *prompt = allocate(3 * strlen(o.prompt) + 5, sizeof *prompt);
    size_t count = tokenizer_encode(tok, prompt, o.prompt);
    if (o.list_tokens && o.tokens == 0) {
        for (size_t i = 0; i < count; i++)
            printf("%d\n", prompt[i]);
    } else {
        if (count == 0)
            die("the model needs a prompt: it has no token that begins a text");
        model *m = model_open(file, o.model);
        const float *logits = o.logits ? model_forward(m, prompt, count) : NULL;
        for (size_t i = 0; logits && i < model_vocab_size(m); i++)
            printf("%.6f\n", (double)logits[i]);
        if (!logits)
            generate(&o, m, tok, prompt, count);
        model_close(m);
    }
    coffer_mcf_close(file);
    free_blocks();
    return ferror(stdout) ? 3 : 0;
}
