# Tests that are scripts: the command's, the documentation's, the examples', and the style of the sources.
set(scripts ${PROJECT_SOURCE_DIR}/scripts)

# tests/cli/NAME.sh with the expected output beside it.
file(GLOB cli_tests CONFIGURE_DEPENDS cli/*.sh)
if(CMAKE_C_FLAGS MATCHES "--coverage") # its limit on the size of files also stops the counters of gcov
    list(FILTER cli_tests EXCLUDE REGEX "/output-errors\\.sh$")
endif()
foreach(script IN LISTS cli_tests)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME cli.${name} COMMAND ${scripts}/run-cli-test ${PROJECT_BINARY_DIR} ${script})
    set_tests_properties(cli.${name} PROPERTIES TIMEOUT 120)
endforeach()

# tests/defects/ID.sh, in the same form: one for each defect of version 0.1, named after its line in the list.
file(GLOB defect_tests CONFIGURE_DEPENDS defects/*.sh)
if(CMAKE_C_FLAGS MATCHES "--coverage") # runs the command as another user, who cannot write the counters
    list(FILTER defect_tests EXCLUDE REGEX "/M8\\.sh$")
endif()
foreach(script IN LISTS defect_tests)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME defect.${name} COMMAND ${scripts}/run-cli-test ${PROJECT_BINARY_DIR} ${script})
    set_tests_properties(defect.${name} PROPERTIES TIMEOUT 120)
endforeach()

# Tests of code that runs on several threads: these run under the thread sanitizer.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS threaded.txt)
file(STRINGS threaded.txt threaded)
set_property(TEST ${threaded} APPEND PROPERTY LABELS threads)

# Remote files: our own servers that misbehave, nginx, and an S3 server where one is installed.
add_test(NAME remote.put COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/remote/test_put.py ${PROJECT_BINARY_DIR})
add_test(NAME remote.faults COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/remote/test_faults.py ${PROJECT_BINARY_DIR})
foreach(server nginx s3)
    add_test(NAME remote.${server}
        COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/remote/test_servers.py ${PROJECT_BINARY_DIR} ${server})
endforeach()
set_tests_properties(remote.put remote.faults remote.nginx remote.s3 PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

# Reports, read without a browser; web/test/browser.mjs reads them with one.
add_test(NAME web.report COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/web/smoke.py $<TARGET_FILE:coffer_command> ${CMAKE_CURRENT_SOURCE_DIR})
add_test(NAME web.view COMMAND python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/web/view.py $<TARGET_FILE:coffer_command> ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(web.report PROPERTIES TIMEOUT 120)
set_tests_properties(web.view PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

# Each example runs in an empty folder; examples/NAME.expected is what it prints, where that is fixed.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS example_sources)
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME examples.${name} COMMAND ${scripts}/run-example $<TARGET_FILE:example_${name}>
        ${PROJECT_SOURCE_DIR}/examples/${name}.expected)
    set_tests_properties(examples.${name} PROPERTIES TIMEOUT 60)
endforeach()
add_test(NAME examples.generate COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/models/generate.sh $<TARGET_FILE:example_generate>
    $<TARGET_FILE:coffer_command> ${CMAKE_CURRENT_SOURCE_DIR}/compat/models)
set_tests_properties(examples.generate PROPERTIES TIMEOUT 60)

# The rest looks at the sources or builds on its own: once is enough, so not under sanitizers or coverage.
if(COFFER_SANITIZE OR CMAKE_C_FLAGS MATCHES "--coverage")
    return()
endif()

file(GLOB_RECURSE documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
list(FILTER documents EXCLUDE REGEX "/docs/(api|cli)/") # generated; the examples name files of the reader
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/docs/cli)
    add_test(NAME docs.cli COMMAND ${scripts}/check-generated-docs ${PROJECT_BINARY_DIR})
endif()
foreach(document IN ITEMS ${PROJECT_SOURCE_DIR}/README.md LISTS documents)
    if(EXISTS ${document})
        file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${document})
        string(REGEX REPLACE "\\.md$" "" name ${name})
        string(REGEX REPLACE "^docs/" "" name ${name})
        string(REPLACE "/" "." name ${name})
        add_test(NAME docs.${name} COMMAND ${scripts}/run-doc-blocks ${PROJECT_BINARY_DIR} ${document})
        set_tests_properties(docs.${name} PROPERTIES TIMEOUT 120)
    endif()
endforeach()

add_test(NAME headers COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/headers/check-headers ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/check-install
    ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
add_test(NAME abi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/abi/check-abi ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
add_test(NAME aarch64.kernels COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/aarch64/check-kernels ${CMAKE_CURRENT_BINARY_DIR}/aarch64)
set_tests_properties(aarch64.kernels PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
add_test(NAME style.arrows COMMAND ${scripts}/check-arrows)
add_test(NAME style.prose COMMAND ${scripts}/check-prose)
add_test(NAME style.docs COMMAND ${scripts}/check-docs)
