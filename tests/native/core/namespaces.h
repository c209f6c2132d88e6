// SPDX-License-Identifier: Apache-2.0
// Hosts that tests make up: processes that are told apart, each host's in a network namespace of
// its own where WINDLASS_TEST_NAMESPACES names some, as `ip netns` made them. All have a device of
// one name, which WINDLASS_UCX_NET_DEVICES is; the test begins in the first of them (`ip netns
// exec`), by whose /sys UCX finds it.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace windlass_test {

// Network namespace of each host, from the first host on. Empty: all hosts use this machine's
// loopback.
inline const std::vector<std::string>& namespaces() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    const char* given = std::getenv("WINDLASS_TEST_NAMESPACES");
    std::string rest = given == nullptr ? "" : given;
    while (!rest.empty()) {
      const size_t end = rest.find(',');
      all.push_back(rest.substr(0, end));
      rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
    return all;
  }();
  return names;
}

// How many hosts ranks are dealt out to at most where a launch has several.
inline int mostHosts() {
  const char* given = std::getenv("WINDLASS_TEST_HOSTS");
  return given == nullptr ? 2 : std::atoi(given);
}

// Moves this thread, and the threads that it starts, to that host.
inline void enterHost(int host) {
  if (namespaces().empty()) return;
  const std::string path = "/run/netns/" + namespaces().at(static_cast<size_t>(host));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) {
    std::perror(path.c_str());
    std::abort();
  }
  close(file);
}

}  // namespace windlass_test
