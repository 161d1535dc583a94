# What `make install` puts under the prefix: the program, the public headers, the library behind them, and its pkg-config file.
# The library holds what the public headers declare, and nothing of the inside.
add_library(sluice_public STATIC platform/error.c)
set_target_properties(sluice_public PROPERTIES OUTPUT_NAME sluice)
target_link_libraries(sluice_public PRIVATE sluice_options)
configure_file(cmake/sluice.pc.in sluice.pc @ONLY)
install(TARGETS sluice_public ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
