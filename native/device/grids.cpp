// SPDX-License-Identifier: Apache-2.0
#include "native/device/grids.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "native/base/open_file.h"
#include "native/base/target.h"

namespace windlass {
namespace {

// Reads a whole regular file. Other files may never end.
Code readFile(const char* path, std::string* text, wl_error_t* error) {
  const auto refuse = [&](const char* why) {
    return fail(error, WL_INVALID_ARGUMENT, "it can't be read: %s", why);
  };
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return refuse(std::strerror(errno));
  struct stat status = {};
  if (fstat(file.number(), &status) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refuse("it is no regular file");
  // One byte more than a table may have is enough to reject the file.
  text->resize(GridTable::kMostTextBytes + 1);
  size_t length = 0;
  for (;;) {
    const ssize_t more = ::read(file.number(), &(*text)[length], text->size() - length);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return refuse(std::strerror(errno));
    length += static_cast<size_t>(more);
    if (more == 0 || length == text->size()) break;
  }
  text->resize(length);
  return WL_OK;
}

// Table in the file that WINDLASS_CUDA_GRIDS names.
struct OfFile {
  std::shared_ptr<const GridTable> table;  // nullptr: it names no file, or no valid table
  wl_error_t error = blankError();

  OfFile() {
    const char* const path = std::getenv(Grids::kVariable);
    if (path == nullptr || *path == 0) return;
    std::string text;
    auto made = std::make_shared<GridTable>();
    wl_error_t why = blankError();
    Code code = readFile(path, &text, &why);
    if (code == WL_OK) code = made->read(text, &why);
    if (code == WL_OK) {
      table = std::move(made);
      return;
    }
    error = errorOf(code,
                    "%s names %.200s, which is no table of grids for this library: %.200s. "
                    "`windlass bench OP --target cuda --tune-grids FILE` writes one",
                    Grids::kVariable, path, why.message);
  }
};

const OfFile& ofFile() {
  static const OfFile* const file = new OfFile;  // never freed: threads may outlast main()
  return *file;
}

// Table that use() was given; read and written atomically.
std::shared_ptr<const GridTable>& given() {
  static auto* const table = new std::shared_ptr<const GridTable>;
  return *table;
}

std::atomic<bool> hasGiven{false};

}  // namespace

Code Grids::check(wl_error_t* error) {
  const OfFile& file = ofFile();
  return file.error.code == WL_OK ? WL_OK : copyError(error, file.error, nullptr);
}

Code Grids::use(const char* text, wl_error_t* error) {
  std::shared_ptr<GridTable> made;
  if (text != nullptr) {
    made = std::make_shared<GridTable>();
    if (Code code = made->read(text, error); code != WL_OK) return code;
  }
  const bool isGiven = made != nullptr;
  std::atomic_store(&given(), std::shared_ptr<const GridTable>(std::move(made)));
  hasGiven = isGiven;
  return WL_OK;
}

std::shared_ptr<const GridTable> Grids::table() {
  const auto own = hasGiven ? std::atomic_load(&given()) : nullptr;
  return own != nullptr ? own : ofFile().table;
}

Code checkDevicesAndGrids(wl_error_t* error) {
  if (Code code = checkDevices(error); code != WL_OK || !kTarget.hasGpus()) return code;
  try {
    return Grids::check(error);
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for the table that %s names", Grids::kVariable);
  }
}

}  // namespace windlass
