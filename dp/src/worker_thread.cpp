#include "worker_thread.h"

namespace tandem::detail {

WorkerThread::WorkerThread() : thread_([this] { work(); }) {}

WorkerThread::~WorkerThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerThread::start(const std::function<void()>& job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
  }
  changed_.notify_all();
}

void WorkerThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return job_ == nullptr; });
}

void WorkerThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || job_ != nullptr; });
    if (stop_) {
      return;
    }
    const auto& job = *job_;
    lock.unlock();
    job();
    lock.lock();
    job_ = nullptr;
    changed_.notify_all();
  }
}

} // namespace tandem::detail
