# SPDX-License-Identifier: Apache-2.0
# The ordered half: a small script of jobs, again and again, and in each round every program is killed at one of its
# kill points.
import concurrent.futures
import random

import points
import world as worlds
from plan import Job
from wave import Wave

# What is killed, and where: a name, a host, a daemon.
PROGRAMS = {"qserver": ("a-head", "qserver"), "agent a-n1": ("a-n1", "agent"), "agent a-n2": ("a-n2", "agent"),
            "jobmanager": worlds.JOBMANAGER, "gatekeeper": ("a-dmz", "gatekeeper"),
            "allocator": ("a-head", "allocator"), "stager": worlds.STAGER}  # fmt: skip
AGAIN = 3  # so often, at most, does a program die of those that are started after its first death of a round


def script(wave):
    """One of everything that a user does, all at the same time."""

    def held():
        if wave.submit(Job("held", code=6, pause_s=0), "--hold"):
            wave.release("held")

    def cancelled():
        if wave.submit(Job("cancelled", pause_s=60, is_cancelled=True)):
            wave.cancel("cancelled")

    def suspended():
        if wave.submit(Job("suspended", code=1, pause_s=0.5)):
            wave.suspend("suspended")

    steps = (
        lambda: wave.submit_many([Job("many0"), Job("many1", code=3), Job("many2", code=7, pause_s=0)]),
        lambda: wave.submit_array(Job("array", code=4, pause_s=0.1), range(1, 4)),
        lambda: wave.run(Job("run", code=5)),
        lambda: wave.submit_staged(Job("staged", code=8, pause_s=0)),
        lambda: wave.submit_files(Job("files", code=0, pause_s=0)),
        lambda: wave.submit(Job("two", code=2, tasks=2)),
        lambda: wave.submit(Job("file", code=9, stream="file")),
        held,
        cancelled,
        suspended,
    )
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(step) for step in steps]:
            done.result()


class Rounds:
    def __init__(self, world, seed, memory, say):
        self._world, self._say = world, say
        self._random = random.Random(f"rounds {seed}")
        self.tour = points.Tour(memory, f"tour {seed}")
        self._controls = {}
        self.number = 0
        self.visits = 0  # of this run
        if world.has_kill_points:
            for name, (host, daemon) in PROGRAMS.items():
                self._controls[name] = points.Control(world.path(host, f"{worlds.KILL_POINTS}/sekisho-{daemon}"))
            world.preload()

    def learn(self, wave):
        """A calm run of the script: the list of points.  Then one behind a kill of everything: those of a new start."""
        self._world.say("the script, calm: every durable write and every send is listed")
        for control in self._controls.values():
            control.start()
        script(wave)
        wave.settle(30)
        for name, control in self._controls.items():
            self.tour.learn(name, control.points())

    def learn_again(self, wave):
        for control in self._controls.values():
            control.start()
        for name, (host, daemon) in PROGRAMS.items():
            if name != "stager":
                self._world.kill(host, daemon)
        script(wave)
        wave.settle(30)
        for name, control in self._controls.items():
            self.tour.learn(f"{name}, started again", control.points()[control.born_at:])

    def round(self, deadline, settle_s=40):
        """The next wave, in which each program dies at a point of its own, and what comes after it dies, too, up to
        `AGAIN` times.  Its jobs have ended."""
        self.number += 1
        armed = {}
        for name, control in self._controls.items():
            first = self.tour.next(name)
            again = self.tour.next(f"{name}, started again", self._random.randint(0, AGAIN))
            if not first:
                continue
            control.arm(*first, *again)
            armed[name] = (first, again)
            self._world.arm(*PROGRAMS[name], True)
        self._say("round " + str(self.number) + ": " + "; ".join(
            name + " " + ", then ".join(f"{side} point {index}" for index, side in (*first, *again))
            for name, (first, again) in armed.items()))  # fmt: skip

        wave = Wave(self._world, f"k{self.number}-", deadline)
        script(wave)
        wave.settle(settle_s)

        for name, (first, again) in armed.items():
            control = self._controls[name]
            met = control.died()
            control.start()
            self.tour.note(name, first, met[:1])
            self.tour.note(f"{name}, started again", again[:max(0, len(met))], met[1:])
            self.visits += len(met)
            self._world.arm(*PROGRAMS[name], False)
        self.tour.save()
        return wave
