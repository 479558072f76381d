/* The worked example of a page in docs/formats: a dump in a block marked ```hex, a table of its fields, and a
 * table of facts. Whatever does not hold fails the test. */
#ifndef COFFER_TESTS_DOC_PAGE_H
#define COFFER_TESTS_DOC_PAGE_H

#include <stddef.h>
#include <stdint.h>

enum { DOC_LONGEST_EXAMPLE = 16384 };

typedef struct doc_dump {
    uint8_t bytes[DOC_LONGEST_EXAMPLE];
    size_t size;
} doc_dump;

/* Lines of sixteen bytes with their offset and characters; a line "*" means zeros up to the next. */
void doc_parse_dump(doc_dump *out, const char *path);
/* Rows "| 0x00 | bytes | field | value |": the bytes are those of the dump, the value is what they give
 * little-endian, or in quotes the bytes themselves. Gives the number of rows. */
size_t doc_check_byte_table(const char *path, const doc_dump *dump);
/* Facts about the example, as the library gives them. */
enum { DOC_MOST_FACTS = 16 };
typedef struct doc_facts {
    struct {
        const char *name;
        uint64_t value;
    } items[DOC_MOST_FACTS];
    size_t count;
} doc_facts;
void doc_add_fact(doc_facts *facts, const char *name, uint64_t value);
/* The rows of the table "| fact | value |" are exactly these facts. */
void doc_check_facts(const char *path, const doc_facts *facts);

#endif
