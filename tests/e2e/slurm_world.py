# SPDX-License-Identifier: Apache-2.0
# A lab of its own, whose siteB has a Slurm: for the tests of jobs that Slurm runs.
import os
import subprocess
import sys

import support as t

# A lab's name has 20 letters at most, of which ctest's has 15.
NAME = f"{os.environ.get('SEKISHO_LAB', 'sekisho')}-{os.path.basename(sys.argv[0])[1:5]}"
os.environ["SEKISHO_LAB"] = NAME  # also of what `t` does
SITE = "siteB/jobmanager-slurm"


def lab(*words, **options):
    return t.command([t.LAB, "--name", NAME, *words], **options)


def on(host, *words, user="root", **options):
    return lab("exec", "--user", user, host, "--", *words, **options)


def sekisho(*words, user="alice", **options):
    return on("client", "sekisho", *words, user=user, **options)


def run(*words, options=(), **more):
    return sekisho("run", "-r", SITE, *options, "--", *words, **more)


def start(*words, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen([t.LAB, "--name", NAME, "exec", "--user", "alice", "client", "--", "sekisho", *words], **options)


def submit(*words, options=()):
    return t.expect_ok(sekisho("submit", "-r", SITE, *options, "--", *words)).out.strip()


def status(job):
    return sekisho("status", "--json", job).json()


def until_state(job, state, timeout_s=90):
    return t.until(lambda: (lambda s: s if s["state"] == state else None)(status(job)), f"{job} is {state}", timeout_s)


def squeue(*words):
    """{job name: [account, state]} of Slurm's own listing."""
    lines = t.expect_ok(on("b-head", "squeue", "-h", "-o", "%j %u %T", *words)).out.splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


def name_in_slurm(job):
    return "sekisho-" + job.rsplit("/", 1)[1]


def sh(text):
    return "/bin/sh", "-c", text


def store_state():
    """Slurm's controller writes down what it knows some seconds later: killed before, it has forgotten that.  What is
    returned is to be called when it is back: it may know again the held job by which it was made to write."""
    on("b-head", "touch", "/tmp/now")
    number = t.expect_ok(on("b-head", "sbatch", "--parsable", "--hold", "--wrap", "true")).out.strip()
    t.expect_ok(on("b-head", "scancel", number))
    newer = ("find", "/var/spool/slurmctld/job_state", "-newer", "/tmp/now")
    t.until(lambda: on("b-head", *newer).out, "the controller's state is stored", 30)
    return lambda: on("b-head", "scancel", number)


def pilots():
    """{(host, process)}"""
    return {(host, pid) for host in ("b-n1", "b-n2") for pid in on(host, "ps", "-C", "sekisho-pilot", "-o", "pid=").out.split()}


def kill_pilots():
    """By force.  Returns whom."""
    found = pilots()
    for host, pid in found:
        on(host, "kill", "-9", pid)
    return found


def expect_nothing_left():
    """Of all jobs."""
    t.until(lambda: not squeue(), "Slurm is empty", 90)
    left = []
    for host in ("b-n1", "b-n2"):
        t.until(lambda: "sekisho-pilot" not in on(host, "ps", "-eo", "args=").out, f"no pilot or keeper on {host}", 20)
        left += t.expect_ok(on(host, "find", "/tmp", "-maxdepth", "1", "-name", "sekisho-*", "-printf", "%f\n")).out.split()
    t.expect(not left, left)


def main():
    """Raises the lab, runs the file's claims, takes it down."""
    if os.geteuid() == 0:
        t.expect_ok(lab("up", f"{t.SOURCE}/deploy/lab/slurm.json", timeout_s=120))
    try:
        t.main()
    finally:
        if os.geteuid() == 0:
            t.expect_ok(lab("down"))
