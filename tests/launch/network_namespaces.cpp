#include "network_namespaces.h"

#include <unistd.h>

#include "child_process.h"

namespace tandem::test {

NetworkNamespaces::NetworkNamespaces() {
  for (const int host : {0, 1}) {
    ip({"netns", "add", name(host)});
  }
  ip({"link",
      "add",
      "veth0",
      "netns",
      name(0),
      "type",
      "veth",
      "peer",
      "name",
      "veth0",
      "netns",
      name(1)});
  for (const int host : {0, 1}) {
    ip({"-n",
        name(host),
        "addr",
        "add",
        address(host) + "/24",
        "dev",
        "veth0"});
    ip({"-n", name(host), "link", "set", "veth0", "up"});
    ip({"-n", name(host), "link", "set", "lo", "up"});
  }
}

NetworkNamespaces::~NetworkNamespaces() {
  why_not_.clear();
  for (const int host : {0, 1}) {
    ip({"netns", "del", name(host)}); // and the link in it
  }
}

std::vector<std::string> NetworkNamespaces::on_host(
    int host,
    std::vector<std::string> command) const {
  const std::vector<std::string> words{"ip", "netns", "exec", name(host)};
  command.insert(command.begin(), words.begin(), words.end());
  return command;
}

std::string NetworkNamespaces::address(int host) const {
  return "10.213.7." + std::to_string(host + 1);
}

void NetworkNamespaces::cut_link() const {
  ChildProcess({"ip", "-n", name(1), "link", "set", "veth0", "down"}).wait();
}

std::string NetworkNamespaces::name(int host) const {
  return "tandem-" + std::to_string(::getpid()) + "-" + std::to_string(host);
}

void NetworkNamespaces::ip(std::vector<std::string> words) {
  if (!why_not_.empty()) {
    return;
  }
  words.insert(words.begin(), "ip");
  try {
    ChildProcess process(words);
    if (process.wait() != 0) {
      why_not_ = "ip: " + process.err();
    }
  } catch (const std::runtime_error& error) {
    why_not_ = error.what();
  }
}

} // namespace tandem::test
