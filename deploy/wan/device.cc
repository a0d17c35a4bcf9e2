// SPDX-License-Identifier: Apache-2.0
// See device.h.
#include "deploy/wan/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deploy/wan/graph.h"

namespace sekisho::wan {
namespace {

constexpr int kQueuePackets = 4096;  // between two looks of ours

ifreq Request(const std::string& name) {
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

sockaddr SocketAddress(uint32_t address) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  sockaddr result;
  memcpy(&result, &in, sizeof result);
  return result;
}

bool Configure(int socket, const std::string& name, const std::string& address, int mtu) {
  ifreq request = Request(name);
  request.ifr_mtu = mtu;
  if (ioctl(socket, SIOCSIFMTU, &request) < 0) return false;
  request = Request(name);
  request.ifr_qlen = kQueuePackets;
  if (ioctl(socket, SIOCSIFTXQLEN, &request) < 0) return false;
  Prefix prefix;
  if (ParsePrefix(address, prefix)) {
    request = Request(name);
    request.ifr_addr = SocketAddress(prefix.address);
    if (ioctl(socket, SIOCSIFADDR, &request) < 0) return false;
    request = Request(name);
    request.ifr_netmask = SocketAddress(prefix.length == 0 ? 0 : ~0u << (32 - prefix.length));
    if (ioctl(socket, SIOCSIFNETMASK, &request) < 0) return false;
  }
  request = Request(name);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

int OpenDevice(const std::string& name, const std::string& address, int mtu, std::string& error) {
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = Request(name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  const bool is_up = tun >= 0 && socket >= 0 && ioctl(tun, TUNSETIFF, &request) == 0 &&
                     Configure(socket, name, address, mtu);
  if (!is_up) error = "device " + name + ": " + strerror(errno);
  if (socket >= 0) close(socket);
  if (!is_up && tun >= 0) close(tun);
  return is_up ? tun : -1;
}

bool BringUpLoopback(std::string& error) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = Request("lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool is_up = socket >= 0 && ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  if (!is_up) error = std::string("device lo: ") + strerror(errno);
  if (socket >= 0) close(socket);
  return is_up;
}

void LeaveDevice(int device) { ioctl(device, TUNSETPERSIST, 1); }

}  // namespace sekisho::wan
