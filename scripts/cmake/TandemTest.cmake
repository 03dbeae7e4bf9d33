# tandem_add_test(<name> SOURCES *_test.cpp... [LINKS ...] [LABELS ...]
#   [DEVICES cpu|sim|sim-hazards|cuda...])
#
# Makes one test binary, tandem_<name>_test, and one ctest entry for each of
# its test cases, "<name>: <title>". With DEVICES there is one for each kind of
# device that makes sense for the case (tests/support/devices.h). Every tag of a case ([DP-05], [gpu])
# becomes a ctest label. Each entry is a process of its own with a limit of
# 60 s, or 480 s with the tag [slow]; entries with the tag [gpu] are disabled,
# and so reported as not run, where there is no GPU.
include_guard(GLOBAL)

function(tandem_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "SOURCES;LINKS;LABELS;DEVICES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "tandem_add_test(${name}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target tandem_${name}_test)
  set(rank_process no_rank_process.cpp)
  if("tandem::testing" IN_LIST arg_LINKS)
    set(rank_process rank_process.cpp)
  endif()
  set(kinds cpu)
  set(devices no_devices.cpp)
  if(arg_DEVICES)
    list(JOIN arg_DEVICES "," kinds)
    set(devices devices.cpp)
    list(APPEND arg_LINKS tandem::sim)
  endif()
  set(support "${PROJECT_SOURCE_DIR}/tests/support")
  add_executable(${target} ${arg_SOURCES}
    "${support}/${rank_process}" "${support}/${devices}")
  target_link_libraries(${target} PRIVATE
    tandem_test_support ${arg_LINKS} LibTorch::cpu)
  tandem_set_flags(${target})
  tandem_unity(${target})
  tandem_precompile(${target})

  # The binary knows its cases and writes ctest's file itself.
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E env OMP_NUM_THREADS=1
      "$<TARGET_FILE:${target}>" --write-ctest "${file}" "${name}"
      "${kinds}" ${arg_LABELS}
    BYPRODUCTS "${file}" VERBATIM)
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(CONFIGURE OUTPUT "${include}" @ONLY CONTENT [[
if(EXISTS "@file@")
  include("@file@")
else()
  add_test("@name@: not built" "@target@ is not built")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
