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
install(EXPORT TandemTargets NAMESPACE tandem:: DESTINATION "${_tandem_dir}")
install(FILES
  "${PROJECT_BINARY_DIR}/TandemConfig.cmake"
  "${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/LibTorch.cmake"
  DESTINATION "${_tandem_dir}")
