// SPDX-License-Identifier: Apache-2.0
// The link over pm.h, as a program would use it.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/bench/pm/link.h"
#include "transport/pm/pm.h"

namespace sekisho::pm_bench {
namespace {

constexpr std::size_t kPiece = PM_MTU;  // 8 KiB and our own head

class PmLink final : public Link {
 public:
  explicit PmLink(const LinkSettings& settings) : waiting_(settings.waiting) {
    static constexpr const char* kNames[] = {"spin", "sleep", "adaptive"};
    std::vector<std::string> words = {"--job",  settings.job,
                                      "--node", std::to_string(settings.rank),
                                      "--wait", kNames[static_cast<int>(waiting_)]};
    if (!settings.daemon.empty()) words.insert(words.end(), {"--daemon", settings.daemon});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    if (const int error =
            pmOpenDevice("udp", static_cast<int>(arguments.size()), arguments.data(), &pm_)) {
      Die("pmOpenDevice " + settings.job + ": " + strerror(error));
    }
    (void)pmGetNode(pm_, &rank, &size);
    (void)pmGetDescriptor(pm_, &descriptor_);
  }
  ~PmLink() override { pmCloseDevice(pm_); }

  std::size_t Put(int to, Bytes head, Bytes body) override {
    std::size_t done = 0;
    const std::size_t total = head.size() + body.size();
    while (done < total) {
      const std::size_t size = std::min(total - done, kPiece);
      void* buffer;
      const int error = pmGetSendBuffer(pm_, to, &buffer, size);
      if (error == ENOBUFS) return done;
      if (error != 0) Die("pmGetSendBuffer to " + std::to_string(to) + ": " + strerror(error));
      auto* out = static_cast<unsigned char*>(buffer);
      const std::size_t first = done < head.size() ? std::min(size, head.size() - done) : 0;
      if (first > 0) memcpy(out, head.data() + done, first);
      if (size > first) memcpy(out + first, body.data() + done + first - head.size(), size - first);
      if (const int sent = pmSendMore(pm_)) {  // whoever sends waits or polls then
        if (sent == ENOBUFS) return done;
        Die(std::string("pmSendMore: ") + strerror(sent));
      }
      done += size;
    }
    return done;
  }

  bool Poll(const Sink& sink) override {
    bool any = false;
    void* buffer;
    std::size_t length;
    for (int error; (error = pmReceive(pm_, &buffer, &length)) != ENOBUFS;) {
      if (error == EPIPE) continue;  // a rank that has left: the layer above misses it if it must
      if (error != 0) Die(std::string("pmReceive: ") + strerror(error));
      int source;
      (void)pmGetSource(pm_, &source);
      sink(source, {static_cast<unsigned char*>(buffer), length});
      (void)pmReleaseReceiveBuffer(pm_);
      any = true;
    }
    return any;
  }

  void Wait(bool blocked) override {
    if (!blocked) {
      (void)pmWait(pm_, 1'000'000);
      return;
    }
    if (waiting_ == Waiting::kSpin) return;
    (void)pmBeforeSelect(pm_);
    pollfd waiting = {descriptor_, POLLIN, 0};
    (void)poll(&waiting, 1, 1);
    (void)pmAfterSelect(pm_);
  }

  void Finish() override {
    while (pmIsSendDone(pm_) == EBUSY) (void)pmWait(pm_, 200);
  }

  void Checkpoint(const std::function<void()>& save) override {
    const auto call = [](void* argument) {
      (*static_cast<const std::function<void()>*>(argument))();
      return 0;
    };
    int error;
    while ((error = pmCheckpoint(pm_, call, const_cast<std::function<void()>*>(&save))) == EBUSY)
      usleep(500);
    if (error != 0) Die(std::string("pmCheckpoint: ") + strerror(error));
  }

  void Restart() override {
    while (pmRestartUser(pm_) != 0) usleep(500);
  }

 private:
  Waiting waiting_;
  pmContext* pm_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace

std::unique_ptr<Link> OpenPm(const LinkSettings& settings) {
  return std::make_unique<PmLink>(settings);
}

}  // namespace sekisho::pm_bench
