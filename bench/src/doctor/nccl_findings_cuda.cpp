#include "doctor/finding.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace tandem::bench {

namespace {

// Asked of the library that libtorch_cuda took along, whatever its header said:
// nccl.h belongs to comm.
std::string loaded_nccl_version() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return "none";
  }
  using GetVersion = int (*)(int*);
  const auto get_version =
      reinterpret_cast<GetVersion>(::dlsym(library, "ncclGetVersion"));
  int code = 0; // 22809 for 2.28.9
  const bool known = get_version != nullptr && get_version(&code) == 0;
  ::dlclose(library);
  return known
      ? fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100)
      : "unknown";
}

} // namespace

std::vector<Finding> nccl_findings() {
  const std::string header = TANDEM_NCCL_HEADER_VERSION;
  const auto library = loaded_nccl_version();
  const auto found = fmt::format("header {}, library {}", header, library);
  if (header == library) {
    return {{Verdict::kOk, "NCCL", found}};
  }
  return {
      {Verdict::kBroken,
       "NCCL",
       found,
       "run with the libnccl that was built with: look at LD_LIBRARY_PATH and "
       "LD_PRELOAD, or build again"}};
}

} // namespace tandem::bench
