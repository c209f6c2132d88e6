// SPDX-License-Identifier: Apache-2.0
// What of the stand-in for NVIDIA's driver is there still once all has been given back of which a
// call was told to fail.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/native/cuda/failing_calls.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test::gpus {

// Objects that stay behind if this call fails to free one, in the words of held(). Empty: the call
// frees nothing.
inline std::vector<std::string> leftBy(const std::string& call) {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"cuDevicePrimaryCtxRelease", {"contexts"}},
      {"cuModuleUnload", {"modules"}},
      {"cuStreamDestroy", {"streams"}},
      {"cuEventDestroy", {"events"}},
      {"cuMemFree", {"allocations"}},
      {"cuMemFreeHost", {"pinned"}},
      {"cuMemRelease", {"physical"}},
      {"cuMemAddressFree", {"reserved"}},
      // Addresses can't go where something is mapped.
      {"cuMemUnmap", {"mapped", "reserved"}},
  };
  const auto found = all.find(call);
  return found == all.end() ? std::vector<std::string>() : found->second;
}
inline bool givesBack(const std::string& call) {
  return !leftBy(call).empty();
}

// Makes that call fail once, with 719. `isDone`: a call that frees something still frees it.
inline void failOnce(const std::string& call, int number, bool isDone) {
  failCall(call, number, 719);
  find<void (*)(int)>("standInIsDone")(isDone ? 1 : 0);
}
// The ways in which it can.
inline std::vector<bool> waysToFail(const std::string& call) {
  return givesBack(call) ? std::vector<bool>{false, true} : std::vector<bool>{false};
}
// How many calls have failed that were told to.
inline int failures() {
  return find<int (*)()>("standInFailures")();
}

// All but `before` has been given back, and what failed to be; nothing was used, or given back once
// more, that was gone.
inline testing::AssertionResult isGivenBack(const std::string& call, bool isDone,
                                            const std::string& before = "") {
  const auto counts = [](const std::string& text) {
    std::map<std::string, int> all;
    std::istringstream words(text);
    int count = 0;
    for (std::string name; words >> count >> name;)
      all[name.back() == ',' ? name.substr(0, name.size() - 1) : name] = count;
    return all;
  };
  auto expected = counts(before);
  if (failures() > 0 && !isDone)
    for (const std::string& left : leftBy(call)) ++expected[left];
  if (counts(held()) != expected) {
    std::string wanted;
    for (const auto& [name, count] : expected)
      wanted += (wanted.empty() ? "" : ", ") + std::to_string(count) + " " + name;
    return testing::AssertionFailure() << "held: \"" << held() << "\", not \"" << wanted << '"';
  }
  // No object may stay behind that could be freed.
  const int refused = find<int (*)()>("standInRefused")();
  if (refused > 0 && (isDone || !givesBack(call)))
    return testing::AssertionFailure() << refused << " calls named what was not there";
  return testing::AssertionSuccess();
}

}  // namespace windlass_test::gpus
