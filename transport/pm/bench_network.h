// SPDX-License-Identifier: Apache-2.0
// A network for a measurement alone.
#pragma once

namespace sekisho::pm {

// A loopback with an MTU of 1500, which nobody else uses.  False: not allowed.
bool EnterPrivateNetwork();
// Random loss of what arrives there; false: there is no nft.
bool SetLoss(double percent);
// Whether it carries what is longer than its MTU, to be cut by whoever receives it.
bool SetOffload(bool on);

}  // namespace sekisho::pm
