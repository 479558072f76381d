#include "base/module.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/helper.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Defined where a program links a module statically. */
#define LINKED(name) \
    extern const coffer__module *const coffer_module_##name __attribute__((weak, visibility("hidden")))
LINKED(jpeg);
LINKED(png);
LINKED(webp);
LINKED(tiff);
LINKED(sound);
LINKED(hdf5);
LINKED(draw);
LINKED(http);
LINKED(symbols);
LINKED(serve);
LINKED(cuda);

typedef struct module_slot {
    const char *name;
    const char *subject; /* begins the messages */
    const char *library; /* to install */
    const coffer__module *const *linked;
    const coffer__module *_Atomic loaded;
} module_slot;

static module_slot slots[COFFER__MODULE_COUNT] = {
    [COFFER__MODULE_JPEG] = { "jpeg", "JPEG", "libjpeg-turbo", &coffer_module_jpeg, NULL },
    [COFFER__MODULE_PNG] = { "png", "PNG", "libpng", &coffer_module_png, NULL },
    [COFFER__MODULE_WEBP] = { "webp", "WebP", "libwebp", &coffer_module_webp, NULL },
    [COFFER__MODULE_TIFF] = { "tiff", "TIFF", "libtiff", &coffer_module_tiff, NULL },
    [COFFER__MODULE_SOUND] = { "sound", "sound", "libsndfile", &coffer_module_sound, NULL },
    [COFFER__MODULE_HDF5] = { "hdf5", "HDF5", "libhdf5", &coffer_module_hdf5, NULL },
    [COFFER__MODULE_DRAW] = { "draw", "drawing", "cairo", &coffer_module_draw, NULL },
    [COFFER__MODULE_HTTP] = { "http", "HTTP", "libcurl", &coffer_module_http, NULL },
    [COFFER__MODULE_SYMBOLS] = { "symbols", "symbols", "libdw", &coffer_module_symbols, NULL },
    [COFFER__MODULE_SERVE] = { "serve", "serving", "libmicrohttpd", &coffer_module_serve, NULL },
    [COFFER__MODULE_CUDA] = { "cuda", "CUDA", "CUDA", &coffer_module_cuda, NULL },
};

/* The library that `coffer record` preloads into programs is found like a module, and never loaded here. */
static module_slot preloaded = { "record", "recording", "the C library", NULL, NULL };

/* Paths of the modules that are programs: coffer-NAME instead of coffer-NAME.so. */
static char *_Atomic programs[COFFER__MODULE_COUNT];

static bool is_program(const module_slot *slot)
{
    return slot == &slots[COFFER__MODULE_HDF5] || slot == &slots[COFFER__MODULE_TIFF] ||
           slot == &slots[COFFER__MODULE_WEBP] || slot == &slots[COFFER__MODULE_SOUND];
}

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

typedef struct module_search {
    const module_slot *slot;
    const coffer__module *found;
    char *program;
    coffer_error problem; /* with the first file that exists and cannot be used */
} module_search;

static bool is_current(const coffer__module *module)
{
    return module->abi == COFFER__MODULE_ABI && module->struct_size >= sizeof *module &&
           strcmp(module->version, COFFER_VERSION_STRING) == 0;
}

static void try_program(module_search *search, const char *path)
{
    const module_slot *slot = search->slot;
    if (access(path, X_OK) == 0)
        search->program = coffer__strdup(path);
    else if (!search->problem.status)
        coffer__fail(&search->problem, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                     "%s: coffer-%s cannot be run: %s", slot->subject, slot->name, strerror(errno));
}

static void try_file(module_search *search, const char *path)
{
    if (search->slot == &preloaded) {
        if (access(path, R_OK) == 0)
            search->program = coffer__strdup(path);
        return;
    }
    const module_slot *slot = search->slot;
    coffer_error *problem = search->problem.status ? NULL : &search->problem;
    char symbol[40];
    if (access(path, F_OK) != 0)
        return;
    if (is_program(slot)) {
        try_program(search, path);
        return;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        coffer__fail(problem, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                     "%s: coffer-%s.so cannot be loaded; install %s: %s", slot->subject, slot->name,
                     slot->library, dlerror());
        return;
    }
    snprintf(symbol, sizeof symbol, "coffer_module_%s", slot->name);
    const coffer__module *const *module = dlsym(handle, symbol);
    if (module && is_current(*module)) {
        search->found = *module;
        return;
    }
    coffer__fail(problem, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                 "%s: %s is not a module of Coffer " COFFER_VERSION_STRING "; install the one that is",
                 slot->subject, path);
    dlclose(handle);
}

/* Tries FOLDER/INNER/coffer-NAME.so. Relative folders are skipped: they would depend on the current folder.
 */
static void try_folder(module_search *search, const char *folder, size_t len, const char *inner)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    if (search->found || search->program || len == 0 || folder[0] != '/')
        return;
    coffer__buffer_append(&path, folder, len);
    coffer__buffer_printf(&path, "/%s/%scoffer-%s%s", inner, search->slot == &preloaded ? "lib" : "",
                          search->slot->name, is_program(search->slot) ? "" : ".so");
    if (!path.failed)
        try_file(search, coffer__buffer_text(&path));
    coffer__buffer_free(&path);
}

static void try_environment(module_search *search)
{
    const char *list = getenv("COFFER_MODULE_PATH");
    while (list && *list && !search->found && !search->program) {
        size_t len = strcspn(list, ":");
        try_folder(search, list, len, ".");
        list += len + (list[len] == ':');
    }
}

/* Finds the modules of a build folder, of an installation that was moved, and of a program that brings its
 * own. */
static void try_neighbors(module_search *search)
{
    char program[PATH_MAX];
    const char *file = program;
    struct link_map *map = NULL;
    Dl_info info;
    if (!dladdr1((void *)(uintptr_t)coffer__module_load, &info, (void **)&map, RTLD_DL_LINKMAP))
        return;
    if (map && map->l_name && map->l_name[0]) {
        file = map->l_name;
    } else { /* the code is part of the program, whose name here is what it was called by */
        ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
        if (len <= 0)
            return;
        program[len] = '\0';
    }
    const char *slash = strrchr(file, '/');
    size_t len = slash ? (size_t)(slash - file) : 0;
    try_folder(search, file, len, "coffer");
    try_folder(search, file, len, COFFER__MODULES_FROM_PROGRAM);
    try_folder(search, file, len, "lib/coffer"); /* the build folder, or an unpacked archive */
}

static void find(module_search *search, coffer_error *err)
{
    const module_slot *slot = search->slot;
    /* The user of a privileged program chooses its environment and, with a hard link, its folder. */
    if (!getauxval(AT_SECURE)) {
        try_environment(search);
        try_neighbors(search);
    }
    try_folder(search, COFFER__MODULES_INSTALLED, strlen(COFFER__MODULES_INSTALLED), ".");
    if (search->found || search->program)
        return;
    if (!search->problem.status)
        coffer__fail(&search->problem, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                     "%s: module coffer-%s%s not found; install it (it uses %s), or set "
                     "COFFER_MODULE_PATH to its folder",
                     slot->subject, slot->name, is_program(slot) ? "" : ".so", slot->library);
    if (err)
        *err = search->problem;
}

static const coffer__module *load(module_slot *slot, coffer_error *err)
{
    const coffer__module *module = atomic_load_explicit(&slot->loaded, memory_order_acquire);
    if (module)
        return module;
    pthread_mutex_lock(&loading);
    module = atomic_load_explicit(&slot->loaded, memory_order_relaxed);
    if (!module && slot->linked) {
        module = *slot->linked;
    } else if (!module) {
        module_search search = { .slot = slot, .problem = COFFER_ERROR_INIT };
        find(&search, err);
        module = search.found;
    }
    atomic_store_explicit(&slot->loaded, module, memory_order_release);
    pthread_mutex_unlock(&loading);
    return module;
}

const void *coffer__module_load(coffer__module_id id, size_t size, coffer_error *err)
{
    const coffer__module *module = load(&slots[id], err);
    if (module && module->struct_size != size) {
        coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                     "%s: coffer-%s.so has a table of %" PRIu32 " bytes, expected %zu", slots[id].subject,
                     slots[id].name, module->struct_size, size);
        module = NULL;
    }
    return module;
}

const void *coffer__module_linked(coffer__module_id id)
{
    return slots[id].linked ? *slots[id].linked : NULL;
}

const char *coffer__module_program(coffer__module_id id, coffer_error *err)
{
    char *program = atomic_load_explicit(&programs[id], memory_order_acquire);
    if (program)
        return program;
    pthread_mutex_lock(&loading);
    program = atomic_load_explicit(&programs[id], memory_order_relaxed);
    if (!program) {
        module_search search = { .slot = &slots[id], .problem = COFFER_ERROR_INIT };
        find(&search, err);
        program = search.program;
        atomic_store_explicit(&programs[id], program, memory_order_release);
    }
    pthread_mutex_unlock(&loading);
    return program;
}

char *coffer__module_preloaded(coffer_error *err)
{
    module_search search = { .slot = &preloaded, .problem = COFFER_ERROR_INIT };
    find(&search, err);
    return search.program;
}

const char *coffer__module_version(coffer__module_id id, coffer_error *err)
{
    if (is_program(&slots[id]) && !slots[id].linked)
        return coffer__helper_version(id, err);
    const coffer__module *module = load(&slots[id], err);
    return module ? module->library_version() : NULL;
}

const char *coffer__module_name(coffer__module_id id)
{
    return slots[id].name;
}

const char *coffer__module_library(coffer__module_id id)
{
    return slots[id].library;
}
