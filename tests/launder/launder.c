/* Whether damage can be laundered: a small file that Coffer wrote is changed in every way that a disk or a
 * transfer can change it, and every verb is run on the copy. No verb may end with 0 and have an output that
 * differs from that of the good file, unless `check --full` finds the damage in the output. One that
 * ends with 1, as with --damaged keep, must have marked the damage in its output. And `check --full` must
 * find every changed bit of the file itself.
 *
 *   test_launder FORMAT LIST [all[:STEP]] [VERB]
 *
 * LIST names the cases that are known to fail, a line each with the defect: "compact X3". One that is listed
 * and does not fail is an error too, so the list can only shrink. "check" means the changed bits that
 * check does not find. Without "all", every verb sees a sample of the changes, always the same one; "all:3"
 * is every third of all. */
#include "launder.h"

#include "coffer/coffer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_FILES = 24,
    MOST_KNOWN = 64,
    LONG_RUN = 48,    /* equal bytes after which only some of a run are changed */
    RUN_PLACES = 64,  /* about that many of the file */
    SHORT_STEP = 509, /* and never closer than this */
    SAMPLED_FLIPS = 48,
    KEPT_FLIPS = 12,  /* for a verb that is run with --damaged keep */
    RANGE_PLACES = 4, /* where ranges are changed; with "all", ALL_RANGE_PLACES */
    ALL_RANGE_PLACES = 64,
    MOST_PRINTED = 3, /* failures of a verb, with "all" */
    EXIT_FOUND = 1,
    EXIT_CANNOT = 99 /* of a child that could not begin */
};

int coffer_main(int argc, char **argv);

typedef struct blob {
    uint8_t *bytes;
    size_t len;
    bool exists;
} blob;

typedef struct named_blob {
    char name[256];
    blob content;
} named_blob;

typedef struct folder {
    named_blob files[MOST_FILES];
    size_t count;
} folder;

/* Exit status and files of a command. */
typedef struct outcome {
    int status; /* exit status, or 128 + signal */
    folder files;
} outcome;

typedef struct known_case {
    char name[40], defect[24];
    bool failed;
} known_case;

typedef struct launder {
    const launder_format *format;
    char path[64]; /* the folder that commands run in */
    folder start;  /* its files before each command */
    blob good;
    known_case known[MOST_KNOWN];
    size_t known_count;
    size_t failures, runs;
} launder;

static void die(const char *what)
{
    fprintf(stderr, "test_launder: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- Files ---- */

static blob read_blob(const char *path)
{
    blob out = { 0 };
    struct stat info;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return out;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return out;
    }
    out.bytes = malloc((size_t)info.st_size + 1);
    while (out.bytes && out.len < (size_t)info.st_size) {
        ssize_t some = read(fd, out.bytes + out.len, (size_t)info.st_size - out.len);
        if (some <= 0)
            break;
        out.len += (size_t)some;
    }
    close(fd);
    if (!out.bytes)
        die(path);
    out.exists = true;
    return out;
}

static void write_blob(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        die(path);
    close(fd);
}

static bool is_same(const blob *a, const blob *b)
{
    return a->exists == b->exists && a->len == b->len &&
           (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

static blob copy_blob(const blob *from)
{
    blob out = { malloc(from->len + 1), from->len, true };
    if (!out.bytes)
        die("memory");
    memcpy(out.bytes, from->bytes, from->len);
    return out;
}

static void free_folder(folder *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->files[i].content.bytes);
    files->count = 0;
}

static const blob *find_file(const folder *files, const char *name)
{
    static const blob none;
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].name, name) == 0)
            return &files->files[i].content;
    }
    return &none;
}

/* Everything in the current folder. Folders in it are not looked into. */
static void read_folder(folder *out)
{
    DIR *list = opendir(".");
    out->count = 0;
    if (!list)
        die("the folder");
    for (struct dirent *entry; (entry = readdir(list)) && out->count < MOST_FILES;) {
        named_blob *file = &out->files[out->count];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file->name, sizeof file->name, "%s", entry->d_name);
        file->content = read_blob(entry->d_name);
        out->count += file->content.exists;
    }
    closedir(list);
}

static void empty_folder(void)
{
    DIR *list = opendir(".");
    if (!list)
        die("the folder");
    for (struct dirent *entry; (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(entry->d_name);
    }
    closedir(list);
}

/* ---- Commands ---- */

static int wait_for(pid_t child)
{
    int state;
    while (waitpid(child, &state, 0) < 0) {
        if (errno != EINTR)
            die("waitpid");
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static int run_words(const char *const *words)
{
    char *argv[MOST_WORDS + 2] = { (char *)(uintptr_t) "coffer" };
    int argc = 1;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child > 0)
        return wait_for(child);
    int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0644), err = open("/dev/null", O_WRONLY);
    int in = open("/dev/null", O_RDONLY);
    if (out < 0 || err < 0 || in < 0)
        _exit(EXIT_CANNOT);
    dup2(in, 0);
    dup2(out, 1);
    dup2(getenv("LAUNDER_STDERR") ? 2 : err, 2);
    for (; words[argc - 1]; argc++) {
        static char data[MOST_WORDS][512];
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
        if (words[argc - 1][0] != '@')
            continue;
        snprintf(data[argc - 1], sizeof data[0], "%s%s", COFFER_TEST_DATA, words[argc - 1] + 1);
        argv[argc] = data[argc - 1];
    }
    int status = coffer_main(argc, argv);
    fflush(NULL);
    _exit(status);
}

static void run_verb(outcome *out, launder *test, const launder_verb *verb, const blob *file)
{
    empty_folder();
    for (size_t i = 0; i < test->start.count; i++)
        write_blob(test->start.files[i].name, test->start.files[i].content.bytes,
                   test->start.files[i].content.len);
    write_blob(test->format->file, file->bytes, file->len);
    test->runs++;
    out->status = run_words(verb->words);
    read_folder(&out->files);
}

/* In a child: a damaged file must not end the test. */
static bool passes_check(const blob *file)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child > 0)
        return wait_for(child) == 0;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    opts.full = true;
    opts.threads = 1;
    if (coffer_source_from_memory(&src, file->bytes, file->len, NULL) || coffer_report_new(&report, 0, NULL))
        _exit(EXIT_CANNOT);
    bool clean = coffer_check(report, src, &opts, NULL) == COFFER_OK &&
                 coffer_report_total(report, COFFER_ERROR) + coffer_report_total(report, COFFER_WARNING) == 0;
    _exit(clean ? 0 : 1);
}

/* ---- Known failures ---- */

static void read_list(launder *test, const char *path)
{
    FILE *list = fopen(path, "r");
    char line[160];
    if (!list)
        die(path);
    while (fgets(line, sizeof line, list)) {
        known_case *known = &test->known[test->known_count];
        if (line[0] == '#' || sscanf(line, "%39s %23s", known->name, known->defect) != 2)
            continue;
        if (++test->known_count == MOST_KNOWN)
            break;
    }
    fclose(list);
}

/* Reports the first failure of a case. */
static void fail_case(launder *test, const char *name, const char *change, const char *why)
{
    for (size_t i = 0; i < test->known_count; i++) {
        if (strcmp(test->known[i].name, name) == 0) {
            test->known[i].failed = true;
            return;
        }
    }
    printf("%s: %s after %s: %s\n", test->format->name, name, change, why);
    test->failures++;
}

static void report_unexpected_passes(launder *test)
{
    for (size_t i = 0; i < test->known_count; i++) {
        if (test->known[i].failed)
            continue;
        printf("%s: %s is listed with %s and does not fail: remove it from the list\n", test->format->name,
               test->known[i].name, test->known[i].defect);
        test->failures++;
    }
}

/* ---- Comparing ---- */

/* Files of Coffer, which a check can tell about. */
static bool can_check(const blob *file)
{
    coffer_source *src = NULL;
    const coffer_format *format = NULL;
    bool known = coffer_source_from_memory(&src, file->bytes, file->len, NULL) == COFFER_OK &&
                 coffer_identify(&format, src, NULL) == COFFER_OK;
    coffer_source_close(src);
    return known;
}

/* info describes damaged files too, and says that they are. */
static bool says_damaged(const blob *text)
{
    static const char *const words[] = { "damage", "trailing bytes", "truncated", "does not match" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (memmem(text->bytes, text->len, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

/* Whether a verb that writes files, or changes the damaged one, wrote those of the good file: then it may say
 * what it did to get there. */
static bool wrote_the_same(const launder *test, const folder *expected, const folder *found)
{
    size_t written = is_same(find_file(found, test->format->file), find_file(expected, test->format->file));
    for (size_t i = 0; i < expected->count; i++) {
        const named_blob *file = &expected->files[i];
        if (strncmp(file->name, "out.", 4) != 0)
            continue;
        written++;
        if (!is_same(&file->content, find_file(found, file->name)))
            return false;
    }
    return written > 0;
}

/* A verb that reported damage may write it, and must have marked it there. */
static const char *find_unmarked(const launder *test, const outcome *expected, const outcome *found,
                                 const blob *damaged)
{
    static char text[320];
    for (size_t i = 0; i < found->files.count; i++) {
        const named_blob *file = &found->files.files[i];
        bool is_input = strcmp(file->name, test->format->file) == 0;
        if (is_same(&file->content, find_file(&expected->files, file->name)) ||
            is_same(&file->content, find_file(&test->start, file->name)) ||
            (is_input && is_same(&file->content, damaged)) || !can_check(&file->content) ||
            !passes_check(&file->content))
            continue;
        snprintf(text, sizeof text, "exit 1, and %s is different and clean", file->name);
        return text;
    }
    return NULL;
}

/* Describes the fault in the outcome of a verb on a damaged file, or NULL. repairs : the verb is repair,
 * which drops what it cannot save, names it and ends with 1; what it keeps may be intact. */
static const char *find_fault(const launder *test, const outcome *expected, const outcome *found,
                              const blob *damaged, bool repairs)
{
    static char text[320];
    if (found->status >= 128) {
        snprintf(text, sizeof text, "ended by signal %d", found->status - 128);
        return text;
    }
    if (found->status == EXIT_FOUND && !repairs)
        return find_unmarked(test, expected, found, damaged);
    if (found->status != 0)
        return NULL;
    for (size_t i = 0; i < expected->files.count; i++) {
        if (!find_file(&found->files, expected->files.files[i].name)->exists) {
            snprintf(text, sizeof text, "exit 0 without %s", expected->files.files[i].name);
            return text;
        }
    }
    for (size_t i = 0; i < found->files.count; i++) {
        const named_blob *file = &found->files.files[i];
        const blob *wanted = find_file(&expected->files, file->name);
        bool is_input = strcmp(file->name, test->format->file) == 0;
        if (strcmp(file->name, "stdout") == 0 && wrote_the_same(test, &expected->files, &found->files))
            continue;
        if (is_same(&file->content, wanted) || (is_input && is_same(&file->content, damaged)))
            continue;
        if (can_check(&file->content) && !passes_check(&file->content))
            continue;
        if (strcmp(file->name, "stdout") == 0 && says_damaged(&file->content))
            continue;
        snprintf(text, sizeof text, "exit 0, and %s is different and clean", file->name);
        return text;
    }
    return NULL;
}

/* ---- Changes ---- */

typedef enum change_kind { FLIP, REMOVE, ZERO, REPEAT } change_kind;

typedef struct change {
    change_kind kind;
    size_t offset, len; /* a flip: len is the bit */
} change;

static blob apply(const blob *good, const change *what)
{
    size_t after = what->offset + what->len;
    blob out = { malloc(2 * good->len + 1), good->len, true };
    if (!out.bytes)
        die("memory");
    memcpy(out.bytes, good->bytes, good->len);
    switch (what->kind) {
    case FLIP:
        out.bytes[what->offset] ^= (uint8_t)(1u << what->len);
        break;
    case REMOVE:
        memmove(out.bytes + what->offset, out.bytes + after, good->len - after);
        out.len -= what->len;
        break;
    case ZERO:
        memset(out.bytes + what->offset, 0, what->len);
        break;
    case REPEAT:
        memcpy(out.bytes + after, good->bytes + what->offset, good->len - what->offset);
        out.len += what->len;
        break;
    }
    return out;
}

static const char *describe(char out[80], const change *what)
{
    static const char *const kinds[] = { "flipping bit", "removing", "zeroing", "repeating" };
    if (what->kind == FLIP)
        snprintf(out, 80, "%s %zu of byte %zu", kinds[FLIP], what->len, what->offset);
    else
        snprintf(out, 80, "%s %zu bytes at %zu", kinds[what->kind], what->len, what->offset);
    return out;
}

/* Whether a byte is worth changing: of long runs of equal bytes, such as padding, only some are. */
static bool is_interesting(const blob *good, size_t offset)
{
    size_t step = good->len / RUN_PLACES > SHORT_STEP ? good->len / RUN_PLACES : SHORT_STEP, run = 0;
    while (run < LONG_RUN && run < offset && good->bytes[offset - run - 1] == good->bytes[offset])
        run++;
    return run < LONG_RUN || offset % step == 0;
}

static size_t list_interesting(size_t **out, const blob *good)
{
    size_t count = 0, *list = malloc((good->len + 1) * sizeof *list);
    if (!list)
        die("memory");
    for (size_t i = 0; i < good->len; i++) {
        if (is_interesting(good, i))
            list[count++] = i;
    }
    *out = list;
    return count;
}

/* The changes that every verb sees. */
static size_t list_changes(change **out, const blob *good, bool all)
{
    static const size_t lengths[] = { 1, 12, 512 };
    size_t *bytes, interesting = list_interesting(&bytes, good), count = 0;
    size_t flips = all ? 8 * interesting : SAMPLED_FLIPS;
    size_t places = all ? ALL_RANGE_PLACES : RANGE_PLACES, most = flips + 3 * 3 * places + 1;
    change *list = calloc(most, sizeof *list);
    if (!list)
        die("memory");
    for (size_t i = 0; i < flips; i++) {
        size_t bit = all ? i : i * 8 * interesting / flips + i % 8;
        if (bit < 8 * interesting)
            list[count++] = (change){ FLIP, bytes[bit / 8], bit % 8 };
    }
    for (size_t place = 0; place < places; place++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            size_t offset = bytes[interesting * (2 * place + 1) / (2 * places)];
            for (int kind = REMOVE; kind <= REPEAT; kind++) {
                change what = { (change_kind)kind, offset, lengths[i] };
                if (offset + what.len <= good->len)
                    list[count++] = what;
            }
        }
    }
    free(bytes);
    *out = list;
    return count;
}

/* ---- The tests ---- */

static void check_every_bit(launder *test)
{
    size_t *bytes, count = list_interesting(&bytes, &test->good), passed = 0, first = 0;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    opts.full = true;
    opts.threads = 1;
    blob file = copy_blob(&test->good);
    for (size_t i = 0; i < 8 * count; i++) {
        uint8_t *byte = &file.bytes[bytes[i / 8]];
        coffer_source *src = NULL;
        coffer_report *report = NULL;
        *byte ^= (uint8_t)(1u << i % 8);
        if (coffer_source_from_memory(&src, file.bytes, file.len, NULL) ||
            coffer_report_new(&report, 0, NULL))
            die("memory");
        if (coffer_check(report, src, &opts, NULL) == COFFER_OK &&
            coffer_report_total(report, COFFER_ERROR) + coffer_report_total(report, COFFER_WARNING) == 0 &&
            passed++ == 0)
            first = bytes[i / 8];
        coffer_report_free(report);
        coffer_source_close(src);
        *byte ^= (uint8_t)(1u << i % 8);
    }
    free(file.bytes);
    free(bytes);
    printf("%s: %zu bits of %zu bytes changed, check --full misses %zu\n", test->format->name, 8 * count,
           test->good.len, passed);
    if (passed > 0) {
        char where[80];
        snprintf(where, sizeof where, "flipping a bit of byte %zu", first);
        fail_case(test, "check", where, "check --full finds nothing");
    }
}

static bool is_repeatable(launder *test, const launder_verb *verb, outcome *expected)
{
    outcome again;
    run_verb(expected, test, verb, &test->good);
    run_verb(&again, test, verb, &test->good);
    bool same = again.status == expected->status && again.files.count == expected->files.count;
    for (size_t i = 0; same && i < again.files.count; i++)
        same = is_same(&again.files.files[i].content, find_file(&expected->files, again.files.files[i].name));
    free_folder(&again.files);
    return same;
}

/* Describes the fault of a verb after a change, or NULL. */
static const char *try_change(launder *test, const launder_verb *verb, const outcome *expected,
                              const change *what)
{
    blob damaged = apply(&test->good, what);
    outcome found;
    const char *fault = NULL;
    if (!is_same(&damaged, &test->good)) {
        run_verb(&found, test, verb, &damaged);
        fault = find_fault(test, expected, &found, &damaged, strncmp(verb->name, "repair", 6) == 0);
        free_folder(&found.files);
    }
    free(damaged.bytes);
    return fault;
}

/* Without "all" the first fault ends the test of a verb. */
static void test_verb(launder *test, const launder_verb *verb, const change *changes, size_t count, bool all,
                      size_t step)
{
    outcome expected;
    size_t name_len = strlen(verb->name), faults = 0;
    bool keeps = name_len > 5 && strcmp(verb->name + name_len - 5, "-keep") == 0;
    if (keeps && !all)
        step = SAMPLED_FLIPS / KEPT_FLIPS;
    if (!is_repeatable(test, verb, &expected))
        fail_case(test, verb->name, "no change", "two runs differ");
    else if (expected.status != 0)
        fail_case(test, verb->name, "no change", "fails on the good file");
    for (size_t i = 0; expected.status == 0 && i < count && (all || faults == 0); i += step) {
        char text[80];
        const char *fault = try_change(test, verb, &expected, &changes[i]);
        if (fault && faults++ < MOST_PRINTED)
            fail_case(test, verb->name, describe(text, &changes[i]), fault);
    }
    if (faults > MOST_PRINTED)
        printf("%s: %s: %zu failures\n", test->format->name, verb->name, faults);
    free_folder(&expected.files);
}

static void set_up(launder *test)
{
    char other[64];
    snprintf(test->path, sizeof test->path, "/dev/shm/launder-XXXXXX");
    if (!mkdtemp(test->path)) {
        snprintf(test->path, sizeof test->path, "/tmp/launder-XXXXXX");
        if (!mkdtemp(test->path))
            die("a temporary folder");
    }
    if (chdir(test->path) < 0)
        die(test->path);
    for (const launder_input *input = test->format->inputs; input->name; input++)
        write_blob(input->name, input->text, strlen(input->text));
    for (const launder_verb *step = test->format->setup; step->name; step++) {
        int status = run_words(step->words);
        if (status != 0) {
            fprintf(stderr, "test_launder: setup %s of %s: exit %d\n", step->name, test->format->name,
                    status);
            exit(2);
        }
    }
    unlink("stdout");
    const char *extension = strchr(test->format->file, '.');
    snprintf(other, sizeof other, "good%s", extension);
    test->good = read_blob(other);
    if (!test->good.exists)
        die(other);
    snprintf(other, sizeof other, "other%s", extension);
    write_blob(other, test->good.bytes, test->good.len);
    read_folder(&test->start);
}

int main(int argc, char **argv)
{
    static launder test;
    change *changes;
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "dumb", 1);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    unsetenv("COLUMNS");
    test.format = launder_formats;
    while (argc > 2 && test.format->name && strcmp(test.format->name, argv[1]) != 0)
        test.format++;
    if (argc < 3 || !test.format->name) {
        fputs("usage: test_launder FORMAT LIST [all[:STEP]] [VERB]\n", stderr);
        return 2;
    }
    bool all = argc > 3 && strncmp(argv[3], "all", 3) == 0;
    size_t step = all && argv[3][3] == ':' ? (size_t)strtoul(argv[3] + 4, NULL, 10) : 1;
    const char *only = argc > 3 + all ? argv[3 + all] : NULL;
    read_list(&test, argv[2]);
    set_up(&test);
    if (!only)
        check_every_bit(&test);
    size_t count = list_changes(&changes, &test.good, all);
    for (const launder_verb *verb = test.format->verbs; verb->name; verb++) {
        if (!only || strcmp(only, verb->name) == 0)
            test_verb(&test, verb, changes, count, all, step ? step : 1);
    }
    if (!only)
        report_unexpected_passes(&test);
    printf("%s: %zu changes, %zu runs, failures: %zu\n", test.format->name, count, test.runs, test.failures);
    free(changes);
    empty_folder();
    if (chdir("/") == 0)
        rmdir(test.path);
    return test.failures ? 1 : 0;
}
