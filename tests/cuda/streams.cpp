// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/streams.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "tests/cuda/calls.h"

namespace stand_in {
namespace {

using namespace windlass::cuda;

constexpr CuResult kCaptureUnsupported = 900;
constexpr CuResult kUnjoined = 904;
constexpr CuResult kIsolated = 905;
constexpr CuResult kCapturedEvent = 907;
constexpr CuResult kIllegalState = 401;

using Make = std::function<std::unique_ptr<Work>()>;

struct Node {
  Make make;
  std::vector<size_t> after;  // nodes that are over before it begins
};
struct Graph {
  std::vector<Node> nodes;
};
struct Stream {
  int device = 0;
  std::mutex mutex;  // held while work goes on
  std::deque<std::unique_ptr<Work>> work;
  uint64_t capture = 0;
  bool isOrigin = false;
  bool isRelaxed = false;
  Graph* graph = nullptr;    // that it captures
  std::vector<size_t> tail;  // what its next node comes after
};
struct Event {
  uint64_t recorded = 0;
  std::atomic<uint64_t> happened{0};
  uint64_t capture = 0;  // where the last record is part of a graph
  std::vector<size_t> tail;
};

std::set<Stream*> streams;
// Streams that were destroyed with work left, which goes on, and destroyed streams without work
// that a thread may still look at.
std::set<Stream*> leaving;
std::vector<std::unique_ptr<Stream>> gone;
Stream* legacy[64] = {};  // of each device, made when it is asked for
std::set<Event*> events;
std::vector<std::unique_ptr<Event>> destroyed;  // streams may still wait for them
std::set<Graph*> graphs;
std::set<Graph*> launchable;  // what instantiating them made
uint64_t captures = 0;
thread_local int32_t captureMode = 0;

class Once final : public Work {
 public:
  explicit Once(std::function<void()> body) : body_(std::move(body)) {}
  Progress goOn() override {
    body_();
    return Progress::kOver;
  }

 private:
  const std::function<void()> body_;
};

class Awaited final : public Work {
 public:
  Awaited(Event* event, uint64_t number) : event_(event), number_(number) {}
  Progress goOn() override {
    return event_->happened >= number_ ? Progress::kOver : Progress::kWaits;
  }

 private:
  Event* const event_;
  const uint64_t number_;
};

std::set<Stream*> held;

class Hold final : public Work {
 public:
  explicit Hold(Stream* stream) : stream_(stream) {}
  Progress goOn() override {
    const std::lock_guard<std::mutex> lock(mutex);
    return held.count(stream_) == 0 ? Progress::kOver : Progress::kWaits;
  }

 private:
  Stream* const stream_;
};

// A graph's launch: of what may go on, the last one first.
class Launched final : public Work {
 public:
  explicit Launched(std::shared_ptr<const Graph> graph)
      : graph_(std::move(graph)), work_(graph_->nodes.size()), isOver_(work_.size(), false) {}
  Progress goOn() override {
    bool isOver = true;
    bool hasMoved = false;
    for (size_t at = work_.size(); at-- > 0;) {
      if (isOver_[at]) continue;
      isOver = false;
      const Node& node = graph_->nodes[at];
      if (std::any_of(node.after.begin(), node.after.end(),
                      [&](size_t before) { return !isOver_[before]; })) {
        continue;
      }
      if (work_[at] == nullptr) work_[at] = node.make();
      const Progress progress = work_[at]->goOn();
      isOver_[at] = progress == Progress::kOver;
      hasMoved = hasMoved || progress != Progress::kWaits;
    }
    return isOver ? Progress::kOver : hasMoved ? Progress::kMoved : Progress::kWaits;
  }

 private:
  const std::shared_ptr<const Graph> graph_;
  std::vector<std::unique_ptr<Work>> work_;
  std::vector<bool> isOver_;
};

Stream* find(CuStream handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 1) {
    Stream*& own = legacy[current.back()];
    if (own == nullptr) own = new Stream;
    own->device = current.back();
    return own;
  }
  auto* stream = reinterpret_cast<Stream*>(handle);
  return streams.count(stream) == 0 ? nullptr : stream;
}

// Whether the stream has nothing left to do.
bool goOn(Stream* stream) {
  const std::unique_lock<std::mutex> own(stream->mutex, std::try_to_lock);
  if (!own.owns_lock()) return false;
  for (;;) {
    Work* work = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (stream->work.empty()) return true;
      work = stream->work.front().get();
    }
    if (work->goOn() != Progress::kOver) return false;
    const std::lock_guard<std::mutex> lock(mutex);
    stream->work.pop_front();
  }
}

// All streams that anything may wait for.
void goOnWithAll() {
  std::vector<Stream*> all;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (Stream* stream : streams)
      if (!stream->work.empty()) all.push_back(stream);
    for (Stream* stream : legacy)
      if (stream != nullptr && !stream->work.empty()) all.push_back(stream);
    for (auto each = leaving.begin(); each != leaving.end();) {
      Stream* const stream = *each;
      if (stream->work.empty()) {
        each = leaving.erase(each);
      } else {
        all.push_back(stream);
        ++each;
      }
    }
  }
  for (Stream* stream : all) goOn(stream);
}

void leaveCapture(Stream& stream) {
  stream.capture = 0;
  stream.isOrigin = stream.isRelaxed = false;
  stream.graph = nullptr;
  stream.tail.clear();
}

}  // namespace

CuResult submit(CuStream handle, Make make) {
  Stream* stream = find(handle);
  if (stream == nullptr) return refuse(kInvalidHandle);
  if (stream->capture == 0) {
    stream->work.push_back(make());
    return 0;
  }
  stream->graph->nodes.push_back({std::move(make), stream->tail});
  stream->tail = {stream->graph->nodes.size() - 1};
  return 0;
}

CuResult submitOnce(CuStream stream, std::function<void()> body) {
  return submit(stream, [body = std::move(body)] { return std::make_unique<Once>(body); });
}

void hold(CuStream handle, bool holds) {
  auto* const left = reinterpret_cast<Stream*>(handle);
  Stream* const stream = leaving.count(left) == 0 ? find(handle) : left;
  if (holds && held.insert(stream).second) stream->work.push_back(std::make_unique<Hold>(stream));
  if (!holds) held.erase(stream);
}

int deviceOf(CuStream stream) {
  const Stream* found = find(stream);
  return found == nullptr ? -1 : found->device;
}

CuResult checkUnsafe() {
  if (captureMode == kCaptureRelaxed) return 0;
  for (const Stream* stream : streams)
    if (stream->isOrigin && !stream->isRelaxed) return kCaptureUnsupported;
  return 0;
}

void resetStreams() {
  for (Stream* stream : streams) delete stream;
  for (Stream*& stream : legacy) {
    delete stream;
    stream = nullptr;
  }
  for (Event* event : events) delete event;
  for (Graph* graph : graphs) delete graph;
  for (Graph* graph : launchable) delete graph;
  streams.clear();
  leaving.clear();
  gone.clear();
  held.clear();
  events.clear();
  destroyed.clear();
  graphs.clear();
  launchable.clear();
}

size_t streamCount() {
  return streams.size();
}
size_t leavingCount() {
  goOnWithAll();
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<size_t>(std::count_if(
      leaving.begin(), leaving.end(), [](const Stream* stream) { return !stream->work.empty(); }));
}
size_t eventCount() {
  return events.size();
}
size_t graphCount() {
  return graphs.size() + launchable.size();
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

CALL CuResult cuStreamCreate(CuStream* stream, uint32_t flags) {
  BEGIN_IN_CONTEXT("cuStreamCreate %u", flags)
  auto* made = new Stream;
  made->device = current.back();
  streams.insert(made);
  *stream = reinterpret_cast<CuStream>(made);
  return 0;
}
CALL CuResult cuStreamDestroy_v2(CuStream stream) {
  BEGIN_GIVING_IN_CONTEXT("cuStreamDestroy")
  auto* of = reinterpret_cast<Stream*>(stream);
  if (streams.erase(of) == 0) return refuse(kInvalidHandle);
  gone.emplace_back(of);
  if (!of->work.empty()) leaving.insert(of);
  return told;
}
CALL CuResult cuStreamQuery(CuStream stream) {
  Stream* of = nullptr;
  {
    BEGIN_IN_CONTEXT("cuStreamQuery")
    of = find(stream);
    if (of == nullptr) return refuse(kInvalidHandle);
    if (of->capture != 0) return kCaptureUnsupported;
  }
  goOnWithAll();
  return goOn(of) ? 0 : kCuNotReady;
}
CALL CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, uint32_t flags) {
  BEGIN_IN_CONTEXT("cuStreamWaitEvent %u", flags)
  auto* of = reinterpret_cast<Event*>(event);
  Stream* on = find(stream);
  if (on == nullptr || events.count(of) == 0) return refuse(kInvalidHandle);
  if (of->capture == 0) {
    if (on->capture != 0) return of->recorded == 0 ? 0 : kIsolated;
    const uint64_t number = of->recorded;
    on->work.push_back(std::make_unique<Awaited>(of, number));
    return 0;
  }
  if (on->capture == 0) {
    Graph* graph = nullptr;
    for (const Stream* other : streams)
      if (other->capture == of->capture) graph = other->graph;
    // Its capture has ended.
    if (graph == nullptr) return kCapturedEvent;
    if (!on->work.empty() && reinterpret_cast<uintptr_t>(stream) <= 1) return kIllegalState;
    on->capture = of->capture;
    on->graph = graph;
    on->tail.clear();
  }
  if (on->capture != of->capture) return kIsolated;
  for (const size_t node : of->tail)
    if (std::find(on->tail.begin(), on->tail.end(), node) == on->tail.end())
      on->tail.push_back(node);
  return 0;
}
CALL CuResult cuStreamGetCtx(CuStream stream, CuContext* context) {
  BEGIN_IN_CONTEXT("cuStreamGetCtx")
  const int device = deviceOf(stream);
  *context = reinterpret_cast<CuContext>(uintptr_t{0x100} + static_cast<uintptr_t>(device));
  return device < 0 ? kInvalidHandle : 0;
}
CALL CuResult cuStreamGetCaptureInfo_v3(CuStream stream, int32_t* state, uint64_t* capture,
                                        CuGraph*, const void**, const void**, size_t*) {
  BEGIN_IN_CONTEXT("cuStreamGetCaptureInfo")
  const Stream* of = find(stream);
  if (of == nullptr) return kInvalidHandle;
  *state = of->capture == 0 ? kCaptureNone : kCaptureActive;
  *capture = of->capture;
  return 0;
}
CALL CuResult cuThreadExchangeStreamCaptureMode(int32_t* mode) {
  BEGIN("cuThreadExchangeStreamCaptureMode %d", *mode)
  std::swap(*mode, captureMode);
  return 0;
}
CALL CuResult cuEventCreate(CuEvent* event, uint32_t flags) {
  BEGIN_IN_CONTEXT("cuEventCreate %u", flags)
  auto* made = new Event;
  events.insert(made);
  *event = reinterpret_cast<CuEvent>(made);
  return 0;
}
CALL CuResult cuEventDestroy_v2(CuEvent event) {
  BEGIN_GIVING_IN_CONTEXT("cuEventDestroy")
  auto* of = reinterpret_cast<Event*>(event);
  if (events.erase(of) == 0) return refuse(kInvalidHandle);
  destroyed.emplace_back(of);
  return told;
}
CALL CuResult cuEventRecord(CuEvent event, CuStream stream) {
  BEGIN_IN_CONTEXT("cuEventRecord")
  auto* of = reinterpret_cast<Event*>(event);
  Stream* on = find(stream);
  if (events.count(of) == 0 || on == nullptr) return refuse(kInvalidHandle);
  of->capture = on->capture;
  of->tail = on->tail;
  if (on->capture != 0) return 0;
  const uint64_t number = ++of->recorded;
  return submitOnce(stream, [of, number] { of->happened = number; });
}
CALL CuResult cuEventQuery(CuEvent event) {
  auto* of = reinterpret_cast<Event*>(event);
  {
    BEGIN_IN_CONTEXT("cuEventQuery")
    if (events.count(of) == 0) return refuse(kInvalidHandle);
    if (of->capture != 0) return kCapturedEvent;
    if (const CuResult unsafe = checkUnsafe(); unsafe != 0) return unsafe;
  }
  goOnWithAll();
  return of->happened == of->recorded ? 0 : kCuNotReady;
}

// ---- what programs call beside Windlass --------------------------------------------------------

CALL CuResult cuStreamBeginCapture_v2(CuStream stream, int32_t mode) {
  BEGIN_IN_CONTEXT("cuStreamBeginCapture %d", mode)
  Stream* of = find(stream);
  if (of == nullptr) return kInvalidHandle;
  if (reinterpret_cast<uintptr_t>(stream) <= 1 || of->capture != 0) return kCaptureUnsupported;
  of->capture = ++captures;
  of->isOrigin = true;
  of->isRelaxed = mode != 0;
  of->graph = new Graph;
  graphs.insert(of->graph);
  return 0;
}
CALL CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  BEGIN_IN_CONTEXT("cuStreamEndCapture")
  Stream* of = find(stream);
  if (of == nullptr || !of->isOrigin) return kCaptureUnsupported;
  Graph* const made = of->graph;
  // The origin stream must have joined every node that has no successor.
  std::vector<bool> isLeaf(made->nodes.size(), true);
  for (const Node& node : made->nodes)
    for (const size_t before : node.after) isLeaf[before] = false;
  for (const size_t at : of->tail) isLeaf[at] = false;
  const uint64_t capture = of->capture;
  for (Stream* each : streams)
    if (each->capture == capture) leaveCapture(*each);
  if (std::count(isLeaf.begin(), isLeaf.end(), true) > 0) return kUnjoined;
  *graph = reinterpret_cast<CuGraph>(made);
  return 0;
}
CALL CuResult cuGraphDestroy(CuGraph graph) {
  BEGIN("cuGraphDestroy")
  auto* of = reinterpret_cast<Graph*>(graph);
  if (graphs.erase(of) == 0) return kInvalidHandle;
  delete of;
  return 0;
}
CALL CuResult cuGraphExecDestroy(CuGraph graph) {
  BEGIN("cuGraphExecDestroy")
  auto* of = reinterpret_cast<Graph*>(graph);
  if (launchable.erase(of) == 0) return kInvalidHandle;
  delete of;
  return 0;
}
CALL CuResult cuGraphInstantiateWithFlags(CuGraph* made, CuGraph graph, uint64_t flags) {
  BEGIN_IN_CONTEXT("cuGraphInstantiateWithFlags %llu", static_cast<unsigned long long>(flags))
  auto* of = reinterpret_cast<Graph*>(graph);
  if (graphs.count(of) == 0) return kInvalidHandle;
  auto* copy = new Graph(*of);
  launchable.insert(copy);
  *made = reinterpret_cast<CuGraph>(copy);
  return 0;
}
CALL CuResult cuGraphLaunch(CuGraph graph, CuStream stream) {
  BEGIN_IN_CONTEXT("cuGraphLaunch")
  auto* of = reinterpret_cast<Graph*>(graph);
  if (launchable.count(of) == 0) return kInvalidHandle;
  auto copy = std::make_shared<const Graph>(*of);
  return submit(stream,
                [copy]() -> std::unique_ptr<Work> { return std::make_unique<Launched>(copy); });
}
CALL CuResult cuStreamSynchronize(CuStream stream) {
  {
    BEGIN_IN_CONTEXT("cuStreamSynchronize")
  }
  for (;;) {
    const CuResult result = cuStreamQuery(stream);
    if (result != kCuNotReady) return result;
  }
}

}  // extern "C"
