# Headers, both libraries, pkg-config file, CMake package, the command, its man pages and completions.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/coffer)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY include/coffer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS coffer_command)
set_target_properties(coffer_shared PROPERTIES EXPORT_NAME coffer)
set_target_properties(coffer_static PROPERTIES EXPORT_NAME static)
foreach(kind shared static)
    install(TARGETS coffer_${kind} EXPORT coffer-${kind})
    install(EXPORT coffer-${kind} NAMESPACE coffer:: DESTINATION ${package_dir})
endforeach()

# The pkg-config file computes its prefix from its own path, so that the tree may be moved, except where the packager
# sets absolute folders.
set(COFFER_MODULES simdjson libisal libxxhash libsodium liblz4 libzstd)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(COFFER_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH to_prefix /${pkgconfig_dir} /)
    string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
    set(COFFER_PC_PREFIX "\${pcfiledir}/${to_prefix}")
endif()
foreach(folder LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${folder}})
        set(COFFER_PC_${folder} ${CMAKE_INSTALL_${folder}})
    else()
        set(COFFER_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
    endif()
endforeach()
set(COFFER_PC_PRIVATE "-lsimdjson -lisal -lxxhash -lsodium -llz4 -lzstd -lstdc++ -lpthread -ldl -lm")
configure_file(cmake/coffer.pc.in coffer.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/coffer.pc DESTINATION ${pkgconfig_dir})

configure_package_config_file(cmake/coffer-config.cmake.in coffer-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(coffer-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/coffer-config.cmake ${PROJECT_BINARY_DIR}/coffer-config-version.cmake
    DESTINATION ${package_dir})

# The command writes its own man pages and completions from the tables that its help comes from.
if(COFFER_GENERATED AND NOT COFFER_SANITIZE)
    set(generated ${PROJECT_BINARY_DIR}/generated)
    add_custom_command(OUTPUT ${generated}/stamp DEPENDS coffer_command VERBATIM
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${generated}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/man ${generated}/bash ${generated}/zsh ${generated}/fish
        COMMAND coffer_command generate man ${generated}/man
        COMMAND coffer_command completion bash > ${generated}/bash/coffer
        COMMAND coffer_command completion zsh > ${generated}/zsh/_coffer
        COMMAND coffer_command completion fish > ${generated}/fish/coffer.fish
        COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stamp)
    add_custom_target(coffer_generated ALL DEPENDS ${generated}/stamp)
    install(DIRECTORY ${generated}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${generated}/bash/coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${generated}/zsh/_coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${generated}/fish/coffer.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
