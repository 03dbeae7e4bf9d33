#include "kernels.h"

#include <thread>

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>

#include "allocators.h"
#include "runtime.h"
#include "tensor_parts.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

const c10::DispatchKeySet kDense(c10::DispatchKey::PrivateUse1);

at::Device chosen_device(std::optional<at::Device> device) {
  return device && device->has_index()
      ? *device
      : at::Device(at::kPrivateUse1, current_device());
}

at::Tensor empty(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> /*layout*/,
    std::optional<at::Device> device,
    std::optional<bool> /*pin_memory*/,
    std::optional<at::MemoryFormat> memory_format) {
  const c10::DeviceGuard guard(chosen_device(device));
  return at::detail::empty_generic(
      size,
      &device_allocator(),
      kDense,
      c10::dtype_or_default(dtype),
      memory_format);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> /*layout*/,
    std::optional<at::Device> device,
    std::optional<bool> /*pin_memory*/) {
  const c10::DeviceGuard guard(chosen_device(device));
  return at::detail::empty_strided_generic(
      size,
      stride,
      &device_allocator(),
      kDense,
      c10::dtype_or_default(dtype));
}

int64_t place_of(const at::Tensor& tensor) {
  return tensor.is_cpu() ? CopyMatrix::kHost : tensor.device().index();
}

/// How long a copy of `num_bytes` between two devices takes at least.
std::chrono::nanoseconds link_time(const Options& options, int64_t num_bytes) {
  std::chrono::nanoseconds time = options.link_latency;
  if (options.link_bytes_per_s > 0) {
    time += std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(
            static_cast<double>(num_bytes) / options.link_bytes_per_s));
  }
  return time;
}

/// A copy between devices runs on the source's current stream, and both
/// devices' current streams wait for each other, as on CUDA.
void add_copy(
    Hazards& hazards,
    const at::Tensor& source,
    const at::Tensor& destination,
    bool non_blocking) {
  BlockUses uses;
  append_use(uses, source, UseKind::kRead);
  append_use(uses, destination, UseKind::kWrite);
  const auto& runs_on = source.is_cpu() ? destination : source;
  const auto stream = current_stream_of(runs_on.device().index());
  if (source.is_cpu() || destination.is_cpu()) {
    hazards.add_work(stream, "aten::copy_", uses);
    if (!non_blocking) {
      hazards.host_wait_for(stream);
    }
    return;
  }
  const auto other = current_stream_of(destination.device().index());
  hazards.wait_for(stream, other);
  hazards.add_work(stream, "aten::copy_", uses);
  hazards.wait_for(other, stream);
}

at::Tensor copy_from(
    const at::Tensor& source,
    const at::Tensor& destination,
    bool non_blocking) {
  auto& runtime = Runtime::get();
  if (auto* const hazards = runtime.hazards()) {
    add_copy(*hazards, source, destination, non_blocking);
  }
  const auto start = Clock::now();
  const auto from = place_of(source);
  const auto to = place_of(destination);
  auto& state = runtime.device(to == CopyMatrix::kHost ? from : to);
  {
    const CountOn count(state.memory);
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    cpu_view_of(destination, /*written=*/true)
        .copy_(cpu_view_of(source, /*written=*/false), non_blocking);
  }
  if (from != to) {
    const auto num_bytes = static_cast<int64_t>(source.nbytes());
    runtime.copies().add(from, to, num_bytes);
    if (from != CopyMatrix::kHost && to != CopyMatrix::kHost) {
      std::this_thread::sleep_until(
          start + link_time(runtime.options(), num_bytes));
    }
  }
  state.counter.add(Clock::now() - start);
  return destination;
}

at::Tensor copy_from_and_resize(
    const at::Tensor& source,
    const at::Tensor& destination) {
  if (destination.sizes() != source.sizes()) {
    destination.resize_(source.sizes());
  }
  return copy_from(source, destination, /*non_blocking=*/false);
}

const at::Tensor& resize(
    const at::Tensor& self,
    c10::SymIntArrayRef size,
    std::optional<at::MemoryFormat> memory_format) {
  return at::native::resize_(
      self,
      C10_AS_INTARRAYREF_SLOW(size),
      memory_format);
}

at::Tensor& set_storage(
    at::Tensor& self,
    at::Storage storage,
    int64_t offset,
    at::IntArrayRef size,
    at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(
      self,
      std::move(storage),
      offset,
      size,
      stride);
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage storage) {
  return at::native::set_(self, std::move(storage));
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  const at::Storage nothing(
      at::Storage::use_byte_size_t(),
      0,
      &device_allocator(),
      /*resizable=*/true);
  return at::native::set_storage_cpu_(self, nothing, 0, {0}, {});
}

void record_stream(at::Tensor& self, at::Stream stream) {
  device_allocator().recordStream(
      self.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks(),
      stream);
}

} // namespace

std::set<std::string> register_memory_kernels(torch::Library& dense) {
  std::set<std::string> names;
  const auto add = [&](const char* name, auto kernel) {
    dense.impl(name, kernel);
    names.insert(name);
  };
  add("empty.memory_format", &empty);
  add("empty_strided", &empty_strided);
  add("as_strided", &at::native::as_strided_tensorimpl);
  add("view", &at::native::view);
  add("_reshape_alias", &at::native::_reshape_alias);
  add("resize_", &resize);
  add("_copy_from", &copy_from);
  add("_copy_from_and_resize", &copy_from_and_resize);
  add("set_.source_Tensor", &at::native::set_tensor_);
  add("set_.source_Storage", &set_whole_storage);
  add("set_.source_Storage_storage_offset", &set_storage);
  add("set_", &set_nothing);
  add("record_stream", &record_stream);
  return names;
}

} // namespace tandem::sim
