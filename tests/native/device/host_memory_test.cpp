// SPDX-License-Identifier: Apache-2.0
// What collectives of devices take of the host's memory: what a load finds, however it is mapped.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "native/base/readable.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {
namespace host_memory_test {

constexpr size_t kPage = 4096;
constexpr size_t kCount = 100;
constexpr size_t kBytes = kCount * sizeof(int32_t);

// Two pages of a file, or of none.
class Mapped {
 public:
  Mapped(int file, int protection) : file_(file) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const at = mmap(nullptr, 2 * kPage, protection, flags, file, 0);
    if (at != MAP_FAILED) memory_ = static_cast<unsigned char*>(at);
  }
  ~Mapped() {
    if (memory_ != nullptr) munmap(memory_, 2 * kPage);
    if (file_ >= 0) close(file_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  unsigned char* at(size_t byte) const { return memory_ + byte; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  const int file_;
  unsigned char* memory_ = nullptr;
};

// A file of so many pages.
int fileOf(size_t pages, const std::function<int()>& make) {
  const int file = make();
  if (file < 0 || ftruncate(file, static_cast<off_t>(pages * kPage)) == 0) return file;
  close(file);
  return -1;
}
int ordinaryFile() {
  return memfd_create("host-memory", MFD_CLOEXEC);
}
// Memory that the kernel itself doesn't map.
int secretFile() {
#ifdef SYS_memfd_secret
  return static_cast<int>(syscall(SYS_memfd_secret, 0));
#else
  return static_cast<int>(syscall(447, 0));
#endif
}

// True if the byte can be written, tried with a write to a pipe.
bool canBeWritten(const void* byte) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const bool can = write(ends[1], byte, 1) == 1;
  for (const int end : ends) close(end);
  return can;
}

// Checks whether ranks take the memory at `at`, on rank 1, as an input.
void expectTaken(const char* what, unsigned char* at, bool isTaken) {
  SCOPED_TRACE(what);
  for (const size_t byte : {size_t{0}, kBytes - 1})
    EXPECT_EQ(windlass::isReadable(at + byte), canBeWritten(at + byte)) << byte;
  gpus::reset();
  {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<int32_t> own(kCount, 1), out(kCount, -1);
      const void* const in = rank == 1 ? at : static_cast<void*>(own.data());
      Error error;
      EXPECT_EQ(allReduce(comm, in, out.data(), kCount, WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error),
                isTaken ? WL_OK : WL_INVALID_ARGUMENT)
          << error.message;
      const std::vector<int32_t> sums(kCount, isTaken ? 2 : -1);
      EXPECT_EQ(out, sums);
      if (!isTaken && rank == 1) {
        EXPECT_TRUE(contains(error.message, "nor mapped in this process")) << error.message;
      }
    });
  }
  gpus::reset();
}

void fillOnes(unsigned char* at) {
  for (size_t i = 0; i < kCount; ++i) reinterpret_cast<int32_t*>(at)[i] = 1;
}

TEST(GpusHostMemory, IsTakenWhereALoadFindsIt) {
  const Mapped anonymous(-1, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(anonymous);
  fillOnes(anonymous.at(0));
  expectTaken("ordinary memory", anonymous.at(0), true);
  ASSERT_EQ(mprotect(anonymous.at(0), kPage, PROT_READ), 0);
  expectTaken("memory to read", anonymous.at(0), true);
  fillOnes(anonymous.at(2 * kPage - kBytes));
  expectTaken("the last bytes", anonymous.at(2 * kPage - kBytes), true);
  const Mapped file(fileOf(2, ordinaryFile), PROT_READ | PROT_WRITE);
  ASSERT_TRUE(file);
  fillOnes(file.at(kPage));
  expectTaken("a file", file.at(kPage), true);
}

TEST(GpusHostMemory, IsRefusedWhereALoadWouldNot) {
  const Mapped closed(-1, PROT_NONE);
  ASSERT_TRUE(closed);
  expectTaken("memory that nobody may read", closed.at(0), false);
  ASSERT_EQ(mprotect(closed.at(0), kPage, PROT_READ | PROT_WRITE), 0);
  expectTaken("what ends before it does", closed.at(kPage - kBytes + 4), false);
  // An address below all mappings of the kernel: an address that was just unmapped may be taken
  // again.
  auto* const none = reinterpret_cast<unsigned char*>(uint64_t{1} << 20);
  unsigned char isThere = 0;
  ASSERT_EQ(mincore(none, kPage, &isThere), -1);
  expectTaken("no memory", none, false);
  EXPECT_FALSE(windlass::isReadable(nullptr));
  const Mapped file(fileOf(1, ordinaryFile), PROT_READ | PROT_WRITE);
  ASSERT_TRUE(file);
  expectTaken("what lies behind a file's end", file.at(kPage), false);
  expectTaken("what a file's end cuts", file.at(kPage - kBytes + 4), false);
}

TEST(GpusHostMemory, IsTakenThoughTheKernelDoesNotMapIt) {
  const int number = fileOf(2, secretFile);
  if (number < 0) GTEST_SKIP() << "the kernel has no memfd_secret";
  const Mapped secret(number, PROT_READ | PROT_WRITE);
  if (!secret) GTEST_SKIP() << "no memory may be locked, as memfd_secret has it";
  fillOnes(secret.at(0));
  expectTaken("secret memory", secret.at(0), true);
}

// The kernel's own pages, which no process owns.
TEST(GpusHostMemory, OfTheKernelsPagesIsWhatALoadFinds) {
  FILE* const maps = std::fopen("/proc/self/maps", "r");
  ASSERT_NE(maps, nullptr);
  unsigned long first = 0;
  char line[512];
  while (first == 0 && std::fgets(line, sizeof line, maps) != nullptr)
    if (contains(line, "[vvar]")) std::sscanf(line, "%lx", &first);
  std::fclose(maps);
  if (first == 0) GTEST_SKIP() << "the kernel has no page of time for processes";
  const auto* const page = reinterpret_cast<const void*>(first);
  EXPECT_EQ(windlass::isReadable(page), canBeWritten(page));
}

}  // namespace host_memory_test
}  // namespace windlass_test
