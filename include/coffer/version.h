#ifndef COFFER_VERSION_H
#define COFFER_VERSION_H

/* The one source of the version: CMake, the command and the packages read it from here. */
#define COFFER_VERSION_MAJOR 0
#define COFFER_VERSION_MINOR 1
#define COFFER_VERSION_PATCH 0
#define COFFER_VERSION_STRING "0.1.0"

#endif
