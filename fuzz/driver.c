/* Runs a fuzz target as an ordinary test: over each file of its corpus, and over mutations of it that are the
 * same on every machine.
 *
 *   fuzz_NAME [-mutate N] FILE|FOLDER...
 *
 * An input that crashes or takes longer than SECONDS_PER_INPUT is printed before the program aborts. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_PER_INPUT = 20, MAX_INPUT = 1 << 20, MAX_EDITS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Present in programs with a sanitizer, whose reports do not raise a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static struct {
    uint64_t mutations; /* of each file */
    uint64_t files, inputs;
    char current[4200]; /* the input that runs, for the last words */
} run;

static void say_what_ran(void)
{
    ssize_t ignored = write(STDERR_FILENO, run.current, strlen(run.current));
    (void)ignored;
}

static void die_by_signal(int number)
{
    say_what_ran();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void watch_for_death(void)
{
    static const int deadly[] = { SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(say_what_ran);
    }
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        if (!__sanitizer_set_death_callback || deadly[i] == SIGALRM) {
            (void)signal(deadly[i], die_by_signal);
        }
    }
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Boundary values for the arithmetic of readers. */
static uint64_t edge_number(uint64_t *state)
{
    static const uint64_t edges[] = { 0,          1,          2,          0x7f,       0x80,
                                      0xff,       0x7fff,     0xffff,     0x7fffffff, 0x80000000,
                                      0xffffffff, 1ull << 32, 1ull << 40, INT64_MAX,  UINT64_MAX };
    return edges[next_random(state) % (sizeof edges / sizeof *edges)];
}

/* One edit in place; gives the new size, never more than the old one. */
static size_t edit(uint8_t *data, size_t size, uint64_t *state)
{
    if (size == 0) {
        return 0;
    }
    size_t at = next_random(state) % size;
    size_t length = 1 + next_random(state) % 64;
    length = length < size - at ? length : size - at;
    switch (next_random(state) % 6) {
    case 0:
        data[at] ^= (uint8_t)(1u << (next_random(state) % 8));
        return size;
    case 1:
        data[at] = (uint8_t)next_random(state);
        return size;
    case 2: { /* an edge number of 1, 2, 4 or 8 bytes, little-endian */
        uint64_t number = edge_number(state);
        size_t width = (size_t)1 << (next_random(state) % 4);
        for (size_t i = 0; i < width && at + i < size; i++) {
            data[at + i] = (uint8_t)(number >> (8 * i));
        }
        return size;
    }
    case 3: /* cut the end off */
        return at;
    case 4: /* cut a piece out */
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    default: /* copy a piece over another place */
        memmove(data + at, data + next_random(state) % (size - length + 1), length);
        return size;
    }
}

static void run_input(const char *path, uint64_t mutation, const uint8_t *data, size_t size)
{
    (void)snprintf(run.current, sizeof run.current, "while running %s, mutation %" PRIu64 "\n", path,
                   mutation);
    (void)alarm(SECONDS_PER_INPUT);
    (void)LLVMFuzzerTestOneInput(data, size);
    (void)alarm(0);
    run.inputs++;
}

/* Each mutation starts from the file again, in a block of exactly its size: a sanitizer then sees any byte
 * read past the end. */
static int run_mutations(const char *path, const uint8_t *original, size_t size)
{
    for (uint64_t i = 1; i <= run.mutations; i++) {
        uint8_t *scratch = malloc(size + 1);
        if (!scratch) {
            return -1;
        }
        memcpy(scratch, original, size);
        uint64_t state = i;
        size_t new_size = size;
        for (uint64_t edits = 1 + next_random(&state) % MAX_EDITS; edits > 0; edits--) {
            new_size = edit(scratch, new_size, &state);
        }
        uint8_t *exact = realloc(scratch, new_size ? new_size : 1);
        if (!exact) {
            free(scratch);
            return -1;
        }
        run_input(path, i, exact, new_size);
        free(exact);
    }
    return 0;
}

static int run_file(const char *path)
{
    int result = -1;
    uint8_t *data = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) {
        goto out;
    }
    data = malloc(MAX_INPUT);
    if (!data) {
        goto out;
    }
    size_t size = fread(data, 1, MAX_INPUT, file);
    if (ferror(file)) {
        goto out;
    }
    uint8_t *exact = realloc(data, size ? size : 1);
    data = exact ? exact : data;
    run_input(path, 0, data, size);
    result = run_mutations(path, data, size);
    run.files++;
out:
    if (result != 0) {
        perror(path);
    }
    free(data);
    if (file) {
        (void)fclose(file);
    }
    return result;
}

static int visit(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)where;
    if (kind == FTW_F) {
        return run_file(path);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-mutate") == 0) {
        run.mutations = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    watch_for_death();
    for (int i = first; i < argc; i++) {
        errno = 0;
        if (nftw(argv[i], visit, 16, FTW_PHYS) != 0) {
            perror(argv[i]);
            return 1;
        }
    }
    if (run.files == 0) {
        (void)fprintf(stderr, "usage: %s [-mutate N] FILE|FOLDER...: no file found\n", argv[0]);
        return 1;
    }
    printf("%" PRIu64 " files, %" PRIu64 " inputs\n", run.files, run.inputs);
    return 0;
}
