# SPDX-License-Identifier: Apache-2.0
# The auditor: what the tasks themselves have written, against what the system says.  Pure; docs/operations/chaos.md.
import dataclasses
import re

# What must be zero.
KINDS = ("lost", "doubled", "wrong exit codes", "output bytes wrong", "orphan processes", "leaked directories")


@dataclasses.dataclass(frozen=True)
class Finding:
    kind: str
    job: str
    what: str

    def __str__(self):
        return f"{self.kind}: {self.job}: {self.what}"


@dataclasses.dataclass
class Evidence:
    """`plan`: label -> plan.Job, of jobs whose submission was answered, or may have come.
    `names`: label -> the name that the user was told; none for a job that was never answered.
    `ran`: file name -> lines, of the tasks' own files.
    `says`: label -> the system's status of it (`status --json`).
    `output`: (label, task) -> (stdout, stderr) as the system gave them; what is not there was not asked for.
    `left`: what is left when all is over: {"processes": [...], "directories": [...]}.
    `bereft`: labels of MPI jobs of which a node says that a helper's supervisor was killed."""

    plan: dict
    names: dict
    ran: dict
    says: dict
    output: dict
    left: dict
    bereft: frozenset = frozenset()


def audit(evidence):
    """All findings; none if all is as it was meant."""
    found = []
    for label, job in evidence.plan.items():
        found += _audit_job(label, job, evidence)
    found += _strangers(evidence)
    found += [Finding("orphan processes", "-", what) for what in evidence.left.get("processes", [])]
    found += [Finding("leaked directories", "-", what) for what in evidence.left.get("directories", [])]
    return found


def _audit_job(label, job, evidence):
    tasks = [_read_task(evidence.ran.get(f"{label}.{task}", [])) for task in range(job.tasks)]
    for task, seen in enumerate(tasks):
        if len(seen.begun) > 1:
            yield Finding("doubled", label, f"task {task} began {len(seen.begun)} times: {seen.begun}")
        if seen.rubbish:
            yield Finding("lost", label, f"task {task} wrote what it never writes: {seen.rubbish}")

    says, name = evidence.says.get(label), evidence.names.get(label)
    if name is None:
        for task, seen in enumerate(tasks):
            if seen.begun:
                yield Finding("doubled", label, f"task {task} ran, though its submission was refused")
        return
    if says is None:
        yield Finding("lost", label, f"the system does not say what became of {name}")
        return
    if is_bereft(label, evidence) and says["state"] in ("DONE", "FAILED"):
        return  # its mpirun's own words and code tell of it
    yield from _audit_state(label, job, tasks, says, name)
    if says["state"] == "DONE":
        yield from _audit_output(label, job, evidence.output)


def is_bereft(label, evidence):
    """An MPI job that may end otherwise than it was meant to, and has."""
    job, says = evidence.plan[label], evidence.says.get(label, {})
    return (job.is_mpi and bool(job.may_fail) and label in evidence.bereft
            and (says.get("state"), says.get("exit_code")) != ("DONE", job.code))  # fmt: skip


def _audit_state(label, job, tasks, says, name):
    state, reason = says["state"], says.get("reason", "")
    own_id = name.rsplit("/", 1)[-1]
    for task, seen in enumerate(tasks):
        for job_id, number, _ in seen.begun:
            if (job_id, number) != (own_id, str(task)):
                yield Finding("doubled", label, f"it ran as {job_id} task {number}, its user was told {name} task {task}")
    if state == "CANCELLED" and job.is_cancelled:
        return
    if state == "FAILED" and job.may_fail_by(reason):
        return
    if state != "DONE":
        yield Finding("lost", label, f"{name} is {state}: {reason or 'no reason'}")
        return
    for task, seen in enumerate(tasks):
        if not seen.begun:
            yield Finding("lost", label, f"{name} is said to be DONE, and its task {task} never ran")
        elif not seen.ended:
            yield Finding("lost", label, f"{name} is said to be DONE, and its task {task} never came to its end")
    ended = [seen.ended[0] for seen in tasks if seen.ended]
    wrote = {code for _, _, _, code in ended}
    if ended and wrote != {str(job.code)}:
        yield Finding("wrong exit codes", label, f"its tasks exited with {sorted(wrote)}, {job.code} was meant")
    if says.get("exit_code") != job.code:
        yield Finding("wrong exit codes", label, f"{name} is said to have exited with {says.get('exit_code')}, not {job.code}")


def _audit_output(label, job, output):
    for task in job.streams_of():
        seen = output.get((label, task))
        if seen is None:
            continue
        error = _of_the_program(seen[1]) if job.is_mpi else seen[1]
        for stream, wanted, got in (("output", job.out(task), seen[0]), ("error", job.err(task), error)):
            if got is not None and got != wanted:
                yield Finding("output bytes wrong", label, f"task {task}'s standard {stream}: {_difference(wanted, got)}")


def _of_the_program(error):
    """Without what `sekisho-rsh` itself says there, of an agent that it waits for."""
    return error and b"".join(line for line in error.splitlines(True) if not re.match(rb"sekisho-rsh: \S+: waiting for ", line))


def _difference(wanted, got):
    at = next((i for i, (one, other) in enumerate(zip(wanted, got)) if one != other), min(len(wanted), len(got)))
    return f"{len(wanted)} bytes were written, {len(got)} came; they differ from byte {at} on: {got[at:at + 40]!r}"


def _strangers(evidence):
    """Files of tasks that nobody planned."""
    known = {f"{label}.{task}" for label, job in evidence.plan.items() for task in range(job.tasks)}
    for name in sorted(evidence.ran):
        if name not in known:
            yield Finding("doubled", name, "a task ran that nobody has asked for")


@dataclasses.dataclass
class _Task:
    begun: list
    ended: list
    rubbish: list


def _read_task(lines):
    task = _Task([], [], [])
    for line in lines:
        words = line.split()
        if len(words) == 4 and words[0] == "begin":
            task.begun.append(tuple(words[1:]))
        elif len(words) == 5 and words[0] == "end":
            task.ended.append(tuple(words[1:]))
        else:
            task.rubbish.append(line)
    return task


def count(findings):
    """{kind: how many}, of all kinds."""
    return {kind: sum(1 for finding in findings if finding.kind == kind) for kind in KINDS}
