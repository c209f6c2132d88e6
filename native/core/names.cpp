// SPDX-License-Identifier: Apache-2.0
#include "native/core/names.h"

#include "native/core/launch/kernels.h"

namespace windlass {

const char* operationName(int32_t operation) {
  if (const Collective* collective = collectiveOf(operation)) return collective->name;
  switch (operation) {
    case WL_OP_NONE:
      return "none";
    case WL_OP_WINDOW:
      return "window creation";
    case WL_OP_DEVICE_WINDOW:
      return "device window creation";
    case WL_OP_MEMORY_POOL:
      return "memory pool creation";
    case WL_OP_SPLIT:
      return "split";
    case WL_OP_SUBSET:
      return "subset";
    case WL_OP_SHRINK:
      return "shrink";
    case WL_OP_LINK:
      return "link";
    case WL_OP_LINK_REGISTER:
      return "link register";
    case WL_OP_LINK_MOVE:
      return "link send/receive";
    case WL_OP_LINK_CHECK:
      return "link checksums";
    case WL_OP_CHECK_REPLICAS:
      return "checkReplicas";
    case WL_OP_REGISTER:
      return "register";
    case WL_OP_TRANSFER:
      return "transfer";
    case WL_OP_LAUNCH:
      return "launch";
    case WL_OP_EXPERT_DISPATCH:
      return "expert-dispatch";
    case WL_OP_EXPERT_COMBINE:
      return "expert-combine";
    case WL_OP_EXPERTS_OPEN:
      return "experts open";
    case WL_OP_MANIFEST_OPEN:
      return "manifest open";
    case WL_OP_STORE_TO_HOST:
      return "storeToHost";
    case WL_OP_PUT:
      return "put";
    case WL_OP_GET:
      return "get";
    case WL_OP_NOTIFY:
      return "notify";
    case WL_OP_WAIT:
      return "wait";
    case WL_OP_ACCUMULATE:
      return "accumulate";
    default:
      return "unknown operation";
  }
}

int32_t operationNamed(std::string_view name) {
  int32_t operation = WL_OP_COUNT - 1;
  while (operation > WL_OP_NONE && name != operationName(operation)) --operation;
  return operation;
}

namespace {

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

const char* callName(int32_t operation) {
  static const CallNames names;
  return operation >= 0 && operation < WL_OP_COUNT ? names.of[operation]
                                                   : operationName(operation);
}

const char* algorithmName(int32_t algorithm) {
  static const char* const names[] = {"auto",      "push",      "pull", "staged",
                                      "one-phase", "two-phase", "ring", "bidirectional ring"};
  static_assert(sizeof names / sizeof *names == WL_BIDIRECTIONAL_RING + 1);
  return algorithm >= 0 && algorithm <= WL_BIDIRECTIONAL_RING ? names[algorithm] : "?";
}

}  // namespace windlass
