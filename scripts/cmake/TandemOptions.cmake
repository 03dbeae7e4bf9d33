# Options of the build and what follows from them. TANDEM_CUDA and TANDEM_NCCL
# are LibTorch.cmake's, because an installed Tandem reads them too.
include_guard(GLOBAL)

option(TANDEM_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_BUILD_BENCH "Build the program tandem" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_UNITY "Compile each part as few large units" ON)
option(TANDEM_PCH "Precompile the LibTorch headers that most units read" ON)
option(TANDEM_INSTALL "Make install rules" ${PROJECT_IS_TOP_LEVEL})
set(TANDEM_SANITIZE "" CACHE STRING
  "thread, address, undefined or address,undefined; or empty")
set_property(CACHE TANDEM_SANITIZE PROPERTY STRINGS
  "" thread address undefined address,undefined)
set(TANDEM_BUNDLE "$ENV{TANDEM_BUNDLE}" CACHE PATH
  "Folder written by scripts/setup.sh --bundle: header-only dependencies")

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  find_program(TANDEM_CCACHE ccache)
  if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # base_dir makes hits possible in another checkout; the sloppiness is what
    # ccache asks for before it caches units that use a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      "CCACHE_SLOPPINESS=pch_defines,time_macros"
      "${TANDEM_CCACHE}")
  endif()
  find_program(TANDEM_MOLD mold)
  if(TANDEM_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
      AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
