// SPDX-License-Identifier: Apache-2.0
// What users ask of a keeper, and how it finds a new sekisho-pmd if its own was killed.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/daemon/context_metrics.h"
#include "transport/pm/daemon/context_top.h"
#include "transport/pm/daemon/keeper.h"
#include "transport/pm/daemon/process_state.h"

namespace sekisho::pm {
namespace {

constexpr int kAdoptionTimeoutMs = 1000;

// 0 or errno.  Only what was ever written.
int CopySparse(int from, int to, std::size_t size) {
  if (ftruncate(to, static_cast<off_t>(size)) != 0) return errno;
  for (off_t offset = 0;;) {
    const off_t data = lseek(from, offset, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? 0 : errno;
    const off_t hole = lseek(from, data, SEEK_HOLE);
    if (hole < 0 || lseek(to, data, SEEK_SET) < 0) return errno;
    offset = data;
    while (offset < hole) {
      const ssize_t sent = sendfile(to, from, &offset, static_cast<std::size_t>(hole - offset));
      if (sent <= 0) return sent < 0 ? errno : EIO;
    }
  }
}

}  // namespace

void Keeper::Answer(int client, int error, const char* text) {
  AnswerMessage answer;
  answer.error = error;
  answer.length = static_cast<std::uint32_t>(std::min(strlen(text), answer.text.size() - 1));
  memcpy(answer.text.data(), text, answer.length);
  (void)SendMessage(client, BytesOf(answer), {});
  close(client);
}

bool Keeper::IsStopped() { return memory_.area(hand_over().seen().area).paused(); }

GangPhase Keeper::Phase() { return PhaseOf(memory_.area(hand_over().seen().area).gang().wave); }

void Keeper::AnswerAsker() {
  const bool done = asks_stop_ ? IsSettled() : !IsStopped();
  if (!done && Wire::Now() <= asks_until_) return;
  std::array<char, 256> text{};
  if (done && asks_stop_) DescribeGang(text);
  Answer(asker_, done ? 0 : ETIMEDOUT, text.data());
  asker_ = -1;
  takes_back_ = !done && asks_stop_;  // in vain: the job goes on
}

// The context is over: who asked, and whose question is on its way, hears so.
void Keeper::RefuseAskers() {
  if (asker_ >= 0) Answer(asker_, ENOENT, "");
  asker_ = -1;
  if (setup_.control < 0) return;
  shutdown(setup_.control, SHUT_RD);  // from now on sekisho-pmd says it
  for (AskMessage ask;;) {
    const Received received = ReceiveMessage(setup_.control, RoomFor(ask));
    if (received.size == 0) return;
    if (received.fd_count > 0) Answer(received.fds[0], ENOENT, "");
    for (std::size_t i = 1; i < received.fd_count; ++i) close(received.fds[i]);
  }
}

// The global state that the stop found.
void Keeper::DescribeGang(std::span<char> text) {
  const GangNote gang = memory_.area(hand_over().seen().area).gang();
  const Config& config = memory_.config();
  const std::uint64_t here = config.nodes - gang.gone;
  const char* verdict = gang.idle < here ? "" : ": every program waits and nothing is under way";
  snprintf(text.data(), text.size(), "context %u node %u stopped: %llu of %u nodes, %llu wait%s\n",
           config.context, config.node, static_cast<unsigned long long>(here), config.nodes,
           static_cast<unsigned long long>(gang.idle), verdict);
}

// The whole memory, while nobody changes it.
int Keeper::Save(int file) {
  if (!AwaitSettled()) return EBUSY;
  OwnerWord mine;
  if (!Acquire(mine)) return EBUSY;
  const int error = CopySparse(memory_.fd(), file, SharedMemory::SizeFor(memory_.config()));
  (void)hand_over().GiveBack(mine);
  return error;
}

// What Save wrote, perhaps on another host.  It is not trusted more than a program.
int Keeper::Restore(int file) {
  if (!setup_.parked && !AwaitSettled()) return EBUSY;
  struct stat status;
  const std::size_t size = SharedMemory::SizeFor(memory_.config());
  if (fstat(file, &status) != 0 || static_cast<std::size_t>(status.st_size) != size) return EINVAL;
  const int copy = memfd_create("pm-saved", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (copy < 0) return errno;
  SharedMemory saved;
  const int copied = CopySparse(file, copy, size);
  (void)fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  const auto mapped = saved.Map(copy);
  if (copied != 0) return copied;
  const Config& ours = memory_.config();
  const Config& theirs = saved.config();
  if (mapped || theirs.context != ours.context || theirs.node != ours.node ||
      theirs.nodes != ours.nodes || theirs.channels != ours.channels || theirs.key != ours.key ||
      theirs.incarnation != ours.incarnation) {
    return EINVAL;
  }
  OwnerWord mine;
  if (!Acquire(mine)) return EBUSY;
  auto word = hand_over();
  const std::uint32_t area = word.SpareArea(mine);
  const OwnerWord was = OwnerWord::Of(saved.head().word.load());
  memory_.Restore(saved, was.area % kAreas, area, Wire::Now());
  if (!(saved.head().own == wire_.own_address())) memory_.area(area).Moved(Wire::Now());
  word.Move(mine, area);
  memory_.head().deadline.store(0);  // there is something to do
  (void)word.GiveBack(mine);
  return 0;
}

void Keeper::TakeControl() {
  AskMessage ask;
  const Received received = ReceiveMessage(setup_.control, RoomFor(ask));
  if (received.size == 0) {  // sekisho-pmd is dead
    close(setup_.control);
    setup_.control = -1;
    return;
  }
  if (received.size != sizeof ask || received.fd_count == 0) return;
  const int client = received.fds[0];
  const int file = received.fds[1];
  std::array<char, 4096> text{};
  switch (ask.ask) {
    case Ask::kTop:
      WriteTop(memory_, {setup_.program, !dead_ && attended_, dead_}, ask.first, text);
      Answer(client, 0, text.data());
      break;
    case Ask::kMetrics:
      WriteMetrics(memory_, text);
      Answer(client, 0, text.data());
      break;
    case Ask::kStop:
    case Ask::kGo:
      if (asker_ >= 0) {
        Answer(client, EBUSY, "");
        break;
      }
      asker_ = client;
      asks_stop_ = ask.ask == Ask::kStop;
      takes_back_ = false;
      asks_until_ = Wire::Now() + Nanos{ask.timeout_ms} * kMillisecond;
      break;
    case Ask::kDrop:
      if (AwaitSettled() && (dead_ || setup_.parked)) closed_ = true;
      Answer(client, closed_ ? 0 : EBUSY, "");
      break;
    case Ask::kSave:
      Answer(client, file >= 0 ? Save(file) : EINVAL, "");
      break;
    case Ask::kRestore:
      Answer(client, file >= 0 ? Restore(file) : EINVAL, "");
      break;
    default:
      Answer(client, EINVAL, "");
  }
  for (std::size_t i = 1; i < received.fd_count; ++i) close(received.fds[i]);
}

// Hands everything to the next sekisho-pmd, which starts a keeper of its own.
bool Keeper::AskToBeAdopted() {
  retry_adoption_ = Wire::Now() + 200 * kMillisecond;
  const int daemon = ConnectDaemon(setup_.daemon_path, false);
  if (daemon < 0) return false;
  AskMessage ask;
  ask.ask = Ask::kAdopt;
  ask.config.context = memory_.config().context;
  ask.config.node = memory_.config().node;
  ask.program = dead_ ? 0 : setup_.program;
  ask.owner = static_cast<std::int32_t>(setup_.owner);
  std::array<int, kFdsMax> fds = {memory_.fd(), wire_.fd(), setup_.fds.keeper_bell,
                                  setup_.fds.program_bell, setup_.connection};
  AnswerMessage answer;
  Received received;
  const int error = AskDaemon(daemon, ask, std::span(fds).first(setup_.connection >= 0 ? 5u : 4u),
                              kAdoptionTimeoutMs, answer, received);
  close(daemon);
  return error == 0;
}

}  // namespace sekisho::pm
