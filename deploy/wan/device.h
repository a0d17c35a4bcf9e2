// SPDX-License-Identifier: Apache-2.0
// One TUN device: what a network namespace sends out of it, we read; what we write, it receives.
#pragma once

#include <string>

namespace sekisho::wan {

// Makes the device in the current network namespace and brings it up; it goes away with the
// descriptor, which is returned.  `address` is "ADDRESS/LENGTH" or "".  -1 and `error` if that
// fails.
int OpenDevice(const std::string& name, const std::string& address, int mtu, std::string& error);

// A fresh namespace's loopback device is down.
bool BringUpLoopback(std::string& error);

// Leaves the device to its namespace: it goes away with that one.  To unregister a device costs 20
// ms, and the kernel does it for any number of namespaces at once.
void LeaveDevice(int device);

}  // namespace sekisho::wan
