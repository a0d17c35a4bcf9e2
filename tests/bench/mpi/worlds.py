# SPDX-License-Identifier: Apache-2.0
# Labs for the benchmarks of MPI: as many sites as wanted, behind firewalls, each with two nodes; programs of tests/apps
# in them; and what they print.
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
LAB = f"{ROOT}/deploy/lab/lab"
MPI = os.environ.get("SEKISHO_MPI", f"{ROOT}/build/release/mpi")
KINDS = ("mpich", "openmpi")


def load():
    return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg())


def spread(values, form="{:.3f}"):
    """"median [min-max]"."""
    words = [form.format(value) for value in (statistics.median(values), min(values), max(values))]
    return f"{words[0]} [{words[1]}-{words[2]}]"


class Lab:
    """Sites siteA, siteB, ... ; `closed`: of these the nodes may not dial out, so that their ranks need an inner relay."""

    def __init__(self, name, sites=2, wan="none", closed=(), processors=8, environment=None, build=None):
        self.build = build
        self.name, self.letters = name, "ABCDEFGH"[:sites]
        self.folder = tempfile.mkdtemp(prefix="mpi-bench-")
        described = {}
        for number, letter in enumerate(self.letters, 1):
            prefix = letter.lower()
            with open(f"{self.folder}/inventory-{prefix}.json", "w") as file:
                nodes = [f"{prefix}-n1", f"{prefix}-n2"]
                json.dump({"resource": [{"name": "all", "nodes": nodes, "procs": processors, "clock": 2000, "architecture": "x86_64",
                                         "os": "debian12", "memory": 8192}]}, file)  # fmt: skip
            described[f"site{letter}"] = {
                "prefix": prefix, "outside": f"10.0.{number}.0/24", "inside": f"10.{number}.0.0/24", "nodes": 2,
                "pinholes": [{"from": f"{prefix}-dmz", "to": f"{prefix}-head", "port": 7512}],
                "dial_out": [f"{prefix}-head"] + ([] if f"site{letter}" in closed else nodes),
                "mapping": {"alice": "alice"}, "policy": "paper", "inventory": f"inventory-{prefix}.json"}  # fmt: skip
        with open(f"{self.folder}/lab.json", "w") as file:
            json.dump({"users": {"alice": {"common_name": "Alice Liddell"}}, "client": {"address": "10.0.0.2/24"}, "wan": wan,
                       "sites": described}, file)  # fmt: skip
        self.environment = {**os.environ, **({"SEKISHO_BIN": f"{build}/bin"} if build else {}), **(environment or {})}

    def __enter__(self):
        self._run([LAB, "--name", self.name, "up", f"{self.folder}/lab.json"])
        for letter in self.letters:  # as the package's sysctl.d has it
            self.on(f"{letter.lower()}-dmz", "sh", "-c", "echo 3 >/proc/sys/net/ipv4/tcp_fastopen")
        return self

    def __exit__(self, *_):
        subprocess.run([LAB, "--name", self.name, "down"], env=self.environment, stdout=subprocess.DEVNULL)
        shutil.rmtree(self.folder)

    def of_build(self):
        """Whose programs these are, to be printed, if not ours."""
        return f"; {self.build}" if self.build else ""

    def _run(self, words, timeout=300, **options):
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, env=self.environment, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def on(self, host, *words, user="root", **options):
        return self._run([LAB, "--name", self.name, "exec", "--user", user, host, "--", *words], **options)

    def put(self, host, name, path):
        """A program of this machine, in alice's home there."""
        with open(path, "rb") as file:
            subprocess.run([LAB, "--name", self.name, "exec", "--user", "alice", host, "--", "sh", "-c", f"cat >{name} && chmod +x {name}"],
                           stdin=file, check=True, env=self.environment)  # fmt: skip

    def start(self, host, *words):
        """Goes on beside: a Popen."""
        return subprocess.Popen([LAB, "--name", self.name, "exec", "--user", "alice", host, "--", *words], env=self.environment)

    def install(self, *programs):
        """Each as PROGRAM-KIND in alice's home at every site."""
        for kind in KINDS:
            for program in programs:
                for letter in self.letters:
                    self.put(f"{letter.lower()}-head", f"{program}-{kind}", f"{MPI}/{kind}/{program}")

    def open_firewalls(self):
        """Until the lab goes: every node reaches every other."""
        for number, letter in enumerate(self.letters, 1):
            router = f"{letter.lower()}-router"
            self.on(router, "nft", "delete", "table", "inet", "lab")
            for other in range(1, len(self.letters) + 1):
                if other != number:
                    self.on(router, "ip", "route", "del", "unreachable", f"10.{other}.0.0/24")

    def mpirun(self, kind, program, counts, *arguments, options=(), before=()):
        """What a world prints that has `counts[i]` ranks at the i-th site, `before` its program's name."""
        lines = "".join(f'"site{letter}" {count}\n' for letter, count in zip(self.letters, counts) if count)
        subprocess.run([LAB, "--name", self.name, "exec", "--user", "alice", "client", "--", "sh", "-c", "cat >machines"],
                       input=lines.encode(), check=True, env=self.environment)  # fmt: skip
        return self.on("client", "sekisho", "mpirun", "-np", str(sum(counts)), "-machinefile", "/home/alice/machines", "--no-input", "--mpi", kind,
                       *options, *before, f"/home/alice/{program}-{kind}", *arguments, user="alice", timeout=900)  # fmt: skip

    def own(self, kind, program, ranks, *arguments, site="siteA"):
        """The same by the site's own mpirun, at one site."""
        return self.on("client", "sekisho", "run", "-r", site, "--no-input", "--job-type", "mpi", "--count", str(ranks),
                       "-x", f"(mpi_type={kind})", "--", f"/home/alice/{program}-{kind}", *arguments, user="alice")  # fmt: skip


def span(text, ranks):
    """Seconds from the first rank's first instruction to the last one's end of MPI_Finalize."""
    times = [(float(begin), float(end)) for begin, end in re.findall(r"start \d+ (\S+) (\S+)", text)]
    if len(times) != ranks:
        raise RuntimeError(f"{ranks} ranks were expected: {text}")
    return max(end for _, end in times) - min(begin for begin, _ in times)


def figures(text, what):
    """{bytes: (numbers behind it)}."""
    return {int(size): tuple(float(one) for one in rest.split()) for size, rest in re.findall(rf"^{what} (\d+) (.*)$", text, re.M)}


def timed(call):
    began = time.monotonic()
    return call(), time.monotonic() - began


def say(text):
    print(text, flush=True)
