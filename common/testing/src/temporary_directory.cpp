#include <tandem/testing/temporary_directory.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <tandem/core/errors.h>

namespace tandem::testing {

TemporaryDirectory::TemporaryDirectory() {
  std::string name =
      std::filesystem::temp_directory_path() / "tandem-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(
        "temporary directory '" + name +
        "': cannot be made: " + std::strerror(errno));
  }
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace tandem::testing
