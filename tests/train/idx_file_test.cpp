#include <tandem/train/idx_file.h>

#include <string>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/testing/temporary_directory.h>

#include "checks.h"
#include "data_files.h"
#include "tandem_catch.h"

namespace {

using tandem::ConfigError;
using tandem::testing::TemporaryDirectory;
using tandem::train::read_idx_file;
using tandem::train::test::error_of;
using tandem::train::test::idx_bytes;
using tandem::train::test::write_gzip;
using tandem::train::test::write_plain;

std::string read_error(const std::filesystem::path& path, int64_t dims) {
  return error_of<ConfigError>([&] { read_idx_file(path, dims); });
}

// The error names the file and holds both words.
void check_refused(
    const TemporaryDirectory& dir,
    const std::string& bytes,
    const std::string& expected,
    const std::string& got) {
  const auto path = dir.path() / "file";
  write_plain(path, bytes);
  const auto error = read_error(path, 2);
  INFO(error);
  CHECK(error.find(path.string()) != std::string::npos);
  CHECK(error.find(expected) != std::string::npos);
  CHECK(error.find(got) != std::string::npos);
}

} // namespace

TEST_CASE("an idx file is read alike plain and gzipped", "[train]") {
  const TemporaryDirectory dir;
  const auto bytes = idx_bytes({2, 3}, {1, 2, 3, 4, 5, '\xff'});
  write_plain(dir.path() / "plain", bytes);
  write_gzip(dir.path() / "zipped", bytes);
  const auto expected =
      torch::tensor({1, 2, 3, 4, 5, 255}, torch::kByte).view({2, 3});
  CHECK(read_idx_file(dir.path() / "plain", 2).equal(expected));
  CHECK(read_idx_file(dir.path() / "zipped", 2).equal(expected));
  write_plain(dir.path() / "none", idx_bytes({0, 3}, ""));
  CHECK(
      read_idx_file(dir.path() / "none", 2).sizes() == c10::IntArrayRef{0, 3});
}

TEST_CASE("an idx file that lies about itself is refused", "[train]") {
  const TemporaryDirectory dir;
  const std::string six(6, 'x');
  check_refused(dir, "", "magic number 00000802", "0 bytes");
  check_refused(dir, "PNG!", "magic number 00000802", "504e4721");
  check_refused(dir, idx_bytes({6}, six), "00000802", "00000801");
  check_refused(dir, idx_bytes({2, 3}, "").substr(0, 7), "2 sizes", "fewer");
  check_refused(dir, idx_bytes({2, 3}, "12345"), "6 bytes", "got 5");
  check_refused(dir, idx_bytes({2, 3}, six + "7"), "6 bytes", "more");
  check_refused(
      dir,
      idx_bytes({0xffffffff, 0xffffffff}, six),
      "64 GiB",
      "4294967295 x 4294967295");
}

TEST_CASE("an idx file that cannot be read is refused by name", "[train]") {
  const TemporaryDirectory dir;
  CHECK(
      read_error(dir.path() / "absent", 1)
          .find((dir.path() / "absent").string()) != std::string::npos);
  CHECK(!read_error(dir.path(), 1).empty());
  write_gzip(dir.path() / "cut", idx_bytes({1000}, std::string(1000, 'x')));
  std::filesystem::resize_file(dir.path() / "cut", 30);
  CHECK(!read_error(dir.path() / "cut", 1).empty());
}
