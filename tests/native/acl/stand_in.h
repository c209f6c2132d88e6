// SPDX-License-Identifier: Apache-2.0
// The stand-in for the Ascend runtime, opened as the runtime is, and what tests tell it:
// tests/acl/stand_in.cpp.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/ascend/acl/device_window.h"

namespace windlass::acl {

struct StandIn {
  Acl acl;
  void (*reset)();
  void (*processes)();
  void (*reaches)(int does);
  void (*isStuck)(int on, int is);
  void (*fail)(int on, int call, int error);
  int (*calls)(int on);
  const char* (*call)(int on, int number);
  int (*held)();
  void (*enqueue)(void* stream, void (*work)(void*, void*), void* context, void* arguments);

  // Returns the stand-in in its first state.
  static const StandIn& fresh() {
    static const StandIn one = open();
    one.reset();
    return one;
  }

  // The toolkit of that name in the build's folder.
  static std::string home(const char* name) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../.." / name;
  }

  std::vector<std::string> log(int on) const {
    std::vector<std::string> lines;
    for (int i = 1; i <= calls(on); ++i) lines.emplace_back(call(on, i));
    return lines;
  }

 private:
  static StandIn open() {
    StandIn one = {};
    wl_error_t error = blankError();
    const std::string place = home("acl_stand_in");
    EXPECT_EQ(Acl::open(place.c_str(), &one.acl, &error), WL_OK) << error.message;
    void* library = dlopen((place + "/lib64/libascendcl.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      EXPECT_NE(function, nullptr) << name;
    };
    find(one.reset, "standInReset");
    find(one.processes, "standInProcesses");
    find(one.reaches, "standInReaches");
    find(one.isStuck, "standInIsStuck");
    find(one.fail, "standInFail");
    find(one.calls, "standInCalls");
    find(one.call, "standInCall");
    find(one.held, "standInHeld");
    find(one.enqueue, "standInEnqueue");
    return one;
  }
};

// An all-gather of `ranks` threads.
class Exchange {
 public:
  explicit Exchange(uint32_t ranks) : ranks_(ranks), said_(ranks) {}

  class Seat final : public AllRanks {
   public:
    Seat(Exchange& shared, uint32_t rank) : exchange_(shared), rank_(rank) {}
    uint32_t rank() const override { return rank_; }
    uint32_t ranks() const override { return exchange_.ranks_; }
    Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
      return exchange_.all(rank_, own, everyones, bytes, error);
    }
    uint32_t firstBeside(uint32_t) const override { return 0; }
    bool goesOn() override { return true; }

   private:
    Exchange& exchange_;
    const uint32_t rank_;
  };

 private:
  Code all(uint32_t rank, const void* own, void* everyones, uint64_t bytes, wl_error_t* error) {
    std::unique_lock<std::mutex> lock(mutex_);
    said_[rank].assign(static_cast<const char*>(own), bytes);
    const uint64_t turn = turn_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++turn_;
      told_.clear();
      for (const std::string& one : said_) told_ += one;
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return turn_ != turn; })) {
      return fail(error, WL_DEADLINE_EXCEEDED, "rank %u waited for the others in vain", rank);
    }
    std::memcpy(everyones, told_.data(), told_.size());
    return WL_OK;
  }

  const uint32_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> said_;
  std::string told_;
  uint32_t arrived_ = 0;
  uint64_t turn_ = 0;
};

}  // namespace windlass::acl
