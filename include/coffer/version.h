#ifndef COFFER_VERSION_H
#define COFFER_VERSION_H

/* CMake, the command and the packages read the version from here. */
#define COFFER_VERSION_MAJOR 0
#define COFFER_VERSION_MINOR 2
#define COFFER_VERSION_PATCH 0
#define COFFER_VERSION_STRING "0.2.0"

/* For comparisons: 100 for 0.1.0, 10203 for 1.2.3. */
#define COFFER_VERSION_NUMBER \
    (COFFER_VERSION_MAJOR * 10000 + COFFER_VERSION_MINOR * 100 + COFFER_VERSION_PATCH)

#endif
