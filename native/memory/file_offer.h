// SPDX-License-Identifier: Apache-2.0
// Passes open files between processes of one host, for files that others cannot open by number,
// such as device memory. The files go through a socket. Only processes of the same user that know
// the offer's secret receive them.
#pragma once

#include <cstdint>
#include <memory>

#include "native/base/error.h"
#include "native/base/open_file.h"

namespace windlass {

// Tells a rank that waits outside of an operation whether to keep waiting.
class Liveness {
 public:
  // True while there is time left and nothing has failed.
  virtual bool goesOn() = 0;

 protected:
  ~Liveness() = default;
};

// Identifies an offer. Peers learn it through a channel that only they can read.
struct FileOfferName {
  uint64_t socket;
  uint64_t secret;
};

// Offer of an open file. The functions of this class and of FileRequest return WL_PEER_LOST if the
// peers have ended or the time is up. The errors of the ranks that ended say more.
class FileOffer {
 public:
  FileOffer();
  ~FileOffer();

  // Serves the file to every process that knows name(), until close(). A separate thread serves
  // requests, so that no silent peer delays others. The caller keeps `file` open. Throws
  // std::bad_alloc.
  Code open(int file, wl_error_t* error);
  FileOfferName name() const { return name_; }
  // Blocks until `takers` peers have received the file.
  Code give(uint32_t takers, Liveness& liveness, wl_error_t* error);
  void close();

  // Limits for connections that have not sent the secret. One is dropped after kSilenceNs, and the
  // oldest one if there are more than kMostSilent.
  static constexpr int64_t kSilenceNs = 1'000'000'000;
  static constexpr uint32_t kMostSilent = 64;

 private:
  class Server;

  std::unique_ptr<Server> server_;
  FileOfferName name_ = {};
};

// Requests a file that another rank offers.
class FileRequest {
 public:
  Code ask(const FileOfferName& of, uint32_t rank, Liveness& liveness, wl_error_t* error);
  Code take(Liveness& liveness, OpenFile* file, wl_error_t* error);

 private:
  // One attempt. Sets *isDropped if the server closed the connection.
  Code askOnce(Liveness& liveness, bool* isDropped, wl_error_t* error);
  Code takeOnce(Liveness& liveness, OpenFile* file, bool* isDropped, wl_error_t* error);

  OpenFile socket_;
  FileOfferName of_ = {};
  uint32_t rank_ = 0;      // that offers the file
  bool wasThere_ = false;  // true after the first successful connection
};

}  // namespace windlass
