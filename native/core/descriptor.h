// SPDX-License-Identifier: Apache-2.0
// What ranks compare of an operation, in two words.
#pragma once

#include <cstdint>

#include "windlass/windlass.h"

namespace windlass {

// Values of an operation that all ranks must agree on, compared as two words. A one-sided operation
// or a message has a descriptor too, which is compared with nothing.
struct Descriptor {
  // operation | dtype << 8 | reduce op << 16 | algorithm << 24 | on a stream << 31 | number << 32
  uint64_t what;
  // Elements, bytes of a window, the fingerprint of a plan or of counts, a signal's value, or a
  // number of messages. For all-to-all-v: 1 if the output is packed in order of rank, 0 if each
  // receiver states its own counts.
  uint64_t count;

  static Descriptor of(wl_operation operation, uint64_t count, int32_t dtype = 0,
                       int32_t reduceOp = 0, int32_t algorithm = 0, int32_t number = 0) {
    return {static_cast<uint64_t>(operation) | static_cast<uint64_t>(dtype) << 8 |
                static_cast<uint64_t>(reduceOp) << 16 | static_cast<uint64_t>(algorithm) << 24 |
                static_cast<uint64_t>(static_cast<uint32_t>(number)) << 32,
            count};
  }
  // Operation without elements that has a number.
  static Descriptor numbered(wl_operation operation, uint64_t count, uint32_t number) {
    return of(operation, count, 0, 0, 0, static_cast<int32_t>(number));
  }
  // A send to `peer` or a receive from it. `peer` is kNobody for a receive from any rank.
  static Descriptor ofMessage(wl_operation operation, uint64_t count, int32_t dtype, uint32_t peer,
                              int32_t tag) {
    Descriptor message = of(operation, count, dtype, 0, 0, tag);
    message.what |= uint64_t{peer & kAnyPartner} << 16;
    return message;
  }
  wl_operation operation() const { return static_cast<wl_operation>(what & 0xff); }
  int32_t dtype() const { return static_cast<int32_t>(what >> 8 & 0xff); }
  int32_t reduceOp() const { return static_cast<int32_t>(what >> 16 & 0xff); }
  int32_t algorithm() const { return static_cast<int32_t>(what >> 24 & 0x7f); }
  // Put on a stream. Either all ranks do this or none.
  Descriptor onStream() const { return {what | kOnStream, count}; }
  bool isOnStream() const { return (what & kOnStream) != 0; }
  // True if the part that a rank sends to a peer must be the part that the peer expects from it.
  bool pairsParts() const { return operation() == WL_OP_ALL_TO_ALL_V && count == 0; }
  // The operation's own number. Each operation has at most one of those that follow.
  int32_t number() const { return static_cast<int32_t>(what >> 32); }
  int32_t root() const { return number(); }
  int32_t rows() const { return number(); }  // rows of a part, if parts are matrices
  uint32_t peer() const { return static_cast<uint32_t>(number()); }      // one-sided operation
  uint32_t kernel() const { return static_cast<uint32_t>(number()); }    // launch
  uint32_t members() const { return static_cast<uint32_t>(number()); }   // subgroup
  uint32_t transfer() const { return static_cast<uint32_t>(number()); }  // transfer
  // The other rank of a message, or kAnyPartner. A message has no reduce op and no algorithm.
  static constexpr uint32_t kAnyPartner = 0x7fff;
  uint32_t partner() const { return static_cast<uint32_t>(what >> 16) & kAnyPartner; }
  int32_t tag() const { return number(); }
  bool routesAnew() const { return number() == 1; }                      // expert dispatch
  bool operator==(const Descriptor& other) const {
    return what == other.what && count == other.count;
  }

 private:
  static constexpr uint64_t kOnStream = uint64_t{1} << 31;
};

// True for sends and receives.
constexpr bool isMessage(int32_t operation) {
  return operation >= WL_OP_FIRST_MESSAGE && operation <= WL_OP_LAST_MESSAGE;
}

// True if ranks count the operation. They do not count a rank's own operation, or one that follows
// a failure.
constexpr bool takesSequence(int32_t operation) {
  return operation != WL_OP_SHRINK && !isMessage(operation) &&
         (operation < WL_OP_FIRST_ONE_SIDED || operation > WL_OP_LAST_ONE_SIDED);
}

}  // namespace windlass
