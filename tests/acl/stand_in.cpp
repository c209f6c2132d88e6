// SPDX-License-Identifier: Apache-2.0
// A stand-in for libascendcl.so, the Ascend runtime, made for tests of the host side: it has the
// calls that Windlass makes, by their public names, over this host's memory. It records each call
// with its arguments, fails the one that it's told to, refuses what the runtime's documents forbid,
// and counts what was not given back. A device runs the work of one stream at a time. What it is told to do, and what it tells, stands at the end.
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/acl/pages.h"
#include "tests/acl/streams.h"

namespace {

constexpr int kRefused = 107000;
constexpr int kTimedOut = 507046;
constexpr int kAicoreException = 507015;
constexpr size_t kGranularity = size_t{64} << 10;  // a driver's is 2 MiB, which takes long to fill

struct Location {
  uint32_t id;
  int32_t type;
};
struct Properties {
  int32_t handleType, allocationType, attributes;
  Location location;
  uint64_t reserved;
};
struct Access {
  int32_t flags;
  Location location;
  uint8_t reserved[12];
};

struct Physical {
  int file;
  size_t bytes;
  int process;
  int holders = 1;  // handles of processes that have it, its own included
};
struct Mapping {
  void* handle = nullptr;
};
struct Stream {
  int device;
  std::deque<std::unique_ptr<stand_in::Work>> work;
};
struct Exported {
  Physical* physical;
  std::set<int> allowed;
  std::set<int> importers;
};

struct Injected {
  int call = 0;
  int error = 0;
};

std::mutex mutex;
std::map<int, std::vector<std::string>> calls;  // by device; -1 before one is set
std::map<int, Injected> injected;
std::map<void*, Physical*> handles;
std::map<void*, size_t> reserved;
std::map<void*, Mapping> mapped;
std::map<void*, size_t> allocated;
std::set<Stream*> streams;
std::map<uint64_t, Exported> exported;
std::map<int, int> setDevices;
std::map<std::pair<int, int>, int> accessLooks;
std::map<int, Stream*> running;       // by device: whose work has begun, and has not ended
std::map<int, uint32_t> coresAtOnce;  // by device; as many as a kernel takes, where it is not there
std::map<int, int> lateWaits;         // by device: that say that time is up, whatever has ended
std::map<int, int> refusedWaits;      // by device: the error of each wait
std::set<int> stuck;
std::atomic<int> holding{-1};  // the device of which no call returns
int initialised = 0;
uint64_t nextHandle = 1;
bool isProcessEach = false;
bool reaches = true;
int looksForAccess = 2;
thread_local int device = -1;
thread_local std::string lastError;

int64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A function that a test puts on a stream.
class Told final : public stand_in::Work {
 public:
  Told(void (*work)(void*, void*), void* context, void* arguments)
      : work_(work), context_(context), arguments_(arguments) {}
  stand_in::Progress goOn(std::string*) override {
    work_(context_, arguments_);
    return stand_in::Progress::kOver;
  }

 private:
  void (*const work_)(void*, void*);
  void* const context_;
  void* const arguments_;
};

int processOf(int of) {
  return isProcessEach ? 1000 + of : 1000;
}

// Records the call; what it shall return, 0 for what it does.
__attribute__((format(printf, 1, 2))) int record(const char* format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::vector<std::string>& own = calls[device];
  own.emplace_back(text);
  const Injected& one = injected[device];
  return static_cast<int>(own.size()) == one.call ? one.error : 0;
}

// Whether the stream's work has its device.
bool begins(Stream* stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  Stream*& runs = running[stream->device];
  if (stuck.count(stream->device) != 0 || (runs != nullptr && runs != stream)) return false;
  runs = stream;
  return true;
}

}  // namespace

uint32_t stand_in::coresOf(void* stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = coresAtOnce.find(static_cast<Stream*>(stream)->device);
  return found == coresAtOnce.end() ? WL_STAND_IN_CORES : found->second;
}

void stand_in::enqueue(void* stream, std::unique_ptr<Work> work) {
  const std::lock_guard<std::mutex> lock(mutex);
  static_cast<Stream*>(stream)->work.push_back(std::move(work));
}

#define CALL __attribute__((visibility("default")))
#define BEGIN(...)                                      \
  while (device >= 0 && holding == device) usleep(500); \
  const std::lock_guard<std::mutex> lock(mutex);        \
  if (const int told = record(__VA_ARGS__); told != 0) return told;

extern "C" {

CALL int aclInit(const char* configuration) {
  BEGIN("aclInit %s", configuration == nullptr ? "null" : configuration)
  return initialised++ == 0 ? 0 : 100002;
}
CALL int aclrtSetDevice(int32_t of) {
  BEGIN("aclrtSetDevice %d", of)
  device = of;
  ++setDevices[of];
  return 0;
}
CALL int aclrtResetDevice(int32_t of) {
  BEGIN("aclrtResetDevice %d", of)
  if (setDevices[of] == 0) return kRefused;
  if (--setDevices[of] == 0) setDevices.erase(of);
  device = -1;
  return 0;
}
CALL int aclrtCreateStream(void** stream) {
  BEGIN("aclrtCreateStream")
  auto* made = new Stream{device, {}};
  streams.insert(made);
  *stream = made;
  return 0;
}
CALL int aclrtDestroyStream(void* stream) {
  BEGIN("aclrtDestroyStream")
  auto* of = static_cast<Stream*>(stream);
  if (streams.erase(of) == 0) return kRefused;
  if (running[of->device] == of) running[of->device] = nullptr;
  delete of;
  return 0;
}
CALL int aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds) {
  auto* of = static_cast<Stream*>(stream);
  {
    BEGIN("aclrtSynchronizeStreamWithTimeout %d", milliseconds)
    if (streams.count(of) == 0 || milliseconds < 1) return kRefused;
    const auto refused = refusedWaits.find(device);
    if (refused != refusedWaits.end()) return refused->second;
  }
  // One thread uses a stream.
  const int64_t end = nowNs() + int64_t{milliseconds} * 1'000'000;
  while (!of->work.empty()) {
    std::string error;
    stand_in::Progress progress = stand_in::Progress::kWaits;
    if (begins(of)) progress = of->work.front()->goOn(&error);
    if (progress == stand_in::Progress::kWaits) sched_yield();
    if (progress == stand_in::Progress::kOver || progress == stand_in::Progress::kBroken) {
      of->work.pop_front();
      const std::lock_guard<std::mutex> lock(mutex);
      running[of->device] = nullptr;
      if (progress == stand_in::Progress::kOver) continue;
      lastError = error;
      return kAicoreException;
    }
    if (nowNs() >= end) return kTimedOut;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  int& late = lateWaits[device];
  return late > 0 && late-- > 0 ? kTimedOut : 0;
}
CALL int aclrtMalloc(void** memory, size_t bytes, int32_t policy) {
  BEGIN("aclrtMalloc %zu %d", bytes, policy)
  *memory = new unsigned char[bytes];
  std::memset(*memory, 0xa5, bytes);
  allocated[*memory] = bytes;
  return 0;
}
CALL int aclrtFree(void* memory) {
  BEGIN("aclrtFree")
  if (allocated.erase(memory) == 0) return kRefused;
  delete[] static_cast<unsigned char*>(memory);
  return 0;
}
CALL int aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, int32_t kind) {
  BEGIN("aclrtMemcpy %zu %zu %d", room, bytes, kind)
  if (bytes > room || kind < 1 || kind > 2) return kRefused;
  std::memcpy(to, from, bytes);
  return 0;
}
CALL int aclrtMemset(void* memory, size_t room, int32_t value, size_t bytes) {
  BEGIN("aclrtMemset %zu %d %zu", room, value, bytes)
  if (bytes > room) return kRefused;
  stand_in::setBytes(memory, static_cast<unsigned char>(value), bytes);
  return 0;
}
CALL int aclrtMemGetAllocationGranularity(Properties* of, int32_t option, size_t* bytes) {
  BEGIN("aclrtMemGetAllocationGranularity device %u type %d, %d", of->location.id,
        of->location.type, option)
  *bytes = kGranularity;
  return 0;
}
CALL int aclrtMallocPhysical(void** handle, size_t bytes, const Properties* of, uint64_t flags) {
  BEGIN("aclrtMallocPhysical %zu device %u type %d, kinds %d %d %d, %llu", bytes, of->location.id,
        of->location.type, of->handleType, of->allocationType, of->attributes,
        static_cast<unsigned long long>(flags))
  if (bytes == 0 || bytes % kGranularity != 0) return kRefused;
  const int file = memfd_create("device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kRefused;
  // Not zero, as memory of a device is not.
  const unsigned char used[64] = {0x5a};
  for (size_t at = 0; at < bytes; at += 4096) {
    if (pwrite(file, used, sizeof used, static_cast<off_t>(at)) < 0) return kRefused;
  }
  auto* made = new Physical{file, bytes, processOf(device)};
  *handle = new char;
  handles[*handle] = made;
  return 0;
}
CALL int aclrtFreePhysical(void* handle) {
  BEGIN("aclrtFreePhysical")
  const auto found = handles.find(handle);
  if (found == handles.end()) return kRefused;
  for (const auto& [address, mapping] : mapped) {
    if (mapping.handle == handle) return kRefused;
  }
  Physical* of = found->second;
  handles.erase(found);
  delete static_cast<char*>(handle);
  if (--of->holders == 0) {
    close(of->file);
    for (auto at = exported.begin(); at != exported.end();)
      at = at->second.physical == of ? exported.erase(at) : std::next(at);
    delete of;
  }
  return 0;
}
CALL int aclrtReserveMemAddress(void** address, size_t bytes, size_t alignment, void* wish,
                                uint64_t flags) {
  const char* const named = wish == nullptr ? "null" : "one";
  BEGIN("aclrtReserveMemAddress %zu %zu %s %llu", bytes, alignment, named,
        static_cast<unsigned long long>(flags))
  *address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*address == MAP_FAILED) return kRefused;
  reserved[*address] = bytes;
  return 0;
}
CALL int aclrtReleaseMemAddress(void* address) {
  BEGIN("aclrtReleaseMemAddress")
  const auto found = reserved.find(address);
  if (found == reserved.end() || mapped.count(address) != 0) return kRefused;
  munmap(address, found->second);
  reserved.erase(found);
  return 0;
}
CALL int aclrtMapMem(void* address, size_t bytes, size_t offset, void* handle, uint64_t flags) {
  BEGIN("aclrtMapMem %zu %zu %llu", bytes, offset, static_cast<unsigned long long>(flags))
  const auto of = handles.find(handle);
  if (reserved.count(address) == 0 || reserved[address] != bytes || of == handles.end() ||
      of->second->bytes != bytes || mapped.count(address) != 0) {
    return kRefused;
  }
  mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, of->second->file, 0);
  mapped[address] = {handle};
  return 0;
}
CALL int aclrtUnmapMem(void* address) {
  BEGIN("aclrtUnmapMem")
  if (mapped.erase(address) == 0) return kRefused;
  mmap(address, reserved[address], PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return 0;
}
CALL int aclrtMemSetAccess(void* address, size_t bytes, Access* access, size_t count) {
  std::string devices;
  for (size_t i = 0; i < count; ++i) {
    devices += " " + std::to_string(access[i].location.id) + ":" +
               std::to_string(access[i].location.type) + ":" + std::to_string(access[i].flags);
  }
  BEGIN("aclrtMemSetAccess %zu%s", bytes, devices.c_str())
  return mapped.count(address) != 0 && count > 0 ? 0 : kRefused;
}
CALL int aclrtMemExportToShareableHandle(void* handle, int32_t type, uint64_t flags,
                                         uint64_t* shareable) {
  BEGIN("aclrtMemExportToShareableHandle %d %llu", type, static_cast<unsigned long long>(flags))
  const auto found = handles.find(handle);
  if (found == handles.end()) return kRefused;
  // Reads the bytes that a peer could read from now on.
  unsigned char first[64];
  for (size_t at = 0; at < found->second->bytes; at += 4096) {
    if (pread(found->second->file, first, sizeof first, static_cast<off_t>(at)) < 0 ||
        first[0] != 0) {
      return kRefused;
    }
  }
  *shareable = nextHandle++;
  exported[*shareable] = {found->second, {}, {}};
  return 0;
}
CALL int aclrtMemSetPidToShareableHandle(uint64_t shareable, int32_t* processes, size_t count) {
  std::string named;
  for (size_t i = 0; i < count; ++i) named += " " + std::to_string(processes[i]);
  BEGIN("aclrtMemSetPidToShareableHandle%s", named.c_str())
  const auto found = exported.find(shareable);
  if (found == exported.end()) return kRefused;
  found->second.allowed.insert(processes, processes + count);
  return 0;
}
CALL int aclrtDeviceGetBareTgid(int32_t* process) {
  BEGIN("aclrtDeviceGetBareTgid")
  *process = processOf(device);
  return 0;
}
CALL int aclrtMemImportFromShareableHandle(uint64_t shareable, int32_t of, void** handle) {
  BEGIN("aclrtMemImportFromShareableHandle %d", of)
  const auto found = exported.find(shareable);
  const int own = processOf(device);
  if (found == exported.end() || found->second.physical->process == own ||
      found->second.allowed.count(own) == 0 || !found->second.importers.insert(own).second) {
    return kRefused;
  }
  *handle = new char;
  handles[*handle] = found->second.physical;
  ++found->second.physical->holders;
  return 0;
}
CALL int aclrtDeviceCanAccessPeer(int32_t* can, int32_t of, int32_t peer) {
  BEGIN("aclrtDeviceCanAccessPeer %d %d", of, peer)
  *can = reaches ? 1 : 0;
  return of == peer ? kRefused : 0;
}
CALL int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
  BEGIN("aclrtDeviceEnablePeerAccess %d %u", peer, flags)
  accessLooks[{device, peer}] = looksForAccess;
  return 0;
}
CALL int aclrtDevicePeerAccessStatus(int32_t of, int32_t peer, int32_t* status) {
  BEGIN("aclrtDevicePeerAccessStatus %d %d", of, peer)
  const auto found = accessLooks.find({of, peer});
  if (found == accessLooks.end()) return kRefused;
  *status = --found->second <= 0 ? 1 : 0;
  return 0;
}
CALL const char* aclGetRecentErrMsg() {
  return lastError.empty() ? "EZ9999: the stand-in was told to fail" : lastError.c_str();
}

// ---- what the tests tell it, and it tells them --------------------------------------------------

// Resets the stand-in to its first state. Memory that the test did not free is freed.
CALL void standInReset() {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [address, bytes] : reserved) munmap(address, bytes);
  for (const auto& [memory, bytes] : allocated) delete[] static_cast<unsigned char*>(memory);
  for (const auto& [handle, of] : handles) {
    delete static_cast<char*>(handle);
    if (--of->holders > 0) continue;
    close(of->file);
    delete of;
  }
  for (Stream* stream : streams) delete stream;
  reserved.clear();
  mapped.clear();
  allocated.clear();
  handles.clear();
  streams.clear();
  exported.clear();
  setDevices.clear();
  initialised = 0;
  calls.clear();
  injected.clear();
  accessLooks.clear();
  running.clear();
  coresAtOnce.clear();
  lateWaits.clear();
  refusedWaits.clear();
  stuck.clear();
  holding = -1;
  isProcessEach = false;
  reaches = true;
  looksForAccess = 2;
}
// Each device is in a process of its own.
CALL void standInProcesses() {
  isProcessEach = true;
}
CALL void standInReaches(int does) {
  reaches = does != 0;
}
// Whether kernels of the device go on.
CALL void standInIsStuck(int on, int is) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (is != 0) {
    stuck.insert(on);
  } else {
    stuck.erase(on);
  }
}
// So many waits for the device say that time is up, though its kernel has ended.
CALL void standInIsLate(int on, int waits) {
  const std::lock_guard<std::mutex> lock(mutex);
  lateWaits[on] = waits;
}
// Each wait for the device fails from here on, and runs nothing.
CALL void standInRefuseWaits(int on, int error) {
  const std::lock_guard<std::mutex> lock(mutex);
  refusedWaits[on] = error;
}
// The device runs so many cores of a kernel at a time, and others after them.
CALL void standInCores(int on, int cores) {
  const std::lock_guard<std::mutex> lock(mutex);
  coresAtOnce[on] = static_cast<uint32_t>(cores);
}
// No call returns that is made on the device from here on; -1: all do.
CALL void standInHold(int on) {
  holding = on;
}
// The call of that number, from 1, that is made on the device fails.
CALL void standInFail(int on, int call, int error) {
  const std::lock_guard<std::mutex> lock(mutex);
  injected[on] = {call, error};
}
CALL int standInCalls(int on) {
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(calls[on].size());
}
// Valid until the next call on that device.
CALL const char* standInCall(int on, int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  return calls[on][static_cast<size_t>(number - 1)].c_str();
}
// Things that were made and not given back.
CALL int standInHeld() {
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(handles.size() + reserved.size() + mapped.size() + allocated.size() +
                          streams.size() + setDevices.size());
}
// Puts work on a stream, which runs once it is waited for.
CALL void standInEnqueue(void* stream, void (*work)(void*, void*), void* context, void* arguments) {
  const std::lock_guard<std::mutex> lock(mutex);
  static_cast<Stream*>(stream)->work.push_back(
      std::make_unique<Told>(work, context, arguments));
}

}  // extern "C"
