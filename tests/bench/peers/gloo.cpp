// SPDX-License-Identifier: Apache-2.0
// Gloo, sampled: one thread a rank, each with a context of its own, over its TCP transport on the
// loopback interface; one thread of Gloo's polls for all.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include <thread>

#include "collectives.h"

namespace {

using peers::Buffer;
using peers::Call;
using peers::Operation;
using peers::Shape;
using peers::Shared;

using Context = std::shared_ptr<gloo::rendezvous::Context>;

std::function<void(int)> callOf(const Context& context, const Shape& shape, float* in, float* out) {
  const std::size_t inputs = shape.inputCount();
  const std::size_t outputs = shape.outputCount();
  switch (shape.operation) {
    case Operation::kBarrier: {
      const auto options = std::make_shared<gloo::BarrierOptions>(context);
      return [=](int) { gloo::barrier(*options); };
    }
    case Operation::kAllToAll: {
      const auto options = std::make_shared<gloo::AlltoallOptions>(context);
      options->setInput(in, inputs);
      options->setOutput(out, outputs);
      return [=](int) { gloo::alltoall(*options); };
    }
    case Operation::kBroadcast: {
      const auto options = std::make_shared<gloo::BroadcastOptions>(context);
      options->setOutput(in, inputs);
      return [=](int root) {
        options->setRoot(root);
        gloo::broadcast(*options);
      };
    }
    case Operation::kAllGather: {
      const auto options = std::make_shared<gloo::AllgatherOptions>(context);
      options->setInput(in, inputs);
      options->setOutput(out, outputs);
      return [=](int) { gloo::allgather(*options); };
    }
    case Operation::kReduceScatter: {
      // Gloo reduces in place: the sums stand at the start of the input.
      const std::vector<int> counts(shape.ranks, static_cast<int>(shape.row));
      const auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
          context, std::vector<float*>{in}, static_cast<int>(inputs), counts);
      return [=](int) { algorithm->run(); };
    }
    case Operation::kAllReduce: {
      const auto options = std::make_shared<gloo::AllreduceOptions>(context);
      options->setInput(in, inputs);
      options->setOutput(out, outputs);
      options->setReduceFunction(
          static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
      return [=](int) { gloo::allreduce(*options); };
    }
    case Operation::kSendReceive:
    case Operation::kRing:
      break;
  }
  peers::stop("no such operation");
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t cores = peers::allowedCores();
  const peers::Arguments arguments(argc, argv);
  const auto shared = std::make_unique<Shared>();
  gloo::rendezvous::HashStore store;
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto context = std::make_shared<gloo::rendezvous::Context>(rank, arguments.ranks);
        context->connectFullMesh(store, device);
        const auto open = [&](const Shape& shape) {
          const bool inPlace = shape.operation == Operation::kBroadcast ||
                               shape.operation == Operation::kReduceScatter;
          Call call;
          call.in = Buffer(shape.inputCount());
          if (!inPlace) {
            call.out = Buffer(shape.outputCount());
          }
          call.result = inPlace ? call.in.data() : call.out.data();
          call.run = callOf(context, shape, call.in.data(), call.result);
          return call;
        };
        peers::measure(arguments, *shared, static_cast<uint32_t>(rank), cores, open);
      } catch (const std::exception& e) {
        peers::stop(e.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
