#include "rank_messages.h"

#include <cerrno>

#include <unistd.h>

#include <torch/csrc/jit/serialization/pickle.h>

#include <tandem/core/errors.h>

namespace tandem::testing::detail {

void write_message(int fd, RankMessage kind, const std::string& payload) {
  const auto message =
      static_cast<char>(kind) + std::to_string(payload.size()) + ":" + payload;
  for (size_t written = 0; written < message.size();) {
    const auto count =
        ::write(fd, message.data() + written, message.size() - written);
    if (count < 0 && errno != EINTR) {
      throw Error("rank process: the pipe to the test is closed");
    }
    written += count < 0 ? 0 : static_cast<size_t>(count);
  }
}

void MessageReader::feed(const std::string& piece, const Receiver& receive) {
  pending_ += piece;
  for (;;) {
    const auto colon = pending_.find(':');
    if (colon == std::string::npos) {
      return;
    }
    const auto length = std::stoull(pending_.substr(1, colon - 1));
    const auto begin = colon + 1;
    if (pending_.size() - begin < length) {
      return;
    }
    const auto kind = static_cast<RankMessage>(pending_.front());
    auto payload = pending_.substr(begin, length);
    pending_.erase(0, begin + length);
    receive(kind, std::move(payload));
  }
}

std::string serialize(const RankResult& result) {
  c10::Dict<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : result.tensors) {
    tensors.insert(name, tensor.detach().cpu());
  }
  const auto bytes = torch::jit::pickle_save(
      c10::ivalue::Tuple::create(std::move(tensors), result.text));
  return {bytes.begin(), bytes.end()};
}

RankResult deserialize(const std::string& bytes) {
  const auto value = torch::jit::pickle_load({bytes.begin(), bytes.end()});
  const auto& elements = value.toTupleRef().elements();
  RankResult result;
  for (const auto& entry : elements.at(0).toGenericDict()) {
    result.tensors.emplace(entry.key().toStringRef(), entry.value().toTensor());
  }
  result.text = elements.at(1).toStringRef();
  return result;
}

} // namespace tandem::testing::detail
