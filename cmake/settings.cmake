# Language, warnings and sanitizers for every target of the project.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Kernels use intrinsics where -O2 is not enough. Installed code is hardened.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-fstack-protector-strong)
    if(NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "_FORTIFY_SOURCE") # a distribution's own level stays
        add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    endif()
    add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wpointer-arith -Wcast-align=strict -Wwrite-strings -Wvla -Wformat=2 -Wcast-qual
    -ffp-contract=off -fno-math-errno
    $<$<COMPILE_LANGUAGE:C>:-Wconversion>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wold-style-definition>)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-Wno-unknown-warning-option -Wno-cast-align)
endif()
if(COFFER_WERROR)
    add_compile_options(-Werror)
endif()

if(COFFER_SANITIZE)
    string(REPLACE "+" "," sanitizers "${COFFER_SANITIZE}")
    # gcc warns about conversions that its own instrumentation adds.
    add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-conversion -Wno-sign-conversion)
    add_link_options(-fsanitize=${sanitizers})
endif()
