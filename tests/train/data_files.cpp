#include "data_files.h"

#include <fstream>

#include <zlib.h>

namespace tandem::train::test {

std::string idx_bytes(
    const std::vector<uint32_t>& shape,
    const std::string& elements) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(size >> shift);
    }
  }
  return bytes + elements;
}

void write_plain(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  auto* file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

} // namespace tandem::train::test
