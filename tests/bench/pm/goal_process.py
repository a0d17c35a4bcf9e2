# SPDX-License-Identifier: Apache-2.0
"""Measurements of `goals`, each in a process of its own, of which nothing is left afterwards: no process, no network
namespace.  Whoever interrupts us interrupts the one that runs, and no other begins."""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import typing

PR_SET_CHILD_SUBREAPER = 36
TO_CLEAN_UP_S = 20  # an interrupted script removes its hosts
TO_END_S = 5  # what outlives its script, as the guard of a lab's namespaces does, has something to do
NAMESPACES = "/run/netns"


class Ended(typing.NamedTuple):
    out: str
    why: str  # it failed; "": it did not
    user_s: float = 0
    system_s: float = 0
    complaints: tuple = ()  # lines of its standard error


class Processes:
    def __init__(self):
        self.interrupted = False
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl: orphans would not come to us")
        self._awake, self._alarm = os.pipe()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupt)  # and not ignored, which children would inherit

    def _interrupt(self, *_):
        self.interrupted = True
        os.write(self._alarm, b"x")  # stays there: each later wait ends at once

    def run(self, words, limit_s, **environment):
        """Waits until it has ended, at most `limit_s`."""
        if self.interrupted:
            return Ended("", "interrupted")
        if shutil.which(words[0]) is None:
            return Ended("", f"there is no {words[0]}")
        with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
            # In a session of its own the terminal's ^C comes to us alone; killed with us it can still clean up.
            process = subprocess.Popen(["setpriv", "--pdeathsig", "INT", *map(str, words)], env={**os.environ, **environment},
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)  # fmt: skip
            why, ended = "", self._wait(process.pid, limit_s)
            if not ended:
                why = "interrupted" if self.interrupted else f"took longer than {limit_s:.0f} s"
                ended = self._stop(process.pid)
            process.returncode, usage = os.waitstatus_to_exitcode(ended[1]), ended[2]
            sweep(process.pid)
            said, complaints = (file.seek(0) or file.read() for file in (out, err))
        lines = [line.strip() for line in complaints.splitlines() if line.strip()]
        if not why and process.returncode != 0:
            name = os.path.basename(str(words[0]))
            why = f"{name}: {lines[-1] if lines else f'exit code {process.returncode}'}"
        return Ended(said, why, usage.ru_utime, usage.ru_stime, tuple(lines))

    def _wait(self, pid, limit_s):
        """What wait4 says; None: it has not ended."""
        fd = os.pidfd_open(pid)
        try:
            poll = select.poll()
            for waited_for in (fd, self._awake):
                poll.register(waited_for, select.POLLIN)
            if fd in (ready for ready, _ in poll.poll(1000 * limit_s)):
                return os.wait4(pid, 0)
        finally:
            os.close(fd)
        return None

    @staticmethod
    def _stop(pid):
        os.kill(pid, signal.SIGINT)
        limit = time.monotonic() + TO_CLEAN_UP_S
        while not (ended := os.wait4(pid, os.WNOHANG))[0]:
            if time.monotonic() > limit:
                os.killpg(pid, signal.SIGKILL)
                return os.wait4(pid, 0)
            time.sleep(0.05)
        return ended


def children():
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(name)}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == os.getpid():
                    found.append(int(name))
        except (ValueError, OSError):  # not a process, or not any more
            continue
    return found


def sweep(pid):
    """Ends the orphans of a process that has ended, and removes the hosts that it could not remove."""
    limit = time.monotonic() + TO_END_S
    while left := children():
        for child in left:
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)  # its own children become ours
            os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    hosts = tuple(f"{kind}{pid}-" for kind in ("pm", "f", "i"))  # of hosts.py, `share` and `incast`
    for name in os.listdir(NAMESPACES) if os.path.isdir(NAMESPACES) else ():
        if name.startswith(hosts):
            subprocess.run(["ip", "netns", "del", name], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
