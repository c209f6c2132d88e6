// SPDX-License-Identifier: Apache-2.0
#include "native/window/file_offer.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "native/base/clock.h"
#include "windlass/offload.h"

namespace windlass {
namespace {

constexpr int kLookMs = 20;
// Of a socket that nobody listens at any more, until it is known that its process has ended.
constexpr int64_t kGoneLimitNs = 1'000'000'000;
constexpr int kSocket = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

Code failed(const char* call, wl_error_t* error) {
  const int number = errno;
  const bool isFull = number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
  return fail(error, isFull ? WL_RESOURCE : WL_UNSUPPORTED,
              "a device's memory goes from process to process through a socket, and %s failed: %s",
              call, std::strerror(number));
}

// In the abstract namespace, so that no file is left.
socklen_t addressOf(const FileOfferName& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const int length =
      std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "windlass-%016llx",
                    static_cast<unsigned long long>(name.socket));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// Until it can be read; WL_PEER_LOST where it does not come to that.
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

// A message of one byte, which the file rides with.
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

Code FileOffer::open(wl_error_t* error) {
  unsigned char random[sizeof name_];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    return failed("getrandom", error);
  std::memcpy(&name_, random, sizeof name_);
  listener_ = OpenFile(socket(AF_UNIX, kSocket, 0));
  if (!listener_) return failed("socket", error);
  sockaddr_un address;
  const socklen_t bytes = addressOf(name_, &address);
  Code code = WL_OK;
  if (bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    code = failed("bind", error);
  if (code == WL_OK && listen(listener_.number(), kMostDeviceRanks) != 0)
    code = failed("listen", error);
  if (code != WL_OK) close();
  return code;
}

Code FileOffer::give(int file, uint32_t takers, Liveness& liveness, wl_error_t* error) {
  for (uint32_t given = 0; given < takers;) {
    bool isGiven = false;
    if (Code code = giveOne(file, liveness, &isGiven, error); code != WL_OK) return code;
    given += isGiven ? 1 : 0;
  }
  return WL_OK;
}

Code FileOffer::giveOne(int file, Liveness& liveness, bool* isGiven, wl_error_t* error) {
  constexpr const char* kWhat = "a process that takes a part of the window";
  if (Code code = awaitInput(listener_, liveness, kWhat, error); code != WL_OK) return code;
  const OpenFile taker(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!taker) {
    const bool isGone = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    return isGone ? WL_OK : failed("accept", error);
  }
  // A stranger is left standing.
  if (!isOfOwnUser(taker)) return WL_OK;
  if (Code code = awaitInput(taker, liveness, kWhat, error); code != WL_OK) return code;
  uint64_t secret = 0;
  const ssize_t said = recv(taker.number(), &secret, sizeof secret, 0);
  if (said != static_cast<ssize_t>(sizeof secret) || secret != name_.secret) return WL_OK;
  FileMessage message;
  cmsghdr* const rider = CMSG_FIRSTHDR(&message.header);
  rider->cmsg_level = SOL_SOCKET;
  rider->cmsg_type = SCM_RIGHTS;
  rider->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(rider), &file, sizeof file);
  if (sendmsg(taker.number(), &message.header, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE || errno == ECONNRESET)
      return fail(error, WL_PEER_LOST, "%s went away", kWhat);
    return failed("sendmsg", error);
  }
  *isGiven = true;
  return WL_OK;
}

Code FileRequest::ask(const FileOfferName& of, uint32_t rank, Liveness& liveness,
                      wl_error_t* error) {
  rank_ = rank;
  socket_ = OpenFile(socket(AF_UNIX, kSocket, 0));
  if (!socket_) return failed("socket", error);
  sockaddr_un address;
  const socklen_t bytes = addressOf(of, &address);
  const int64_t startNs = clockNs();
  while (connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno != ECONNREFUSED && errno != EAGAIN) return failed("connect", error);
    // Whoever listened there has ended, or is another process than those that this one sees.
    if (!liveness.goesOn()) return fail(error, WL_PEER_LOST, "rank %u listens no more", rank);
    if (errno == ECONNREFUSED && clockNs() - startNs > kGoneLimitNs) {
      return fail(error, WL_UNSUPPORTED,
                  "rank %u's part of the window can't be reached: nobody listens at its socket, as "
                  "where its process has another network namespace; run all in one",
                  rank);
    }
    poll(nullptr, 0, kLookMs);
  }
  if (!isOfOwnUser(socket_)) {
    return fail(error, WL_UNSUPPORTED,
                "rank %u's process belongs to another user: run all of a communicator as one",
                rank);
  }
  if (send(socket_.number(), &of.secret, sizeof of.secret, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE || errno == ECONNRESET)
      return fail(error, WL_PEER_LOST, "rank %u went away", rank);
    return failed("send", error);
  }
  return WL_OK;
}

Code FileRequest::take(Liveness& liveness, OpenFile* file, wl_error_t* error) {
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
  if (come <= 0) return fail(error, WL_PEER_LOST, "%s did not come", what);
  return fail(error, WL_RESOURCE,
              "%s came without its file: this process may have no more open; raise its limit",
              what);
}

}  // namespace windlass
