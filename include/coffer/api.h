#ifndef COFFER_API_H
#define COFFER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COFFER_API __attribute__((visibility("default")))
#define COFFER_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define COFFER_API
#define COFFER_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
#define COFFER_BEGIN_DECLS extern "C" {
#define COFFER_END_DECLS }
#else
#define COFFER_BEGIN_DECLS
#define COFFER_END_DECLS
#endif

#endif
