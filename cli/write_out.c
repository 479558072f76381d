#include "cli.h"

#include "io/sink.h"

int cli_write_out(const char *path, bool replace, const void *bytes, size_t len)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__sink *sink = NULL;
    coffer__sink_opts opts = { .exclusive = !replace };
    const char *output = path ? path : "-";
    coffer_status status = coffer__sink_create(&sink, output, &opts, &err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, bytes, len, &err);
    if (status == COFFER_OK)
        status = coffer__sink_commit(sink, &err);
    else
        coffer__sink_discard(sink);
    return status == COFFER_OK ? CLI_OK : cli_fail(output, &err, NULL);
}
