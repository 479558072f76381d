#include "base/crc32.h"
#include "base/json.h"
#include "base/module.h"
#include "coffer/coffer.h"

#include <lz4.h>
#include <sodium.h>
#include <xxhash.h>
#include <zstd.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const char *coffer_version(void)
{
    return COFFER_VERSION_STRING;
}

int coffer_version_number(void)
{
    return COFFER_VERSION_NUMBER;
}

static void add_libraries(coffer_node *libraries)
{
    unsigned xxhash = XXH_versionNumber();
    coffer_node_add_text(libraries, NULL, coffer__json_library());
    coffer_node_add_text(libraries, NULL, coffer__crc32_library());
    coffer_node_add_printf(libraries, NULL, "xxhash %u.%u.%u", xxhash / 10000, xxhash / 100 % 100,
                           xxhash % 100);
    coffer_node_add_printf(libraries, NULL, "libsodium %s", sodium_version_string());
    coffer_node_add_printf(libraries, NULL, "lz4 %s", LZ4_versionString());
    coffer_node_add_printf(libraries, NULL, "zstd %s", ZSTD_versionString());
}

static void add_modules(coffer_node *modules)
{
    for (coffer__module_id id = 0; id < COFFER__MODULE_COUNT; id++) {
        coffer_error err = COFFER_ERROR_INIT;
        const char *version = coffer__module_version(id, &err);
        coffer_node *module = coffer_node_add_map(modules, coffer__module_name(id));
        coffer_node_add_bool(module, "found", version != NULL);
        if (version)
            coffer_node_add_printf(module, "library", "%s %s", coffer__module_library(id), version);
        else
            coffer_node_add_text(module, "problem", err.text);
    }
}

coffer_status coffer_about(coffer_node **out, coffer_error *err)
{
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, err);
    if (status)
        return status;
    coffer_node_add_text(root, "version", coffer_version());
    coffer_node_add_text(root, "compiler", COMPILER);
    coffer_node_add_text(root, "cpu", coffer_cpu());
    add_libraries(coffer_node_add_list(root, "libraries"));
    add_modules(coffer_node_add_map(root, "modules"));
    status = coffer_node_status(root, err);
    if (status)
        coffer_node_free(root);
    else
        *out = root;
    return status;
}
