// SPDX-License-Identifier: Apache-2.0
// The stand-in for NVIDIA's driver, which programs with its folder in their run path open as the
// driver, and what tests tell it: tests/cuda/stand_in.cpp.
#pragma once

#include "tests/native/cuda/driver.h"

namespace windlass_test::gpus {

inline void reset() {
  find<void (*)()>("standInReset")();
}
inline void devices(int count) {
  find<void (*)(int)>("standInDevices")(count);
}
// How many blocks a device runs at a time.
inline void blocks(int count) {
  find<void (*)(int)>("standInBlocks")(count);
}
// How many blocks of a library's kernels a multiprocessor has room for, at most.
inline void libraryBlocks(int most) {
  find<void (*)(int)>("standInLibraryBlocks")(most);
}
inline void version(int of) {
  find<void (*)(int)>("standInVersion")(of);
}
inline void major(int of) {
  find<void (*)(int)>("standInMajor")(of);
}
inline void reaches(bool does) {
  find<void (*)(int)>("standInReaches")(does ? 1 : 0);
}
inline void exports(bool does) {
  find<void (*)(int)>("standInExports")(does ? 1 : 0);
}
inline void losesCopies(bool does) {
  find<void (*)(int)>("standInLosesCopies")(does ? 1 : 0);
}
// Whether devices add to one another's memory atomically.
inline void atomics(bool does) {
  find<void (*)(int)>("standInAtomics")(does ? 1 : 0);
}
// Makes the rank's cores only look for the order to stop.
inline void isStuck(uint32_t rank, bool is) {
  find<void (*)(uint32_t, int)>("standInCores")(rank, is ? 1 : 0);
}
// Its cores do not even that.
inline void hang(uint32_t rank) {
  find<void (*)(uint32_t, int)>("standInCores")(rank, 2);
}
// The upper half of its cores begins late.
inline void isLate(uint32_t rank) {
  find<void (*)(uint32_t, int)>("standInCores")(rank, 3);
}
// Holds the later work of the stream if `holds`, and releases it otherwise.
inline void holdStream(uint64_t stream, bool holds) {
  find<void (*)(uint64_t, int)>("standInHoldStream")(stream, holds ? 1 : 0);
}
// A tensor of a caller's on the device, which this process may write too; reset takes it back.
template <class T>
T* tensor(int device, size_t count) {
  return static_cast<T*>(find<void* (*)(int, size_t)>("standInTensor")(device, count * sizeof(T)));
}
// The caller has pinned that memory of the host's; until reset.
inline void pin(void* memory, size_t bytes) {
  find<void (*)(void*, size_t)>("standInPin")(memory, bytes);
}
// It is in a context that the caller has made.
inline void isForeign(void* tensor) {
  find<void (*)(void*)>("standInForeign")(tensor);
}
// The same in memory that the caller maps, 2 MiB at a time, and that devices 0 to `readers` - 1
// reach.
template <class T>
T* mappedTensor(int device, size_t count, int readers) {
  return static_cast<T*>(find<void* (*)(int, size_t, int)>("standInMapped")(
      device, count * sizeof(T), readers));
}
inline void failCall(const std::string& call, int number, int result) {
  find<void (*)(const char*, int, int)>("standInFail")(call.c_str(), number, result);
}
// That call does not return until letGo(), and fails.
inline void hold(const std::string& call, int number) {
  find<void (*)(const char*, int)>("standInHold")(call.c_str(), number);
}
// The same, but it does what it is for.
inline void delay(const std::string& call, int number) {
  find<void (*)(const char*, int)>("standInDelay")(call.c_str(), number);
}
inline void letGo() {
  hold("", 0);
}
inline int holds() {
  return find<int (*)()>("standInHolds")();
}
inline std::vector<std::string> log() {
  std::vector<std::string> lines;
  const int count = find<int (*)()>("standInCalls")();
  for (int i = 1; i <= count; ++i) lines.emplace_back(find<const char* (*)(int)>("standInCall")(i));
  return lines;
}
// How many of the calls are of that name.
inline int countCalls(const std::string& name) {
  int count = 0;
  for (const std::string& line : log()) count += line.substr(0, line.find(' ')) == name ? 1 : 0;
  return count;
}
// Objects that were made and not freed. Empty: none.
inline std::string held() {
  char what[1024] = "";
  find<int (*)(char*, size_t)>("standInHeld")(what, sizeof what);
  return what;
}

}  // namespace windlass_test::gpus
