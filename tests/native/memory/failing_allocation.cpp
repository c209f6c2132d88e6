// SPDX-License-Identifier: Apache-2.0
#include "tests/native/memory/failing_allocation.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace windlass_test {
namespace {

thread_local int left = 0;  // allocations up to the one that fails, itself included; 0: none does

bool fails() {
  return left > 0 && --left == 0;
}

void* allocateOrNull(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = allocateOrNull(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

FailingAllocation::FailingAllocation(int number) {
  left = number;
}
FailingAllocation::~FailingAllocation() {
  left = 0;
}
bool FailingAllocation::happened() {
  return left == 0;
}

}  // namespace windlass_test

// All forms, since a sanitizer brings its own for any that is missing.
void* operator new(std::size_t bytes) {
  return windlass_test::allocate(bytes, windlass_test::kAlignment);
}
void* operator new[](std::size_t bytes) {
  return windlass_test::allocate(bytes, windlass_test::kAlignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return windlass_test::allocateOrNull(bytes, windlass_test::kAlignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return windlass_test::allocateOrNull(bytes, windlass_test::kAlignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return windlass_test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return windlass_test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return windlass_test::allocateOrNull(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return windlass_test::allocateOrNull(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
