/* Labels of two sets that name their classes: a name has the same number in both, whatever it was in the
 * second one. */
#ifndef COFFER_CLI_CLASS_MAP_H
#define COFFER_CLI_CLASS_MAP_H

#include "coffer/mldf.h"

typedef struct class_entry {
    char *name;
    size_t len;
    int64_t label;
} class_entry;

typedef struct class_map {
    const coffer_mldf *from;
    size_t label, from_class; /* fields: of the first set's labels, of the second set's classes */
    bool is_used;             /* both sets have a number "label" and a text "class" */
    class_entry *slots;       /* a hash table; one without a name is free */
    size_t capacity, count;
    int64_t next; /* label of the next class that is new */
    coffer_bytes bytes;
} class_map;

/* Reads the classes of `old`. from : borrowed. */
coffer_status class_map_new(class_map *out, const coffer_mldf *old, const coffer_mldf *from,
                            coffer_error *err);
void class_map_free(class_map *map);
/* The label that a sample of `from` gets in field `field` of the first set: *label stays for fields that are
 * no labels, and for samples without a class. */
coffer_status class_map_label(int64_t *label, class_map *map, uint64_t sample, size_t field,
                              coffer_error *err);

#endif
