// SPDX-License-Identifier: Apache-2.0
// C ABI: collectives. Checks the arguments against the table of kernels before it sends anything.
#include "native/core/collectives.h"

#include "native/abi/buffers.h"
#include "native/abi/parts.h"
#include "native/base/text.h"
#include "native/device/handover.h"
#include "native/device/offload.h"

using namespace windlass;

namespace {

// Errors begin with the name of the method that calls the operation.
[[gnu::cold]] Code badElements(const Collective& collective, const wl_call_t& stated,
                               uint64_t ranks, wl_error_t* error) {
  const char* what = callName(stated.operation);
  const Buffer in = {"in", stated.in_elements};
  const Buffer out = {"out", stated.out_elements};
  const bool inIsPart = isOnePart(collective.in);
  const bool partsDiffer = inIsPart != isOnePart(collective.out);
  if (!partsDiffer && in.elements != out.elements) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: in has %llu elements, out has %llu; they must agree", what, text(in.elements),
                text(out.elements));
  }
  if (!partsDiffer) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: in has %llu elements, which don't divide among %llu ranks; its elements must "
                "be a multiple of the communicator's size",
                what, text(in.elements), text(ranks));
  }
  const Buffer& whole = inIsPart ? out : in;
  const Buffer& part = inIsPart ? in : out;
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: %s has %llu elements, %s has %llu; with %llu ranks, %s must have %llu times as "
              "many",
              what, whole.name, text(whole.elements), part.name, text(part.elements), text(ranks),
              whole.name, text(ranks));
}

// Checks that a part of `count` elements is a matrix of the stated rows.
Code checkRows(const wl_call_t& stated, uint64_t count, wl_error_t* error) {
  const int64_t rows = stated.rows;
  if (rows < 0 || rows > INT32_MAX) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: rows is %lld; it must lie in [0, 2^31)",
                callName(stated.operation), text(rows));
  }
  if (rows == 0 ? count == 0 : count % static_cast<uint64_t>(rows) == 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s: in has %llu elements, which are not %lld rows",
              callName(stated.operation), text(count), text(rows));
}

[[gnu::cold]] Code overlapping(const Collective& collective, const wl_call_t& stated,
                               uint32_t rank, wl_error_t* error) {
  const Buffer in = {"in", stated.in_elements};
  const Buffer out = {"out", stated.out_elements};
  const bool outIsPart = isOnePart(collective.out);
  const bool partsDiffer = isOnePart(collective.in) != outIsPart;
  const Buffer& part = partsDiffer && outIsPart ? out : in;
  const Buffer& other = &part == &in ? out : in;
  if (collective.buffers == Buffers::kApart)
    return badOverlap(stated, part, other, kMustBeApart, error);
  if (partsDiffer) return badPartOverlap(stated, part, rank, other, error);
  return badOverlap(stated, part, other, "in place, both are one buffer", error);
}

[[gnu::cold]] Code badAlgorithm(const Collective& collective, const wl_call_t& stated,
                                wl_error_t* error) {
  char takes[128];
  Text to(takes, sizeof takes);
  to.add("auto");
  for (const Algorithm& each : collective.algorithms)
    if (each.kernel && each.name != WL_AUTO) to.add(", %s", algorithmName(each.name));
  return fail(error, WL_INVALID_ARGUMENT, "%s: its algorithm is %s, and not %s (%d)",
              callName(stated.operation), takes, algorithmName(stated.algorithm),
              stated.algorithm);
}

// Error for a call that this algorithm does not support and another one does.
[[gnu::cold]] Code badCall(const Collective& collective, const Algorithm& algorithm, uint32_t ranks,
                           uint64_t bytes, wl_error_t* error) {
  const char* what = callName(static_cast<int32_t>(&collective - kKernels.collectives));
  const char* name = algorithmName(algorithm.name);
  const char* other = algorithmName(collective.algorithms[0].name);
  if (ranks > algorithm.mostRanks) {
    return fail(error, WL_UNSUPPORTED,
                "%s by %s takes more than %u phases on %u ranks; it works on %u ranks at most, so "
                "use %s",
                what, name, kMostPhases, ranks, algorithm.mostRanks, other);
  }
  return fail(error, WL_INVALID_ARGUMENT,
              "%s by %s of %llu bytes cannot be in place: every rank reads every input while "
              "outputs are written; use %s, or another out",
              what, name, text(bytes), other);
}

// On many CPUs, 64-bit divisions take several times as long as 32-bit ones.
uint64_t quotient(uint64_t elements, uint32_t ranks) {
  return elements <= UINT32_MAX ? static_cast<uint32_t>(elements) / ranks : elements / ranks;
}

// Runs a collective of equal parts. The contents of both buffers are template arguments, so that
// calls need not test them. kAs: the collective that a step of another operation runs as.
template <Holds kIn, Holds kOut, wl_operation kAs = WL_OP_NONE>
Code equalParts(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  const Collective& of = kKernels.collectives[kAs == WL_OP_NONE ? stated.operation : kAs];
  const void* const in = stated.in;
  void* const out = stated.out;
  const int32_t dtype = stated.dtype;
  constexpr bool kHasRoot = isRoots(kIn) || isRoots(kOut);
  constexpr bool kInIsPart = isOnePart(kIn);
  constexpr bool kOutIsPart = isOnePart(kOut);
  const uint32_t ranks = comm.group().ranks();
  const uint32_t rank = comm.rank();
  if (kHasRoot && static_cast<uint32_t>(stated.root) >= ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: root is %d; it must lie in [0, %u)",
                callName(stated.operation), stated.root, ranks);
  }
  const bool isRoot = kHasRoot && rank == static_cast<uint32_t>(stated.root);
  int32_t rootOrRows = kHasRoot ? stated.root : 0;
  int32_t op = 0;
  const bool reads = isRoot || !isRoots(kIn);
  const bool writes = isRoot || !isRoots(kOut);

  uint64_t count = stated.in_elements;
  if (kOutIsPart ? writes : !reads) {
    count = stated.out_elements;
  } else if (!kInIsPart) {
    count = quotient(stated.in_elements, ranks);
  }
  uint64_t allBytes = 0;
  if (Code code = bytesOf(ranks, count, dtype, &allBytes, error)) return code;
  const uint64_t bytes = count * sizeOf(static_cast<DType>(dtype));
  const uint64_t inBytes = !reads ? 0 : kInIsPart ? bytes : allBytes;
  const uint64_t outBytes = !writes ? 0 : kOutIsPart ? bytes : allBytes;
  if ((reads && stated.in_elements != (kInIsPart ? count : count * ranks)) ||
      (writes && stated.out_elements != (kOutIsPart ? count : count * ranks))) {
    return badElements(of, stated, ranks, error);
  }
  if (of.shape == PartShape::kRows) {
    if (Code code = checkRows(stated, count, error)) return code;
    rootOrRows = static_cast<int32_t>(stated.rows);
  }
  if (of.result == Result::kReduced) {
    op = stated.op;
    if (Code code = checkReduction(stated, error)) return code;
  }
  if (Code code = checkBuffer(in, inBytes, dtype, "in", error)) return code;
  if (Code code = checkBuffer(out, outBytes, dtype, "out", error)) return code;
  if (overlap(in, inBytes, out, outBytes)) {
    // In place, both buffers are equal, or one is the rank's own part of the other.
    const uint64_t inSkips = kOutIsPart && !kInIsPart ? rank * bytes : 0;
    const uint64_t outSkips = kInIsPart && !kOutIsPart ? rank * bytes : 0;
    if (of.buffers == Buffers::kApart || static_cast<const unsigned char*>(in) + inSkips !=
                                             static_cast<unsigned char*>(out) + outSkips)
      return overlapping(of, stated, rank, error);
  }
  const Algorithm* chosen = of.algorithm(stated.algorithm);
  if (chosen == nullptr) return badAlgorithm(of, stated, error);
  // Ranks would read inputs that others overwrite with outputs.
  const bool losesInput = !chosen->inPlace && in == out && bytes > 0 && ranks > 1 &&
                          !isEager(comm, of, kIn, *chosen, bytes);
  if (ranks > chosen->mostRanks || losesInput) return badCall(of, *chosen, ranks, bytes, error);
  return run(comm, of, kIn, kOut, {count, bytes, chosen, op, rootOrRows}, stated, error, on);
}

// A step of an operation, which has no row in the table.
Code step(Comm& comm, const wl_call_t& stated, wl_error_t* error, OnStream* on) {
  const int32_t operation = stated.operation;
  const bool isStep = operation == WL_OP_REGISTER ||
                      (operation >= WL_OP_LINK && operation <= WL_OP_CHECK_REPLICAS) ||
                      (operation >= WL_OP_EXPERTS_OPEN && operation <= WL_OP_STORE_TO_HOST);
  if (!isStep) {
    return fail(error, WL_INVALID_ARGUMENT,
                "wl_submit does not run operation %d (%s); windlass.h lists those that it runs",
                operation, operationName(operation));
  }
  if (on != nullptr) {
    return fail(error, WL_UNSUPPORTED, "a step of %s is not enqueued; call it without a ticket",
                operationName(operation));
  }
  if (stated.out_counts != nullptr) return gatherParts(comm, stated, error, on);
  return equalParts<Holds::kPart, Holds::kParts, WL_OP_ALL_GATHER>(comm, stated, error, on);
}

using CollectiveFunction = Code (*)(Comm&, const wl_call_t&, wl_error_t*, OnStream*);

// Implementations, indexed by the contents of `in` and `out`, as an operation's row in the table of
// kernels states them. step() refuses an operation that has no implementation.
struct CollectiveFunctions {
  static constexpr size_t kHolds = static_cast<size_t>(Holds::kRootsParts) + 1;
  CollectiveFunction by[kHolds][kHolds] = {};

  constexpr CollectiveFunctions() {
    for (auto& functions : by)
      for (CollectiveFunction& function : functions) function = step;
    at(Holds::kNothing, Holds::kNothing) = barrier;
    at(Holds::kParts, Holds::kParts) = equalParts<Holds::kParts, Holds::kParts>;
    at(Holds::kParts, Holds::kPart) = equalParts<Holds::kParts, Holds::kPart>;
    at(Holds::kPart, Holds::kParts) = equalParts<Holds::kPart, Holds::kParts>;
    at(Holds::kPart, Holds::kPart) = equalParts<Holds::kPart, Holds::kPart>;
    at(Holds::kRootsPart, Holds::kPart) = equalParts<Holds::kRootsPart, Holds::kPart>;
    at(Holds::kRootsParts, Holds::kPart) = equalParts<Holds::kRootsParts, Holds::kPart>;
    at(Holds::kPart, Holds::kRootsPart) = equalParts<Holds::kPart, Holds::kRootsPart>;
    at(Holds::kPart, Holds::kRootsParts) = equalParts<Holds::kPart, Holds::kRootsParts>;
    at(Holds::kUnequalParts, Holds::kUnequalParts) = exchangeParts;
    at(Holds::kPart, Holds::kUnequalParts) = gatherParts;
    at(Holds::kUnequalParts, Holds::kPart) = reduceParts;
  }
  constexpr CollectiveFunction& at(Holds in, Holds out) {
    return by[static_cast<size_t>(in)][static_cast<size_t>(out)];
  }
  CollectiveFunction of(int32_t operation) const {
    const Collective& collective = kKernels.collectives[operation];
    if (collective.name == nullptr) return step;
    return by[static_cast<size_t>(collective.in)][static_cast<size_t>(collective.out)];
  }
};
constexpr CollectiveFunctions kFunctions;

// Puts the call on its stream.
[[gnu::noinline]] Code enqueue(Comm& comm, const wl_call_t& call, wl_error_t* error) {
  *call.ticket = 0;
  if (comm.group().config().offloadCores == 0) {
    return fail(error, WL_UNSUPPORTED, "kernels of target %s run on no stream: those of cuda do",
                wl_target());
  }
  OnStream on = {call.stream, 0};
  const Code code = kFunctions.of(call.operation)(comm, call, error, &on);
  *call.ticket = on.ticket;
  return code;
}

}  // namespace

extern "C" {

int32_t wl_submit(wl_comm_t* comm, const wl_call_t* call, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkStruct(call, "call", error)) return code;
  if (static_cast<uint32_t>(call->operation) >= WL_OP_COUNT)
    return fail(error, WL_INVALID_ARGUMENT, "operation %d is unknown", call->operation);
  if (Code code = checkDeadline(call->deadline_ns, error)) return code;
  if (call->ticket != nullptr) return enqueue(comm->comm, *call, error);
  return kFunctions.of(call->operation)(comm->comm, *call, error, nullptr);
}

int32_t wl_enqueued_await(wl_comm_t* comm, uint64_t ticket, int64_t limit_ns, int32_t* over,
                          wl_error_t* error) {
  if (Code code = checkCall(comm, limit_ns, error)) return code;
  if (Code code = checkOut(over, "over", error)) return code;
  bool isOver = false;
  const Code code = awaitEnqueued(comm->comm, ticket, limit_ns, &isOver, error);
  *over = isOver ? 1 : 0;
  return code;
}

}  // extern "C"
