/* Numbers of the format and what they are called. */
#include "formats/mcf/mcf_private.h"

#include <stdio.h>
#include <string.h>

static const struct section_name {
    uint32_t type;
    const char *name;
} section_names[] = {
    { COFFER_MCF_MODEL_INFO, "ModelInfo" },     { COFFER_MCF_QUANT_INFO, "QuantInfo" },
    { COFFER_MCF_TENSOR_INDEX, "TensorIndex" }, { COFFER_MCF_TENSOR_DATA, "TensorData" },
    { COFFER_MCF_CONFIG, "config.json" },       { COFFER_MCF_GENERATION_CONFIG, "generation_config.json" },
    { COFFER_MCF_TOKENIZER, "tokenizer.json" }, { COFFER_MCF_TOKENIZER_CONFIG, "tokenizer_config.json" },
    { COFFER_MCF_VOCAB, "vocab.json" },         { COFFER_MCF_MERGES, "merges.txt" },
    { COFFER_MCF_CHECKSUMS, "Checksums" },      { COFFER_MCF_QUALITY, "QuantQuality" },
};

const char *coffer_mcf_section_name(uint32_t type)
{
    for (size_t i = 0; i < sizeof section_names / sizeof section_names[0]; i++) {
        if (section_names[i].type == type)
            return section_names[i].name;
    }
    return NULL;
}

uint32_t coffer_mcf_section_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof section_names / sizeof section_names[0]; i++) {
        if (strcmp(section_names[i].name, name) == 0)
            return section_names[i].type;
    }
    return 0;
}

coffer__mcf_label coffer__mcf_section_label(uint32_t type)
{
    const char *name = coffer_mcf_section_name(type);
    coffer__mcf_label label;
    if (name)
        snprintf(label.text, sizeof label.text, "%s", name);
    else
        snprintf(label.text, sizeof label.text, "section 0x%lx", (unsigned long)type);
    return label;
}

static const struct dtype_code {
    coffer_dtype dtype;
    uint32_t code;
} dtype_codes[] = {
    { COFFER_DTYPE_F32, 1 },     { COFFER_DTYPE_F16, 2 },     { COFFER_DTYPE_BF16, 3 },
    { COFFER_DTYPE_F64, 4 },     { COFFER_DTYPE_I8, 5 },      { COFFER_DTYPE_U8, 6 },
    { COFFER_DTYPE_I16, 7 },     { COFFER_DTYPE_U16, 8 },     { COFFER_DTYPE_I32, 9 },
    { COFFER_DTYPE_U32, 10 },    { COFFER_DTYPE_I64, 11 },    { COFFER_DTYPE_U64, 12 },
    { COFFER_DTYPE_INT8, 0x10 }, { COFFER_DTYPE_INT4, 0x11 }, { COFFER_DTYPE_Q8, 0x20 },
    { COFFER_DTYPE_Q4, 0x21 },   { COFFER_DTYPE_K6, 0x30 },   { COFFER_DTYPE_K4, 0x31 },
    { COFFER_DTYPE_K3, 0x32 },   { COFFER_DTYPE_K2, 0x33 },
};

uint32_t coffer_mcf_dtype_code(coffer_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].dtype == dtype)
            return dtype_codes[i].code;
    }
    return 0;
}

coffer_dtype coffer_mcf_dtype_from_code(uint32_t code)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].code == code)
            return dtype_codes[i].dtype;
    }
    return COFFER_DTYPE_NONE;
}

static const char *const arch_names[] = {
    "unknown", "llama", "mistral", "qwen", "gemma", "granite", "smollm3"
};
static const char *const rope_names[] = { "none", "standard", "linear", "yarn" };

#define ARCH_COUNT (sizeof arch_names / sizeof arch_names[0])
#define ROPE_COUNT (sizeof rope_names / sizeof rope_names[0])

const char *coffer_mcf_arch_name(uint32_t arch)
{
    return arch < ARCH_COUNT ? arch_names[arch] : "unknown";
}

uint32_t coffer_mcf_arch_by_name(const char *name)
{
    for (uint32_t i = 0; i < ARCH_COUNT; i++) {
        if (strcmp(arch_names[i], name) == 0)
            return i;
    }
    return 0;
}

const char *coffer_mcf_rope_name(uint32_t rope_type)
{
    return rope_type < ROPE_COUNT ? rope_names[rope_type] : "none";
}
