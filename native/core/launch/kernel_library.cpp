// SPDX-License-Identifier: Apache-2.0
#include "native/core/launch/kernel_library.h"

#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "native/base/dtype.h"
#include "native/base/mixed.h"
#include "native/base/target.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// Checks the table of an untrusted file.
class Checker {
 public:
  Checker(const char* path, const SharedLibrary& library, wl_error_t* error)
      : path_(path), library_(library), error_(error) {}

  Code check(const KernelTable* table, const char* target) {
    if (!holds(table, 1)) {
      return refuse(WL_INVALID_ARGUMENT, "no symbol %s; name its kernels by "
                    "WINDLASS_KERNEL_LIBRARY, and build it by windlass_add_kernel",
                    kKernelTableSymbol);
    }
    if (table->magic != kKernelTableMagic)
      return refuse(WL_INVALID_ARGUMENT, "%s is no table of kernels", kKernelTableSymbol);
    if (table->version != kKernelTableVersion) {
      return refuse(WL_UNSUPPORTED, "its table is of version %u, and this Windlass reads %u; "
                    "build it anew", table->version, kKernelTableVersion);
    }
    if (table->target[sizeof table->target - 1] != 0 || !isWord(table->target))
      return refuse(WL_INVALID_ARGUMENT, "the name of its target is none");
    if (std::strcmp(table->target, target) != 0) {
      return refuse(WL_UNSUPPORTED, "it is built for target %s, and was to be for %s; load the "
                    "file of %s, which windlass_add_kernel(... TARGETS %s) builds",
                    table->target, target, target, target);
    }
    if (std::strcmp(table->target, kTarget.limits.name) != 0) {
      return refuse(WL_UNSUPPORTED, "it is built for target %s, and this process runs %s; load "
                    "the file of %s, or start the process with WINDLASS_TARGET=%s",
                    table->target, kTarget.limits.name, kTarget.limits.name, table->target);
    }
    if (table->fingerprint != WINDLASS_KERNEL_FINGERPRINT) {
      return refuse(WL_UNSUPPORTED, "it is built with the headers of another Windlass (%016llx), "
                    "and this one's are %016llx; build it anew with these",
                    text(table->fingerprint), text(uint64_t{WINDLASS_KERNEL_FINGERPRINT}));
    }
    if (table->kernelCount == 0 || table->kernelCount > kMostKernels ||
        !holds(table->kernels, table->kernelCount)) {
      return refuse(WL_INVALID_ARGUMENT, "its table names %u kernels where it has none",
                    table->kernelCount);
    }
    for (uint32_t i = 0; i < table->kernelCount; ++i) {
      if (Code code = checkKernel(table->kernels, i); code != WL_OK) return code;
    }
    return checkImage(*table);
  }

 private:
  [[gnu::cold, gnu::format(printf, 3, 4)]] Code refuse(Code code, const char* format, ...) {
    char what[512];
    va_list values;
    va_start(values, format);
    std::vsnprintf(what, sizeof what, format, values);
    va_end(values);
    return fail(error_, code, "library %s: %s", path_, what);
  }

  template <class T>
  bool holds(const T* first, uint64_t count) const {
    return reinterpret_cast<uintptr_t>(first) % alignof(T) == 0 &&
           library_.holds(first, count * sizeof(T));
  }

  template <class Function>
  bool hasCode(Function* function) const {
    return library_.holdsCode(reinterpret_cast<const void*>(function));
  }

  static bool isWord(const char* text) {
    if (*text == 0) return false;
    for (; *text != 0; ++text)
      if (*text != '_' && std::isalnum(static_cast<unsigned char>(*text)) == 0) return false;
    return true;
  }

  // If GPUs run the kernels, checks that the image is complete: the driver trusts the length in its
  // header. Otherwise checks that there is no image.
  Code checkImage(const KernelTable& table) {
    if (!kTarget.hasGpus()) {
      if (table.image == nullptr && table.imageBytes == nullptr) return WL_OK;
      return refuse(WL_INVALID_ARGUMENT, "it has kernels for GPUs, and its target has none");
    }
    const bool isThere = holds(table.imageBytes, 1) && *table.imageBytes >= sizeof(FatBinary) &&
                         holds(table.image, *table.imageBytes);
    FatBinary header = {};
    if (isThere) std::memcpy(&header, table.image, sizeof header);
    const uint64_t room = isThere ? *table.imageBytes : 0;
    if (header.magic != kFatBinaryMagic || header.headerBytes < sizeof header ||
        header.headerBytes > room || header.bytes > room - header.headerBytes) {
      return refuse(WL_INVALID_ARGUMENT, "it has no whole file of kernels for GPUs; build it by "
                    "windlass_add_kernel(... TARGETS %s)", table.target);
    }
    return WL_OK;
  }

  // Returns true for a valid name that fits messages.
  bool isName(const char* name) const {
    for (uint32_t length = 0; length < kMostNameBytes; ++length) {
      if (!library_.holds(name + length, 1)) return false;
      if (name[length] == 0) return isWord(name);
    }
    return false;
  }

  Code checkKernel(const KernelEntry* kernels, uint32_t index) {
    const KernelEntry& kernel = kernels[index];
    if (!isName(kernel.name)) {
      return refuse(WL_INVALID_ARGUMENT, "kernel %u has no name of letters, digits and _, of at "
                    "most %u bytes", index, kMostNameBytes - 1);
    }
    for (uint32_t other = 0; other < index; ++other) {
      if (std::strcmp(kernels[other].name, kernel.name) == 0)
        return refuse(WL_INVALID_ARGUMENT, "two kernels are called %s", kernel.name);
    }
    if (!hasCode(kernel.refuses) || !hasCode(kernel.plan) || !hasCode(kernel.phases) ||
        !hasCode(kernel.blocks) || !hasCode(kernel.needs) || !hasCode(kernel.leavesAfter) ||
        !hasCode(kernel.phase) || !hasCode(kernel.goOn)) {
      return refuse(WL_INVALID_ARGUMENT, "kernel %s lacks a function", kernel.name);
    }
    if (!hasSession(kernel)) {
      return refuse(WL_INVALID_ARGUMENT, "kernel %s lacks a function of its session, or has one "
                    "where its target checks nothing", kernel.name);
    }
    if (kernel.argumentCount == 0 || kernel.argumentCount > kMostArguments ||
        !holds(kernel.arguments, kernel.argumentCount)) {
      return refuse(WL_INVALID_ARGUMENT, "kernel %s names %u arguments; it has 1 to %u",
                    kernel.name, kernel.argumentCount, kMostArguments);
    }
    for (uint32_t i = 0; i < kernel.argumentCount; ++i) {
      if (Code code = checkArgument(kernel, i); code != WL_OK) return code;
    }
    return WL_OK;
  }

  // Checks the session: required if ranks are devices with checked kernels, otherwise forbidden.
  bool hasSession(const KernelEntry& kernel) const {
    const SessionEntry* session = kernel.session;
    if (!kTarget.limits.isolatesRanks) return session == nullptr;
    return holds(session, 1) && hasCode(session->open) && hasCode(session->verdict) &&
           hasCode(session->close);
  }

  Code checkArgument(const KernelEntry& kernel, uint32_t index) {
    const ArgumentEntry& argument = kernel.arguments[index];
    const auto wrong = [&](const char* what) {
      return refuse(WL_INVALID_ARGUMENT, "kernel %s, argument %u: %s", kernel.name, index, what);
    };
    if (!isName(argument.name)) return wrong("no name of letters, digits and _");
    for (uint32_t other = 0; other < index; ++other) {
      if (std::strcmp(kernel.arguments[other].name, argument.name) == 0)
        return wrong("an earlier one has its name");
    }
    if (argument.kind > ArgumentEntry::kScalar) return wrong("its kind is unknown");
    const bool isAny = argument.dtype == ArgumentEntry::kAny;
    if (!isAny && (argument.dtype < 0 || argument.dtype >= kDTypeCount))
      return wrong("its dtype is unknown");
    if (argument.kind == ArgumentEntry::kScalar) {
      const auto dtype = static_cast<DType>(argument.dtype);
      const bool isOne = dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kF32 ||
                         dtype == DType::kF64;
      if (isAny || !isOne) return wrong("a scalar is i32, i64, f32 or f64");
      const bool isPlain = argument.isWritten == 0 && argument.ndim == ArgumentEntry::kAny &&
                           argument.like == ArgumentEntry::kAny && argument.timesRanks == 0;
      return isPlain ? WL_OK : wrong("a scalar has no size, and is not written");
    }
    if (argument.isWritten > 1 || argument.timesRanks > 1) return wrong("a flag is 0 or 1");
    if (argument.ndim != ArgumentEntry::kAny &&
        (argument.ndim < 0 || argument.ndim > static_cast<int32_t>(kMaxDims))) {
      return wrong("its number of dimensions is none");
    }
    if (argument.like == ArgumentEntry::kAny)
      return argument.timesRanks == 0 ? WL_OK : wrong("its size is a multiple of none");
    const bool isEarlier = argument.like >= 0 && argument.like < static_cast<int32_t>(index);
    return isEarlier && kernel.arguments[argument.like].kind != ArgumentEntry::kScalar
               ? WL_OK
               : wrong("the one that decides its size is no earlier tensor");
  }

  const char* path_;
  const SharedLibrary& library_;
  wl_error_t* error_;
};

std::string signatureOf(const KernelEntry& kernel) {
  std::string text = kernel.name;
  for (uint32_t i = 0; i < kernel.argumentCount; ++i) {
    const ArgumentEntry& argument = kernel.arguments[i];
    text += i == 0 ? "(" : ", ";
    if (argument.kind == ArgumentEntry::kDistributed) text += "distributed ";
    if (argument.kind == ArgumentEntry::kScalar) text += "scalar ";
    if (argument.isWritten != 0) text += "written ";
    text += argument.dtype == ArgumentEntry::kAny ? "any" : dtypeName(argument.dtype);
    text += ' ';
    text += argument.name;
  }
  return text + ")";
}

struct Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<const KernelLibrary>> libraries;
};

// Libraries that this process has loaded. They are never freed, because they stay in use until the
// process ends.
Loaded& loaded() {
  static Loaded& all = *new Loaded;
  return all;
}

}  // namespace

Code KernelLibrary::load(const std::string& path, uint64_t contents, const char* target,
                         const KernelLibrary** library, wl_error_t* error) {
  SharedLibrary shared;
  if (Code code = SharedLibrary::load(path, &shared, error); code != WL_OK) return code;
  const auto* table = static_cast<const KernelTable*>(shared.find(kKernelTableSymbol));
  Checker checker(path.c_str(), shared, error);
  if (Code code = checker.check(table, target); code != WL_OK) return code;
  Loaded& all = loaded();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const auto& each : all.libraries) {
    if (each->table_ != table) continue;
    if (each->contents_ != contents) {
      return fail(error, WL_UNSUPPORTED,
                  "library %s has changed since this process loaded it, and a process keeps what "
                  "it has loaded; start a new one, or give the new library another name",
                  path.c_str());
    }
    *library = each.get();
    return WL_OK;
  }
  std::unique_ptr<KernelLibrary> made(new KernelLibrary);
  made->table_ = table;
  made->contents_ = contents;
  for (uint32_t i = 0; i < table->kernelCount; ++i) {
    const KernelEntry& entry = table->kernels[i];
    uint64_t id = mixed(0, contents);
    for (const char* at = entry.name; *at != 0; ++at) id = mixed(id, static_cast<uint64_t>(*at));
    made->kernels_.push_back({&entry, table->image, i, static_cast<uint32_t>(id),
                              signatureOf(entry)});
  }
  *library = made.get();
  all.libraries.push_back(std::move(made));
  return WL_OK;
}

const LoadedKernel* loadedKernel(uint32_t id) {
  Loaded& all = loaded();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const auto& library : all.libraries) {
    for (uint32_t i = 0; i < library->count(); ++i)
      if (library->kernel(i).id == id) return &library->kernel(i);
  }
  return nullptr;
}

}  // namespace windlass
