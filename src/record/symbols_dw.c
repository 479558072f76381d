/* Reads symbols with libdw, also from separate files of debug information. */
#include "record/symbols.h"
#include "record/symbols_scopes.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <stdlib.h>
#include <string.h>

/* The C++ run-time library, which libcoffer links anyway, has it. */
extern char *__cxa_demangle(const char *name, char *out, size_t *len, int *status);

typedef struct text {
    struct text *next;
    char value[];
} text;

/* A function of the symbol table. */
typedef struct named_range {
    GElf_Addr start, end;
    const char *name;
    int rank; /* of several at one address, the lowest is shown */
} named_range;

struct coffer__symbols_file {
    Dwfl *dwfl;
    named_range *ranges; /* sorted by start */
    size_t range_count;
    coffer__symbols_unit *units; /* those that were asked for */
    size_t unit_count;
    coffer__symbols_unit places; /* of all units, when the file has no table of them */
    bool placed;
    Dwfl_Module *module;
    GElf_Addr bias;
    text *texts;
};

static char debug_path_default[] = "";
static char *debug_path = debug_path_default;

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

static coffer_status fail(coffer_error *err)
{
    const char *reason = dwfl_errmsg(-1);
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "cannot read symbols: %s",
                        reason ? reason : "unknown reason");
}

static void close_file(coffer__symbols_file *file)
{
    if (!file)
        return;
    if (file->dwfl)
        dwfl_end(file->dwfl);
    coffer__free(file->ranges);
    for (size_t i = 0; i < file->unit_count; i++)
        coffer__free(file->units[i].scopes);
    coffer__free(file->units);
    coffer__free(file->places.scopes);
    while (file->texts) {
        text *next = file->texts->next;
        coffer__free(file->texts);
        file->texts = next;
    }
    coffer__free(file);
}

static coffer_status check_build_id(coffer__symbols_file *file, const uint8_t *build_id, size_t len,
                                    coffer_error *err)
{
    const unsigned char *bits = NULL;
    GElf_Addr address;
    int found = dwfl_module_build_id(file->module, &bits, &address);
    if (len == 0 || (found == (int)len && memcmp(bits, build_id, len) == 0))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                        "the file is not the one that was recorded: its build-id is another");
}

/* ---- The symbol table ---- */

static int compare_ranges(const void *left, const void *right)
{
    const named_range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->rank != b->rank ? a->rank - b->rank : strcmp(a->name, b->name);
}

/* Public names before local ones, and names without leading underscores before others. */
static int rank_of(const GElf_Sym *symbol, const char *name)
{
    int binding = GELF_ST_BIND(symbol->st_info);
    int rank = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 2 : 4;
    return rank + (name[0] == '_' && name[1] != 'Z' && name[1] != 'R');
}

/* libdwfl searches its table from the beginning for each address; a sorted one is searched instead. */
static void read_symbols(coffer__symbols_file *file)
{
    int count = dwfl_module_getsymtab(file->module);
    file->ranges = count > 0 ? coffer__alloc_array((size_t)count, sizeof *file->ranges) : NULL;
    for (int i = 1; file->ranges && i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(file->module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info);
        if (!name || !*name || symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        file->ranges[file->range_count++] =
            (named_range){ address, address + symbol.st_size, name, rank_of(&symbol, name) };
    }
    if (file->ranges && file->range_count > 0)
        qsort(file->ranges, file->range_count, sizeof *file->ranges, compare_ranges);
}

/* A symbol without a size reaches to the next one. */
static const char *find_symbol(const coffer__symbols_file *file, GElf_Addr address)
{
    size_t low = COFFER__COUNT_UP_TO(file->ranges, file->range_count, named_range, start, address);
    if (low == 0)
        return NULL;
    const named_range *found = &file->ranges[low - 1];
    while (found > file->ranges && found[-1].start == found->start)
        found--;
    return address < found->end || found->end == found->start ? found->name : NULL;
}

static coffer_status open_file(coffer__symbols_file **out, const char *path, const uint8_t *build_id,
                               size_t len, coffer_error *err)
{
    coffer__symbols_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    coffer_status status = COFFER_OK;
    file->dwfl = dwfl_begin(&callbacks);
    if (!file->dwfl) {
        status = fail(err);
        goto out;
    }
    file->module = dwfl_report_offline(file->dwfl, path, path, -1);
    if (!file->module || dwfl_report_end(file->dwfl, NULL, NULL) != 0 ||
        !dwfl_module_getelf(file->module, &file->bias))
        status = fail(err);
    if (!status)
        status = check_build_id(file, build_id, len, err);
    if (!status)
        read_symbols(file);
out:
    if (status) {
        close_file(file);
        return status;
    }
    *out = file;
    return COFFER_OK;
}

/* ---- Names ---- */

/* Rust writes characters that symbols cannot have as $LT$, $u20$ and so on, and "::" inside a part as "..".
 */
static void unescape(char *name)
{
    static const struct {
        const char *escape, *text;
    } escapes[] = { { "$LT$", "<" },  { "$GT$", ">" },  { "$RF$", "&" },   { "$BP$", "*" },  { "$C$", "," },
                    { "$LP$", "(" },  { "$RP$", ")" },  { "$SP$", "@" },   { "$u20$", " " }, { "$u27$", "'" },
                    { "$u5b$", "[" }, { "$u5d$", "]" }, { "$u7b$", "{" },  { "$u7d$", "}" }, { "$u7e$", "~" },
                    { "$u3b$", ";" }, { "$u2b$", "+" }, { "$u22$", "\"" }, { "..", "::" } };
    char *out = name;
    for (const char *in = name; *in;) {
        size_t i = 0, count = sizeof escapes / sizeof escapes[0];
        if (*in == '_' && in[1] == '$' && (in == name || in[-1] == ':'))
            in++;
        while (i < count && strncmp(in, escapes[i].escape, strlen(escapes[i].escape)) != 0)
            i++;
        if (i == count) {
            *out++ = *in++;
            continue;
        }
        in += strlen(escapes[i].escape);
        memcpy(out, escapes[i].text, strlen(escapes[i].text));
        out += strlen(escapes[i].text);
    }
    *out = '\0';
}

/* Rust ends its names with "::h" and sixteen digits. */
static void cut_hash(char *name)
{
    enum { HASH = 19 };
    size_t len = strlen(name);
    if (len <= HASH || memcmp(name + len - HASH, "::h", 3) != 0)
        return;
    for (size_t i = len - HASH + 3; i < len; i++)
        if (!isxdigit((unsigned char)name[i]))
            return;
    name[len - HASH] = '\0';
    unescape(name);
}

static const char *demangle(coffer__symbols_file *file, const char *name)
{
    int status = -1;
    if (name[0] != '_' || name[1] != 'Z')
        return name;
    char *plain = __cxa_demangle(name, NULL, NULL, &status);
    if (status != 0 || !plain) {
        free(plain);
        return name;
    }
    cut_hash(plain);
    size_t len = strlen(plain) + 1;
    text *copy = coffer__malloc(sizeof *copy + len);
    if (copy) {
        memcpy(copy->value, plain, len);
        copy->next = file->texts;
        file->texts = copy;
    }
    free(plain);
    return copy ? copy->value : name;
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    return name ? name : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
}

static const char *name_of(coffer__symbols_file *file, Dwarf_Die *die)
{
    const char *linkage = linkage_name(die);
    if (linkage && linkage[0] == '_' && linkage[1] == 'Z')
        return demangle(file, linkage);
    return dwarf_diename(die);
}

/* ---- Places ---- */

static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value;
}

static void place_of_call(coffer__symbol *out, Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files = NULL;
    size_t count = 0;
    uint64_t file = number_of(inlined, DW_AT_call_file);
    out->line = number_of(inlined, DW_AT_call_line);
    out->file = NULL;
    if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
        out->file = dwarf_filesrc(files, file, NULL, NULL);
}

static const coffer__symbols_unit *unit_of(coffer__symbols_file *file, Dwarf_Die *die)
{
    Dwarf_Off offset = dwarf_dieoffset(die);
    for (size_t i = file->unit_count; i-- > 0;)
        if (file->units[i].offset == offset)
            return &file->units[i];
    coffer__symbols_unit *larger = coffer__realloc(file->units, (file->unit_count + 1) * sizeof *file->units);
    if (!larger)
        return NULL;
    file->units = larger;
    coffer__symbols_unit *unit = &file->units[file->unit_count++];
    *unit = (coffer__symbols_unit){ 0 };
    return coffer__symbols_unit_read(unit, die) ? unit : NULL;
}

static size_t find_by_dwarf(coffer__symbol *out, size_t max, coffer__symbols_file *file, Dwarf_Die *die,
                            Dwarf_Addr address)
{
    coffer__symbol at = { 0 };
    size_t count = 0;
    Dwarf_Line *line = dwarf_getsrc_die(die, address);
    int number = 0;
    if (line) {
        at.file = dwarf_linesrc(line, NULL, NULL);
        if (dwarf_lineno(line, &number) == 0 && number > 0)
            at.line = (uint64_t)number;
    }
    const coffer__symbols_unit *unit = unit_of(file, die);
    const coffer__symbols_scope *scope = unit ? coffer__symbols_unit_find(unit, address) : NULL;
    while (scope && count < max) {
        Dwarf_Die function = scope->die;
        at.function = name_of(file, &function);
        out[count++] = at;
        if (!scope->inlined)
            break;
        place_of_call(&at, die, &function);
        scope = scope->outer ? &unit->scopes[scope->outer - 1] : NULL;
    }
    return count;
}

static bool find_unit(Dwarf_Die *out, Dwarf_Addr *bias, coffer__symbols_file *file, GElf_Addr address)
{
    const Dwarf_Die *unit = dwfl_module_addrdie(file->module, address, bias);
    if (unit) {
        *out = *unit;
        return true;
    }
    Dwarf *dwarf = dwfl_module_getdwarf(file->module, bias);
    if (!dwarf)
        return false;
    if (!file->placed && !coffer__symbols_units_read(&file->places, dwarf))
        return false;
    file->placed = true;
    const coffer__symbols_scope *found = coffer__symbols_unit_find(&file->places, address - *bias);
    if (found)
        *out = found->die;
    return found;
}

static size_t find(coffer__symbol *out, size_t max, coffer__symbols_file *file, uint64_t address)
{
    Dwarf_Addr bias = 0;
    GElf_Addr here = address + file->bias;
    Dwarf_Die unit;
    size_t count =
        find_unit(&unit, &bias, file, here) ? find_by_dwarf(out, max, file, &unit, here - bias) : 0;
    if (count > 0 && out[count - 1].function)
        return count;
    const char *name = find_symbol(file, here);
    if (!name || max == 0)
        return count;
    if (count == 0)
        out[count++] = (coffer__symbol){ 0 };
    out[count - 1].function = demangle(file, name);
    return count;
}

static const char *library_version(void)
{
    static char version[16];
    snprintf(version, sizeof version, "0.%d", _ELFUTILS_VERSION);
    return version;
}

static const coffer__symbols_module table = {
    COFFER__MODULE_INIT(coffer__symbols_module, library_version),
    .open = open_file,
    .find = find,
    .close = close_file,
};
COFFER__MODULE_EXPORT(symbols, table);
