#include <cstring>
#include <limits>
#include <set>

#include "fingerprint.h"
#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::detail::Fingerprint;
using tandem::detail::fingerprint_by_operators;

namespace {

using Function = std::function<int64_t(const std::vector<at::Tensor>&)>;

int64_t by_operator(const std::vector<at::Tensor>& tensors) {
  Fingerprint fingerprint;
  fingerprint.add(tensors);
  return fingerprint.finish();
}

int64_t by_operators(const std::vector<at::Tensor>& tensors) {
  return fingerprint_by_operators(tensors).item<int64_t>();
}

/// The device's own, and the one that CUDA would run, of tensors on the CPU.
struct Way {
  std::string name;
  Function function;

  int64_t operator()(const std::vector<at::Tensor>& tensors) const {
    std::vector<at::Tensor> there;
    for (const auto& tensor : tensors) {
      there.push_back(tensor.to(device()));
    }
    return function(there);
  }
};

std::vector<Way> ways() {
  return {{"kernel", &by_operator}, {"operators", &by_operators}};
}

at::Tensor bytes(int64_t count) {
  return torch::arange(count).mul(37).to(at::kByte);
}

} // namespace

TEST_CASE("fingerprint sees each changed bit", "[dp]") {
  for (const auto& way : ways()) {
    for (const int64_t count : {1, 7, 8, 63, 64, 65, 200}) {
      const auto tensor = bytes(count);
      std::set<int64_t> seen{way({tensor})};
      for (int64_t byte = 0; byte < count; ++byte) {
        for (int bit = 0; bit < 8; bit += 7) {
          auto changed = tensor.clone();
          changed.data_ptr<uint8_t>()[byte] ^= uint8_t(1U << bit);
          seen.insert(way({changed}));
        }
      }
      INFO(way.name << ", " << count << " bytes");
      CHECK(seen.size() == size_t(1 + 2 * count));
    }
  }
}

TEST_CASE("fingerprint of the same bytes is the same", "[dp]") {
  for (const auto& way : ways()) {
    const auto weight = normal({5, 7}, 1);
    const auto expected = way({weight, weight[0]});
    for (int run = 0; run < 3; ++run) {
      CHECK(way({weight.clone(), weight[0].clone()}) == expected);
    }
    CHECK(way({weight, weight[1]}) != expected);
  }
}

TEST_CASE("fingerprint sees values that change places", "[dp]") {
  for (const auto& way : ways()) {
    for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
      INFO(way.name << ", " << c10::toString(dtype));
      const auto values = normal({40}, 1, dtype);
      const auto expected = way({values});
      for (int64_t shift = 1; shift < 40; ++shift) {
        CHECK(way({values.roll(shift)}) != expected);
      }
      CHECK(way({values.flip(0)}) != expected);
      const auto halves = values.chunk(2);
      CHECK(way({halves[0], halves[1]}) != way({halves[1], halves[0]}));
    }
  }
}

TEST_CASE("fingerprint sees signs of zeros and of pairs", "[dp]") {
  for (const auto& way : ways()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      INFO(way.name << ", " << c10::toString(dtype));
      const auto zeros = torch::zeros({20}, dtype);
      std::set<int64_t> seen{way({zeros})};
      int64_t variants = 1;
      for (int64_t first = 0; first < 20; ++first) {
        for (int64_t second = first; second < 20; ++second) {
          auto changed = zeros.clone();
          changed[first] = -0.0;
          changed[second] = -0.0;
          seen.insert(way({changed}));
          ++variants;
        }
      }
      CHECK(seen.size() == size_t(variants));
    }
  }
}

TEST_CASE("fingerprint sees the payload of a NaN", "[dp]") {
  for (const auto& way : ways()) {
    auto one =
        torch::full({3}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    auto other = one.clone();
    reinterpret_cast<uint64_t*>(other.data_ptr<double>())[1] ^= 1;
    CHECK(other.isnan().all().item<bool>());
    CHECK(way({one}) != way({other}));
  }
}

TEST_CASE("fingerprint takes every dtype, size and memory format", "[dp]") {
  for (const auto& way : ways()) {
    for (const auto dtype :
         {at::kBool, at::kChar, at::kHalf, at::kInt, at::kComplexDouble}) {
      INFO(way.name << ", " << c10::toString(dtype));
      const auto ones = torch::ones({3, 5}, dtype);
      auto changed = ones.clone();
      changed[2][4] = 0;
      CHECK(way({ones}) == way({ones.clone()}));
      CHECK(way({ones}) != way({changed}));
    }
    CHECK_NOTHROW(way({torch::zeros({0})}));
    const auto weight = normal({2, 3, 4, 5}, 1);
    const auto last = weight.contiguous(at::MemoryFormat::ChannelsLast);
    CHECK(way({weight}) != way({last})); // bytes in memory, not values
  }
}
