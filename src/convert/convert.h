/* Conversions inside the library: a row of the table in conversions.c, and its job. */
#ifndef COFFER_CONVERT_CONVERT_H
#define COFFER_CONVERT_CONVERT_H

#include "coffer/convert.h"
#include "coffer/dtype.h"
#include "coffer/source.h"

/* Most options have neither choices nor a default, and their rows leave both out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* The settings have been checked against the options of the row. */
typedef struct coffer__convert_job {
    coffer_source *in;
    const char *out_path;
    const char *from, *to;
    bool overwrite;
    const coffer_setting *settings;
    size_t setting_count;
    coffer_limits limits;
    const coffer_progress *progress; /* may be NULL */
    const uint8_t *key;              /* of the input; may be NULL */
    coffer_report *notes;            /* what the output does not keep as it was; may be NULL */
    bool is_scratch;                 /* the output need not survive a crash */
} coffer__convert_job;

struct coffer_conversion {
    const char *from, *to;
    const coffer_convert_option *options; /* ends with a NULL name */
    coffer_status (*run)(const coffer__convert_job *job, coffer_error *err);
};

/* Value of the last setting of that name: "" for a switch, NULL when it is not there. */
const char *coffer__job_setting(const coffer__convert_job *job, const char *name);
static inline bool coffer__job_has(const coffer__convert_job *job, const char *name)
{
    return coffer__job_setting(job, name) != NULL;
}
/* The element type of that name, in capitals or not; COFFER_DTYPE_NONE for another text. */
coffer_dtype coffer__dtype_of_setting(const char *text);
/* A decimal number up to max. Untouched when the setting is not there. */
coffer_status coffer__job_number(uint64_t *out, const coffer__convert_job *job, const char *name,
                                 uint64_t max, coffer_error *err);
/* "A..B" (B exclusive), "A..", "..B", or "A" alone. Untouched when the setting is not there. */
coffer_status coffer__job_range(uint64_t *begin, uint64_t *end, const coffer__convert_job *job,
                                const char *name, coffer_error *err);
/* Text of the JSON file that the setting, which is there, names: NUL-terminated, within limits.json_bytes;
 * coffer__free(). */
coffer_status coffer__job_json_file(char **text, size_t *len, const coffer__convert_job *job,
                                    const char *name, coffer_error *err);
/* COFFER_E_CANCELLED when the caller wants no more. */
coffer_status coffer__job_progress(const coffer__convert_job *job, uint64_t done, uint64_t total,
                                   coffer_error *err);

/* Scans: mscan_to_array.c, mscan_to_text.c, mscan_import.c. */
extern const coffer_convert_option coffer__mscan_export_text_options[];
extern const coffer_convert_option coffer__mscan_export_array_options[];
extern const coffer_convert_option coffer__mscan_import_options[];
coffer_status coffer__mscan_to_array(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mscan_to_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mscan_to_jsonl(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mscan_from_npy(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mscan_from_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mscan_from_jsonl(const coffer__convert_job *job, coffer_error *err);

/* Tensors: tensors_to_mcf.c, tensors_to_safetensors.c, mcf_to_gguf.c. */
extern const coffer_convert_option coffer__to_mcf_options[];
extern const coffer_convert_option coffer__to_safetensors_options[];
extern const coffer_convert_option coffer__gguf_to_mcf_options[];
extern const coffer_convert_option coffer__gguf_to_safetensors_options[];
extern const coffer_convert_option coffer__to_gguf_options[];
coffer_status coffer__to_mcf(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__to_gguf(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__to_safetensors(const coffer__convert_job *job, coffer_error *err);

/* Matrices: pycauset_to_*.c, pycauset_import.c. */
extern const coffer_convert_option coffer__pycauset_to_array_options[];
extern const coffer_convert_option coffer__pycauset_to_csv_options[];
extern const coffer_convert_option coffer__pycauset_to_mtx_options[];
extern const coffer_convert_option coffer__pycauset_to_hdf5_options[];
extern const coffer_convert_option coffer__array_to_npy_options[];
extern const coffer_convert_option coffer__array_to_mtx_options[];
extern const coffer_convert_option coffer__array_to_hdf5_options[];
extern const coffer_convert_option coffer__array_to_csv_options[];
extern const coffer_convert_option coffer__hdf5_to_array_options[];
extern const coffer_convert_option coffer__hdf5_to_mtx_options[];
extern const coffer_convert_option coffer__hdf5_to_csv_options[];
extern const coffer_convert_option coffer__csv_to_npy_options[];
extern const coffer_convert_option coffer__csv_to_mtx_options[];
extern const coffer_convert_option coffer__csv_to_hdf5_options[];
coffer_status coffer__array_to_array(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_to_npy(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_to_raw(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_to_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_to_mtx(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_to_hdf5(const coffer__convert_job *job, coffer_error *err);
extern const coffer_convert_option coffer__pycauset_from_npy_options[];
extern const coffer_convert_option coffer__pycauset_from_npz_options[];
extern const coffer_convert_option coffer__pycauset_from_raw_options[];
extern const coffer_convert_option coffer__pycauset_from_csv_options[];
extern const coffer_convert_option coffer__pycauset_from_mtx_options[];
extern const coffer_convert_option coffer__pycauset_from_hdf5_options[];
coffer_status coffer__pycauset_from_npy(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_from_npz(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_from_raw(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_from_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_from_mtx(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__pycauset_from_hdf5(const coffer__convert_job *job, coffer_error *err);

/* Traces of memory: mlyze_to_*.c, mlyze_from_*.c. */
extern const coffer_convert_option coffer__mlyze_profile_options[];
extern const coffer_convert_option coffer__mlyze_collapsed_options[];
extern const coffer_convert_option coffer__mlyze_massif_options[];
extern const coffer_convert_option coffer__mlyze_csv_options[];
extern const coffer_convert_option coffer__mlyze_chrome_options[];
extern const coffer_convert_option coffer__mlyze_heaptrack_options[];
extern const coffer_convert_option coffer__mlyze_import_options[];
extern const coffer_convert_option coffer__mlyze_cut_options[];
coffer_status coffer__mlyze_to_mlyze(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_collapsed(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_speedscope(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_pprof(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_dhat(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_massif(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_chrome(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_to_heaptrack(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_collapsed(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_pprof(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_memray(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_tracemalloc(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_dhat(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_massif(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mlyze_from_heaptrack(const coffer__convert_job *job, coffer_error *err);

/* Training sets: mldf_import.c, mldf_to_*.c. */
extern const coffer_convert_option coffer__mldf_import_options[];
extern const coffer_convert_option coffer__mldf_import_manifest_options[];
extern const coffer_convert_option coffer__mldf_import_array_options[];
extern const coffer_convert_option coffer__mldf_export_options[];
extern const coffer_convert_option coffer__mldf_export_jsonl_options[];
extern const coffer_convert_option coffer__mldf_export_csv_options[];
coffer_status coffer__mldf_from_tar(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_tfrecord(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_beton(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_jsonl(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_npy(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_from_npz(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_tar(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_tfrecord(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_jsonl(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_csv(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_npy(const coffer__convert_job *job, coffer_error *err);
coffer_status coffer__mldf_to_npz(const coffer__convert_job *job, coffer_error *err);

/* One tensor: tensor_out.c. */
extern const coffer_convert_option coffer__tensors_to_array_options[];
coffer_status coffer__tensors_to_array(const coffer__convert_job *job, coffer_error *err);

/* The kinds of file that conversions lead from and to: the library's own formats, and those of others. */

/* "npy" for "scan.npy"; NULL when the name's extension belongs to no kind. */
const char *coffer__kind_by_name(const char *path);
/* By content: a format of the library, or an outside one with a magic; else by the source's name. */
coffer_status coffer__kind_of(const char **kind, coffer_source *src, coffer_error *err);
/* A checkpoint of PyTorch, which is recognized and refused: it contains Python code. */
#define COFFER__KIND_PYTORCH "pytorch"
#define COFFER__KIND_PYTORCH_TITLE "PyTorch checkpoint"
#define COFFER__KIND_PYTORCH_HINT             \
    "import torch, safetensors.torch as st; " \
    "st.save_file(torch.load(\"IN\", weights_only=True), \"OUT.safetensors\")"
/* The kind of that name as the table spells it, or NULL. */
const char *coffer__kind_find(const char *kind);

/* Whether the file is one of the library's formats inside a gzip or zstd stream. */
bool coffer__kind_is_packed_format(const char *kind, coffer_source *src);

#endif
