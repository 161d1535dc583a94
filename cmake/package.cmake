# The Debian package (`make package`, or `cpack -G DEB` in a build folder): all that is installed, with the service and its user. With
# SOURCE_DATE_EPOCH set, the same build gives the same bytes.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VENDOR Sluice)
set(CPACK_PACKAGE_CONTACT "The Sluice maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "crash-safe property graphs, written by many processes at once")
set(CPACK_PACKAGE_DESCRIPTION "Typed nodes and edges in Arrow files on a local disk, loaded in parallel, with branches, merges and
history. A write is there whole or not at all, whichever process dies, and after power loss. The program, the
library for C programs with its headers, and a service that hosts several graphs.")
set(CPACK_PACKAGE_INSTALL_DIRECTORY sluice)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "systemd, python3-pyarrow")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst ${PROJECT_SOURCE_DIR}/packaging/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
