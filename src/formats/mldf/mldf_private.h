/* Shared by the files of the MLDF format. */
#ifndef COFFER_FORMATS_MLDF_PRIVATE_H
#define COFFER_FORMATS_MLDF_PRIVATE_H

#include "base/bytes.h"
#include "coffer/format.h"
#include "coffer/mldf.h"
#include "formats/mldf/mldf_layout.h"

#include <stdatomic.h>

/* ---- Header (mldf_open.c) ---- */

typedef struct coffer__mldf_header {
    uint16_t major, minor;
    uint32_t flags;
    uint64_t samples;
    uint16_t fields, pad;
    uint32_t page_size;
    uint64_t descriptors, metadata, data, table; /* places in the file */
    uint64_t stated_data, stated_table;          /* as the header has them; see coffer__mldf_read_header */
    uint8_t bytes[COFFER__MLDF_HEAD_SIZE];       /* magic and header as read */
    uint32_t data_crc, table_crc;
} coffer__mldf_header;

/* Checks magic, version and byte order, but not the pointers. The data region of a set without payloads may
 * begin after the end of the file, as the tutorial's writer leaves it: it is then moved to the end. */
coffer_status coffer__mldf_read_header(coffer__mldf_header *out, coffer_source *src, coffer_error *err);
coffer__mldf_header coffer__mldf_load_header(const uint8_t at[COFFER__MLDF_HEADER_SIZE]);

/* The parts that the header points to. Each check says whether the part is inside a file of that size. */
coffer_status coffer__mldf_check_descriptors(const coffer__mldf_header *header, uint64_t file_size,
                                             coffer_error *err);
coffer_status coffer__mldf_check_rows(const coffer__mldf_header *header, uint32_t row_size,
                                      uint64_t file_size, coffer_error *err);
/* COFFER_E_LIMIT for a row that is larger than the file or the memory allowed: in a set without samples
 * nothing else bounds it. */
coffer_status coffer__mldf_bound_row(uint32_t row_size, const coffer__mldf_header *header, uint64_t file_size,
                                     const coffer_limits *limits, coffer_error *err);
coffer_status coffer__mldf_check_data(const coffer__mldf_header *header, uint64_t file_size,
                                      coffer_error *err);
coffer_status coffer__mldf_check_table(const coffer__mldf_header *header, uint64_t file_size,
                                       coffer_error *err);

/* ---- The guard (mldf_guard.c): what covers the bytes that the checksums of the header do not ---- */

typedef struct coffer__mldf_guard {
    uint64_t file_size, data_end;
    uint64_t recovery_from; /* 0 = no recovery blocks */
    uint64_t marks, mark_count;
    uint32_t front_crc, tail_crc;
    uint8_t id[COFFER__MLDF_ID_SIZE]; /* zeros = none */
    uint8_t head[COFFER__MLDF_HEAD_SIZE];
} coffer__mldf_guard;

typedef enum coffer__mldf_guard_state {
    COFFER__MLDF_GUARD_NONE = 0, /* other programs and version 0.1 write none */
    COFFER__MLDF_GUARD_FINE,
    COFFER__MLDF_GUARD_ONE_COPY,  /* the other copy is damaged */
    COFFER__MLDF_GUARD_STALE,     /* another program has appended to the file since */
    COFFER__MLDF_GUARD_TRUNCATED, /* the file is shorter than it was */
    COFFER__MLDF_GUARD_DIFFERS    /* the header, or the size of the file, is not what was written */
} coffer__mldf_guard_state;

/* Finds the guard of a file whose header has been read, and compares the header with it. both : the copies
 * are compared with each other; otherwise the second is read only when the first is not found. Fails only
 * when the file cannot be read. */
coffer_status coffer__mldf_read_guard(coffer__mldf_guard *out, coffer__mldf_guard_state *state,
                                      coffer_source *src, const coffer__mldf_header *header, bool both,
                                      coffer_error *err);
/* The guard that ends at `end`. */
coffer_status coffer__mldf_load_guard(coffer__mldf_guard *out, bool *found, coffer_source *src, uint64_t end,
                                      coffer_error *err);
void coffer__mldf_compose_guard(uint8_t out[COFFER__MLDF_GUARD_SIZE], const coffer__mldf_guard *guard);
bool coffer__mldf_has_id(const coffer__mldf_guard *guard);

/* Samples that a repair could not verify. */
typedef struct coffer__mldf_mark {
    uint64_t first, count; /* samples */
    uint16_t field;        /* COFFER__MLDF_MARK_ROW = the whole row */
    uint16_t kind;         /* coffer_mldf_mark_kind */
} coffer__mldf_mark;

/* The marks of a set that has a guard; *out is the caller's, coffer__free. */
coffer_status coffer__mldf_read_marks(coffer__mldf_mark **out, size_t *count, const coffer_mldf *set,
                                      coffer_error *err);
/* Sorts marks by field, kind and sample, and joins those of a field and kind that overlap or adjoin. */
void coffer__mldf_sort_marks(coffer__mldf_mark *marks, size_t *count);
/* By field and kind. */
int coffer__mldf_compare_marks(const coffer__mldf_mark *a, const coffer__mldf_mark *b);
void coffer__mldf_compose_mark(uint8_t out[COFFER__MLDF_MARK_SIZE], const coffer__mldf_mark *mark);
/* Compares header, rows and tables with their checksums, where the file has them. */
coffer_status coffer__mldf_verify_tables(coffer_mldf *set, coffer_error *err);

/* The same for header and descriptors alone. */
coffer_status coffer__mldf_verify_front(const coffer_mldf *set, coffer_error *err);

/* ---- Types (mldf_format.c) ---- */

typedef struct coffer__mldf_type_info {
    uint16_t type;
    const char *name;
    coffer_mldf_entry_kind kind;
    bool has_array; /* an array descriptor is in the arguments */
} coffer__mldf_type_info;

/* NULL for an unknown type. */
const coffer__mldf_type_info *coffer__mldf_type_info_of(uint16_t type);
/* The types in the order of their numbers; NULL past the end. */
const coffer__mldf_type_info *coffer__mldf_type_at(size_t index);
/* Bytes that an entry of this kind takes in the row; 0 for OPAQUE. */
uint32_t coffer__mldf_entry_size(coffer_mldf_entry_kind kind);
/* The kind has a place and a size in the row, and a payload in the data region. */
static inline bool coffer__mldf_has_payload(coffer_mldf_entry_kind kind)
{
    return kind >= COFFER_MLDF_ENTRY_BYTES;
}
uint32_t coffer__mldf_alignment_of(uint32_t entry_size); /* the largest of 8, 4, 2, 1 that divides it */

/* ---- Fields (mldf_fields.c) ---- */

typedef struct coffer__mldf_schema {
    coffer_mldf_field *fields;
    size_t count;
    uint32_t stride;
    uint32_t row_size;
    char *names;      /* COFFER__MLDF_NAME_SIZE for each field */
    uint32_t *sorted; /* indices in the order of the names */
} coffer__mldf_schema;

/* Reads the descriptors and finds their stride. report : may be NULL; what is wrong with single fields goes
 * there and the field is opaque, without it the first mistake is the error. */
coffer_status coffer__mldf_read_schema(coffer__mldf_schema *out, coffer_source *src,
                                       const coffer__mldf_header *header, const coffer_limits *limits,
                                       coffer_report *report, coffer_error *err);
void coffer__mldf_schema_free(coffer__mldf_schema *schema);
/* Gives fields whose type, name and order are set their kind, row_offset and row_size, and the width of the
 * row. False when the row would be wider than 4 GiB. An entry size of 0 is that of the type. */
bool coffer__mldf_lay_out_row(uint32_t *row_size, coffer_mldf_field *fields, size_t count);
/* The place where the descriptors, or the rows, would run into the next part: the lowest pointer of the
 * header above `offset`, or the size of the file. */
uint64_t coffer__mldf_next_part(const coffer__mldf_header *header, uint64_t offset, uint64_t file_size);

/* ---- Payloads (mldf_payload.c) ---- */

typedef struct coffer__mldf_dictionary coffer__mldf_dictionary;
typedef struct coffer__mldf_decoder coffer__mldf_decoder;

enum { COFFER__MLDF_IDLE_DECODERS = 32 };

struct coffer_mldf {
    coffer_source *source;
    coffer_source *own_source; /* closed with the set; NULL = borrowed */
    coffer_limits limits;
    uint64_t file_size;
    coffer__mldf_header header;
    coffer__mldf_schema schema;
    uint64_t table_count;
    bool verify, has_key, any_encrypted; /* fields that say so */
    bool strict;       /* damage is an error even when the caller accepts it: for copies, which mark it */
    bool verified;     /* rows and tables have the checksums that the file has for them */
    bool tables_wrong; /* they do not, and the caller accepts it */
    bool region_only;  /* the only checksum is that of the data region: entries of the table have none */
    coffer__mldf_guard guard; /* zeros without one */
    coffer__mldf_guard_state guard_state;
    uint8_t key[COFFER_MLDF_KEY_SIZE];
    /* Loaded when first needed; none for a set without dictionaries. */
    _Atomic(coffer__mldf_dictionary *) *dictionaries;
    /* Decoders that nobody uses at the moment: taken and given back without a lock, so that a fork at any
     * time leaves them usable. */
    _Atomic(coffer__mldf_decoder *) idle[COFFER__MLDF_IDLE_DECODERS];
};

/* coffer_mldf_open for sets that are changed: damage of rows and tables is an error even when the caller
 * accepts it. */
coffer_status coffer__mldf_open_strict(coffer_mldf **out, coffer_source *src,
                                       const coffer_mldf_open_opts *opts, coffer_error *err);

/* The three steps of opening and closing that check shares (mldf_open.c): a set without parts; what follows
 * from the fields once they are there; what it holds is given back. */
void coffer__mldf_prepare(coffer_mldf *set, coffer_source *src, const coffer_limits *limits,
                          const uint8_t *key);
coffer_status coffer__mldf_settle_fields(coffer_mldf *set, coffer_error *err);
void coffer__mldf_release(coffer_mldf *set);

/* Where a decoded value goes: memory of the caller's that does not grow, or bytes that do. */
typedef struct coffer__mldf_room {
    uint8_t *data;
    size_t capacity;
    coffer_bytes *grows; /* NULL = it does not */
    size_t spare;        /* bytes to be had after the value */
    bool too_small;      /* the value did not fit, and the memory does not grow */
} coffer__mldf_room;

/* Makes sure that `size` bytes fit. COFFER_E_LIMIT when the memory does not grow and is too small. */
coffer_status coffer__mldf_reserve(coffer__mldf_room *room, size_t size, coffer_error *err);

/* One decoder serves one thread at a time. */
coffer__mldf_decoder *coffer__mldf_take_decoder(const coffer_mldf *set, coffer_error *err); /* or NULL */
void coffer__mldf_give_decoder(const coffer_mldf *set, coffer__mldf_decoder *decoder);      /* NULL allowed */
void coffer__mldf_decoder_free(coffer__mldf_decoder *decoder);
void coffer__mldf_dictionary_free(coffer__mldf_dictionary *dictionary);

/* Compares the dictionary of a field with its checksum, where the file has one. */
coffer_status coffer__mldf_verify_dictionary(const coffer_mldf *set, const coffer_mldf_field *field,
                                             const uint8_t *bytes, coffer_error *err);

/* Payloads of the field are stored as they are, and nothing says that they should not be. */
bool coffer__mldf_is_plain(const coffer_mldf *set, size_t field);

/* One value of the set: which one, and where it is stored. */
typedef struct coffer__mldf_value {
    uint64_t sample;
    size_t field;
    uint64_t offset;
    uint32_t size; /* stored */
    bool unnamed;  /* errors of decoding do not name the sample and the field: the caller does */
} coffer__mldf_value;

/* Additional data that a payload is authenticated with: "MLDF", sample, field, and the identifier of the file
 * where it has one. */
typedef struct coffer__mldf_binding {
    uint8_t bytes[14 + COFFER__MLDF_ID_SIZE];
    size_t size;
} coffer__mldf_binding;

coffer__mldf_binding coffer__mldf_bind(uint64_t sample, uint16_t field,
                                       const uint8_t id[COFFER__MLDF_ID_SIZE]);

/* Decrypts and decompresses. stored : value->size bytes. *size gets what was written to the room. */
coffer_status coffer__mldf_decode(coffer__mldf_room *room, size_t *size, coffer__mldf_decoder *decoder,
                                  const coffer_mldf *set, const coffer__mldf_value *value,
                                  const uint8_t *stored, coffer_error *err);
/* Bytes of the value after decoding, from the stored ones or a part of them: false when that takes all of
 * them and a decoding. head_len : the first COFFER__MLDF_FRAME_HEAD bytes of the payload, or fewer. */
#define COFFER__MLDF_FRAME_HEAD 18
bool coffer__mldf_decoded_size(uint64_t *out, const coffer_mldf *set, const coffer__mldf_value *value,
                               const uint8_t *head, size_t head_len);
/* The key stream and tag alone. stored : nonce, ciphertext, tag. False when it is not authentic. out : size −
 * COFFER__MLDF_SEAL_SIZE bytes, not overlapping stored; NULL = only look. */
#define COFFER__MLDF_SEAL_SIZE (COFFER__MLDF_NONCE_SIZE + COFFER__MLDF_TAG_SIZE)
bool coffer__mldf_open_sealed(uint8_t *out, const uint8_t *stored, size_t size,
                              const coffer__mldf_binding *binding, const uint8_t key[COFFER_MLDF_KEY_SIZE]);

/* ---- Rows and values (mldf_rows.c, mldf_read.c) ---- */

/* "sample 7, field image: " in front of the words. */
coffer_status coffer__mldf_fail_value(coffer_error *err, coffer_status status, uint64_t offset,
                                      const coffer_mldf *set, uint64_t sample, size_t field,
                                      const char *format, ...) COFFER_PRINTF(7, 8);
/* The same for a value that is being decoded, at its offset; without the names when it is `unnamed`. */
coffer_status coffer__mldf_fail_decoding(coffer_error *err, coffer_status status, const coffer_mldf *set,
                                         const coffer__mldf_value *value, const char *format, ...)
    COFFER_PRINTF(5, 6);
/* Reads a row entry. */
coffer_status coffer__mldf_read_entry(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                      size_t field, coffer_error *err);
/* Decodes row bytes. */
void coffer__mldf_load_entry(coffer_mldf_entry *out, coffer_mldf_entry_kind kind, const uint8_t *at);
/* Place of a row entry. sample and field are there. */
static inline uint64_t coffer__mldf_entry_place(const coffer_mldf *set, uint64_t sample, size_t field)
{
    return set->header.metadata + sample * set->schema.row_size + set->schema.fields[field].row_offset;
}
coffer_status coffer__mldf_check_index(const coffer_mldf *set, uint64_t sample, size_t field,
                                       coffer_error *err);
/* An absent value, or one whose payload is in the data region and, with verify, is in the table; *crc
 * (may be NULL) is then the table's. */
coffer_status coffer__mldf_check_entry(uint32_t *crc, const coffer_mldf *set, uint64_t sample, size_t field,
                                       const coffer_mldf_entry *entry, coffer_error *err);
/* Compares stored bytes with the sum of the table, where the file has them. */
coffer_status coffer__mldf_check_crc(const coffer_mldf *set, const coffer__mldf_value *value,
                                     const uint8_t *stored, uint32_t crc, coffer_error *err);
/* After decoding failed: COFFER_OK when the stored bytes are damaged and the caller accepts damage. The value
 * is then empty, which is reported. */
coffer_status coffer__mldf_accept_undecoded(const coffer_mldf *set, const coffer__mldf_value *value,
                                            const uint8_t *stored, uint32_t crc, const coffer_error *why,
                                            coffer_error *err);
/* Reads a value, or its stored bytes, with `spare` bytes to be had after it. */
coffer_status coffer__mldf_read_with_spare(coffer_bytes *out, coffer_mldf_entry *entry,
                                           const coffer_mldf *set, uint64_t sample, size_t field, bool stored,
                                           size_t spare, coffer_error *err);
/* Makes room in bytes for `size` of them; what they held is lost. */
coffer_status coffer__mldf_bytes_reserve(coffer_bytes *bytes, size_t size, coffer_error *err);

/* ---- The allocation table (mldf_table.c) ---- */

typedef struct coffer__mldf_allocation {
    uint64_t offset;
    uint32_t size, crc;
} coffer__mldf_allocation;

static inline coffer__mldf_allocation coffer__mldf_load_allocation(const uint8_t *at)
{
    return (coffer__mldf_allocation){ coffer__load_u64(at), coffer__load_u32(at + COFFER__MLDF_TABLE_SIZE_AT),
                                      coffer__load_u32(at + COFFER__MLDF_TABLE_ENTRY_CRC_AT) };
}
/* Entries [first, first + count) as bytes: borrowed from the source, or read into scratch. */
coffer_status coffer__mldf_fetch_table(const uint8_t **out, const coffer_mldf *set, uint64_t first,
                                       size_t count, uint8_t *scratch, coffer_error *err);
/* The number of the first entry at or after a place; the number of entries if all are before it. */
coffer_status coffer__mldf_lower_bound(uint64_t *out, const coffer_mldf *set, uint64_t offset,
                                       coffer_error *err);
/* The entry of exactly this payload, and its number (may be NULL); *found is false if the table does not have
 * it. */
coffer_status coffer__mldf_find_allocation(coffer__mldf_allocation *out, uint64_t *index, bool *found,
                                           const coffer_mldf *set, uint64_t offset, uint32_t size,
                                           coffer_error *err);
/* Finds out whether the file has a checksum of the data region and no others (exercise 1 of the tutorial). */
coffer_status coffer__mldf_find_region_only(coffer_mldf *set, coffer_error *err);
/* Payloads have checksums in the allocation table. */
static inline bool coffer__mldf_has_sums(const coffer_mldf *set)
{
    return (set->header.flags & COFFER_MLDF_CHECKSUMMED) && !set->region_only;
}
/* Only Coffer has a flag for values that may be absent: in files of others nothing says that they may not. A
 * file of version 0.1 has checksums and its rows after the data. */
static inline bool coffer__mldf_requires_value(const coffer_mldf *set, const coffer_mldf_field *field)
{
    bool ours = set->guard_state != COFFER__MLDF_GUARD_NONE ||
                (coffer__mldf_has_sums(set) && set->header.metadata >= set->header.data);
    return ours && !(field->flags & COFFER_MLDF_FIELD_OPTIONAL);
}
/* The guard describes the file as it is. */
static inline bool coffer__mldf_guard_holds(const coffer_mldf *set)
{
    return set->guard_state == COFFER__MLDF_GUARD_FINE || set->guard_state == COFFER__MLDF_GUARD_ONE_COPY;
}
/* *out : true when `crc`, the checksum of descriptors, rows and table, is that of the header. */
coffer_status coffer__mldf_table_sum_agrees(bool *out, const coffer_mldf *set, uint32_t crc,
                                            coffer_error *err);
/* Adds a range of the file to a CRC-32. scratch : for sources without a view. */
#define COFFER__MLDF_SUM_BLOCK ((size_t)1 << 20)
coffer_status coffer__mldf_sum_range(uint32_t *crc, const coffer_mldf *set, uint64_t offset, uint64_t len,
                                     uint8_t *scratch, coffer_error *err);
/* The checksum of descriptors, rows and allocation table, table_crc32 of the header. */
coffer_status coffer__mldf_sum_tables(uint32_t *out, const coffer_mldf *set, coffer_error *err);
/* Where the data region ends: after the last payload of the table, or where it begins if the table is empty.
 */
coffer_status coffer__mldf_data_end(uint64_t *out, const coffer_mldf *set, coffer_error *err);

/* ---- Contents (mldf_typed.c) ---- */

/* The dims of an array payload and how many of its bytes they take; its size has been checked against them.
 * The error has no place and does not name the sample. */
coffer_status coffer__mldf_array_shape(uint64_t dims[COFFER_MLDF_MAX_DIMS], size_t *head,
                                       const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                       coffer_error *err);

/* ---- The verbs ---- */

/* The name of the type, or its number. */
void coffer__mldf_put_type(coffer_node *parent, const char *name, uint16_t type);

coffer_status coffer__mldf_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                    coffer_error *err);
coffer_status coffer__mldf_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                 coffer_error *err);
coffer_status coffer__mldf_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                coffer_error *err);
coffer_status coffer__mldf_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                const coffer_diff_opts *opts, coffer_error *err);
coffer_status coffer__mldf_repair_file(coffer_report *out, coffer_source *src, const char *out_path,
                                       const coffer_repair_opts *opts, coffer_error *err);
coffer_status coffer__mldf_compact(coffer_node *out, const char *path, const char *out_path,
                                   const coffer_compact_opts *opts, coffer_error *err);

#endif
