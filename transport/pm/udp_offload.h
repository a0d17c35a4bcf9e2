// SPDX-License-Identifier: Apache-2.0
// Several datagrams in one buffer (udp(7)): Debian 12's libc names neither option.
#pragma once

#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
