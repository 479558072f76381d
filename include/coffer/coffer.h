#ifndef COFFER_H
#define COFFER_H

/* Everything, for those who do not want to choose. */
#include "coffer/bytes.h"
#include "coffer/convert.h"
#include "coffer/dataset.h"
#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/file.h"
#include "coffer/format.h"
#include "coffer/limits.h"
#include "coffer/mcf.h"
#include "coffer/media.h"
#include "coffer/mldf.h"
#include "coffer/mlyze.h"
#include "coffer/mscan.h"
#include "coffer/node.h"
#include "coffer/page.h"
#include "coffer/progress.h"
#include "coffer/pycauset.h"
#include "coffer/quant.h"
#include "coffer/quantize.h"
#include "coffer/remote.h"
#include "coffer/report.h"
#include "coffer/source.h"
#include "coffer/tensors.h"
#include "coffer/version.h"

COFFER_BEGIN_DECLS

/* Version of the library in use, which may be newer than the headers. */
COFFER_API const char *coffer_version(void);
COFFER_API int coffer_version_number(void); /* as COFFER_VERSION_NUMBER */
/* The best instruction set that the processor has: "generic", "avx2", "avx512", "neon" or "neon-dot". The
 * environment variable COFFER_CPU asks for one of them, and is not heeded where the processor does not have
 * it. */
COFFER_API const char *coffer_cpu(void);
/* Describes the library in use, for bug reports: "version", "compiler", "cpu", "libraries", and each
 * of its "modules" with "found" and either the "library" it uses or the "problem". Loads every module. out :
 * owned by the caller, free with coffer_node_free(). */
COFFER_API_STATUS coffer_about(coffer_node **out, coffer_error *err);

COFFER_END_DECLS

#endif
