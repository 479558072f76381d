/* QuantQuality, byte by byte in mcf_layout.h. */
#ifndef COFFER_FORMATS_MCF_QUALITY_H
#define COFFER_FORMATS_MCF_QUALITY_H

#include "base/buffer.h"
#include "formats/mcf/mcf_private.h"

typedef struct coffer__mcf_qualities {
    uint64_t base; /* file offset of the section */
    size_t count;
    const char *strings; /* in raw */
    uint32_t strings_size;
    uint8_t *raw;
} coffer__mcf_qualities;

typedef struct coffer__mcf_quality_record {
    const char *name;
    size_t name_len;
    uint16_t dtype;             /* of the tensor when it was quantized, as a number of the file */
    coffer_mcf_quality quality; /* without its importance */
    const char *importance;     /* not NUL-terminated */
    size_t importance_len;
} coffer__mcf_quality_record;

/* Reads a section that is inside the file, and checks that its tables are inside the section. */
coffer_status coffer__mcf_quality_load(coffer__mcf_qualities *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err);
void coffer__mcf_quality_free(coffer__mcf_qualities *qualities);
/* Decodes and checks a record. index < count. */
coffer_status coffer__mcf_quality_at(coffer__mcf_quality_record *out, const coffer__mcf_qualities *qualities,
                                     size_t index, coffer_error *err);
/* Offset of a record in the file. */
uint64_t coffer__mcf_quality_place(const coffer__mcf_qualities *qualities, size_t index);

/* Starts with its two buffers empty, the rest zeroed. */
typedef struct coffer__mcf_quality_writer {
    coffer__buffer records, strings;
    uint32_t count;
    uint32_t last_at, last_len; /* of the source that was written last */
} coffer__mcf_quality_writer;

void coffer__mcf_quality_add(coffer__mcf_quality_writer *writer, const coffer__mcf_quality_record *record);
/* Writes the whole section and frees the memory of the writer. */
coffer_status coffer__mcf_quality_finish(coffer__buffer *out, coffer__mcf_quality_writer *writer,
                                         coffer_error *err);

#endif
