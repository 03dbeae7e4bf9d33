# tandem_add_part(<name>
#   [HEADERS include/tandem/...]   public headers, below include/
#   [SOURCES src/...]              none: a header-only part
#   [PUBLIC_LINKS ...] [PRIVATE_LINKS ...])
#
# Makes the library tandem_<name>, alias tandem::<name>. A part sees only what
# it links, so the compiler keeps the layers. src/ is private to the part.
# Header-only dependencies in PRIVATE_LINKS (fmt::fmt-header-only,
# nlohmann_json::nlohmann_json) go in as $<BUILD_INTERFACE:...>, so that users
# of the installed package need not have them.
# Sources that must not share a unit with others (own macros, other
# definitions) set the source property SKIP_UNITY_BUILD_INCLUSION.
include_guard(GLOBAL)

function(tandem_add_part name)
  cmake_parse_arguments(PARSE_ARGV 1 arg ""
    "" "HEADERS;SOURCES;PUBLIC_LINKS;PRIVATE_LINKS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "tandem_add_part(${name}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if("fmt::fmt" IN_LIST arg_PUBLIC_LINKS OR "fmt::fmt" IN_LIST arg_PRIVATE_LINKS)
    message(FATAL_ERROR "tandem_add_part(${name}): link fmt::fmt-header-only, "
      "see TandemDependencies.cmake")
  endif()
  set(target tandem_${name})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_include_directories(${target} PRIVATE
      "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src>")
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LINKS})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    tandem_set_flags(${target})
    tandem_unity(${target})
    tandem_precompile(${target})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(tandem::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_sources(${target} ${scope} FILE_SET HEADERS
    BASE_DIRS include FILES ${arg_HEADERS})
  target_link_libraries(${target} ${scope} ${arg_PUBLIC_LINKS})
  set_property(GLOBAL APPEND PROPERTY TANDEM_PARTS ${name})
  if(TANDEM_INSTALL)
    install(TARGETS ${target} EXPORT TandemTargets FILE_SET HEADERS)
  endif()
endfunction()
