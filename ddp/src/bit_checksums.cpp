#include "bit_checksums.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace tandem::detail {

namespace {

// Odd, with its bits well spread: then multiplying loses no difference.
constexpr uint64_t kChecksumFactor = 0x9e3779b97f4a7c15;
constexpr unsigned kChecksumShift = 31;
// Independent sums, so that the processor need not wait for each product.
constexpr size_t kLanes = 4;
// Of a device's tensor at a time: what it costs there is eight bytes each.
constexpr int64_t kChunkElems = int64_t{1} << 20;

uint64_t mix_in(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * kChecksumFactor;
  return sum ^ (sum >> kChecksumShift);
}

uint64_t checksum_of_bytes(const char* bytes, size_t size) {
  std::array<uint64_t, kLanes> sums{1, 2, 3, 4};
  std::array<uint64_t, kLanes> words{};
  size_t at = 0;
  for (; at + sizeof words <= size; at += sizeof words) {
    std::memcpy(words.data(), bytes + at, sizeof words);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] = mix_in(sums[lane], words[lane]);
    }
  }
  words = {};
  if (at < size) {
    std::memcpy(words.data(), bytes + at, size - at);
  }
  uint64_t sum = size;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    sum = mix_in(sum, mix_in(sums[lane], words[lane]));
  }
  return sum;
}

/// The elements' bits as integers, in the order of the indices. [numel]
at::Tensor bits_of(const at::Tensor& tensor) {
  const auto real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  const auto flat = real.contiguous().view({-1});
  switch (flat.element_size()) {
    case 1:
      return flat.view(at::kByte);
    case 2:
      return flat.view(at::kShort);
    case 4:
      return flat.view(at::kInt);
    default:
      return flat.view(at::kLong);
  }
}

/// On the tensor's own device, by operators alone. []
at::Tensor checksum_on_device(const at::Tensor& tensor) {
  const auto factor = static_cast<int64_t>(kChecksumFactor);
  const auto bits = bits_of(tensor);
  const auto options = bits.options().dtype(at::kLong);
  auto sum = at::full({}, bits.numel(), options);
  for (int64_t at = 0; at < bits.numel(); at += kChunkElems) {
    const auto length = std::min(kChunkElems, bits.numel() - at);
    const auto chunk = bits.narrow(0, at, length).to(at::kLong);
    // Odd weights, so that none hides a bit and exchanged values show.
    const auto weights = at::arange(1, 2 * length, 2, options);
    sum = sum * factor + (chunk * weights).sum();
  }
  return sum;
}

at::Tensor checksum(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) {
    return checksum_on_device(tensor);
  }
  const auto dense = tensor.contiguous();
  const auto sum = checksum_of_bytes(
      static_cast<const char*>(dense.const_data_ptr()),
      static_cast<size_t>(dense.nbytes()));
  return at::full({}, static_cast<int64_t>(sum), at::kLong);
}

} // namespace

at::Tensor bit_checksums(const std::vector<NamedTensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  sums.reserve(tensors.size());
  for (const auto& named : tensors) {
    sums.push_back(checksum(named.tensor.detach()));
  }
  return sums.empty() ? at::empty({0}, at::kLong) : at::stack(sums).cpu();
}

} // namespace tandem::detail
