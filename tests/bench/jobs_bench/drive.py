# SPDX-License-Identifier: Apache-2.0
# Runs commands and times them, where they are to run: on the lab's client, or inside the peer's namespaces.
# One JSON request a line on stdin, one JSON answer a line on stdout; the same code for ours and the peer.
import json
import os
import subprocess
import sys
import threading
import time

POLL_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


def timed(command):
    """(milliseconds, exit code, stdout, stderr) of one process."""
    began = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return (time.perf_counter() - began) * 1e3, done.returncode, done.stdout, done.stderr


def latency(command, times):
    runs = [timed(command) for _ in range(times)]
    return {"ms": [run[0] for run in runs], **_failures(runs)}


def flood(command, clients, jobs, unfinished=None):
    """`jobs` processes by `clients` threads ({} in a word: which); then, if asked, until `unfinished` prints an empty list."""
    left, runs, lock = iter(range(jobs)), [], threading.Lock()

    def client():
        while True:
            with lock:
                number = next(left, None)
                if number is None:
                    return
            run = timed([word.replace("{}", str(number)) for word in command])
            with lock:
                runs.append(run)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submitted = time.perf_counter()
    while unfinished and timed(unfinished)[2].strip() not in ("", "[]"):
        time.sleep(POLL_S)
    done = time.perf_counter()
    return {"ms": [run[0] for run in runs], "began": began, "calls_s": submitted - began, "done_s": done - began,
            "said": [run[2].strip() for run in runs], **_failures(runs)}  # fmt: skip


def grown(path, lines, timeout_s=600):
    """Waits until the file has so many lines; when that was, by the clock that all processes share."""
    deadline, count, position = time.perf_counter() + timeout_s, 0, 0
    while True:
        if os.path.exists(path):
            with open(path, "rb") as file:
                file.seek(position)
                for piece in iter(lambda: file.read(1 << 20), b""):
                    count += piece.count(b"\n")
                position = file.tell()
        now = time.perf_counter()
        if count >= lines or now > deadline:
            return {"at": now, "lines": count}
        time.sleep(0.005)


def resources(pids):
    """{pid: [name, resident KiB, of these anonymous KiB, CPU seconds so far, those of its children that have gone]}"""
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status:
                fields = dict(line.rstrip("\n").split(":", 1) for line in status)
            with open(f"/proc/{pid}/stat") as stat:
                times = [int(ticks) / TICKS for ticks in stat.read().rsplit(")", 1)[1].split()[11:15]]
        except (OSError, ValueError):
            continue
        kib = [int(fields.get(key, "0").split()[0]) for key in ("VmRSS", "RssAnon")]
        found[pid] = [fields["Name"].strip(), *kib, sum(times[:2]), sum(times[2:])]
    return found


def processes_named(names):
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() in names:
                    pids.append(int(pid))
        except OSError:
            pass
    return resources(pids)


def _failures(runs):
    failed = [run for run in runs if run[1] != 0]
    return {"failed": len(failed), "error": f"exit code {failed[0][1]}: {failed[0][3].strip()[-300:]}" if failed else ""}


def serve():
    actions = {"latency": latency, "flood": flood, "grown": grown, "processes_named": processes_named}
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(actions[request.pop("do")](**request)), flush=True)


class Driver:
    """The caller's end: a process that runs serve() somewhere else."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"ended early, with code {self._process.wait()}: {' '.join(self._process.args)}")
        return json.loads(line)

    def ask(self, do, **arguments):
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


if __name__ == "__main__":
    serve()
