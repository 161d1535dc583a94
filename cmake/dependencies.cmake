# The libraries that Sluice stands on (all packaged in Debian 12), gathered behind one interface target.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(UUID REQUIRED IMPORTED_TARGET uuid)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
find_package(roaring REQUIRED CONFIG) # the one that Debian ships without a pkg-config file

add_library(sluice_external INTERFACE)
target_link_libraries(sluice_external INTERFACE PkgConfig::CJSON PkgConfig::UUID PkgConfig::XXHASH PkgConfig::CRYPTO
  PkgConfig::ZLIB PkgConfig::ZSTD PkgConfig::LZ4 PkgConfig::PCRE2 PkgConfig::MICROHTTPD roaring::roaring m)
# The allocator is the program's: a library never chooses one for the process that it is in.
add_library(sluice_allocator INTERFACE)
if(SLUICE_JEMALLOC AND NOT SLUICE_SANITIZE)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  target_link_libraries(sluice_allocator INTERFACE PkgConfig::JEMALLOC)
  target_compile_definitions(sluice_external INTERFACE SLUICE_JEMALLOC=1)
else()
  target_compile_definitions(sluice_external INTERFACE SLUICE_JEMALLOC=0)
endif()
