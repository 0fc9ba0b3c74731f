# find_package(tilewright): compiles models as a part of a build (docs/guide/builds.md).
#   TILEWRIGHT_EXECUTABLE   the compiler; by default the one that this file was installed with
#   tilewright_add_model    a library target of an ONNX model
cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.25)

get_filename_component(_tilewright_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(TILEWRIGHT_EXECUTABLE tilewright HINTS "${_tilewright_prefix}/bin" NO_CMAKE_FIND_ROOT_PATH
  DOC "the Tilewright compiler")
unset(_tilewright_prefix)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(tilewright REQUIRED_VARS TILEWRIGHT_EXECUTABLE)

# The description that fits a cross toolchain; this machine's own where nothing is cross-compiled.
function(_tilewright_default_target result)
  if(NOT CMAKE_CROSSCOMPILING)
    set(name host)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(name aarch64-generic)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
    set(name armv7-generic)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    set(name x86-64-v2)
  else()
    message(FATAL_ERROR "tilewright_add_model: say TARGET: there is no description for every '${CMAKE_SYSTEM_PROCESSOR}'")
  endif()
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# tilewright_add_model(NAME MODEL FILE [TARGET NAME|FILE] [FROZEN] [BUDGET FILE] [DIMS NAME=N ...] [INSTALL FOLDER] [OPTIONS ...])
#
# Compiles MODEL to NAME/NAME.so with NAME.h beside it, in the current build folder. The target NAME is that library with
# its header; link to it. The model is compiled again when its bytes, those of its external tensors, the target's
# description, the lock, the budget or the compiler change.
#   TARGET   a name of 'tilewright targets' or a YAML file; default: what the toolchain compiles for
#   FROZEN   the build fails where the tilewright.lock beside the model does not pin every kernel
#   BUDGET   the build fails where the library needs more than the file allows
#   DIMS     as --dim
#   INSTALL  'cmake --install' puts the library into this folder of the prefix. Programs that are linked to the model look for it
#            in their own folder: bin is where 'install(TARGETS PROGRAM)' puts them
#   OPTIONS  further flags of 'tilewright compile'
function(tilewright_add_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FROZEN" "MODEL;TARGET;BUDGET;INSTALL" "DIMS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tilewright_add_model(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  elseif(NOT arg_MODEL)
    message(FATAL_ERROR "tilewright_add_model(${name}): MODEL, the ONNX file, is missing")
  elseif(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "tilewright_add_model(${name}): the name must be a C identifier: functions are named after it")
  endif()
  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  if(NOT arg_TARGET)
    _tilewright_default_target(arg_TARGET)
  elseif(arg_TARGET MATCHES "/|\\.yaml$")
    get_filename_component(arg_TARGET "${arg_TARGET}" ABSOLUTE)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(flags -t "${arg_TARGET}" --name "${name}")
  set(depends "${TILEWRIGHT_EXECUTABLE}" "${model}")
  foreach(dim IN LISTS arg_DIMS)
    list(APPEND flags --dim "${dim}")
  endforeach()
  if(arg_FROZEN)
    list(APPEND flags --frozen)
    get_filename_component(lock "${model}" DIRECTORY)
    list(APPEND depends "${lock}/tilewright.lock")
  endif()
  if(arg_BUDGET)
    get_filename_component(budget "${arg_BUDGET}" ABSOLUTE)
    list(APPEND flags --budget "${budget}")
  endif()
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${folder}/${name}.so" "${folder}/${name}.h"
    COMMAND "${TILEWRIGHT_EXECUTABLE}" compile "${model}" -o "${folder}/${name}.so" ${flags} ${arg_OPTIONS}
      --depfile "${folder}/${name}.d"
    DEPENDS ${depends} DEPFILE "${folder}/${name}.d" COMMENT "Compiling the model ${name} for ${arg_TARGET}" VERBATIM)
  add_custom_target(${name}_model ALL DEPENDS "${folder}/${name}.so" "${folder}/${name}.h")
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${folder}/${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${folder}")
  add_dependencies(${name} ${name}_model)
  if(arg_INSTALL)
    install(PROGRAMS "${folder}/${name}.so" DESTINATION "${arg_INSTALL}")
    # By a file: generators do not agree on how a $ is quoted
    file(WRITE "${folder}/rpath" "-Wl,-rpath,$ORIGIN\n")
    set_target_properties(${name} PROPERTIES INTERFACE_LINK_OPTIONS "@${folder}/rpath")
  endif()
endfunction()

cmake_policy(POP)
