# Imported targets for a LibTorch folder: a torch wheel's or an unpacked
# archive's. Needs neither Python nor, for the CPU, a CUDA toolkit.
#
#   LibTorch::cpu    libtorch_cpu and libc10
#   LibTorch::cuda   adds libtorch_cuda, libc10_cuda, the CUDA runtime
#   LibTorch::nccl   adds nccl.h and libnccl, both of the same version
#
# Reads    LIBTORCH_ROOT (cache, else environment), TANDEM_CUDA, TANDEM_NCCL
# Defines  LIBTORCH_VERSION, TANDEM_HAS_CUDA, TANDEM_HAS_NCCL

if(NOT DEFINED TANDEM_CUDA)
  set(TANDEM_CUDA AUTO CACHE STRING "Build for CUDA: AUTO, ON or OFF")
  set_property(CACHE TANDEM_CUDA PROPERTY STRINGS AUTO ON OFF)
endif()
if(NOT DEFINED TANDEM_NCCL)
  set(TANDEM_NCCL AUTO CACHE STRING "Build with NCCL: AUTO, ON or OFF")
  set_property(CACHE TANDEM_NCCL PROPERTY STRINGS AUTO ON OFF)
endif()
set(LIBTORCH_ROOT "$ENV{LIBTORCH_ROOT}" CACHE PATH
  "LibTorch's folder, the one that holds include/ and lib/")

# A checkout's own .deps/torch-<version>, newest first; TANDEM_DEPS_DIR is set
# by the top CMakeLists.txt only.
function(_libtorch_find_root)
  if(LIBTORCH_ROOT)
    return()
  endif()
  file(GLOB found LIST_DIRECTORIES true
    "${TANDEM_DEPS_DIR}/torch-*/lib/python3*/site-packages/torch")
  list(SORT found COMPARE NATURAL ORDER DESCENDING)
  foreach(root IN LISTS found)
    if(EXISTS "${root}/lib/libtorch_cpu.so")
      set(LIBTORCH_ROOT "${root}" CACHE PATH "" FORCE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "LibTorch not found. "
    "Run scripts/setup.sh, or set LIBTORCH_ROOT to a LibTorch folder.")
endfunction()

function(_libtorch_read_version out)
  file(STRINGS "${LIBTORCH_ROOT}/include/torch/headeronly/version.h" lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(_libtorch_import name path)
  add_library(LibTorch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::${name} PROPERTIES
    IMPORTED_LOCATION "${path}")
endfunction()

# Where the libraries that the wheel needs lie: its own lib folder and the
# NVIDIA wheels beside it.
function(_libtorch_companion_dirs out)
  get_filename_component(site "${LIBTORCH_ROOT}/.." ABSOLUTE)
  file(GLOB dirs LIST_DIRECTORIES true "${site}/nvidia/*/lib")
  set(${out} "${LIBTORCH_ROOT}/lib" ${dirs} PARENT_SCOPE)
endfunction()

# Libraries named in `library`'s NEEDED entries that are nowhere to be found.
function(_libtorch_missing_needed library dirs out)
  execute_process(COMMAND readelf -d "${library}"
    OUTPUT_VARIABLE dynamic RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    set(${out} "${library}" PARENT_SCOPE)
    return()
  endif()
  string(REGEX MATCHALL "NEEDED[^\n]*" lines "${dynamic}")
  set(missing "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*: .(.*)." "\\1" needed "${line}")
    string(REPLACE "]" "" needed "${needed}")
    unset(path)
    find_file(path "${needed}" PATHS ${dirs} NO_CACHE NO_DEFAULT_PATH)
    if(NOT path)
      find_library(path NAMES "${needed}" NO_CACHE)
    endif()
    if(NOT path AND NOT needed MATCHES "^ld-linux")
      list(APPEND missing "${needed}")
    endif()
  endforeach()
  set(${out} "${missing}" PARENT_SCOPE)
endfunction()

function(_libtorch_add_cpu dirs)
  find_package(Threads REQUIRED)
  _libtorch_import(libc10 "${LIBTORCH_ROOT}/lib/libc10.so")
  _libtorch_import(libtorch_cpu "${LIBTORCH_ROOT}/lib/libtorch_cpu.so")
  add_library(LibTorch::cpu INTERFACE IMPORTED GLOBAL)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    "${LIBTORCH_ROOT}/include"
    "${LIBTORCH_ROOT}/include/torch/csrc/api/include")
  target_compile_definitions(LibTorch::cpu INTERFACE
    USE_DISTRIBUTED USE_C10D_GLOO USE_RPC USE_TENSORPIPE)
  target_compile_features(LibTorch::cpu INTERFACE cxx_std_20)
  # libtorch_cpu's static initialisers register the kernels: never drop it.
  target_link_options(LibTorch::cpu INTERFACE "LINKER:--no-as-needed")
  foreach(dir IN LISTS dirs)
    target_link_options(LibTorch::cpu INTERFACE "LINKER:-rpath-link,${dir}")
  endforeach()
  target_link_libraries(LibTorch::cpu INTERFACE
    LibTorch::libtorch_cpu LibTorch::libc10 Threads::Threads)
endfunction()

function(_libtorch_add_cuda dirs out_reason)
  set(${out_reason} "" PARENT_SCOPE)
  set(library "${LIBTORCH_ROOT}/lib/libtorch_cuda.so")
  if(NOT EXISTS "${library}")
    set(${out_reason} "(this LibTorch has no libtorch_cuda)" PARENT_SCOPE)
    return()
  endif()
  find_path(LIBTORCH_CUDA_INCLUDE cuda_runtime_api.h
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES include)
  if(NOT LIBTORCH_CUDA_INCLUDE)
    set(${out_reason} "(no CUDA toolkit: no cuda_runtime_api.h)" PARENT_SCOPE)
    return()
  endif()
  _libtorch_missing_needed("${library}" "${dirs}" missing)
  if(missing)
    list(JOIN missing ", " missing)
    set(${out_reason} "(libtorch_cuda needs ${missing})" PARENT_SCOPE)
    return()
  endif()
  # The runtime that libtorch_cuda itself loads, so that there is only one.
  file(GLOB cudart "${LIBTORCH_ROOT}/lib/libcudart*.so*"
    "${LIBTORCH_ROOT}/../nvidia/*/lib/libcudart.so.*")
  list(APPEND cudart "cudart-not-found")
  list(GET cudart 0 cudart)
  if(NOT EXISTS "${cudart}")
    find_library(cudart NAMES cudart NO_CACHE REQUIRED
      HINTS "${LIBTORCH_CUDA_INCLUDE}/../lib64")
  endif()
  get_filename_component(cudart "${cudart}" ABSOLUTE)
  _libtorch_import(libcudart "${cudart}")
  _libtorch_import(libc10_cuda "${LIBTORCH_ROOT}/lib/libc10_cuda.so")
  _libtorch_import(libtorch_cuda "${library}")
  add_library(LibTorch::cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(LibTorch::cuda SYSTEM INTERFACE
    "${LIBTORCH_CUDA_INCLUDE}")
  target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
    LibTorch::libtorch_cuda LibTorch::libc10_cuda LibTorch::libcudart)
endfunction()

function(_libtorch_add_nccl out_reason)
  set(${out_reason} "" PARENT_SCOPE)
  get_filename_component(site "${LIBTORCH_ROOT}/.." ABSOLUTE)
  find_path(LIBTORCH_NCCL_INCLUDE nccl.h NO_DEFAULT_PATH
    PATHS "${site}/nvidia/nccl/include" "${LIBTORCH_ROOT}/include")
  find_file(LIBTORCH_NCCL_LIBRARY libnccl.so.2 NO_DEFAULT_PATH
    PATHS "${site}/nvidia/nccl/lib" "${LIBTORCH_ROOT}/lib")
  if(NOT LIBTORCH_NCCL_INCLUDE OR NOT LIBTORCH_NCCL_LIBRARY)
    set(${out_reason} "(no nccl.h with a libnccl beside LibTorch)" PARENT_SCOPE)
    return()
  endif()
  # ProcessGroupNCCL's options hold ncclConfig_t by value: its size must be the
  # one that the library was built with.
  file(STRINGS "${LIBTORCH_NCCL_INCLUDE}/nccl.h" lines
    REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." header)
  file(STRINGS "${LIBTORCH_NCCL_LIBRARY}" line LIMIT_COUNT 1
    REGEX "NCCL version [0-9]+\\.[0-9]+\\.[0-9]+")
  string(REGEX REPLACE ".*NCCL version ([0-9.]+[0-9]).*" "\\1" library
    "${line}")
  if(NOT header STREQUAL library)
    message(FATAL_ERROR "nccl.h in ${LIBTORCH_NCCL_INCLUDE} is version "
      "${header}, but ${LIBTORCH_NCCL_LIBRARY} is version ${library}. "
      "Use the header that comes with the library.")
  endif()
  _libtorch_import(libnccl "${LIBTORCH_NCCL_LIBRARY}")
  add_library(LibTorch::nccl INTERFACE IMPORTED GLOBAL)
  target_include_directories(LibTorch::nccl SYSTEM BEFORE INTERFACE
    "${LIBTORCH_NCCL_INCLUDE}")
  target_compile_definitions(LibTorch::nccl INTERFACE USE_C10D_NCCL)
  target_link_libraries(LibTorch::nccl INTERFACE LibTorch::cuda
    LibTorch::libnccl)
  set(LIBTORCH_NCCL_VERSION "${library}" PARENT_SCOPE)
endfunction()

_libtorch_find_root()
if(NOT EXISTS "${LIBTORCH_ROOT}/include/torch/headeronly/version.h"
    OR NOT EXISTS "${LIBTORCH_ROOT}/lib/libtorch_cpu.so")
  message(FATAL_ERROR
    "LIBTORCH_ROOT: expected a LibTorch 2.11 or later with include/ and lib/, "
    "got ${LIBTORCH_ROOT}")
endif()
_libtorch_read_version(LIBTORCH_VERSION)

# The targets are global and made once; the variables are for every directory
# that reads this file.
if(NOT TARGET LibTorch::cpu)
  _libtorch_companion_dirs(_libtorch_dirs)
  _libtorch_add_cpu("${_libtorch_dirs}")
  set(_libtorch_no_cuda "(TANDEM_CUDA=OFF)")
  set(_libtorch_no_nccl "(no CUDA)")
  if(TANDEM_CUDA STREQUAL "AUTO" OR TANDEM_CUDA)
    _libtorch_add_cuda("${_libtorch_dirs}" _libtorch_no_cuda)
  endif()
  if(TARGET LibTorch::cuda)
    set(_libtorch_no_nccl "(TANDEM_NCCL=OFF)")
    if(TANDEM_NCCL STREQUAL "AUTO" OR TANDEM_NCCL)
      _libtorch_add_nccl(_libtorch_no_nccl)
    endif()
  endif()
endif()
set(TANDEM_HAS_CUDA OFF)
if(TARGET LibTorch::cuda)
  set(TANDEM_HAS_CUDA ON)
endif()
set(TANDEM_HAS_NCCL OFF)
if(TARGET LibTorch::nccl)
  set(TANDEM_HAS_NCCL ON)
endif()

if(NOT TANDEM_HAS_CUDA AND NOT TANDEM_CUDA STREQUAL "AUTO" AND TANDEM_CUDA)
  message(FATAL_ERROR "TANDEM_CUDA=ON is not possible ${_libtorch_no_cuda}")
endif()
if(NOT TANDEM_HAS_NCCL AND NOT TANDEM_NCCL STREQUAL "AUTO" AND TANDEM_NCCL)
  message(FATAL_ERROR "TANDEM_NCCL=ON is not possible ${_libtorch_no_nccl}")
endif()
message(STATUS "LibTorch ${LIBTORCH_VERSION}: ${LIBTORCH_ROOT}")
message(STATUS "CUDA: ${TANDEM_HAS_CUDA} ${_libtorch_no_cuda}")
message(STATUS "NCCL: ${TANDEM_HAS_NCCL} ${_libtorch_no_nccl}")
