# SPDX-License-Identifier: Apache-2.0
# Ours: the lab, and the command line as a user outside runs it.
import json
import os
import subprocess
import time

import drive

SOURCE = os.path.realpath(f"{os.path.dirname(os.path.realpath(__file__))}/../../..")
PROGRAM = f"{SOURCE}/deploy/lab/lab"
SITE, PREFIX = "siteA", "a-"


class Lab:
    """A lab raised for this run, or one that stands already."""

    def __init__(self, name, description=None, site=SITE, state=None):
        self._is_own = name is None
        self.name = name or f"jobs-{os.getpid()}"
        self._words = ([description] if description else []) + (["--state", state] if state else [])
        self._site = site
        self._driver = None

    def driver(self, host, *words):
        """A Driver on a host of the lab."""
        return drive.Driver([PROGRAM, "--name", self.name, "exec", *words, host, "/usr/bin/python3", "-B",
                             "/opt/sekisho/source/tests/bench/jobs_bench/drive.py"])  # fmt: skip

    def __enter__(self):
        try:
            if self._is_own:
                self._lab("up", "--quiet", *self._words)
            self._driver = self.driver("client")
            self.sites()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._driver:
            self._driver.close()
        if self._is_own:
            self._lab("down")

    def ask(self, do, **arguments):
        return self._driver.ask(do, **arguments)

    def sites(self):
        """How many processors the site has, and a warm jobmanager."""
        return json.loads(self._sekisho("sites", self._site, "--json"))[0]["slots_total"]

    def first_call(self, command):
        """As latency(), once, of an account that has no jobmanager yet, at a gatekeeper that has served another."""
        self._lab("stop", f"{PREFIX}dmz", "gatekeeper")
        self._lab("stop", f"{PREFIX}dmz", "jobmanager")
        self._lab("start", f"{PREFIX}dmz", "gatekeeper")
        self._lab("exec", "--user", "bob", "client", "sekisho", "list", "-r", SITE)
        return self.ask("latency", command=command, times=1)

    def daemons(self):
        """{pid: resources} of the site's daemons, named by host and daemon."""
        hosts = json.loads(self._lab("status", "--json"))["hosts"]
        names = {pid: f"{daemon['name']} {host['name']}" for host in hosts if host["name"].startswith(PREFIX)
                 for daemon in host["daemons"] for pid in daemon["pids"]}  # fmt: skip
        return {pid: [names[pid], *found[1:]] for pid, found in drive.resources(names).items()}

    def states(self, jobs):
        """How many of the jobs are in which state."""
        wanted, count = set(jobs), {}
        for job in json.loads(self._sekisho("list", "--all", "--json", "-r", SITE)):
            if job["id"] in wanted:
                wanted.remove(job["id"])
                count[job["state"]] = count.get(job["state"], 0) + 1
        if wanted:
            count["not listed"] = len(wanted)
        return count

    def cancel(self, jobs):
        """A lab of our own goes away with its jobs; elsewhere they are cancelled, the one that runs last."""
        if not self._is_own:
            for first in range(0, len(jobs), 50):
                subprocess.run([PROGRAM, "--name", self.name, "exec", "client", "sekisho", "cancel",
                                *jobs[first : first + 50]], stdout=subprocess.DEVNULL)  # fmt: skip

    def _sekisho(self, *words):
        return self._lab("exec", "client", "sekisho", *words)

    def on(self, host, *words, user=None, text=None):
        """What a command on a host prints."""
        return self._lab("exec", *(["--user", user] if user else []), host, "--", *words, text=text)

    def daemon(self, verb, host, name):
        """start, stop or kill."""
        return self._lab(verb, host, name)

    def _lab(self, *words, text=None):
        where = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([PROGRAM, "--name", self.name, *words], capture_output=True, text=True, **where)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise RuntimeError(f"{' '.join(done.args)}: exit code {done.returncode}: {said}")
        return done.stdout


def settle():
    """Lets what was just measured finish its after-work, so that the next does not pay for it."""
    time.sleep(0.5)
