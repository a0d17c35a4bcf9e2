// SPDX-License-Identifier: Apache-2.0
// What a daemon says of itself in figures, as Prometheus reads them.  docs/operations/metrics.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/loop.h"
#include "common/status.h"

namespace sekisho {

// The text, in Prometheus' exposition format 0.0.4.  Pure.  Figures of one name are added one after the other.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // `name`: what follows sekisho_DAEMON_.
  explicit Metrics(std::string daemon) : daemon_(std::move(daemon)) {}

  void Gauge(std::string_view name, std::string_view help, double value, const Labels& labels = {}) {
    Add("gauge", "sekisho_" + daemon_ + "_" + std::string(name), help, value, labels);
  }
  // Only grows; the name ends in _total.
  void Counter(std::string_view name, std::string_view help, double value, const Labels& labels = {}) {
    Add("counter", "sekisho_" + daemon_ + "_" + std::string(name), help, value, labels);
  }
  // process_...: processor time, memory, descriptors, start.
  void AddProcess();

  const std::string& text() const { return text_; }

 private:
  void Add(const char* kind, const std::string& name, std::string_view help, double value, const Labels& labels);

  const std::string daemon_;
  std::string last_name_;
  std::string text_;
};

// The page that `request`, an HTTP request's head, gets.  Pure.
std::string AnswerHttp(std::string_view request, const std::function<std::string()>& text);

// Serves GET /metrics at `address`: HOST:PORT, unix:PATH, or "none".  A daemon does not stop because nobody can look
// at it: what goes wrong is logged.  `fill` adds the daemon's own figures.
void ServeMetrics(Loop& loop, const std::string& daemon, const std::string& address,
                  std::function<void(Metrics&)> fill);

}  // namespace sekisho
