#include "convert/convert.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "coffer/convert.h"
#include "coffer/format.h"
#include "convert/traces/mlyze_import.h"
#include "io/file.h"
#include "outside/archives/tar.h"
#include "outside/archives/unpack.h"
#include "outside/archives/zip.h"
#include "outside/arrays/hdf5.h"
#include "outside/arrays/mtx.h"
#include "outside/arrays/npy.h"
#include "outside/models/gguf.h"
#include "outside/models/safetensors.h"
#include "outside/profiles/heaptrack.h"
#include "outside/profiles/massif.h"
#include "outside/profiles/memray.h"
#include "outside/profiles/pprof.h"
#include "outside/profiles/tracemalloc.h"
#include "outside/records/beton.h"
#include "outside/records/tfrecord.h"

#include <string.h>

typedef struct outside_kind {
    const char *name;
    const char *extensions[7];                      /* NULL-terminated */
    bool (*probe)(const uint8_t *head, size_t len); /* NULL: no magic, known by name only */
    bool is_text;
    bool packed;        /* comes as a gzip or zstd stream too: then the probe sees what is inside */
    const char *prefix; /* of the names that the kind's own program gives: "massif.out." */
} outside_kind;

#define HEAD_SIZE 512 /* a header of tar */

static bool probe_arrow(const uint8_t *head, size_t len)
{
    return len >= 6 && (memcmp(head, "PAR1", 4) == 0 || memcmp(head, "ARROW1", 6) == 0);
}

/* A ZIP archive whose first member is in a folder and has one of PyTorch's names, or the pickled magic number
 * of older versions. */
static bool probe_pytorch(const uint8_t *head, size_t len)
{
    static const uint8_t old[] = { 0x80, 0x02, 0x8a, 0x0a, 'l', 0xfc, 0x9c, 'F',
                                   0xf9, ' ',  'j',  0xa8, 'P', 0x19, '.' };
    static const char *const members[] = { "/data.pkl",        "/version",       "/byteorder",
                                           "/.format_version", "/.data/version", "/constants.pkl" };
    enum { NAME_LEN = 26, NAME = 30 };
    if (len >= sizeof old && memcmp(head, old, sizeof old) == 0)
        return true;
    if (len < NAME || !coffer__zip_probe(head, len))
        return false;
    size_t name_len = coffer__load_u16(head + NAME_LEN);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        size_t member = strlen(members[i]);
        if (name_len > member && name_len <= len - NAME &&
            memcmp(head + NAME + name_len - member, members[i], member) == 0)
            return true;
    }
    return false;
}

static bool probe_trace(const uint8_t *head, size_t len)
{
    return len >= 4 && memcmp(head, "MTRC", 4) == 0;
}

static const outside_kind outside_kinds[] = {
    /* A trace in a gzip or zstd stream; by itself it is one of the library's formats. */
    { "mlyze", { NULL }, probe_trace, false, true, NULL },
    { "npy", { ".npy" }, coffer__npy_probe, false, false, NULL },
    { COFFER__KIND_PYTORCH, { ".pt", ".pth" }, probe_pytorch, false, false, NULL },
    { "npz", { ".npz" }, coffer__zip_probe, false, false, NULL },
    { "gguf", { ".gguf" }, coffer__gguf_probe, false, false, NULL },
    { "safetensors", { ".safetensors" }, coffer__safetensors_probe, false, false, NULL },
    { "safetensors-index", { ".safetensors.index.json" }, NULL, true, false, NULL },
    { "mtx", { ".mtx" }, coffer__mtx_probe, true, false, NULL },
    { "hdf5", { ".h5", ".hdf5" }, coffer__hdf5_probe, false, false, NULL },
    { "tfrecord",
      { ".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz" },
      coffer__tfrecord_probe,
      false,
      true,
      NULL },
    { "beton", { ".beton" }, coffer__beton_probe, false, false, NULL },
    /* Listed so that an error can say that it is not supported. */
    { "arrow", { ".parquet", ".arrow" }, probe_arrow, false, false, NULL },
    { "tar", { ".tar", ".tar.gz", ".tgz", ".tar.zst" }, coffer__tar_probe, false, true, NULL },
    { "csv", { ".csv", ".tsv" }, NULL, true, false, NULL },
    { "jsonl", { ".jsonl", ".ndjson" }, NULL, true, false, NULL },
    { "raw", { ".raw" }, NULL, false, false, NULL },
    { "collapsed",
      { ".collapsed", ".folded", ".collapsed.gz", ".folded.gz", ".collapsed.zst", ".folded.zst" },
      NULL,
      true,
      true,
      NULL },
    { "speedscope", { ".speedscope.json" }, NULL, true, false, NULL },
    { "chrome", { ".trace.json" }, NULL, true, false, NULL },
    { "massif", { ".massif" }, coffer__massif_probe, true, true, "massif.out." },
    { "dhat", { ".dhat" }, coffer__dhat_probe, true, true, "dhat.out." },
    { "heaptrack",
      { ".heaptrack", ".heaptrack.zst", ".heaptrack.gz" },
      coffer__heaptrack_probe,
      true,
      true,
      "heaptrack." },
    { "memray", { ".memray" }, coffer__memray_probe, false, false, "memray-" },
    { "tracemalloc", { ".tracemalloc" }, coffer__tracemalloc_probe, false, true, NULL },
    { "pprof", { ".pb.gz", ".pprof" }, coffer__pprof_probe, false, true, NULL },
};

#define OUTSIDE_COUNT (sizeof outside_kinds / sizeof *outside_kinds)

/* The last part of a path begins with it, and has more. */
static bool name_begins_with(const char *path, const char *prefix)
{
    const char *name = path + coffer__file_folder_len(path);
    size_t len = prefix ? strlen(prefix) : 0;
    return len > 0 && strncmp(name, prefix, len) == 0 && name[len];
}

const char *coffer__kind_by_name(const char *path)
{
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const coffer_format *format = coffer_format_at(i);
        if (coffer__file_has_extension(path, coffer_format_extension(format)))
            return coffer_format_name(format);
    }
    for (size_t i = 0; i < OUTSIDE_COUNT; i++) {
        for (const char *const *extension = outside_kinds[i].extensions; *extension; extension++) {
            if (coffer__file_has_extension(path, *extension))
                return outside_kinds[i].name;
        }
    }
    for (size_t i = 0; i < OUTSIDE_COUNT; i++) {
        if (name_begins_with(path, outside_kinds[i].prefix))
            return outside_kinds[i].name;
    }
    return NULL;
}

bool coffer__kind_is_packed_format(const char *kind, coffer_source *src)
{
    uint8_t head[4];
    return coffer_format_by_name(kind) && coffer_source_size(src) >= sizeof head &&
           coffer_source_read_at(head, src, 0, sizeof head, NULL) == COFFER_OK &&
           coffer__packing_of(head, sizeof head) != COFFER__PACKING_NONE;
}

const char *coffer__kind_find(const char *kind)
{
    const coffer_format *format = coffer_format_by_name(kind);
    if (format)
        return coffer_format_name(format);
    for (size_t i = 0; i < OUTSIDE_COUNT; i++) {
        if (strcmp(outside_kinds[i].name, kind) == 0)
            return outside_kinds[i].name;
    }
    return NULL;
}

bool coffer_convert_is_text(const char *kind)
{
    for (size_t i = 0; i < OUTSIDE_COUNT; i++) {
        if (strcmp(outside_kinds[i].name, kind) == 0)
            return outside_kinds[i].is_text;
    }
    return false;
}

const char *coffer_convert_title(const char *kind)
{
    static const char *const titles[][2] = {
        { "npy", "NumPy array" },
        { "npz", "NumPy archive" },
        { "gguf", "GGUF model" },
        { "safetensors", "safetensors model" },
        { "safetensors-index", "index of safetensors shards" },
        { "mtx", "Matrix Market file" },
        { "hdf5", "HDF5 file" },
        { "tfrecord", "TensorFlow records" },
        { "beton", "FFCV set" },
        { "arrow", "Arrow or Parquet table" },
        { "tar", "tar archive" },
        { "csv", "comma-separated values" },
        { "jsonl", "lines of JSON" },
        { "raw", "bare elements" },
        { "collapsed", "collapsed stacks" },
        { "speedscope", "speedscope profile" },
        { "chrome", "Chrome trace" },
        { "massif", "Massif profile" },
        { "dhat", "DHAT profile" },
        { "heaptrack", "heaptrack recording" },
        { "pprof", "pprof profile" },
        { "memray", "memray capture" },
        { "tracemalloc", "tracemalloc snapshot" },
    };
    const coffer_format *format = coffer_format_by_name(kind);
    if (format)
        return coffer_format_title(format);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i][0], kind) == 0)
            return titles[i][1];
    return kind;
}

const char *coffer_convert_extension_at(const char *kind, size_t index)
{
    const coffer_format *format = coffer_format_by_name(kind);
    if (format)
        return index == 0 ? coffer_format_extension(format) : NULL;
    for (size_t i = 0; i < OUTSIDE_COUNT; i++) {
        if (strcmp(outside_kinds[i].name, kind) != 0)
            continue;
        for (size_t j = 0; outside_kinds[i].extensions[j]; j++)
            if (j == index)
                return outside_kinds[i].extensions[j];
    }
    return NULL;
}

/* The name decides for a compressed file that is cut off before its first byte of content. */
static const char *packed_kind_by_name(const char *path)
{
    const char *kind = coffer__kind_by_name(path);
    for (size_t i = 0; kind && i < OUTSIDE_COUNT; i++) {
        if (outside_kinds[i].name == kind && outside_kinds[i].packed)
            return kind;
    }
    return NULL;
}

static coffer_status probe_outside(const char **kind, coffer_source *src, coffer_error *err)
{
    uint8_t head[HEAD_SIZE];
    uint64_t size = coffer_source_size(src);
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    coffer_status status = coffer_source_read_at(head, src, 0, len, err);
    bool packed = !status && coffer__packing_of(head, len) != COFFER__PACKING_NONE;
    *kind = NULL;
    if (packed)
        status = coffer__unpack_head(head, sizeof head, &len, src, err);
    if (!status && packed && len == 0)
        *kind = packed_kind_by_name(coffer_source_name(src));
    for (size_t i = 0; !status && !*kind && i < OUTSIDE_COUNT; i++) {
        const outside_kind *known = &outside_kinds[i];
        if (known->probe && (known->packed || !packed) && known->probe(head, len))
            *kind = known->name;
    }
    return status;
}

/* Only for kinds without a magic: a name does not make a file one of the others. */
static const char *bare_kind_by_name(const char *path)
{
    const char *kind = coffer__kind_by_name(path);
    for (size_t i = 0; kind && i < OUTSIDE_COUNT; i++) {
        if (outside_kinds[i].name == kind && !outside_kinds[i].probe)
            return kind;
    }
    return NULL;
}

coffer_status coffer_convert_kind(const char **out, coffer_source *src, coffer_error *err)
{
    return coffer__kind_of(out, src, err);
}

coffer_status coffer__kind_of(const char **kind, coffer_source *src, coffer_error *err)
{
    const coffer_format *format;
    const char *found;
    coffer_error unknown = COFFER_ERROR_INIT;
    coffer_status identified = coffer_identify(&format, src, &unknown);
    if (identified == COFFER_OK) {
        *kind = coffer_format_name(format);
        return COFFER_OK;
    }
    if (identified != COFFER_E_NOT_RECOGNISED && identified != COFFER_E_BAD_MAGIC) {
        if (err)
            *err = unknown;
        return identified;
    }
    coffer_status status = probe_outside(&found, src, err);
    if (status)
        return status;
    if (!found)
        found = bare_kind_by_name(coffer_source_name(src));
    if (!found) {
        if (err)
            *err = unknown;
        return identified;
    }
    *kind = found;
    return COFFER_OK;
}
