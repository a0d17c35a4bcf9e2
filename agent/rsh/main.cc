// SPDX-License-Identifier: Apache-2.0
// sekisho-rsh HOST COMMAND…: what a site's mpirun calls in place of ssh or rsh.  Asks the agent of
// its own node for a helper on HOST, a node of the same job; relays its streams and ends with its
// exit code.
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "agent/rsh/command_line.h"
#include "proto/nodes.grpc.pb.h"

namespace {

using namespace sekisho;
using Call = grpc::ClientReaderWriter<proto::LaunchIn, proto::LaunchOut>;

constexpr int kFailure = 255;  // as ssh has it

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void SendInput(Call& call, bool is_empty) {
  char buffer[64 << 10];
  proto::LaunchIn in;
  ssize_t n = 0;
  while (!is_empty && ((n = read(STDIN_FILENO, buffer, sizeof buffer)) > 0 || errno == EINTR)) {
    in.set_data(buffer, n > 0 ? static_cast<size_t>(n) : 0);
    if (!call.Write(in)) {
      return;
    }
  }
  in.set_end(true);
  call.Write(in);
}

void Print(int fd, const std::string& data) {
  for (size_t at = 0; at < data.size();) {
    const ssize_t n = write(fd, data.data() + at, data.size() - at);
    if (n < 0 && errno != EINTR) {
      return;
    }
    at += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

int Ended(const proto::ServerMessage::LaunchEnded& ended, const std::string& node) {
  if (!ended.reason().empty()) {
    std::fprintf(stderr, "sekisho-rsh: %s: %s\n", node.c_str(), ended.reason().c_str());
  }
  if (ended.exit().signal() != 0) {
    return 128 + ended.exit().signal();
  }
  return ended.exit().code() == 0 && !ended.reason().empty() ? kFailure : ended.exit().code();
}

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
  const auto stub = proto::Launcher::NewStub(
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto call = stub->Launch(&context);
  proto::LaunchIn first;
  proto::LaunchIn::Begin& begin = *first.mutable_begin();
  begin.set_job_id(Variable("SEKISHO_JOB_ID"));
  begin.set_token(Variable("SEKISHO_LAUNCH_TOKEN"));
  begin.set_node(line->node);
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), line->command}) {
    begin.add_argument(word);
  }
  call->Write(first);
  // It may wait for ever: all that follows ends with _exit.
  std::thread([&call, &line] { SendInput(*call, line->no_input); }).detach();

  proto::LaunchOut out;
  while (call->Read(&out)) {
    if (out.has_output()) {
      const bool is_error = out.output().stream() == proto::OutputChunk::STDERR;
      Print(is_error ? STDERR_FILENO : STDOUT_FILENO, out.output().data());
    } else if (out.has_ended()) {
      _exit(Ended(out.ended(), line->node));
    }
  }
  const grpc::Status status = call->Finish();
  std::fprintf(stderr, "sekisho-rsh: %s: %s\n", line->node.c_str(), status.error_message().c_str());
  _exit(kFailure);
}
