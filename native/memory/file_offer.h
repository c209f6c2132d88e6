// SPDX-License-Identifier: Apache-2.0
// Open files that processes of one host give one another where their numbers mean nothing to
// others, as those of a device's memory: through a socket, which only processes of the same user
// pass that know its secret.
#pragma once

#include <cstdint>
#include <memory>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/memory/liveness.h"

namespace windlass {

// By which others find an offer; they learn it where only they can read.
struct FileOfferName {
  uint64_t socket;
  uint64_t secret;
};

// WL_PEER_LOST of what follows: the others went away, or there is no time left, of which the ranks
// that went have more to say.
class FileOffer {
 public:
  FileOffer();
  ~FileOffer();
  FileOffer(const FileOffer&) = delete;
  FileOffer& operator=(const FileOffer&) = delete;

  // Whoever knows its name may ask from now on, and gets the file, which stays open until close():
  // a thread of its own serves them, so that nobody's silence holds up anybody else. Throws
  // std::bad_alloc.
  Code open(int file, wl_error_t* error);
  FileOfferName name() const { return name_; }
  // Until so many have it.
  Code give(uint32_t takers, Liveness& liveness, wl_error_t* error);
  void close();

  // Of those that have not said the secret, which are dropped after so long; the oldest one goes
  // where there are more.
  static constexpr int64_t kSilenceNs = 1'000'000'000;
  static constexpr uint32_t kMostSilent = 64;

 private:
  class Server;

  std::unique_ptr<Server> server_;
  FileOfferName name_ = {};
};

// One that asks.
class FileRequest {
 public:
  Code ask(const FileOfferName& of, uint32_t rank, Liveness& liveness, wl_error_t* error);
  Code take(Liveness& liveness, OpenFile* file, wl_error_t* error);

 private:
  // One try; *isDropped: it was, by who offers.
  Code askOnce(Liveness& liveness, bool* isDropped, wl_error_t* error);
  Code takeOnce(Liveness& liveness, OpenFile* file, bool* isDropped, wl_error_t* error);

  OpenFile socket_;
  FileOfferName of_ = {};
  uint32_t rank_ = 0;      // that offers
  bool wasThere_ = false;  // who offers, at some time
};

}  // namespace windlass
