// SPDX-License-Identifier: Apache-2.0
// The last word of a rank to its launcher.
#include "transport/pm/pmi_farewell.h"

#include <sys/stat.h>
#include <unistd.h>

#include "transport/pm/pmi.h"

// Of whatever MPI is in this program; without one they are null.
extern "C" {
[[gnu::weak]] int MPI_Initialized(int* flag);
[[gnu::weak]] int MPI_Finalized(int* flag);
}

namespace sekisho::pm {
namespace {

constexpr Nanos kPatience = 10 * kSecond;

// It says farewell itself, or its program ends in the middle of it, and that is to be known.
bool IsMpiInUse() {
  int begun = 0, ended = 0;
  if (MPI_Initialized != nullptr) (void)MPI_Initialized(&begun);
  if (MPI_Finalized != nullptr) (void)MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

class Farewell {
 public:
  ~Farewell() {
    if (process_ != getpid() || IsMpiInUse() || !IsSame()) return;
    Pmi pmi(kPatience);
    if (!pmi.Open()) (void)pmi.Finalize();
  }

  void Note(int fd) {
    if (fstat(fd, &socket_) != 0) return;
    fd_ = fd;
    process_ = getpid();
  }

 private:
  // MPI closes it, and another file may have its number.
  bool IsSame() const {
    struct stat now;
    return fstat(fd_, &now) == 0 && now.st_dev == socket_.st_dev && now.st_ino == socket_.st_ino;
  }

  int fd_ = -1;
  pid_t process_ = 0;
  struct stat socket_ {};
};

Farewell farewell;

}  // namespace

void SayPmiFarewellAtEnd(int fd) { farewell.Note(fd); }

}  // namespace sekisho::pm
