// SPDX-License-Identifier: Apache-2.0
#include "native/memory/file_offer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"
#include "windlass/offload.h"

namespace windlass {
namespace {

constexpr int kLookMs = 20;
// Time until a socket without a listener counts as unreachable.
constexpr int64_t kGoneLimitNs = 1'000'000'000;
constexpr int kSocket = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

Code failed(const char* call, wl_error_t* error) {
  const int number = errno;
  const bool isFull = number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
  return fail(error, isFull ? WL_RESOURCE : WL_UNSUPPORTED,
              "a device's memory goes from process to process through a socket, and %s failed: %s",
              call, std::strerror(number));
}

// Uses the abstract namespace, so that no file remains.
socklen_t addressOf(const FileOfferName& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const int length =
      std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "windlass-%016llx",
                    static_cast<unsigned long long>(name.socket));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// Blocks until the socket is readable. Returns WL_PEER_LOST if liveness ends the wait.
Code awaitInput(const OpenFile& socket, Liveness& liveness, const char* what, wl_error_t* error) {
  pollfd polled = {socket.number(), POLLIN, 0};
  for (;;) {
    const int ready = poll(&polled, 1, kLookMs);
    if (ready > 0) return WL_OK;
    if (ready < 0 && errno != EINTR) return failed("poll", error);
    if (!liveness.goesOn()) return fail(error, WL_PEER_LOST, "%s did not come", what);
  }
}

bool isOfOwnUser(const OpenFile& socket) {
  ucred peer = {};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == geteuid();
}

// A one-byte message that carries the file.
struct FileMessage {
  FileMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }

  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
};

}  // namespace

class FileOffer::Server {
 public:
  Server(OpenFile listener, OpenFile bell, const FileOfferName& name, int file)
      : listener_(std::move(listener)), bell_(std::move(bell)), name_(name), file_(file) {}
  ~Server() {
    if (!thread_.joinable()) return;
    ringBell(bell_);
    thread_.join();
  }

  // Throws std::system_error.
  void start() {
    const MakesThreads making;
    thread_ = std::thread([this] { serve(); });
  }

  // Blocks until `takers` peers have received the file.
  Code await(uint32_t takers, Liveness& liveness, wl_error_t* error) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(kLookMs),
                              [&] { return given_ >= takers || failed_ != 0; })) {
      if (!liveness.goesOn())
        return fail(error, WL_PEER_LOST, "a process that takes a part of the window did not come");
    }
    if (given_ >= takers) return WL_OK;
    errno = failed_;
    return failed("giving it", error);
  }

 private:
  struct Silent {
    OpenFile socket;
    int64_t sinceNs = 0;
  };

  void serve() {
    for (;;) {
      pollfd polled[kMostSilent + 2] = {{bell_.number(), POLLIN, 0},
                                        {listener_.number(), POLLIN, 0}};
      for (uint32_t i = 0; i < count_; ++i) polled[i + 2] = {silent_[i].socket.number(), POLLIN, 0};
      poll(polled, count_ + 2, count_ == 0 ? -1 : kLookMs);
      if (polled[0].revents != 0) return;
      const int64_t lateNs = clockNs() - kSilenceNs;
      uint32_t stay = 0;
      for (uint32_t i = 0; i < count_; ++i) {
        const bool isOver = answer(silent_[i].socket) || silent_[i].sinceNs <= lateNs;
        if (isOver) silent_[i].socket = OpenFile();
        if (!isOver && i != stay) std::swap(silent_[stay], silent_[i]);
        if (!isOver) ++stay;
      }
      count_ = stay;
      // Admits at most a full backlog per round, so that the loop checks the bell again.
      for (uint32_t i = 0; i < kMostDeviceRanks && admit(); ++i) continue;
      if (failed_ != 0) return;
    }
  }

  // Accepts one connection. Returns false if there was none.
  bool admit() {
    OpenFile taker(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!taker) {
      const int number = errno;
      if (number == EAGAIN || number == ECONNABORTED || number == EINTR) return false;
      // This process has reached its limit of open files: drop a silent connection first.
      if (count_ > 0) {
        dropOldest();
      } else {
        tell([&] { failed_ = number; });
      }
      return false;
    }
    if (!isOfOwnUser(taker) || answer(taker)) return true;
    if (count_ == kMostSilent) dropOldest();
    silent_[count_++] = {std::move(taker), clockNs()};
    return true;
  }

  void dropOldest() {
    answer(silent_[0].socket);
    silent_[0].socket = OpenFile();
    std::rotate(silent_, silent_ + 1, silent_ + count_--);
  }

  // Returns true if the connection is finished. A peer that sent the secret receives the file.
  bool answer(const OpenFile& taker) {
    uint64_t secret = 0;
    const ssize_t said = recv(taker.number(), &secret, sizeof secret, 0);
    if (said < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (said != static_cast<ssize_t>(sizeof secret) || secret != name_.secret) return true;
    FileMessage message;
    cmsghdr* const rider = CMSG_FIRSTHDR(&message.header);
    rider->cmsg_level = SOL_SOCKET;
    rider->cmsg_type = SCM_RIGHTS;
    rider->cmsg_len = CMSG_LEN(sizeof file_);
    std::memcpy(CMSG_DATA(rider), &file_, sizeof file_);
    if (sendmsg(taker.number(), &message.header, MSG_NOSIGNAL) >= 0) {
      tell([&] { ++given_; });
    } else if (errno != EPIPE && errno != ECONNRESET) {
      const int number = errno;
      tell([&] { failed_ = number; });
    }
    return true;
  }

  template <class Change>
  void tell(const Change& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_all();
  }

  const OpenFile listener_;
  const OpenFile bell_;
  const FileOfferName name_;
  const int file_;
  Silent silent_[kMostSilent];  // oldest first
  uint32_t count_ = 0;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  uint32_t given_ = 0;
  int failed_ = 0;
  std::thread thread_;
};

FileOffer::FileOffer() = default;

FileOffer::~FileOffer() = default;

Code FileOffer::open(int file, wl_error_t* error) {
  unsigned char random[sizeof name_];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    return failed("getrandom", error);
  std::memcpy(&name_, random, sizeof name_);
  OpenFile listener(socket(AF_UNIX, kSocket, 0));
  if (!listener) return failed("socket", error);
  sockaddr_un address;
  const socklen_t bytes = addressOf(name_, &address);
  if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return failed("bind", error);
  if (listen(listener.number(), kMostDeviceRanks) != 0) return failed("listen", error);
  OpenFile bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return failed("eventfd", error);
  server_ = std::make_unique<Server>(std::move(listener), std::move(bell), name_, file);
  try {
    server_->start();
  } catch (const std::system_error&) {
    close();
    return fail(error, WL_RESOURCE,
                "the system has no more threads for what a device's memory goes through");
  }
  return WL_OK;
}

Code FileOffer::give(uint32_t takers, Liveness& liveness, wl_error_t* error) {
  return server_->await(takers, liveness, error);
}

void FileOffer::close() {
  server_ = nullptr;
}

Code FileRequest::askOnce(Liveness& liveness, bool* isDropped, wl_error_t* error) {
  *isDropped = false;
  socket_ = OpenFile(socket(AF_UNIX, kSocket, 0));
  if (!socket_) return failed("socket", error);
  sockaddr_un address;
  const socklen_t bytes = addressOf(of_, &address);
  const int64_t startNs = clockNs();
  while (connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno != ECONNREFUSED && errno != EAGAIN) return failed("connect", error);
    // The listener has ended, or it is in a network namespace that this process does not see.
    const bool isGone = errno == ECONNREFUSED;
    if (!liveness.goesOn() || (isGone && wasThere_))
      return fail(error, WL_PEER_LOST, "rank %u listens no more", rank_);
    if (isGone && clockNs() - startNs > kGoneLimitNs) {
      return fail(error, WL_UNSUPPORTED,
                  "rank %u's part of the window can't be reached: nobody listens at its socket, as "
                  "where its process has another network namespace; run all in one",
                  rank_);
    }
    poll(nullptr, 0, isGone ? kLookMs : 1);
  }
  wasThere_ = true;
  if (!isOfOwnUser(socket_)) {
    return fail(error, WL_UNSUPPORTED,
                "rank %u's process belongs to another user: run all of a communicator as one",
                rank_);
  }
  if (send(socket_.number(), &of_.secret, sizeof of_.secret, MSG_NOSIGNAL) >= 0) return WL_OK;
  if (errno != EPIPE && errno != ECONNRESET) return failed("send", error);
  *isDropped = true;
  return fail(error, WL_PEER_LOST, "rank %u went away", rank_);
}

Code FileRequest::takeOnce(Liveness& liveness, OpenFile* file, bool* isDropped,
                           wl_error_t* error) {
  *isDropped = false;
  char what[48];
  std::snprintf(what, sizeof what, "rank %u's part of the window", rank_);
  if (Code code = awaitInput(socket_, liveness, what, error); code != WL_OK) return code;
  FileMessage message;
  const ssize_t come = recvmsg(socket_.number(), &message.header, MSG_CMSG_CLOEXEC);
  if (come < 0 && errno != ECONNRESET) return failed("recvmsg", error);
  const cmsghdr* const rider = come > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  socket_ = OpenFile();
  if (rider != nullptr && rider->cmsg_level == SOL_SOCKET && rider->cmsg_type == SCM_RIGHTS &&
      rider->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rider), sizeof number);
    *file = OpenFile(number);
    return WL_OK;
  }
  *isDropped = come <= 0;
  if (come <= 0) return fail(error, WL_PEER_LOST, "%s did not come", what);
  return fail(error, WL_RESOURCE,
              "%s came without its file: this process may have no more open; raise its limit",
              what);
}

Code FileRequest::ask(const FileOfferName& of, uint32_t rank, Liveness& liveness,
                      wl_error_t* error) {
  of_ = of;
  rank_ = rank;
  for (;;) {
    bool isDropped = false;
    wl_error_t failed = blankError();
    const Code code = askOnce(liveness, &isDropped, &failed);
    if (code == WL_OK) return code;
    // The server drops a connection if too many are open and silent.
    if (!isDropped || !liveness.goesOn()) return copyError(error, failed, nullptr);
    poll(nullptr, 0, 1);
  }
}

Code FileRequest::take(Liveness& liveness, OpenFile* file, wl_error_t* error) {
  for (;;) {
    bool isDropped = false;
    wl_error_t failed = blankError();
    const Code code = takeOnce(liveness, file, &isDropped, &failed);
    if (code == WL_OK) return code;
    if (!isDropped || !liveness.goesOn()) return copyError(error, failed, nullptr);
    poll(nullptr, 0, kLookMs);
    if (Code asked = ask(of_, rank_, liveness, error); asked != WL_OK) return asked;
  }
}

}  // namespace windlass
