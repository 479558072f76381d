/* Shared by the files of this folder. */
#ifndef COFFER_FORMATS_PYCAUSET_PRIVATE_H
#define COFFER_FORMATS_PYCAUSET_PRIVATE_H

#include "base/buffer.h"
#include "base/json.h"
#include "coffer/format.h"
#include "coffer/pycauset.h"
#include "formats/pycauset/pycauset_layout.h"
#include "io/chunk_sums.h"

#include <stdatomic.h>

/* ---- Metadata (pycauset_value.c, pycauset_codec.c) ---- */

struct coffer_pycauset_value {
    const char *key; /* in a map, NUL-terminated; else NULL */
    union {
        bool boolean;
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *text;                             /* NUL-terminated beyond its length */
        const struct coffer_pycauset_value *children; /* of a map sorted by key */
    } as;
    uint32_t count; /* bytes of text, or children */
    uint16_t key_len;
    uint8_t kind; /* coffer_pycauset_kind */
    uint8_t room; /* log2 of the capacity of a list that is being changed in place; else 0 */
};

/* A decoded tree in one piece of memory. */
typedef struct coffer__pycauset_tree {
    const coffer_pycauset_value *root; /* a map */
    void *memory;
    size_t memory_bytes;
    bool unsorted; /* the file had the keys of some map in another order */
} coffer__pycauset_tree;

/* Decodes a whole value, a map. bytes must not change meanwhile: hand in a copy of what is mapped. base :
 * file offset of bytes[0]. out is untouched on failure. */
coffer_status coffer__pycauset_decode(coffer__pycauset_tree *out, const uint8_t *bytes, size_t len,
                                      uint64_t base, const coffer_limits *limits, coffer_error *err);
/* A copy in one allocation; COFFER_E_LIMIT when it is nested too deep for a reader. */
coffer_status coffer__pycauset_copy(coffer__pycauset_tree *out, const coffer_pycauset_value *root,
                                    const coffer_limits *limits, coffer_error *err);
void coffer__pycauset_tree_free(coffer__pycauset_tree *tree);

/* Appends the value. False when the buffer failed. */
bool coffer__pycauset_encode(coffer__buffer *out, const coffer_pycauset_value *value);
/* Appends a whole metadata block, framing and all; its place in the file must be 16-aligned. */
coffer_status coffer__pycauset_encode_block(coffer__buffer *out, const coffer_pycauset_value *root,
                                            coffer_error *err);

/* Order of keys: that of their bytes, which is that of their code points. */
int coffer__pycauset_compare_keys(const char *a, size_t a_len, const char *b, size_t b_len);
/* A child of a map by its plain key, or NULL. *at (may be NULL) is where it is or would be inserted. */
const coffer_pycauset_value *coffer__pycauset_child(const coffer_pycauset_value *map, const char *key,
                                                    size_t len, size_t *at);
/* The same with a key in the program's text. */
const coffer_pycauset_value *coffer__pycauset_get_key(const coffer_pycauset_value *map, const char *key);
/* Whether a STRING is this text. */
bool coffer__pycauset_text_is(const coffer_pycauset_value *value, const char *text);
/* A whole number that is not negative. */
bool coffer__pycauset_is_u64(uint64_t *out, const coffer_pycauset_value *value);
/* Any number. */
bool coffer__pycauset_is_f64(double *out, const coffer_pycauset_value *value);
bool coffer__pycauset_equal(const coffer_pycauset_value *a, const coffer_pycauset_value *b);
/* Fills in all but the key; allocates from `memory`. null is refused. */
coffer_status coffer__pycauset_from_json(coffer_pycauset_value *out, coffer__arena *memory,
                                         const coffer__json_value *json, coffer_error *err);
/* Goes a step down a path, with escapes where the key needs them; gives the length to go back to. */
size_t coffer__pycauset_push_key(coffer__buffer *path, const coffer_pycauset_value *child);
/* Adds the value to a map or list of nodes; bytes as hexadecimal digits. */
void coffer__pycauset_to_node(coffer_node *parent, const char *name, const coffer_pycauset_value *value);

/* ---- Header (pycauset_header.c) ---- */

typedef struct coffer__pycauset_slot {
    uint64_t generation;
    uint64_t payload_offset, payload_length;
    uint64_t metadata_offset, metadata_length;
    uint64_t hot_offset, hot_length;
    bool crc_matches;
    bool reserved_zero;
    coffer_status fault; /* COFFER_OK: valid */
} coffer__pycauset_slot;

typedef struct coffer__pycauset_header {
    coffer__pycauset_slot slots[2]; /* A, B */
    int active;                     /* 0, 1; −1 when none is valid */
} coffer__pycauset_header;

/* Offset of slot 0 (A) or 1 (B). */
static inline uint64_t coffer__pycauset_slot_place(int which)
{
    return COFFER__PYCAUSET_SLOT_A_AT + (uint64_t)which * COFFER__PYCAUSET_SLOT_SIZE;
}
/* Bytes of the payload of a matrix whose type is not known: up to the metadata that a slot names after it. */
uint64_t coffer__pycauset_slot_payload(const coffer__pycauset_header *header, int which);
/* Reads preamble and slots. Fails when the preamble is not that of a file of ours, not when no slot is valid.
 * COFFER_E_RESERVED_NOT_ZERO: all else is good, and *out is filled in, as it is with COFFER_E_BAD_VALUE. */
coffer_status coffer__pycauset_read_header(coffer__pycauset_header *out, coffer_source *src,
                                           coffer_error *err);
/* Fails with the reason for each slot when none is valid. */
coffer_status coffer__pycauset_expect_active(const coffer__pycauset_header *header, coffer_source *src,
                                             coffer_error *err);
/* Puts into words why a slot is not valid; COFFER_OK when it is. file_size : that it was judged by. */
coffer_status coffer__pycauset_explain_slot(const coffer__pycauset_header *header, int which,
                                            uint64_t file_size, coffer_error *err);
/* Judges crc_matches and the ranges, and fills in `fault`. */
void coffer__pycauset_judge_slot(coffer__pycauset_slot *slot, uint64_t file_size);
void coffer__pycauset_store_slot(uint8_t out[COFFER__PYCAUSET_SLOT_SIZE], const coffer__pycauset_slot *slot);
void coffer__pycauset_store_header(uint8_t out[COFFER__PYCAUSET_HEADER_SIZE], const coffer__pycauset_slot *a,
                                   const coffer__pycauset_slot *b);
/* A header as a new file has it: A is the generation, at least 1, B the one before, both name the same. */
void coffer__pycauset_store_fresh_header(uint8_t out[COFFER__PYCAUSET_HEADER_SIZE],
                                         const coffer__pycauset_slot *slot);

/* Reads the metadata block in [offset, offset + length), which must be inside the file. */
coffer_status coffer__pycauset_read_block(coffer__pycauset_tree *out, coffer_source *src, uint64_t offset,
                                          uint64_t length, const coffer_limits *limits, coffer_error *err);

/* ---- Interpreting keys (pycauset_shape.c, pycauset_read.c) ---- */

bool coffer__pycauset_type_by_name(coffer_pycauset_type *out, const coffer_pycauset_value *name);
bool coffer__pycauset_layout_by_name(coffer_pycauset_layout *out, const coffer_pycauset_value *name);
/* COFFER_DTYPE_NONE for MIXED. */
bool coffer__pycauset_dtype_by_name(coffer_dtype *out, const coffer_pycauset_value *name);
/* The layout that a type has; of IDENTITY, UNIT_VECTOR and BLOCK: none. */
coffer_pycauset_layout coffer__pycauset_layout_of(coffer_pycauset_type type);

/* Bytes of one row of `count` stored elements of a dense (BIT: padded to 64 bytes; F16 parts of C32 for one
 * of its two planes) or triangular (padded to 8 bytes) layout. False when it overflows. */
bool coffer__pycauset_dense_row_bytes(uint64_t *out, coffer_dtype dtype, uint64_t count);
bool coffer__pycauset_triangle_row_bytes(uint64_t *out, coffer_dtype dtype, uint64_t count);
/* Bytes of a triangle whose rows have longest, longest − 1, … 1 elements; of one plane of C32. Row i of the
 * triangle begins at triangle(longest) − triangle(longest − i). */
bool coffer__pycauset_triangle_bytes(uint64_t *out, coffer_dtype dtype, uint64_t longest);
/* The bytes that shape, type and layout require: reads type, dtype, has_diagonal, stored_rows and
 * stored_cols. False when it overflows. */
bool coffer__pycauset_payload_needed(uint64_t *out, const coffer_pycauset_info *info);

/* Fills in all of *out that the metadata says; payload_needed too, payload_offset … active_slot are left as
 * they are. offset : of the block, for messages. */
coffer_status coffer__pycauset_interpret(coffer_pycauset_info *out, const coffer_pycauset_value *root,
                                         uint64_t offset, coffer_error *err);
/* Whether a text is 32 hexadecimal digits. */
bool coffer__pycauset_is_uuid(const char *text);
/* "t=0;c=0;sr=1;si=0" */
#define COFFER__PYCAUSET_SIGNATURE_SIZE 96
void coffer__pycauset_view_signature(char out[COFFER__PYCAUSET_SIGNATURE_SIZE],
                                     const coffer_pycauset_info *info);
/* Whether an entry of `cached` has a value and the signature of this payload and view. */
bool coffer__pycauset_is_fresh(const coffer_pycauset_value *entry, const coffer_pycauset_value *root,
                               const char *view_signature);

/* ---- The open file (pycauset_read.c) ---- */

struct coffer__pycauset_blocks; /* children of a block matrix (pycauset_blocks.c) */

struct coffer_pycauset {
    coffer_source *source;
    bool owns_source;
    const coffer_pycauset *parent; /* the block matrix that it is a child of, or NULL */
    coffer_limits limits;
    coffer__pycauset_header header;
    coffer_pycauset_info info;
    coffer__pycauset_tree metadata;
    uint64_t metadata_offset, metadata_length;
    char view_signature[COFFER__PYCAUSET_SIGNATURE_SIZE];
    char *blocks_folder;              /* as the caller gave it, or NULL */
    coffer__chunk_verifier *verifier; /* of the payload; NULL when the metadata has no checksums */
    /* NULL until they are first read. */
    _Atomic(struct coffer__pycauset_blocks *) blocks;
};

/* For values of a matrix of an unknown type. */
coffer_status coffer__pycauset_fail_unknown(const coffer_pycauset *matrix, coffer_error *err);

/* ---- Older states (pycauset_history.c) ---- */

/* Where the block of a committed generation is; COFFER_E_NOT_FOUND when the file does not have it anymore. */
coffer_status coffer__pycauset_find_generation(uint64_t *offset, uint64_t *length, coffer_source *src,
                                               uint64_t generation, const coffer_limits *limits,
                                               coffer_error *err);

/* ---- Changes (pycauset_changes.c, pycauset_apply.c) ---- */

typedef enum coffer__pycauset_change_kind {
    COFFER__PYCAUSET_SET,
    COFFER__PYCAUSET_SET_CACHED, /* the value gets its signature when it is applied */
    COFFER__PYCAUSET_SET_CHECKSUMS,
    COFFER__PYCAUSET_DELETE
} coffer__pycauset_change_kind;

typedef struct coffer__pycauset_key {
    const char *text; /* NUL-terminated, escapes resolved */
    uint16_t len;
} coffer__pycauset_key;

typedef struct coffer__pycauset_change {
    coffer__pycauset_change_kind kind;
    const coffer__pycauset_key *path;
    size_t steps; /* 1 … COFFER__PYCAUSET_MAX_DEPTH */
    coffer_pycauset_value value;
} coffer__pycauset_change;

/* A new value of one element. */
typedef struct coffer__pycauset_element {
    uint64_t row, col;
    bool stored; /* row and col are those of the payload, not of the view */
    coffer_dtype dtype;
    uint8_t value[16];
} coffer__pycauset_element;

struct coffer_pycauset_changes {
    coffer__arena memory;
    coffer__pycauset_change *items;
    size_t count, capacity;
    coffer__pycauset_element *elements;
    size_t element_count, element_capacity;
    bool system; /* may set what says what the payload is */
};

/* A list that may also set the keys that say what the payload is: how a writer builds its metadata. */
coffer_status coffer__pycauset_system_changes_new(coffer_pycauset_changes **out, coffer_error *err);
/* A value in the caller's memory. */
coffer_status coffer__pycauset_changes_set_value(coffer_pycauset_changes *changes, const char *path,
                                                 const coffer_pycauset_value *value, coffer_error *err);
coffer_status coffer__pycauset_changes_copy(coffer_pycauset_changes **out,
                                            const coffer_pycauset_changes *changes, coffer_error *err);
bool coffer__pycauset_wants_checksums(const coffer_pycauset_changes *changes);
/* Whether a change is at the key, a top one, or below. */
bool coffer__pycauset_touches(const coffer_pycauset_changes *changes, const char *key);
/* The metadata after the changes. before : NULL for none. The result is in `memory` and borrows from before
 * and changes. sums : of the payload, a little-endian u32 for each group; NULL when the list does not want
 * them. */
coffer_status coffer__pycauset_apply(const coffer_pycauset_value **out, coffer__arena *memory,
                                     const coffer_pycauset_value *before,
                                     const coffer_pycauset_changes *changes, const coffer__buffer *sums,
                                     coffer_error *err);

/* ---- Elements that change in place (pycauset_elements.c) ---- */

/* Bytes of the payload before and after. */
typedef struct coffer__pycauset_patch {
    uint64_t offset; /* in the payload */
    size_t size;
    uint8_t before[16], after[16];
} coffer__pycauset_patch;

typedef struct coffer__pycauset_patches {
    coffer__pycauset_patch *items; /* sorted by offset, none overlapping */
    size_t count;
    coffer_pycauset_value record; /* what the metadata keeps of them, allocated from the arena */
} coffer__pycauset_patches;

/* Finds the bytes that change. first_wins : of two values for an element the first counts; else they are
 * COFFER_E_INVALID_ARGUMENT. */
coffer_status coffer__pycauset_plan_elements(coffer__pycauset_patches *out, coffer__arena *memory,
                                             coffer_source *src, const coffer_pycauset_info *info,
                                             const coffer__pycauset_element *elements, size_t count,
                                             bool first_wins, coffer_error *err);
void coffer__pycauset_patches_free(coffer__pycauset_patches *patches);
/* Appends the elements of a record, with the values that they had before. False when it is not a record. */
coffer_status coffer__pycauset_elements_of_record(coffer_pycauset_changes *out,
                                                  const coffer_pycauset_value *record, coffer_error *err);

/* ---- Checksums (pycauset_payload.c) ---- */

/* Appends checksums as the metadata stores them: a little-endian u32 each. */
void coffer__pycauset_put_sums(coffer__buffer *out, const uint32_t *sums, size_t count);
/* Appends the checksums that the payload's payload_needed bytes will have with the patches. What the metadata
 * has checksums of is verified before: COFFER_E_BAD_CHECKSUM rather than a new checksum of damaged bytes. */
coffer_status coffer__pycauset_sum_payload(coffer__buffer *out, coffer_source *src,
                                           const coffer_pycauset_info *info,
                                           const coffer_pycauset_value *root,
                                           const coffer__pycauset_patches *patches, bool verify_all,
                                           coffer_error *err);
/* Verifies what is read of the payload from now on, when the metadata has usable checksums. */
coffer_status coffer__pycauset_start_verifying(coffer_pycauset *matrix, coffer_error *err);
/* Verifies bytes of the payload that are about to be read; damage that the caller accepts is reported and
 * passes. What is copied goes through coffer_pycauset_verify, which always fails. */
coffer_status coffer__pycauset_verify_read(const coffer_pycauset *matrix, uint64_t offset, uint64_t len,
                                           coffer_error *err);
/* Compares them with those in the metadata, if it has any. */
coffer_status coffer__pycauset_verify_checksums(coffer_report *out, const coffer_pycauset *matrix,
                                                const coffer_check_opts *opts, coffer_error *err);

/* ---- Children (pycauset_blocks.c) ---- */

/* As coffer_pycauset_open, of a child. */
coffer_status coffer__pycauset_open_child(coffer_pycauset **out, coffer_source *src,
                                          const coffer_pycauset_open_opts *opts,
                                          const coffer_pycauset *parent, coffer_error *err);
void coffer__pycauset_blocks_free(struct coffer__pycauset_blocks *blocks); /* NULL allowed */
/* For a block matrix of MIXED type: value_dtype becomes the common type of its children. When one of them
 * cannot be opened, it stays unchanged; reading reports the error. */
void coffer__pycauset_settle_value_dtype(coffer_pycauset *matrix);
/* Findings about a file that could be opened. */
coffer_status coffer__pycauset_check_open(coffer_report *out, const coffer_pycauset *matrix,
                                          const coffer_check_opts *opts, coffer_error *err);
/* Findings about manifest and children; opts->full goes into the children's payloads. */
coffer_status coffer__pycauset_check_blocks(coffer_report *out, const coffer_pycauset *matrix,
                                            const coffer_check_opts *opts, coffer_error *err);

/* The row's functions. */
coffer_status coffer__pycauset_describe(coffer_node *out, coffer_source *src,
                                        const coffer_describe_opts *opts, coffer_error *err);
coffer_status coffer__pycauset_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                     coffer_error *err);
coffer_status coffer__pycauset_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                    coffer_error *err);
coffer_status coffer__pycauset_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                    const coffer_diff_opts *opts, coffer_error *err);
coffer_status coffer__pycauset_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                      const coffer_repair_opts *opts, coffer_error *err);
coffer_status coffer__pycauset_compact(coffer_node *out, const char *path, const char *out_path,
                                       const coffer_compact_opts *opts, coffer_error *err);

#endif
