# Install rules of the package that find_package(Tandem) reads.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(_tandem_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Tandem")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/TandemConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TandemConfig.cmake"
  INSTALL_DESTINATION "${_tandem_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
if(TARGET tandem_program)
  # INSTALL_RPATH_USE_LINK_PATH would leave out .deps, a folder of the project.
  set(_tandem_rpath "")
  foreach(library IN ITEMS libtorch_cpu libcudart libnccl)
    if(TARGET LibTorch::${library})
      get_target_property(path LibTorch::${library} IMPORTED_LOCATION)
      get_filename_component(path "${path}" DIRECTORY)
      list(APPEND _tandem_rpath "${path}")
    endif()
  endforeach()
  set_target_properties(tandem_program PROPERTIES
    INSTALL_RPATH "${_tandem_rpath}")
  install(TARGETS tandem_program)
endif()
install(EXPORT TandemTargets NAMESPACE tandem:: DESTINATION "${_tandem_dir}")
install(FILES
  "${PROJECT_BINARY_DIR}/TandemConfig.cmake"
  "${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/LibTorch.cmake"
  DESTINATION "${_tandem_dir}")
