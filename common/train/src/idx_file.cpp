#include <tandem/train/idx_file.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <tandem/core/errors.h>

namespace tandem::train {

namespace {

// The third byte of the magic number: elements are unsigned bytes.
constexpr int kUnsignedByte = 0x08;
// zlib counts with int.
constexpr size_t kMaxChunkBytes = size_t{1} << 30;
// A damaged header must not lead to a huge allocation.
constexpr int64_t kMaxFileBytes = int64_t{1} << 36;

/// A file, gzipped or not, that is read from front to back.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (!file_ || std::filesystem::is_directory(path)) {
      fail("a readable file", "none");
    }
  }

  /// Reads up to `size` bytes and returns how many there were.
  size_t read(uint8_t* out, size_t size) {
    size_t done = 0;
    while (done < size) {
      const auto chunk =
          static_cast<unsigned>(std::min(size - done, kMaxChunkBytes));
      const int got = gzread(file_.get(), out + done, chunk);
      if (got <= 0) {
        check_intact(); // a stream that was cut short ends like a whole one
        break;
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& got)
      const {
    throw ConfigError(fmt::format(
        "data file '{}': expected {}, got {}",
        path_.string(),
        expected,
        got));
  }

 private:
  void check_intact() const {
    int code = Z_OK;
    const std::string error = gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) {
      fail("intact gzip data", error);
    }
  }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::vector<int64_t> read_shape(GzipReader& file, int64_t num_dims) {
  std::array<uint8_t, 4> magic{};
  const size_t got = file.read(magic.data(), magic.size());
  const std::array<uint8_t, 4> expected{
      0,
      0,
      kUnsignedByte,
      static_cast<uint8_t>(num_dims)};
  if (got != magic.size() || magic != expected) {
    file.fail(
        fmt::format("magic number 0000{:02x}{:02x}", kUnsignedByte, num_dims),
        got == magic.size() ? fmt::format(
                                  "{:02x}{:02x}{:02x}{:02x}",
                                  magic[0],
                                  magic[1],
                                  magic[2],
                                  magic[3])
                            : fmt::format("a file of {} bytes", got));
  }
  std::vector<uint8_t> header(static_cast<size_t>(num_dims) * 4);
  if (file.read(header.data(), header.size()) != header.size()) {
    file.fail(
        fmt::format("{} sizes after the magic number", num_dims),
        "fewer");
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < header.size(); i += 4) {
    shape.push_back(
        (int64_t{header[i]} << 24) | (int64_t{header[i + 1]} << 16) |
        (int64_t{header[i + 2]} << 8) | int64_t{header[i + 3]});
  }
  return shape;
}

void check_total(const GzipReader& file, const std::vector<int64_t>& shape) {
  int64_t total = 1;
  for (const int64_t size : shape) {
    if (size != 0 && total > kMaxFileBytes / size) {
      file.fail(
          "at most 64 GiB of elements",
          fmt::format("sizes {}", fmt::join(shape, " x ")));
    }
    total *= size;
  }
}

} // namespace

at::Tensor read_idx_file(const std::filesystem::path& path, int64_t num_dims) {
  GzipReader file(path);
  const auto shape = read_shape(file, num_dims);
  check_total(file, shape);
  auto data = at::empty(shape, at::kByte);
  const auto size = static_cast<size_t>(data.numel());
  const size_t got = file.read(data.data_ptr<uint8_t>(), size);
  uint8_t beyond = 0;
  const bool longer = file.read(&beyond, 1) == 1;
  if (got != size || longer) {
    file.fail(
        fmt::format("{} bytes of elements ({})", size, fmt::join(shape, " x ")),
        longer ? "more" : std::to_string(got));
  }
  return data;
}

} // namespace tandem::train
