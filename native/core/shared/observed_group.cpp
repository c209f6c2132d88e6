// SPDX-License-Identifier: Apache-2.0
#include "native/core/shared/observed_group.h"

#include <algorithm>
#include <cstring>

namespace windlass {

Code ObservedGroup::open(const wl_process_t& owner, int32_t number,
                         std::unique_ptr<ObservedGroup>* group, wl_error_t* error) {
  std::unique_ptr<ObservedGroup> made(new ObservedGroup());
  SharedMapping& mapping = made->mapping_;
  if (Code code = mapping.mapToRead(owner, number, error); code != WL_OK) return code;
  mapping.closeFile();
  Code code = ControlBlock::open(mapping.memory(), mapping.bytes(), &made->config_, &made->block_,
                                 error);
  if (code == WL_OK && !made->config_.spansProcesses) {
    code = fail(error, WL_INVALID_ARGUMENT,
                "the memory is of a communicator whose ranks live in one process");
  }
  if (code == WL_OK) *group = std::move(made);
  return code;
}

Code ObservedGroup::failure(wl_error_t* error) const {
  const uint32_t number = block_.shared().failed.load(std::memory_order_seq_cst);
  if (number == 0 || number > kFailureRecords) return WL_OK;
  wl_error_t record;
  std::memcpy(&record, &block_.shared().records[number - 1], sizeof record);
  record.struct_size = sizeof record;
  record.code = record.code <= WL_OK || record.code > WL_INTERNAL ? WL_INTERNAL : record.code;
  record.faulty_rank_count = std::clamp(record.faulty_rank_count, 0, WL_MAX_RANKS);
  record.message[sizeof record.message - 1] = 0;
  return copyError(error, record, nullptr);
}

}  // namespace windlass
