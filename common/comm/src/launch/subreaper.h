#pragma once

namespace tandem::comm::launch {

/// While it lives, orphaned descendants become this process's children, so that
/// it can tell when a process group is empty: process 1 of a container often
/// leaves the dead unburied.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int previous_ = 0;
};

} // namespace tandem::comm::launch
