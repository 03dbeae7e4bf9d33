#include "tandem_catch.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <tandem/comm/error_file.h>
#include <tandem/core/errors.h>
#include <tandem/testing/temporary_directory.h>

#include "child_process.h"
#include "launch/error_record.h"
#include "launched.h"

namespace {

using namespace tandem;
using comm::launch::read_error_file;
using namespace std::chrono_literals;

class ErrorFileVariable {
 public:
  explicit ErrorFileVariable(const std::string& path) {
    ::setenv("TORCHELASTIC_ERROR_FILE", path.c_str(), 1);
  }
  ~ErrorFileVariable() {
    ::unsetenv("TORCHELASTIC_ERROR_FILE");
  }
  ErrorFileVariable(const ErrorFileVariable&) = delete;
  ErrorFileVariable& operator=(const ErrorFileVariable&) = delete;
};

std::optional<comm::launch::ErrorRecord> read_text(const std::string& text) {
  const testing::TemporaryDirectory folder;
  const auto path = (folder.path() / "error.json").string();
  std::ofstream(path) << text;
  return read_error_file(path);
}

// A shell's rank that fails with `error`, which happened at `second`.
std::string fails(const std::string& error, int second) {
  return R"(echo '{"message": {"message": ")" + error +
      R"(", "extraInfo": {"py_callstack": "...", "timestamp": ")" +
      std::to_string(second) + R"("}}}' > "$TORCHELASTIC_ERROR_FILE"; exit 1)";
}

} // namespace

TEST_CASE(
    "write_error_file leaves an error's type, message and time",
    "[launch]") {
  const testing::TemporaryDirectory folder;
  const auto path = (folder.path() / "error.json").string();
  const ErrorFileVariable variable(path);
  const auto before = std::chrono::system_clock::now();
  comm::write_error_file(
      std::make_exception_ptr(ConfigError("two \"words\"\nand \xff")));
  const auto record = read_error_file(path);
  REQUIRE(record);
  CHECK(record->message == "ConfigError: two \"words\"\nand \xef\xbf\xbd");
  CHECK(record->time > before - 1s);
  CHECK(record->time < std::chrono::system_clock::now() + 1s);
}

TEST_CASE("write_error_file does nothing without its variable", "[launch]") {
  ::unsetenv("TORCHELASTIC_ERROR_FILE");
  comm::write_error_file(std::make_exception_ptr(std::runtime_error("x")));
  const ErrorFileVariable variable("/no/such/folder/file");
  comm::write_error_file(std::make_exception_ptr(std::runtime_error("x")));
  comm::write_error_file(nullptr);
}

TEST_CASE("read_error_file takes both forms that torch writes", "[launch]") {
  const auto full = read_text(
      R"({"message": {"message": "ValueError: x", "extraInfo":
          {"py_callstack": "...", "timestamp": "1700000000"}}})");
  REQUIRE(full);
  CHECK(full->message == "ValueError: x");
  CHECK(full->time.time_since_epoch() == 1700000000s);
  const auto text =
      read_text(R"({"message": "SIGSEGV caught", "timestamp": 1700000001})");
  REQUIRE(text);
  CHECK(text->message == "SIGSEGV caught");
  CHECK(text->time.time_since_epoch() == 1700000001s);
}

TEST_CASE("read_error_file finds nothing in what is no error", "[launch]") {
  CHECK_FALSE(read_error_file("/no/such/file"));
  for (const auto* text :
       {"",
        "{",
        "[1]",
        "\"text\"",
        "{}",
        R"({"message": 1})",
        "\xff\xfe",
        R"({"message": {"message": {}}})"}) {
    CHECK_FALSE(read_text(text));
  }
  const auto timeless = read_text(R"({"message": {"message": "x"}})");
  REQUIRE(timeless);
  CHECK(timeless->time > std::chrono::system_clock::now() - 60s);
}

TEST_CASE(
    "launch_local shows the error file of the rank that failed first",
    "[launch]") {
  // Rank 1 fails later than rank 0 says to have failed, but is seen first.
  const testing::TemporaryDirectory folder;
  const auto waits_for = [](const std::string& file) {
    return "while [ ! -e \"$FOLDER/" + file + "\" ]; do sleep 0.01; done; ";
  };
  const auto launched = test::launch_caught(
      2,
      test::sh(
          "if [ $RANK = 1 ]; then " + waits_for("deaf") +
          fails("ValueError: late", 1700000005) +
          "; fi; trap 'touch \"$FOLDER/told\"' TERM; "
          "touch \"$FOLDER/deaf\"; " +
          waits_for("told") + fails("ValueError: early", 1700000003)),
      5s,
      {{"FOLDER", folder.path().string()}});
  REQUIRE(launched.result.first_failure);
  CHECK(launched.result.first_failure->rank == 0);
  CHECK(launched.result.first_failure->error == "ValueError: early");
  CHECK_THAT(
      launched.err,
      Catch::Matchers::ContainsSubstring("[launch] also failed: rank 1 ") &&
          Catch::Matchers::ContainsSubstring(
              "exited with code 1: ValueError: late\n") &&
          Catch::Matchers::ContainsSubstring("exited with code 1; its error:\n"
                                             "[launch] | ValueError: early\n"));
}

TEST_CASE(
    "launch_local gives each rank a file of its own and removes all",
    "[launch]") {
  const auto launched = test::launch_caught(
      2,
      test::sh("echo file $TORCHELASTIC_ERROR_FILE; "
               "touch $TORCHELASTIC_ERROR_FILE"));
  CHECK(launched.result.exit_code == 0);
  std::vector<std::string> files;
  for (auto at = launched.out.find("file "); at != std::string::npos;
       at = launched.out.find("file ", at + 1)) {
    const auto begin = at + std::string("file ").size();
    files.push_back(
        launched.out.substr(begin, launched.out.find('\n', at) - begin));
  }
  REQUIRE(files.size() == 2);
  CHECK(files[0] != files[1]);
  CHECK_FALSE(
      std::filesystem::exists(std::filesystem::path(files[0]).parent_path()));
}

TEST_CASE(
    "launch_local starts ranks without error files where none can be",
    "[launch]") {
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "/tmp" : before;
  ::setenv("TMPDIR", "/no/such/folder", 1);
  const auto launched = test::launch_caught(
      1,
      test::sh("echo file=${TORCHELASTIC_ERROR_FILE-none}"));
  ::setenv("TMPDIR", folder.c_str(), 1);
  CHECK(launched.out == "[rank 0] file=none\n");
}

TEST_CASE("tandem itself leaves its error in the error file", "[launch]") {
  const testing::TemporaryDirectory folder;
  const auto path = (folder.path() / "error.json").string();
  const ErrorFileVariable variable(path);
  test::ChildProcess program({TANDEM_PROGRAM, "launch", "-n", "0", "true"});
  CHECK(program.wait() == 2);
  const auto record = read_error_file(path);
  REQUIRE(record);
  CHECK_THAT(
      record->message,
      Catch::Matchers::StartsWith("ConfigError: [launch]"));
}
