// SPDX-License-Identifier: Apache-2.0
// A network for a measurement alone.
#include "transport/pm/bench_network.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

namespace sekisho::pm {
namespace {

bool Write(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written;
}

// What the kernel is asked of this namespace's loopback.
class Loopback {
 public:
  Loopback() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    strcpy(request_.ifr_name, "lo");
  }
  ~Loopback() { close(fd_); }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  ifreq& request() { return request_; }
  bool Ask(unsigned long what) { return ioctl(fd_, what, &request_) == 0; }

 private:
  int fd_;
  ifreq request_{};
};

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
  Loopback lo;
  lo.request().ifr_mtu = 1500;
  const bool sized = lo.Ask(SIOCSIFMTU);
  lo.request().ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  return sized && lo.Ask(SIOCSIFFLAGS);
}

bool SetOffload(bool on) {
  Loopback lo;
  bool set = true;
  for (const std::uint32_t which : {ETHTOOL_SGSO, ETHTOOL_STSO}) {
    ethtool_value value = {which, on};
    lo.request().ifr_data = reinterpret_cast<char*>(&value);
    set = set && lo.Ask(SIOCETHTOOL);
  }
  return set;
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
