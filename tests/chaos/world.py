# SPDX-License-Identifier: Apache-2.0
# The lab that the chaos suite plays with: one site, whose daemons have small disks, are watched and restarted as a
# service manager would, and are loaded with killpoints.c.
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.realpath(f"{HERE}/../..")
LAB = f"{SOURCE}/deploy/lab/lab"
sys.path.append(f"{SOURCE}/deploy/lab")

import daemons as lab_daemons  # noqa: E402
import state as lab_state  # noqa: E402

SITE = "siteA"
DAEMONS = (("a-head", "allocator"), ("a-head", "qserver"), ("a-n1", "agent"), ("a-n2", "agent"), ("a-dmz", "gatekeeper"))
RELAYS = (("a-dmz", "nxproxy"), ("a-head", "nxproxy-inner"))  # of a site without a pinhole
JOBMANAGER = ("a-dmz", "jobmanager")  # which the gatekeeper starts
STAGER = ("a-head", "stager")  # which the queue server starts, for a call
TASKS = (("a-n1", "task"), ("a-n2", "task"))  # supervisors, which the agents start, for a task
_PROGRAMS = {"stager": "sekisho-stager", "task": "sekisho-task"}
# Where a daemon's state is, and what a whole one has: the queue server takes no output below 64 MiB.
DISKS = {"a-head": ("/var/lib/sekisho/qserver", 192), "a-n1": ("/var/lib/sekisho/agent", 32), "a-n2": ("/var/lib/sekisho/agent", 32),
         "a-dmz": ("/var/lib/sekisho/jobmanager", 16)}  # fmt: skip
KEEP_ENDED_S = 400  # longer than a wave, shorter than it takes to fill the disks
MPIRUN = "/usr/bin/mpiexec.mpich"  # of the jobs with ranks, if it is there
KILL_POINTS = "/run/chaos"  # here are the controls
_KILLERS = "/opt/chaos"  # and here what looks at them


def program(daemon):
    return _PROGRAMS.get(daemon) or lab_daemons.named(daemon).program


class World:
    def __init__(self, name, is_relayed, say):
        self.name, self.is_relayed, self.say = name, is_relayed, say
        self.daemons = (*DAEMONS, *(RELAYS if is_relayed else ()))
        self.fallen = []  # daemons that ended though nobody had killed them
        self.restarts = 0
        self.has_kill_points = False
        self._pidfds = {}  # (host, daemon) -> pidfd
        self._doomed = set()  # of those, whose next end is somebody's doing
        self._armed = set()  # of those, whose every end is
        self._full = set()  # hosts whose disk is full
        self._emptied = {}  # when there was room again
        self._kept_down = None  # one that is not started again for now
        self._starting = None  # by the keeper, just now
        self._lock = threading.RLock()
        self._is_over = False
        self._keeper = None

    # Hosts.

    def lab(self, *words, timeout_s=120, **options):
        return subprocess.run([LAB, "--name", self.name, *words], capture_output=True, timeout=timeout_s,
                              stdin=subprocess.DEVNULL, **options)  # fmt: skip

    def on(self, host, *words, user="root", **options):
        return self.lab("exec", "--user", user, host, "--", *words, **options)

    def shell(self, host, script, user="root"):
        done = self.on(host, "/bin/sh", "-c", script, user=user)
        if done.returncode != 0:
            raise RuntimeError(f"{host}: {script}: {done.stderr.decode()}")
        return done.stdout.decode()

    def path(self, host, path):
        """A host's file, as this process sees it."""
        return f"/proc/{lab_state.init_of(self.name, host)}/root{path}"

    def serve(self, host, folder):
        """A web server of a folder, as long as the lab lives: `served` is its URL."""
        self.served = "http://10.0.0.2:8888"
        subprocess.Popen([LAB, "--name", self.name, "exec", "--user", "alice", host, "--", "/usr/bin/python3", "-m", "http.server",
                          "--directory", folder, "8888"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def logs(self):
        return f"{lab_state.directory(self.name)}/logs"

    def spooled(self, job_ids):
        """Those of them of which the queue server keeps output."""
        spool = self.path("a-head", "/var/lib/sekisho/qserver/spool")
        return set(job_ids) & set(os.listdir(spool) if os.path.isdir(spool) else ())  # killed before it made one

    def has_lost_a_helper(self, job_id):
        """Whether a node says that the supervisor of one was killed: those have numbers beyond all tasks'."""
        for host, _ in TASKS:
            with open(lab_daemons.log_path(self.name, host, "agent"), errors="replace") as log:
                if re.search(rf"supervisor was killed job={job_id} task=1\d{{6}}\b", log.read()):
                    return True
        return False

    # Up and down.

    def up(self, kill_points):
        done = self.lab("up", f"{HERE}/site{'-relayed' if self.is_relayed else ''}.json", "--no-daemons", "--quiet")
        if done.returncode != 0:
            raise RuntimeError(f"the lab does not come up: {done.stderr.decode()}")
        for host, (path, mib) in DISKS.items():
            self.shell(host, f"mkdir -p {path} && mount -t tmpfs -o size={mib}m,mode=755 chaos {path}")
        for host, file in (("a-head", "qserver"), ("a-dmz", "jobmanager")):
            self.keep_ended(host, file, KEEP_ENDED_S)
        if kill_points and os.path.exists(kill_points):
            for host in DISKS:
                os.makedirs(self.path(host, KILL_POINTS))
                os.makedirs(self.path(host, _KILLERS))
                for file in (kill_points, f"{os.path.dirname(kill_points)}/sekisho-task"):
                    shutil.copy(file, self.path(host, _KILLERS))
            for host, _ in TASKS:
                self._configure(host, "/etc/sekisho/agent.json", task_program=f"{_KILLERS}/sekisho-task")
            self.has_kill_points = True

    def keep_ended(self, host, daemon, seconds):
        """So long from its next start on."""
        self._configure(host, f"/etc/sekisho/{daemon}.json", keep_ended_days=seconds / 86400)

    def _configure(self, host, path, **settings):
        with open(self.path(host, path)) as file:
            config = json.load(file)
        with open(self.path(host, path), "w") as file:
            json.dump(config | settings, file)

    def preload(self):
        """From here on what is started on the hosts is loaded with the kill points, if its control is there."""
        for host in DISKS:
            with open(self.path(host, "/etc/ld.so.preload"), "w") as file:
                file.write(f"{_KILLERS}/killpoints.so\n")

    def start(self):
        for one in self.daemons:
            if not self._start(*one):
                raise RuntimeError("\n".join(self.fallen))
        self.shell("client", "sekisho proxy init", user="alice")
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def down(self):
        self._is_over = True
        if self._keeper:
            self._keeper.join()
        self.lab("down")

    # Daemons.

    def pids(self, host, daemon):
        return lab_daemons.processes(self.name, host).get(program(daemon), [])

    def _start(self, host, daemon):
        """Whether it came up.  That it was killed meanwhile, or had no disk, is nobody's fault."""
        done = self.lab("start", host, daemon)
        words = done.stderr.decode(errors="replace")
        nobodys_fault = ("killed by signal 9", "killed by signal 15", "was killed while", "already")
        if done.returncode != 0 and host not in self._full and not any(text in words for text in nobodys_fault):
            self.fallen.append(f"{daemon} on {host} does not start: {words}")
        pids = self.pids(host, daemon)
        if not pids:
            return False
        with self._lock:
            try:
                self._pidfds[host, daemon] = os.pidfd_open(pids[0])
            except ProcessLookupError:
                return False
        return True

    def kill(self, host, daemon, number=signal.SIGKILL):
        """Kills it, as a crash would; the keeper starts it again."""
        with self._lock:
            self._doomed.add((host, daemon))
        self.signal(host, daemon, number)

    def signal(self, host, daemon, number):
        """To the daemon alone, if we have it: a child of it looks like it until it has become what it is to be, and whoever is
        stopped under that name is not found by it when it is to go on."""
        with self._lock:
            fd = self._pidfds.get((host, daemon))
            if fd is not None:
                try:
                    signal.pidfd_send_signal(fd, number)
                except ProcessLookupError:
                    pass
                return
        for pid in self.pids(host, daemon):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def forget(self, host, daemon, kept):
        """It ends, and what comes finds nothing of what it had, in find's words."""
        with self._lock:
            self._kept_down = (host, daemon)
        while self._starting == (host, daemon):  # begun before that was said: it would lose its disk while it runs
            time.sleep(0.01)
        self.kill(host, daemon)
        while self.pids(host, daemon):
            time.sleep(0.01)
        self.shell(host, f"find {kept} -delete")
        with self._lock:
            self._kept_down = None

    def arm(self, host, daemon, is_armed):
        """It dies at kill points; or no more."""
        with self._lock:
            (self._armed.add if is_armed else self._armed.discard)((host, daemon))

    def _keep(self):
        """A service manager: what has ended is started again, also if it does not come up at once."""
        down = set()
        while not self._is_over:
            with self._lock:
                watched = {fd: one for one, fd in self._pidfds.items()}
            ended, _, _ = select.select(list(watched), [], [], 0.3 if down else 0.2)
            for fd in ended:
                one = watched[fd]
                with self._lock:
                    del self._pidfds[one]
                    os.close(fd)
                    tail = lab_daemons.log_tail(self.name, *one)
                    if one not in self._doomed | self._armed and one[0] not in self._full and not self._had_no_room(one[0], tail):
                        self.fallen.append(f"{one[1]} on {one[0]} ended though nobody had killed it; its log ends:\n{tail}")
                    self._doomed.discard(one)
                down.add(one)
            for one in sorted(down):
                with self._lock:
                    if one == self._kept_down:
                        continue
                    self._starting = one
                if len(self.fallen) < 20 and self._start(*one):
                    self.restarts += 1
                    down.discard(one)
                self._starting = None

    def _had_no_room(self, host, tail):
        """It takes a moment to stop; there may be room again by then."""
        return time.monotonic() - self._emptied.get(host, -60) < 10 and "cannot store events, stopping" in "".join(tail.strip().splitlines()[-1:])

    def until_up(self, timeout_s=80):
        """Waits until every daemon runs that is to, and of each that ended it has been judged why."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with self._lock:
                if len(self._pidfds) == len(self.daemons) and not select.select(list(self._pidfds.values()), [], [], 0)[0]:
                    return True
            time.sleep(0.05)
        return False

    # Links.

    def cut(self, host, table, rule):
        """Cuts by an nftables rule on the host's output, or on what a router forwards."""
        hook = "forward" if host.endswith("router") else "output"
        self.shell(host, f"nft 'table inet {table} {{ chain c {{ type filter hook {hook} priority -10; {rule}; }}; }}'")

    def mend(self, host, table):
        self.on(host, "nft", "delete", "table", "inet", table)

    # Disks.

    def fill(self, host):
        path = DISKS[host][0]
        with self._lock:
            self._full.add(host)
        self.on(host, "/bin/sh", "-c", f"dd if=/dev/zero of={path}/.filler bs=64k 2>/dev/null; dd if=/dev/zero of={path}/.rest bs=512 2>/dev/null")

    def empty(self, host):
        self.shell(host, f"rm -f {DISKS[host][0]}/.filler {DISKS[host][0]}/.rest")
        self.until_up()
        with self._lock:
            self._full.discard(host)
            self._emptied[host] = time.monotonic()
