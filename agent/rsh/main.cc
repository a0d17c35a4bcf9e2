// SPDX-License-Identifier: Apache-2.0
// sekisho-rsh HOST COMMAND…: what a site's mpirun calls in place of ssh or rsh.  Asks the agent of
// its own node for a helper on HOST, a node of the same job; relays its streams and ends with its
// exit code.  It outlives the agent, and the agent's connections: what they forget it says again.
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <semaphore>
#include <thread>

#include <asio/thread_pool.hpp>
#include <grpcpp/grpcpp.h>

#include "agent/rsh/command_line.h"
#include "agent/rsh/limits.h"
#include "agent/rsh/orphaned_mpiexec.h"
#include "agent/rsh/outage.h"
#include "agent/rsh/progress.h"
#include "common/loop.h"
#include "common/refusal.h"
#include "common/rpc_client.h"
#include "proto/nodes.grpc.pb.h"

namespace {

using namespace sekisho;
using namespace std::chrono_literals;
using agent::rsh::Progress;
using Call = rpc::ClientDuplex<proto::LaunchIn, proto::LaunchOut>;

constexpr int kFailure = 255;  // as ssh has it
constexpr int kMpiexecPatienceMs = 10'000;
constexpr size_t kBesideBegin = 100;  // bytes: what Progress adds
constexpr std::chrono::milliseconds kFirstDelay = 50ms;
constexpr std::chrono::milliseconds kLongestDelay = 1000ms;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void Print(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno != EINTR) {
      return;
    }
    data.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
}

int Ended(const proto::ServerMessage::LaunchEnded& ended, const std::string& node) {
  if (!ended.reason().empty()) {
    std::fprintf(stderr, "sekisho-rsh: %s: %s\n", node.c_str(), ended.reason().c_str());
    agent::rsh::WatchMpiexec(kMpiexecPatienceMs);
  }
  if (ended.exit().signal() != 0) {
    return 128 + ended.exit().signal();
  }
  return ended.exit().code() == 0 && !ended.reason().empty() ? kFailure : ended.exit().code();
}

proto::LaunchIn::Begin BeginOf(const agent::rsh::CommandLine& line) {
  proto::LaunchIn::Begin begin;
  begin.set_job_id(Variable("SEKISHO_JOB_ID"));
  begin.set_token(Variable("SEKISHO_LAUNCH_TOKEN"));
  begin.set_node(line.node);
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), line.command}) {
    begin.add_argument(word);
  }
  std::random_device random;
  while (begin.id() == 0) {
    begin.set_id(uint64_t{random()} << 32 | random());
  }
  return begin;
}

class Launcher {
 public:
  Launcher(Loop& loop, const std::string& socket, proto::LaunchIn::Begin begin) : loop_(loop), begin_(std::move(begin)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, int(kFirstDelay.count()));
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, int(kLongestDelay.count()));
    stub_ = proto::Launcher::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  }

  // In a thread of its own: standard input may be anything.
  void ReadInput(bool is_empty) {
    char buffer[Progress::kChunkMost];
    ssize_t n = 0;
    while (!is_empty && ((n = read(STDIN_FILENO, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))) {
      asio::post(loop_, [this, data = std::string(buffer, n > 0 ? size_t(n) : 0)] { AddInput(data); });
      room_.acquire();
    }
    asio::post(loop_, [this] { EndInput(); });
  }

  // The exit code.
  awaitable<int> Run() {
    agent::rsh::Outage outage;
    std::chrono::milliseconds delay = kFirstDelay;
    for (;;) {
      const std::shared_ptr<Call> call = Begin();
      call_ = call.get();
      proto::LaunchOut out;
      for (;;) {
        const bool is_read = co_await call->Read(out);
        if (!is_read) {
          break;
        }
        delay = kFirstDelay;
        outage.End();
        if (out.has_ended() && progress_.HasAllBefore(out.ended())) {
          co_await AwaitWritten();
          call_ = nullptr;
          co_return Ended(out.ended(), begin_.node());
        }
        Hear(out);
      }
      call_ = nullptr;
      const absl::Status status = co_await call->Finish();
      if (!agent::rsh::IsBreak(status)) {
        co_await AwaitWritten();
        Print(STDERR_FILENO, "sekisho-rsh: " + begin_.node() + ": " + Message(status) + "\n");
        agent::rsh::WatchMpiexec(kMpiexecPatienceMs);
        co_return kFailure;
      }
      if (outage.OnBreak(std::chrono::steady_clock::now())) {
        Write(proto::OutputChunk::STDERR,
              "sekisho-rsh: " + begin_.node() + ": waiting for this node's agent: " + Message(status) + "\n", false);
      }
      co_await Sleep(loop_, delay);
      delay = std::min(delay * 2, kLongestDelay);
    }
  }

 private:
  std::shared_ptr<Call> Begin() {
    auto call = rpc::Start<Call>(loop_, {}, [this](Call& starting) {
      stub_->async()->Launch(&starting.context(), &starting);
    });
    proto::LaunchIn first;
    *first.mutable_begin() = begin_;
    progress_.Describe(*first.mutable_begin());
    first.mutable_begin()->set_retried(std::exchange(is_retried_, true));
    call->Push(std::move(first));
    Send(*call, progress_.input(), progress_.has_input_ended());
    return call;
  }

  static void Send(Call& call, const std::string& data, bool is_end) {
    proto::LaunchIn in;
    if (!data.empty()) {
      in.set_data(data);
      call.Push(in);
    }
    if (is_end) {
      in.set_end(true);
      call.Push(in);
    }
  }

  void Hear(const proto::LaunchOut& out) {
    if (out.has_output()) {
      const std::string_view news = progress_.Output(out.output());
      if (news.empty()) {
        SayTaken(out.output().stream());
      } else {
        Write(out.output().stream(), std::string(news), true);
      }
    } else if (out.has_input_taken()) {
      progress_.InputTaken(out.input_taken().offset());
      GiveRoom();
    }
  }

  // Whoever reads our output may not, until all that it writes has been read.
  void Write(proto::OutputChunk::Stream stream, std::string data, bool is_output) {
    const bool is_error = stream == proto::OutputChunk::STDERR;
    asio::post(writers_[is_error], [this, stream, is_error, is_output, data = std::move(data)] {
      Print(is_error ? STDERR_FILENO : STDOUT_FILENO, data);
      if (is_output) {
        asio::post(loop_, [this, stream, size = data.size()] {
          progress_.Written(stream, size);
          SayTaken(stream);
          written_.Notify();
        });
      }
    });
  }

  awaitable<void> AwaitWritten() {
    while (!progress_.is_all_written()) {
      co_await written_.Wait();
    }
  }

  void SayTaken(proto::OutputChunk::Stream stream) {
    if (call_ != nullptr) {
      proto::LaunchIn in;
      in.mutable_taken()->set_stream(stream);
      in.mutable_taken()->set_offset(progress_.written(stream));
      call_->Push(std::move(in));
    }
  }

  void AddInput(const std::string& data) {
    progress_.AddInput(data);
    if (call_) {
      Send(*call_, data, false);
    }
    is_reader_waiting_ = true;
    GiveRoom();
  }

  void EndInput() {
    progress_.EndInput();
    if (call_) {
      Send(*call_, "", true);
    }
  }

  void GiveRoom() {
    if (is_reader_waiting_ && progress_.HasRoom()) {
      is_reader_waiting_ = false;
      room_.release();
    }
  }

  Loop& loop_;
  const proto::LaunchIn::Begin begin_;
  bool is_retried_ = false;
  std::unique_ptr<proto::Launcher::Stub> stub_;
  Progress progress_;
  std::array<asio::thread_pool, 2> writers_{asio::thread_pool(1), asio::thread_pool(1)};  // of standard output, error
  Signal written_{loop_};
  Call* call_ = nullptr;  // that stands
  std::binary_semaphore room_{0};  // for the reader's next chunk
  bool is_reader_waiting_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const auto line = agent::rsh::ParseCommandLine({argv + 1, argv + argc});
  if (!line) {
    std::fputs("usage: sekisho-rsh [options of ssh, ignored] HOST COMMAND...\n", stderr);
    return kFailure;
  }
  const std::string socket = Variable("SEKISHO_LAUNCH_SOCKET");
  if (socket.empty()) {
    std::fputs("sekisho-rsh: works only inside a Sekisho job (SEKISHO_LAUNCH_SOCKET is not set)\n",
               stderr);
    return kFailure;
  }
  proto::LaunchIn::Begin begin = BeginOf(*line);
  if (begin.ByteSizeLong() + kBesideBegin > agent::rsh::kMessageMost) {
    std::fprintf(stderr, "sekisho-rsh: %s: the command is longer than 1 MiB\n", line->node.c_str());
    return kFailure;
  }
  Loop& loop = ProcessLoop();
  Launcher launcher(loop, socket, std::move(begin));
  // They may wait for ever, its writers too: all ends with _exit.
  std::thread([&launcher, &line] { launcher.ReadInput(line->no_input); }).detach();
  co_spawn(loop, launcher.Run(), [](const std::exception_ptr& thrown, int code) { _exit(thrown ? kFailure : code); });
  loop.run();
}
