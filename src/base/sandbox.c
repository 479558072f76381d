#include "base/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>

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
