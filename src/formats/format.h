/* A format as the rest of the library sees it: one row of a table. */
#ifndef COFFER_FORMATS_FORMAT_H
#define COFFER_FORMATS_FORMAT_H

#include "coffer/format.h"
#include "io/sink.h"

struct coffer_format {
    const char *name, *extension, *title;
    /* The bytes a file of this format begins with; also used to guess what mangled them. */
    const uint8_t *magic;
    size_t magic_len;
    bool has_generations;   /* keeps older states, which describe and repair can show and restore */
    bool has_hash;          /* describe can hash the content */
    bool repairs_from_copy; /* repair can replace lost parts from a second copy */
    bool holds_tensors;     /* coffer_tensors_open reads it, so it compares with every other model */
    /* Where a file says its version, for formats whose readers accept newer ones; size 0 = the format has
     * none. With a major number, `at` and `newest` are those of the minor one. */
    struct {
        uint16_t at;
        uint8_t size; /* 2 or 4 bytes */
        bool has_minor;
        uint32_t major, newest;
    } version;
    const char *const *lists;         /* names for coffer_list_opts.what, the default first; ends with NULL */
    const char *const *part_suffixes; /* of the files a recording writes, ends with NULL; NULL = none */
    /* Recognizes a file by its first bytes. `len` may be shorter than the magic: never by a part of it. */
    bool (*probe)(const uint8_t *head, size_t len);
    coffer_status (*describe)(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                              coffer_error *err);
    coffer_status (*check)(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                           coffer_error *err);
    coffer_status (*list)(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                          coffer_error *err);
    coffer_status (*diff)(coffer_node *out, coffer_source *a, coffer_source *b, const coffer_diff_opts *opts,
                          coffer_error *err);
    coffer_status (*repair)(coffer_report *out, coffer_source *src, const char *out_path,
                            const coffer_repair_opts *opts, coffer_error *err);
    coffer_status (*compact)(coffer_node *out, const char *path, const char *out_path,
                             const coffer_compact_opts *opts, coffer_error *err);
    coffer_status (*compress)(coffer_node *out, const char *path, const char *out_path,
                              const coffer_compress_opts *opts, coffer_error *err);
    /* From the parts of a recording. COFFER_E_NOT_FOUND when they do not belong to this format. */
    coffer_status (*recover)(coffer_report *out, const char *path, const coffer_repair_opts *opts,
                             coffer_error *err);
};

extern const coffer_format coffer__mlyze_format;
extern const coffer_format coffer__mscan_format;
extern const coffer_format coffer__mcf_format;
extern const coffer_format coffer__mldf_format;
extern const coffer_format coffer__pycauset_format;

/* The error of a reader for a file without the magic of its format; says what may have changed the magic.
 * head : the first bytes of the file. */
coffer_status coffer__fail_magic(const coffer_format *format, const uint8_t *head, size_t len,
                                 coffer_error *err);

/* Helpers of check, diff and repair for all formats. */

/* Adds the note "interrupted update" when the source shows the state before one. */
void coffer__note_interrupted(coffer_report *out, const coffer_source *src);

/* COFFER_E_CHANGED when a part of the file that writers change in place was changed since it was opened. */
coffer_status coffer__expect_settled(const coffer_source *src, coffer_error *err);

/* Writes the repaired file. */
typedef coffer_status (*coffer__rescue_compose)(coffer__sink *sink, void *context, coffer_error *err);

/* Writes the output of a repair, which appears complete or not at all. progress : for
 * compose == NULL, which copies `src` unchanged. */
coffer_status coffer__rescue_write(const char *path, bool overwrite, coffer_source *src,
                                   const coffer_progress *progress, coffer__rescue_compose compose,
                                   void *context, coffer_error *err);

#endif
