# SPDX-License-Identifier: Apache-2.0
# Links of the lab that are cut without a word, and when that is found.
import contextlib
import time

import support as t

SLACK_S = 5 * t.PATIENCE  # this machine's, and our looking's


@contextlib.contextmanager
def cut(host, hook, address, port, others=()):
    """Nothing of the connections to that port passes here; or only of those from these ports."""
    near = f"{{ {', '.join(others)} }}" if others else "0-65535"
    rules = (f"ip daddr {address} tcp dport {port} tcp sport {near} drop; "
             f"ip saddr {address} tcp sport {port} tcp dport {near} drop;")  # fmt: skip
    chains = " ".join(f"chain {name} {{ type filter hook {name} priority -10; {rules} }};" for name in hook)
    t.expect_ok(t.on(host, "nft", f"table inet half_open {{ {chains} }};", user="root"))
    try:
        yield time.monotonic()
    finally:
        t.expect_ok(t.on(host, "nft", "delete", "table", "inet", "half_open", user="root"))


def ports_at(host, port):
    """Of those who are connected to that port there."""
    lines = t.expect_ok(t.on(host, "ss", "-Htn", "state", "established", "sport", "=", f":{port}")).out.splitlines()
    return {line.split()[-1].rsplit(":", 1)[1] for line in lines}


def until_each(conditions, since):
    """Waits until each of {what: (condition, within_s)} has become true; none may take longer."""
    seen = {}
    while len(seen) < len(conditions):
        for what, (condition, within_s) in conditions.items():
            if what not in seen:
                if condition():
                    seen[what] = time.monotonic() - since
                t.expect(time.monotonic() - since < within_s + SLACK_S, f"{what}: not within {within_s} s", seen)
        time.sleep(0.1)
    print("  " + ", ".join(f"{what} after {after:.1f} s" for what, after in seen.items()))
