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
  list(APPEND TANDEM_LINK_FLAGS "-fsanitize=${TANDEM_SANITIZE}")
endif()

function(tandem_set_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${TANDEM_COMPILE_FLAGS})
  target_link_options(${target} PRIVATE ${TANDEM_LINK_FLAGS})
endfunction()

# tandem_precompile(<target> <kind>): reads the precompiled header of that kind
# (library or test), which one object target compiles for all.
function(tandem_precompile target kind)
  if(TARGET tandem_pch_${kind})
    target_precompile_headers(${target} REUSE_FROM tandem_pch_${kind})
  endif()
endfunction()

function(tandem_unity target)
  if(TANDEM_UNITY)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# The units are empty: they exist to compile the header once.
function(_tandem_add_pch kind pic)
  set(unit "${CMAKE_CURRENT_BINARY_DIR}/pch_${kind}.cpp")
  file(CONFIGURE OUTPUT "${unit}" CONTENT "")
  add_library(tandem_pch_${kind} OBJECT "${unit}")
  set_target_properties(tandem_pch_${kind} PROPERTIES
    POSITION_INDEPENDENT_CODE ${pic})
  tandem_set_flags(tandem_pch_${kind})
  target_link_libraries(tandem_pch_${kind} PRIVATE LibTorch::cpu)
  target_precompile_headers(tandem_pch_${kind} PRIVATE
    "${PROJECT_SOURCE_DIR}/scripts/cmake/pch_${kind}.h")
endfunction()

if(TANDEM_PCH)
  _tandem_add_pch(library ON)
  if(TANDEM_BUILD_TESTS)
    _tandem_add_pch(test OFF)
  endif()
endif()
