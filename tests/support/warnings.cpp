#include "warnings.h"

#include <algorithm>
#include <iostream>
#include <mutex>
#include <vector>

#include <c10/util/Exception.h>

#include "text.h"

namespace tandem::test {
namespace {

class Watcher : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::lock_guard lock(mutex_);
    const bool expected = std::any_of(
        expected_.begin(),
        expected_.end(),
        [&](const std::string& words) {
          return contains(warning.msg(), words);
        });
    (expected ? seen_ : unexpected_).push_back(warning.msg());
  }

  void expect(const std::string& words) {
    const std::lock_guard lock(mutex_);
    expected_.push_back(words);
  }

  int count(const std::string& words) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(
        seen_.begin(),
        seen_.end(),
        [&](const std::string& message) { return contains(message, words); }));
  }

  bool report() {
    const std::lock_guard lock(mutex_);
    for (const auto& message : unexpected_) {
      std::cout << "unexpected warning: " << message << '\n';
    }
    return !unexpected_.empty();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> expected_;
  std::vector<std::string> seen_;
  std::vector<std::string> unexpected_;
};

Watcher& watcher() {
  static auto* const instance = new Watcher; // outlives every static
  return *instance;
}

} // namespace

void expect_warning(const std::string& words) {
  watcher().expect(words);
}

int count_warnings(const std::string& words) {
  return watcher().count(words);
}

void watch_warnings() {
  c10::WarningUtils::set_warning_handler(&watcher());
}

bool report_unexpected_warnings() {
  return watcher().report();
}

} // namespace tandem::test
