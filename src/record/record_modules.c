/* The modules of the process. The loader finds the one of an address without a lock, so this works inside
 * hooks; the reader hears of a module when a stack first passes through it. */
#include "record/record_thread.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#pragma weak _dl_find_object

enum { MODULES = 4096 };

/* Starts of the modules that the reader knows, a hash table. */
static _Atomic uintptr_t known[MODULES];

static int read_unloads(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    memcpy(context, &info->dlpi_subs, sizeof info->dlpi_subs);
    return 1; /* every entry has the same number */
}

uint64_t coffer__record_unloads(void)
{
    unsigned long long count = 0;
    dl_iterate_phdr(read_unloads, &count);
    return count;
}

void coffer__record_reset_modules(void)
{
    for (size_t i = 0; i < MODULES; i++)
        atomic_store_explicit(&known[i], 0, memory_order_relaxed);
}

/* True for the first caller. */
static bool is_new(uintptr_t start)
{
    size_t at = (size_t)((start * UINT64_C(0x9e3779b97f4a7c15)) >> 52) % MODULES;
    for (size_t i = 0; i < MODULES; i++, at = (at + 1) % MODULES) {
        uintptr_t found = atomic_load_explicit(&known[at], memory_order_relaxed);
        if (found == start)
            return false;
        if (found == 0 && atomic_compare_exchange_strong(&known[at], &found, start))
            return true;
        if (found == start)
            return false;
    }
    return false;
}

/* The note is in the first page of the module, with the program headers. */
static size_t read_build_id(uint8_t out[COFFER__RECORD_BUILD_ID_MAX], const struct link_map *map,
                            uintptr_t start)
{
    ElfW(Ehdr) header;
    memcpy(&header, (const void *)start, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phoff > 4096 - sizeof(ElfW(Phdr)))
        return 0;
    for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, (const void *)(start + header.e_phoff + i * sizeof segment), sizeof segment);
        if (segment.p_type != PT_NOTE)
            continue;
        uintptr_t at = map->l_addr + segment.p_vaddr, end = at + segment.p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            memcpy(&note, (const void *)at, sizeof note);
            uintptr_t name = at + sizeof note, text = name + ((note.n_namesz + 3) & ~UINT32_C(3));
            at = text + ((note.n_descsz + 3) & ~UINT32_C(3));
            if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || at > end ||
                memcmp((const void *)name, "GNU", 4) != 0 || note.n_descsz > COFFER__RECORD_BUILD_ID_MAX)
                continue;
            memcpy(out, (const void *)text, note.n_descsz);
            return note.n_descsz;
        }
    }
    return 0;
}

static void tell(coffer__record_thread *thread, const struct dl_find_object *object)
{
    uint8_t build_id[COFFER__RECORD_BUILD_ID_MAX] = { 0 };
    const struct link_map *map = object->dlfo_link_map;
    uintptr_t start = (uintptr_t)object->dlfo_map_start, end = (uintptr_t)object->dlfo_map_end;
    char program[COFFER__RECORD_TEXT_MAX];
    const char *path = map->l_name ? map->l_name : "";
    size_t path_len = strnlen(path, COFFER__RECORD_TEXT_MAX);
    if (path_len == 0) { /* the loader knows the program itself by an empty name */
        int saved = errno;
        ssize_t len = readlink("/proc/self/exe", program, sizeof program);
        errno = saved;
        path = program;
        path_len = len > 0 ? (size_t)len : 0;
    }
    size_t id_len = read_build_id(build_id, map, start);
    uint32_t words = (uint32_t)(5 + (id_len + 7) / 8 + (path_len + 7) / 8);
    if (!coffer__record_reserve(thread, words + 1))
        return;
    coffer__record_put(thread, (uint64_t)words << 8 | COFFER__RECORD_MODULE);
    coffer__record_put(thread, start);
    coffer__record_put(thread, end);
    coffer__record_put(thread, map->l_addr);
    coffer__record_put(thread, id_len);
    coffer__record_put_text(thread, (const char *)build_id, id_len);
    coffer__record_put(thread, path_len);
    coffer__record_put_text(thread, path, path_len);
    coffer__record_publish(thread);
}

const uint8_t *coffer__record_module(coffer__record_thread *thread, uintptr_t pc)
{
    struct dl_find_object object;
    if (!_dl_find_object || _dl_find_object((void *)pc, &object) != 0)
        return NULL;
    if (is_new((uintptr_t)object.dlfo_map_start))
        tell(thread, &object);
    return object.dlfo_eh_frame;
}
