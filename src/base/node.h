/* The members of a node, for the files that build and read trees. */
#ifndef COFFER_BASE_NODE_H
#define COFFER_BASE_NODE_H

#include "coffer/node.h"

struct coffer_node {
    struct coffer_node *root;
    struct coffer_node *next, *first, *last;
    const char *name;
    union {
        bool boolean;
        uint64_t u64;
        int64_t i64;
        double f64;
        const char *text;
        size_t count; /* of children */
    } as;
    size_t text_len;
    coffer_node_kind kind;
    coffer_unit unit;
    bool detail; /* for people who ask for internals */
};

#endif
