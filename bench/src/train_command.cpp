#include "commands.h"

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tandem/train/results.h>

#include "placement/placement_options.h"
#include "program_environment.h"
#include "train/train_run.h"

namespace tandem::bench {

namespace {

struct TrainCommandOptions {
  std::string model = "cnn";
  std::string strategy = "single";
  TrainRecipe recipe;
  std::string json;
};

std::string training_summary(const train::ResultRow& row) {
  auto text = fmt::format(
      "{}: {} steps, {:.0f} images/s, test loss {:.4f}, test accuracy {:.2f} %",
      row.name(),
      row.steps_run.value(),
      row.samples_per_s.value(),
      row.test_loss.value(),
      100 * row.test_accuracy.value());
  if (!row.peak_bytes.empty()) {
    text += fmt::format(", peak memory {} MiB", row.total_peak_bytes() >> 20);
  }
  return text;
}

int run_train(
    const TrainCommandOptions& options,
    PlacementRequest request,
    const CommandLine& line) {
  auto recipe = options.recipe;
  recipe.model = architecture_from_name(options.model);
  if (!recipe.epochs && !recipe.steps) {
    recipe.epochs = 1;
  }
  request.strategy = strategy_from_name(options.strategy);
  const auto placement = resolve_placement(request);
  if (placement.is_launcher) {
    return launch_workers(placement, {line.begin() + 1, line.end()});
  }
  const WorkerScope worker(placement);
  const auto row = run_training(worker, recipe);
  if (worker.is_main()) {
    std::cout << training_summary(row) << '\n' << std::flush;
    if (!options.json.empty()) {
      train::write_results(
          options.json,
          {line, program_environment(worker.threads()), {row}});
    }
  }
  return 0;
}

void add_recipe_options(CLI::App& app, TrainRecipe& recipe) {
  app.add_option("--epochs", recipe.epochs, "Default: 1, if no --steps")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", recipe.steps, "Optimizer steps at most")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", recipe.batch, "Images of a step, of all workers")
      ->capture_default_str();
  app.add_option("--lr", recipe.learning_rate, "Of SGD with momentum 0.9")
      ->capture_default_str();
  app.add_flag(
      "--decay,!--no-decay",
      recipe.decay,
      "The learning rate falls to 0 (the default), or does not");
  app.add_option(
         "--seed",
         recipe.seed,
         "Of initial values, order and synthetic data")
      ->capture_default_str();
  app.add_option("--data", recipe.data.name, "What to learn")
      ->check(CLI::IsMember({"fashion-mnist", "synthetic"}))
      ->capture_default_str();
  app.add_option(
      "--data-dir",
      recipe.data.dir,
      "Folder of idx files, plain or gzipped; default: the distribution's");
}

std::function<int()> declare_train(CLI::App& app, const CommandLine& line) {
  const auto options = std::make_shared<TrainCommandOptions>();
  const auto request = std::make_shared<PlacementRequest>();
  app.add_option("--model", options->model, "Network")
      ->check(CLI::IsMember({"cnn", "mlp"}))
      ->capture_default_str();
  app.add_option("--strategy", options->strategy, "Wrapper")
      ->check(CLI::IsMember({"single", "dp", "ddp"}))
      ->capture_default_str();
  add_placement_options(app, request);
  add_recipe_options(app, options->recipe);
  app.add_option("--json", options->json, "Results file to write");
  return [options, request, line] {
    options->recipe.data.seed = options->recipe.seed;
    return run_train(*options, *request, line);
  };
}

} // namespace

Command train_command() {
  return {
      "train",
      "Train an image classifier on one device, with dp or with ddp",
      declare_train};
}

} // namespace tandem::bench
