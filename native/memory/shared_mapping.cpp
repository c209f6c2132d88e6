// SPDX-License-Identifier: Apache-2.0
#include "native/memory/shared_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "native/base/text.h"
#include "native/memory/memory.h"
#include "native/memory/shared_memory.h"

namespace windlass {

SharedMapping::~SharedMapping() {
  if (memory_ != nullptr) unmapMemory(memory_, bytes_);
}

Code SharedMapping::make(uint64_t bytes, wl_error_t* error, uint64_t later) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  int32_t made = -1;
  if (Code code = shareMemory(bytes, &made, error, later); code != WL_OK) return code;
  return mapWhole(OpenFile(made), PROT_READ | PROT_WRITE, error);
}

Code SharedMapping::map(int32_t file, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  OpenFile own(fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!own) {
    return errno == EBADF
               ? fail(error, WL_INVALID_ARGUMENT,
                      "file %d is not open; map what wl_group_share made", file)
               : fail(error, WL_RESOURCE, "cannot keep file %d open: %s", file,
                      std::strerror(errno));
  }
  return mapWhole(std::move(own), PROT_READ | PROT_WRITE, error);
}

Code SharedMapping::map(const wl_process_t& owner, int32_t number, wl_error_t* error,
                        const uint64_t* inode, int flags) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) return WL_OK;
  OpenFile opened;
  if (Code code = openShared(owner, number, &opened, error, flags); code != WL_OK) return code;
  if (inode != nullptr && inodeOf(opened.number()) != *inode) {
    return fail(error, WL_RESOURCE,
                "process %d has closed the memory that it shared as %d, and has other memory there",
                owner.pid, number);
  }
  const int protection = flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;
  return mapWhole(std::move(opened), protection, error);
}

Code SharedMapping::mapWhole(OpenFile file, int protection, wl_error_t* error) {
  const int seals = fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "the file may shrink, which would end whoever touches it; map what wl_group_share "
                "made");
  }
  struct stat found = {};
  if (fstat(file.number(), &found) != 0 || found.st_size <= 0)
    return fail(error, WL_INVALID_ARGUMENT, "the file is empty");
  const auto size = static_cast<uint64_t>(found.st_size);
  void* mapped = mapAligned(file.number(), size, protection);
  if (mapped == MAP_FAILED) {
    return fail(error, WL_RESOURCE, "cannot map %llu bytes of memory that processes share: %s",
                text(size), std::strerror(errno));
  }
  memory_ = mapped;
  bytes_ = size;
  file_ = std::move(file);
  return WL_OK;
}

int32_t SharedMapping::file() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return file_.number();
}

SharedFile SharedMapping::named() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return file_ ? SharedFile{file_.number(), inodeOf(file_.number())} : SharedFile{};
}

void SharedMapping::closeFile() {
  std::lock_guard<std::mutex> lock(mutex_);
  file_ = OpenFile();
}

}  // namespace windlass
