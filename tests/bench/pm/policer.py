# SPDX-License-Identifier: Apache-2.0
"""Two hosts, and somebody who measures what comes to the second: what is more than the rate is dropped at once, nothing waits.
To be used as a Tree of two hosts, h0 and h1."""

import subprocess
import types

from hosts import World, run

MBYTES_S, BURST_KBYTES = 60, 64  # as nft counts them: 1,048,576 and 1,024 bytes
# nft's bucket holds what a second brings, and the burst.
BUCKET_BYTES = (MBYTES_S << 20) + (BURST_KBYTES << 10)
MBPS = 8 * (MBYTES_S << 20) / 1e6


class Policer:
    def __init__(self):
        self._world = World("veth", with_daemon=False, offload=False)  # each packet is measured by itself
        self.hosts = {f"h{i}": types.SimpleNamespace(address=address) for i, address in enumerate(self._world.addresses)}
        try:
            run(*self._inside("h1"), "nft", "-f", "-", input=f"""
table inet policer {{ chain arriving {{ type filter hook input priority 0;
  iifname "pmv" meta l4proto {{ tcp, udp }} limit rate over {MBYTES_S} mbytes/second burst {BURST_KBYTES} kbytes counter drop
  }}
}}
""")
        except BaseException:
            self._world.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._world.close()

    def _inside(self, host):
        return self._world.inside(self._world.names[int(host[1])])

    def popen(self, host, words, **more):
        return subprocess.Popen([*self._inside(host), *words], **more)

    def counters(self):
        return {"links": [{"overflowed": self._world.dropped()}], "late_1ms": 0}
