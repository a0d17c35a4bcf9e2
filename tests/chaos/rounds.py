# SPDX-License-Identifier: Apache-2.0
# The ordered half: a small script of jobs, again and again, and in each round every program is killed at some of its
# kill points, one after the other.
import concurrent.futures
import os
import random
import time

import points
import world as worlds
from plan import Job
from wave import Wave

# What does not run for good: somebody starts it when it is needed.
ON_DEMAND = (worlds.JOBMANAGER, worlds.STAGER, *worlds.TASKS)
KILLED = "the task's supervisor was killed"  # by which a job may fail: docs/protocol/7-nodes.md
NOBODY = "/O=Sekisho Lab/CN=Nobody"  # who may be banned
# What a program has on its disk, as find's words.
KEPT = {"qserver": "/var/lib/sekisho/qserver -mindepth 1", "jobmanager": "/var/lib/sekisho/jobmanager -mindepth 1",
        "stager": "/home/alice/.sekisho /home/alice/chaos/scratch"}  # fmt: skip
# What forgets jobs whose time is over.
FORGETFUL = ("qserver", "jobmanager")
MOST = 12  # deaths of one daemon in a round
MOST_TASKS = 2  # of a node's: each of them is a job's end


def script(wave):
    """One of everything that a user does, all at the same time."""

    def held():
        if wave.submit(Job("held", code=6, pause_s=0), "--hold"):
            wave.release("held")

    def delegated():
        if wave.submit(Job("delegated", code=11, pause_s=0), "--hold", "--delegate"):
            wave.refresh("delegated")
            wave.redirect("delegated")
            wave.release("delegated")

    def extended():
        if wave.submit(Job("extended", code=13, pause_s=0), "--no-commit", rsl="(two_phase=60)"):
            wave.extend("extended")

    def given():
        if wave.submit(Job("given", code=14, node="a-n2")):
            wave.put_and_get("given")
            wave.submit(Job("after", code=15, pause_s=0), "--after-any", wave.name("given"))

    def ranked():
        if os.path.exists(worlds.MPIRUN):
            wave.submit(Job("ranked", tasks=2, is_mpi=True, pause_s=1))

    def let_go():
        if wave.submit(Job("let_go", code=18, pause_s=0), rsl="(two_phase=60)"):
            wave.let_go("let_go")

    def cancelled():
        if wave.submit(Job("cancelled", pause_s=60, is_cancelled=True)):
            wave.cancel("cancelled")

    def suspended():
        if wave.submit(Job("suspended", code=1, pause_s=0.5)):
            wave.suspend("suspended")

    def administered():
        wave.insist("admin", "drain", worlds.SITE, "a-n2", "--reason", "a new disk")
        wave.insist("admin", "resume", worlds.SITE, "a-n2", done_if=("a-n2 is not drained",))
        wave.insist("admin", "ban", worlds.SITE, NOBODY)
        wave.insist("admin", "unban", worlds.SITE, NOBODY, done_if=("is not banned",))

    steps = (
        lambda: wave.submit_many([Job("many0"), Job("many1", code=3, node="a-n2"), Job("many2", code=7, pause_s=0)]),
        lambda: wave.submit_array(Job("array", code=4, pause_s=0.1, node="a-n2"), range(1, 4)),
        lambda: wave.run(Job("run", code=5, node="a-n2")),
        lambda: wave.run(Job("fed", code=12, is_fed=True)),
        lambda: wave.submit_staged(Job("staged", code=8, pause_s=0)),
        lambda: wave.submit_fetched(Job("fetched", code=16, pause_s=0)),
        lambda: wave.submit_home(Job("home", code=17, pause_s=0)),
        lambda: wave.submit_files(Job("files", code=0, pause_s=0, node="a-n2")),
        lambda: wave.submit(Job("two", code=2, tasks=2)),
        lambda: wave.submit(Job("file", code=9, stream="file")),
        lambda: wave.submit(Job("committed", code=10, pause_s=0, node="a-n2"), rsl="(two_phase=60)"),
        ranked,
        delegated,
        extended,
        let_go,
        given,
        administered,
        held,
        cancelled,
        suspended,
    )
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(step) for step in steps]:
            done.result()


class Rounds:
    def __init__(self, world, seed, memory, say, is_thorough=False, is_whole=False):
        self._world, self._say = world, say
        self._programs = {}  # what is killed -> its hosts
        for host, daemon in (*world.daemons, *ON_DEMAND):
            self._programs.setdefault(daemon, []).append(host)
        self.tour = points.Tour(memory, f"tour {seed}", is_thorough=is_thorough)
        self._is_whole = is_whole  # goes on until nothing is left
        self._controls = {}  # (program, host) -> its control
        self._runs = {program: ([], []) for program in self._programs}  # of calm runs, and of those behind a kill: the lives of its processes
        self._room = {}  # (program, host) -> so many points does it make in a round, about
        self.number = 0
        self.visits = 0  # of this run
        self.killed_tasks = 0
        self._forgotten = 0  # waves of jobs
        if world.has_kill_points:
            for program, hosts in self._programs.items():
                for host in hosts:
                    self._controls[program, host] = points.Control(world.path(host, f"{worlds.KILL_POINTS}/{worlds.program(program)}"))
            world.preload()

    def beginnings(self, wave, most):
        """The very first use of a program, which has nothing on its disk yet: it is killed at those of its points that come
        only then, up to so many that were not visited yet."""
        for program in KEPT:
            (host,) = self._programs[program]
            self._say(f"{program}: its first start, with an empty disk")
            name = f"{program}, its first start"
            self._use(program, wave)  # there is something to forget
            first = self._begin(program, wave)
            self._controls[program, host].start()
            self._world.kill(host, program)
            known = set(self._use(program, wave))
            self.tour.learn(name, [[[text for text in first if text not in known]]], [])
            killed = 0
            while killed < most and self.tour.is_worth_going_on(name):
                killed += 1
                self._world.arm(host, program, True)
                places = self.tour.next(name, 1, len(first))
                self._begin(program, wave, *places)
                deaths = self._controls[program, host].deaths()
                self.tour.note(name, places, deaths)
                self.visits += deaths
                self._controls[program, host].start()
                self._world.arm(host, program, False)
        self.tour.save()

    def forgettings(self, judge, most):
        """A start of a program that finds jobs whose time is over: it is killed at the durable writes by which it forgets
        them, up to so many that were not visited yet.  Returns the names of the jobs of which nothing may be left."""
        forgotten = []
        for program in FORGETFUL:
            (host,) = self._programs[program]
            control, name = self._controls[program, host], f"{program}, forgetting"
            self._say(f"{program}: a start behind which jobs are forgotten")
            forgotten += self._forget(program, judge)  # what others have left
            forgotten += self._forget(program, judge)
            texts = [text for life in control.lives()[1:] for text in life if not text.startswith("send ")]
            self.tour.learn(name, [[texts]], [])
            killed = 0
            while killed < most and self.tour.is_worth_going_on(name):
                killed += 1
                places = self.tour.next(name, 1, len(texts))
                self._world.arm(host, program, True)
                forgotten += self._forget(program, judge, *places)
                deaths = control.deaths()
                self._world.arm(host, program, False)
                self.tour.note(name, places, deaths)
                self.visits += deaths
                control.start()
        self.tour.save()
        return forgotten

    def _forget(self, program, judge, *places):
        """Some jobs, of which all is well, are forgotten by a start of the program, which is killed at these places."""
        (host,) = self._programs[program]
        self._forgotten += 1
        wave = Wave(self._world, f"forget{self._forgotten}-", time.monotonic() + 90)
        wave.submit_many([Job("one", code=1, pause_s=0), Job("other", code=2, pause_s=0)])
        wave.submit_array(Job("array", code=3, pause_s=0), range(1, 3))
        wave.submit_files(Job("files", pause_s=0))
        judge(wave)
        self._controls[program, host].arm(*places)
        self._start_again(host, program, 0.1)
        names = [name for name in wave.names.values() if not name.endswith("]")] + list(wave.arrays)
        problems = []
        while not problems and not self._has_forgotten(program, wave, names):
            if time.monotonic() > wave.deadline:
                problems.append(f"the {program} has not forgotten {', '.join(names)}")
            time.sleep(0.1)
        self._start_again(host, program, worlds.KEEP_ENDED_S)
        judge(Wave(self._world, wave.prefix, wave.deadline, problems))
        return names if program == "qserver" else []  # which alone has something of theirs besides their events

    def _start_again(self, host, program, keep_s):
        self._world.keep_ended(host, program, keep_s)
        self._world.kill(host, program)

    def _has_forgotten(self, program, wave, names):
        if program == "jobmanager":
            says = wave.states(names)
            return len(says) == len(names) and set(says) == {"UNKNOWN"}
        return self._world.until_up() and not self._world.spooled([name.rsplit("/", 1)[-1] for name in names])

    def _begin(self, program, wave, *places):
        (host,) = self._programs[program]
        self._controls[program, host].arm(*places)
        self._world.forget(host, program, KEPT[program])
        return self._use(program, wave)

    def _use(self, program, wave):
        """The points that it made since its control was told to list or to kill."""
        self._world.until_up()
        wave.insist("admin", "nodes", worlds.SITE)  # the jobmanager comes with a call, which the queue server answers
        if program == "stager":
            number = len(wave.plan)
            wave.submit_staged(Job(f"staged{number}", code=8, pause_s=0))
            wave.submit_files(Job(f"files{number}", pause_s=0))
            wave.submit(Job(f"delegated{number}", pause_s=0), "--delegate")
            wave.settle(30)
        (host,) = self._programs[program]
        return [text for life in self._controls[program, host].lives() for text in life]

    def learn(self, wave, is_behind_kills=False):
        """A calm run of the script, maybe behind a kill of everything: then the points of a new start are among them."""
        self._world.say("the script, calm: every durable write and every send is listed")
        for control in self._controls.values():
            control.start()
        if is_behind_kills:
            for daemon in (*self._world.daemons, worlds.JOBMANAGER):
                self._world.kill(*daemon)
        script(wave)
        wave.settle(30)
        for runs in self._runs.values():
            runs[is_behind_kills].append([])
        for (program, host), control in self._controls.items():
            lives = control.lives()
            self._runs[program][is_behind_kills][-1] += lives
            all_of_it = sum if program == "task" else max  # of which each process comes by itself
            self._room[program, host] = max(self._room.get((program, host), 0), all_of_it(map(len, lives)))
        for program, (calm, again) in self._runs.items():
            self.tour.learn(program, calm, again)

    def round(self, deadline, settle_s=40):
        """The next wave, in which each daemon dies at a point of its program, and what comes after it dies at another.
        Its jobs have ended."""
        self.number += 1
        armed = {}
        for (program, host), control in self._controls.items():
            if program == ("gatekeeper", "jobmanager")[self.number % 2]:
                continue  # whose death would be the other's, long before its time
            if self._is_whole and not self.tour.left(program):
                continue  # what is left of others comes late in a life, and sooner if nothing else dies
            places = self.tour.next(program, MOST_TASKS if program == "task" else MOST, self._room[program, host])
            control.arm(*places)
            armed[program, host] = places
            self._world.arm(host, program, True)
        self._say(f"round {self.number}: " + "; ".join(f"{program} {', '.join(f'{text} #{nth} {side}' for text, nth, side in places)}"
                                                       for (program, _), places in armed.items()))  # fmt: skip

        wave = Wave(self._world, f"k{self.number}-", deadline)
        wave.may_fail = (KILLED,)
        script(wave)
        wave.settle(settle_s)

        deaths = []
        for (program, host), places in armed.items():
            control = self._controls[program, host]
            met = control.deaths()
            deaths.append(f"{program} {met} of {len(places)}")
            self._room[program, host] *= 1.2 if met == len(places) else 0.9 if met < len(places) / 2 else 1
            control.start()
            self.tour.note(program, places, met)
            self.visits += met
            self.killed_tasks += met if program == "task" else 0
            self._world.arm(host, program, False)
        self._say(f"round {self.number}: died there: {', '.join(deaths)}")
        self.tour.save()
        return wave
