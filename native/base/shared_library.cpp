// SPDX-License-Identifier: Apache-2.0
#include "native/base/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "native/base/open_file.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// Machine type of this code, from its own ELF header.
Elf64_Half thisMachine() {
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(&thisMachine), &info);
  return static_cast<const Elf64_Ehdr*>(info.dli_fbase)->e_machine;
}

const char* machineName(Elf64_Half machine) {
  static constexpr std::pair<Elf64_Half, const char*> kNames[] = {
      {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "x86 of 32 bits"},
      {EM_RISCV, "RISC-V"}};
  for (const auto& [named, name] : kNames)
    if (named == machine) return name;
  return "another machine";
}

bool readAt(const OpenFile& file, uint64_t offset, void* to, size_t bytes) {
  return pread(file.number(), to, bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes);
}

// Checks that the file is a shared library for this machine, and as long as its headers say.
Code checkFile(const char* path, wl_error_t* error) {
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file || fstat(file.number(), &about) != 0) {
    const int reason = errno;
    return fail(error, reason == ENOENT || reason == ENOTDIR ? WL_INVALID_ARGUMENT : WL_RESOURCE,
                "library %s: %s", path, std::strerror(reason));
  }
  const auto size = static_cast<uint64_t>(about.st_size);
  Elf64_Ehdr header = {};
  if (!S_ISREG(about.st_mode) || !readAt(file, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(error, WL_INVALID_ARGUMENT, "library %s is no shared library: no ELF file", path);
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != thisMachine()) {
    return fail(error, WL_UNSUPPORTED, "library %s is built for %s, and this machine is %s", path,
                machineName(header.e_machine), machineName(thisMachine()));
  }
  const uint64_t table = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "library %s is no shared library: an ELF file of another type", path);
  }
  bool isWhole = header.e_phoff <= size && table <= size - header.e_phoff;
  for (uint32_t i = 0; isWhole && i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    isWhole = readAt(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment) &&
              (segment.p_type == PT_NULL ||
               (segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset));
  }
  if (isWhole) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "library %s is cut short: it has %llu bytes, and its headers name more", path,
              text(size));
}

}  // namespace

Code SharedLibrary::load(const std::string& path, SharedLibrary* library, wl_error_t* error) {
  if (Code code = checkFile(path.c_str(), error); code != WL_OK) return code;
  // The linker would search its library paths for a name without a slash.
  const std::string named = path.find('/') == std::string::npos ? "./" + path : path;
  // Serializes loads. The linker does too, but ThreadSanitizer does not see its lock. Recursive
  // because a library's initializer may load another library.
  static std::recursive_mutex loading;
  const std::lock_guard<std::recursive_mutex> lock(loading);
  void* handle = dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT, "library %s does not load: %s", path.c_str(),
                dlerror());
  }
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
    return fail(error, WL_INTERNAL, "library %s: dlinfo: %s", path.c_str(), dlerror());
  library->handle_ = handle;
  library->segments_.clear();
  struct Search {
    uint64_t base;
    SharedLibrary* library;
  } search = {map->l_addr, library};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        const auto& of = *static_cast<Search*>(context);
        if (info->dlpi_addr != of.base) return 0;
        for (uint32_t i = 0; i < info->dlpi_phnum; ++i) {
          const Elf64_Phdr& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
          const uint64_t start = info->dlpi_addr + segment.p_vaddr;
          of.library->segments_.push_back(
              {start, start + segment.p_memsz, (segment.p_flags & PF_X) != 0});
        }
        return 1;
      },
      &search);
  return WL_OK;
}

const void* SharedLibrary::find(const char* symbol) const {
  const void* found = dlsym(handle_, symbol);
  return holds(found, 1) ? found : nullptr;
}

bool SharedLibrary::holds(const void* memory, uint64_t bytes) const {
  const auto start = reinterpret_cast<uint64_t>(memory);
  for (const Segment& segment : segments_)
    if (start >= segment.start && start < segment.end && bytes <= segment.end - start) return true;
  return false;
}

bool SharedLibrary::holdsCode(const void* function) const {
  const auto start = reinterpret_cast<uint64_t>(function);
  for (const Segment& segment : segments_)
    if (segment.isCode && start >= segment.start && start < segment.end) return true;
  return false;
}

}  // namespace windlass
