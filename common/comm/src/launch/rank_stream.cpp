#include "rank_stream.h"

#include <array>
#include <cerrno>

#include <unistd.h>

namespace tandem::comm::launch {

namespace {

constexpr std::size_t kReadBytes = 64 << 10;
// What a pipe holds at most, by the kernel's limit for users.
constexpr std::size_t kMaxPipeBytes = 1 << 20;

} // namespace

RankStream::RankStream(
    FileDescriptor pipe,
    std::string prefix,
    LineTail& tail,
    OutputQueue& out)
    : pipe_(std::move(pipe)), prefixer_(std::move(prefix), tail), out_(out) {}

bool RankStream::pass_on() {
  std::array<char, kReadBytes> bytes;
  const auto size = ::read(pipe_.get(), bytes.data(), bytes.size());
  if (size > 0) {
    prefixer_.append(
        {bytes.data(), static_cast<std::size_t>(size)},
        out_.text());
    return true;
  }
  if (size == 0) {
    prefixer_.finish(out_.text());
    pipe_.reset();
  }
  return false;
}

void RankStream::pass_on_all() {
  // No more than a full pipe: a process that is still alive may write for ever.
  for (std::size_t size = 0; size <= kMaxPipeBytes && pass_on();
       size += kReadBytes) {
  }
}

void RankStream::finish() {
  pass_on_all();
  prefixer_.finish(out_.text());
  pipe_.reset();
}

} // namespace tandem::comm::launch
