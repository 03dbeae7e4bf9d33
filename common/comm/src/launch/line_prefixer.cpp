#include "line_prefixer.h"

namespace tandem::comm::launch {

namespace {

constexpr std::size_t kTailLines = 10;
constexpr std::size_t kTailLineBytes = 500;

} // namespace

void LineTail::push(std::string_view line) {
  if (lines_.size() == kTailLines) {
    lines_.pop_front();
  }
  lines_.emplace_back(line.substr(0, kTailLineBytes));
}

LinePrefixer::LinePrefixer(std::string prefix, LineTail& tail)
    : prefix_(std::move(prefix)), tail_(tail) {}

void LinePrefixer::append(std::string_view text, std::string& out) {
  for (auto newline = text.find('\n'); newline != std::string_view::npos;
       newline = text.find('\n')) {
    extend(text.substr(0, newline), out);
    emit(out);
    text.remove_prefix(newline + 1);
  }
  extend(text, out);
}

void LinePrefixer::finish(std::string& out) {
  if (!line_.empty()) {
    emit(out);
  }
}

void LinePrefixer::extend(std::string_view text, std::string& out) {
  while (line_.size() + text.size() > kMaxLineBytes) {
    const auto room = kMaxLineBytes - line_.size();
    line_.append(text.substr(0, room));
    text.remove_prefix(room);
    emit(out);
  }
  line_.append(text);
}

void LinePrefixer::emit(std::string& out) {
  out.append(prefix_).append(line_).push_back('\n');
  tail_.push(line_);
  line_.clear();
}

} // namespace tandem::comm::launch
