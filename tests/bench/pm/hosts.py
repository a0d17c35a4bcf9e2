# SPDX-License-Identifier: Apache-2.0
"""Hosts for measurements and tests of PM: network namespaces, daemons, job files, ranks."""
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

BIN = os.environ.get("SEKISHO_BIN", "build/release/bin")
MPICH_RANKS = f"{os.environ.get('SEKISHO_MPI', f'{BIN}/../mpi')}/mpich/pm_ranks"
NUMBERS = itertools.count()  # of this process's worlds: their hosts have names of their own
HAS_MPICH = os.path.exists(MPICH_RANKS) and shutil.which("mpiexec.mpich") is not None
LIVES_WITH_US = ("setpriv", "--pdeathsig", "KILL")  # nothing outlives who started it, however that ended


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more)


class World:
    """Two hosts, or three behind a switch, or one (`lo`), with a sekisho-pmd each if wanted."""

    def __init__(self, where, with_daemon, offload=True, hosts=2):
        self.folder = tempfile.mkdtemp(prefix="pm-bench-")
        self.where = where
        self.daemons = []
        self.started = []  # ranks: none outlives its hosts
        self.switch = None
        # One host is a network namespace, too: nobody else takes its ports.
        self.names = [f"pm{os.getpid()}-{next(NUMBERS)}{side}" for side in "abc"[: hosts if where == "veth" else 1]]
        self.addresses = ["10.99.0.1", "10.99.0.2", "10.99.0.3"][:hosts] if where == "veth" else ["127.0.0.1"]
        self.context = 0
        self.places = {}  # of each job file: the host of each rank
        with open(f"{self.folder}/key", "wb", opener=lambda p, f: os.open(p, f, 0o600)) as key:
            key.write(os.urandom(32))
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
                run("ip", "-n", name, "link", "set", "lo", "up")
            if where == "veth":
                self.join_hosts(offload)
            self.start_daemons(with_daemon)
        except BaseException:  # an interruption, too
            self.close()
            raise

    def start_daemons(self, with_daemon):
        if with_daemon:
            for i, name in enumerate(self.names):
                path = f"{self.folder}/pmd{i}"
                self.daemons.append(subprocess.Popen([*self.inside(name), *LIVES_WITH_US, f"{BIN}/sekisho-pmd", "--socket", path],
                                                     stderr=subprocess.DEVNULL))
                while not os.path.exists(path):
                    if self.daemons[-1].poll() is not None:
                        raise RuntimeError(f"{BIN}/sekisho-pmd ended, exit code {self.daemons[-1].returncode}")
                    os.sched_yield()

    def join_hosts(self, offload):
        if len(self.names) == 2:
            a, b = self.names
            run("ip", "link", "add", "pmv", "netns", a, "type", "veth", "peer", "name", "pmv", "netns", b)
        else:
            self.switch = f"{self.names[0][:-1]}s"
            run("ip", "netns", "add", self.switch)
            run("ip", "-n", self.switch, "link", "add", "name", "bridge0", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "bridge0", "up")
            for i, name in enumerate(self.names):
                run("ip", "link", "add", "pmv", "netns", name, "type", "veth", "peer", "name", f"p{i}", "netns", self.switch)
                run("ip", "-n", self.switch, "link", "set", f"p{i}", "master", "bridge0", "up")
        for name, address in zip(self.names, self.addresses):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "pmv")
            run("ip", "-n", name, "link", "set", "pmv", "up")
            if not offload:  # then nothing longer than the MTU leaves
                run("ip", "-n", name, "link", "set", "pmv", "gso_max_segs", "1")

        for name in self.names:  # the kernel notices a moment later, and MPICH wants to see it
            while json.loads(run("ip", "-n", name, "-j", "link", "show", "pmv").stdout)[0]["operstate"] != "UP":
                os.sched_yield()

    @staticmethod
    def inside(name):
        return ["ip", "netns", "exec", name]

    def set_loss(self, percent):
        """Random loss of what arrives, on both hosts; counted by the rule."""
        for name in self.names:
            run("ip", "netns", "exec", name, "nft", "flush", "ruleset")
            if percent > 0:
                run("ip", "netns", "exec", name, "nft", "-f", "-", input=f"""
table inet loss {{ chain arriving {{ type filter hook input priority 0;
  iifname "pmv" meta l4proto {{ tcp, udp }} numgen random mod 100000 < {round(percent * 1000)} counter drop
  }}
}}
""")

    def dropped(self):
        total = 0
        for name in self.names:
            for item in json.loads(run("ip", "netns", "exec", name, "nft", "-j", "list", "ruleset").stdout)["nftables"]:
                for part in item.get("rule", {}).get("expr", []):
                    total += part.get("counter", {}).get("packets", 0)
        return total

    def job(self, ranks, place=None):
        """A job file; `place` says on which host each rank is, else they take turns."""
        self.context += 1
        return self.write_job(self.context, [place(node) if place else node % len(self.names) for node in range(ranks)])

    def write_job(self, context, places):
        path = f"{self.folder}/job{context}-{len(os.listdir(self.folder))}"
        self.places[path] = places
        with open(path, "w") as job:
            job.write(f"key {self.folder}/key\ncontext {context}\nnodes {len(places)}\n")
            for node, place in enumerate(places):
                port = 20000 + (context * 64 + node) % 12000  # below those that the kernel gives out
                job.write(f"node {node} {self.addresses[place]}:{port}\n")
        return path

    def rank(self, link, job, node, words, wait="adaptive", **more):
        """One process."""
        place = self.places[job][node]
        daemon = ["--daemon", f"{self.folder}/pmd{place}"] if self.daemons and link == "pm" else []
        self.started.append(
            subprocess.Popen([*self.inside(self.names[place]), *LIVES_WITH_US, f"{BIN}/sekisho-pm-ranks", "--job", job, "--link", link,
                              "--node", str(node), "--wait", wait, *daemon, *map(str, words)], text=True, **more))  # fmt: skip
        return self.started[-1]

    def start(self, link, job, words, wait="adaptive"):
        """All processes of a job, the last one rank 0 with its output in a pipe."""
        ranks = len(self.places[job])
        return [self.rank(link, job, node, words, wait, stderr=subprocess.DEVNULL,
                          stdout=subprocess.PIPE if node == 0 else subprocess.DEVNULL) for node in reversed(range(ranks))]

    def pm(self, place, verb, *words):
        """`sekisho pm` at a host's daemon: the ended process."""
        return subprocess.run([*self.inside(self.names[place]), f"{BIN}/sekisho", "pm", verb, *map(str, words)],
                              env={**os.environ, "PM_DAEMON": f"{self.folder}/pmd{place}"}, capture_output=True, text=True)  # fmt: skip

    def start_mpich(self, ranks, words):
        """mpiexec, whose ranks take turns on the hosts and talk over TCP, also within a host."""
        net = "pmv" if self.where == "veth" else "lo"
        inside = " ".join(f"{place}) exec ip netns exec {name} \"$0\" \"$@\";;" for place, name in enumerate(self.names))
        script = f"case $((PMI_RANK % {len(self.names)})) in {inside} esac"
        environment = {**os.environ, "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": net, "UCX_WARN_UNUSED_ENV_VARS": "n"}
        self.started.append(subprocess.Popen(
            [*LIVES_WITH_US, "mpiexec.mpich", "-launcher", "fork", "-n", str(ranks), "sh", "-c", script, MPICH_RANKS, "--link", "mpich", *map(str, words)],
            text=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))  # fmt: skip
        return [self.started[-1]]

    def ranks(self, link, ranks, words, wait, limit=120):
        """What rank 0 printed; [] if the ranks did not end in time."""
        children = self.start_mpich(ranks, words) if link == "mpich" else self.start(link, self.job(ranks), words, wait)
        try:
            text = children[-1].communicate(timeout=limit)[0]
            bad = [child.wait(timeout=limit) for child in children if child.wait(timeout=limit) != 0]
        except subprocess.TimeoutExpired:
            text, bad = "", ["time-out"]
        finally:
            for child in children:
                child.kill()
                child.wait()
        if bad:
            print(f"# {link} {ranks} ranks {words}: {bad}", file=sys.stderr)
        return [json.loads(line) for line in text.splitlines()]

    def close(self):
        for child in self.started:
            child.kill()
            child.wait()
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait()
        for name in [*self.names, self.switch]:
            if name:
                subprocess.run(["ip", "netns", "del", name], check=False)
        shutil.rmtree(self.folder)
