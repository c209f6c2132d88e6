// SPDX-License-Identifier: Apache-2.0
// C ABI: kernel libraries and launches. Checks the arguments against the kernel's table before it
// sends anything. Errors name the kernel, rank and argument.
#include "native/core/launch/launch.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "native/abi/buffers.h"
#include "native/abi/handles.h"
#include "native/base/open_file.h"
#include "native/hash/xxh64.h"

using namespace windlass;

namespace {

// A wl_kernel_library_t is a KernelLibrary. Both live as long as the process.
const KernelLibrary& of(const wl_kernel_library_t* library) {
  return *reinterpret_cast<const KernelLibrary*>(library);
}

// Computes a fingerprint that identifies the build of a library in every process.
Code fingerprintOf(const char* path, uint64_t* fingerprint, wl_error_t* error) {
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Xxh64 hash(0);
  char bytes[16384];
  ssize_t count = file ? 1 : -1;
  while (count > 0) {
    count = read(file.number(), bytes, sizeof bytes);
    if (count > 0) hash.update(bytes, static_cast<uint64_t>(count));
  }
  if (count < 0) {
    const int reason = errno;
    return fail(error, reason == ENOENT || reason == ENOTDIR ? WL_INVALID_ARGUMENT : WL_RESOURCE,
                "library %s: %s", path, std::strerror(reason));
  }
  *fingerprint = hash.value();
  return WL_OK;
}

const LoadedKernel* kernelOf(const wl_kernel_library_t* library, int32_t kernel) {
  if (library == nullptr || kernel < 0 || static_cast<uint32_t>(kernel) >= of(library).count())
    return nullptr;
  return &of(library).kernel(static_cast<uint32_t>(kernel));
}

// Decodes the arguments of one launch and checks them against the kernel's table.
class Arguments {
 public:
  Arguments(const wl_comm_t& comm, const LoadedKernel& kernel, const int64_t* words, uint64_t count,
            wl_error_t* error)
      : comm_(comm),
        kernel_(kernel),
        name_(kernel, comm.comm.rank()),
        misuses_(kernel),
        stated_(kernel),
        at_(words),
        end_(words + count),
        error_(error) {}

  Code read() {
    const uint32_t count = kernel_.entry->argumentCount;
    for (number_ = 0; number_ < count; ++number_) {
      if (at_ == end_) return wrongCount(number_);
      if (Code code = readOne(kernel_.entry->arguments[number_])) return code;
    }
    uint32_t given = count;
    for (; at_ < end_; ++given) {
      if (!skipOne()) break;
    }
    return at_ == end_ && given == count ? WL_OK : wrongCount(given);
  }

  // Launches the kernel with the arguments that read() has decoded.
  Code launch(Comm& comm, int64_t deadlineNs) const {
    return windlass::launch(comm, {&kernel_, arguments_, &misuses_, &stated_, bytes_, deadlineNs,
                                   error_});
  }

 private:
  [[gnu::cold, gnu::format(printf, 2, 3)]] Code refuse(const char* format, ...) {
    char what[768];
    va_list values;
    va_start(values, format);
    std::vsnprintf(what, sizeof what, format, values);
    va_end(values);
    return fail(error_, WL_INVALID_ARGUMENT, "%s: argument %u, %s, %s", name_.text, number_,
                kernel_.entry->arguments[number_].name, what);
  }

  [[gnu::cold]] Code wrongCount(uint32_t given) {
    return fail(error_, WL_INVALID_ARGUMENT, "%s: it is given %u arguments, and takes %u: %s",
                name_.text, given, kernel_.entry->argumentCount, kernel_.signature.c_str());
  }

  bool take(uint64_t count, const int64_t** words) {
    if (static_cast<uint64_t>(end_ - at_) < count) return false;
    *words = at_;
    at_ += count;
    return true;
  }
  // Number of a tensor's words before its shape.
  static constexpr uint64_t kTensorWords = 6;

  bool skipOne() {
    const int64_t* head = nullptr;
    if (at_[0] == WL_ARGUMENT_SCALAR) return take(3, &head);
    if (!take(kTensorWords, &head) || head[5] < 0 || head[5] > WL_MAX_DIMS) return false;
    return take(2 * static_cast<uint64_t>(head[5]), &head);
  }

  Code readOne(const ArgumentEntry& entry) {
    const int64_t* words = at_;
    if (!skipOne()) return refuse("is cut short");
    const bool isScalar = words[0] == WL_ARGUMENT_SCALAR;
    if (!isScalar && words[0] != WL_ARGUMENT_TENSOR) return refuse("is of an unknown kind");
    if (words[1] < 0 || words[1] >= WL_DTYPE_COUNT) return refuse("has an unknown dtype");
    const auto dtype = static_cast<int32_t>(words[1]);
    const bool takesScalar = entry.kind == ArgumentEntry::kScalar;
    if (isScalar != takesScalar) {
      return refuse(takesScalar ? "is a tensor, and must be a scalar %s"
                                : "is a scalar, and must be a tensor",
                    dtypeName(entry.dtype));
    }
    if (entry.dtype != ArgumentEntry::kAny && dtype != entry.dtype)
      return refuse("is %s, and must be %s", dtypeName(dtype), dtypeName(entry.dtype));
    Argument& argument = arguments_[number_];
    argument.dtype = static_cast<DType>(dtype);
    argument.number = number_;
    argument.isScalar = isScalar;
    argument.misuses = &misuses_;
    if (isScalar) {
      argument.word = static_cast<uint64_t>(words[2]);
      stated_.scalar(number_, argument.word);
      return WL_OK;
    }
    stated_.beginTensor(number_);
    stated_.add(static_cast<uint64_t>(dtype));
    return readTensor(entry, words, &argument);
  }

  Code readTensor(const ArgumentEntry& entry, const int64_t* words, Argument* argument) {
    const auto ndim = static_cast<uint32_t>(words[5]);
    const int64_t* shape = words + kTensorWords;
    const int64_t* strides = shape + ndim;
    argument->ndim = ndim;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < ndim; ++d) {
      if (shape[d] < 0) return refuse("has size %lld", text(shape[d]));
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(shape[d]), &elements))
        return refuse("has more than 2^64 elements");
      argument->shape[d] = shape[d];
    }
    argument->elements = elements;
    stated_.add(ndim);
    for (uint32_t d = 0; d < ndim; ++d) stated_.add(static_cast<uint64_t>(shape[d]));
    uint64_t step = 1;
    for (uint32_t d = ndim; d-- > 0;) {
      if (elements > 0 && shape[d] > 1 && static_cast<uint64_t>(strides[d]) != step)
        return refuse("is not contiguous; copy it to a contiguous tensor first");
      step *= static_cast<uint64_t>(shape[d]);
    }
    if (entry.isWritten != 0 && words[4] != 0)
      return refuse("is read-only, and the kernel writes it");
    if (Code code = checkSize(entry, *argument)) return code;
    const auto dtype = static_cast<int32_t>(argument->dtype);
    uint64_t bytes = 0;
    wl_error_t why = blankError();
    auto* data = reinterpret_cast<void*>(words[2]);
    if (bytesOf(1, elements, dtype, &bytes, &why) != WL_OK ||
        checkBuffer(data, bytes, dtype, "it", &why) != WL_OK) {
      return refuse("can't be: %s", why.message);
    }
    bytes_ += bytes;
    argument->word = reinterpret_cast<uint64_t>(data);
    argument->stride = 0;
    if (entry.kind != ArgumentEntry::kDistributed) return WL_OK;
    return findInWindow(reinterpret_cast<const wl_window_t*>(words[3]), bytes, argument);
  }

  Code checkSize(const ArgumentEntry& entry, const Argument& argument) {
    if (entry.ndim != ArgumentEntry::kAny && argument.ndim != static_cast<uint32_t>(entry.ndim))
      return refuse("has %u dimensions, and must have %d", argument.ndim, entry.ndim);
    if (entry.like == ArgumentEntry::kAny) return WL_OK;
    const Argument& like = arguments_[entry.like];
    const char* of = kernel_.entry->arguments[entry.like].name;
    if (entry.dtype == ArgumentEntry::kAny && argument.dtype != like.dtype)
      return refuse("is %s, and %s is %s; they must agree", nameOf(argument.dtype), of,
                    nameOf(like.dtype));
    const uint64_t ranks = comm_.comm.group().ranks();
    uint64_t wanted = 0;
    const bool fits =
        !__builtin_mul_overflow(like.elements, entry.timesRanks != 0 ? ranks : 1, &wanted);
    if (fits && argument.elements == wanted) return WL_OK;
    return refuse("has %llu elements, and must have %s %s has: %llu%s",
                  text(argument.elements),
                  entry.timesRanks != 0 ? "for each rank as many as" : "as many as", of,
                  text(like.elements), entry.timesRanks != 0 ? " each" : "");
  }

  Code findInWindow(const wl_window_t* window, uint64_t bytes, Argument* argument) {
    if (window == nullptr) {
      return refuse(
          "is memory that only this rank reaches; it must lie in a window, where peers reach it");
    }
    if (window->group != comm_.comm.groupPointer())
      return refuse("lies in a window of another communicator");
    const uint32_t rank = comm_.comm.rank();
    const uint64_t own = reinterpret_cast<uint64_t>(window->window->address(rank));
    const uint64_t offset = argument->word - own;
    if (window->window->resolve(rank, offset, bytes) == nullptr)
      return refuse("reaches outside this rank's part of its window");
    argument->word = reinterpret_cast<uint64_t>(window->window->address(0)) + offset;
    argument->stride = window->window->stride();
    // Identifies the window equally in every process, or in the single process of all ranks.
    const Group& group = comm_.comm.group();
    const bool spans = group.config().spansProcesses;
    const uint32_t named = spans ? rank : 0;
    if (window->window->bytes() > 0) {
      stated_.add(spans && window->window->parts() != nullptr
                      ? window->window->name()
                      : group.placeOf(named, window->window->address(named), 0).word);
    }
    stated_.add(offset);
    return WL_OK;
  }

  const wl_comm_t& comm_;
  const LoadedKernel& kernel_;
  const LaunchName name_;
  LaunchMisuses misuses_;
  StatedArguments stated_;
  const int64_t* at_;
  const int64_t* const end_;
  wl_error_t* const error_;
  uint32_t number_ = 0;
  uint64_t bytes_ = 0;
  Argument arguments_[kMostArguments + 1] = {};
};

}  // namespace

extern "C" {

int32_t wl_kernel_library_load(const char* path, const char* target,
                               wl_kernel_library_t** library, wl_error_t* error) {
  if (Code code = checkNotNull(path, "path", error)) return code;
  if (Code code = checkNotNull(target, "target", error)) return code;
  if (Code code = checkOut(library, "library", error)) return code;
  uint64_t fingerprint = 0;
  if (Code code = fingerprintOf(path, &fingerprint, error)) return code;
  const auto load = [&] {
    const KernelLibrary* loaded = nullptr;
    const Code code = KernelLibrary::load(path, fingerprint, target, &loaded, error);
    auto* handle = const_cast<KernelLibrary*>(loaded);
    *library = reinterpret_cast<wl_kernel_library_t*>(handle);
    return code;
  };
  return withMemory(error, load, "library %s: no memory is left", path);
}

int32_t wl_kernel_count(const wl_kernel_library_t* library) {
  return library == nullptr ? 0 : static_cast<int32_t>(of(library).count());
}

const char* wl_kernel_name(const wl_kernel_library_t* library, int32_t kernel) {
  const LoadedKernel* found = kernelOf(library, kernel);
  return found == nullptr ? nullptr : found->entry->name;
}

const char* wl_kernel_signature(const wl_kernel_library_t* library, int32_t kernel) {
  const LoadedKernel* found = kernelOf(library, kernel);
  return found == nullptr ? nullptr : found->signature.c_str();
}

int32_t wl_launch(wl_comm_t* comm, const wl_kernel_library_t* library, int32_t kernel,
                  const int64_t* arguments, uint64_t words, int64_t deadline_ns,
                  wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error)) return code;
  if (Code code = checkNotNull(library, "library", error)) return code;
  const LoadedKernel* found = kernelOf(library, kernel);
  if (found == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT, "launch on rank %u: the library has %u kernels, and "
                "no number %d", comm->comm.rank(), of(library).count(), kernel);
  }
  if (Code code = words > 0 ? checkNotNull(arguments, "arguments", error) : WL_OK) return code;
  Arguments read(*comm, *found, arguments, words, error);
  if (Code code = read.read()) return code;
  return read.launch(comm->comm, deadline_ns);
}

}  // extern "C"
