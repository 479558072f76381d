#include "record/symbols_scopes.h"

#include "base/memory.h"

#include <dwarf.h>

enum { NESTING_MAX = 128 };

/* Where the walk through a unit is: the entry, and the function that it is in. */
typedef struct place {
    Dwarf_Die die;
    uint32_t outer, depth;
} place;

static bool add_scope(coffer__symbols_unit *unit, const coffer__symbols_scope *scope)
{
    if (unit->count == unit->capacity) {
        size_t capacity = unit->capacity ? 2 * unit->capacity : 256;
        coffer__symbols_scope *larger = coffer__realloc(unit->scopes, capacity * sizeof *larger);
        if (!larger)
            return false;
        unit->scopes = larger;
        unit->capacity = capacity;
    }
    unit->scopes[unit->count++] = *scope;
    return true;
}

/* Adds a function once for each range of its code. *number : index + 1 of the last; 0 = it has no code. */
static bool add_function(coffer__symbols_unit *unit, uint32_t *number, const place *at, bool inlined)
{
    coffer__symbols_scope scope = {
        .die = at->die, .outer = at->outer, .depth = at->depth, .inlined = inlined
    };
    Dwarf_Die die = at->die;
    Dwarf_Addr base;
    ptrdiff_t offset = 0;
    *number = 0;
    while ((offset = dwarf_ranges(&die, offset, &base, &scope.low, &scope.high)) > 0) {
        if (!add_scope(unit, &scope))
            return false;
        *number = (uint32_t)unit->count;
    }
    return true;
}

/* Adds the entry if it is a function. *inside : what its children are in; *enter : whether they matter. */
static bool visit(coffer__symbols_unit *unit, place *inside, bool *enter, const place *at)
{
    Dwarf_Die die = at->die;
    int tag = dwarf_tag(&die);
    uint32_t number;
    *inside = *at;
    *enter = tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_module;
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
        return true;
    if (!add_function(unit, &number, at, tag == DW_TAG_inlined_subroutine))
        return false;
    inside->outer = number;
    inside->depth = at->depth + 1;
    *enter = number > 0;
    return true;
}

bool coffer__symbols_unit_read(coffer__symbols_unit *unit, Dwarf_Die *die)
{
    place stack[NESTING_MAX];
    unsigned level = 0;
    unit->offset = dwarf_dieoffset(die);
    stack[0] = (place){ .outer = 0, .depth = 1 };
    if (dwarf_child(die, &stack[0].die) != 0)
        return true;
    for (;;) {
        place inside;
        bool enter;
        if (!visit(unit, &inside, &enter, &stack[level]))
            return false;
        if (enter && level + 1 < NESTING_MAX && dwarf_child(&stack[level].die, &inside.die) == 0) {
            stack[++level] = inside;
            continue;
        }
        Dwarf_Die next;
        while (dwarf_siblingof(&stack[level].die, &next) != 0) {
            if (level == 0)
                return true;
            level--;
        }
        stack[level].die = next;
    }
}

bool coffer__symbols_units_read(coffer__symbols_unit *units, Dwarf *dwarf)
{
    Dwarf_Off offset = 0, next;
    size_t header;
    while (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
        place at = { .depth = 1 };
        uint32_t number;
        if (dwarf_offdie(dwarf, offset + header, &at.die) && !add_function(units, &number, &at, false))
            return false;
        offset = next;
    }
    return true;
}

const coffer__symbols_scope *coffer__symbols_unit_find(const coffer__symbols_unit *unit, Dwarf_Addr address)
{
    const coffer__symbols_scope *found = NULL;
    for (size_t i = 0; i < unit->count; i++) {
        const coffer__symbols_scope *scope = &unit->scopes[i];
        if (address >= scope->low && address < scope->high && (!found || scope->depth >= found->depth))
            found = scope;
    }
    return found;
}
