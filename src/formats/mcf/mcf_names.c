/* Numbers of the format and what they are called. */
#include "formats/mcf/mcf_private.h"

#include "base/dtype_code.h"

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

uint32_t coffer_mcf_dtype_code(coffer_dtype dtype)
{
    return coffer__dtype_code(dtype);
}

coffer_dtype coffer_mcf_dtype_from_code(uint32_t code)
{
    return coffer__dtype_of_code(code);
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
