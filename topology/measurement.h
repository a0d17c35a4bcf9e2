// SPDX-License-Identifier: Apache-2.0
// One measurement: `sets` connections from host to host, on each small messages to and fro until
// `stop` of them brought no new minimum or `most` were sent.
#pragma once

namespace sekisho::topology {

struct Request {
  int from = 0;
  int to = 0;
  int sets = 1;
  int stop = 10;
  int most = 10;
};

struct Answer {
  bool is_ok = false;
  double min_us = 0;  // over all sets
  double low_us = 0;  // range of the minima of the sets
  double high_us = 0;
  int pings = 0;
  double duration_us = 0;
  bool is_relayed = false;  // a relay ends the connection on the way
};

}  // namespace sekisho::topology
