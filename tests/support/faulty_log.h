// SPDX-License-Identifier: Apache-2.0
// A log whose next line throws, once: a fault of the program's, in whatever it is about to say
// that.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

namespace sekisho::test {

class FaultyLog {
 public:
  // Not before `is_due`.  No other thread writes to the log when this begins or ends.
  explicit FaultyLog(std::function<bool()> is_due = [] { return true; })
      : sink_(std::make_shared<Sink>(std::move(is_due))) {
    spdlog::default_logger()->sinks().push_back(sink_);
  }
  ~FaultyLog() { std::erase(spdlog::default_logger()->sinks(), sink_); }
  FaultyLog(const FaultyLog&) = delete;
  FaultyLog& operator=(const FaultyLog&) = delete;

  bool has_thrown() const { return sink_->has_thrown; }

 private:
  struct Fault {};
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    explicit Sink(std::function<bool()> is_due) : is_due_(std::move(is_due)) {}
    bool has_thrown = false;

   private:
    void sink_it_(const spdlog::details::log_msg& /*line*/) override {
      if (!has_thrown && is_due_()) {
        has_thrown = true;
        throw Fault{};  // no std::exception: spdlog keeps those to itself
      }
    }
    void flush_() override {}

    const std::function<bool()> is_due_;
  };
  const std::shared_ptr<Sink> sink_;
};

}  // namespace sekisho::test
