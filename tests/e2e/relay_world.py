# SPDX-License-Identifier: Apache-2.0
# Three hosts for the tests of the relay's clients: `inside` and `outside` have no route to each other, the
# relay between them forwards nothing.  Own certificates; nothing of it outlives the test.
#
#   inside 10.9.1.2 ── 10.9.1.1 relay 10.9.2.1 ── 10.9.2.2 outside       the relay's address is 10.9.0.1
import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import support as t

BIN = os.environ.get("SEKISHO_BIN", f"{t.SOURCE}/build/release/bin")
RELAY, SECOND = "10.9.0.1", "10.9.0.3"
PORT = 7514
INSIDE, OUTSIDE = "10.9.1.2", "10.9.2.2"


def _run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def raised():
    """A world with a relay in it; None without root (the test then skips itself)."""
    if os.geteuid() != 0:
        return None
    if not os.access(f"{BIN}/sekisho-nxproxy", os.X_OK):
        print("skipped: sekisho-nxproxy is not built")
        raise SystemExit(t.SKIPPED)
    world = World()
    world.start_relay()
    return world


class World:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="nxworld-")
        os.chmod(self.folder, 0o755)
        self.name = os.path.basename(self.folder).replace("-", "")
        self.children, self.relay = [], None
        atexit.register(self.close)
        self._make_certificates()
        self._make_hosts()

    def space(self, host):
        return f"{self.name}-{host}"

    def _make_hosts(self):
        for host in ("inside", "relay", "outside"):
            _run("ip", "netns", "add", self.space(host))
            _run("ip", "-n", self.space(host), "link", "set", "lo", "up")
        for number, host in ((1, "inside"), (2, "outside")):
            here, there = self.space(host), self.space("relay")
            _run("ip", "link", "add", f"nx{number}", "netns", here, "type", "veth", "peer", "name", f"nx{number}",
                 "netns", there)  # fmt: skip
            _run("ip", "-n", here, "addr", "add", f"10.9.{number}.2/24", "dev", f"nx{number}")
            _run("ip", "-n", there, "addr", "add", f"10.9.{number}.1/24", "dev", f"nx{number}")
            for space in (here, there):
                _run("ip", "-n", space, "link", "set", f"nx{number}", "up")
            _run("ip", "-n", here, "route", "add", "default", "via", f"10.9.{number}.1")
        for address in (RELAY, SECOND):
            _run("ip", "-n", self.space("relay"), "addr", "add", f"{address}/32", "dev", "lo")

    def _make_certificates(self):
        base = self.folder

        def openssl(*words):
            _run("openssl", *words)

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{base}/ca.key", "-out", f"{base}/ca.pem",
                "-days", "2", "-subj", "/O=Grid/CN=Test CA", "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        for name, names in (("relay", f"IP:{RELAY},IP:{SECOND},IP:127.0.0.1"), ("alice", "DNS:alice"), ("bob", "DNS:bob")):
            with open(f"{base}/{name}.ext", "w") as file:
                file.write(f"subjectAltName={names}\nkeyUsage=digitalSignature,keyEncipherment\n")
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{base}/{name}.key", "-out",
                    f"{base}/{name}.csr", "-subj", f"/O=Grid/CN={name}")  # fmt: skip
            openssl("x509", "-req", "-in", f"{base}/{name}.csr", "-CA", f"{base}/ca.pem", "-CAkey", f"{base}/ca.key",
                    "-CAcreateserial", "-out", f"{base}/{name}.pem", "-days", "1", "-extfile",
                    f"{base}/{name}.ext")  # fmt: skip
            with open(f"{base}/{name}.cred", "w") as out:
                out.write(open(f"{base}/{name}.pem").read() + open(f"{base}/{name}.key").read())
            os.chmod(f"{base}/{name}.cred", 0o600)
            os.chmod(f"{base}/{name}.key", 0o600)
        shown = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", f"{base}/ca.pem"], check=True,
                               capture_output=True, text=True)  # fmt: skip
        os.mkdir(f"{base}/certificates")
        shutil.copy(f"{base}/ca.pem", f"{base}/certificates/{shown.stdout.strip()}.0")

    def start_relay(self, limits=None, listen="0.0.0.0", admin="none", **policy):
        base = self.folder
        os.makedirs(f"{base}/state", exist_ok=True)
        policy.setdefault("public_bind", [{"subject": ["*alice*"], "ports": "20000-29999"}])
        config = {
            "site": "siteA", "listen": f"{listen}:{PORT}", "address": RELAY, "host_certificate": f"{base}/relay.pem",
            "host_key": f"{base}/relay.key", "ca_directory": f"{base}/certificates", "state_directory": f"{base}/state",
            "admin": admin, "policy": policy, "limits": limits or {},
        }  # fmt: skip
        self.relay = self._start_daemon("relay", PORT, "nxproxy", config)

    def _start_daemon(self, host, port, name, config, at=""):
        path = f"{self.folder}/{name}.json"
        with open(path, "w") as file:
            json.dump(config, file)
        log = open(f"{self.folder}/{'relay' if name == 'nxproxy' else name}.log", "a")
        daemon = subprocess.Popen(
            ["ip", "netns", "exec", self.space(host), f"{BIN}/sekisho-nxproxy", "--config", path], stdout=log,
            stderr=log)  # fmt: skip
        listener = f"src {at}:{port}" if at else f"sport = :{port}"
        t.until(lambda: self.on(host, "ss", "-Hltn", listener).out, f"{name} listens")
        return daemon

    def start_second(self):
        """Another relay on the same host, for the same site."""
        base = self.folder
        os.makedirs(f"{base}/second-state", exist_ok=True)
        child = self._start_daemon("relay", PORT, "second", {
            "site": "siteA", "listen": f"{SECOND}:{PORT}", "address": SECOND, "host_certificate": f"{base}/relay.pem",
            "host_key": f"{base}/relay.key", "ca_directory": f"{base}/certificates",
            "state_directory": f"{base}/second-state", "admin": "none"}, at=SECOND)  # fmt: skip
        self.children.append(child)
        return child

    def start_inner(self, limits=None):
        """A relay inside, at 127.0.0.1, that leads to the one outside."""
        base = self.folder
        os.makedirs(f"{base}/inner-state", exist_ok=True)
        self.children.append(self._start_daemon("inside", PORT, "inner", {
            "site": "siteA", "listen": f"127.0.0.1:{PORT}", "host_certificate": f"{base}/relay.pem",
            "host_key": f"{base}/relay.key", "ca_directory": f"{base}/certificates",
            "state_directory": f"{base}/inner-state", "admin": "none", "upstream": {"address": f"{RELAY}:{PORT}"},
            "limits": limits or {}}))  # fmt: skip

    def cut(self, host):
        """The link between `host` and the relay carries nothing any more, and nobody is told."""
        device = {"inside": "nx1", "outside": "nx2"}[host]
        rules = f"""table inet cut_{host} {{
            chain in {{ type filter hook prerouting priority -300; iifname {device} drop; }}
            chain out {{ type filter hook postrouting priority 300; oifname {device} drop; }}
        }}"""
        t.expect_ok(self.on("relay", "nft", "-f", "-", stdin=rules))

    def mend(self, host):
        t.expect_ok(self.on("relay", "nft", "delete", "table", "inet", f"cut_{host}"))

    def open_way_out(self):
        """`inside` reaches `outside` by itself now, behind its site's address, and nobody reaches it."""
        t.expect_ok(self.on("relay", "sysctl", "-q", "net.ipv4.ip_forward=1"))
        t.expect_ok(self.on("relay", "nft", "-f", "-", stdin="""table inet way_out {
            chain forward { type filter hook forward priority 0; policy drop;
                iifname nx1 accept; ct state established,related accept; }
            chain hide { type nat hook postrouting priority srcnat; oifname nx2 masquerade; }
        }"""))

    def close_way_out(self):
        """To new connections; a call under way ends as it began."""
        t.expect_ok(self.on("relay", "nft", "-f", "-", stdin="""flush chain inet way_out forward
            add rule inet way_out forward ct state established,related accept"""))

    def kill_relay(self):
        self.relay.kill()
        self.relay.wait()

    def environment(self, user, server=RELAY):
        own = dict(os.environ)
        own.update(NXPROXY_SERVER=",".join(f"{one}:{PORT}" for one in server.split(",")), X509_USER_PROXY=f"{self.folder}/{user}.cred",
                   X509_CERT_DIR=f"{self.folder}/certificates", PATH=f"{BIN}:{os.environ['PATH']}")  # fmt: skip
        return own

    def on(self, host, *words, user="alice", stdin="", timeout_s=20):
        """A command on a host, to its end."""
        words = ["ip", "netns", "exec", self.space(host), *words]
        # Into files: a porter that lives on for a second must not hold us up.
        with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
            done = subprocess.run(words, input=stdin, text=True, stdout=out, stderr=err, timeout=timeout_s,
                                  env=self.environment(user))  # fmt: skip
            out.seek(0), err.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return t.Result(words, done)

    def start(self, host, *words, user="alice", log="program", stdin=subprocess.DEVNULL, server=RELAY):
        """A command on a host that goes on beside the test; its output is in self.log(log)."""
        with open(f"{self.folder}/{log}.log", "w") as file:
            child = subprocess.Popen(["ip", "netns", "exec", self.space(host), *words], stdin=stdin, stdout=file,
                                     stderr=file, env=self.environment(user, server))  # fmt: skip
        self.children.append(child)
        return child

    def log(self, name="program"):
        with open(f"{self.folder}/{name}.log", errors="replace") as file:
            return file.read()

    def reachable(self, log="program", count=1, timeout_s=10):
        """The address ("HOST", PORT) of the newest endpoint that the command's porter told."""

        def told():
            lines = [line for line in self.log(log).splitlines() if "is reachable at" in line]
            return lines if len(lines) >= count else None

        line = t.until(told, f"an endpoint in {log}: {self.log(log)}", timeout_s)[-1]
        host, port = line.split(" is reachable at ")[1].split(" ")[0].rsplit(":", 1)
        return host, int(port)

    def stop(self, child, number=signal.SIGTERM):
        child.send_signal(number)
        child.wait(10)

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        if self.relay is not None:
            self.kill_relay()
        for host in ("inside", "relay", "outside"):
            space = self.space(host)
            left = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True).stdout.split()
            for pid in left:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0)
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)
