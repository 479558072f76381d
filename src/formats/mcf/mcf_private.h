/* Shared by the files of this folder. */
#ifndef COFFER_FORMATS_MCF_PRIVATE_H
#define COFFER_FORMATS_MCF_PRIVATE_H

#include "coffer/format.h"
#include "coffer/mcf.h"
#include "formats/mcf/mcf_layout.h"
#include "io/chunk_sums.h"

#include <inttypes.h>
#include <stdatomic.h>

/* ---- Header and directory (mcf_header.c) ---- */

typedef struct coffer__mcf_header {
    uint16_t major, minor;
    uint32_t header_size, section_count;
    uint64_t directory, file_size, flags;
} coffer__mcf_header;

/* Reads the 40 bytes. Refuses other files, another major version and an impossible header; does not check
 * offsets. */
coffer_status coffer__mcf_read_header(coffer__mcf_header *out, coffer_source *src, coffer_error *err);
void coffer__mcf_store_header(uint8_t out[COFFER__MCF_HEADER_SIZE], const coffer__mcf_header *header);
/* Reads the entries unchecked (coffer__free). COFFER_E_OUT_OF_BOUNDS when the directory is not inside the
 * file. */
coffer_status coffer__mcf_read_directory(coffer_mcf_section **out, coffer_source *src,
                                         const coffer__mcf_header *header, const coffer_limits *limits,
                                         coffer_error *err);
void coffer__mcf_store_directory(uint8_t *out, const coffer_mcf_section *sections, size_t count);
/* Checks that a section is inside the file, aligned, and outside of header and directory. */
coffer_status coffer__mcf_check_section(const coffer_mcf_section *section, const coffer__mcf_header *header,
                                        uint64_t file_size, coffer_error *err);
/* COFFER_E_OVERLAP, with the first pair in the file, when two sections share bytes. */
coffer_status coffer__mcf_check_overlap(const coffer_mcf_section *sections, size_t count, coffer_error *err);
/* The first section of a type; NULL when the file has none. */
const coffer_mcf_section *coffer__mcf_first_section(const coffer_mcf_section *sections, size_t count,
                                                    uint32_t type);
/* "TensorIndex", "section 0x7777": for messages. */
typedef struct coffer__mcf_label {
    char text[32];
} coffer__mcf_label;
coffer__mcf_label coffer__mcf_section_label(uint32_t type);

/* ---- TensorIndex (mcf_index.c) ---- */

typedef struct coffer__mcf_index {
    uint64_t base; /* file offset of the section */
    uint32_t flags;
    size_t count;
    uint64_t entries_off; /* from the section's start */
    uint64_t dims_off;
    uint64_t strings_off;
    const uint8_t *entries; /* in raw */
    const char *strings;
    uint64_t strings_size;
    size_t dim_count;
    uint64_t *dims;
    uint8_t *raw;
} coffer__mcf_index;

/* An unchecked entry, with pointers to its name and dims where these are inside the tables. */
typedef struct coffer__mcf_entry {
    const char *name; /* NULL when it is outside of the strings */
    uint32_t name_off, name_len;
    uint32_t dtype, rank, dim_off, reserved;
    const uint64_t *dims; /* NULL when they are outside of the table */
    uint64_t offset, size;
} coffer__mcf_entry;

/* Reads a section that is inside the file, and checks that its tables are inside the section. */
coffer_status coffer__mcf_index_load(coffer__mcf_index *out, coffer_source *src,
                                     const coffer_mcf_section *section, const coffer_limits *limits,
                                     coffer_error *err);
/* The same for an index whose version may be damaged. */
coffer_status coffer__mcf_index_rescue(coffer__mcf_index *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err);
void coffer__mcf_index_free(coffer__mcf_index *index);
coffer__mcf_entry coffer__mcf_index_entry(const coffer__mcf_index *index, size_t position);
/* Offset of an entry in the file. */
uint64_t coffer__mcf_entry_at(const coffer__mcf_index *index, size_t position);
/* The name for messages: truncated if it is long, "#7" when it cannot be read. */
typedef struct coffer__mcf_name {
    char text[72];
} coffer__mcf_name;
coffer__mcf_name coffer__mcf_entry_name(const coffer__mcf_index *index, size_t position);
/* Order of two names as raw bytes; an unreadable one is the empty name. */
int coffer__mcf_compare_names(const char *a, size_t a_len, const char *b, size_t b_len);
bool coffer__mcf_index_is_sorted(const coffer__mcf_index *index);
/* Positions in the order of the names, equal names in the order of the file; coffer__free. */
coffer_status coffer__mcf_index_order(uint32_t **out, const coffer__mcf_index *index, coffer_error *err);
/* The name of an entry against another one; an entry without a valid name counts as an empty one. */
int coffer__mcf_index_compare(const coffer__mcf_index *index, size_t position, const char *name,
                              size_t name_len);
/* The first entry with a name, or COFFER_INDEX_NONE. order : NULL = the entries are sorted. */
size_t coffer__mcf_index_find(const coffer__mcf_index *index, const uint32_t *order, const char *name,
                              size_t name_len);

/* ---- Payloads (mcf_index.c) ---- */

/* Product of the dims; false when it does not fit. */
bool coffer__mcf_elements(uint64_t *out, uint32_t rank, const uint64_t *dims);
/* q* and k*: those that need rank 2 and the flag in the header. */
bool coffer__mcf_is_blocked(coffer_dtype dtype);

/* ---- QuantInfo (mcf_quant_info.c) ---- */

typedef struct coffer__mcf_quant_record {
    uint32_t tensor;
    uint8_t method, domain;
    uint16_t block_size, super_size;
    uint8_t reserved[COFFER__MCF_QUANT_RESERVED];
    float min_clip, max_clip;
} coffer__mcf_quant_record;

/* Reads the records (coffer__free) of a section, whose range was checked. */
coffer_status coffer__mcf_read_quant_records(coffer__mcf_quant_record **out, size_t *count,
                                             coffer_source *src, const coffer_mcf_section *section,
                                             const coffer_limits *limits, coffer_error *err);
void coffer__mcf_store_quant_record(uint8_t out[COFFER__MCF_QUANT_RECORD],
                                    const coffer__mcf_quant_record *record);
/* The record that a type implies. */
coffer_mcf_quant coffer__mcf_implied_quant(coffer_dtype dtype);
/* True when the tensor's record has the domain "activations". */
bool coffer__mcf_has_activations(const coffer_mcf *model, size_t tensor);

/* ---- ModelInfo (mcf_model_info.c) ---- */

/* Everything is in one allocation (coffer__mcf_model_info_free). report : may be NULL; gets the mistakes,
 * which are left out of the result. Without it the first mistake is the error. */
coffer_status coffer__mcf_decode_model_info(coffer_mcf_model_info **out, const uint8_t *bytes, size_t len,
                                            uint64_t base, coffer_report *report, coffer_error *err);
void coffer__mcf_model_info_free(coffer_mcf_model_info *info);
struct coffer__buffer;
coffer_status coffer__mcf_encode_model_info(struct coffer__buffer *out, const coffer_mcf_model_info *info,
                                            coffer_error *err);

/* ---- Checksums (mcf_checksum.c) ---- */

typedef struct coffer__mcf_range {
    uint64_t offset, size;
    size_t first_sum; /* of its chunks, each COFFER__MCF_CHUNK bytes from the start of the range */
} coffer__mcf_range;

typedef struct coffer__mcf_sums {
    uint32_t version;
    uint64_t file_size, place; /* version 2: of the file and of the section, when it was written */
    coffer__mcf_range *ranges; /* sorted, none overlapping; version 1: TensorData */
    size_t range_count, range_capacity;
    uint32_t *sums;
    size_t sum_count;
} coffer__mcf_sums;

void coffer__mcf_sums_free(coffer__mcf_sums *sums);
/* Reads and checks a table. COFFER_E_UNSUPPORTED_VERSION for an intact one of another version. */
coffer_status coffer__mcf_sums_load(coffer__mcf_sums *out, coffer_source *src,
                                    const coffer_mcf_section *section, const coffer_limits *limits,
                                    coffer_error *err);
/* True when the table was written for another layout: another program moved the parts of the file. data :
 * TensorData, or NULL. */
bool coffer__mcf_sums_stale(const coffer__mcf_sums *sums, const coffer__mcf_header *header,
                            uint64_t source_size, uint64_t place, const coffer_mcf_section *data);
/* Builds a table: ranges in any order, then plan, which sorts them and makes room for the sums. */
coffer_status coffer__mcf_sums_add(coffer__mcf_sums *sums, uint64_t offset, uint64_t size, coffer_error *err);
coffer_status coffer__mcf_sums_plan(coffer__mcf_sums *sums, coffer_error *err);
/* Sizes of the section that encode appends. */
size_t coffer__mcf_sums_size(const coffer__mcf_sums *sums);
coffer_status coffer__mcf_sums_encode(struct coffer__buffer *out, const coffer__mcf_sums *sums,
                                      coffer_error *err);
/* The range that contains an offset; NULL when none does. */
const coffer__mcf_range *coffer__mcf_sums_find(const coffer__mcf_sums *sums, uint64_t offset);
/* The range of a sum, and the offset and size of its chunk. */
const coffer__mcf_range *coffer__mcf_sums_chunk(uint64_t *offset, size_t *size, const coffer__mcf_sums *sums,
                                                size_t sum);
/* Computes the sums whose `wanted` is set (NULL = all) on all cores. */
coffer_status coffer__mcf_sums_compute(coffer__mcf_sums *sums, const bool *wanted, coffer_source *src,
                                       const coffer__work_opts *opts, coffer_error *err);

/* ---- Verified reads (mcf_verify.c) ---- */

typedef struct coffer__mcf_verifier coffer__mcf_verifier;

/* Loads the Checksums of a model and verifies everything that was read while opening it. Leaves
 * model->verifier NULL when the file has no checksums, or stale ones. required : COFFER_E_MISSING then.
 * lenient : verifies payloads only. */
coffer_status coffer__mcf_start_verifying(coffer_mcf *model, bool required, bool lenient, coffer_error *err);
void coffer__mcf_verifier_free(coffer__mcf_verifier *verifier);
/* Verifies the chunks of a range that were not verified before. have : the bytes of the range, if the caller
 * has read them already; NULL = read them. Names the tensors on failure. Any number of threads may call
 * it. */
coffer_status coffer__mcf_verify_range(const coffer_mcf *model, uint64_t offset, uint64_t len,
                                       const uint8_t *have, coffer_error *err);
/* The same for a section; one that the table does not cover passes. */
coffer_status coffer__mcf_verify_section(const coffer_mcf *model, const coffer_mcf_section *section,
                                         coffer_error *err);
/* The same for what a caller of the library reads: damage that it accepts (coffer_source_keep_damaged) is
 * reported and passes. A section must not have recorded damage either. */
coffer_status coffer__mcf_verify_read(const coffer_mcf *model, uint64_t offset, uint64_t len,
                                      const uint8_t *have, coffer_error *err);
/* Gives the bytes of coffer_mcf_read as a view where the source has one, else in `scratch`. Ask
 * coffer_source_intact before trusting what was computed from it. */
coffer_status coffer__mcf_fetch(const uint8_t **out, const coffer_mcf *model, size_t tensor, uint64_t begin,
                                size_t len, uint8_t *scratch, coffer_error *err);
coffer_status coffer__mcf_verify_section_read(const coffer_mcf *model, const coffer_mcf_section *section,
                                              coffer_error *err);
const coffer__mcf_sums *coffer__mcf_verifier_sums(const coffer__mcf_verifier *verifier);

/* The tensors with bytes in a range, for messages: "a, b and 3 more"; "" for none. */
typedef struct coffer__mcf_names {
    char text[120];
} coffer__mcf_names;
coffer__mcf_names coffer__mcf_names_in(const coffer__mcf_index *index, uint64_t start, uint64_t end);

/* ---- DirectoryCopy (mcf_header.c) ---- */

/* Header and directory as a copy near the front of the file repeats them. */
typedef struct coffer__mcf_copy {
    coffer__mcf_header header;
    coffer_mcf_section *sections; /* header.section_count of them; coffer__free */
} coffer__mcf_copy;

/* Fills `size` bytes, which must have room for the entries. */
void coffer__mcf_copy_store(uint8_t *out, size_t size, const coffer__mcf_header *header,
                            const coffer_mcf_section *sections);
/* Reads the copy at `place`. COFFER_E_MISSING when the place has no copy, COFFER_E_BAD_CHECKSUM when it is
 * damaged. */
coffer_status coffer__mcf_copy_load(coffer__mcf_copy *out, coffer_source *src, uint64_t place,
                                    const coffer_limits *limits, coffer_error *err);
/* COFFER_E_INCONSISTENT when header or directory differ from an intact copy that was written for them.
 * sections : header->section_count of them. */
coffer_status coffer__mcf_copy_compare(coffer_source *src, const coffer__mcf_header *header,
                                       const coffer_mcf_section *sections, const coffer_limits *limits,
                                       coffer_error *err);

/* ---- Damage (mcf_damage.c) ---- */

typedef struct coffer__mcf_damages {
    coffer_mcf_damage *items; /* their names are in `names`, NUL-terminated */
    size_t count, capacity;
    char *names;
} coffer__mcf_damages;

coffer_status coffer__mcf_damages_load(coffer__mcf_damages *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err);
void coffer__mcf_damages_free(coffer__mcf_damages *damages);
/* Reads the Damage of a model that has its sections and index. */
coffer_status coffer__mcf_load_damage(coffer_mcf *model, coffer_error *err);
/* COFFER_E_BAD_CHECKSUM when the section has recorded damage. */
coffer_status coffer__mcf_check_section_damage(const coffer_mcf *model, const coffer_mcf_section *section,
                                               coffer_error *err);
/* COFFER_E_BAD_CHECKSUM when the range of a tensor has recorded damage that the caller does not accept. */
coffer_status coffer__mcf_check_known_damage(const coffer_mcf *model, size_t tensor, uint64_t begin,
                                             uint64_t len, coffer_error *err);
/* Appends the section. */
coffer_status coffer__mcf_damages_encode(struct coffer__buffer *out, const coffer_mcf_damage *items,
                                         size_t count, coffer_error *err);

/* Fields of a ModelInfo by name, for edits (mcf_model_fields.c): encodes `info` with one field or key
 * changed, as coffer_mcf_editor_set_model_info describes. May change `info`. */
coffer_status coffer__mcf_change_model_info(struct coffer__buffer *out, coffer_mcf_model_info *info,
                                            const char *field, const char *text, coffer_mcf_kv_type type,
                                            coffer_error *err);

/* ---- Files (mcf_files.c) ---- */

typedef struct coffer__mcf_file {
    coffer_mcf_file file; /* its name is in `name` */
    char *name;
    const uint8_t *bytes; /* in the section, or `own` */
    uint8_t *own;         /* NULL = in the section */
} coffer__mcf_file;

typedef struct coffer__mcf_files {
    uint8_t *section; /* NULL = none */
    coffer__mcf_file *items;
    size_t count, capacity;
} coffer__mcf_files;

/* bytes : the section, which the list owns from now on, also on failure. base : its offset in the file. */
coffer_status coffer__mcf_files_decode(coffer__mcf_files *out, uint8_t *bytes, size_t len, uint64_t base,
                                       coffer_error *err);
void coffer__mcf_files_free(coffer__mcf_files *files);
/* Adds or replaces a file; bytes are copied. */
coffer_status coffer__mcf_files_put(coffer__mcf_files *files, const char *name, coffer_mcf_file_kind kind,
                                    const void *bytes, size_t len, coffer_error *err);
size_t coffer__mcf_files_find(const coffer__mcf_files *files, const char *name);
void coffer__mcf_files_remove(coffer__mcf_files *files, size_t index);
/* Appends the section. */
coffer_status coffer__mcf_files_encode(struct coffer__buffer *out, coffer__mcf_files *files,
                                       coffer_error *err);

/* The cache of coffer_mcf_get_files. */
struct coffer__mcf_public_files;
void coffer__mcf_public_files_free(struct coffer__mcf_public_files *files);

/* ---- Sections of a model without a directory (mcf_search.c) ---- */

/* Searches the beginning and the end of a file for a TensorIndex: 8-aligned, with plausible entries.
 * found->size : 0 when not found. Takes linear time. */
coffer_status coffer__mcf_search_index(coffer_mcf_section *found, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err);
/* The same for a ModelInfo. */
coffer_status coffer__mcf_search_model_info(coffer_mcf_section *found, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err);

/* The same for Checksums, at any offset, near the end of the file. */
coffer_status coffer__mcf_search_sums(coffer_mcf_section *found, coffer_source *src,
                                      const coffer_limits *limits, coffer_error *err);

/* ---- The handle (mcf_open.c, mcf_read.c) ---- */

struct coffer_mcf {
    coffer_source *source;
    bool owns_source;
    coffer_limits limits;
    coffer__mcf_header header;
    coffer_mcf_section *sections;
    size_t section_count;
    coffer__mcf_index index;
    coffer_mcf_tensor *tensors; /* index.count of them, their names in `names` */
    char *names;
    bool sorted;   /* checked; the flag of the index may be wrong */
    bool has_data; /* a TensorData section exists and contains the payloads */
    coffer_mcf_section data;
    uint32_t *_Atomic order; /* of names, made when a lookup first needs it */
    coffer__mcf_quant_record *quants;
    coffer_mcf_quant *public_quants; /* the same for callers */
    size_t quant_count;
    uint32_t *quant_of;            /* by tensor: 1 + position in quants, 0 = none; NULL without a QuantInfo */
    coffer_mcf_quality *qualities; /* their texts are in `importances` */
    char *importances;
    uint32_t *quality_of; /* by tensor: 1 + position in qualities, 0 = none; NULL without a QuantQuality */
    coffer_mcf_model_info *_Atomic model_info;
    coffer__mcf_verifier *verifier; /* NULL without checksums, and with stale ones */
    struct coffer__mcf_public_files *_Atomic files;
    coffer__mcf_damages damages;
    /* The damage of a tensor as a list, 0 = end: damage_of[tensor] is 1 + its first position in `damages`,
     * damage_next[position] continues. NULL without recorded damage. */
    uint32_t *damage_of, *damage_next;
    bool allow_damaged;
};

/* Reads the QuantInfo of a model that has its sections and index. */
coffer_status coffer__mcf_load_quants(coffer_mcf *model, coffer_error *err);
/* The same for the QuantQuality. */
coffer_status coffer__mcf_load_quality(coffer_mcf *model, coffer_error *err);
/* Opens with header and directory only, for an edit. */
coffer_status coffer__mcf_open_outline(coffer_mcf **out, coffer_source *src, const coffer_limits *limits,
                                       coffer_error *err);

/* COFFER_OK when the payload may be read: the range is inside the file and TensorData. */
coffer_status coffer__mcf_check_range(const coffer_mcf *model, size_t tensor, coffer_error *err);
/* COFFER_OK when, in addition, type, shape and size agree. */
coffer_status coffer__mcf_check_tensor(const coffer_mcf *model, size_t tensor, coffer_error *err);
/* The separate checks, for files without a handle. data : NULL without a TensorData section. */
coffer_status coffer__mcf_check_payload_range(const coffer__mcf_index *index, size_t position,
                                              uint64_t file_size, const coffer_mcf_section *data,
                                              coffer_error *err);
coffer_status coffer__mcf_check_payload_size(const coffer__mcf_index *index, size_t position,
                                             bool activations, coffer_error *err);

/* Reads a section into new memory and adds a NUL (coffer__free). */
coffer_status coffer__mcf_load_section(uint8_t **out, size_t *len, coffer_source *src,
                                       const coffer_mcf_section *section, uint64_t max, coffer_error *err);

/* True for the sections that contain JSON. */
bool coffer__mcf_holds_json(uint32_t type);
/* Checks that a section is valid JSON; text : NUL-terminated. base : its offset in the file. */
coffer_status coffer__mcf_check_json(uint32_t type, const char *text, size_t len, uint64_t base,
                                     const coffer_limits *limits, coffer_error *err);

/* ---- The row's functions ---- */

coffer_status coffer__mcf_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                   coffer_error *err);
coffer_status coffer__mcf_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                coffer_error *err);
coffer_status coffer__mcf_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                               coffer_error *err);
coffer_status coffer__mcf_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                 const coffer_repair_opts *opts, coffer_error *err);
coffer_status coffer__mcf_compact(coffer_node *out, const char *path, const char *out_path,
                                  const coffer_compact_opts *opts, coffer_error *err);

#endif
