# SPDX-License-Identifier: Apache-2.0
# A wave of jobs: a user outside submits them, waits for their end, and brings in the evidence.  He is as patient as a
# user is: what was not answered is said again with the same request id, what was refused for the moment, too.
import concurrent.futures
import dataclasses
import json
import os
import re
import time

import auditor
import plan
import world as worlds

# What a site that is ill may say to a submission, an upload or a question: nothing was done, ask again.
ASK_AGAIN = (125, 127)
ENDED = ("DONE", "FAILED", "CANCELLED")
SERVED = "work"  # by http, of the client


def setup(world):
    """The program of the jobs, in the account's home."""
    world.shell("a-head", f"mkdir -p {plan.RAN} {plan.FOLDER}/out", user="alice")
    path = world.path("a-head", f"/home/alice/{plan.FOLDER}/work")
    with open(path, "w") as file:
        file.write(plan.WORK)
    os.chmod(path, 0o755)
    world.shell("client", f"mkdir -p {plan.FOLDER}/out {plan.FOLDER}/served", user="alice")
    with open(world.path("client", f"/home/alice/{plan.FOLDER}/served/{SERVED}"), "wb") as file:
        file.write(plan.WORK.encode())
    world.serve("client", f"/home/alice/{plan.FOLDER}/served")


class Wave:
    """Jobs whose labels begin with `prefix`."""

    def __init__(self, world, prefix, deadline, problems=()):
        self.world, self.prefix, self.deadline = world, prefix, deadline
        self.plan, self.names, self.arrays, self.output = {}, {}, {}, {}
        self.problems = list(problems)  # what a user would complain of, and the auditor cannot see
        self.refusals = []  # clear words of a site that could take no jobs for a while
        self.may_fail = ()  # of each of its jobs, besides its own
        self._files = []  # (label, a file of its at the site, what is to be in it)
        self._let_go = set()  # labels whose output was fetched, and is gone

    # Commands.

    def sekisho(self, *words, stdin=None, proxy=None, timeout_s=120):
        """(exit code, stdout, stderr)"""
        head = ("env", f"X509_USER_PROXY={proxy}") if proxy else ()
        options = {"input": stdin.encode()} if stdin is not None else {"stdin": worlds.subprocess.DEVNULL}
        command = [worlds.LAB, "--name", self.world.name, "exec", "--user", "alice", "client", "--", *head, "sekisho", *words]
        try:
            done = worlds.subprocess.run(command, capture_output=True, timeout=timeout_s, **options)
        except worlds.subprocess.TimeoutExpired:
            return 127, b"", "the command was ended by the suite, after its time"
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def insist(self, *words, stdin=None, proxy=None, done_if=(), label=None):
        """The command's stdout, once it is answered with yes; None if it is refused for good, or not in time.  A
        refusal with a text of `done_if` is no complaint: an earlier try, whose answer was lost, has done it, or it came too late.
        `label`: of the job whose name it prints: it is there from then on, however the command ends."""
        while True:
            code, out, err = self.sekisho(*words, stdin=stdin, proxy=proxy)
            if label:
                self._name(label, out)
            if code == 0 or any(text in err for text in done_if):
                return out
            if code not in ASK_AGAIN or time.monotonic() > self.deadline:
                self.problems.append(f"sekisho {' '.join(words)[:200]}: exit code {code}: {err[:400]}")
                return None
            if not err.strip():
                self.problems.append(f"sekisho {' '.join(words)[:200]}: exit code {code} without a word")
            self.refusals.append(err.strip().splitlines()[0] if err.strip() else "")
            time.sleep(0.2)

    # Submissions.  Each returns whether the job was accepted.

    def submit(self, job, *options, rsl="", proxy=None, done_if=()):
        """`rsl`: more of it, which has no option."""
        job = self._own(job)
        self.plan[job.label] = job
        command = (job.rsl() + rsl,) if rsl or job.is_mpi else self._command(job)
        self.insist("submit", "-r", worlds.SITE, "--request-id", job.label, *options, *command, proxy=proxy, done_if=done_if, label=job.label)
        return job.label in self.names

    def submit_staged(self, job):
        """One that needs a file of the client's."""
        job = self._own(job)
        self.plan[job.label] = job
        name, content = self._file(), job.out(0) * 50  # of its own: the site has it not yet
        self._files.append((job.label, name, content))
        with open(self.world.path("client", f"/home/alice/{name}"), "wb") as file:
            file.write(content)
        words = ("submit", "-r", worlds.SITE, "--request-id", job.label, "--stage-in", f"{name}={name}", *self._command(job))
        while not self._name(job.label, None):
            code, out, err = self.sekisho(*words)
            self._name(job.label, out)
            if code == 0 or time.monotonic() > self.deadline:
                return code == 0
            if code not in ASK_AGAIN and not out:
                self.problems.append(f"{job.label}: exit code {code}: {err[:400]}")
                return False
            time.sleep(0.2)
        while True:  # the name came, the file may not have
            code, _, err = self.sekisho("upload", self.names[job.label])
            if code == 0 or "does not wait for files" in err or time.monotonic() > self.deadline:
                return True
            state = self._status([self.names[job.label]]).get(self.names[job.label], {}).get("state")
            if state not in (None, "STAGE_IN", "UNSUBMITTED", "UNKNOWN"):
                return True
            time.sleep(0.2)

    def submit_files(self, job):
        """One with a scratch directory, to which the site copies a file, and from which it takes it home."""
        copy = self._file()
        rsl = (f"(scratch_dir={plan.SCRATCH})(file_stage_in=(file:///home/alice/{plan.FOLDER}/work {copy}.in))"
               f"(file_stage_out=({copy}.in file:///home/alice/{copy}))(file_clean_up={copy}.in)")  # fmt: skip
        return self._submit_that_leaves(job, copy, plan.WORK.encode(), rsl)

    def submit_fetched(self, job):
        """One that has a file fetched from a web server."""
        copy = self._file()
        return self._submit_that_leaves(job, copy, plan.WORK.encode(), f"(file_stage_in=({self.world.served}/{SERVED} {copy}))")

    def _submit_that_leaves(self, job, path, content, rsl):
        """A file at the site."""
        if self.submit(job, rsl=rsl):
            self._files.append((self.prefix + job.label, path, content))
        return self.prefix + job.label in self.names

    def submit_home(self, job):
        """One whose file comes home, when it is asked for."""
        copy = self._file()
        rsl = f"(file_stage_in=(file:///home/alice/{plan.FOLDER}/work {copy}))(file_stage_out=({copy} client:///home/alice/{copy}))(file_clean_up={copy})"
        if self.submit(job, rsl=rsl) and self._has_ended_well(job.label):
            self._fetch_back(job.label, (), plan.WORK.encode())

    def put_and_get(self, label):
        """Sends a file into a job's directory, and fetches it again."""
        name, sent = self.names.get(self.prefix + label), self._file()
        content = self.plan[self.prefix + label].out(0) * 50
        with open(self.world.path("client", f"/home/alice/{sent}"), "wb") as file:
            file.write(content)
        if name and self.insist("put", "--quiet", name, sent, "--to", "sent") is not None:
            self._fetch_back(label, ("sent",), content)

    def _fetch_back(self, label, paths, wanted):
        came = self.insist("get", "--quiet", self.names[self.prefix + label], *paths, "-o", "-")
        if came is not None and came != wanted:
            self.problems.append(f"{label}: {len(came)} bytes were fetched, {len(wanted)} were meant")

    def _has_ended_well(self, label):
        name = self.names[self.prefix + label]
        while time.monotonic() < self.deadline:
            state = self._status([name]).get(name, {}).get("state")
            if state in ENDED:
                return state == "DONE"
            time.sleep(0.2)
        return False  # the auditor tells

    def submit_many(self, jobs):
        jobs = [self._own(job) for job in jobs]
        self.plan.update((job.label, job) for job in jobs)
        text = "".join(job.rsl() + "\n" for job in jobs)
        out = self.insist("submit", "-r", worlds.SITE, "--many", "-", "--request-id", f"{jobs[0].label}-many", stdin=text)
        names = out.decode().split() if out else []
        if out and len(names) != len(jobs):
            self.problems.append(f"{len(jobs)} jobs of one file were submitted, {len(names)} were named")
        self.names.update(zip((job.label for job in jobs), names))
        return len(names) == len(jobs)

    def submit_array(self, job, indices):
        job = self._own(job)
        elements = [plan.element(job, index) for index in indices]
        self.plan.update((one.label, one) for one in elements)
        out = self.insist("submit", "-r", worlds.SITE, "--request-id", job.label, "--array", f"{indices[0]}-{indices[-1]}",
                          *self._command(job))  # fmt: skip
        if out is None:
            return False
        name = out.decode().strip()
        self.arrays[name] = elements
        self.names.update((one.label, f"{name}[{index}]") for one, index in zip(elements, indices))
        return True

    def run(self, job):
        """Attached, as `sekisho run`: its output comes live, and its exit code is the job's."""
        job = self._own(job)
        self.plan[job.label] = job
        words = ("run", "-r", worlds.SITE, *(() if job.is_fed else ("--no-input",)), "--request-id", job.label, *self._command(job))
        while True:
            code, out, err = self.sekisho(*words, stdin=job.food() if job.is_fed else None)
            own = "".join(line for line in err.splitlines(True) if not line.startswith("sekisho: ") and not line.startswith("  -> "))
            has_failed = job.may_fail_by(err)
            if code not in ASK_AGAIN or has_failed or time.monotonic() > self.deadline:
                break
            self.refusals.append(err.strip().splitlines()[0] if err.strip() else "")
            time.sleep(0.2)
        if code != job.code and not has_failed:
            self.problems.append(f"run of {job.label}: exit code {code}, {job.code} was meant: {err[-400:]}")
        if code == job.code and out != job.out(0):
            self.problems.append(f"run of {job.label}: {len(out)} bytes came live, {len(job.out(0))} were meant")
        if code == job.code and job.err(0).decode() not in own:
            self.problems.append(f"run of {job.label}: its standard error came as {own!r}")
        self.insist("submit", "-r", worlds.SITE, "--request-id", job.label, *self._command(job), label=job.label)

    def cancel(self, label):
        name = self.names.get(self.prefix + label)
        if name:
            self.insist("cancel", name, done_if=("has ended already",))

    def suspend(self, label):
        """And on again."""
        name = self.names.get(self.prefix + label)
        for word in ("suspend", "resume") if name else ():
            self.insist("signal", name, word, done_if=("has ended already",))

    def redirect(self, label):
        """A copy of what a held job will say."""
        name, copy = self.names.get(self.prefix + label), self._file()
        if name and self.insist("signal", name, "stdio_update", f"&(stdout={copy})") is not None:
            self._files.append((self.prefix + label, copy, self.plan[self.prefix + label].out(0)))

    def refresh(self, label):
        name = self.names.get(self.prefix + label)
        if name:
            self.insist("proxy", "refresh", name)

    def extend(self, label):
        """Its commit is late, and comes."""
        name = self.names.get(self.prefix + label)
        for words in (("commit_extend", "60"), ("commit_request",)) if name else ():
            self.insist("signal", name, *words, done_if=("does not wait for a commit",))

    def let_go(self, label):
        """The end's commit: its output, which has come, is not needed any more."""
        name = self.names.get(self.prefix + label)
        if name and self._has_ended_well(label):
            self._fetch(self.prefix + label)
            self._let_go.add(self.prefix + label)
            self.insist("signal", name, "commit_end")
            code, out, err = self._patiently("output", name)
            if out or (code != 0 and "no such job" not in err):
                self.problems.append(f"output of {label} after its end's commit: exit code {code}, {len(out)} bytes: {err[:300]}")

    def name(self, label):
        """As its user was told."""
        return self.names[self.prefix + label]

    def release(self, label):
        name = self.names.get(self.prefix + label)
        if name:
            self.insist("release", name)

    def _own(self, job):
        return dataclasses.replace(job, label=self.prefix + job.label, may_fail=(*job.may_fail, *self.may_fail))

    @staticmethod
    def _file():
        """A file of nobody else's, whose name is as all such names to those who list kill points."""
        return f"{plan.FOLDER}/out/{time.time_ns()}.data"

    def _command(self, job):
        count = ("--count", str(job.tasks), "--host-count", str(job.tasks)) if job.tasks > 1 else ()
        node = ("-x", f"(node={job.node})") if job.node else ()
        out = self.streams(job.label) if job.stream == "file" else ()
        return (*count, *node, *out, "--", *job.words())

    @staticmethod
    def streams(label):
        return ("--stdout", f"{plan.FOLDER}/out/{label}", "--stderr", f"{plan.FOLDER}/out/{label}.err")

    def _name(self, label, out):
        if out and out.strip():
            self.names[label] = out.decode().strip().splitlines()[-1]
        return label in self.names

    # The end.

    def settle(self, timeout_s):
        """Waits until all jobs have ended; whether they have."""
        until = time.monotonic() + timeout_s
        pause = 0.1
        while True:
            says = self.statuses()
            if all(says.get(label, {}).get("state") in ENDED for label in self.names):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(1.0, pause * 1.3)

    def statuses(self):
        """label -> what the system says of it."""
        singles = [name for name in self.names.values() if not name.endswith("]")]
        seen = self._status(singles) if singles else {}
        for array in self.arrays:
            seen.update(self._status([array], "--elements"))
        return {label: seen[name] for label, name in self.names.items() if name in seen}

    def states(self, names):
        """Of those that the system tells of."""
        return [one["state"] for one in self._status(names).values()]

    def _status(self, names, *options):
        found = {}
        for at in range(0, len(names), 200):
            out = self.sekisho("status", "--json", *options, *names[at:at + 200])[1]
            for line in out.decode(errors="replace").splitlines():
                try:
                    one = json.loads(line)
                except ValueError:
                    continue
                found[one["id"]] = one
        return found

    def evidence(self):
        """What the auditor judges.  All jobs have ended, or never will."""
        says = self.statuses()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(self._fetch, [label for label in self.names if says.get(label, {}).get("state") == "DONE"
                                        and not self.names[label].endswith("]") and label not in self._let_go]))  # fmt: skip
            list(pool.map(self._fetch_array, [name for name, elements in self.arrays.items()
                                              if all(says.get(e.label, {}).get("state") == "DONE" for e in elements)]))  # fmt: skip
        for label, path, content in self._files:
            if says.get(label, {}).get("state") == "DONE":
                self._compare(path, content)
        folder = self.world.path("a-head", f"/home/alice/{plan.RAN}")
        ran = {}
        for name in os.listdir(folder):
            if name.startswith(self.prefix) and not name.endswith(".plant"):
                with open(f"{folder}/{name}") as file:
                    ran[name] = file.read().splitlines()
        bereft = {label for label, job in self.plan.items() if job.is_mpi and label in self.names
                  and self.world.has_lost_a_helper(self.names[label].rsplit("/", 1)[-1])}  # fmt: skip
        return auditor.Evidence(dict(self.plan), dict(self.names), ran, says, dict(self.output), {}, frozenset(bereft))

    def _compare(self, path, wanted):
        """A file came byte for byte as it was to."""
        try:
            with open(self.world.path("a-head", f"/home/alice/{path}"), "rb") as file:
                came = file.read()
            os.unlink(file.name)
        except FileNotFoundError:
            came = None
        if came != wanted:
            self.problems.append(f"{path}: " + ("did not come" if came is None else f"came with {len(came)} bytes, otherwise than it was to"))

    def _fetch(self, label):
        job = self.plan[label]
        for task in job.streams_of():
            if job.stream == "file":
                self._fetch_file(job, task)
                continue
            code, out, err = self._patiently("output", "--task", str(task), self.names[label])
            self.output[label, task] = (out, err.encode())
            if code != 0:
                self.problems.append(f"output of {label}: exit code {code}: {err[:300]}")

    def _fetch_file(self, job, task):
        streams = []
        for ending in ("", ".err"):
            with open(self.world.path("a-head", f"/home/alice/{plan.FOLDER}/out/{job.label}{ending}"), "rb") as file:
                streams.append(file.read())
            os.unlink(file.name)
        self.output[job.label, task] = tuple(streams)

    def _fetch_array(self, name):
        code, out, err = self._patiently("output", name)
        if code != 0:
            self.problems.append(f"output of {name}: exit code {code}: {err[:300]}")
        rest = re.split(rb"(?<=\n)", out)
        for one in self.arrays[name]:
            head = f"{one.label}.0 ".encode()
            self.output[one.label, 0] = (b"".join(line for line in rest if line.startswith(head)),
                                         "".join(l + "\n" for l in err.splitlines() if l.startswith(head.decode())).encode())  # fmt: skip
        if len(out) != sum(len(one.out(0)) for one in self.arrays[name]):
            self.problems.append(f"output of {name}: {len(out)} bytes, {sum(len(e.out(0)) for e in self.arrays[name])} were meant")

    def _patiently(self, *words):
        for _ in range(20):
            code, out, err = self.sekisho(*words)
            if code == 0:
                break
            time.sleep(0.3)
        return code, out, err

    def clean(self):
        """The tasks' own files: they were judged."""
        folder = self.world.path("a-head", f"/home/alice/{plan.RAN}")
        for name in os.listdir(folder):
            if name.startswith(self.prefix):
                os.unlink(f"{folder}/{name}")
