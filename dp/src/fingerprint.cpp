#include "fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

// Note [Fingerprint]
// ~~~~~~~~~~~~~~~~~~
// `tandem::fingerprint` is an operator, so that each device computes it where
// the bytes are: the CPU by a loop over memory, simulated devices by the CPU's
// loop, CUDA by ordinary operators on the device. Their numbers differ, and are
// never compared with each other.
//
// The loop chains 64-bit words in several lanes: xor, rotate, multiply. Each
// step can be undone if the word is known, so a change confined to one word
// always changes its lane, and every later step depends on the order. The
// operators mix each element with its position by steps that can be undone too,
// and add up the results: also a single change is never missed, and moving
// values about changes what each is mixed with. A plain weighted sum would not
// do: modulo 2^64 two sign flips cancel, whatever odd weights they have.

namespace {

using Word = uint64_t;

constexpr Word kOddMultiplier = 0xbf58476d1ce4e5b9;
constexpr Word kPositionStep = 0x9e3779b97f4a7c15;

constexpr int kRotation = 29;

Word chain(Word state, Word word) {
  return std::rotl(state ^ word, kRotation) * kOddMultiplier;
}

/// So many, since a multiplication takes some cycles.
using Lanes = std::array<Word, 8>;

void chain_bytes(Lanes& lanes, const std::byte* bytes) {
  for (Word& lane : lanes) {
    Word word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    lane = chain(lane, word);
    bytes += sizeof(word);
  }
}

/// A run of bytes, small enough that threads share the work evenly.
struct Block {
  const std::byte* bytes;
  size_t size;
};

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr int64_t kBlocksPerTask = 16;

Word fingerprint_of(Block block) {
  Lanes lanes{1, 2, 3, 4, 5, 6, 7, 8};
  for (; block.size >= sizeof(Lanes); block.size -= sizeof(Lanes)) {
    chain_bytes(lanes, block.bytes);
    block.bytes += sizeof(Lanes);
  }
  std::array<std::byte, sizeof(Lanes)> rest{};
  std::memcpy(rest.data(), block.bytes, block.size);
  chain_bytes(lanes, rest.data());
  Word state = block.size;
  for (const Word lane : lanes) {
    state = chain(state, lane);
  }
  return state;
}

std::vector<Block> blocks_of(at::TensorList tensors) {
  std::vector<Block> blocks;
  blocks.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    for (size_t begin = 0; begin < tensor.nbytes(); begin += kBlockBytes) {
      blocks.push_back(
          {bytes + begin, std::min(kBlockBytes, tensor.nbytes() - begin)});
    }
  }
  return blocks;
}

at::Tensor fingerprint_in_host_memory(at::TensorList tensors) {
  const auto blocks = blocks_of(tensors);
  std::vector<Word> results(blocks.size());
  at::parallel_for(
      0,
      static_cast<int64_t>(blocks.size()),
      kBlocksPerTask,
      [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          results[block] = fingerprint_of(blocks[block]);
        }
      });
  Word state = 0;
  for (const Word result : results) {
    state = chain(state, result);
  }
  return at::scalar_tensor(std::bit_cast<int64_t>(state), at::kLong);
}

/// The elements as integers of their width, in memory order; 1-D.
at::Tensor as_integers(const at::Tensor& tensor) {
  const auto elements = tensor.is_complex()
      ? at::view_as_real(in_memory_order(tensor)).view({-1})
      : in_memory_order(tensor);
  switch (elements.element_size()) {
    case 1:
      return elements.view(at::kByte);
    case 2:
      return elements.view(at::kShort);
    case 4:
      return elements.view(at::kInt);
    default:
      return elements.view(at::kLong);
  }
}

constexpr int64_t kLowHalf = 0xffffffff;

/// Changes `words`, int64, by a step that can be undone.
void mix(at::Tensor& words) {
  words.mul_(std::bit_cast<int64_t>(kOddMultiplier));
  words.bitwise_xor_(words.bitwise_right_shift(32).bitwise_and_(kLowHalf));
}

/// Elements that are mixed at once, which bounds the memory that it takes.
constexpr int64_t kElementsAtOnce = int64_t{1} << 22;

/// Sum of the mixed elements, whose positions count from `position` on.
at::Tensor sum_of_mixed(const at::Tensor& integers, int64_t position) {
  const auto options = integers.options().dtype(at::kLong);
  auto sum = at::zeros({}, options);
  for (const auto& part : integers.split(kElementsAtOnce)) {
    auto words = at::arange(position, position + part.numel(), options)
                     .mul_(std::bit_cast<int64_t>(kPositionStep))
                     .add_(part);
    mix(words);
    mix(words);
    mix(words);
    sum.add_(words.sum());
    position += part.numel();
  }
  return sum;
}

TORCH_LIBRARY_FRAGMENT(tandem, library) {
  library.def("fingerprint(Tensor[] tensors) -> Tensor");
}
TORCH_LIBRARY_IMPL(tandem, CPU, library) {
  library.impl("fingerprint", &fingerprint_in_host_memory);
}
TORCH_LIBRARY_IMPL(tandem, CUDA, library) {
  library.impl("fingerprint", &fingerprint_by_operators);
}

} // namespace

at::Tensor fingerprint_by_operators(at::TensorList tensors) {
  std::vector<at::Tensor> integers;
  integers.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    integers.push_back(as_integers(tensor));
  }
  return sum_of_mixed(
      integers.size() == 1 ? integers.front() : at::cat(integers),
      /*position=*/1);
}

void Fingerprint::add(const std::vector<at::Tensor>& tensors) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("tandem::fingerprint", "")
                             .typed<at::Tensor(at::TensorList)>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  parts_.push_back(op.call(tensors));
}

int64_t Fingerprint::finish() {
  if (parts_.empty()) {
    return 0;
  }
  const auto parts = at::stack(parts_).cpu();
  Word state = 0;
  for (int64_t index = 0; index < parts.numel(); ++index) {
    state = chain(state, parts.const_data_ptr<int64_t>()[index]);
  }
  return std::bit_cast<int64_t>(state);
}

} // namespace tandem::detail
