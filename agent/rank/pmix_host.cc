// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/pmix_host.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace sekisho::agent::pmix {

namespace {

constexpr int kSaysWithinMs = 10000;  // the library, how a client left that has ended

}  // namespace

int Host::Run(int rank) {
  while (!code_) {
    Serve(-1, -1);
  }
  for (bool is_late = false; *code_ == 0 && !is_late && IsInside(rank) && lost_.count(rank) == 0;) {
    is_late = Serve(-1, kSaysWithinMs);
  }
  return *code_;
}

int Host::ServeOthers(int gone) {
  for (bool are_gone = false; *code_ == 0 && !are_gone;) {
    are_gone = Serve(gone, -1);
  }
  return *code_;
}

bool Host::Serve(int other, int timeout_ms) {
  pollfd ready[] = {{signals_, POLLIN, 0},
                    {EventFd(), POLLIN, 0},
                    {has_agent_ ? pmi_.fd() : -1, POLLIN, 0},
                    {other, POLLIN, 0}};
  const int count = poll(ready, 4, timeout_ms);
  if (count <= 0) {
    return count == 0;
  }
  if (ready[1].revents != 0) {
    OnEvent(NextEvent());
  }
  if (ready[2].revents != 0) {
    OnBarrier(pmi_.LeaveBarrier());
  }
  if (ready[0].revents != 0) {
    OnSignal();
  }
  return ready[3].revents != 0;
}

std::string Host::Key(int node) const {
  return "pmix-" + std::to_string(fences_done_) + "-" + std::to_string(node);
}

void Host::OnEvent(std::unique_ptr<Event> event) {
  if (event == nullptr) {
    return;
  }
  switch (event->kind) {
    case Event::Kind::kInside:
      inside_.insert(event->rank);
      pmi_.SayInside(event->rank);
      break;
    case Event::Kind::kOutside:
      leaving_.push_back(std::move(event));
      LetGoAll();
      break;
    case Event::Kind::kLost:
      lost_.insert(event->rank);
      has_agent_ = has_agent_ && pmi_.SayLost(event->rank);
      break;
    case Event::Kind::kAborted:
      if (!has_agent_ || !pmi_.SayAborted(event->rank, event->code)) {
        // Who would end it has lost us, and it waits for that: our own end is the world's.
        if (!code_) {
          kill(program_, SIGKILL);
        }
        code_ = (event->code & 0xff) != 0 ? event->code & 0xff : 1;
      }
      break;
    case Event::Kind::kFence:
      fences_.push_back(std::move(event));
      if (fences_.size() == 1) {
        Begin();
      }
      break;
  }
}

// Before its first fence it has said so, if it does.
bool Host::PutVersion() {
  char text[128];
  const ssize_t size = fences_done_ == 0 && version_ >= 0 ? read(version_, text, sizeof text) : 0;
  return size <= 1 || pmi_.PutText("sekisho-mpi-" + std::to_string(layout_.node), std::string(text, size_t(size) - 1));
}

void Host::Begin() {
  if (!has_agent_ || !PutVersion() || !pmi_.Put(Key(layout_.node), fences_.front()->data) || !pmi_.EnterBarrier()) {
    OnBarrier(false);
  }
}

// The agent knows before the rank can end.  It is asked when it owes us no other answer.
void Host::LetGoAll() {
  while (fences_.empty() && !leaving_.empty()) {
    inside_.erase(leaving_.front()->rank);
    has_agent_ = has_agent_ && pmi_.SayOutside(leaving_.front()->rank);
    LetGo(*leaving_.front());
    leaving_.pop_front();
  }
}

void Host::OnBarrier(bool is_ok) {
  has_agent_ = has_agent_ && is_ok;
  if (fences_.empty()) {
    return;
  }
  std::string all;
  for (int node = 0; is_ok && node < static_cast<int>(layout_.hosts.size()); ++node) {
    const auto given = pmi_.Get(Key(node));
    is_ok = given.has_value();
    all += given.value_or("");
  }
  EndFence(*fences_.front(), is_ok, std::move(all));
  fences_.pop_front();
  ++fences_done_;
  if (!fences_.empty()) {
    Begin();
  }
  LetGoAll();
}

void Host::OnSignal() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != sizeof info) {
    return;
  }
  const int number = static_cast<int>(info.ssi_signo);
  if (number != SIGCHLD && !code_) {
    kill(program_, number);
  } else if (number != SIGCHLD && number != SIGCONT) {
    code_ = 128 + number;
  }
  int status = 0;
  if (number != SIGCHLD || waitpid(program_, &status, WNOHANG) != program_) {
    return;
  }
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  for (pollfd ready{EventFd(), POLLIN, 0};
       poll(&ready, 1, 0) > 0;) {  // what it said before its end
    OnEvent(NextEvent());
  }
}

}  // namespace sekisho::agent::pmix
