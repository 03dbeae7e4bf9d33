#include "tandem_catch.h"

#include <filesystem>
#include <fstream>

#include <tandem/comm/launcher.h>
#include <tandem/testing/temporary_directory.h>

#include "launch/program_path.h"

namespace {

namespace fs = std::filesystem;
using tandem::comm::ProgramError;
using tandem::comm::launch::find_program;

class ProgramFolders {
 public:
  ProgramFolders() {
    for (const auto* folder : {"a", "b", "c"}) {
      fs::create_directory(root_.path() / folder);
    }
  }
  std::string path(const std::string& name) const {
    return (root_.path() / name).string();
  }
  void add_file(const std::string& name, bool executable) const {
    std::ofstream(path(name)) << "#!/bin/sh\n";
    fs::permissions(
        path(name),
        executable ? fs::perms::owner_all : fs::perms::owner_read);
  }

 private:
  tandem::testing::TemporaryDirectory root_;
};

// The exit code of the failure; 0 if the program was found.
int failure_code(const std::string& name, const std::string& search_path) {
  try {
    find_program(name, search_path);
    return 0;
  } catch (const ProgramError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(name));
    return error.exit_code();
  }
}

} // namespace

TEST_CASE("find_program takes the first executable in PATH", "[launch]") {
  const ProgramFolders folders;
  folders.add_file("a/prog", false);
  folders.add_file("b/prog", true);
  folders.add_file("c/prog", true);
  const auto path =
      folders.path("a") + ":" + folders.path("b") + ":" + folders.path("c");
  CHECK(find_program("prog", path) == folders.path("b/prog"));
  CHECK(find_program(folders.path("c/prog"), "") == folders.path("c/prog"));
}

TEST_CASE(
    "find_program fails with 127 for no file and 126 for no program",
    "[launch]") {
  const ProgramFolders folders;
  folders.add_file("a/plain", false);
  fs::create_directory(folders.path("a/folder"));
  CHECK(failure_code("none", folders.path("a")) == 127);
  CHECK(failure_code("plain", folders.path("a")) == 126);
  CHECK(failure_code("folder", folders.path("a")) == 126);
  CHECK(failure_code(folders.path("a/none"), "") == 127);
  CHECK(failure_code(folders.path("a/plain"), "") == 126);
  CHECK(failure_code(folders.path("a/plain/x"), "") == 127);
  CHECK(failure_code(folders.path("a"), "") == 126);
}
