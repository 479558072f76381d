/* Whether a program can be recorded: the loader must accept a preloaded library. */
#include "base/fail.h"
#include "recorder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As the shell does it: a name without a slash is looked for in PATH. */
static bool find_program(char *out, const char *name)
{
    const char *list = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(out, PATH_MAX, "%s", name);
        return is_program(out);
    }
    while (list && *list) {
        int len = (int)strcspn(list, ":");
        snprintf(out, PATH_MAX, "%.*s%s%s", len, list, len > 0 ? "/" : "", name);
        if (is_program(out))
            return true;
        list += len + (list[len] == ':');
    }
    return false;
}

typedef enum target_kind {
    TARGET_DYNAMIC,
    TARGET_STATIC,
    TARGET_OTHER, /* of another machine */
    TARGET_SCRIPT,
    TARGET_UNKNOWN
} target_kind;

static target_kind kind_of_elf(int fd)
{
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return TARGET_UNKNOWN;
#if defined __x86_64__
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        return TARGET_OTHER;
#endif
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header.e_phoff + i * sizeof segment);
        if (pread(fd, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
            return TARGET_UNKNOWN;
        if (segment.p_type == PT_INTERP)
            return TARGET_DYNAMIC;
    }
    return TARGET_STATIC;
}

/* For a script, *interpreter gets the program of its first line. */
static target_kind kind_of(const char *path, char interpreter[PATH_MAX])
{
    char line[PATH_MAX] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return TARGET_UNKNOWN;
    target_kind kind = TARGET_UNKNOWN;
    ssize_t len = read(fd, line, sizeof line - 1);
    if (len >= SELFMAG && memcmp(line, ELFMAG, SELFMAG) == 0) {
        kind = kind_of_elf(fd);
    } else if (len > 2 && line[0] == '#' && line[1] == '!') {
        const char *name = line + 2 + strspn(line + 2, " \t");
        snprintf(interpreter, PATH_MAX, "%.*s", (int)strcspn(name, " \t\r\n"), name);
        kind = TARGET_SCRIPT;
    }
    close(fd);
    return kind;
}

/* The loader ignores LD_PRELOAD for programs that gain privileges. root gains none from a setuid bit of
 * root. */
static bool gains_privileges(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
        ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()))
        return true;
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static int refuse(const char *path, const char *why, const char *hint)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__fail(&err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s", why);
    cli_fail(path, &err, hint);
    return CLI_FAILED;
}

int record_check_target(char *out, const cli_args *args, const char *program)
{
    char path[PATH_MAX], interpreter[PATH_MAX];
    (void)args;
    if (!find_program(out, program)) {
        coffer_error err = COFFER_ERROR_INIT;
        struct stat st;
        bool exists = strchr(program, '/') && stat(program, &st) == 0;
        coffer__fail_errno(&err, "cannot run", exists ? EACCES : ENOENT);
        return cli_fail(program, &err,
                        exists                 ? "it is not an executable file; 'chmod +x' makes it one"
                        : strchr(program, '/') ? "check the spelling and the folder"
                                               : "no folder of PATH has a program of this name");
    }
    snprintf(path, sizeof path, "%s", out);
    for (int i = 0; i < 4; i++) { /* scripts of scripts */
        if (gains_privileges(path))
            return refuse(path, "the program gains privileges when it starts, so nothing can be preloaded",
                          "run it as the user that it becomes, such as with 'sudo coffer record'");
        switch (kind_of(path, interpreter)) {
        case TARGET_STATIC:
            return refuse(path, "the program is statically linked, so nothing can be preloaded",
                          "link it dynamically; a Go program needs cgo");
        case TARGET_OTHER:
            return refuse(path, "the program is for another machine than this coffer", "");
        case TARGET_SCRIPT:
            snprintf(path, sizeof path, "%s", interpreter);
            break;
        default:
            return CLI_OK;
        }
    }
    return CLI_OK;
}
