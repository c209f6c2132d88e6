// SPDX-License-Identifier: Apache-2.0
// What a rank that waits for others outside of an operation looks at.
#pragma once

namespace windlass {

class Liveness {
 public:
  // Whether there is time, and nothing has failed.
  virtual bool goesOn() = 0;

 protected:
  ~Liveness() = default;
};

}  // namespace windlass
