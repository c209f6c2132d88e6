// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1, NVIDIA's driver, made for tests of the host side: it has the calls
// that Windlass makes, by their exported names, over this host's memory. It records each call with
// its arguments, fails the one that it's told to, refuses what the driver's documents forbid, and
// counts what was not given back. tests/cuda/streams.h has its streams. What it is told to do, and
// what it tells, stands at the end. WINDLASS_STAND_IN_DEVICES: how many devices it has at first;
// WINDLASS_STAND_IN_MEMORY=devices: all memory that it has not given lies on them, by turns, so that
// whatever a program names is a device's.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "native/device/cuda/cuda.h"
#include "tests/acl/pages.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/image.h"
#include "tests/cuda/streams.h"
#include "windlass/kernel_table.h"

// Kernels that a device has loaded: Windlass' own, or those of a library.
struct windlass::cuda::CuModuleOf {
  const windlass::KernelTable* library;  // or nullptr
};

namespace {

using namespace windlass::cuda;
using namespace stand_in;

constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba};  // how one begins
constexpr CuResult kLaunchFailed = 719;
constexpr size_t kGranularity = size_t{64} << 10;  // a driver's is 2 MiB, which takes long to fill
constexpr size_t kPiece = size_t{2} << 20;         // of memory that a caller maps
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kDeviceBytes = size_t{1} << 30;
constexpr int kForeign = 1000;       // of the contexts that callers make
constexpr uint64_t kStretch = 1024;  // of memory that lies on one device
constexpr const char* kFilePrefix = "device-";  // and its number

struct Physical {
  int file;
  size_t bytes;
  int device;
  int handleTypes;
  int mappings = 0;
  bool isReleased = false;
};
struct Mapping {
  Physical* physical;
  size_t bytes;
  std::set<int> readers;
};

std::vector<std::string> calls;
std::map<std::string, int> callsOf;
struct {
  std::string call;
  int number = 0;
  int error = 0;
} injected;
struct {
  std::string call;
  int number = 0;
  int calls = 0;  // that are in there
  // Some may be when the process ends.
  std::condition_variable& changed = *new std::condition_variable;
  CuResult result = 0;  // once it is let go; 0: what the call itself comes to
} held;
int failures = 0;  // of injected calls
int refused = 0;
std::map<int, int> retained;
std::set<CuModule> modules;
std::map<uint64_t, size_t> allocated;
std::map<uint64_t, int> allocatedOn;  // devices
std::set<uint64_t> foreign;           // of those, in a context that a caller has made
std::map<uint64_t, size_t> pinned;
std::map<uint64_t, size_t> registered;  // memory of callers that is pinned
std::map<uint64_t, Physical*> physicals;
std::map<uint64_t, size_t> reserved;
std::map<uint64_t, Mapping> mapped;
int devicesAtFirst() {
  const char* count = std::getenv("WINDLASS_STAND_IN_DEVICES");
  return count == nullptr ? 1 : std::atoi(count);
}
bool hasAllMemory() {
  const char* memory = std::getenv("WINDLASS_STAND_IN_MEMORY");
  return memory != nullptr && std::strcmp(memory, "devices") == 0;
}

int deviceCount = devicesAtFirst();
const bool isAllOnDevices = hasAllMemory();
int multiprocessors = 16;
int blocksEach = 2;
int mostOfLibraries = INT32_MAX;  // the same of a library's kernels, where that is less
int version = 13000;
int major = 9;
bool reaches = true;
bool exports = true;
bool losesCopies = false;
bool hasNativeAtomics = true;
std::map<uint32_t, stand_in::Cores> cores;

CuContext contextOf(int device) {
  return reinterpret_cast<CuContext>(uintptr_t{0x100} + static_cast<uintptr_t>(device));
}
int deviceOf(CuContext context) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 0x100);
}

bool lies(const std::map<uint64_t, size_t>& in, uint64_t address, size_t bytes) {
  auto after = in.upper_bound(address);
  if (after == in.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}
// The device where it lies, of what the current one reaches; -1: none.
int placeOf(uint64_t address, size_t bytes) {
  if (lies(allocated, address, bytes)) return std::prev(allocatedOn.upper_bound(address))->second;
  auto after = mapped.upper_bound(address);
  const uint64_t end = address + bytes;
  const auto turn = static_cast<int>(address / kStretch % static_cast<uint64_t>(deviceCount));
  const int none = isAllOnDevices ? turn : -1;
  if (after == mapped.begin()) return none;
  --after;
  const Mapping& of = after->second;
  if (address >= after->first + of.bytes) return none;
  // Mappings side by side are one stretch of memory.
  for (uint64_t at = address; at < end; at = after->first + after->second.bytes, ++after) {
    const bool goesOn = after != mapped.end() && after->first <= at;
    if (!goesOn || after->second.readers.count(current.back()) == 0) return -1;
    if (after->first + after->second.bytes >= end) break;
  }
  return of.physical->device;
}

void drop(Physical* physical) {
  if (physical->mappings > 0 || !physical->isReleased) return;
  close(physical->file);
  delete physical;
}

}  // namespace

std::mutex stand_in::mutex;
thread_local std::vector<int> stand_in::current;
bool stand_in::isDone = false;

CuResult stand_in::refuse(CuResult result) {
  ++refused;
  return result;
}

int stand_in::record(std::unique_lock<std::mutex>& lock, const char* format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::string name(text, std::strcspn(text, " "));
  const int number = ++callsOf[name];
  calls.emplace_back(text);
  if (held.call == name && held.number == number) {
    ++held.calls;
    held.changed.wait(lock, [] { return held.call.empty(); });
    --held.calls;
    held.changed.notify_all();
    if (held.result != 0) return held.result;
  }
  if (injected.call != name) return 0;
  if (injected.number != 0 && injected.number != number) return 0;
  failures += injected.error == 0 ? 0 : 1;
  return injected.error;
}

uint32_t stand_in::blocksAtOnce() {
  return static_cast<uint32_t>(multiprocessors * blocksEach);
}

stand_in::Cores stand_in::coresOf(uint32_t rank) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = cores.find(rank);
  return found == cores.end() ? Cores::kRun : found->second;
}

extern "C" {

CALL CuResult cuInit(uint32_t flags) {
  BEGIN("cuInit %u", flags)
  return 0;
}
CALL CuResult cuDriverGetVersion(int32_t* of) {
  BEGIN("cuDriverGetVersion")
  *of = version;
  return 0;
}
CALL CuResult cuGetErrorName(CuResult result, const char** name) {
  *name = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                          : nullptr;
  return *name == nullptr ? kInvalidValue : 0;
}
CALL CuResult cuGetErrorString(CuResult, const char** text) {
  *text = "the stand-in was told to fail";
  return 0;
}
CALL CuResult cuDeviceGetCount(int32_t* count) {
  BEGIN("cuDeviceGetCount")
  *count = deviceCount;
  return 0;
}
CALL CuResult cuDeviceGet(CuDevice* device, int32_t ordinal) {
  BEGIN("cuDeviceGet %d", ordinal)
  *device = ordinal;
  return ordinal >= 0 && ordinal < deviceCount ? 0 : kInvalidDevice;
}
CALL CuResult cuDeviceGetName(char* name, int32_t room, CuDevice device) {
  BEGIN("cuDeviceGetName %d", device)
  std::snprintf(name, static_cast<size_t>(room), "Stand-in %d", device);
  return 0;
}
CALL CuResult cuDeviceTotalMem_v2(size_t* bytes, CuDevice device) {
  BEGIN("cuDeviceTotalMem %d", device)
  *bytes = kDeviceBytes;
  return 0;
}
CALL CuResult cuDeviceGetAttribute(int32_t* value, int32_t attribute, CuDevice device) {
  BEGIN("cuDeviceGetAttribute %d %d", attribute, device)
  *value = attribute == kMultiprocessors ? multiprocessors
           : attribute == kMajor         ? major
           : attribute == kMinor         ? 0
           : attribute == kFileHandles   ? (exports ? 1 : 0)
                                         : 1;
  return 0;
}
CALL CuResult cuDeviceCanAccessPeer(int32_t* can, CuDevice device, CuDevice peer) {
  BEGIN("cuDeviceCanAccessPeer %d %d", device, peer)
  *can = reaches ? 1 : 0;
  return device == peer ? kInvalidDevice : 0;
}
CALL CuResult cuDeviceGetP2PAttribute(int32_t* value, int32_t attribute, CuDevice from,
                                      CuDevice to) {
  BEGIN("cuDeviceGetP2PAttribute %d %d %d", attribute, from, to)
  *value = hasNativeAtomics ? 1 : 0;
  return from == to ? kInvalidDevice : 0;
}
CALL CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  BEGIN("cuDevicePrimaryCtxRetain %d", device)
  ++retained[device];
  *context = contextOf(device);
  return 0;
}
CALL CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  BEGIN_GIVING("cuDevicePrimaryCtxRelease %d", device)
  if (retained[device] == 0) return refuse(kInvalidContext);
  if (--retained[device] == 0) retained.erase(device);
  return told;
}
CALL CuResult cuCtxPushCurrent_v2(CuContext context) {
  BEGIN("cuCtxPushCurrent %d", deviceOf(context))
  if (retained.count(deviceOf(context)) == 0) return kInvalidContext;
  current.push_back(deviceOf(context));
  return 0;
}
CALL CuResult cuCtxPopCurrent_v2(CuContext* context) {
  BEGIN("cuCtxPopCurrent")
  if (current.empty()) return kInvalidContext;
  *context = contextOf(current.back());
  current.pop_back();
  return 0;
}
// The table of the library that the image is in; nullptr: it is in none, and Windlass' own.
static const windlass::KernelTable* libraryOf(const void* image) {
  Dl_info in = {};
  if (dladdr(image, &in) == 0) return nullptr;
  void* const library = dlopen(in.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto* table =
      static_cast<const windlass::KernelTable*>(dlsym(library, windlass::kKernelTableSymbol));
  dlclose(library);
  return table != nullptr && table->image == image ? table : nullptr;
}
CALL CuResult cuModuleLoadData(CuModule* module, const void* image) {
  BEGIN_IN_CONTEXT("cuModuleLoadData")
  // Accepts images of nvcc too. The device runs its own kernels for either kind.
  if (std::memcmp(image, kStandInImage, sizeof kStandInImage) != 0 &&
      std::memcmp(image, kFatbin, sizeof kFatbin) != 0)
    return kInvalidImage;
  *module = new CuModuleOf{libraryOf(image)};
  modules.insert(*module);
  return 0;
}
CALL CuResult cuModuleUnload(CuModule module) {
  BEGIN_GIVING_IN_CONTEXT("cuModuleUnload")
  if (modules.erase(module) == 0) return refuse(kInvalidHandle);
  delete module;
  return told;
}
CALL CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  BEGIN_IN_CONTEXT("cuModuleGetFunction %s", name)
  *function = reinterpret_cast<CuFunction>(module);
  return std::strcmp(name, "windlass_run") == 0 ? 0 : kNotFound;
}
CALL CuResult cuFuncGetAttribute(int32_t* value, int32_t attribute, CuFunction) {
  BEGIN_IN_CONTEXT("cuFuncGetAttribute %d", attribute)
  *value = 512;
  return 0;
}
CALL CuResult cuOccupancyMaxActiveBlocksPerMultiprocessor(int32_t* blocks, CuFunction function,
                                                          int32_t threads, size_t sharedBytes) {
  BEGIN_IN_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor %d %zu", threads, sharedBytes)
  *blocks = blocksEach;
  if (reinterpret_cast<CuModule>(function)->library != nullptr)
    *blocks = std::min(*blocks, mostOfLibraries);
  return 0;
}
CALL CuResult cuLaunchCooperativeKernel(CuFunction function, uint32_t gridX, uint32_t gridY, uint32_t gridZ,
                                        uint32_t blockX, uint32_t blockY, uint32_t blockZ,
                                        uint32_t sharedBytes, CuStream on, void** arguments) {
  BEGIN_IN_CONTEXT("cuLaunchCooperativeKernel %u %u %u, %u %u %u, %u", gridX, gridY, gridZ, blockX,
                   blockY, blockZ, sharedBytes)
  if (gridX > blocksAtOnce()) return kGridTooLarge;
  const auto ranks = *static_cast<const windlass::OffloadedRanks*>(arguments[0]);
  const uint32_t cores = *static_cast<const uint32_t*>(arguments[1]);
  const int device = stand_in::deviceOf(on);
  const auto* library = reinterpret_cast<CuModule>(function)->library;
  return submit(on, [=] { return stand_in::kernel(device, library, ranks, cores, gridX); });
}
CALL CuResult cuLaunchKernel(CuFunction function, uint32_t gridX, uint32_t gridY, uint32_t gridZ,
                             uint32_t blockX, uint32_t blockY, uint32_t blockZ,
                             uint32_t sharedBytes, CuStream on, void** arguments, void**) {
  BEGIN_IN_CONTEXT("cuLaunchKernel %u %u %u, %u %u %u, %u", gridX, gridY, gridZ, blockX, blockY,
                   blockZ, sharedBytes)
  const auto ranks = *static_cast<const windlass::OffloadedRanks*>(arguments[0]);
  const uint32_t cores = *static_cast<const uint32_t*>(arguments[1]);
  const int device = stand_in::deviceOf(on);
  const auto* library = reinterpret_cast<CuModule>(function)->library;
  return submit(on, [=] { return stand_in::kernel(device, library, ranks, cores, gridX); });
}
static size_t wholeHugePages(size_t bytes) {
  return std::max(size_t{1}, (bytes + kHugePage - 1) / kHugePage) * kHugePage;
}
// Freed memory is unmapped, so that a later use of it faults. Huge pages are used because a fault
// for each 4 KiB may take far longer than the copy.
static void* mapHuge(size_t bytes) {
  const size_t whole = wholeHugePages(bytes);
  void* const made = mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<unsigned char*>(made);
  const size_t before = -reinterpret_cast<uint64_t>(made) % kHugePage;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + whole, kHugePage - before);
  if (bytes >= kHugePage) madvise(begin + before, whole, MADV_HUGEPAGE);
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(begin + before + bytes, whole - bytes);
#endif
  return begin + before;
}
static void unmapHuge(void* memory, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(memory, wholeHugePages(bytes));
#endif
  munmap(memory, wholeHugePages(bytes));
}

// Fills new memory with a pattern, because a driver's memory is not zero. Under a sanitizer it
// fills only the first part, which keeps the stand-in fast.
static void fill(void* memory, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  bytes = std::min(bytes, size_t{64} << 10);
#endif
  std::memset(memory, 0xa5, bytes);
}

CALL CuResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  BEGIN_IN_CONTEXT("cuMemGetInfo")
  *free = kDeviceBytes / 4;
  *total = kDeviceBytes;
  return 0;
}
CALL CuResult cuMemAlloc_v2(CuAddress* memory, size_t bytes) {
  BEGIN_IN_CONTEXT("cuMemAlloc %zu", bytes)
  if (const CuResult unsafe = checkUnsafe(); unsafe != 0) return unsafe;
  void* const made = mapHuge(bytes);
  if (made == nullptr) return kCuOutOfMemory;
  fill(made, bytes);
  *memory = reinterpret_cast<uint64_t>(made);
  allocated[*memory] = bytes;
  allocatedOn[*memory] = current.back();
  return 0;
}
CALL CuResult cuMemFree_v2(CuAddress memory) {
  BEGIN_GIVING_IN_CONTEXT("cuMemFree")
  const auto found = allocated.find(memory);
  if (found == allocated.end()) return refuse(kInvalidValue);
  unmapHuge(reinterpret_cast<void*>(memory), found->second);
  allocated.erase(found);
  allocatedOn.erase(memory);
  return told;
}
CALL CuResult cuPointerGetAttribute(void* value, int32_t attribute, CuAddress address) {
  BEGIN_IN_CONTEXT("cuPointerGetAttribute %d", attribute)
  const bool isPinned = lies(pinned, address, 1) || lies(registered, address, 1);
  if (attribute == kMemoryType && isPinned) {
    *static_cast<int32_t*>(value) = kHostMemory;
    return 0;
  }
  const int device = placeOf(address, 1);
  if (device < 0) return kInvalidValue;
  if (attribute == kMemoryContext) {
    const bool isForeign = foreign.count(address) != 0;
    *static_cast<CuContext*>(value) = isForeign                     ? contextOf(kForeign)
                                      : lies(allocated, address, 1) ? contextOf(device)
                                                                    : nullptr;
    return 0;
  }
  *static_cast<int32_t*>(value) = attribute == kMemoryType ? kDeviceMemory : device;
  return 0;
}
CALL CuResult cuMemGetAddressRange_v2(CuAddress* base, size_t* bytes, CuAddress address) {
  BEGIN_IN_CONTEXT("cuMemGetAddressRange")
  if (!lies(allocated, address, 1)) return kNotFound;
  const auto found = std::prev(allocated.upper_bound(address));
  *base = found->first;
  *bytes = found->second;
  return 0;
}
CALL CuResult cuMemHostAlloc(void** memory, size_t bytes, uint32_t flags) {
  BEGIN_IN_CONTEXT("cuMemHostAlloc %zu %u", bytes, flags)
  *memory = mapHuge(bytes);
  if (*memory == nullptr) return kCuOutOfMemory;
  fill(*memory, bytes);
  pinned[reinterpret_cast<uint64_t>(*memory)] = bytes;
  return 0;
}
CALL CuResult cuMemFreeHost(void* memory) {
  BEGIN_GIVING_IN_CONTEXT("cuMemFreeHost")
  const auto found = pinned.find(reinterpret_cast<uint64_t>(memory));
  if (found == pinned.end()) return refuse(kInvalidValue);
  unmapHuge(memory, found->second);
  pinned.erase(found);
  return told;
}
CALL CuResult cuMemHostGetDevicePointer_v2(CuAddress* address, void* memory, uint32_t flags) {
  BEGIN_IN_CONTEXT("cuMemHostGetDevicePointer %u", flags)
  *address = reinterpret_cast<uint64_t>(memory);
  return pinned.count(*address) != 0 ? 0 : kInvalidValue;
}
CALL CuResult cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, size_t bytes, CuStream stream) {
  BEGIN_IN_CONTEXT("cuMemcpyHtoDAsync %zu", bytes)
  const bool isPinned = lies(pinned, reinterpret_cast<uint64_t>(from), bytes);
  if (placeOf(to, bytes) < 0 || bytes == 0) return refuse(kInvalidValue);
  // Copies pageable memory at once.
  std::vector<unsigned char> own;
  if (!isPinned)
    own.assign(static_cast<const unsigned char*>(from),
               static_cast<const unsigned char*>(from) + bytes);
  return submitOnce(stream, [to, from, bytes, own = std::move(own)] {
    std::memcpy(reinterpret_cast<void*>(to), own.empty() ? from : own.data(), bytes);
  });
}
CALL CuResult cuMemcpyDtoHAsync_v2(void* to, CuAddress from, size_t bytes, CuStream stream) {
  BEGIN_IN_CONTEXT("cuMemcpyDtoHAsync %zu", bytes)
  if (placeOf(from, bytes) < 0 || !lies(pinned, reinterpret_cast<uint64_t>(to), bytes))
    return refuse(kInvalidValue);
  return submitOnce(stream, [to, from, bytes] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  });
}
CALL CuResult cuMemcpyAsync(CuAddress to, CuAddress from, size_t bytes, CuStream stream) {
  BEGIN_IN_CONTEXT("cuMemcpyAsync %zu", bytes)
  if (placeOf(from, bytes) < 0 || placeOf(to, bytes) < 0) return refuse(kInvalidValue);
  if (losesCopies && placeOf(from, bytes) != placeOf(to, bytes)) return 0;
  return submitOnce(stream, [to, from, bytes] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
CALL CuResult cuMemcpy2DAsync_v2(const CuCopy2D* of, CuStream stream) {
  BEGIN_IN_CONTEXT("cuMemcpy2DAsync %zu x %zu", of->rowBytes, of->rows)
  const auto isWrong = [&](const CuCopySide& side) {
    return side.kind != kUnifiedMemory || side.pitch < of->rowBytes ||
           placeOf(side.device, (of->rows - 1) * side.pitch + of->rowBytes) < 0;
  };
  if (of->rows == 0 || isWrong(of->from) || isWrong(of->to)) return refuse(kInvalidValue);
  return submitOnce(stream, [copy = *of] {
    for (size_t row = 0; row < copy.rows; ++row)
      std::memcpy(reinterpret_cast<void*>(copy.to.device + row * copy.to.pitch),
                  reinterpret_cast<const void*>(copy.from.device + row * copy.from.pitch),
                  copy.rowBytes);
  });
}
CALL CuResult cuMemsetD8Async(CuAddress to, uint8_t value, size_t bytes, CuStream stream) {
  BEGIN_IN_CONTEXT("cuMemsetD8Async %u %zu", value, bytes)
  if (placeOf(to, bytes) < 0) return refuse(kInvalidValue);
  return submitOnce(stream, [to, value, bytes] {
    stand_in::setBytes(reinterpret_cast<void*>(to), value, bytes);
  });
}
CALL CuResult cuMemsetD8_v2(CuAddress to, uint8_t value, size_t bytes) {
  BEGIN_IN_CONTEXT("cuMemsetD8 %u %zu", value, bytes)
  if (placeOf(to, bytes) < 0) return refuse(kInvalidValue);
  stand_in::setBytes(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
// Programs' own: of nothing that streams do.
CALL CuResult cuMemcpyHtoD_v2(CuAddress to, const void* from, size_t bytes) {
  BEGIN_IN_CONTEXT("cuMemcpyHtoD %zu", bytes)
  if (const CuResult unsafe = checkUnsafe(); unsafe != 0) return unsafe;
  if (placeOf(to, bytes) < 0) return kInvalidValue;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
CALL CuResult cuMemcpyDtoH_v2(void* to, CuAddress from, size_t bytes) {
  BEGIN_IN_CONTEXT("cuMemcpyDtoH %zu", bytes)
  if (const CuResult unsafe = checkUnsafe(); unsafe != 0) return unsafe;
  if (placeOf(from, bytes) < 0) return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
CALL CuResult cuMemGetAllocationGranularity(size_t* bytes, const CuPhysicalProperties* of,
                                            int32_t option) {
  BEGIN("cuMemGetAllocationGranularity device %d type %d, %d", of->location.id, of->location.type,
        option)
  *bytes = kGranularity;
  return 0;
}
CALL CuResult cuMemCreate(CuPhysical* physical, size_t bytes, const CuPhysicalProperties* of,
                          uint64_t flags) {
  BEGIN("cuMemCreate %zu device %d type %d, kinds %d %d, %llu", bytes, of->location.id,
        of->location.type, of->type, of->handleTypes, static_cast<unsigned long long>(flags))
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  if (bytes > kDeviceBytes) return kCuOutOfMemory;
  const std::string name = kFilePrefix + std::to_string(of->location.id);
  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kCuOutOfMemory;
  // Not zero, as memory of a device is not.
  const unsigned char used[64] = {0x5a};
  for (size_t at = 0; at < bytes; at += 4096)
    if (pwrite(file, used, sizeof used, static_cast<off_t>(at)) < 0) return kCuOutOfMemory;
  auto* made = new Physical{file, bytes, of->location.id, of->handleTypes};
  *physical = reinterpret_cast<uint64_t>(made);
  physicals[*physical] = made;
  return 0;
}
CALL CuResult cuMemRelease(CuPhysical physical) {
  BEGIN_GIVING("cuMemRelease")
  const auto found = physicals.find(physical);
  if (found == physicals.end()) return refuse(kInvalidValue);
  found->second->isReleased = true;
  drop(found->second);
  physicals.erase(found);
  return told;
}
CALL CuResult cuMemExportToShareableHandle(void* handle, CuPhysical physical, int32_t handleType,
                                           uint64_t flags) {
  BEGIN("cuMemExportToShareableHandle %d %llu", handleType, static_cast<unsigned long long>(flags))
  const auto found = physicals.find(physical);
  if (found == physicals.end() || handleType != kHandleFile) return kInvalidValue;
  if ((found->second->handleTypes & kHandleFile) == 0) return kInvalidValue;
  const int file = fcntl(found->second->file, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return kCuOutOfMemory;
  *static_cast<int*>(handle) = file;
  return 0;
}
// Imports memory that this process or another one has exported.
CALL CuResult cuMemImportFromShareableHandle(CuPhysical* physical, void* handle,
                                             int32_t handleType) {
  BEGIN("cuMemImportFromShareableHandle %d", handleType)
  const int file = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  struct stat status = {};
  char name[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (handleType != kHandleFile || fstat(file, &status) != 0 ||
      readlink(link.c_str(), name, sizeof name - 1) < 0) {
    return kInvalidValue;
  }
  const char* device = std::strstr(name, kFilePrefix);
  if (device == nullptr) return kInvalidValue;
  auto* made = new Physical{fcntl(file, F_DUPFD_CLOEXEC, 0), static_cast<size_t>(status.st_size),
                            std::atoi(device + std::strlen(kFilePrefix)), kHandleFile};
  *physical = reinterpret_cast<uint64_t>(made);
  physicals[*physical] = made;
  return 0;
}
CALL CuResult cuMemAddressReserve(CuAddress* address, size_t bytes, size_t alignment,
                                  CuAddress wish, uint64_t flags) {
  BEGIN("cuMemAddressReserve %zu %zu %llu %llu", bytes, alignment,
        static_cast<unsigned long long>(wish), static_cast<unsigned long long>(flags))
  void* made = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return kCuOutOfMemory;
  *address = reinterpret_cast<uint64_t>(made);
  reserved[*address] = bytes;
  return 0;
}
CALL CuResult cuMemAddressFree(CuAddress address, size_t bytes) {
  BEGIN_GIVING("cuMemAddressFree %zu", bytes)
  const auto found = reserved.find(address);
  if (found == reserved.end() || found->second != bytes) return refuse(kInvalidValue);
  const auto inside = mapped.lower_bound(address);
  if (inside != mapped.end() && inside->first < address + bytes) return refuse(kInvalidValue);
  munmap(reinterpret_cast<void*>(address), bytes);
  reserved.erase(found);
  return told;
}
CALL CuResult cuMemMap(CuAddress address, size_t bytes, size_t offset, CuPhysical physical,
                       uint64_t flags) {
  BEGIN("cuMemMap %zu %zu %llu", bytes, offset, static_cast<unsigned long long>(flags))
  const auto of = physicals.find(physical);
  if (!lies(reserved, address, bytes) || of == physicals.end() || of->second->bytes != bytes ||
      mapped.count(address) != 0) {
    return kInvalidValue;
  }
  mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
       of->second->file, 0);
  ++of->second->mappings;
  mapped[address] = {of->second, bytes, {}};
  return 0;
}
CALL CuResult cuMemUnmap(CuAddress address, size_t bytes) {
  BEGIN_GIVING("cuMemUnmap %zu", bytes)
  const auto found = mapped.find(address);
  if (found == mapped.end() || found->second.bytes != bytes) return refuse(kInvalidValue);
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  --found->second.physical->mappings;
  drop(found->second.physical);
  mapped.erase(found);
  return told;
}
CALL CuResult cuMemSetAccess(CuAddress address, size_t bytes, const CuAccess* access,
                             size_t count) {
  std::string devices;
  for (size_t i = 0; i < count; ++i) {
    devices += " " + std::to_string(access[i].location.id) + ":" +
               std::to_string(access[i].location.type) + ":" + std::to_string(access[i].flags);
  }
  BEGIN("cuMemSetAccess %zu%s", bytes, devices.c_str())
  const auto found = mapped.find(address);
  if (found == mapped.end() || count == 0) return kInvalidValue;
  for (size_t i = 0; i < count; ++i) found->second.readers.insert(access[i].location.id);
  return 0;
}

CALL CuResult cuMemGetAccess(unsigned long long* flags, const CuLocation* location,
                             CuAddress address) {
  BEGIN("cuMemGetAccess %d", location->id)
  auto after = mapped.upper_bound(address);
  if (after == mapped.begin()) return kInvalidValue;
  --after;
  if (address >= after->first + after->second.bytes) return kInvalidValue;
  *flags = after->second.readers.count(location->id) == 0 ? 0 : kAccessReadWrite;
  return 0;
}

// ---- what the tests tell it, and it tells them --------------------------------------------------

// Resets the stand-in to its first state. Memory that the test did not free is freed.
CALL void standInReset() {
  const std::lock_guard<std::mutex> lock(mutex);
  resetStreams();
  orphans() = 0;
  for (CuModule module : modules) delete module;
  for (const auto* of : {&allocated, &pinned})
    for (const auto& [memory, bytes] : *of)
      unmapHuge(reinterpret_cast<void*>(memory), bytes);
  for (auto& [address, mapping] : mapped) {
    --mapping.physical->mappings;
    drop(mapping.physical);
  }
  for (auto& [physical, of] : physicals) {
    of->isReleased = true;
    of->mappings = 0;
    drop(of);
  }
  for (const auto& [address, bytes] : reserved) munmap(reinterpret_cast<void*>(address), bytes);
  modules.clear();
  allocated.clear();
  allocatedOn.clear();
  foreign.clear();
  pinned.clear();
  registered.clear();
  mapped.clear();
  physicals.clear();
  reserved.clear();
  retained.clear();
  calls.clear();
  callsOf.clear();
  injected = {};
  isDone = false;
  failures = refused = 0;
  cores.clear();
  deviceCount = devicesAtFirst();
  multiprocessors = 16;
  blocksEach = 2;
  mostOfLibraries = INT32_MAX;
  version = 13000;
  major = 9;
  reaches = true;
  exports = true;
  losesCopies = false;
  hasNativeAtomics = true;
}
CALL void standInDevices(int count) {
  deviceCount = count;
}
// How many blocks a device runs at a time.
CALL void standInBlocks(int blocks) {
  multiprocessors = blocks;
  blocksEach = 1;
}
CALL void standInLibraryBlocks(int most) {
  mostOfLibraries = most;
}
// The stream comes to nothing more until it is let go, where `holds` is 0.
CALL void standInHoldStream(CuStream stream, int holds) {
  const std::lock_guard<std::mutex> lock(mutex);
  hold(stream, holds != 0);
}
CALL void standInVersion(int of) {
  version = of;
}
CALL void standInMajor(int of) {
  major = of;
}
CALL void standInReaches(int does) {
  reaches = does != 0;
}
// Whether memory of devices can go to other processes.
CALL void standInExports(int does) {
  exports = does != 0;
}
// Copies from one device to another do nothing.
CALL void standInLosesCopies(int does) {
  losesCopies = does != 0;
}
// Whether devices add to one another's memory atomically.
CALL void standInAtomics(int does) {
  hasNativeAtomics = does != 0;
}
// Sets the behaviour of the rank's cores, a stand_in::Cores.
CALL void standInCores(uint32_t rank, int what) {
  const std::lock_guard<std::mutex> lock(mutex);
  cores[rank] = static_cast<stand_in::Cores>(what);
}
// A tensor that a caller has on the device; reset takes it back.
CALL void* standInTensor(int device, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  void* const made = mapHuge(bytes);
  if (made == nullptr) return nullptr;
  const auto address = reinterpret_cast<uint64_t>(made);
  allocated[address] = bytes;
  allocatedOn[address] = device;
  return made;
}
// The caller has pinned that memory of the host's.
CALL void standInPin(void* memory, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  registered[reinterpret_cast<uint64_t>(memory)] = bytes;
}
// It is in a context that the caller has made.
CALL void standInForeign(void* tensor) {
  const std::lock_guard<std::mutex> lock(mutex);
  foreign.insert(reinterpret_cast<uint64_t>(tensor));
}
// The same in memory that the caller maps, piece by piece, and that devices 0 to `readers` - 1
// reach.
CALL void* standInMapped(int device, size_t bytes, int readers) {
  const std::lock_guard<std::mutex> lock(mutex);
  const size_t whole = (bytes + kPiece - 1) / kPiece * kPiece;
  auto* physical = new Physical{memfd_create("tensor", MFD_CLOEXEC), whole, device, kHandleNone};
  if (ftruncate(physical->file, static_cast<off_t>(whole)) != 0) return nullptr;
  // The piece after the allocation belongs to nobody.
  const size_t taken = whole + kPiece;
  void* made = mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_SHARED, physical->file, 0);
  if (made == MAP_FAILED) return nullptr;
  physical->isReleased = true;
  const auto address = reinterpret_cast<uint64_t>(made);
  reserved[address] = taken;
  for (size_t at = 0; at < whole; at += kPiece, ++physical->mappings) {
    Mapping& piece = mapped[address + at] = {physical, kPiece, {}};
    for (int reader = 0; reader < readers; ++reader) piece.readers.insert(reader);
  }
  return made;
}
// The call of that name and number, from 1, fails; 0: each.
CALL void standInFail(const char* call, int number, int error) {
  const std::lock_guard<std::mutex> lock(mutex);
  injected = {call, number, error};
}
// The call of that name and number, from 1, does not return until it is let go: "" as the name.
// Then it has done nothing, and fails, or it is late and does what it is for.
CALL void standInHold(const char* call, int number) {
  std::unique_lock<std::mutex> lock(mutex);
  held.call = call;
  held.number = number;
  if (!held.call.empty()) held.result = kLaunchFailed;
  held.changed.notify_all();
  if (held.call.empty()) held.changed.wait(lock, [] { return held.calls == 0; });
}
CALL void standInDelay(const char* call, int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  held.call = call;
  held.number = number;
  held.result = 0;
}
// How many calls are held.
CALL int standInHolds() {
  const std::lock_guard<std::mutex> lock(mutex);
  return held.calls;
}
// Whether such a call, where it gives something back, does so and fails all the same.
CALL void standInIsDone(int is) {
  const std::lock_guard<std::mutex> lock(mutex);
  isDone = is != 0;
}
// How many calls have failed that were told to.
CALL int standInFailures() {
  const std::lock_guard<std::mutex> lock(mutex);
  return failures;
}
// How many calls named what was not there, or not any more.
CALL int standInRefused() {
  const std::lock_guard<std::mutex> lock(mutex);
  return refused;
}
CALL int standInCalls() {
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(calls.size());
}
// Valid until the next call.
CALL const char* standInCall(int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  return calls[static_cast<size_t>(number - 1)].c_str();
}
// Things that were made and not given back; `what`, of `bytes`, gets their names.
CALL int standInHeld(char* what, size_t bytes) {
  std::string text;
  const size_t leaving = leavingCount();
  const std::lock_guard<std::mutex> lock(mutex);
  size_t all = 0;
  const auto count = [&](const char* name, size_t number) {
    if (number > 0) text += std::string(text.empty() ? "" : ", ") + std::to_string(number) + name;
    all += number;
  };
  size_t contexts = 0;
  for (const auto& [device, times] : retained) contexts += static_cast<size_t>(times);
  count(" contexts", contexts);
  count(" modules", modules.size());
  count(" streams", streamCount());
  count(" destroyed streams that go on", leaving);
  count(" events", eventCount());
  count(" graphs", graphCount());
  count(" orphaned grids", orphans());
  count(" allocations", allocated.size());
  count(" pinned", pinned.size());
  count(" physical", physicals.size());
  count(" reserved", reserved.size());
  count(" mapped", mapped.size());
  std::snprintf(what, bytes, "%s", text.c_str());
  return static_cast<int>(all);
}

}  // extern "C"
