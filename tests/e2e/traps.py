# SPDX-License-Identifier: Apache-2.0
# A user's variables that would have programs run code of his, or other programs, and who does: for the tests which claim
# that it is only what runs as that user.
import base64
import tempfile

import support as t

EVIL = "/home/hostile"  # of all hosts of a site
# Whoever loads it, as LD_PRELOAD or as LD_AUDIT, leaves who he is.
LIBRARY = f"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
unsigned la_version(unsigned version) {{ return version; }}
__attribute__((constructor)) static void loaded(void) {{
  char line[512], program[256] = "";
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return;
  const int size = snprintf(line, sizeof line, "%d %d %s\\n", (int)getuid(), (int)geteuid(), program);
  const int file = open("{EVIL}/loaded", O_WRONLY | O_APPEND);
  if (file >= 0 && write(file, line, size) == size) close(file);
}}
"""
# What a shell reads before its own script, and what stands in for any program that is looked up by PATH.
SHELL = f'echo "$(/usr/bin/id -ru) $(/usr/bin/id -u) $0" >> {EVIL}/loaded\n'
STAND_IN = f"#!/bin/sh\n{SHELL}PATH=/usr/local/bin:/usr/bin:/bin exec \"${{0##*/}}\" \"$@\"\n"
NAMES = """sh bash env id hostname ssh rsh mpiexec mpiexec.mpich mpirun mpirun.openmpi hydra_pmi_proxy orted sekisho-rsh sekisho-rank
    sekisho-pmix sekisho-task sekisho-stager cp mv rm mkdir ln chown chmod tar gzip touch cat install""".split()
ENVIRONMENT = {"LD_PRELOAD": f"{EVIL}/evil.so", "LD_AUDIT": f"{EVIL}/evil.so", "BASH_ENV": f"{EVIL}/shell", "ENV": f"{EVIL}/shell",
               "PATH": f"{EVIL}/bin:/usr/local/bin:/usr/bin:/bin"}  # fmt: skip
RSL = "".join(f"({name} {value})" for name, value in ENVIRONMENT.items())


def lay(head):
    with tempfile.TemporaryDirectory() as folder:
        t.expect_ok(t.command(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{folder}/evil.so"], stdin=LIBRARY))
        with open(f"{folder}/evil.so", "rb") as file:
            library = base64.b64encode(file.read()).decode()
    links = f"for name in {' '.join(NAMES)}; do ln -s stand-in bin/$name; done"
    script = f"rm -rf {EVIL}; mkdir -p {EVIL}/bin; cd {EVIL}; base64 -d > evil.so; : > loaded; chmod 666 loaded; {links}"
    t.expect_ok(t.on(head, "sh", "-c", script, stdin=library))
    for name, text in (("shell", SHELL), ("bin/stand-in", STAND_IN)):
        t.expect_ok(t.on(head, "sh", "-c", f"cat > {EVIL}/{name}; chmod 755 {EVIL}/{name}", stdin=text))


def who_fell(head):
    """The programs in which something of the user's was in effect, each as the user."""
    uid = t.on(head, "id", "-u", "alice").out.strip()
    lines = [line.split(" ", 2) for line in t.on(head, "cat", f"{EVIL}/loaded").out.splitlines()]
    t.expect(lines and all(line[:2] == [uid, uid] for line in lines), f"as {uid} only:", *sorted({" ".join(line) for line in lines}))
    return {line[2].rsplit("/", 1)[-1] for line in lines}
