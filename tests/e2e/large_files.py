# SPDX-License-Identifier: Apache-2.0
# A file of 1 GiB by every way between a user's machine and a job, and how much memory our processes had at most.
import json
import os
import re
import subprocess

import support as t

MOST_KB = 102400 * (8 if os.environ.get("SEKISHO_SANITIZE") else 1)  # a sanitizer takes memory of its own
# Prints, once its input ends, the peak in kB of each process of ours that it has seen, from its start on.
WATCH = r"""
import json, os, re, select, sys

def look(is_first=False):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if is_first:
                open(f"/proc/{pid}/clear_refs", "w").write("5")  # its peak begins here
            status = open(f"/proc/{pid}/status").read()
        except OSError:
            continue  # it has gone
        name, peak = re.match(r"Name:\t(.*)", status)[1], re.search(r"VmHWM:\s*(\d+)", status)
        if peak and name.startswith("sekisho"):
            found[name] = max(found.get(name, 0), int(peak[1]))

found = {}
look(is_first=True)
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0.05)[0]:
    look()
print(json.dumps(found))
"""


class Watch:
    """The peaks of our processes on a host, while it lasts."""

    def __init__(self, lab_name, host):
        self.process = subprocess.Popen([t.LAB, *lab_name, "exec", "--user", "root", host, "--", "/usr/bin/python3", "-c", WATCH],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        t.expect(self.process.stdout.readline() == "begun\n", host)

    def end(self):
        return json.loads(self.process.communicate(timeout=30)[0])


class Watches:
    """{host: {process: kB}} of hosts, over a block; `lab_name`: ("--name", NAME), of a lab of the test's own."""

    def __init__(self, hosts, lab_name=()):
        self._hosts, self._lab_name, self.peaks = hosts, lab_name, {}

    def __enter__(self):
        self._watches = {host: Watch(self._lab_name, host) for host in self._hosts}
        return self

    def __exit__(self, *_):
        self.peaks = {host: watch.end() for host, watch in self._watches.items()}
        print(f"        peaks in kB: {json.dumps(self.peaks)}", flush=True)

    def expect_small(self, *passed):
        """Each (host, process) of `passed` was seen, and no process had 100 MiB."""
        for host, name in passed:
            t.expect(name in self.peaks[host], f"{name} was not seen at {host}", self.peaks)
        over = [(host, name, kb) for host in self._hosts for name, kb in self.peaks[host].items() if kb >= MOST_KB]
        t.expect(not over, f"expected less than {MOST_KB} kB:", over)


def new_file(outside, path, mib=1024):
    """At the client, of content that no cache has."""
    outside("sh", "-c", f"mkdir -p $(dirname {path}); head -c 1M /dev/urandom > {path}; truncate -s {mib}M {path}")


def there_and_back(sekisho, outside, inside, site, home):
    """In with a job and out with it, fetched and sent; `outside`, `inside`: a command of the user on the client, on the
    site's head, which succeeds."""

    def sum_of(run, name):
        return run("sha256sum", f"{home}/{name}").out.split()[0]

    expected = sum_of(outside, "big")
    ran = t.expect_ok(sekisho(
        "run", "-v", "-r", site, f"&(executable=/usr/bin/sha256sum)(arguments=big)(directory={home})"
        f"(file_stage_in=({home}/big big))(file_stage_out=(big {home}/back))", timeout_s=400))  # fmt: skip
    job = re.search(r"submitted (\S+) as", ran.err)[1]
    t.expect(ran.out.split()[0] == expected, "in:", ran)
    t.expect(sum_of(outside, "back") == expected, "out")
    t.expect_ok(sekisho("get", job, "big", "-o", f"{home}/got", timeout_s=240))
    t.expect(sum_of(outside, "got") == expected, "get")
    outside("rm", f"{home}/got", f"{home}/back")
    t.expect_ok(sekisho("put", job, f"{home}/other", timeout_s=240))
    t.expect(sum_of(outside, "other") == sum_of(inside, "other"), "put")
