/* Uploading a file to S3. */
#include "verbs.h"

#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A signal cancels here: the parts that were sent stay on the server for the next time. */
static int step(void *context, uint64_t done, uint64_t total)
{
    term_progress *bar = context;
    return bar->progress.step(bar->progress.context, done, total) || cli_signal_waits();
}

static coffer_status run_library(coffer_node *root, const cli_args *args, const char *path,
                                 const char *address, uint64_t part_size, uint64_t parallel,
                                 coffer_error *err)
{
    term_progress bar;
    coffer_progress progress = { sizeof progress, step, &bar };
    coffer_put_opts opts = COFFER_PUT_OPTS_INIT;
    opts.overwrite = cli_has(args, "force");
    opts.part_size = part_size;
    opts.parallel = (uint32_t)parallel;
    opts.progress = &progress;
    term_progress_start(&bar, "uploading", NULL);
    cli_hold_signals();
    coffer_status status = cli_has(args, "abort") ? coffer_put_abort(root, path, address, &opts, err)
                                                  : coffer_put(root, path, address, &opts, err);
    term_progress_end(&bar);
    return status;
}

static uint64_t number(const coffer_node *root, const char *name)
{
    return coffer_node_get_u64(coffer_node_find(root, name));
}

static void print_for_people(const cli_args *args, const coffer_node *root)
{
    const char *address = coffer_node_get_text(coffer_node_find(root, "address"), NULL);
    term_print_text(stdout, address, strlen(address), 0);
    if (cli_has(args, "abort")) {
        uint64_t removed = number(root, "uploads_removed");
        printf(": %" PRIu64 " unfinished upload%s removed\n", removed, removed == 1 ? "" : "s");
        return;
    }
    const coffer_node *verified = coffer_node_find(root, "verified");
    uint64_t parts = number(root, "parts"), found = number(root, "parts_found");
    term_text size, sent;
    printf(": %s uploaded", term_bytes(size, number(root, "size")));
    if (parts > 1)
        printf(" in %" PRIu64 " parts", parts);
    if (found)
        printf("; %" PRIu64 " of them were on the server, %s sent", found,
               term_bytes(sent, number(root, "bytes_sent")));
    if (coffer_node_get_kind(verified) == COFFER_NODE_TEXT)
        printf("; the server confirmed the %s\n",
               strcmp(coffer_node_get_text(verified, NULL), "md5") == 0 ? "MD5" : "SHA-256");
    else
        puts("; the server confirmed no checksum");
}

/* The hint for an upload that has begun; NULL = by status. */
static const char *hint_for_upload(const cli_args *args, const coffer_error *err)
{
    if (cli_has(args, "abort"))
        return NULL;
    if (err->status == COFFER_E_CANCELLED || err->system_error == ETIMEDOUT)
        return "run the command again to continue; 'coffer put --abort' removes the parts from the server";
    if (err->status == COFFER_E_LOCKED)
        return "wait for it, or end it";
    return NULL;
}

static int run(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    size_t count = cli_operand_count(args);
    const char *address = cli_operand(args, count - 1), *path = count > 1 ? cli_operand(args, 0) : NULL;
    uint64_t part_size, parallel;
    if (!path && !cli_has(args, "abort"))
        return cli_usage(args, "no address given; the last argument is s3://bucket/key");
    if (!cli_size(&part_size, args, "part-size", 0) || !cli_number(&parallel, args, "parallel", 8, 1, 64))
        return CLI_USAGE;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status && path)
        coffer_node_add_text(root, "file", path);
    if (!status)
        status = run_library(root, args, path, address, part_size, parallel, &err);
    int result = CLI_OK;
    if (status)
        result = cli_fail_between(path, address, &err, hint_for_upload(args, &err));
    else if (cli_has(args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_for_people(args, root);
    coffer_node_free(root);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return result;
}

static const cli_option options[] = {
    { "force", 'f', NULL, NULL, "overwrite an object that exists" },
    { "abort", 0, NULL, NULL, "remove the parts of unfinished uploads to the address, and upload nothing" },
    { "part-size", 0, "SIZE", NULL,
      "bytes of a part, from 5MiB to 5GiB; a huge file gets larger ones by itself", "8MiB" },
    { "parallel", 0, "N", NULL, "parts that are sent at once", "8" },
    { "json", 0, NULL, NULL,
      "one JSON object: file, address, size, parts, parts_found, bytes_sent, etag, checksum, verified" },
    { 0 },
};

const cli_verb cli_verb_put = {
    .name = "put",
    .usage = "FILE s3://BUCKET/KEY",
    .summary = "upload a file to S3, or continue an upload",
    .group = CLI_GROUP_CONVERT,
    .description =
        "Sends a file in parts, several at once, each with its checksum. The object appears when it is "
        "complete; an existing one is replaced only with --force. An address that ends in '/' gets the name "
        "of the file. FILE may be - for standard input, or the address of another remote file.\n\n"
        "After an interruption the same command continues: the parts on the server are compared with the "
        "file, and only the missing ones are sent. --abort removes them instead. Unfinished uploads are "
        "remembered in coffer/uploads of XDG_CACHE_HOME or ~/.cache.",
    .examples =
        "  coffer put model.mcf s3://bucket/models/           # as s3://bucket/models/model.mcf\n"
        "  coffer put --force model.mcf s3://bucket/model.mcf # replaces it in one step\n"
        "  coffer put --abort s3://bucket/model.mcf           # removes what an interrupted upload left\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .writes = CLI_WRITES_LAST,
    .run = run,
};
