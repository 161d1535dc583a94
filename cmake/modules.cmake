# sluice_module(NAME DEPENDS lib... [SUBFOLDERS dir...]): the static library of one folder of the architecture.
# sluice_program(NAME FOLDER DEPENDS lib...): a program whose sources are one folder; main.c is its entry.
set(allocation_port -include ${PROJECT_SOURCE_DIR}/platform/allocation.h) # all of their memory comes through it

function(sluice_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;SUBFOLDERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c)
  foreach(sub ${ARG_SUBFOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/${sub}/*.c)
    list(APPEND sources ${more})
  endforeach()
  if(sources)
    add_library(sluice_${name} STATIC ${sources})
    target_link_libraries(sluice_${name} PUBLIC ${ARG_DEPENDS} PRIVATE sluice_options)
    target_compile_options(sluice_${name} PRIVATE ${allocation_port})
  else()
    add_library(sluice_${name} INTERFACE)
    target_link_libraries(sluice_${name} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

function(sluice_program name folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${folder}/main.c)
  add_library(sluice_${folder} STATIC ${sources}) # everything but main, so that tests can link it
  target_link_libraries(sluice_${folder} PUBLIC ${ARG_DEPENDS} sluice_allocator PRIVATE sluice_options)
  target_compile_options(sluice_${folder} PRIVATE ${allocation_port})
  add_executable(${name} ${folder}/main.c)
  target_link_libraries(${name} PRIVATE sluice_${folder} sluice_options)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()
