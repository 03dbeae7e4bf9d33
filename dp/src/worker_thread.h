#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem::detail {

/// A thread that waits for jobs until it is destroyed.
/// **Threads**: `start` and `wait` belong to one thread at a time.
class WorkerThread {
 public:
  WorkerThread();
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// Runs `job`, which must not throw and must outlive the `wait` that follows.
  void start(const std::function<void()>& job);
  /// Returns when the job is done.
  void wait();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  /// The job that waits or runs; null if there is none.
  const std::function<void()>* job_ = nullptr;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace tandem::detail
