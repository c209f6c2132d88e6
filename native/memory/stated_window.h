// SPDX-License-Identifier: Apache-2.0
// The checks and the exchanges of one rank that makes a KernelWindow. Runtimes share them.
#pragma once

#include <vector>

#include "native/base/text.h"
#include "native/memory/device.h"

namespace windlass {

// Sets *whole to `bytes` in whole pages. `call`: the call that reported the page.
inline Code roundUp(uint64_t bytes, size_t page, const char* call, uint64_t* whole,
                    wl_error_t* error) {
  if (page == 0) return fail(error, WL_DEVICE, "a device has pages of 0 bytes, says %s", call);
  *whole = (bytes + page - 1) / page * page;
  return WL_OK;
}

// Base of a window. Statement is the data that ranks exchange. Among it are `code`, a rank's result
// so far, and `bytes`, the size of its part.
template <class Statement>
class StatedWindow {
 public:
  StatedWindow() = default;
  StatedWindow(const StatedWindow&) = delete;
  StatedWindow& operator=(const StatedWindow&) = delete;

  // See KernelWindow::faulty rank() and KernelWindow::partBytes().
  uint32_t faultyRank() const { return faultyRank_; }
  uint64_t bytes() const { return bytes_; }

 protected:
  ~StatedWindow() = default;

  // Refuses sizes and numbers of ranks that no rank supports. All ranks refuse them alike.
  Code begin(const AllRanks& exchange, uint64_t bytes, wl_error_t* error) {
    const uint32_t ranks = exchange.ranks();
    rank_ = faultyRank_ = exchange.rank();
    if (ranks > kMostDeviceRanks) {
      return fail(error, WL_UNSUPPORTED, "%u ranks: a group on devices has %u at most", ranks,
                  kMostDeviceRanks);
    }
    if (bytes == 0 || bytes > kMostWindowBytes)
      return fail(error, WL_INVALID_ARGUMENT, "a window of %llu bytes", text(bytes));
    statements_.assign(ranks, Statement());
    own_ = {};
    return WL_OK;
  }
  // Exchanges `code` and this rank's statement. Returns WL_OK once all ranks have stated WL_OK.
  Code state(AllRanks& exchange, Code code, wl_error_t* error) {
    own_.code = code;
    return stateToAll(exchange, own_, statements_, &faultyRank_, &isWhole_, error);
  }
  // Refuses parts of peers that have another size.
  Code checkBytes(wl_error_t* error) const {
    for (uint32_t peer = 0; peer < statements_.size(); ++peer) {
      if (statements_[peer].bytes == bytes_) continue;
      return fail(error, WL_MISMATCH, "a window of %llu bytes on rank %u and of %llu on rank %u",
                  text(bytes_), rank_, text(statements_[peer].bytes), peer);
    }
    return WL_OK;
  }

  uint32_t rank_ = 0;
  uint32_t faultyRank_ = kNobody;
  bool isWhole_ = false;  // the last exchange is complete
  uint64_t bytes_ = 0;    // of each part, in whole pages
  Statement own_ = {};
  std::vector<Statement> statements_;
};

}  // namespace windlass
