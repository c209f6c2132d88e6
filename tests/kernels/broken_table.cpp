// SPDX-License-Identifier: Apache-2.0
// A library whose table is broken in the way that WINDLASS_BROKEN_TABLE says when it is loaded.
#include "windlass/kernel_library.h"

#include <cstdlib>

namespace windlass {
namespace {

struct Nothing : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {tensor("in"), scalar("n", DType::kI32)};
  static void phase(const Launch&, uint32_t, uint32_t, uint32_t) {}
};

// Address that takes the place of the table's parts.
const char* const kNowhere = reinterpret_cast<const char*>(uintptr_t{0x5000});

constexpr ArgumentEntry kNamedTwice[] = {tensor("in"), tensor("in")};
constexpr ArgumentEntry kLikeItself[] = {tensor("in").sizedLike(0)};
constexpr ArgumentEntry kOddScalar[] = {scalar("n", DType::kBF16)};

constexpr SessionEntry kNoSession = {};

int broken() {
  const char* given = std::getenv("WINDLASS_BROKEN_TABLE");
  return given == nullptr ? 0 : std::atoi(given);
}

// A session without the function that closes it.
const SessionEntry* endless(const SessionEntry* session) {
  static SessionEntry entry = {};
  if (session != nullptr) entry = {session->open, session->verdict, nullptr};
  return &entry;
}

void take(KernelEntry& kernel, const ArgumentEntry* arguments, uint32_t count) {
  kernel.arguments = arguments;
  kernel.argumentCount = count;
}

KernelEntry brokenKernel() {
  KernelEntry kernel = libraryKernel<Nothing>("nothing");
  if (broken() == 6) kernel.name = kNowhere;
  if (broken() == 7) kernel.name = "two words";
  if (broken() == 8) kernel.phase = nullptr;
  if (broken() == 9) take(kernel, reinterpret_cast<const ArgumentEntry*>(kNowhere), 1);
  if (broken() == 10) kernel.argumentCount = 4'000'000'000u;
  if (broken() == 11) take(kernel, kNamedTwice, 2);
  if (broken() == 12) take(kernel, kLikeItself, 1);
  if (broken() == 13) take(kernel, kOddScalar, 1);
  if (broken() == 14) kernel.session = kernel.session == nullptr ? &kNoSession : nullptr;
  if (broken() == 15) kernel.session = reinterpret_cast<const SessionEntry*>(kNowhere);
  if (broken() == 16) kernel.session = &kNoSession;
  if (broken() == 17) kernel.session = endless(kernel.session);
  return kernel;
}

const KernelEntry brokenKernels[] = {brokenKernel()};

// The header of an archive of kernels for GPUs that claims more bytes than follow it.
constexpr FatBinary kEndless = {kFatBinaryMagic, 1, sizeof(FatBinary), 1000};
constexpr uint64_t kEndlessBytes = sizeof kEndless;
constexpr uint64_t kShortBytes = sizeof kEndless - 1;

KernelTable brokenTable() {
  KernelTable table = kernelTable(brokenKernels, 1);
  if (broken() == 1) table.magic = 0;
  if (broken() == 2) table.version = 99;
  if (broken() == 3) table.target[0] = 'x';
  if (broken() == 4) table.fingerprint ^= 1;
  if (broken() == 5) table.kernels = reinterpret_cast<const KernelEntry*>(kNowhere);
  if (broken() == 18) table.image = reinterpret_cast<const unsigned char*>(kNowhere);
  if (broken() == 19) table.imageBytes = &kShortBytes;
  if (broken() == 20) {
    table.image = reinterpret_cast<const unsigned char*>(&kEndless);
    table.imageBytes = &kEndlessBytes;
  }
  if (broken() == 21) table.imageBytes = reinterpret_cast<const uint64_t*>(kNowhere);
  return table;
}

}  // namespace
}  // namespace windlass

extern "C" {
__attribute__((visibility("default"))) extern const windlass::KernelTable windlass_kernel_table;
const windlass::KernelTable windlass_kernel_table = windlass::brokenTable();
}
