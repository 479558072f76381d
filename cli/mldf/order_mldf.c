/* order, for training sets: the numbers of the samples in the order a training run reads them. */
#include "base/memory.h"
#include "mldf/mldf_verbs.h"

#include <inttypes.h>

static const cli_option options[] = {
    { "seed", 0, "N", NULL, "seed of the shuffle", "0" },
    { "epoch", 0, "N", NULL, "epoch; each has its own order", "0" },
    { "sequential", 0, NULL, NULL, "no shuffling: 0, 1, 2 …" },
    { "window", 0, "N", NULL, "shuffle pages, then draw samples from N open pages: for slow disks" },
    { "page-samples", 0, "N", NULL, "with --window: samples per page", "by the page size of the file" },
    { "rank", 0, "N", NULL, "the part of process N, counted from 0", "0" },
    { "world", 0, "N", NULL, "number of processes", "1" },
    { "worker", 0, "N", NULL, "the part of worker N of the process, counted from 0", "0" },
    { "workers", 0, "N", NULL, "number of workers per process", "1" },
    { "drop-last", 0, NULL, NULL, "the same number for every process: skip the last few samples" },
    { "pad", 0, NULL, NULL, "the same number for every process: repeat the first few samples" },
    { "from", 0, "N", NULL, "first position, to resume where a run stopped", "0" },
    { "max", 'n', "N", NULL, "number of positions", "to the end of the epoch", mldf_max_old },
    { "json", 0, NULL, NULL, "one JSON object: samples, length, from, order" },
    { 0 },
};

typedef struct order_job {
    coffer_mldf_order order;
    uint64_t samples, epoch, length, from, end;
} order_job;

static int read_opts(coffer_mldf_order_opts *opts, const cli_args *args)
{
    uint64_t window, rank, world, worker, workers;
    if (!cli_number(&opts->seed, args, "seed", 0, 0, UINT64_MAX) ||
        !cli_number(&window, args, "window", 0, 1, UINT32_MAX) ||
        !cli_number(&opts->page_samples, args, "page-samples", 0, 1, UINT64_MAX) ||
        !cli_number(&rank, args, "rank", 0, 0, UINT32_MAX) ||
        !cli_number(&world, args, "world", 1, 1, UINT32_MAX) ||
        !cli_number(&worker, args, "worker", 0, 0, UINT32_MAX) ||
        !cli_number(&workers, args, "workers", 1, 1, UINT32_MAX))
        return CLI_USAGE;
    if (cli_has(args, "drop-last") && cli_has(args, "pad"))
        return cli_usage(args, "--drop-last and --pad exclude each other");
    if (rank >= world)
        return cli_usage(args, "--rank %" PRIu64 " of --world %" PRIu64 ": ranks go from 0 to %" PRIu64, rank,
                         world, world - 1);
    if (worker >= workers)
        return cli_usage(args, "--worker %" PRIu64 " of --workers %" PRIu64 ": they go from 0 to %" PRIu64,
                         worker, workers, workers - 1);
    opts->sequential = cli_has(args, "sequential");
    opts->window_pages = (uint32_t)window;
    opts->rank = (uint32_t)rank;
    opts->world = (uint32_t)world;
    opts->worker = (uint32_t)worker;
    opts->workers = (uint32_t)workers;
    opts->tail = cli_has(args, "drop-last") ? COFFER_MLDF_TAIL_DROP
                 : cli_has(args, "pad")     ? COFFER_MLDF_TAIL_PAD
                                            : COFFER_MLDF_TAIL_UNEVEN;
    return CLI_OK;
}

static int read_positions(order_job *job, const cli_args *args)
{
    uint64_t count;
    if (!cli_number(&job->epoch, args, "epoch", 0, 0, UINT64_MAX) ||
        !cli_number(&job->from, args, "from", 0, 0, UINT64_MAX) ||
        !cli_number(&count, args, "max", UINT64_MAX, 0, UINT64_MAX))
        return CLI_USAGE;
    job->length = coffer_mldf_order_length(&job->order);
    if (job->from > job->length)
        return cli_usage(args, "--from %" PRIu64 ": the epoch has %" PRIu64 " positions here", job->from,
                         job->length);
    job->end = count < job->length - job->from ? job->from + count : job->length;
    return CLI_OK;
}

static int print_json(const char *path, const order_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status) {
        coffer_node_add_u64(root, "samples", job->samples, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "length", job->length, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "from", job->from, COFFER_UNIT_NONE);
        coffer_node *list = coffer_node_add_list(root, "order");
        for (uint64_t i = job->from; i < job->end; i++)
            coffer_node_add_u64(list, NULL, coffer_mldf_order_at(&job->order, job->epoch, i),
                                COFFER_UNIT_NONE);
        status = coffer_node_status(root, &err);
    }
    int result = status ? cli_fail(path, &err, NULL) : cli_print_json(stdout, root);
    coffer_node_free(root);
    return result;
}

static int show(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    order_job job = { .order = COFFER_MLDF_ORDER_INIT, .samples = coffer_mldf_sample_count(set) };
    int result = read_opts(&opts, args);
    (void)key;
    if (result)
        return result;
    if (opts.window_pages && !opts.page_samples)
        opts.page_samples = coffer_mldf_samples_per_page(set);
    if (coffer_mldf_order_prepare(&job.order, job.samples, &opts, &err) != COFFER_OK)
        return mldf_fail(cli_operand(args, 0), &err);
    result = read_positions(&job, args);
    if (result)
        return result;
    if (cli_has(args, "json"))
        return print_json(cli_operand(args, 0), &job);
    for (uint64_t i = job.from; i < job.end && !ferror(stdout); i++)
        printf("%" PRIu64 "\n", coffer_mldf_order_at(&job.order, job.epoch, i));
    return CLI_OK;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mldf_with_set(args, src, show);
}

const cli_format_verb cli_mldf_order = {
    .format = "mldf",
    .verb = "order",
    .options = options,
    .examples = "  coffer order train.mldf --seed 1 -n 10                      # the first ten of epoch 0\n"
                "  coffer order train.mldf --seed 1 --epoch 2 --from 5000      # resume in epoch 2\n"
                "  coffer order train.mldf --seed 1 --rank 3 --world 8 --drop-last\n"
                "  coffer order train.mldf --seed 1 --window 16                # page by page\n",
    .run = run,
};
