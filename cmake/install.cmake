install(DIRECTORY include/coffer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS coffer_static coffer_shared coffer_command)
