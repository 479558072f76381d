/* Calls on sources that the other folders of the library may use. The struct is in source_struct.h. */
#ifndef COFFER_IO_SOURCE_PRIVATE_H
#define COFFER_IO_SOURCE_PRIVATE_H

#include "coffer/source.h"
#include "io/journal.h"

/* A source over an open descriptor. The descriptor is closed with the source when owns_fd. journal : may be
 * NULL; its old bytes replace those of the file, and the size is the old one. Descriptor and journal pass to
 * the source on success only. */
coffer_status coffer__source_over_fd(coffer_source **out, int fd, bool owns_fd, uint64_t size,
                                     const char *name, coffer__journal *journal, coffer_error *err);
/* The same by mapping; the descriptor is always owned. access : COFFER_ACCESS_MAP fails where the file cannot
 * be mapped; else it is mapped when a view is first asked for, and read until then, or where it cannot be. */
coffer_status coffer__source_over_map(coffer_source **out, int fd, uint64_t size, const char *name,
                                      coffer__journal *journal, coffer_access access, coffer_error *err);
/* A regular file in a folder whose name comes from a file that is not trusted: COFFER_E_UNSAFE_PATH when it
 * is not a plain name, or not a regular file (a symbolic link is not one); COFFER_E_NOT_FOUND when it does
 * not exist. follow : the folder itself may be a symbolic link. */
coffer_status coffer__source_open_in(coffer_source **out, const char *folder, bool follow, const char *name,
                                     coffer_error *err);
/* coffer_source_open for a file that the caller did not name, or one of several: errors of opening and
 * reading name it (COFFER_SUBJECT_OTHER). */
coffer_status coffer__source_open_other(coffer_source **out, const char *path, const coffer_source_opts *opts,
                                        coffer_error *err);
/* The name that an error about this source has to have; NULL where the caller of the library named it. */
const char *coffer__source_other_name(const coffer_source *src);
/* The path of a source that was opened by path, with symbolic links resolved; NULL for other sources. */
const char *coffer__source_path(const coffer_source *src);
/* The descriptor of a file whose bytes are exactly those the source shows, for copies by the kernel; -1 for
 * other sources and for a file under a journal. Borrowed. */
int coffer__source_descriptor(const coffer_source *src);
/* True when the source and the descriptor are the same file on disk. */
bool coffer__source_is_open_as(const coffer_source *src, int fd);
/* The same for two sources. */
bool coffer__source_same_file(const coffer_source *a, const coffer_source *b);
/* The same past the page cache, or through it where the file system refuses; the descriptor is always owned.
 */
coffer_status coffer__source_over_direct(coffer_source **out, int fd, uint64_t size, const char *name,
                                         coffer_error *err);
/* True when the bytes before `end` in views were certainly read from the file. Costs one memory access: when
 * a file is truncated before its last page, touching that page marks the mapping. False when only
 * coffer_source_intact can tell. */
bool coffer__source_surely_intact(const coffer_source *src, uint64_t end);
/* False when the file of the source was changed in place, or a journal appeared or went, since it was
 * opened: metadata read in between may be torn, open again. A file that was replaced or removed meanwhile
 * keeps its bytes for processes that have it open, unless it has a journal. True for sources that are not
 * files. */
bool coffer__source_settled(const coffer_source *src);

/* ---- Damage that the caller accepts (coffer_source_keep_damaged) ---- */

/* The report of a source that continues at damage, else NULL. */
coffer_report *coffer__source_damage_report(const coffer_source *src);
/* A reader returns this for a wrong checksum: COFFER_OK after adding `found` to the report of the source, or
 * without a report `found` itself, copied to err. A finding that the report already has is not repeated. */
coffer_status coffer__source_accept_damage(const coffer_source *src, const coffer_error *found,
                                           coffer_error *err);
/* Adds the list "damaged" to a map: code, offset and text of each finding; nothing for an empty report. */
coffer_status coffer__source_describe_damage(coffer_node *out, const coffer_report *damage,
                                             coffer_error *err);

/* Bytes of a source: a view where the source has one, a copy otherwise. */

/* *out : a view, or `scratch` filled with the len bytes. Ask coffer_source_intact before trusting what was
 * computed from them. */
coffer_status coffer__source_fetch(const uint8_t **out, coffer_source *src, uint64_t offset, size_t len,
                                   void *scratch, coffer_error *err);

/* The same with memory that is allocated when it is needed. *own : NULL for a view, else free it with
 * coffer__free; both outputs are untouched on failure. */
coffer_status coffer__source_fetch_new(const uint8_t **out, uint8_t **own, coffer_source *src,
                                       uint64_t offset, size_t len, coffer_error *err);

#endif
