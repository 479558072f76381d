#include "base/helper.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEADER_SIZE = 8, LENGTH_AT = 4, FIRST_SAFE_FD = 10 };

/* ---- Frames ---- */

static bool send_all(int fd, const void *bytes, size_t len, int flags)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t len)
{
    uint8_t *at = bytes;
    while (len > 0) {
        ssize_t got = recv(fd, at, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

bool coffer__frame_send(int fd, uint32_t kind, const void *head, size_t head_len, const void *tail,
                        size_t tail_len)
{
    uint8_t header[HEADER_SIZE];
    coffer__store_u32(header, kind);
    coffer__store_u32(header + LENGTH_AT, (uint32_t)(head_len + tail_len));
    return send_all(fd, header, sizeof header, head_len + tail_len > 0 ? MSG_MORE : 0) &&
           send_all(fd, head, head_len, tail_len > 0 ? MSG_MORE : 0) && send_all(fd, tail, tail_len, 0);
}

bool coffer__frame_receive(int fd, uint32_t *kind, coffer__buffer *frame)
{
    uint8_t header[HEADER_SIZE];
    if (!receive_all(fd, header, sizeof header))
        return false;
    size_t len = coffer__load_u32(header + LENGTH_AT);
    frame->len = 0;
    if (len > COFFER__FRAME_MAX)
        return false;
    uint8_t *bytes = coffer__buffer_extend(frame, len);
    if (!bytes || !receive_all(fd, bytes, len))
        return false;
    *kind = coffer__load_u32(header);
    return true;
}

/* ---- Processes ---- */

/* The standard streams of a helper lead nowhere: what it prints about a damaged file is not for the terminal.
 */
static int set_files(posix_spawn_file_actions_t *files, int socket_fd, int file_fd)
{
    int failed = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int fd = STDOUT_FILENO; !failed && fd <= STDERR_FILENO; fd++)
        failed = posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(files, socket_fd, COFFER__HELPER_SOCKET);
    if (!failed && file_fd >= 0)
        failed = posix_spawn_file_actions_adddup2(files, file_fd, COFFER__HELPER_FILE);
    return failed;
}

/* A helper starts with no signal blocked or ignored, whatever this program does with them. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!failed)
        failed = posix_spawnattr_setsigmask(attributes, &none);
    return failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
}

/* An errno, or 0. The descriptors are above those of the helper, so that no dup2 overwrites another. */
static int spawn(pid_t *pid, const char *program, int socket_fd, int file_fd)
{
    char *const arguments[] = { (char *)(uintptr_t)program, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = set_files(&files, socket_fd, file_fd);
        if (!failed)
            failed = set_signals(&attributes);
        if (!failed)
            failed = posix_spawn(pid, program, &files, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static int spawn_with(pid_t *pid, const char *program, int socket_fd, int pass_fd)
{
    int high = fcntl(socket_fd, F_DUPFD_CLOEXEC, FIRST_SAFE_FD), file = -1, failed = 0;
    if (high >= 0 && pass_fd >= 0)
        file = fcntl(pass_fd, F_DUPFD_CLOEXEC, FIRST_SAFE_FD);
    if (high < 0 || (pass_fd >= 0 && file < 0))
        failed = errno;
    else
        failed = spawn(pid, program, high, file);
    if (high >= 0)
        close(high);
    if (file >= 0)
        close(file);
    return failed;
}

/* The wait status, or −1 when another part of the program has already waited. */
static int end(coffer__helper *helper)
{
    int status = -1;
    pid_t got;
    if (helper->fd < 0)
        return -1;
    close(helper->fd);
    helper->fd = -1;
    do
        got = waitpid(helper->pid, &status, 0);
    while (got < 0 && errno == EINTR);
    return got == helper->pid ? status : -1;
}

void coffer__helper_stop(coffer__helper *helper)
{
    if (helper->fd >= 0)
        kill(helper->pid, SIGKILL);
    end(helper);
}

coffer_status coffer__helper_fail(coffer__helper *helper, coffer_error *err)
{
    const char *name = coffer__module_name(helper->id);
    int status = end(helper);
    int number = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGPROF || number == SIGXCPU)
        return coffer__fail(
            err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
            "coffer-%s was stopped: it used too much processor time for one step; the file is "
            "damaged or malicious",
            name);
    if (number == SIGKILL)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "coffer-%s was killed, probably because memory ran out", name);
    if (number)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "coffer-%s crashed with signal %d while it read the file, which is damaged or "
                            "malicious; get another copy",
                            name, number);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "coffer-%s stopped answering; the file is damaged or malicious", name);
}

static coffer_status check_hello(coffer__helper *helper, uint32_t kind, coffer__buffer *frame,
                                 const char *program, coffer_error *err)
{
    const char *text = coffer__buffer_text(frame);
    if (!frame->failed && kind == COFFER__FRAME_HELLO && strcmp(text, COFFER_VERSION_STRING) == 0 &&
        frame->len > strlen(text) + 1)
        return COFFER_OK;
    coffer__helper_stop(helper);
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "%s is not a program of Coffer " COFFER_VERSION_STRING "; install the one that is",
                        program);
}

coffer_status coffer__helper_start(coffer__helper *out, coffer__module_id id, int pass_fd,
                                   coffer__buffer *frame, coffer_error *err)
{
    coffer__helper helper = { id, -1, 0 };
    int pair[2];
    uint32_t kind = UINT32_MAX;
    const char *program = coffer__module_program(id, err);
    if (!program)
        return COFFER_E_UNSUPPORTED;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return coffer__fail_errno(err, "cannot start a helper program", errno);
    int failed = spawn_with(&helper.pid, program, pair[1], pass_fd);
    close(pair[1]);
    if (failed) {
        close(pair[0]);
        coffer__fail_errno(err, "cannot start a helper program", failed);
        return coffer__fail_other(err, COFFER_E_IO, program);
    }
    helper.fd = pair[0];
    if (!coffer__frame_receive(helper.fd, &kind, frame)) {
        end(&helper);
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s cannot be run; install %s",
                            program, coffer__module_library(id));
    }
    coffer_status status = check_hello(&helper, kind, frame, program, err);
    if (!status)
        *out = helper;
    return status;
}

const char *coffer__helper_version(coffer__module_id id, coffer_error *err)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char versions[COFFER__MODULE_COUNT][40];
    coffer__buffer frame = COFFER__BUFFER_INIT;
    coffer__helper helper = { id, -1, 0 };
    const char *version = NULL;
    pthread_mutex_lock(&mutex);
    if (!coffer__helper_start(&helper, id, -1, &frame, err)) {
        const char *text = coffer__buffer_text(&frame);
        snprintf(versions[id], sizeof versions[id], "%s", text + strlen(text) + 1);
        version = versions[id];
    }
    coffer__helper_stop(&helper);
    pthread_mutex_unlock(&mutex);
    coffer__buffer_free(&frame);
    return version;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(SANITIZED)
#define HAS_FILTER 1
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

void coffer__sandbox_allow_seconds(unsigned seconds)
{
    const struct itimerval timer = { .it_value = { .tv_sec = (time_t)seconds } };
    setitimer(ITIMER_PROF, &timer, NULL);
}

#ifdef HAS_FILTER

#ifdef __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
/* The low half of an argument; both processors are little-endian. */
#define LOAD_ARGUMENT(index) LOAD(args[index])
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1), ANSWER(SECCOMP_RET_ALLOW)
/* Allows memory that is not executable. */
#define ALLOW_WITHOUT_EXEC(number)                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 4), LOAD_ARGUMENT(2),      \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), ANSWER(SECCOMP_RET_ALLOW), \
        ANSWER(SECCOMP_RET_ERRNO | EPERM)

static bool filter_calls(void)
{
    /* Every other call fails with EPERM: libraries then take the path of an error instead of crashing. */
    static struct sock_filter program[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
        ANSWER(SECCOMP_RET_KILL),
        LOAD(nr),
        ALLOW(__NR_read),
        ALLOW(__NR_write),
        ALLOW(__NR_pread64),
        ALLOW(__NR_recvfrom),
        ALLOW(__NR_sendto),
        ALLOW(__NR_fstat),
        ALLOW(__NR_close),
        ALLOW(__NR_brk),
        ALLOW(__NR_munmap),
        ALLOW(__NR_mremap),
        ALLOW(__NR_madvise),
        ALLOW(__NR_futex),
        ALLOW(__NR_getpid),
        ALLOW(__NR_gettid),
        ALLOW(__NR_tgkill), /* abort() */
        ALLOW(__NR_rt_sigaction),
        ALLOW(__NR_rt_sigprocmask),
        ALLOW(__NR_rt_sigreturn),
        ALLOW(__NR_setitimer),
        ALLOW(__NR_clock_gettime),
        ALLOW(__NR_gettimeofday),
        ALLOW(__NR_getrandom),
        ALLOW(__NR_exit),
        ALLOW(__NR_exit_group),
        ALLOW_WITHOUT_EXEC(__NR_mmap),
        ALLOW_WITHOUT_EXEC(__NR_mprotect),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog filter = { sizeof program / sizeof program[0], program };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

#endif

bool coffer__sandbox_enter(uint64_t memory_bytes)
{
#ifdef SANITIZED
    (void)memory_bytes;
    return true;
#else
    const struct rlimit memory = { (rlim_t)memory_bytes, (rlim_t)memory_bytes }, none = { 0, 0 };
    bool good = setrlimit(RLIMIT_AS, &memory) == 0 && setrlimit(RLIMIT_CORE, &none) == 0;
    signal(SIGPROF, SIG_DFL);
#ifdef HAS_FILTER
    good = filter_calls() && good;
#else
    good = false;
#endif
    return good;
#endif
}
