/* The functions of a compilation unit by address, with those inlined into them. libdw would walk the unit
 * for every address. */
#ifndef COFFER_RECORD_SYMBOLS_SCOPES_H
#define COFFER_RECORD_SYMBOLS_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct coffer__symbols_scope {
    Dwarf_Addr low, high;
    Dwarf_Die die;
    uint32_t outer; /* index + 1 of the function that contains it; 0 = none */
    uint32_t depth;
    bool inlined;
} coffer__symbols_scope;

typedef struct coffer__symbols_unit {
    Dwarf_Off offset; /* of the unit in .debug_info */
    coffer__symbols_scope *scopes;
    size_t count, capacity;
} coffer__symbols_unit;

/* False: out of memory. */
bool coffer__symbols_unit_read(coffer__symbols_unit *unit, Dwarf_Die *die);
/* The units themselves by address, for files without .debug_aranges, which clang does not write. False: out
 * of memory. */
bool coffer__symbols_units_read(coffer__symbols_unit *units, Dwarf *dwarf);
/* The innermost function at an address, or NULL. */
const coffer__symbols_scope *coffer__symbols_unit_find(const coffer__symbols_unit *unit, Dwarf_Addr address);

#endif
