// SPDX-License-Identifier: Apache-2.0
// What opening UCX does to a process that runs other threads meanwhile, such as a JVM: it leaves
// the code of libc, which they may be in, as libc's file has it, and the list of variables that
// they may read.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace host_library_test {

constexpr size_t kBytes = 16;

// A library in memory at `at`, beside the bytes of its file.
struct Loaded {
  const unsigned char* at;
  std::vector<unsigned char> bytes;
};

int findLoaded(dl_phdr_info* object, size_t, void* context) {
  auto& loaded = *static_cast<Loaded*>(context);
  const auto at = reinterpret_cast<ElfW(Addr)>(loaded.at);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || at < start || at + kBytes > start + segment.p_filesz) continue;
    std::ifstream file(object->dlpi_name, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(segment.p_offset + (at - start)));
    loaded.bytes.resize(kBytes);
    file.read(reinterpret_cast<char*>(loaded.bytes.data()), kBytes);
    if (!file) loaded.bytes.clear();
    return 1;
  }
  return 0;
}

// First of all: the library is opened once a process.
TEST(HostLibrary, LeavesTheVariablesThatOthersRead) {
  // The C library's own from here on, which it may give back.
  ASSERT_EQ(0, setenv("WINDLASS_TEST_VARIABLE", "1", 1));
  char** const before = environ;
  const size_t count = static_cast<size_t>(
      std::find(before, before + 100'000, static_cast<char*>(nullptr)) - before);
  const std::vector<char*> read(before, before + count + 1);
  Error error;
  uint64_t bytes = 0;
  ASSERT_EQ(WL_OK, wl_ucx_describe(nullptr, 0, &bytes, &error)) << error.message;
  EXPECT_NE(before, environ);
  EXPECT_TRUE(std::equal(read.begin(), read.end(), before));
  EXPECT_STREQ("no", std::getenv("UCX_MEM_EVENTS"));
}

// Where a test names another one, by the path of the linker.
TEST(HostLibrary, IsTheOneThatWasNamed) {
  Error error;
  ASSERT_EQ(WL_OK, wl_ucx_find(nullptr, &error)) << error.message;
  void* const library = dlopen("libwindlass-ucx.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library) << dlerror();
  EXPECT_EQ(std::getenv("WINDLASS_TEST_LATE_NUMBERS") != nullptr,
            dlsym(library, "windlass_late_numbers") != nullptr);
  dlclose(library);
}

TEST(HostLibrary, LeavesTheCodeOfLibcAsItIs) {
  Error error;
  uint64_t bytes = 0;
  ASSERT_EQ(WL_OK, wl_ucx_describe(nullptr, 0, &bytes, &error)) << error.message;
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, libc) << dlerror();
  for (const char* name :
       {"mmap", "munmap", "mremap", "madvise", "brk", "sbrk", "shmat", "shmdt"}) {
    Loaded loaded = {static_cast<const unsigned char*>(dlsym(libc, name)), {}};
    ASSERT_NE(nullptr, loaded.at) << name;
    dl_iterate_phdr(findLoaded, &loaded);
    ASSERT_EQ(kBytes, loaded.bytes.size()) << name;
    EXPECT_TRUE(std::equal(loaded.bytes.begin(), loaded.bytes.end(), loaded.at))
        << name << " has other code than its file";
  }
  dlclose(libc);
}

}  // namespace host_library_test
}  // namespace windlass_test
