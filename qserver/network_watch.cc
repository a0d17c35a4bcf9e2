// SPDX-License-Identifier: Apache-2.0
#include "qserver/network_watch.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <openssl/rand.h>

#include "common/log.h"
#include "topology/text_format.h"

namespace sekisho::qserver {
namespace {

topology::ProbeKey RandomKey() {
  topology::ProbeKey key;
  CHECK(RAND_bytes(key.data(), int(key.size())) == 1);
  return key;
}

int64_t WallClockMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

NetworkWatch::NetworkWatch(Loop& loop, NetworkKeeper::Settings settings, std::string path,
                           NetworkKeeper::Send send, std::function<void()> on_change)
    : loop_(loop),
      path_(std::move(path)),
      on_change_(std::move(on_change)),
      keeper_(std::move(settings), std::move(send), RandomKey) {}

double NetworkWatch::Now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void NetworkWatch::Restore() {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) {
    return;
  }
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  absl::StatusOr<topology::NamedTree> tree = topology::ParseTree(text.str(), path_);
  if (!tree.ok()) {
    spdlog::warn("the network is inferred again: {}", std::string(tree.status().message()));
    return;
  }
  spdlog::info("network restored nodes={}", tree->tree.host_count);
  keeper_.Restore(*std::move(tree), Now_s());
  changed_ms_ = WallClockMs();
}

void NetworkWatch::Write() {
  const std::string beside = path_ + ".new";
  std::ofstream file(beside, std::ios::trunc);
  file << upkeep().Text();
  file.close();
  if (file.fail() || std::rename(beside.c_str(), path_.c_str()) != 0) {
    spdlog::error("cannot write {}: {}", path_, std::strerror(errno));
  }
}

awaitable<void> NetworkWatch::Run() {
  for (;;) {
    co_await Sleep(loop_, std::chrono::seconds(1));
    keeper_.Tick(Now_s());
    const std::optional<std::string> news = keeper_.TakeNews();
    if (news && !news->empty()) {
      spdlog::info("network changed nodes={}: {}", upkeep().tree().tree.host_count, *news);
      changed_ms_ = WallClockMs();
      Write();
      on_change_();
    }
  }
}

}  // namespace sekisho::qserver
