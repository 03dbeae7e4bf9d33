#include "module_recipes.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

at::Tensor line() {
  return normal({2, 3, 8}, 1);
}

at::Tensor image() {
  return normal({2, 4, 6, 8}, 2);
}

at::Tensor volume() {
  return normal({2, 2, 4, 5, 6}, 3);
}

void add_padding(std::vector<Recipe>& all) {
  all.push_back(unary<nn::ReflectionPad1d>("ReflectionPad1d", line(), 2));
  all.push_back(unary<nn::ReflectionPad2d>("ReflectionPad2d", image(), 2));
  all.push_back(unary<nn::ReflectionPad3d>("ReflectionPad3d", volume(), 2));
  all.push_back(unary<nn::ReplicationPad1d>("ReplicationPad1d", line(), 2));
  all.push_back(unary<nn::ReplicationPad2d>("ReplicationPad2d", image(), 2));
  all.push_back(unary<nn::ReplicationPad3d>("ReplicationPad3d", volume(), 2));
  all.push_back(unary<nn::ZeroPad1d>("ZeroPad1d", line(), 2));
  all.push_back(unary<nn::ZeroPad2d>("ZeroPad2d", image(), 2));
  all.push_back(unary<nn::ZeroPad3d>("ZeroPad3d", volume(), 2));
  all.push_back(unary<nn::ConstantPad1d>(
      "ConstantPad1d",
      line(),
      nn::ConstantPad1dOptions(2, 0.5)));
  all.push_back(unary<nn::ConstantPad2d>(
      "ConstantPad2d",
      image(),
      nn::ConstantPad2dOptions(2, 0.5)));
  all.push_back(unary<nn::ConstantPad3d>(
      "ConstantPad3d",
      volume(),
      nn::ConstantPad3dOptions(2, 0.5)));
}

void add_containers(std::vector<Recipe>& all) {
  all.push_back(recipe(
      "Sequential",
      [] { return nn::Sequential(nn::Linear(8, 4), nn::Tanh()); },
      {line()}));
  all.push_back(recipe(
      "ModuleList",
      [] { return nn::ModuleList(nn::Linear(8, 4), nn::Linear(4, 2)); },
      {line()},
      [](nn::ModuleListImpl& list, const Tensors& inputs) {
        const auto hidden = list.at<nn::LinearImpl>(0).forward(inputs.at(0));
        return list.at<nn::LinearImpl>(1).forward(hidden);
      }));
  all.push_back(recipe(
      "ModuleDict",
      [] {
        return nn::ModuleDict(
            std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
                {"only", nn::Linear(8, 4).ptr()}});
      },
      {line()},
      [](nn::ModuleDictImpl& dict, const Tensors& inputs) {
        return dict["only"]->as<nn::LinearImpl>()->forward(inputs.at(0));
      }));
  all.push_back(recipe(
      "ParameterList",
      [] { return nn::ParameterList(normal({8}, 4), normal({8}, 5)); },
      {line()},
      [](nn::ParameterListImpl& list, const Tensors& inputs) {
        return inputs.at(0) * list[0] + list[1];
      }));
  all.push_back(recipe(
      "ParameterDict",
      [] {
        nn::ParameterDict dict;
        dict->insert("only", normal({8}, 4));
        return dict;
      },
      {line()},
      [](nn::ParameterDictImpl& dict, const Tensors& inputs) {
        return inputs.at(0) * dict["only"];
      }));
}

} // namespace

std::vector<Recipe> shape_recipes() {
  std::vector<Recipe> all{
      unary<nn::Identity>("Identity", line()),
      unary<nn::Flatten>("Flatten", image()),
      unary<nn::Unflatten>(
          "Unflatten",
          normal({2, 6}, 4),
          nn::UnflattenOptions(1, {2, 3})),
      unary<nn::Fold>(
          "Fold",
          normal({2, 8, 12}, 5),
          nn::FoldOptions({4, 5}, {2, 2})),
      unary<nn::Unfold>("Unfold", image(), nn::UnfoldOptions({2, 3})),
      unary<nn::PixelShuffle>("PixelShuffle", image(), 2),
      unary<nn::PixelUnshuffle>("PixelUnshuffle", image(), 2),
      unary<nn::Upsample>(
          "Upsample",
          image(),
          nn::UpsampleOptions()
              .size(std::vector<int64_t>{9, 10})
              .mode(torch::kBilinear)
              .align_corners(false)),
      recipe(
          "Functional",
          [] {
            return nn::Functional(
                [](const at::Tensor& tensor) { return tensor.exp(); });
          },
          {line()})};
  add_padding(all);
  add_containers(all);
  return all;
}

} // namespace tandem::sim_test
