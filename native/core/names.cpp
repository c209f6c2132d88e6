// SPDX-License-Identifier: Apache-2.0
#include "native/core/names.h"

#include <utility>

#include "native/core/launch/kernels.h"

namespace windlass {
namespace {

// Names of operations that are not in the table of collectives.
constexpr std::pair<wl_operation, const char*> kNames[] = {
    {WL_OP_NONE, "none"},
    {WL_OP_WINDOW, "window creation"},
    {WL_OP_DEVICE_WINDOW, "device window creation"},
    {WL_OP_MEMORY_POOL, "memory pool creation"},
    {WL_OP_SPLIT, "split"},
    {WL_OP_SUBGROUP, "subgroup"},
    {WL_OP_SHRINK, "shrink"},
    {WL_OP_LINK, "link"},
    {WL_OP_LINK_REGISTER, "link register"},
    {WL_OP_LINK_MOVE, "link send/receive"},
    {WL_OP_LINK_CHECK, "link checksums"},
    {WL_OP_CHECK_REPLICAS, "checkReplicas"},
    {WL_OP_REGISTER, "register"},
    {WL_OP_TRANSFER, "transfer"},
    {WL_OP_LAUNCH, "launch"},
    {WL_OP_EXPERT_DISPATCH, "expert-dispatch"},
    {WL_OP_EXPERT_COMBINE, "expert-combine"},
    {WL_OP_EXPERTS_OPEN, "experts open"},
    {WL_OP_MANIFEST_OPEN, "manifest open"},
    {WL_OP_STORE_TO_HOST, "storeToHost"},
    {WL_OP_PUT, "put"},
    {WL_OP_GET, "get"},
    {WL_OP_NOTIFY, "notify"},
    {WL_OP_WAIT, "wait"},
    {WL_OP_ACCUMULATE, "accumulate"},
    {WL_OP_SEND, "send"},
    {WL_OP_RECEIVE, "receive"},
    {WL_OP_SEND_RECEIVE, "send-receive"},
};

struct CallNames {
  char of[WL_OP_COUNT][32] = {};

  CallNames() {
    for (int32_t operation = 0; operation < WL_OP_COUNT; ++operation) {
      char* to = of[operation];
      for (const char* at = operationName(operation); *at != 0; ++at) {
        const bool begins = at[0] == '-' && at[1] != 0;
        // A word of one letter, as in "all-gather-v", stays as it is.
        if (begins) ++at;
        *to++ = begins && at[1] != 0 ? static_cast<char>(*at - 'a' + 'A') : *at;
      }
    }
  }
};

}  // namespace

const char* operationName(int32_t operation) {
  if (const Collective* collective = collectiveOf(operation)) return collective->name;
  for (const auto& [named, name] : kNames)
    if (named == operation) return name;
  return "unknown operation";
}

int32_t operationNamed(std::string_view name) {
  int32_t operation = WL_OP_COUNT - 1;
  while (operation > WL_OP_NONE && name != operationName(operation)) --operation;
  return operation;
}

const char* callName(int32_t operation) {
  static const CallNames names;
  return operation >= 0 && operation < WL_OP_COUNT ? names.of[operation]
                                                   : operationName(operation);
}

const char* algorithmName(int32_t algorithm) {
  static const char* const names[] = {"auto",      "push",      "pull", "staged",
                                      "one-phase", "two-phase", "ring", "bidirectional-ring"};
  static_assert(sizeof names / sizeof *names == WL_BIDIRECTIONAL_RING + 1);
  return algorithm >= 0 && algorithm <= WL_BIDIRECTIONAL_RING ? names[algorithm] : "?";
}

}  // namespace windlass
