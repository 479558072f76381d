#ifndef COFFER_API_H
#define COFFER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COFFER_API __attribute__((visibility("default")))
#define COFFER_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))
#define COFFER_NODISCARD __attribute__((warn_unused_result))
#else
#define COFFER_API
#define COFFER_PRINTF(format_index, first_argument)
#define COFFER_NODISCARD
#endif

/* A public function that can fail: `COFFER_API_STATUS coffer_mcf_open(…);`. Ignoring its result is a warning.
 */
#define COFFER_API_STATUS COFFER_API COFFER_NODISCARD coffer_status

/* Returned by functions that look up an index and do not find it. */
#define COFFER_INDEX_NONE SIZE_MAX

#ifdef __cplusplus
#define COFFER_BEGIN_DECLS extern "C" {
#define COFFER_END_DECLS }
#else
#define COFFER_BEGIN_DECLS
#define COFFER_END_DECLS
#endif

COFFER_BEGIN_DECLS

/* Frees bytes that a function of the library handed to the caller. Accepts NULL. */
COFFER_API void coffer_free(void *bytes);

COFFER_END_DECLS

#endif
