# Compiler settings shared by every target: strict warnings are errors, hardening on, identical on GCC and Clang.
add_library(sluice_options INTERFACE)
target_compile_definitions(sluice_options INTERFACE _GNU_SOURCE SLUICE_FAILPOINTS=$<BOOL:${SLUICE_FAILPOINTS}>
  SLUICE_VERSION="${PROJECT_VERSION}")
target_compile_options(sluice_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wcast-qual -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes
  -Wold-style-definition -Wundef -Wvla -Wformat=2 -Wconversion -Wno-sign-conversion -Wimplicit-fallthrough
  -Wswitch-enum -fno-common -fstack-protector-strong -fno-strict-aliasing
  -fno-semantic-interposition)
target_include_directories(sluice_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Tests start thousands of processes: at fixed addresses, and with one runtime less, a start takes half as long.
  target_link_options(sluice_options INTERFACE -fsanitize=address,undefined $<$<C_COMPILER_ID:GNU>:-static-libubsan>
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(SLUICE_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "SLUICE_FUZZ needs Clang (-DCMAKE_C_COMPILER=clang)")
  endif()
  target_compile_options(sluice_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
