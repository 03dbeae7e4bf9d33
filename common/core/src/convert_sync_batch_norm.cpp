#include <tandem/core/convert_sync_batch_norm.h>

#include <algorithm>
#include <string>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <tandem/core/errors.h>
#include <tandem/core/sync_batch_norm.h>

namespace tandem {

namespace {

using torch::nn::Module;
using ModulePtr = std::shared_ptr<Module>;

/// One registration of a layer.
struct Place {
  Module* parent;
  std::string name;
  std::string path;
};

struct Layer {
  ModulePtr plain;
  std::shared_ptr<SyncBatchNormImpl> synced;
  std::vector<Place> places;
};

template <typename Norm>
std::shared_ptr<SyncBatchNormImpl> convert_if(const Module& module) {
  if (typeid(module) != typeid(Norm)) {
    return nullptr;
  }
  const auto& norm = static_cast<const Norm&>(module);
  auto synced = std::make_shared<SyncBatchNormImpl>(norm.options);
  synced->share_tensors(
      norm.weight,
      norm.bias,
      norm.running_mean,
      norm.running_var,
      norm.num_batches_tracked);
  synced->train(norm.is_training());
  return synced;
}

/// Null for any other layer.
std::shared_ptr<SyncBatchNormImpl> convert(const Module& module) {
  if (auto synced = convert_if<torch::nn::BatchNorm1dImpl>(module)) {
    return synced;
  }
  if (auto synced = convert_if<torch::nn::BatchNorm2dImpl>(module)) {
    return synced;
  }
  return convert_if<torch::nn::BatchNorm3dImpl>(module);
}

/// Calls `function` on what `parent` holds of `child` besides its registration.
template <typename Function>
void for_each_element(
    Module& parent,
    const ModulePtr& child,
    const Function& function) {
  if (auto* sequential = parent.as<torch::nn::SequentialImpl>()) {
    for (auto& element : *sequential) {
      if (element.ptr() == child) {
        function(element);
      }
    }
  } else if (auto* list = parent.as<torch::nn::ModuleListImpl>()) {
    for (auto& element : *list) {
      if (element == child) {
        function(element);
      }
    }
  } else if (auto* dict = parent.as<torch::nn::ModuleDictImpl>()) {
    for (auto& item : *dict) {
      if (item.value() == child) {
        function(item.value());
      }
    }
  }
}

class Conversion {
 public:
  explicit Conversion(Module& root) {
    walk(root, "");
  }

  void check() const {
    std::string held;
    for (const auto& layer : layers_) {
      if (layer.plain.use_count() > num_owners(layer)) {
        held += (held.empty() ? "'" : ", '") + layer.places[0].path + "'";
      }
    }
    if (!held.empty()) {
      throw ConfigError(fmt::format(
          "convert_sync_batch_norm: {}: expected layers that only their "
          "containers hold, got some that a variable holds too, which would go "
          "on calling the old layer. Declare it as tandem::SyncBatchNorm",
          held));
    }
  }

  void apply() {
    for (const auto& layer : layers_) {
      for (const auto& place : layer.places) {
        for_each_element(*place.parent, layer.plain, [&](auto& element) {
          element = std::decay_t<decltype(element)>(layer.synced);
        });
        place.parent->replace_module(place.name, layer.synced);
      }
    }
  }

 private:
  void walk(Module& parent, const std::string& prefix) {
    if (!visited_.insert(&parent).second) {
      return;
    }
    for (const auto& item : parent.named_children()) {
      const auto path = prefix + item.key();
      if (auto* known = find(*item.value())) {
        known->places.push_back({&parent, item.key(), path});
      } else if (auto synced = convert(*item.value())) {
        layers_.push_back(
            {item.value(), std::move(synced), {{&parent, item.key(), path}}});
      } else {
        walk(*item.value(), path + ".");
      }
    }
  }

  Layer* find(const Module& plain) {
    const auto found =
        std::find_if(layers_.begin(), layers_.end(), [&](const Layer& layer) {
          return layer.plain.get() == &plain;
        });
    return found == layers_.end() ? nullptr : &*found;
  }

  /// Those that will be replaced, and `layer` itself.
  static int64_t num_owners(const Layer& layer) {
    int64_t count = 1;
    std::unordered_set<const Module*> parents;
    for (const auto& place : layer.places) {
      ++count;
      if (parents.insert(place.parent).second) {
        for_each_element(*place.parent, layer.plain, [&](auto&) { ++count; });
      }
    }
    return count;
  }

  std::unordered_set<const Module*> visited_;
  std::vector<Layer> layers_;
};

} // namespace

std::shared_ptr<Module> convert_sync_batch_norm(const ModulePtr& module) {
  if (auto synced = convert(*module)) {
    return synced;
  }
  Conversion conversion(*module);
  conversion.check();
  conversion.apply();
  return module;
}

} // namespace tandem
