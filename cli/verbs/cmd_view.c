/* view: a page of a file of any size, served to a browser on this machine. */
#include "verbs.h"

#include "coffer/view.h"
#include "files.h"
#include "term.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const cli_option options[] = {
    { "port", 0, "N", NULL, "port to listen at", "a free one" },
    { "no-browser", 0, NULL, NULL, "print the address and open no browser" },
    { "idle", 0, "SECONDS", NULL, "end this long after the last page was closed; 0 = do not end", "60" },
    { "max-read", 0, "SIZE", NULL, "largest model whose tensors are all read for their statistics",
      "4GiB, 256MiB of a URL" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    { "json", 0, NULL, NULL, "print the address as JSON" },
    { 0 },
};

#define REMOTE_MAX_READ (UINT64_C(256) << 20)
enum { STEP_MS = 100 };

/* ---- Browser ---- */

static bool has_display(void)
{
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x11 && *x11) || (wayland && *wayland);
}

/* The browser gets an address that works once: other users can read the arguments of programs. */
static pid_t open_browser(const char *url)
{
    char program[] = "xdg-open", address[160];
    char *words[] = { program, address, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t child = 0;
    snprintf(address, sizeof address, "%s", url);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, 0, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&child, program, &files, &attributes, words, environ) != 0)
        cli_warn(NULL, "xdg-open cannot be run: open the address yourself");
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return child;
}

/* ---- Serving ---- */

static int print_address(const cli_args *args, const coffer_server *server)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *url = coffer_server_url(server), *path = cli_operand(args, 0);
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": %s\n", url);
        fflush(stdout);
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err))
        return cli_fail(NULL, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "url", url);
    coffer_node_add_u64(root, "port", coffer_server_port(server), COFFER_UNIT_NONE);
    int status = cli_print_json_line(stdout, root);
    coffer_node_free(root);
    fflush(stdout);
    return status;
}

/* Until Ctrl-C, or until no page has been open for a while. */
static void serve(coffer_server *server, uint64_t idle_seconds, pid_t browser)
{
    const struct timespec step = { 0, STEP_MS * 1000000L };
    while (!cli_signal_waits() && (idle_seconds == 0 || coffer_server_idle(server) < idle_seconds * 1000)) {
        nanosleep(&step, NULL);
        if (browser && waitpid(browser, NULL, WNOHANG) != 0)
            browser = 0;
    }
}

static int serve_view(const cli_args *args, coffer_view *view, uint64_t port, uint64_t idle)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_server_opts opts = COFFER_SERVER_OPTS_INIT;
    coffer_server *server = NULL;
    opts.port = (uint32_t)port;
    if (coffer_server_start(&server, view, &opts, &err))
        return cli_fail(NULL, &err, port ? "without --port a free one is chosen" : "");
    int status = print_address(args, server);
    if (!status) {
        bool opens = !cli_has(args, "no-browser") && has_display();
        serve(server, idle, opens ? open_browser(coffer_server_url_once(server)) : 0);
    }
    coffer_server_stop(server);
    return status;
}

static int show(const cli_args *args, coffer_file *const files[2], const coffer_chunks_opts *opts,
                uint64_t port, uint64_t idle)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_view *view = NULL;
    if (coffer_view_open(&view, files[0], files[1], opts, &err))
        return cli_fail(opts->name, &err, cli_file_hint(files[0]));
    /* Blocked from here on: Ctrl-C is the ordinary end. */
    cli_hold_signals();
    int status = serve_view(args, view, port, idle);
    coffer_view_close(view);
    cli_finish_signals();
    return status;
}

/* The values of a remote file travel over the network while somebody looks at the first picture. */
static bool is_remote(const cli_args *args)
{
    for (size_t i = 0; i < cli_operand_count(args); i++)
        if (strstr(cli_operand(args, i), "://"))
            return true;
    return false;
}

static int run(const cli_args *args)
{
    coffer_chunks_opts opts = COFFER_CHUNKS_OPTS_INIT;
    coffer_file *files[2] = { NULL, NULL };
    uint64_t port, idle;
    int status = CLI_OK;
    if (!cli_page_is_available())
        return CLI_FAILED;
    if (is_remote(args))
        opts.max_read_bytes = REMOTE_MAX_READ;
    if (!cli_page_options(&opts, args) || !cli_number(&port, args, "port", 0, 1, UINT16_MAX) ||
        !cli_number(&idle, args, "idle", 60, 0, 1000000))
        return CLI_USAGE;
    status = cli_open_pair(files, args);
    if (!status)
        status = show(args, files, &opts, port, idle);
    coffer_file_close(files[0]);
    coffer_file_close(files[1]);
    return status;
}

const cli_verb cli_verb_view = {
    .name = "view",
    .usage = "FILE [FILE2]",
    .summary = "show a file of any size in the browser, or compare two",
    .group = CLI_GROUP_PICTURES,
    .description =
        "Starts a server on 127.0.0.1 that shows the pages of 'coffer report', opens the browser, and prints "
        "the address. The first picture needs no pass over the file; the rest is read while you look. "
        "Zooming "
        "in asks the file again, down to single values: a report contains only what fits into it. FILE may "
        "be "
        "a URL.\n"
        "Only a page with the random token in the printed address gets an answer, and requests cannot name "
        "files. Ctrl-C ends the server, and so does closing the last page.",
    .examples =
        "  coffer view run.mlyze\n"
        "  coffer view https://example.com/model.safetensors\n"
        "  coffer view before.mlyze after.mlyze\n"
        "  coffer view set.mldf --no-browser --port 8080    # for a tunnel: ssh -L 8080:127.0.0.1:8080\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
