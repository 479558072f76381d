#include "formats/rescue.h"

#include "base/fail.h"
#include "base/report.h"
#include "io/source_private.h"

void coffer__note_interrupted(coffer_report *out, const coffer_source *src)
{
    if (coffer_source_interrupted_update(src))
        coffer__report_add(out, COFFER_E_INTERRUPTED_UPDATE, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "interrupted update, old state shown");
}

coffer_status coffer__expect_settled(const coffer_source *src, coffer_error *err)
{
    if (coffer__source_settled(src))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was checked, try again");
}

coffer_status coffer__rescue_write(const char *path, bool overwrite, coffer_source *src,
                                   const coffer_progress *progress, coffer__rescue_compose compose,
                                   void *context, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !overwrite };
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create(&sink, path, &options, err);
    if (status)
        return status;
    status = compose ? compose(sink, context, err)
                     : coffer__sink_copy_source(sink, src, 0, coffer_source_size(src), progress, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    return coffer__sink_commit(sink, err);
}
