// What c10d/ProcessGroupGloo.hpp names of Gloo, whose headers LibTorch does not
// ship; the definitions are in libtorch_cpu. For gloo_backend.cpp alone.
//
// Store's virtual functions stand in Gloo's order, which c10d's subclass of it
// relies on; nothing here may be derived from or constructed.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  __attribute__((visibility("default"))) void setTimeout(
      std::chrono::milliseconds timeout);
};

namespace transport {
class Device;
class UnboundBuffer;
} // namespace transport

namespace rendezvous {

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(
      const std::vector<std::string>& keys,
      const std::chrono::milliseconds& timeout) = 0;
};

} // namespace rendezvous
} // namespace gloo
