#pragma once

#include <cstddef>
#include <cstdint>

#include <tandem/train/image_data_set.h>

namespace tandem::train {

/// Images of the shape of Fashion-MNIST that can be learnt, without a file:
/// sample i has label i mod 10 and shows a wave whose direction and frequency
/// belong to the label, with a phase and noise drawn from `seed`. Equal
/// arguments give equal images on one LibTorch version.
ImageDataSet make_synthetic_images(size_t num_samples, uint64_t seed);

} // namespace tandem::train
