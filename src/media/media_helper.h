/* Codecs in programs of their own (media_program.c): a file goes there, pixels or samples come back. What the
 * program says is checked like a file: it may be in the hands of one. */
#ifndef COFFER_MEDIA_HELPER_H
#define COFFER_MEDIA_HELPER_H

#include "base/helper.h"

/* For each file a BEGIN, whose content depends on the codec, and its BYTES; then the DATA, unless decoding
 * failed, and DONE. */
enum {
    COFFER__MEDIA_BEGIN = 1,
    COFFER__MEDIA_BYTES,
    COFFER__MEDIA_DATA,
    COFFER__MEDIA_DONE, /* i32 status, text */
    COFFER__MEDIA_OWN   /* the codec's own kinds from here on */
};

typedef struct coffer__media_call {
    coffer__helper *helper;
    const char *name; /* begins the messages: "TIFF" */
    const void *begin;
    size_t begin_len;
    const void *bytes; /* the file */
    size_t size;
    uint8_t *out; /* where the DATA goes, out_size bytes in all */
    size_t out_size;
    /* A frame of the codec's own kind; may set out and out_size. *sane : false when it is not right. NULL:
     * the codec has none. */
    coffer_status (*take)(struct coffer__media_call *call, uint32_t kind, const coffer__buffer *frame,
                          bool *sane, coffer_error *err);
    void *context; /* for take */
} coffer__media_call;

/* Starts the helper when it does not run, and decodes. */
coffer_status coffer__media_decode(coffer__media_call *call, coffer__module_id id, coffer_error *err);

#endif
