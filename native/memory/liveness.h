// SPDX-License-Identifier: Apache-2.0
// Tells a rank that waits outside of an operation whether to keep waiting.
#pragma once

namespace windlass {

class Liveness {
 public:
  // True while there is time left and nothing has failed.
  virtual bool goesOn() = 0;

 protected:
  ~Liveness() = default;
};

}  // namespace windlass
