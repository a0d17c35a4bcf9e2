// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/prober.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "topology/probe/copy.h"
#include "topology/probe/errors.h"
#include "topology/probe/flow.h"
#include "topology/probe/orders.h"
#include "topology/probe/ping_run.h"
#include "topology/probe/pull.h"
#include "topology/probe/responder.h"

namespace sekisho::topology {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kMostOrders = 16;  // at once; more wait in the pipe
constexpr long kMostVisitors = 64;
constexpr long kVisitor = -1;
constexpr int kTidyMs = 1000;

absl::StatusOr<std::string> AddressOf(const std::string& interface) {
  ifaddrs* all = nullptr;
  std::string found;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
      const bool is_wanted =
          interface.empty() ? (one->ifa_flags & IFF_LOOPBACK) == 0 : interface == one->ifa_name;
      if (is_wanted && (one->ifa_flags & IFF_UP) != 0 && one->ifa_addr != nullptr &&
          one->ifa_addr->sa_family == AF_INET) {
        char text[INET_ADDRSTRLEN];
        found = inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                          text, sizeof text);
      }
    }
    freeifaddrs(all);
  }
  if (found.empty()) {
    return errors::NoInterface(interface);
  }
  return found;
}

class Prober {
 public:
  Prober(int in, int out) : in_(in), out_(out) {}

  absl::Status Run(const std::string& interface);

 private:
  struct Task {
    long id;  // of the order; kVisitor: none
    std::unique_ptr<ProbeTask> run;
    FlowRun* waiting = nullptr;  // is the same, if it begins only when told
    bool is_answered = false;    // that it waits
  };

  absl::Status ReadOrders();
  absl::Status Obey(std::string_view line);
  std::string ObeyAboutCopy(const ProbeOrder& order);
  void Add(long id, std::unique_ptr<ProbeTask> run);
  void Go(long id, long waiting);
  void Receive();
  void Say(const std::string& line);
  void Finish();
  int PatienceMs() const;

  int in_;
  int out_;
  bool is_over_ = false;
  std::string unread_;
  std::optional<ProbeKey> key_;
  Responder responder_;
  std::unique_ptr<Copy> copy_;  // outlives the tasks
  std::vector<Task> tasks_;
  long orders_ = 0;  // of the tasks
  long visitors_ = 0;
};

// Whoever gives orders reads the answers; if nobody does any more, there is nothing left to do.
void Prober::Say(const std::string& line) {
  for (size_t said = 0; said < line.size() && !is_over_;) {
    const ssize_t count = write(out_, line.data() + said, line.size() - said);
    if (count > 0) {
      said += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      is_over_ = true;
    }
  }
}

// What a copy's order comes to: "ok ..." or "no WHY".
std::string Prober::ObeyAboutCopy(const ProbeOrder& order) {
  const auto copy = [&]() -> absl::StatusOr<std::string> {
    if (order.kind == ProbeOrder::Kind::kSource || order.kind == ProbeOrder::Kind::kTarget) {
      if (copy_ != nullptr) {
        return errors::OneCopyOnly();
      }
      ASSIGN_OR_RETURN(copy_, order.kind == ProbeOrder::Kind::kSource
                                  ? Copy::Open(order.path)
                                  : Copy::Create(order.path, order.number));
      return std::to_string(copy_->size());
    }
    if (order.kind == ProbeOrder::Kind::kHere) {
      return std::string("here");
    }
    if (copy_ == nullptr) {
      return errors::NoCopy();
    }
    if (order.kind == ProbeOrder::Kind::kDigest) {
      return copy_->Digest();
    }
    RETURN_IF_ERROR(copy_->Commit());
    return std::string("there");
  }();
  return copy.ok() ? "ok " + *copy : "no " + std::string(copy.status().message());
}

absl::Status Prober::Obey(std::string_view line) {
  using Kind = ProbeOrder::Kind;
  const std::optional<ProbeOrder> order = ParseOrder(line);
  const bool needs_key = order && (order->kind == Kind::kMeasure || order->kind == Kind::kFlow ||
                                   order->kind == Kind::kWait || order->kind == Kind::kPull);
  if (!order || (needs_key && !key_) || (order->kind == Kind::kPull && copy_ == nullptr)) {
    return errors::BadOrder(line);
  }
  switch (order->kind) {
    case Kind::kKey:
      key_ = order->key;
      responder_.SetKey(*key_);
      break;
    case Kind::kMeasure:
      Add(order->id, std::make_unique<PingRun>(order->target, *key_, order->request));
      break;
    case Kind::kFlow:
      Add(order->id, std::make_unique<FlowRun>(order->target, *key_,
                                               std::chrono::milliseconds(order->number)));
      break;
    case Kind::kWait: {
      auto flow =
          std::make_unique<FlowRun>(order->target, *key_, std::chrono::milliseconds(order->number),
                                    FlowRun::Start::kWhenTold);
      FlowRun* const waiting = flow.get();
      Add(order->id, std::move(flow));
      tasks_.back().waiting = waiting;
      break;
    }
    case Kind::kGo:
      Go(order->id, static_cast<long>(order->number));
      break;
    case Kind::kPull:
      Add(order->id, std::make_unique<PullRun>(order->target, *key_, *copy_));
      break;
    case Kind::kQuit:
      is_over_ = true;
      break;
    default:
      Say(PrintResult(order->id, ObeyAboutCopy(*order)));
  }
  return absl::OkStatus();
}

void Prober::Add(long id, std::unique_ptr<ProbeTask> run) {
  tasks_.push_back({id, std::move(run)});
  (id == kVisitor ? visitors_ : orders_) += 1;
}

// Whose connection broke meanwhile, or who was waiting too long, is gone.
void Prober::Go(long id, long waiting) {
  const auto task = std::find_if(tasks_.begin(), tasks_.end(), [waiting](const Task& one) {
    return one.id == waiting && one.is_answered && one.waiting->IsWaiting();
  });
  if (task == tasks_.end()) {
    Say(PrintResult(id, "0 0"));
    return;
  }
  task->waiting->Go();
  *task = {.id = id, .run = std::move(task->run)};
  ++orders_;
}

void Prober::Receive() {
  for (const Responder::Visitor& visitor : responder_.TakeVisitors()) {
    if (visitors_ >= kMostVisitors) {
      close(visitor.socket);
    } else if (visitor.wanted == Wanted::kSink) {
      Add(kVisitor, std::make_unique<SinkTask>(visitor.socket));
    } else {
      Add(kVisitor, std::make_unique<ServeTask>(visitor.socket, copy_.get()));
    }
  }
}

absl::Status Prober::ReadOrders() {
  char bytes[4096];
  const ssize_t count = read(in_, bytes, sizeof bytes);
  if (count < 0 && errno == EINTR) {
    return absl::OkStatus();
  }
  is_over_ = count <= 0;
  unread_.append(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    RETURN_IF_ERROR(Obey(std::string_view(unread_).substr(0, end)));
    unread_.erase(0, end + 1);
  }
  return unread_.size() > kLongestOrder ? errors::BadOrder(unread_) : absl::OkStatus();
}

void Prober::Finish() {
  for (Task& task : tasks_) {
    if (task.waiting != nullptr && !task.is_answered && task.waiting->IsWaiting()) {
      task.is_answered = true;
      --orders_;  // until it is told to go
      Say(PrintResult(task.id, kConnected));
    }
  }
  std::erase_if(tasks_, [this](const Task& task) {
    if (!task.run->IsDone()) {
      return false;
    }
    if (task.is_answered) {
      return true;
    }
    if (task.id != kVisitor) {
      Say(PrintResult(task.id, task.run->Result()));
    }
    (task.id == kVisitor ? visitors_ : orders_) -= 1;
    return true;
  });
}

// Until the first of our own measurements gives up, or idle connections are looked after.
int Prober::PatienceMs() const {
  if (tasks_.empty() && responder_.connections() == 0) {
    return -1;
  }
  Clock::time_point first = Clock::now() + std::chrono::milliseconds(kTidyMs);
  for (const Task& task : tasks_) {
    first = std::min(first, task.run->deadline());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

absl::Status Prober::Run(const std::string& interface) {
  ASSIGN_OR_RETURN(const std::string address, AddressOf(interface));
  RETURN_IF_ERROR(responder_.Listen(address, 0));
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  Say(PrintReady({{address, responder_.port()}, name}));
  while (!is_over_) {
    std::vector<pollfd> waits{{.fd = orders_ < kMostOrders ? in_ : -1,  //
                               .events = POLLIN,
                               .revents = 0}};
    for (const Task& task : tasks_) {
      waits.push_back(task.run->Watch());
    }
    responder_.Watch(waits);
    poll(waits.data(), waits.size(), PatienceMs());
    const std::span<const pollfd> seen(waits);
    const size_t runs = tasks_.size();
    responder_.Handle(seen.subspan(1 + runs));
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < runs; ++i) {
      tasks_[i].run->Handle(seen[1 + i].revents);
      tasks_[i].run->Expire(now);
    }
    Receive();
    if (seen[0].revents != 0) {
      RETURN_IF_ERROR(ReadOrders());
    }
    Finish();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunProber(const std::string& interface, int in, int out) {
  std::signal(SIGPIPE, SIG_IGN);
  return Prober(in, out).Run(interface);
}

}  // namespace sekisho::topology
