/* The state of an edit in place, shared by mcf_edit*.c. */
#ifndef COFFER_FORMATS_MCF_EDIT_H
#define COFFER_FORMATS_MCF_EDIT_H

#include "formats/mcf/mcf_private.h"
#include "io/journal.h"

typedef struct coffer__mcf_change {
    uint32_t type, version;
    bool removed;
    uint8_t *bytes;
    size_t len;
} coffer__mcf_change;

struct coffer_mcf_editor {
    coffer_limits limits;
    coffer__update *update;
    coffer_mcf *model;           /* header and directory */
    coffer__mcf_change *changes; /* one for each type */
    size_t count, capacity;
    bool recompute;            /* write new checksums */
    coffer__mcf_sums payloads; /* with recompute: of the payloads */
    bool committed;
};

coffer__mcf_change *coffer__mcf_find_change(const coffer_mcf_editor *editor, uint32_t type);
/* added.bytes belong to the editor from now on, also on failure. */
coffer_status coffer__mcf_put_change(coffer_mcf_editor *editor, coffer__mcf_change added, coffer_error *err);

/* Removes the original of a section that is replaced from Files. name : may be NULL. (mcf_files.c) */
coffer_status coffer__mcf_forget_file(coffer_mcf_editor *editor, const char *name, coffer_error *err);

/* The checksums of the file after an edit (mcf_edit_sums.c). */

/* Bytes that an edit writes. */
typedef struct coffer__mcf_written {
    uint64_t offset;
    const uint8_t *bytes;
    size_t len;
} coffer__mcf_written;

/* Decides which ranges the new table has: *wanted is false when the file gets no new table. The new parts
 * are added later. */
coffer_status coffer__mcf_edit_sums_begin(coffer__mcf_sums *out, bool *wanted,
                                          const coffer_mcf_editor *editor, coffer_error *err);
/* Fills the sums: of the written parts from memory, of the others from the old table or the file. sums :
 * planned with the ranges of the written parts. */
coffer_status coffer__mcf_edit_sums_fill(coffer__mcf_sums *sums, const coffer_mcf_editor *editor,
                                         const coffer__mcf_written *written, size_t count, coffer_error *err);

#endif
