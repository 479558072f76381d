/* The numbers that model containers and training sets write for a type of element. */
#ifndef COFFER_BASE_DTYPE_CODE_H
#define COFFER_BASE_DTYPE_CODE_H

#include "coffer/dtype.h"

uint8_t coffer__dtype_code(coffer_dtype dtype);    /* 0 when the type does not have one */
coffer_dtype coffer__dtype_of_code(uint32_t code); /* COFFER_DTYPE_NONE when no type has it */

#endif
