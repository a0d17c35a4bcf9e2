// SPDX-License-Identifier: Apache-2.0
// A network for a measurement alone.
#include "transport/pm/bench_network.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "transport/pm/bench_process.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

bool Write(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written;
}

// The namespaces of the two hosts if there is a cable, which each of them calls the same.
constexpr int kHosts = 2;
int hosts[kHosts] = {-1, -1};
constexpr const char* kCable = "pm0";
constexpr const char* kQueue = "pmq";  // of the bottleneck

bool has_cable() { return hosts[1] >= 0; }
int HostOf(NodeId node) { return node == 0 ? 0 : 1; }

// What the kernel is asked of an interface of this host.
class Interface {
 public:
  explicit Interface(const char* name) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    strcpy(request_.ifr_name, name);
  }
  ~Interface() { close(fd_); }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  ifreq& request() { return request_; }
  bool Ask(unsigned long what) { return ioctl(fd_, what, &request_) >= 0; }
  bool Ask(unsigned long what, void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return Ask(what);
  }

 private:
  int fd_;
  ifreq request_{};
};

// Features have no numbers of their own: the kernel lists their names.  -1: it does not have it.
int FeatureNumber(Interface& interface, const char* name) {
  // What these requests hold (linux/ethtool.h) ends in arrays without a length: as words.
  std::uint32_t size[] = {ETHTOOL_GSSET_INFO, 0, 1u << ETH_SS_FEATURES, 0, 0};
  if (!interface.Ask(SIOCETHTOOL, size)) return -1;
  const std::uint32_t count = size[4];
  std::vector<std::uint32_t> list(3 + count * ETH_GSTRING_LEN / sizeof(std::uint32_t));
  list[0] = ETHTOOL_GSTRINGS, list[1] = ETH_SS_FEATURES, list[2] = count;
  if (!interface.Ask(SIOCETHTOOL, list.data())) return -1;
  const char* const names = reinterpret_cast<const char*>(&list[3]);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (strncmp(names + i * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN) == 0)
      return static_cast<int>(i);
  }
  return -1;
}

bool SetFeature(Interface& interface, const char* name, bool on) {
  const int number = FeatureNumber(interface, name);
  if (number < 0) return false;
  const std::uint32_t block = static_cast<std::uint32_t>(number) / 32;
  const std::uint32_t bit = 1u << number % 32;
  std::vector<std::uint32_t> wanted(2 + 2 * (block + 1));  // pairs: which are meant, and how
  wanted[0] = ETHTOOL_SFEATURES, wanted[1] = block + 1;
  wanted[2 + 2 * block] = bit, wanted[3 + 2 * block] = on ? bit : 0;
  return interface.Ask(SIOCETHTOOL, wanted.data());
}

// A command of this host, with `text` on its standard input.
bool Run(const char* command, const char* text) {
  FILE* pipe = popen(command, "w");
  if (pipe == nullptr) return false;
  fputs(text, pipe);
  return pclose(pipe) == 0;
}

bool StartLoopback(int mtu) {
  Interface lo("lo");
  lo.request().ifr_mtu = mtu;
  const bool sized = lo.Ask(SIOCSIFMTU);
  lo.request().ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  return sized && lo.Ask(SIOCSIFFLAGS);
}

int ThisHost() { return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); }

// From the host that we are at, which becomes the others', to one of our own.
bool LayCable(int mtu) {
  char words[256];
  snprintf(words, sizeof words,
           "link add pm0 mtu %d type veth peer name pm1 mtu %d\n"
           "addr add 198.18.0.2/16 dev pm0\n"
           "link set pm0 up\n"
           "route add local 198.18.0.0/16 dev lo\n"
           "route add 198.18.0.1 dev pm0\n",
           mtu, mtu);
  if (!Run("ip -batch - 2>/dev/null", words)) return false;
  const int theirs = ThisHost();
  if (theirs < 0 || unshare(CLONE_NEWNET) != 0) return false;
  const int ours = ThisHost();
  char command[128];
  snprintf(command, sizeof command,
           "nsenter --net=/proc/%d/fd/%d ip link set pm1 name pm0 netns %d 2>/dev/null", getpid(),
           theirs, getpid());
  if (ours < 0 || !Run(command, "") || !StartLoopback(mtu) ||
      !Run("ip -batch - 2>/dev/null",
           "addr add 198.18.0.1/16 dev pm0\n"
           "link set pm0 up\n")) {
    return false;
  }
  hosts[0] = ours;
  hosts[1] = theirs;
  return true;
}

bool SetOffloadHere(bool on) {
  Interface interface(has_cable() ? kCable : "lo");
  bool set = SetFeature(interface, "tx-udp-segmentation", on);
  for (const std::uint32_t which : {ETHTOOL_SGSO, ETHTOOL_STSO}) {
    ethtool_value value = {which, on};
    set = set && interface.Ask(SIOCETHTOOL, &value);
  }
  return set;
}

}  // namespace

bool EnterPrivateNetwork(Path path, int mtu) {
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
  return StartLoopback(mtu) && (path == Path::kLoopback || LayCable(mtu));
}

bool SetOffload(bool on) {
  bool set = true;
  for (NodeId node = 0; node < kHosts; ++node) {
    const AtHostOf host(node);
    set = set && SetOffloadHere(on);
  }
  return set;
}

bool SetLoss(double percent) {
  char rules[256] = "flush ruleset\n";
  if (percent > 0) {
    snprintf(rules, sizeof rules,
             "flush ruleset\n"
             "table inet loss { chain arriving { type filter hook input priority 0;\n"
             "  meta l4proto { tcp, udp } numgen random mod 100000 < %.0f counter drop\n}\n}\n",
             percent * 1000);
  }
  bool set = true;
  for (NodeId node = 0; node < kHosts; ++node) {
    const AtHostOf host(node);
    set = set && Run("nft -f - 2>/dev/null", rules);
  }
  return set;
}

// What arrives makes a detour through a queue of its own: at the sender's interface the kernel
// would tell TCP at once what was dropped, as no switch does.
bool SetBottleneck(bool on, int mtu) {
  const AtHostOf host(0);
  const std::string arriving = has_cable() ? kCable : "lo", queue = kQueue;
  const std::string commands =
      on ? "ip link add " + queue + " type ifb && ip link set " + queue +
               " up && tc qdisc add dev " + queue + " root tbf rate 160mbit burst " +
               std::to_string(2 * mtu) + " limit " + std::to_string(std::max(64 << 10, 8 * mtu)) +
               " && tc qdisc add dev " + arriving + " ingress && tc filter add dev " + arriving +
               " parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev " +
               queue
         : "tc qdisc del dev " + arriving + " ingress; ip link del " + queue;
  return Run(("{ " + commands + "; } 2>/dev/null").c_str(), "");
}

unsigned long DroppedAtBottleneck() {
  const AtHostOf host(0);
  FILE* pipe = popen((std::string("tc -s qdisc show dev ") + kQueue + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return 0;
  unsigned long dropped = 0;
  for (char line[256]; fgets(line, sizeof line, pipe) != nullptr;) {
    const char* at = strstr(line, "(dropped ");
    if (at != nullptr) (void)sscanf(at, "(dropped %lu", &dropped);
  }
  pclose(pipe);
  return dropped;
}

Address AddressAt(NodeId node) {
  Address address;
  (void)ParseAddress(!has_cable() ? "127.0.0.1:0"
                     : node == 0  ? "198.18.0.1:0"
                                  : "198.18.0.2:0",
                     address);
  return address;
}

Address FromIpv4(const sockaddr_in& in) {
  Address address;
  address.ip[10] = address.ip[11] = 0xff;
  memcpy(address.ip.data() + 12, &in.sin_addr, 4);
  address.port = ntohs(in.sin_port);
  return address;
}

sockaddr_in ToIpv4(const Address& address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  memcpy(&out.sin_addr, address.ip.data() + 12, 4);
  out.sin_port = htons(address.port);
  return out;
}

AtHostOf::AtHostOf(NodeId node) : away_(has_cable() && HostOf(node) != 0) {
  if (away_ && setns(hosts[1], CLONE_NEWNET) != 0) Die("setns");
}

AtHostOf::~AtHostOf() {
  if (away_ && setns(hosts[0], CLONE_NEWNET) != 0) Die("setns");
}

}  // namespace sekisho::pm
