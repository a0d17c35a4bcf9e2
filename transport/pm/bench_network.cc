// SPDX-License-Identifier: Apache-2.0
// A network for a measurement alone.
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/pm/bench_ends.h"

namespace sekisho::pm {
namespace {

bool Write(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written;
}

}  // namespace

bool EnterPrivateNetwork() {
  const unsigned uid = getuid();
  if (uid == 0) {
    if (unshare(CLONE_NEWNET) != 0) return false;
  } else {
    char map[32];
    snprintf(map, sizeof map, "0 %u 1\n", uid);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || !Write("/proc/self/uid_map", map)) {
      return false;
    }
  }
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  request.ifr_mtu = 1500;
  bool ready = ioctl(fd, SIOCSIFMTU, &request) == 0;
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  ready = ready && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return ready;
}

bool SetLoss(double percent) {
  FILE* nft = popen("nft -f - 2>/dev/null", "w");
  if (nft == nullptr) return false;
  fputs("flush ruleset\n", nft);
  if (percent > 0) {
    fprintf(nft,
            "table inet loss { chain arriving { type filter hook input priority 0;\n"
            "  meta l4proto { tcp, udp } numgen random mod 100000 < %.0f counter drop\n}\n}\n",
            percent * 1000);
  }
  return pclose(nft) == 0;
}

}  // namespace sekisho::pm
