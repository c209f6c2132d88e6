// SPDX-License-Identifier: Apache-2.0
// Memory that processes share: reserved whole or refused, by huge pages where it is large.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "native/memory/shared_mapping.h"
#include "native/memory/shared_memory.h"
#include "tests/native/core/local_ranks.h"

namespace {

// Signals end a reservation of more bytes, as a timer's do on kernels that let them.
std::atomic<int64_t> uninterrupted{INT64_MAX};
std::atomic<int> interruptions{0};
constexpr int kTooMany = 100'000;
// The kernel lacks MADV_POPULATE_WRITE, as before Linux 5.14.
std::atomic<bool> isOldKernel{false};
constexpr int kPopulateWrite = 23;

}  // namespace

extern "C" int fallocate(int file, int mode, off_t offset, off_t length) {
  if (length <= uninterrupted)
    return static_cast<int>(syscall(SYS_fallocate, file, mode, offset, length));
  errno = ++interruptions < kTooMany ? EINTR : ENOSPC;
  return -1;
}

extern "C" int madvise(void* memory, size_t bytes, int advice) noexcept {
  if (advice == kPopulateWrite && isOldKernel) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_madvise, memory, bytes, advice));
}

namespace windlass_test {
namespace {

// A rank may reserve pages on which others have written.
TEST(SharedMemory, IsReservedOnOlderKernelsWithoutChange) {
  constexpr uint64_t kBytes = 8 * 4096;
  constexpr uint64_t kWritten = 3 * 4096;
  Error error;
  int32_t file = -1;
  ASSERT_EQ(WL_OK, windlass::shareMemory(kBytes, &file, &error, kBytes)) << error.message;
  windlass::SharedMapping mapping;
  ASSERT_EQ(WL_OK, mapping.map(file, &error)) << error.message;
  auto* const own = static_cast<unsigned char*>(mapping.memory());
  own[0] = own[kWritten] = 7;
  isOldKernel = true;
  EXPECT_EQ(WL_OK, windlass::reserveShared(own, kBytes, &error)) << error.message;
  isOldKernel = false;
  EXPECT_EQ(7, own[0]);
  EXPECT_EQ(7, own[kWritten]);
  struct stat found = {};
  ASSERT_EQ(0, fstat(file, &found));
  EXPECT_EQ(kBytes / 512, static_cast<uint64_t>(found.st_blocks)) << "all of it is reserved";
  close(file);
}

TEST(SharedMemory, IsReservedInPiecesWhereSignalsInterruptTheWhole) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  Error error;
  int32_t file = -1;
  uninterrupted = 1 << 20;
  const int code = windlass::shareMemory(kBytes, &file, &error);
  uninterrupted = INT64_MAX;
  ASSERT_EQ(WL_OK, code) << error.message;
  EXPECT_GT(interruptions, 0);
  struct stat found = {};
  ASSERT_EQ(0, fstat(file, &found));
  EXPECT_EQ(kBytes, static_cast<uint64_t>(found.st_size));
  EXPECT_EQ(kBytes / 512, static_cast<uint64_t>(found.st_blocks)) << "all of it is reserved";
  close(file);
}

TEST(SharedMemory, IsRefusedWhereSignalsInterruptEveryAttempt) {
  Error error;
  int32_t file = 7;
  interruptions = 0;
  uninterrupted = 0;
  const int code = windlass::shareMemory(1 << 20, &file, &error);
  uninterrupted = INT64_MAX;
  EXPECT_EQ(WL_RESOURCE, code);
  EXPECT_EQ(-1, file);
  EXPECT_EQ(1000, interruptions);
  EXPECT_NE(nullptr, std::strstr(error.message, "signals interrupted the thread 1000 times"))
      << error.message;
}

// Bytes of huge pages that this process maps from that address on.
uint64_t hugeBytesAt(const void* memory) {
  char range[32];
  std::snprintf(range, sizeof range, "%llx-", reinterpret_cast<unsigned long long>(memory));
  std::ifstream maps("/proc/self/smaps");
  bool isIt = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") < line.find(" ") && line.find(":") > line.find(" "))
      isIt = line.compare(0, std::strlen(range), range) == 0;
    if (isIt && line.compare(0, 15, "ShmemPmdMapped:") == 0)
      return std::strtoull(line.c_str() + 15, nullptr, 10) << 10;
  }
  return 0;
}

// Whether this kernel makes huge pages of memory that processes share.
bool collapses() {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  const int file = memfd_create("windlass-test", MFD_CLOEXEC);
  void* room = mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uint64_t at = (reinterpret_cast<uint64_t>(room) + kHuge - 1) / kHuge * kHuge;
  const bool isMapped = file >= 0 && ftruncate(file, kHuge) == 0 &&
                        mmap(reinterpret_cast<void*>(at), kHuge, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  constexpr int kCollapse = 25;
  const bool can = isMapped && fallocate(file, 0, 0, 4096) == 0 &&
                   madvise(reinterpret_cast<void*>(at), kHuge, kCollapse) == 0;
  munmap(room, 2 * kHuge);
  close(file);
  return can;
}

TEST(SharedMemory, HasHugePagesWhereItIsLarge) {
  if (!collapses()) GTEST_SKIP() << "needs a kernel with MADV_COLLAPSE, 6.1 or later, and memory";
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  for (const uint64_t bytes : {kHuge - 4096, kHuge, 3 * kHuge + 4096}) {
    Error error;
    windlass::SharedMapping mapping;
    ASSERT_EQ(WL_OK, mapping.make(bytes, &error)) << error.message;
    ASSERT_EQ(bytes, mapping.bytes());
    struct stat found = {};
    ASSERT_EQ(0, fstat(mapping.file(), &found));
    EXPECT_EQ(bytes / 512, static_cast<uint64_t>(found.st_blocks)) << "all of it is reserved";
    windlass::SharedMapping other;
    ASSERT_EQ(WL_OK, other.map(mapping.file(), &error)) << error.message;
    auto* own = static_cast<unsigned char*>(mapping.memory());
    for (uint64_t at = 0; at < bytes; ++at) ASSERT_EQ(0, own[at]) << at;
    for (uint64_t at = 0; at < bytes; at += 4096) own[at] = static_cast<unsigned char>(at >> 12);
    const auto* seen = static_cast<const unsigned char*>(other.memory());
    for (uint64_t at = 0; at < bytes; at += 4096)
      ASSERT_EQ(static_cast<unsigned char>(at >> 12), seen[at]) << at;
    EXPECT_EQ(bytes / kHuge * kHuge, hugeBytesAt(mapping.memory())) << bytes;
    EXPECT_EQ(bytes / kHuge * kHuge, hugeBytesAt(other.memory())) << bytes;
  }
}

// The limit of a file's size would end the process by a signal.
TEST(SharedMemory, ALimitOnFilesIsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    Error error;
    int32_t file = -1;
    const int32_t code = windlass::shareMemory(1 << 20, &file, &error);
    _exit(code == WL_RESOURCE && std::strstr(error.message, "ulimit -f") != nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace windlass_test
