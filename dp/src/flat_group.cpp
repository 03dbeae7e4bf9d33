#include "flat_group.h"

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <torch/library.h>

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

// Note [Copying a group]
// ~~~~~~~~~~~~~~~~~~~~~~
// A group is copied piece by piece: the base's tensors are concatenated on the
// first device and the result is copied into the flat storage of each replica,
// two operations instead of two for each tensor. A piece is large enough for a
// transfer to be worth its start, and small enough for the concatenation to
// stay in a cache and to cost the first device little memory. A tensor that is
// a piece by itself needs no concatenation; a replica on the first device is
// concatenated into directly. Tensors lie in memory order, so a weight that is
// channels_last in the base is so in the replica.

namespace {

/// A vector instruction's worth for every dtype, a cache line's for float.
constexpr int64_t kAlignElems = 16;

constexpr int64_t kPieceBytes = int64_t{4} << 20;
/// Small tensors count as this much, so that the lists stay short.
constexpr int64_t kLeastTensorBytes = kPieceBytes / 256;

} // namespace

FlatGroup::FlatGroup(
    const TensorTable& table,
    const std::vector<at::Device>& devices,
    std::vector<size_t> tensors)
    : table_(table), tensors_(std::move(tensors)) {
  std::vector<int64_t> numels;
  numels.reserve(tensors_.size());
  for (size_t position = 0; position < tensors_.size(); ++position) {
    numels.push_back(base(position).numel());
  }
  auto layout = make_flat_layout(numels, kAlignElems);
  offsets_elems_ = std::move(layout.offsets_elems);
  total_elems_ = layout.total_elems;
  for (int64_t elems = 0; elems < kAlignElems; ++elems) {
    gaps_.push_back(at::zeros({elems}, base(0).options()));
  }
  plan_pieces();
  make_storages(devices);
}

const at::Tensor& FlatGroup::base(size_t position) const {
  return table_.base[tensors_[position]].tensor;
}

void FlatGroup::plan_pieces() {
  int64_t piece_bytes = 0;
  for (size_t position = 0; position < tensors_.size(); ++position) {
    const int64_t bytes = std::max(
        static_cast<int64_t>(base(position).nbytes()),
        kLeastTensorBytes);
    if (position == 0 || piece_bytes + bytes > kPieceBytes) {
      pieces_.push_back({position, position});
      piece_bytes = 0;
    }
    pieces_.back().end = position + 1;
    piece_bytes += bytes;
  }
}

void FlatGroup::make_storages(const std::vector<at::Device>& devices) {
  std::vector<int64_t> offset_of(table_.base.size(), -1);
  for (size_t position = 0; position < tensors_.size(); ++position) {
    offset_of[tensors_[position]] = offsets_elems_[position];
  }
  for (size_t replica = 0; replica < table_.replicas.size(); ++replica) {
    const auto flat = at::zeros(
        {total_elems_},
        base(0).options().device(devices[replica + 1]));
    for (const auto& entry : table_.replicas[replica]) {
      if (offset_of[entry.base] >= 0) {
        entry.tensor.set_data(view_into_flat(
            flat,
            offset_of[entry.base],
            table_.base[entry.base].tensor));
      }
    }
    flats_.push_back(flat);
  }
}

std::vector<at::Tensor> FlatGroup::parts_of(Piece piece) const {
  std::vector<at::Tensor> parts;
  parts.reserve(2 * (piece.end - piece.begin));
  for (size_t position = piece.begin; position < piece.end; ++position) {
    parts.push_back(in_memory_order(base(position)));
    if (position + 1 < piece.end) {
      const int64_t gap = offsets_elems_[position + 1] -
          offsets_elems_[position] - parts.back().numel();
      if (gap > 0) {
        parts.push_back(gaps_[gap]);
      }
    }
  }
  return parts;
}

void FlatGroup::copy_piece(Piece piece, TransferCounts& counts) const {
  auto parts = parts_of(piece);
  const int64_t begin = offsets_elems_[piece.begin];
  const int64_t end =
      offsets_elems_[piece.end - 1] + base(piece.end - 1).numel();
  at::Tensor joined = parts.size() == 1 ? parts.front() : at::Tensor();
  for (const auto& flat : flats_) {
    auto slice = flat.narrow(0, begin, end - begin);
    if (!joined.defined() && flat.device() == base(0).device()) {
      joined = at::cat_out(slice, parts);
    } else {
      if (!joined.defined()) {
        joined = at::cat(parts);
      }
      slice.copy_(joined, /*non_blocking=*/true);
    }
    counts.add(slice);
  }
}

void FlatGroup::copy_values(TransferCounts& counts) const {
  // Thousands of views that autograd need not know cost less.
  const at::AutoDispatchBelowADInplaceOrView no_view_tracking;
  for (const auto piece : pieces_) {
    copy_piece(piece, counts);
  }
}

void FlatGroup::add_to(Fingerprint& fingerprint) const {
  for (const auto [begin, end] : pieces_) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(end - begin);
    for (size_t position = begin; position < end; ++position) {
      const auto& tensor = base(position);
      tensors.push_back(
          tensor.is_non_overlapping_and_dense() ? tensor
                                                : in_memory_order(tensor));
    }
    fingerprint.add(tensors);
  }
}

} // namespace tandem::detail
