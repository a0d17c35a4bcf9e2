# SPDX-License-Identifier: Apache-2.0
# Jobs of two ranks that use PM, one on each of two hosts: what tests of agents and of pilots share.
import os

import support as t

WRITE = "import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))"
RANKS = "/opt/sekisho/bin/sekisho-pm-ranks"  # as hosts of the lab see it


def skip_unless_built():
    if not os.path.exists(f"{os.environ.get('SEKISHO_BIN', 'build/release/bin')}/sekisho-pm-ranks"):
        print("skipped: sekisho-pm-ranks is not built")
        raise SystemExit(t.SKIPPED)


class PmJobs:
    """`on`: runs a command on a host of the lab."""

    def __init__(self, on, hosts):
        self.on, self.hosts = on, hosts

    def script(self, words):
        """For sh: the rank's number, from 0, is that of its host."""
        first = self.hosts[0]
        return f"cd; case $(hostname) in {first}) n=0;; *) n=1;; esac; exec {RANKS} --link pm --job pm.job --node $n --wait sleep {words}"

    def lay_files(self, user, context):
        """Key and job file in the user's home at both hosts."""
        key = os.urandom(32).hex()
        addresses = [self.on(host, "hostname", "-I").out.split()[0] for host in self.hosts]
        text = f"key pm.key\ncontext {context}\nnodes 2\n"
        text += "".join(f"node {n} {address}:{21000 + context}\n" for n, address in enumerate(addresses))
        for host in self.hosts:
            t.expect_ok(self.on(host, "sh", "-c", f"cd; umask 077; python3 -c '{WRITE}' > pm.key", user=user, stdin=key))
            t.expect_ok(self.on(host, "sh", "-c", "cd; cat > pm.job", user=user, stdin=text))

    def daemons(self, host):
        """Account and socket of each job's daemon; keepers are not counted."""
        seen = self.on(host, "ps", "-eo", "pid=,ppid=,user=,args=").out.splitlines()
        rows = [line.split() for line in seen if "sekisho-pmd --socket" in line and "ps -eo" not in line]
        pids = {row[0] for row in rows}
        return [(row[2], row[5]) for row in rows if row[1] not in pids]

    def until_both_talk(self, job, user):
        """Each host's daemon has the job's context, and messages flow through it."""

        def talk(host):
            for _, path in self.daemons(host):
                top = self.on(host, "sh", "-c", f"cd; PM_DAEMON={path} {os.path.dirname(RANKS)}/sekisho pm top pm.job", user=user)
                if top.code == 0 and "peer" in top.out and " up " in top.out:
                    return True
            return False

        t.until(lambda: all(talk(host) for host in self.hosts), f"both hosts of {job} talk", timeout_s=20)
