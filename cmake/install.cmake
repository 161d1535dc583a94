# What `make install` puts under the prefix: the program, the public headers, the library behind them (shared and static), and
# how other builds find it (pkg-config, CMake). Only sluice_ names are visible in either library.
set(public_objects $<TARGET_OBJECTS:sluice_lib> $<FILTER:$<TARGET_OBJECTS:sluice_platform>,INCLUDE,/error[.]c>)

set(map ${PROJECT_SOURCE_DIR}/cmake/sluice.map)
add_library(sluice_shared SHARED ${public_objects})
target_link_libraries(sluice_shared PRIVATE sluice_coord sluice_options)
target_link_options(sluice_shared PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic -Wl,--as-needed -Wl,-z,defs)
if(SLUICE_SANITIZE)
  target_link_options(sluice_shared PRIVATE -Wl,-z,undefs) # the sanitizers' own functions are the program's
endif()
set_target_properties(sluice_shared PROPERTIES OUTPUT_NAME sluice VERSION ${PROJECT_VERSION} SOVERSION 0
  LINKER_LANGUAGE C LINK_DEPENDS ${map} EXPORT_NAME sluice)
target_include_directories(sluice_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# One object of everything that the library needs, in which all names but the public ones are local.
set(modules)
foreach(module coord worker adapters store shm locks platform)
  list(APPEND modules $<TARGET_FILE:sluice_${module}>)
endforeach()
set(static ${PROJECT_BINARY_DIR}/static)
add_custom_command(OUTPUT ${static}/libsluice.a
  COMMAND ${CMAKE_COMMAND} -E make_directory ${static}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${static}/libsluice.a
  COMMAND ${CMAKE_LINKER} -r -o ${static}/sluice.o ${public_objects} --start-group ${modules} --end-group
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=sluice_* ${static}/sluice.o
  COMMAND ${CMAKE_AR} rcs ${static}/libsluice.a ${static}/sluice.o
  DEPENDS sluice_lib sluice_coord sluice_worker sluice_adapters sluice_store sluice_shm sluice_locks sluice_platform
    ${public_objects} COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(sluice_static ALL DEPENDS ${static}/libsluice.a)

file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sluice.pc.in sluice.pc @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(TARGETS sluice_shared EXPORT sluice LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${static}/libsluice.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT sluice FILE sluiceConfig.cmake NAMESPACE sluice:: DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake DESTINATION ${package})
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The manual page and the completions come from the program's own table of commands.
set(words ${PROJECT_BINARY_DIR}/words)
set(word_files)
foreach(word "sluice.1=help --man" "sluice=completion bash" "_sluice=completion zsh" "sluice.fish=completion fish")
  string(REGEX MATCH "^([^=]+)=([^ ]+) (.+)$" _ ${word})
  set(file ${words}/${CMAKE_MATCH_1})
  add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -E make_directory ${words}
    COMMAND $<TARGET_FILE:sluice> ${CMAKE_MATCH_2} ${CMAKE_MATCH_3} > ${file} DEPENDS sluice)
  list(APPEND word_files ${file})
endforeach()
add_custom_target(sluice_words ALL DEPENDS ${word_files})
install(FILES ${words}/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${words}/sluice DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${words}/_sluice DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${words}/sluice.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The service names the program where it is installed.
file(READ packaging/sluice.service unit)
string(REPLACE /usr/bin/sluice ${CMAKE_INSTALL_FULL_BINDIR}/sluice unit "${unit}")
file(WRITE ${PROJECT_BINARY_DIR}/sluice.service "${unit}")
install(FILES ${PROJECT_BINARY_DIR}/sluice.service DESTINATION lib/systemd/system)
install(FILES README.md CHANGELOG.md packaging/serve.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
