/* Starts the program, empties its rings while it runs, and makes the traces when it has ended. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/module.h"
#include "recorder.h"
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOUSE_US = 100000, SLEEP_NS = 10000000 };

typedef struct recording {
    record_reader reader;
    const record_options *options;
    int memory_fd;
    pid_t child;
    bool reaped;
    int wait_status;
    uint64_t started_us, house_us;
    bool live_shown;
    uint64_t replaced, replaced_events; /* programs that ran another one in their place */
} recording;

/* ---- Signals ---- */

static volatile sig_atomic_t child_pid, toggle_signal, toggles, snapshot_signal, snapshots_asked;

/* The terminal sends its signals to the program as well; those that a process sent are passed on. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    if (number == toggle_signal)
        toggles++;
    else if (number == snapshot_signal)
        snapshots_asked = 1;
    else if (number != SIGCHLD && info->si_code <= 0 && child_pid > 0)
        kill((pid_t)child_pid, number);
    errno = saved;
}

static void catch_signals(const record_options *options)
{
    static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM };
    struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    toggle_signal = options->toggle;
    snapshot_signal = options->snapshot_signal;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        /* A signal that is ignored (nohup) stays ignored, here and in the program. */
        if (numbers[i] == SIGCHLD || (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN))
            sigaction(numbers[i], &action, NULL);
    }
}

/* ---- Shared memory ---- */

#if defined __x86_64__
/* Whether the processor's counter runs at one rate on all cores. */
static bool counter_is_steady(void)
{
    char line[64] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "r");
    bool steady = false;
    if (file && fgets(line, sizeof line, file))
        steady = strstr(line, "tsc") != NULL;
    if (file)
        fclose(file);
    return steady;
}
#endif

static coffer_status make_memory(recording *run, coffer_error *err)
{
    record_reader *reader = &run->reader;
    const record_options *options = run->options;
    size_t size = sizeof *reader->memory;
    run->memory_fd = (int)syscall(SYS_memfd_create, "coffer-record", MFD_CLOEXEC);
    if (run->memory_fd < 0 || ftruncate(run->memory_fd, (off_t)size) != 0)
        return coffer__fail_errno(err, "cannot make shared memory", errno);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, run->memory_fd, 0);
    if (memory == MAP_FAILED)
        return coffer__fail_errno(err, "cannot map shared memory", errno);
    reader->memory = memory;
    coffer__record_control *control = &reader->memory->control;
    control->flags = options->flags;
#if defined __x86_64__
    if (counter_is_steady())
        control->flags |= COFFER__RECORD_CLOCK_TSC;
#endif
    control->depth = options->depth;
    control->sample_bytes = options->sample_bytes;
    control->reader_pid = (uint32_t)getpid();
    control->time_base = record_tick(reader);
    control->magic = COFFER__RECORD_MAGIC;
    atomic_store(&control->state, options->toggle ? COFFER__RECORD_PAUSED : COFFER__RECORD_RUNS);
    reader->slots = coffer__calloc(COFFER__RECORD_SLOTS, sizeof *reader->slots);
    reader->sessions = coffer__calloc(COFFER__RECORD_SESSIONS, sizeof *reader->sessions);
    if (!reader->slots || !reader->sessions)
        return coffer__fail_no_memory(err, COFFER__RECORD_SLOTS * sizeof *reader->slots);
    reader->first_us = record_clock_us();
    reader->first_tick = record_tick(reader);
    reader->us_per_tick = control->flags & COFFER__RECORD_CLOCK_TSC ? 1 / 2500.0 : 1 / 1000.0;
    return COFFER_OK;
}

/* ---- Sessions ---- */

static char *join_words(char *const *words)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (size_t i = 0; words[i]; i++)
        coffer__buffer_printf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    coffer__buffer_append(&text, "", 1);
    if (text.failed)
        coffer__buffer_free(&text);
    return (char *)coffer__buffer_release(&text, NULL);
}

/* The command of a process; of one that has ended already, that of its parent. */
static char *command_of(const record_reader *reader, const coffer__record_session *entry)
{
    pid_t pid = (pid_t)entry->pid;
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    bool forked = entry->kind == COFFER__RECORD_FORKED && entry->parent < reader->session_count;
    if (len <= 0)
        return coffer__strdup(forked ? reader->sessions[entry->parent]->command : "?");
    for (ssize_t i = 0; i + 1 < len; i++)
        text[i] = text[i] ? text[i] : ' ';
    return coffer__strndup(text, strnlen(text, (size_t)len));
}

/* "run.mlyze" with "run" + middle + ".mlyze". */
static char *path_with(const char *path, const char *middle)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    size_t len = strlen(path) + strlen(middle) + 1;
    char *out = coffer__malloc(len);
    if (out)
        snprintf(out, len, "%.*s%s%s", (int)stem, path, middle, path + stem);
    return out;
}

static record_session *add_session(recording *run, pid_t pid, char *path, char *command)
{
    record_reader *reader = &run->reader;
    record_session *session = coffer__calloc(1, sizeof *session);
    if (!session || !path || !command) {
        coffer__free(session);
        coffer__free(path);
        coffer__free(command);
        return NULL;
    }
    session->number = (uint32_t)reader->session_count;
    session->pid = pid;
    session->path = path;
    session->command = command;
    session->start_us = record_clock_us();
    reader->sessions[reader->session_count++] = session;
    if (record_session_open(session, run->options))
        return session;
    return session;
}

static void finish_session(recording *run, record_session *session)
{
    record_drain_ended(&run->reader, session);
    if (!session->writer)
        return;
    if (record_session_finish(session, run->options) && !run->reader.stopped)
        cli_fail(session->path, &session->err,
                 session->committed ? "the trace has addresses instead of names"
                                    : "the part files are kept; 'coffer repair %' makes the trace of them");
}

/* Gives the trace of a process the name FILE.exec-N. */
static void rename_trace(record_session *session)
{
    for (int i = 1; i < 1000; i++) {
        char middle[32];
        struct stat st;
        snprintf(middle, sizeof middle, ".exec-%d", i);
        char *path = path_with(session->path, middle);
        if (path && stat(path, &st) != 0 && rename(session->path, path) == 0) {
            coffer__free(session->path);
            session->path = path;
            return;
        }
        coffer__free(path);
    }
}

/* A program that replaced itself, such as env: the file is for the program that it ran. */
static void set_aside(recording *run, record_session *session)
{
    session->over = true;
    if (run->options->flags & COFFER__RECORD_FOLLOW_FORK) {
        finish_session(run, session);
        if (session->committed)
            rename_trace(session);
        return;
    }
    record_drain_ended(&run->reader, session);
    run->replaced++;
    run->replaced_events += session->events;
    coffer_mlyze_writer_discard(session->writer);
    session->writer = NULL;
}

static void adopt(recording *run, uint32_t number)
{
    const coffer__record_session *entry = &run->reader.memory->sessions[number];
    char middle[32];
    char *path = NULL;
    pid_t pid = (pid_t)entry->pid;
    for (size_t i = 0; i < run->reader.session_count; i++) {
        record_session *other = run->reader.sessions[i];
        if (other->pid != pid || other->over)
            continue;
        path = coffer__strdup(other->path);
        set_aside(run, other);
    }
    snprintf(middle, sizeof middle, ".%ld", (long)pid);
    if (!path)
        path = path_with(run->options->output, middle);
    record_session *session = add_session(run, pid, path, command_of(&run->reader, entry));
    if (session && !session->writer) {
        cli_fail(session->path, &session->err, NULL);
        session->over = true;
    }
}

static void adopt_all(recording *run)
{
    coffer__record_memory *memory = run->reader.memory;
    uint32_t count = atomic_load(&memory->control.session_count);
    static bool first_is_known;
    if (count > COFFER__RECORD_SESSIONS)
        count = COFFER__RECORD_SESSIONS;
    if (!first_is_known && count > 0 && atomic_load(&memory->sessions[0].ready)) {
        run->reader.sessions[0]->pid = (pid_t)memory->sessions[0].pid;
        first_is_known = true;
    }
    for (uint32_t i = (uint32_t)run->reader.session_count; i < count; i++) {
        if (!atomic_load_explicit(&memory->sessions[i].ready, memory_order_acquire))
            return;
        adopt(run, i);
    }
}

/* True when no recorded process is left. */
static bool all_over(recording *run)
{
    bool all = run->reaped;
    for (size_t i = 0; i < run->reader.session_count; i++) {
        record_session *session = run->reader.sessions[i];
        if (session->over)
            continue;
        session->over =
            session->pid == run->child ? run->reaped : kill(session->pid, 0) != 0 && errno == ESRCH;
        if (session->over)
            finish_session(run, session);
        all = all && session->over;
    }
    return all;
}

/* ---- The program ---- */

static int start_program(recording *run, const char *path, const char *library, int report)
{
    char memory[64];
    const char *others = getenv("LD_PRELOAD");
    size_t len = strlen(library) + (others ? strlen(others) : 0) + 2;
    char *preload = coffer__malloc(len);
    if (!preload)
        return ENOMEM;
    snprintf(preload, len, "%s%s%s", library, others && *others ? ":" : "", others ? others : "");
    snprintf(memory, sizeof memory, "/proc/%u/fd/%d", run->reader.memory->control.reader_pid, run->memory_fd);
    if (setenv("LD_PRELOAD", preload, 1) != 0 || setenv(COFFER__RECORD_ENVIRONMENT, memory, 1) != 0)
        return errno;
    if ((run->options->flags & COFFER__RECORD_PYTHON_ALLOCATORS) && setenv("PYTHONMALLOC", "malloc", 1) != 0)
        return errno;
    signal(SIGXFSZ, SIG_DFL); /* which the command ignores */
    run->reader.memory->control.root_pid = (uint32_t)getpid();
    fcntl(report, F_SETFD, FD_CLOEXEC);
    execv(path, run->options->program);
    return errno;
}

static coffer_status spawn(recording *run, const char *path, const char *library, coffer_error *err)
{
    int report[2], number = 0;
    if (pipe2(report, O_CLOEXEC) != 0)
        return coffer__fail_errno(err, "cannot start", errno);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        number = start_program(run, path, library, report[1]);
        ssize_t ignored = write(report[1], &number, sizeof number);
        (void)ignored;
        _exit(127);
    }
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return coffer__fail_errno(err, "cannot start", errno);
    }
    run->child = pid;
    child_pid = pid;
    run->reader.sessions[0]->pid = pid;
    ssize_t got = read(report[0], &number, sizeof number);
    close(report[0]);
    if (got != (ssize_t)sizeof number)
        return COFFER_OK;
    waitpid(pid, NULL, 0);
    return coffer__fail_errno(err, "cannot start", number);
}

/* ---- While it runs ---- */

static void sleep_until_woken(recording *run, uint32_t seen)
{
    coffer__record_control *control = &run->reader.memory->control;
    const struct timespec timeout = { 0, SLEEP_NS };
    atomic_store(&control->reader_sleeps, 1);
    syscall(SYS_futex, &control->reader_wake, FUTEX_WAIT, seen, &timeout, NULL, 0);
    atomic_store(&control->reader_sleeps, 0);
}

static void show_live(recording *run)
{
    const record_session *session = run->reader.sessions[run->reader.session_count - 1];
    term_text live, peak, count;
    fprintf(stderr, TERM_CLEAR_LINE "live %s, peak %s, %s allocations", term_bytes(live, session->live_bytes),
            term_bytes(peak, session->peak_bytes), term_count(count, session->allocs));
    fflush(stderr);
    term_line_shown(true);
    run->live_shown = true;
}

static void end_early(recording *run, const char *why)
{
    run->reader.stopped = true;
    atomic_store(&run->reader.memory->control.state, COFFER__RECORD_ENDED);
    cli_warn(run->options->output, "recording stopped after %s; the program continues", why);
}

static void check_limits(recording *run, uint64_t now)
{
    const record_options *options = run->options;
    if (run->reader.stopped)
        return;
    if (options->duration_us && now - run->started_us >= options->duration_us) {
        end_early(run, "--duration");
        return;
    }
    for (size_t i = 0; options->max_size && i < run->reader.session_count; i++) {
        char part[PATH_MAX];
        struct stat st;
        snprintf(part, sizeof part, "%s.part", run->reader.sessions[i]->path);
        if (stat(part, &st) == 0 && (uint64_t)st.st_size >= options->max_size) {
            end_early(run, "--max-size");
            return;
        }
    }
}

static void sample_rss(record_session *session)
{
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)session->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    const char *space = len > 0 ? strchr(text, ' ') : NULL;
    uint64_t pages = space ? strtoull(space, NULL, 10) : 0;
    if (pages > 0)
        coffer__ignore(record_session_rss(session, pages * (uint64_t)sysconf(_SC_PAGESIZE)));
}

static void keep_house(recording *run)
{
    record_reader *reader = &run->reader;
    uint64_t now = record_clock_us();
    if (now - run->house_us < HOUSE_US)
        return;
    run->house_us = now;
    record_keep_house(reader);
    for (size_t i = 0; i < reader->session_count; i++) {
        record_session *session = reader->sessions[i];
        bool changed = session->flushed_events != session->events;
        if (!session->over && session->writer && changed && !reader->stopped)
            sample_rss(session);
        if (session->writer && !session->err.status && record_session_flush(session))
            record_stop(reader, session, &session->err);
    }
    check_limits(run, now);
    record_snapshot_by_time(reader, now);
    if (run->options->live && !run->options->quiet && term_is_terminal(stderr))
        show_live(run);
}

static void switch_recording(recording *run)
{
    coffer__record_control *control = &run->reader.memory->control;
    if (!toggles || run->reader.stopped)
        return;
    bool odd = toggles & 1;
    toggles = 0;
    if (!odd)
        return;
    bool on = atomic_load(&control->state) == COFFER__RECORD_PAUSED;
    atomic_store(&control->state, on ? COFFER__RECORD_RUNS : COFFER__RECORD_PAUSED);
    cli_warn(NULL, on ? "recording" : "recording paused");
}

/* One snapshot of each process, however often the signal came since the last pass. */
static void answer_signal(recording *run)
{
    if (!snapshots_asked)
        return;
    snapshots_asked = 0;
    for (size_t i = 0; i < run->reader.session_count; i++)
        record_snapshot_ask(&run->reader, run->reader.sessions[i]);
}

static void watch(recording *run)
{
    coffer__record_control *control = &run->reader.memory->control;
    for (;;) {
        uint32_t seen = atomic_load(&control->reader_wake);
        if (!run->reaped && waitpid(run->child, &run->wait_status, WNOHANG) == run->child)
            run->reaped = true;
        adopt_all(run);
        bool busy = record_drain(&run->reader);
        atomic_fetch_add(&control->heartbeat, 1);
        switch_recording(run);
        answer_signal(run);
        keep_house(run);
        if (!busy && all_over(run))
            return;
        if (!busy)
            sleep_until_woken(run, seen);
    }
}

/* ---- The end ---- */

static void report_end(recording *run)
{
    const coffer__record_memory *memory = run->reader.memory;
    uint64_t dropped = 0;
    if (run->live_shown) {
        fputs(TERM_CLEAR_LINE, stderr);
        term_line_shown(false);
    }
    for (size_t i = 0; i < run->reader.session_count; i++)
        dropped += atomic_load(&memory->sessions[i].dropped);
    if (dropped > 0)
        cli_warn(run->options->output,
                 "%" PRIu64 " event%s of signal handlers or of more than %d threads %s not recorded", dropped,
                 term_plural(dropped), COFFER__RECORD_SLOTS, dropped == 1 ? "was" : "were");
    record_snapshot_report(&run->reader);
    uint32_t refused = atomic_load(&memory->control.refused);
    if (refused > 0)
        cli_warn(run->options->output,
                 "%" PRIu32
                 " process%s not recorded: %zu MiB of address space were not available (ulimit -v)",
                 refused, refused == 1 ? " was" : "es were", sizeof *memory >> 20);
    if (run->replaced > 0 && !run->options->quiet)
        cli_warn(run->options->output,
                 "%" PRIu64 " program%s ran another one in %s place; %" PRIu64
                 " events from before are not kept (--follow-fork keeps them)",
                 run->replaced, term_plural(run->replaced), run->replaced == 1 ? "its" : "their",
                 run->replaced_events);
    for (size_t i = 0; i < run->reader.session_count; i++)
        if (run->reader.sessions[i]->committed)
            record_summarize(run->reader.sessions[i], run->options);
}

/* Ends like the program: with its exit status, or by the signal that killed it. */
static int end_like_program(int wait_status)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status);
    int number = WTERMSIG(wait_status);
    const struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none); /* the program has written its own */
    fflush(NULL);
    signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    return 128 + number;
}

static int begin(recording *run, const cli_args *args, char program[PATH_MAX], char **library)
{
    coffer_error err = COFFER_ERROR_INIT;
    const record_options *options = run->options;
    int status = record_check_target(program, args, options->program[0]);
    if (status)
        return status;
    *library = coffer__module_preloaded(&err);
    if (!*library)
        return cli_fail(NULL, &err, "");
    if (make_memory(run, &err))
        return cli_fail(NULL, &err, NULL);
    record_session *first =
        add_session(run, 0, coffer__strdup(options->output), join_words(options->program));
    if (!first)
        return cli_fail(NULL, &(coffer_error){ .status = COFFER_E_NO_MEMORY, .text = "out of memory" }, NULL);
    if (!first->writer)
        return cli_fail(first->path, &first->err, NULL);
    return CLI_OK;
}

static void release(recording *run)
{
    for (size_t i = 0; i < run->reader.session_count; i++)
        record_session_free(run->reader.sessions[i]);
    coffer__free(run->reader.sessions);
    for (size_t i = 0; run->reader.slots && i < COFFER__RECORD_SLOTS; i++)
        record_slot_free(&run->reader.slots[i]);
    coffer__free(run->reader.slots);
    if (run->reader.memory)
        munmap(run->reader.memory, sizeof *run->reader.memory);
    if (run->memory_fd >= 0)
        close(run->memory_fd);
}

int record_run(const cli_args *args, const record_options *options)
{
    recording run = { .reader.options = options, .options = options, .memory_fd = -1 };
    coffer_error err = COFFER_ERROR_INIT;
    char program[PATH_MAX];
    char *library = NULL;
    int status = begin(&run, args, program, &library);
    if (status)
        goto out;
    catch_signals(options);
    if (spawn(&run, program, library, &err)) {
        coffer_mlyze_writer_discard(run.reader.sessions[0]->writer);
        status = cli_fail(program, &err, NULL);
        goto out;
    }
    signal(SIGPIPE, SIG_IGN); /* not before: the program would ignore it too */
    run.started_us = record_clock_us();
    watch(&run);
    report_end(&run);
    status = end_like_program(run.wait_status);
out:
    release(&run);
    coffer__free(library);
    return status;
}
