# SPDX-License-Identifier: Apache-2.0
# The random half: a seeded schedule of kills, cut links and full disks, beside the jobs.
import heapq
import random
import signal
import time

# (weight, what) of each step; how long it lasts where it lasts, in seconds.
KILLS = {("a-head", "qserver"): 5, ("a-n1", "agent"): 4, ("a-n2", "agent"): 4, ("a-dmz", "jobmanager"): 4,
         ("a-dmz", "gatekeeper"): 3, ("a-head", "allocator"): 2}  # fmt: skip
KILLS_RELAYED = KILLS | {("a-dmz", "nxproxy"): 3, ("a-head", "nxproxy-inner"): 3}
# Ways between two processes, and where they are cut: host, and the rule but its verdict.
LINKS = {
    "client to gatekeeper": ("client", "tcp dport 2119"),
    "gatekeeper to client": ("a-dmz", "tcp sport 2119"),
    "jobmanager to queue server": ("a-router", "tcp dport {hole}"),
    "queue server to jobmanager": ("a-router", "tcp sport {hole}"),
    "agent of a-n1 to queue server": ("a-n1", "tcp dport 7513"),
    "agent of a-n2 to queue server": ("a-n2", "tcp dport 7513"),
    "queue server to agents": ("a-head", "tcp sport 7513"),
}
VERDICTS = ("drop", "reject with tcp reset")
DISKS = ("a-head", "a-dmz")
STEPS = {"kill": 10, "end": 2, "cut": 4, "fill": 1, "freeze": 1}


class Schedule:
    """What happens when: only of the seed."""

    def __init__(self, seed, is_long, is_relayed=False):
        self._random, self._is_long = random.Random(f"schedule {seed}"), is_long
        self._kills = KILLS_RELAYED if is_relayed else KILLS

    def next(self):
        """(pause before it, what, details, how long it lasts)"""
        pause = self._random.uniform(0.1, 1.2)
        what = self._choose(STEPS)
        if what in ("kill", "end"):
            return pause, what, self._choose(self._kills), 0
        if what == "freeze":
            return pause, what, self._choose(self._kills), self._lasts(2)
        if what == "cut":
            return pause, what, (self._random.choice(list(LINKS)), self._random.choice(VERDICTS)), self._lasts(3)
        return pause, what, (self._random.choice(DISKS),), self._lasts(1.5)

    def _lasts(self, most):
        # In long runs a few last longer than half-open connections are let be.
        return self._random.uniform(0.2, 40) if self._is_long and self._random.random() < 0.03 else self._random.uniform(0.2, most)

    def _choose(self, weights):
        return self._random.choices(list(weights), weights=list(weights.values()))[0]


class Faults:
    """Carries a schedule out.  step() is called again and again; finish() mends what is broken."""

    def __init__(self, world, seed, is_long, say):
        self._world, self._say = world, say
        self._schedule = Schedule(seed, is_long, world.is_relayed)
        self._undo = []  # (when, number, function)
        self._busy = set()  # links and disks that are broken now
        self._number = 0
        self.done = {}  # what -> how often
        self._next = self._schedule.next()
        self._due = time.monotonic() + self._next[0]

    def run(self, is_over):
        while not is_over():
            self.step()
        self.finish()

    def step(self):
        """What is due now, or a short wait."""
        now = time.monotonic()
        if self._undo and self._undo[0][0] <= now:
            heapq.heappop(self._undo)[2]()
            return
        if self._due <= now:
            _, what, details, lasts = self._next
            getattr(self, f"_{what}")(*details, lasts)
            self._next = self._schedule.next()
            self._due = time.monotonic() + self._next[0]
            return
        time.sleep(max(0.01, min(0.2, self._due - now, *(one[0] - now for one in self._undo[:1]))))

    def finish(self):
        while self._undo:
            heapq.heappop(self._undo)[2]()

    def _note(self, what, text, lasts=0):
        self.done[what] = self.done.get(what, 0) + 1
        self._say(text + (f", for {lasts:.1f} s" if lasts else ""))

    def _later(self, lasts, function):
        self._number += 1
        heapq.heappush(self._undo, (time.monotonic() + lasts, self._number, function))

    def _kill(self, host, daemon, _):
        self._note("daemons killed", f"kill -9 {daemon} on {host}")
        self._world.kill(host, daemon)

    def _end(self, host, daemon, _):
        self._note("daemons ended", f"SIGTERM to {daemon} on {host}")
        self._world.kill(host, daemon, signal.SIGTERM)

    def _freeze(self, host, daemon, lasts):
        if not self._take(host, daemon):
            return
        self._note("daemons frozen", f"SIGSTOP to {daemon} on {host}", lasts)
        self._world.signal(host, daemon, signal.SIGSTOP)

        def thaw():
            self._world.signal(host, daemon, signal.SIGCONT)
            self._busy.discard((host, daemon))

        self._later(lasts, thaw)

    def _cut(self, link, verdict, lasts):
        if not self._take(link):
            return
        host, rule = LINKS[link]
        rule = rule.format(hole=7514 if self._world.is_relayed else 7512)  # without a pinhole the inside dials the relay
        table = f"cut{list(LINKS).index(link)}"
        self._note("links cut", f"{verdict}: {link}", lasts)
        self._world.cut(host, table, f"{rule} {verdict}")

        def mend():
            self._world.mend(host, table)
            self._busy.discard((link,))

        self._later(lasts, mend)

    def _fill(self, host, lasts):
        if not self._take(host):
            return
        self._note("disks filled", f"the disk of {host} is full", lasts)
        self._world.fill(host)

        def empty():
            self._world.empty(host)
            self._busy.discard((host,))

        self._later(lasts, empty)

    def _take(self, *what):
        """Whether it was not broken already."""
        if what in self._busy:
            return False
        self._busy.add(what)
        return True
