/* The few elements of S3's answers that matter, from bytes that nobody has checked. */
#ifndef COFFER_IO_REMOTE_S3_XML_H
#define COFFER_IO_REMOTE_S3_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text between a tag and its end. */
typedef struct coffer__xml_part {
    const char *text;
    size_t len;
} coffer__xml_part;

/* The first element of that name inside `part`, or false. Elements of one name inside each other, comments
 * and CDATA do not occur in these answers. */
bool coffer__xml_find(coffer__xml_part *out, coffer__xml_part part, const char *name);
/* The same, and `part` then begins after the element: for lists. */
bool coffer__xml_next(coffer__xml_part *out, coffer__xml_part *part, const char *name);
/* The text of an element with its entities resolved, "" where it is missing. False when it does not fit or
 * has control characters. */
bool coffer__xml_text(char *out, size_t size, coffer__xml_part part, const char *name);
/* A whole number; false where it is missing or is not one. */
bool coffer__xml_number(uint64_t *out, coffer__xml_part part, const char *name);
bool coffer__xml_is_true(coffer__xml_part part, const char *name);
/* Appends text with & < > escaped. */
struct coffer__buffer;
void coffer__xml_escape(struct coffer__buffer *out, const char *text);

#endif
