# SPDX-License-Identifier: Apache-2.0
# What the end-to-end tests share.  A test is a list of claims; it prints one line for each and fails if one
# does not hold.  The lab it runs in is named by $SEKISHO_LAB and raised once for all of them.
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
LAB = f"{SOURCE}/deploy/lab/lab"
MPI = os.environ.get("SEKISHO_MPI", f"{SOURCE}/build/release/mpi")
SKIPPED = 77
SANITIZED = bool(os.environ.get("SEKISHO_SANITIZE"))
UNDER_TSAN = "thread" in os.environ.get("SEKISHO_SANITIZE", "")  # faketime starts no such program
# Limits are for a machine that nobody else uses: a small and shared one takes four times that, a sanitizer more.
PATIENCE = 8 if SANITIZED else 4
_claims = []


class Result:
    """How a command ended, and what it said on each stream."""

    def __init__(self, command, done):
        self.command = command
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return (f"{' '.join(self.command)}\n  exit code {self.code}\n"
                f"  stdout: {self.out[-2000:]!r}\n  stderr: {self.err[-2000:]!r}")  # fmt: skip

    def json(self):
        return json.loads(self.out)


def folder():
    """A directory of this machine, gone when the test ends."""
    path = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def claim(sentence, unless=False):
    """Registers a function as the proof of a sentence, which is not asked for `unless` it can be."""

    def register(function):
        _claims.append((sentence, None if unless else function))
        return function

    return register


def main():
    """Runs the file's claims, or those that match an argument.  To be called at its end."""
    if os.geteuid() != 0:
        print("skipped: the lab needs root")
        sys.exit(SKIPPED)
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    failed = 0
    for sentence, function in _claims:
        if wanted not in sentence:
            continue
        if function is None:
            print(f"skipped {sentence}", flush=True)
            continue
        began = time.monotonic()
        try:
            function()
            print(f"ok      {sentence} ({time.monotonic() - began:.2f} s)", flush=True)
        except Exception as error:  # a failed claim must not hide the others
            failed += 1
            print(f"NOT OK  {sentence}", flush=True)
            if isinstance(error, AssertionError) and error.args:
                print("   ", str(error).replace("\n", "\n    "), flush=True)
            else:
                traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 0)


def command(words, stdin="", timeout_s=60, cwd=None):
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, errors="replace",
                          timeout=timeout_s * PATIENCE, cwd=cwd)  # fmt: skip
    return Result(words, done)


def lab(*words, **options):
    """One command of the lab program."""
    return command([LAB, *words], **options)


def on(host, *words, user=None, **options):
    """A command on a host of the lab."""
    return lab("exec", *(["--user", user] if user else []), host, "--", *words, **options)


def sekisho(*words, user=None, **options):
    """The command line of a user outside."""
    return on("client", "sekisho", *words, user=user, **options)


def expect(condition, *seen):
    """AssertionError that shows what was seen, unless the condition holds."""
    assert condition, "\n".join(str(one) for one in seen)


def expect_ok(result):
    expect(result.code == 0, result)
    return result


def expect_text(result, *texts):
    """Each text is part of what the command said on stderr."""
    for text in texts:
        expect(text in result.err, f"expected on stderr: {text!r}", result)


def expect_code(result, code):
    expect(result.code == code, f"expected exit code {code}", result)


def until(condition, what, timeout_s=10):
    """Waits until `condition()` is true; returns its value."""
    timeout_s *= PATIENCE
    deadline = time.monotonic() + timeout_s
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(min(max(0.02, now - began), 0.25))  # who looks takes processors from what it waits for


def put(host, user, name, content):
    """A program or a file in a user's home at a host of the lab."""
    # In one step: another test may be running it.
    write = f"cat >{name}.$$ && chmod +x {name}.$$ && mv -f {name}.$$ {name}"
    done = subprocess.run([LAB, "exec", "--user", user, host, "sh", "-c", write],
                          input=content, capture_output=True, timeout=60)  # fmt: skip
    expect(done.returncode == 0, done)


def put_mpi(hosts, user, kind, name, new_name=None):
    """A program of tests/apps, built for `kind` (mpich, openmpi); skips the test if there is none of that kind."""
    path = f"{MPI}/{kind}/{name}"
    if not os.path.exists(path):
        print(f"skipped: {path} is not built: no mpicc.{kind} here?")
        sys.exit(SKIPPED)
    with open(path, "rb") as program:
        content = program.read()
    for host in hosts:
        put(host, user, new_name or name, content)


def firewall(site):
    return expect_ok(lab("firewall", site, "--json")).json()


def matches(pattern, text):
    return re.fullmatch(pattern, text, re.DOTALL) is not None


class ClockOff:
    """A host's queue server by a clock that is `by` off ("+3600s"), for as long as the block."""

    def __init__(self, host, by):
        self._host, self._by = host, by

    def __enter__(self):
        expect_ok(lab("kill", self._host, "qserver"))
        self._daemon = subprocess.Popen([LAB, "exec", self._host, "--", "faketime", "-f", self._by, "sekisho-qserver"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def __exit__(self, *_):
        expect_ok(lab("kill", self._host, "qserver"))
        self._daemon.wait()
        expect_ok(lab("start", self._host, "qserver"))


def start(*words, user=None, **options):
    """A command line of a user outside that goes on beside the test: a Popen with pipes."""
    head = [LAB, "exec", *(["--user", user] if user else []), "client", "--", "sekisho"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen([*head, *words], **options)


def ranks_on(node, program):
    """{rank: pid} of a multi-site program's ranks that run there."""
    look = f"for pid in $(pgrep -f '^{program}'); do echo $pid $(tr '\\0' '\\n' </proc/$pid/environ | sed -n 's/^SEKISHO_RANK=//p'); done"
    pairs = [line.split() for line in on(node, "sh", "-c", look).out.splitlines()]
    return {int(pair[1]): pair[0] for pair in pairs if len(pair) == 2}


def left_of_worlds(nodes):
    """Whatever runs on the nodes with the environment of a rank: its program, porter, server of PMIx; and who starts it."""
    look = "grep -lzs '^SEKISHO_WORLD=' /proc/[0-9]*/environ | cut -d/ -f3 | xargs -r ps -o pid=,args= -p"
    return [f"{node}: {line}" for node in nodes for line in on(node, "sh", "-c", look).out.splitlines()]


def left_of_parts(nodes, parts):
    """What the nodes have of a world of these parts: processes as above, and whatever else, file of the agents or shared memory has a part's name in it."""
    jobs = [part.rsplit("/", 1)[1] for part in parts]
    looks = (("ps", "-eo", "pid=,args="), ("find", "/var/lib/sekisho/agent", "/dev/shm"))
    lines = [f"{node}: {line}" for node in nodes for look in looks for line in on(node, *look).out.splitlines()]
    return left_of_worlds(nodes) + [line for line in lines if any(job in line for job in jobs)]


def submit(*words, user=None):
    """The new job's name."""
    return expect_ok(sekisho("submit", *words, user=user)).out.strip()


def status(job, user=None):
    result = sekisho("status", "--json", job, user=user)
    expect(result.out, result)
    return result.json()


def until_state(job, states, user=None, timeout_s=20):
    """The job's status, once its state is one of `states` (a text or a tuple)."""
    wanted = (states,) if isinstance(states, str) else states

    def look():
        seen = status(job, user)
        return seen if seen["state"] in wanted else None

    return until(look, f"{job} is {' or '.join(wanted)}", timeout_s)


# Prints every file below the daemons' state directories, and how many rows each table of each database has.
_INVENTORY = """
import os, sqlite3
for top, folders, files in os.walk("/var/lib/sekisho"):
    for name in folders + files:
        path = os.path.join(top, name)
        if name.endswith(("-wal", "-shm")):
            continue
        print(path)
        if os.path.isfile(path) and open(path, "rb").read(15) == b"SQLite format 3":
            base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            for (table,) in base.execute("select name from sqlite_master where type = 'table'"):
                if not table.startswith("sqlite_"):
                    print(path, table, base.execute(f"select count(*) from {table}").fetchone()[0])
"""


def left_behind(site_prefix, accounts=("alice", "bob", "erin")):
    """What a site holds of its users: rows and files of its daemons, processes of its users' tasks."""
    found = set()
    for host in ("dmz", "head", "n1", "n2"):
        name = f"{site_prefix}-{host}"
        for line in expect_ok(on(name, "/usr/bin/python3", "-c", _INVENTORY)).out.splitlines():
            found.add(f"{name}: {line}")
        users = on(name, "ps", "-eo", "user:20,args", "--no-headers").out.splitlines()
        for line in users:
            account, words = line.split(None, 1)
            if account in accounts and not re.search(r"sekisho-jobmanager|\bps -eo\b", words):
                found.add(f"{name}: process of {account}: {words}")
    return found
