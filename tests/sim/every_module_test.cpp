#include <tandem/sim/sim.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>

#include "module_recipes.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

using MakeOptimizers = std::map<std::string, MakeOptimizer>;

/// First groups of `pattern` in all headers below LibTorch's `folder`.
std::set<std::string> names_in_headers(
    const std::string& folder,
    const std::string& pattern) {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  const std::regex expression(pattern);
  for (const auto& entry : fs::recursive_directory_iterator(
           fs::path(TANDEM_TORCH_API_HEADERS) / folder)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator match(text.begin(), text.end(), expression), end;
         match != end;
         ++match) {
      names.insert((*match)[1]);
    }
  }
  return names;
}

std::set<std::string> modules_in_headers() {
  auto names =
      names_in_headers("nn/modules", R"(\n *TORCH_MODULE(?:_IMPL)?\((\w+))");
  names.merge(names_in_headers(
      "nn/modules",
      R"(\nclass (\w+) : public torch::nn::ModuleHolder<)"));
  return names;
}

std::set<std::string> optimizers_in_headers() {
  return names_in_headers(
      "optim",
      R"(\nclass TORCH_API (\w+) : public Optimizer \{)");
}

template <typename Optimizer, typename Options>
MakeOptimizer maker(const Options& options) {
  return [options](const Tensors& parameters) {
    return std::make_unique<Optimizer>(parameters, options);
  };
}

MakeOptimizers optimizers() {
  namespace optim = torch::optim;
  return {
      {"SGD",
       maker<optim::SGD>(
           optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(
               0.01))},
      {"Adam", maker<optim::Adam>(optim::AdamOptions(0.01).amsgrad(true))},
      {"AdamW", maker<optim::AdamW>(optim::AdamWOptions(0.01))},
      {"Adagrad", maker<optim::Adagrad>(optim::AdagradOptions(0.05))},
      {"RMSprop",
       maker<optim::RMSprop>(
           optim::RMSpropOptions(0.01).centered(true).momentum(0.5))},
      {"LBFGS",
       maker<optim::LBFGS>(
           optim::LBFGSOptions(0.1).line_search_fn("strong_wolfe"))},
  };
}

void print_row(const std::string& name, const std::string& verdict) {
  std::cout << name << std::string(34 - std::min<size_t>(name.size(), 33), ' ')
            << verdict << '\n';
}

/// Trains both and prints the row of the table.
void check_and_print(const Recipe& recipe, const MakeOptimizer& optimizer) {
  INFO(recipe.name);
  Tensors actual;
  Tensors expected;
  REQUIRE_NOTHROW(expected = three_steps(recipe, at::kCPU, optimizer));
  CHECK_NOTHROW(actual = three_steps(recipe, sim::device(0), optimizer));
  const bool equal = std::equal(
      actual.begin(),
      actual.end(),
      expected.begin(),
      expected.end(),
      same_bits);
  CHECK(equal);
  print_row(recipe.name, equal ? "3 steps bitwise equal" : "DIFFERS");
}

} // namespace

std::vector<Recipe> module_recipes() {
  std::vector<Recipe> all;
  for (const auto& some :
       {shape_recipes(),
        pooling_recipes(),
        activation_recipes(),
        parametric_recipes(),
        loss_recipes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::map<std::string, std::string> modules_left_out() {
  return {};
}

TEST_CASE(
    "every module of torch::nn trains on sim bit for bit as on the CPU",
    "[sim]") {
  start_devices(1);
  std::set<std::string> tried;
  for (const auto& recipe : module_recipes()) {
    check_and_print(recipe, sgd_with_momentum());
    tried.insert(recipe.name);
  }
  for (const auto& [name, reason] : modules_left_out()) {
    print_row(name, "left out: " + reason);
    tried.insert(name);
  }
  CHECK(tried == modules_in_headers());
}

TEST_CASE(
    "every optimizer of torch::optim steps on sim bit for bit as on the CPU",
    "[sim]") {
  start_devices(1);
  std::set<std::string> tried;
  for (const auto& [name, optimizer] : optimizers()) {
    auto recipe = unary<torch::nn::Linear>(name, normal({7, 5}, 1), 5, 3);
    recipe.forward = [](torch::nn::Module& module, const Tensors& inputs) {
      return dynamic_cast<torch::nn::LinearImpl&>(module)
          .forward(inputs.at(0))
          .square();
    };
    check_and_print(recipe, optimizer);
    tried.insert(name);
  }
  CHECK(tried == optimizers_in_headers());
}

} // namespace tandem::sim_test
