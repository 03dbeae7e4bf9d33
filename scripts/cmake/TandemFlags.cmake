# Flags of Tandem's own targets. They are private: nothing that links Tandem
# inherits a warning, a sanitizer or an optimisation level.
include_guard(GLOBAL)

set(TANDEM_COMPILE_FLAGS -Wall -Wextra -Wpedantic -Wshadow
  -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wunused)
if(PROJECT_IS_TOP_LEVEL)
  list(APPEND TANDEM_COMPILE_FLAGS -Werror)
endif()
set(TANDEM_LINK_FLAGS "")
if(TANDEM_SANITIZE)
  list(APPEND TANDEM_COMPILE_FLAGS "-fsanitize=${TANDEM_SANITIZE}"
    -fno-omit-frame-pointer -g1)
  if(TANDEM_SANITIZE MATCHES "undefined")
    # A finding fails the test; types whose RTTI LibTorch hides are left out.
    list(APPEND TANDEM_COMPILE_FLAGS -fno-sanitize-recover=all
      -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented, the C++ library's own headers make GCC warn: of a fence
    # (thread) and of members it takes for unset (address).
    list(APPEND TANDEM_COMPILE_FLAGS -Wno-maybe-uninitialized)
    if(TANDEM_SANITIZE STREQUAL "thread")
      list(APPEND TANDEM_COMPILE_FLAGS -Wno-tsan)
    endif()
  endif()
  list(APPEND TANDEM_LINK_FLAGS "-fsanitize=${TANDEM_SANITIZE}")
endif()

function(tandem_set_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${TANDEM_COMPILE_FLAGS})
  target_link_options(${target} PRIVATE ${TANDEM_LINK_FLAGS})
endfunction()

# tandem_precompile(<target>): reads the header that one object target has
# precompiled for all. Programs and tests share it with the libraries, since
# compiling a second one costs more than it saves; hence -fPIC for all of them.
function(tandem_precompile target)
  if(TARGET tandem_pch)
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM tandem_pch)
  endif()
endfunction()

function(tandem_unity target)
  if(TANDEM_UNITY)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

if(TANDEM_PCH)
  # The unit is empty: it exists to compile the header once.
  set(_tandem_unit "${CMAKE_CURRENT_BINARY_DIR}/pch.cpp")
  file(CONFIGURE OUTPUT "${_tandem_unit}" CONTENT "")
  add_library(tandem_pch OBJECT "${_tandem_unit}")
  target_compile_options(tandem_pch PRIVATE -fPIC)
  tandem_set_flags(tandem_pch)
  target_link_libraries(tandem_pch PRIVATE LibTorch::cpu)
  target_precompile_headers(tandem_pch PRIVATE
    "${CMAKE_CURRENT_LIST_DIR}/pch.h")
endif()
