// SPDX-License-Identifier: Apache-2.0
// A page server for the machine itself: GET, one answer, closed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "nxproxy/listener.h"

namespace sekisho::nxproxy {

class Http {
 public:
  // `page`: the path's text, or "" if there is no such page.
  Http(Poller& poller, Descriptor listening,
       std::function<std::string(const std::string& path)> page);
  ~Http();

  uint16_t port() const { return listener_.port(); }
  void Tick(int64_t now_ms);

 private:
  struct Request;
  void Answer(Request& request);

  Poller& poller_;
  std::function<std::string(const std::string&)> page_;
  std::unordered_map<Request*, std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Request>> dead_;
  int64_t now_ms_ = NowMs();
  Listener listener_;
};

}  // namespace sekisho::nxproxy
