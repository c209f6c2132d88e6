// SPDX-License-Identifier: Apache-2.0
// C ABI: sends and receives. Checks the arguments before anything moves.
#include "native/core/message/messages.h"

#include <algorithm>

#include "native/abi/handles.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/core/names.h"

using namespace windlass;

namespace {

// Refuses messages on targets whose devices run the operations. On checked targets the host copies
// messages, and no instruction runs.
Code checkMessageTarget(wl_error_t* error) {
  if (kTarget.limits.offloadCores == 0 || kTarget.hasGpus()) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "send and receive don't run on %s yet: its devices run collectives alone",
              kTarget.limits.name);
}

Code checkMessage(const wl_comm_t* comm, const wl_message_t& message, wl_error_t* error) {
  if (Code code = checkStruct(&message, "messages", error)) return code;
  const bool sends = message.operation == WL_OP_SEND;
  if (!sends && message.operation != WL_OP_RECEIVE) {
    return fail(error, WL_INVALID_ARGUMENT, "%s is no message: a group takes sends and receives",
                operationName(message.operation));
  }
  const char* const what = operationName(message.operation);
  const uint32_t ranks = comm->comm.group().ranks();
  const bool isAny = !sends && message.peer == WL_ANY;
  if (!isAny && static_cast<uint32_t>(message.peer) >= ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: peer is %d; it must lie in [0, %u)%s", what,
                message.peer, ranks, sends ? "" : ", or be any source");
  }
  if (message.tag < (sends ? 0 : WL_ANY)) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: tag is %d; it must be 0 or more%s", what,
                message.tag, sends ? "" : ", or any tag");
  }
  if (Code code = checkDType(message.dtype, error)) return code;
  const uint64_t size = sizeOf(static_cast<DType>(message.dtype));
  if (message.elements > (uint64_t{1} << 55) / size)
    return fail(error, WL_INVALID_ARGUMENT, "%s: %llu elements are too many", what,
                text(message.elements));
  if (message.data != nullptr || message.elements == 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s: data is NULL", what);
}

// Checks that no receive writes to memory of another message of the call.
Code checkApart(MessageBatch& batch, wl_error_t* error) {
  std::vector<const Message*> byAddress;
  for (const Message& message : batch)
    if (message.count > 0) byAddress.push_back(&message);
  std::sort(byAddress.begin(), byAddress.end(),
            [](const Message* a, const Message* b) { return a->data < b->data; });
  const unsigned char* sent = nullptr;      // end of the sends so far
  const unsigned char* received = nullptr;  // end of the receives so far
  for (const Message* message : byAddress) {
    const auto* const start = static_cast<const unsigned char*>(message->data);
    if (start < received || (!message->sends && start < sent)) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "a receive overlaps another tensor of the call; receive into a tensor apart");
    }
    const unsigned char*& end = message->sends ? sent : received;
    end = std::max(end, start + message->bytes());
  }
  return WL_OK;
}

// Checks the call, and fills in the batch.
Code readBatch(const wl_comm_t* comm, wl_message_t* messages, uint32_t count, int64_t deadlineNs,
               MessageBatch* batch, wl_error_t* error) {
  if (Code code = checkMessageTarget(error)) return code;
  if (Code code = checkNotNull(messages, "messages", error)) return code;
  if (count == 0) return fail(error, WL_INVALID_ARGUMENT, "count is 0: there are no messages");
  if (Code code = checkStruct(messages, "messages", error)) return code;
  batch->deadline =
      Deadline(deadlineNs == 0 ? comm->comm.group().config().deadlineNs : deadlineNs);
  batch->context = messages;
  batch->resize(count);
  Message* to = batch->begin();
  for (uint32_t i = 0; i < count; ++i, ++to) {
    const wl_message_t& message = *elementOf(messages, i);
    if (Code code = checkMessage(comm, message, error)) return code;
    to->sends = message.operation == WL_OP_SEND;
    to->peer = static_cast<uint32_t>(message.peer);
    to->tag = message.tag;
    to->dtype = static_cast<DType>(message.dtype);
    to->data = message.data;
    to->count = message.elements;
  }
  return count == 1 ? WL_OK : checkApart(*batch, error);
}

// Writes the results of a batch that is over to the caller's structs.
void writeResults(MessageBatch& batch) {
  for (uint32_t i = 0; i < batch.count; ++i) {
    const Message& message = batch.begin()[i];
    if (message.sends) continue;
    wl_message_t& to = *elementOf(static_cast<wl_message_t*>(batch.context), i);
    to.source = static_cast<int32_t>(message.source);
    to.found_tag = message.foundTag;
    to.received = message.found;
  }
}

Descriptor descriptorOf(MessageBatch& batch) {
  return batch.count == 1
             ? batch.begin()->descriptor()
             : Descriptor::ofMessage(WL_OP_SEND_RECEIVE, batch.count, 0, kNobody, WL_ANY);
}

}  // namespace

static_assert(kAnyTag == WL_ANY && kNobody == static_cast<uint32_t>(WL_ANY), "one way to say any");

extern "C" {

int32_t wl_messages(wl_comm_t* comm, wl_message_t* messages, uint32_t count, int64_t deadline_ns,
                    wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error)) return code;
  Comm& own = comm->comm;
  const auto body = [&] {
    MessageBatch batch;
    if (Code code = readBatch(comm, messages, count, deadline_ns, &batch, error)) return code;
    uint64_t bytes = 0;
    for (const Message& message : batch) bytes += message.bytes();
    if (Code code = own.beginUnstamped(descriptorOf(batch), bytes, error)) return code;
    const Code code = own.messages().run(batch);
    if (code == WL_OK) writeResults(batch);
    return own.finish(code, bytes >= kLongWorkBytes, error);
  };
  return withMemory(error, body, "out of memory");
}

int32_t wl_messages_start(wl_comm_t* comm, wl_message_t* messages, uint32_t count,
                          int64_t deadline_ns, uint64_t* ticket, wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error)) return code;
  if (Code code = checkOut(ticket, "ticket", error)) return code;
  const auto start = [&] {
    auto batch = std::make_unique<MessageBatch>();
    if (Code code = readBatch(comm, messages, count, deadline_ns, batch.get(), error)) return code;
    batch->deadline.left(clockNs());  // it counts from here
    const Code code = comm->comm.messages().start(batch, ticket, error);
    if (code == WL_OK && *ticket == 0) writeResults(*batch);
    return code;
  };
  return withMemory(error, start, "out of memory");
}

int32_t wl_messages_next(wl_comm_t* comm, int64_t limit_ns, uint64_t* ticket, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkOut(ticket, "ticket", error)) return code;
  const auto next = [&] {
    std::unique_ptr<MessageBatch> over;
    const Code code = comm->comm.messages().next(limit_ns, &over, error);
    if (over != nullptr) {
      writeResults(*over);
      *ticket = over->ticket;
    }
    return code;
  };
  return withMemory(error, next, "out of memory");
}

int32_t wl_messages_withdraw(wl_comm_t* comm, uint64_t ticket, int32_t* withdrawn,
                             wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkOut(withdrawn, "withdrawn", error)) return code;
  *withdrawn = static_cast<int32_t>(comm->comm.messages().withdraw(ticket));
  return WL_OK;
}

}  // extern "C"
