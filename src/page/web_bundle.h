/* The script and the style of the pages, which the build makes from web/; empty when it had no Node. */
#ifndef COFFER_PAGE_WEB_BUNDLE_H
#define COFFER_PAGE_WEB_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t coffer__web_script[], coffer__web_style[];
extern const size_t coffer__web_script_size, coffer__web_style_size;

#endif
