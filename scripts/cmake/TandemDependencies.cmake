# fmt, CLI11, nlohmann-json, zlib and Catch2: the distribution's, or those of a
# bundle (scripts/setup.sh --bundle) on a machine without a network.
#
# fmt is used by its header alone, fmt::fmt-header-only: LibTorch's include
# folder holds a copy of fmt's headers that comes before the distribution's and
# does not fit its libfmt.
include_guard(GLOBAL)

function(_tandem_from_bundle target)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  # After LibTorch's folder, where the distribution's headers are searched too.
  target_compile_options(${target} INTERFACE
    "SHELL:-idirafter \"${TANDEM_BUNDLE}/include\"")
endfunction()

if(TANDEM_BUNDLE)
  if(NOT IS_DIRECTORY "${TANDEM_BUNDLE}/include")
    message(FATAL_ERROR
      "TANDEM_BUNDLE: expected a folder with include/, got ${TANDEM_BUNDLE}")
  endif()
  _tandem_from_bundle(fmt::fmt-header-only)
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
  _tandem_from_bundle(nlohmann_json::nlohmann_json)
  _tandem_from_bundle(CLI11::CLI11)
  _tandem_from_bundle(Catch2::Catch2)
  _tandem_from_bundle(ZLIB::ZLIB)
  target_link_libraries(ZLIB::ZLIB INTERFACE "${TANDEM_BUNDLE}/lib/libz.a")
else()
  find_package(fmt REQUIRED GLOBAL)
  find_package(nlohmann_json REQUIRED GLOBAL)
  find_package(ZLIB REQUIRED GLOBAL)
  if(TANDEM_BUILD_BENCH)
    find_package(CLI11 REQUIRED GLOBAL)
  endif()
  if(TANDEM_BUILD_TESTS)
    find_package(Catch2 REQUIRED GLOBAL)
  endif()
endif()
