#include <fstream>
#include <stdexcept>

#include <tandem/testing/error_text.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

using tandem::testing::holds;
using tandem::testing::missing_parts;
using tandem::testing::TemporaryDirectory;
using tandem::testing::thrown_text;

TEST_CASE(
    "a temporary directory is new, and gone with all it held",
    "[testing]") {
  std::filesystem::path path;
  {
    const TemporaryDirectory first;
    const TemporaryDirectory second;
    CHECK(first.path() != second.path());
    path = first.path();
    std::filesystem::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "b" / "file") << "text";
    CHECK(std::filesystem::exists(path / "a" / "b" / "file"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("error texts tell exceptions and their words apart", "[testing]") {
  const auto throw_config = [] { throw tandem::ConfigError("one two"); };
  CHECK(thrown_text<tandem::Error>(throw_config) == "one two");
  CHECK_THROWS_AS(
      thrown_text<tandem::PeerError>(throw_config),
      tandem::ConfigError);
  CHECK_FALSE(thrown_text<tandem::Error>([] {}).has_value());
  const auto error = std::make_exception_ptr(tandem::TimeoutError("late"));
  CHECK(holds<tandem::PeerError>(error));
  CHECK_FALSE(holds<tandem::ConfigError>(error));
  CHECK_FALSE(holds<tandem::Error>(nullptr));
  CHECK(
      missing_parts("one two", {"one", "three"}) ==
      std::vector<std::string>{"three"});
}
