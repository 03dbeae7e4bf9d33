#include "optimizer_state.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

namespace tandem::detail {

namespace {

using torch::optim::OptimizerParamState;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

std::string archive_to_bytes(OutputArchive& archive) {
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

void load_bytes(
    const std::string& bytes,
    at::Device device,
    InputArchive& archive) {
  archive.load_from(bytes.data(), bytes.size(), device);
}

/// Reads the states back from what they write, on `device`.
void move_states(
    const std::vector<OptimizerParamState*>& states,
    at::Device device) {
  OutputArchive written;
  for (size_t i = 0; i < states.size(); ++i) {
    OutputArchive part(written.compilation_unit());
    states[i]->serialize(part);
    written.write(std::to_string(i), part);
  }
  InputArchive read;
  load_bytes(archive_to_bytes(written), device, read);
  for (size_t i = 0; i < states.size(); ++i) {
    InputArchive part;
    read.read(std::to_string(i), part);
    states[i]->serialize(part);
  }
}

} // namespace

std::string state_to_bytes(const torch::optim::Optimizer& optimizer) {
  OutputArchive archive;
  optimizer.save(archive);
  return archive_to_bytes(archive);
}

void state_from_bytes(
    const std::string& bytes,
    at::Device device,
    torch::optim::Optimizer& optimizer) {
  InputArchive archive;
  load_bytes(bytes, device, archive);
  optimizer.load(archive);
}

void move_state(torch::optim::Optimizer& from, torch::optim::Optimizer& to) {
  for (auto& [parameter, state] : from.state()) {
    to.state()[parameter] = std::move(state);
  }
  from.state().clear();
}

void state_to_parameters(torch::optim::Optimizer& optimizer) {
  // By the device's name: devices have no order.
  std::map<std::string, std::vector<OptimizerParamState*>> by_device;
  for (const auto& param_group : optimizer.param_groups()) {
    for (const auto& parameter : param_group.params()) {
      const auto found =
          optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        by_device[parameter.device().str()].push_back(found->second.get());
      }
    }
  }
  for (const auto& [device, states] : by_device) {
    move_states(states, at::Device(device));
  }
}

std::vector<std::string> gather_bytes(
    comm::ProcessGroup& group,
    const std::string& own,
    int64_t to) {
  auto sizes = at::zeros({group.size()}, at::kLong);
  sizes[group.rank()] = static_cast<int64_t>(own.size());
  group.all_reduce(sizes);
  std::vector<std::string> gathered;
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    auto bytes = at::empty({sizes[rank].item<int64_t>()}, at::kByte);
    if (rank == group.rank()) {
      std::memcpy(bytes.mutable_data_ptr(), own.data(), own.size());
    }
    if (rank != to) {
      group.broadcast(bytes, rank);
    }
    if (group.rank() == to) {
      gathered.emplace_back(
          static_cast<const char*>(bytes.const_data_ptr()),
          bytes.nbytes());
    }
  }
  return gathered;
}

} // namespace tandem::detail
