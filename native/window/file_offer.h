// SPDX-License-Identifier: Apache-2.0
// Open files that processes of one host give one another where their numbers mean nothing to
// others, as those of a device's memory: through a socket, which only processes of the same user
// pass that know its secret.
#pragma once

#include <cstdint>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/window/liveness.h"

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
  // Whoever knows its name may ask from now on.
  Code open(wl_error_t* error);
  FileOfferName name() const { return name_; }
  // Gives the file to so many that have asked, or still will.
  Code give(int file, uint32_t takers, Liveness& liveness, wl_error_t* error);
  void close() { listener_ = OpenFile(); }

 private:
  Code giveOne(int file, Liveness& liveness, bool* isGiven, wl_error_t* error);

  OpenFile listener_;
  FileOfferName name_ = {};
};

// One that asks.
class FileRequest {
 public:
  // Does not wait for who offers.
  Code ask(const FileOfferName& of, uint32_t rank, Liveness& liveness, wl_error_t* error);
  Code take(Liveness& liveness, OpenFile* file, wl_error_t* error);

 private:
  OpenFile socket_;
  uint32_t rank_ = 0;  // that offers
};

}  // namespace windlass
