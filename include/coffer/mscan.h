#ifndef COFFER_MSCAN_H
#define COFFER_MSCAN_H

#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MSCAN: the activations and gradients of a model's parameters, token by token. docs/formats/mscan.md
 * describes the file.
 *
 * coffer_mscan_record, coffer_mscan_column and coffer_mscan_group are packed for speed and never grow; every
 * other struct may gain members at its end. */

/* ---- Reading ---- */

typedef struct coffer_mscan coffer_mscan;

typedef struct coffer_mscan_record {
    uint32_t token_idx; /* global over all sequences */
    uint16_t param_id;
    uint16_t block_idx;
    uint16_t activation; /* quantized */
    uint16_t grad_norm;  /* quantized */
} coffer_mscan_record;

typedef struct coffer_mscan_sequence {
    uint64_t sequence_id;
    uint64_t num_tokens;
    uint64_t first_token; /* global index of its first token */
    const char *source;   /* UTF-8, NUL-terminated, borrowed from the handle; NULL when the file has none */
    size_t source_len;
} coffer_mscan_sequence;

typedef struct coffer_mscan_param {
    uint64_t id;
    const char *name; /* UTF-8, NUL-terminated, borrowed from the handle */
    size_t name_len;
} coffer_mscan_param;

typedef enum coffer_mscan_metric {
    COFFER_MSCAN_ACTIVATION = 0,
    COFFER_MSCAN_GRAD_NORM = 1
} coffer_mscan_metric;

typedef struct coffer_mscan_open_opts {
    uint32_t struct_size;
    /* Accept a record area that is shorter than the header says; record_count is then the number of whole
     * records. */
    bool lenient;
    const coffer_limits *limits;
} coffer_mscan_open_opts;

#define COFFER_MSCAN_OPEN_OPTS_INIT                 \
    {                                               \
        sizeof(coffer_mscan_open_opts), false, NULL \
    }
COFFER_API void coffer_mscan_open_opts_init(coffer_mscan_open_opts *opts, uint32_t struct_size);

/* Opens a scan for reading.
 * src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * out : owned by the caller, coffer_mscan_close(); untouched on failure.
 * Reads the header and the metadata, but no records. O(metadata), independent of the record count.
 * Thread safety: after success, all calls with a const handle may run concurrently. */
COFFER_API_STATUS coffer_mscan_open(coffer_mscan **out, coffer_source *src,
                                    const coffer_mscan_open_opts *opts, coffer_error *err);
/* Opens a scan by path ("-" is standard input). The handle owns its source. */
COFFER_API_STATUS coffer_mscan_open_path(coffer_mscan **out, const char *path,
                                         const coffer_mscan_open_opts *opts, coffer_error *err);
/* Parses the metadata of a scan alone, as coffer_mscan_metadata returns it: a scan without records.
 * json : UTF-8, copied. */
COFFER_API_STATUS coffer_mscan_open_metadata(coffer_mscan **out, const char *json, size_t len,
                                             const coffer_mscan_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mscan_close(coffer_mscan *scan);

COFFER_API uint64_t coffer_mscan_record_count(const coffer_mscan *scan);
/* The sum of num_tokens, whatever tokens the records have. */
COFFER_API uint64_t coffer_mscan_total_tokens(const coffer_mscan *scan);
COFFER_API const char *coffer_mscan_model_name(const coffer_mscan *scan); /* "" when absent */
COFFER_API size_t coffer_mscan_sequence_count(const coffer_mscan *scan);
/* Borrowed from the handle; NULL past the end. */
COFFER_API const coffer_mscan_sequence *coffer_mscan_sequence_at(const coffer_mscan *scan, size_t index);
/* Index of the sequence that a global token belongs to, or COFFER_INDEX_NONE past the total.
 * O(log sequences). */
COFFER_API size_t coffer_mscan_sequence_of_token(const coffer_mscan *scan, uint64_t token);
/* Index of the sequence with that sequence_id, or COFFER_INDEX_NONE. O(sequences). */
COFFER_API size_t coffer_mscan_find_sequence(const coffer_mscan *scan, uint64_t sequence_id);
COFFER_API size_t coffer_mscan_param_count(const coffer_mscan *scan);
/* In ascending order of id. Borrowed from the handle; NULL past the end. */
COFFER_API const coffer_mscan_param *coffer_mscan_param_at(const coffer_mscan *scan, size_t index);
/* Name of a param_id, or NULL when the metadata does not list it. O(1). */
COFFER_API const char *coffer_mscan_param_name(const coffer_mscan *scan, uint16_t param_id);
/* The metadata as stored in the file: UTF-8 JSON without the trailing spaces. Borrowed. */
COFFER_API const char *coffer_mscan_metadata(const coffer_mscan *scan, size_t *len);

/* The layers of the model, from the names of the parameters: "embed" (embed_tokens), then by number (the
 * first number after "layers." or between two dots), "norm" (model.norm), "head" (lm_head), and last "other"
 * for parameters that do not say. */
COFFER_API size_t coffer_mscan_layer_count(const coffer_mscan *scan);
/* Borrowed from the handle; NULL past the end. */
COFFER_API const char *coffer_mscan_layer_name(const coffer_mscan *scan, size_t index);
COFFER_API size_t coffer_mscan_layer_of_param(const coffer_mscan *scan, uint16_t param_id); /* index */

/* How raw u16 values become real ones: value = offset + scale × raw. */
typedef struct coffer_mscan_quantization {
    uint32_t struct_size;
    double scale;
    double offset;
} coffer_mscan_quantization;

#define COFFER_MSCAN_QUANTIZATION_INIT              \
    {                                               \
        sizeof(coffer_mscan_quantization), 1.0, 0.0 \
    }
COFFER_API void coffer_mscan_quantization_init(coffer_mscan_quantization *out, uint32_t struct_size);

/* The part of the file that one scale is used for. */
typedef enum coffer_mscan_scale_scope {
    COFFER_MSCAN_SCALE_UNKNOWN = 0, /* the file does not say: values are raw integers */
    COFFER_MSCAN_SCALE_FILE,
    COFFER_MSCAN_SCALE_PARAM,
    COFFER_MSCAN_SCALE_SEQUENCE
} coffer_mscan_scale_scope;

COFFER_API coffer_mscan_scale_scope coffer_mscan_quantization_scope(const coffer_mscan *scan,
                                                                    coffer_mscan_metric metric);
/* Borrowed from the handle; NULL when the file does not say: then the values are raw integers.
 * sequence : index, used when the scope is COFFER_MSCAN_SCALE_SEQUENCE. */
COFFER_API const coffer_mscan_quantization *coffer_mscan_quantization_of(const coffer_mscan *scan,
                                                                         coffer_mscan_metric metric,
                                                                         uint16_t param_id, size_t sequence);

/* Decodes records [first, first + count) into out. */
COFFER_API_STATUS coffer_mscan_read(coffer_mscan_record *out, const coffer_mscan *scan, uint64_t first,
                                    uint64_t count, coffer_error *err);
/* The packed 12-byte records when the file is mapped or in memory, otherwise NULL. They are not aligned: load
 * their fields, do not cast. Call coffer_source_intact afterwards. */
COFFER_API const uint8_t *coffer_mscan_view(const coffer_mscan *scan, uint64_t first, uint64_t count);

/* Whether token_idx never decreases. The first call reads all records; the result is kept. */
COFFER_API_STATUS coffer_mscan_is_sorted(bool *out, const coffer_mscan *scan, coffer_error *err);
/* The records of the tokens [begin, end): first and count. O(log records); COFFER_E_NOT_SORTED when token_idx
 * is not sorted. */
COFFER_API_STATUS coffer_mscan_find_tokens(uint64_t *first, uint64_t *count, const coffer_mscan *scan,
                                           uint64_t begin, uint64_t end, coffer_error *err);

/* ---- Replay, token by token ---- */

typedef struct coffer_mscan_replay coffer_mscan_replay;

typedef struct coffer_mscan_replay_opts {
    uint32_t struct_size;
    const coffer_limits *limits; /* NULL = those that the scan was opened with */
} coffer_mscan_replay_opts;

#define COFFER_MSCAN_REPLAY_OPTS_INIT          \
    {                                          \
        sizeof(coffer_mscan_replay_opts), NULL \
    }
COFFER_API void coffer_mscan_replay_opts_init(coffer_mscan_replay_opts *opts, uint32_t struct_size);

typedef struct coffer_mscan_step {
    uint32_t struct_size;
    uint64_t token;                     /* global */
    size_t sequence;                    /* index */
    uint64_t position;                  /* within its sequence */
    const coffer_mscan_record *records; /* borrowed until the next call on this replay; NULL without any */
    size_t record_count;
} coffer_mscan_step;

#define COFFER_MSCAN_STEP_INIT                      \
    {                                               \
        sizeof(coffer_mscan_step), 0, 0, 0, NULL, 0 \
    }
COFFER_API void coffer_mscan_step_init(coffer_mscan_step *step, uint32_t struct_size);

/* scan : borrowed.     opts : NULL = defaults.
 * A scan that is not sorted by token is indexed first: 4 bytes per record, within limits.memory_bytes. A
 * replay is used by one thread at a time. */
COFFER_API_STATUS coffer_mscan_replay_new(coffer_mscan_replay **out, const coffer_mscan *scan,
                                          const coffer_mscan_replay_opts *opts, coffer_error *err);
COFFER_API void coffer_mscan_replay_free(coffer_mscan_replay *replay);
/* Moves to just before `token`, which may be the total: next returns it, prev the one before it. */
COFFER_API_STATUS coffer_mscan_replay_seek(coffer_mscan_replay *replay, uint64_t token, coffer_error *err);
/* *more is false at the end (prev: at the beginning), and step is then untouched. Tokens without records are
 * steps too. */
COFFER_API_STATUS coffer_mscan_replay_next(bool *more, coffer_mscan_step *step, coffer_mscan_replay *replay,
                                           coffer_error *err);
COFFER_API_STATUS coffer_mscan_replay_prev(bool *more, coffer_mscan_step *step, coffer_mscan_replay *replay,
                                           coffer_error *err);

/* ---- Statistics ---- */

typedef enum coffer_mscan_by {
    COFFER_MSCAN_BY_ALL = 0,
    COFFER_MSCAN_BY_PARAM,
    COFFER_MSCAN_BY_BLOCK,
    COFFER_MSCAN_BY_TOKEN,
    COFFER_MSCAN_BY_SEQUENCE,
    COFFER_MSCAN_BY_PARAM_BLOCK, /* the blocks of each parameter: key = param_id << 16 | block_idx */
    COFFER_MSCAN_BY_LAYER        /* key = index of coffer_mscan_layer_name */
} coffer_mscan_by;

/* Exact integer sums, so the result does not depend on threads or order. */
typedef struct coffer_mscan_column {
    uint64_t sum;
    uint64_t sum_squares; /* fits: 2^32 records × 65535² < 2^64 */
    uint64_t zeros;
    uint64_t saturated; /* 65535 */
    uint16_t min, max;  /* 0, 0 when the group is empty */
} coffer_mscan_column;

typedef struct coffer_mscan_group {
    uint64_t key; /* param_id, block_idx, token, sequence index …: see coffer_mscan_by; 0 for BY_ALL */
    uint64_t count;
    coffer_mscan_column column[2]; /* by coffer_mscan_metric */
} coffer_mscan_group;

/* The records that a z-score compares a value with. */
typedef enum coffer_mscan_scope {
    COFFER_MSCAN_SCOPE_GLOBAL = 0,
    COFFER_MSCAN_SCOPE_LAYER = 1
} coffer_mscan_scope;

typedef struct coffer_mscan_stats_opts {
    uint32_t struct_size;
    coffer_mscan_by by;
    const char *param_glob;          /* compared with the parameter's name; NULL = all */
    uint64_t token_begin, token_end; /* [begin, end); end UINT64_MAX = all */
    size_t sequence;                 /* index; COFFER_INDEX_NONE = all */
    uint32_t threads;                /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    coffer_mscan_scope scope; /* of coffer_mscan_scores_new */
} coffer_mscan_stats_opts;

#define COFFER_MSCAN_STATS_OPTS_INIT                                                                     \
    {                                                                                                    \
        sizeof(coffer_mscan_stats_opts), COFFER_MSCAN_BY_ALL, NULL, 0, UINT64_MAX, COFFER_INDEX_NONE, 0, \
            NULL, NULL, COFFER_MSCAN_SCOPE_GLOBAL                                                        \
    }
COFFER_API void coffer_mscan_stats_opts_init(coffer_mscan_stats_opts *opts, uint32_t struct_size);

typedef struct coffer_mscan_stats coffer_mscan_stats;

/* One pass over the selected records on all cores. opts : NULL = all records in one group. Groups without
 * records are left out, and so are records past the last sequence with COFFER_MSCAN_BY_SEQUENCE. Groups are
 * in ascending order of key and borrowed from the handle; `_at` past the end is NULL. */
COFFER_API_STATUS coffer_mscan_stats_new(coffer_mscan_stats **out, const coffer_mscan *scan,
                                         const coffer_mscan_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_mscan_stats_free(coffer_mscan_stats *stats);
COFFER_API size_t coffer_mscan_stats_count(const coffer_mscan_stats *stats);
COFFER_API const coffer_mscan_group *coffer_mscan_stats_at(const coffer_mscan_stats *stats, size_t index);
COFFER_API const coffer_mscan_group *coffer_mscan_stats_total(const coffer_mscan_stats *stats);
/* Mean of the raw integers; 0 for an empty group. In real units it is offset + scale × mean, if all records
 * of the group have the same scale. */
COFFER_API double coffer_mscan_mean(const coffer_mscan_group *group, coffer_mscan_metric metric);
/* Sample standard deviation (n − 1); 0 for fewer than two records. */
COFFER_API double coffer_mscan_stddev(const coffer_mscan_group *group, coffer_mscan_metric metric);

typedef struct coffer_mscan_score {
    uint64_t key;
    uint64_t count;
    double z_activation; /* mean z-score of the group's records */
    double z_grad_norm;
    double sps; /* mean of z(activation) − z(grad_norm) over the group's records: for BY_PARAM this is dsc */
    double integral_sps; /* its sum */
} coffer_mscan_score;

typedef struct coffer_mscan_scores coffer_mscan_scores;

/* z-scores as the original scanner defines them: (value − mean) / sample standard deviation over all selected
 * records of the layer or of the file, 0 where the deviation is at most 1e-9. The layer follows from the
 * parameter's name: "model.layers.N" is N, embed_tokens −1, model.norm the last layer + 1, lm_head the last
 * layer + 2. Other parameters do not have a layer and are left out in layer scope; parameters without a name
 * are left out in both scopes. The values are the raw integers: with one positive scale the scores in real
 * units are the same, with a scale per parameter or sequence they differ.
 * opts : NULL = all records in one group. Scores are in ascending order of key and borrowed from the handle;
 * `_at` past the end is NULL. */
COFFER_API_STATUS coffer_mscan_scores_new(coffer_mscan_scores **out, const coffer_mscan *scan,
                                          const coffer_mscan_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_mscan_scores_free(coffer_mscan_scores *scores);
COFFER_API size_t coffer_mscan_scores_count(const coffer_mscan_scores *scores);
COFFER_API const coffer_mscan_score *coffer_mscan_scores_at(const coffer_mscan_scores *scores, size_t index);

/* ---- Heat map: a grid of mean values, layers, parameters or blocks down, tokens across ---- */

/* Rows of blocks have the blocks with the same number of all selected parameters together: choose one
 * parameter with param_glob to see its blocks. */
typedef enum coffer_mscan_rows {
    COFFER_MSCAN_ROWS_PARAM = 0,
    COFFER_MSCAN_ROWS_BLOCK = 1,
    COFFER_MSCAN_ROWS_LAYER = 2 /* by index of coffer_mscan_layer_name */
} coffer_mscan_rows;

typedef struct coffer_mscan_grid_opts {
    uint32_t struct_size;
    coffer_mscan_rows rows;
    coffer_mscan_metric metric;
    uint32_t width, height; /* at most this many columns and rows; several tokens or rows share a cell */
    uint64_t token_begin, token_end; /* end UINT64_MAX = all */
    uint64_t row_begin, row_end;     /* param ids or block numbers; end UINT64_MAX = all */
    const char *param_glob;
    uint32_t threads;
    const char *cache_path; /* file that keeps the pyramid, which is derived data; NULL = do not keep it */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mscan_grid_opts;

#define COFFER_MSCAN_GRID_OPTS_INIT                                                                     \
    {                                                                                                   \
        sizeof(coffer_mscan_grid_opts), COFFER_MSCAN_ROWS_BLOCK, COFFER_MSCAN_ACTIVATION, 1024, 512, 0, \
            UINT64_MAX, 0, UINT64_MAX, NULL, 0, NULL, NULL, NULL                                        \
    }
COFFER_API void coffer_mscan_grid_opts_init(coffer_mscan_grid_opts *opts, uint32_t struct_size);

/* Allocated by the library. */
typedef struct coffer_mscan_grid {
    uint32_t width, height;
    /* The tokens and rows that the cells cover evenly. Cells are powers of two wide and start at multiples of
     * their width, so the ranges may be a little larger than requested. */
    uint64_t token_begin, token_end;
    uint64_t row_begin, row_end;
    double *mean;     /* height × width, row-major; NaN for cells without records */
    double low, high; /* smallest and largest mean; NaN, NaN when all cells are empty */
} coffer_mscan_grid;

/* opts : NULL = defaults. Means are of raw integers. A pyramid at cache_path that is missing, stale or
 * damaged is built again; failing to write it is not an error. */
COFFER_API_STATUS coffer_mscan_grid_new(coffer_mscan_grid **out, const coffer_mscan *scan,
                                        const coffer_mscan_grid_opts *opts, coffer_error *err);
COFFER_API void coffer_mscan_grid_free(coffer_mscan_grid *grid);

/* ---- Writing ---- */

/* A writer is used by one thread at a time. A call that is refused for its arguments changes nothing; after
 * records could not be written, every further call returns that error. */
typedef struct coffer_mscan_writer coffer_mscan_writer;

typedef struct coffer_mscan_writer_opts {
    uint32_t struct_size;
    bool overwrite;         /* replace an existing file; otherwise COFFER_E_EXISTS */
    const char *model_name; /* NULL = "" */
    uint32_t reserve_bytes; /* room for the metadata to grow in place when appending; 0 = a default */
    uint32_t block_size;    /* values per block, for the metadata; 0 = not written */
    /* The scales of the whole file; NULL = not written. */
    const coffer_mscan_quantization *activation, *grad_norm;
    const char *extra_json; /* an object whose keys are copied to the metadata; NULL = none */
    const coffer_limits *limits;
    /* The metadata of another scan, whose keys, parameters and sequences are copied, but not the positions
     * and checksums of its records. Only overwrite, reserve_bytes and limits may be set with it. NULL = none.
     */
    const char *metadata_json;
} coffer_mscan_writer_opts;

#define COFFER_MSCAN_WRITER_OPTS_INIT                                                     \
    {                                                                                     \
        sizeof(coffer_mscan_writer_opts), false, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL \
    }
COFFER_API void coffer_mscan_writer_opts_init(coffer_mscan_writer_opts *opts, uint32_t struct_size);

/* Starts a new scan. The file appears at `path` only at commit. opts : NULL = defaults. */
COFFER_API_STATUS coffer_mscan_writer_create(coffer_mscan_writer **out, const char *path,
                                             const coffer_mscan_writer_opts *opts, coffer_error *err);
/* Opens a scan to append sequences. Takes the write lock (COFFER_E_LOCKED when another writer has it) and
 * rolls back an interrupted update. Readers see the old state until commit. Only limits of opts is used. */
COFFER_API_STATUS coffer_mscan_writer_append_to(coffer_mscan_writer **out, const char *path,
                                                const coffer_mscan_writer_opts *opts, coffer_error *err);

/* Adds a parameter, or finds the one with that name, and returns its id. At most 65536. */
COFFER_API_STATUS coffer_mscan_writer_add_param(uint16_t *id, coffer_mscan_writer *writer, const char *name,
                                                coffer_error *err);
/* Adds a parameter with a given id; COFFER_E_DUPLICATE when the id has another name. */
COFFER_API_STATUS coffer_mscan_writer_add_param_id(coffer_mscan_writer *writer, uint16_t id, const char *name,
                                                   coffer_error *err);
/* Begins the next sequence. source : may be NULL. */
COFFER_API_STATUS coffer_mscan_writer_begin_sequence(coffer_mscan_writer *writer, const char *source,
                                                     coffer_error *err);
/* The same for a text that may contain NULs. */
COFFER_API_STATUS coffer_mscan_writer_begin_sequence_len(coffer_mscan_writer *writer, const char *source,
                                                         size_t source_len, coffer_error *err);
/* Adds records of the current sequence. token_idx counts from the sequence's first token. */
COFFER_API_STATUS coffer_mscan_writer_put_records(coffer_mscan_writer *writer,
                                                  const coffer_mscan_record *records, size_t count,
                                                  coffer_error *err);
/* Adds records of sequences that were ended or copied from metadata_json, in any order. token_idx is global.
 * Not inside a sequence. */
COFFER_API_STATUS coffer_mscan_writer_put_global(coffer_mscan_writer *writer,
                                                 const coffer_mscan_record *records, size_t count,
                                                 coffer_error *err);
/* Ends the sequence. num_tokens must be larger than every token_idx written into it. */
COFFER_API_STATUS coffer_mscan_writer_end_sequence(coffer_mscan_writer *writer, uint64_t num_tokens,
                                                   coffer_error *err);
/* Makes everything durable and visible. Frees the writer, also on failure; then the old file is unchanged,
 * and a new one does not exist. One exception: when only the last step fails, the sync of the folder, the new
 * file is in place, and a power failure may still restore the old one. */
COFFER_API_STATUS coffer_mscan_writer_commit(coffer_mscan_writer *writer, coffer_error *err);
/* Frees the writer without committing. */
COFFER_API void coffer_mscan_writer_discard(coffer_mscan_writer *writer);

/* ---- Some of a scan, several scans ---- */

/* Parts of a scan that a repair could not verify, as coffer_check lists them. Functions that write a scan
 * from such a one refuse it. */
COFFER_API size_t coffer_mscan_damage_count(const coffer_mscan *scan);

typedef struct coffer_mscan_extract_opts {
    uint32_t struct_size;
    bool overwrite;          /* replace an existing file; otherwise COFFER_E_EXISTS */
    const size_t *sequences; /* indices in ascending order; NULL = all */
    size_t sequence_count;
    const char *without_params; /* glob: leave out these parameters and their records; NULL = none */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mscan_extract_opts;

#define COFFER_MSCAN_EXTRACT_OPTS_INIT                                      \
    {                                                                       \
        sizeof(coffer_mscan_extract_opts), false, NULL, 0, NULL, NULL, NULL \
    }
COFFER_API void coffer_mscan_extract_opts_init(coffer_mscan_extract_opts *opts, uint32_t struct_size);

/* Writes some sequences of a scan to a new one, with their ids and all metadata. */
COFFER_API_STATUS coffer_mscan_extract(const char *out_path, const coffer_mscan *scan,
                                       const coffer_mscan_extract_opts *opts, coffer_error *err);
/* The sequences of several scans, one after the other. Parameters are matched by name. The metadata is that
 * of the first; a sequence whose id is not larger than those before it gets the next one. All must be
 * quantized in the same way (COFFER_E_INCONSISTENT). Only overwrite, limits and progress of opts are used. */
COFFER_API_STATUS coffer_mscan_concat(const char *out_path, const coffer_mscan *const *scans, size_t count,
                                      const coffer_mscan_extract_opts *opts, coffer_error *err);
/* Leaves only what opts select in the file: rewrites it next to the old one and replaces that, under the
 * write lock. */
COFFER_API_STATUS coffer_mscan_update_keep(const char *path, const coffer_mscan_extract_opts *opts,
                                           coffer_error *err);

/* ---- Change metadata ---- */

/* Holds the write lock from open to close. Changes are collected and written in one commit, under the
 * rollback journal: a crash leaves the old or the new state. Records are not touched. */
typedef struct coffer_mscan_editor coffer_mscan_editor;

typedef struct coffer_mscan_editor_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_mscan_editor_opts;

#define COFFER_MSCAN_EDITOR_OPTS_INIT          \
    {                                          \
        sizeof(coffer_mscan_editor_opts), NULL \
    }
COFFER_API void coffer_mscan_editor_opts_init(coffer_mscan_editor_opts *opts, uint32_t struct_size);

COFFER_API_STATUS coffer_mscan_editor_open(coffer_mscan_editor **out, const char *path,
                                           const coffer_mscan_editor_opts *opts, coffer_error *err);
/* Sets a value of the metadata. key : a path with dots, such as "model_name", "quantization",
 * "id_to_param_name_map.7" (or "params.7") or "sequences.0.source", which counts from 0. A last part that
 * does not exist is added. json : the value. What follows from the records is refused: numbers of tokens, ids
 * of sequences, checksums. */
COFFER_API_STATUS coffer_mscan_editor_set(coffer_mscan_editor *editor, const char *key, const char *json,
                                          coffer_error *err);
/* The same for text. */
COFFER_API_STATUS coffer_mscan_editor_set_text(coffer_mscan_editor *editor, const char *key, const char *text,
                                               coffer_error *err);
/* Removes a value; COFFER_E_NOT_FOUND. "damage" forgets the marks of a repair. */
COFFER_API_STATUS coffer_mscan_editor_remove(coffer_mscan_editor *editor, const char *key, coffer_error *err);
/* The metadata with all changes so far. Borrowed until the next call. */
COFFER_API const char *coffer_mscan_editor_metadata(const coffer_mscan_editor *editor, size_t *len);
COFFER_API_STATUS coffer_mscan_editor_commit(coffer_mscan_editor *editor, coffer_error *err);
COFFER_API void coffer_mscan_editor_close(coffer_mscan_editor *editor);

COFFER_END_DECLS

#endif
