// SPDX-License-Identifier: Apache-2.0
// The stand-in for the Ascend runtime behind the target under test, and what tests tell it:
// tests/acl/stand_in.cpp.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace windlass_test::stand_in {

template <class Function>
Function find(const char* name) {
  static void* const library =
      dlopen((std::string(std::getenv("ASCEND_HOME_PATH")) + "/lib64/libascendcl.so").c_str(),
             RTLD_NOW);
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

inline void reset() {
  find<void (*)()>("standInReset")();
}
inline void failCall(int device, int call) {
  find<void (*)(int, int, int)>("standInFail")(device, call, 507899);
}
inline int callsOn(int device) {
  return find<int (*)(int)>("standInCalls")(device);
}
inline std::string call(int device, int number) {
  return find<const char* (*)(int, int)>("standInCall")(device, number);
}
// How many of the calls on the device read so.
inline int countCalls(int device, const std::string& text) {
  int count = 0;
  for (int i = 1; i <= callsOn(device); ++i) count += call(device, i) == text ? 1 : 0;
  return count;
}
// True if the test's kernel got the word that stops it.
inline bool isToldToStop(int device) {
  return countCalls(device, "aclrtMemcpy 4 4 1") > 0;
}
// Whether the device's kernel was told to stop, and is no longer waited for.
inline bool isStopped(int device) {
  bool isTold = false;
  for (int i = 1; i <= callsOn(device); ++i) {
    const std::string text = call(device, i);
    if (isTold && text.rfind("aclrtSynchronizeStream", 0) != 0) return true;
    isTold = isTold || text == "aclrtMemcpy 4 4 1";
  }
  return false;
}
inline int held() {
  return find<int (*)()>("standInHeld")();
}
inline void isStuck(int device, bool is) {
  find<void (*)(int, int)>("standInIsStuck")(device, is ? 1 : 0);
}
inline void isLate(int device, int waits) {
  find<void (*)(int, int)>("standInIsLate")(device, waits);
}
inline void refuseWaits(int device, int error) {
  find<void (*)(int, int)>("standInRefuseWaits")(device, error);
}
inline void runsAtOnce(int device, int cores) {
  find<void (*)(int, int)>("standInCores")(device, cores);
}
// -1: all calls return.
inline void hold(int device) {
  find<void (*)(int)>("standInHold")(device);
}

}  // namespace windlass_test::stand_in
