#pragma once

#include <string>
#include <vector>

namespace tandem::test {

/// Two network namespaces of this test alone, which stand for two hosts, and a
/// link between them.
class NetworkNamespaces {
 public:
  /// Makes them, if the system lets us.
  NetworkNamespaces();
  ~NetworkNamespaces();
  NetworkNamespaces(const NetworkNamespaces&) = delete;
  NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;

  /// Why there are none; empty if there are.
  const std::string& why_not() const {
    return why_not_;
  }
  /// `command`, as it runs on `host` 0 or 1.
  std::vector<std::string> on_host(int host, std::vector<std::string> command)
      const;
  std::string address(int host) const;
  /// Of the link, on both.
  std::string interface_name() const {
    return "veth0";
  }
  void cut_link() const;

 private:
  std::string name(int host) const;
  /// Runs `ip` with these words; remembers its first complaint.
  void ip(std::vector<std::string> words);

  std::string why_not_;
};

} // namespace tandem::test
