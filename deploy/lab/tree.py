# SPDX-License-Identifier: Apache-2.0
# Many hosts on a tree of switches, for tests and benchmarks: docs/operations/lab.md, "A tree of hosts".
#
#   with Tree("cluster.edges", prefix="mine-", mode="busy", fifo=10) as net:
#       net.run("h0", ["ping", "-c1", net.hosts["h1"].address])
import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import tempfile

import kernel

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PROGRAMS = os.environ.get("SEKISHO_BIN", f"{SOURCE}/build/release/bin")


@dataclasses.dataclass(frozen=True)
class Host:
    name: str
    address: str
    netns: str  # a path


class Tree:
    """Stands when the constructor returns, until close() or the end of this thread's process.  `options` are the
    emulator's: hosts="FILE" or deny_inbound="c1,h7" or dilate=10 or mode="busy" or fifo=10 or cpu=1 ..."""

    def __init__(self, edges, prefix, program=f"{PROGRAMS}/sekisho-lab-wan", **options):
        self._folder = tempfile.TemporaryDirectory(prefix="lab-tree-")
        self._control = f"{self._folder.name}/control"
        ready_read, ready_write = os.pipe()
        words = [program, "tree", edges, "--prefix", prefix, "--ready-fd", str(ready_write), "--control", self._control]
        for key, value in options.items():
            words += [f"--{key.replace('_', '-')}", str(value)]
        self._process = subprocess.Popen(words, pass_fds=[ready_write], stdin=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True)  # fmt: skip
        os.close(ready_write)
        with os.fdopen(ready_read) as answers:
            lines = []
            while lines[-1:] != ["ready"] and (line := answers.readline()):
                lines.append(line.strip())
        if lines[-1:] != ["ready"]:
            error = self._process.communicate()[1].strip()
            self._folder.cleanup()
            raise OSError(error or "the emulator did not start")
        self.pid = self._process.pid
        self.hosts = {(words := line.split())[1]: Host(*words[1:]) for line in lines[:-1]}  # in their order
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """When it returns, the namespaces are gone."""
        self._process.terminate()
        self._process.communicate()
        os.close(self._home)
        self._folder.cleanup()

    @contextlib.contextmanager
    def inside(self, name):
        """Sockets made, and processes started, by this thread in the `with` block are the host's."""
        fd = os.open(self.hosts[name].netns, os.O_RDONLY)
        try:
            kernel.setns(fd, kernel.NEWNET)
        finally:
            os.close(fd)
        try:
            yield self.hosts[name]
        finally:
            kernel.setns(self._home, kernel.NEWNET)

    def popen(self, name, command, **options):
        with self.inside(name):
            return subprocess.Popen(command, **options)

    def run(self, name, command, **options):
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        with self.inside(name):
            return subprocess.run(command, **options)

    def counters(self):
        """docs/operations/lab.md lists them."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(self._control)
            text = b""
            while chunk := connection.recv(1 << 16):
                text += chunk
        return json.loads(text)
