// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels of tests/kernels.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/native/core/windows.h"

namespace windlass_test {

// The file of a library of tests/kernels, of this target: where the build has it, or where
// WINDLASS_TEST_KERNELS says.
inline std::string fileOf(const std::string& name) {
  const char* given = std::getenv("WINDLASS_TEST_KERNELS");
  const std::string folder = given == nullptr ? WINDLASS_KERNEL_FOLDER : given;
  return folder + "/libwindlass_" + name + "-" + wl_target() + ".so";
}

inline const wl_kernel_library_t* library(const std::string& name = "test_kernels") {
  wl_kernel_library_t* loaded = nullptr;
  Error error;
  EXPECT_EQ(WL_OK, wl_kernel_library_load(fileOf(name).c_str(), wl_target(), &loaded, &error))
      << error.message;
  return loaded;
}

inline int kernel(const std::string& name, const wl_kernel_library_t* of = library()) {
  for (int i = 0; i < wl_kernel_count(of); ++i)
    if (name == wl_kernel_name(of, i)) return i;
  ADD_FAILURE() << "no kernel " << name;
  return -1;
}

// The arguments of a launch, as words.
class Words {
 public:
  Words& tensor(int dtype, const void* data, const std::vector<int64_t>& shape,
                const wl_window_t* window = nullptr, bool readOnly = false) {
    add({WL_ARGUMENT_TENSOR, dtype, reinterpret_cast<int64_t>(data),
         reinterpret_cast<int64_t>(window), readOnly, static_cast<int64_t>(shape.size())});
    add(shape);
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return add(strides);
  }
  template <class T>
  Words& scalar(int dtype, T value) {
    int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return add({WL_ARGUMENT_SCALAR, dtype, bits});
  }
  Words& add(const std::vector<int64_t>& words) {
    words_.insert(words_.end(), words.begin(), words.end());
    return *this;
  }
  int64_t& at(size_t index) { return words_[index]; }
  void drop() { words_.pop_back(); }

  int launch(wl_comm_t* comm, const std::string& name, Error* error, int64_t deadlineNs = 0,
             const wl_kernel_library_t* of = library()) const {
    return wl_launch(comm, of, kernel(name, of), words_.data(), words_.size(), deadlineNs, error);
  }

 private:
  std::vector<int64_t> words_;
};

}  // namespace windlass_test
