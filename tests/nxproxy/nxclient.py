# SPDX-License-Identifier: Apache-2.0
# A second, independent implementation of docs/protocol/10-nxproxy.md for tests: certificates by the openssl
# command line, a relay on loopback, a blocking client, job tokens.
import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import resource
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

VERBS = {"HELLO": 1, "BIND": 2, "UNBIND": 3, "RESOLVE": 4, "REJECT": 5, "INVITE": 6, "PING": 7, "STATS": 8, "BYE": 9,
         "WELCOME": 65, "BOUND": 66, "DONE": 67, "RESOLVED": 68, "ANNOUNCE": 69, "INVITED": 70, "PONG": 71,
         "REPORT": 72, "FAILED": 73, "ERROR": 74, "DRAIN": 75}  # fmt: skip
NAMES = {number: name for name, number in VERBS.items()}
TAGS = {"version": 1, "session": 2, "key": 3, "token": 4, "program": 5, "hops": 6, "scope": 7, "port": 8,
        "port_max": 9, "endpoint": 10, "secret": 11, "address": 12, "inside": 13, "stream": 14, "code": 15,
        "words": 16, "remedy": 17, "rule": 18, "site": 19, "job": 20, "owner": 21, "heartbeat_s": 22, "grace_s": 23,
        "spares": 24, "upstream": 25, "encrypt": 26, "label": 27, "backlog": 28, "counter": 29, "text": 30,
        "cookie": 31, "allow": 32, "others": 33, "place": 34}  # fmt: skip
FIELDS = {tag: name for name, tag in TAGS.items()}
NUMBERS = {"version", "session", "hops", "scope", "port", "port_max", "endpoint", "stream", "code", "heartbeat_s",
           "grace_s", "spares", "encrypt", "backlog", "counter", "others"}  # fmt: skip
BYTES = {"key", "secret", "cookie"}
CODES = {"protocol": 1, "version": 2, "unauthenticated": 3, "token-invalid": 4, "token-expired": 5,
         "ticket-invalid": 6, "ticket-used": 7, "denied": 8, "quota": 9, "port-taken": 10, "no-port-free": 11,
         "no-such-endpoint": 12, "not-owner": 13, "target-refused": 14, "target-unreachable": 15,
         "target-timeout": 16, "loop": 17, "backlog-full": 18, "exhausted": 19, "draining": 20,
         "no-such-stream": 21, "nobody-home": 22, "too-slow": 23}  # fmt: skip
JOB, PUBLIC = 1, 2
NOBODY = 65534
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.environ.get("SEKISHO_BIN", f"{SOURCE}/build/release/bin")


class Refused(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.code, self.rule = message["code"], message.get("rule", "")


def encode(verb, number, fields):
    body = b""
    for name in sorted(fields, key=TAGS.get):
        value = fields[name]
        raw = struct.pack(">Q", value) if name in NUMBERS else value if isinstance(value, bytes) else value.encode()
        body += bytes([TAGS[name]]) + struct.pack(">H", len(raw)) + raw
    return struct.pack(">BBHI", 1, VERBS[verb], len(body), number) + body


def decode(verb, number, body):
    message = {"verb": NAMES[verb], "id": number}
    while body:
        tag, length = struct.unpack_from(">BH", body)
        raw, body = body[3:3 + length], body[3 + length:]
        name = FIELDS.get(tag)
        if name:
            message[name] = (struct.unpack(">Q", raw)[0] if name in NUMBERS else raw if name in BYTES
                             else raw.decode())  # fmt: skip
    return message


def pack_address(address):
    if not address:
        return bytes(18)
    host, port = address.rsplit(":", 1)
    ip = ipaddress.ip_address(host.strip("[]"))
    raw = ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed
    return raw + struct.pack(">H", int(port))


def unpack_address(raw):
    ip, port = ipaddress.IPv6Address(raw[:16]), struct.unpack(">H", raw[16:18])[0]
    return f"{ip.ipv4_mapped}:{port}" if ip.ipv4_mapped else f"[{ip}]:{port}"


class Authority:
    """A CA with a trust directory, hosts and users."""

    def __init__(self, directory):
        self.directory = directory
        self.trust = f"{directory}/certificates"
        os.makedirs(self.trust)
        self._serial = 1
        self._run("req", "-x509", "-new", *self._EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", "10", "-subj",
                  "/O=Test/CN=CA", "-addext", "basicConstraints=critical,CA:true", "-addext",
                  "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        digest = self._run("x509", "-in", "ca.pem", "-noout", "-hash").strip()
        shutil.copyfile(f"{directory}/ca.pem", f"{self.trust}/{digest}.0")

    _EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")

    def issue(self, name, names="DNS:unused"):
        """(certificate, key) files of /O=Test/CN=NAME."""
        self._serial += 1
        file = name.replace("/", "_").replace(" ", "_")
        self._run("req", "-x509", "-new", *self._EC, "-keyout", f"{file}.key", "-out", f"{file}.pem", "-days", "9",
                  "-subj", "/O=Test/CN=" + name.replace("/", "\\/"), "-CA", "ca.pem", "-CAkey", "ca.key",
                  "-set_serial", str(self._serial), "-addext", "basicConstraints=critical,CA:false",
                  "-addext", f"subjectAltName={names}")  # fmt: skip
        os.chmod(f"{self.directory}/{file}.key", 0o400)
        return f"{self.directory}/{file}.pem", f"{self.directory}/{file}.key"

    def token(self, signer, job, owner, site="siteA", life=3600, start=0, tamper=""):
        certificate, key = signer
        now = int(time.time()) + start
        body = (f"sekisho-job-token 1\nsite={site}\njob={job}\nowner={owner}\nnot_before={now}\n"
                f"not_after={now + life}\nid={os.urandom(8).hex()}\n").encode()  # fmt: skip
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], check=True, capture_output=True,
                                   input=b"sekisho-request-v1\0" + body).stdout  # fmt: skip
        if tamper:
            body = body.replace(f"job={job}".encode(), f"job={tamper}".encode())
        der = subprocess.run(["openssl", "x509", "-in", certificate, "-outform", "DER"], check=True,
                             capture_output=True).stdout  # fmt: skip
        packed = b"".join(struct.pack(">I", len(part)) + part for part in (body, signature, der))
        return "nxt1." + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    def _run(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.directory, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


_ranges_from = 20000 + os.getpid() % 5000


def free_range(count):
    """The first of `count` ports in a row that are free now and not given before, below the ephemeral ones."""
    global _ranges_from
    for first in range(_ranges_from, 32000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            _ranges_from = first + count
            return first
        except OSError:
            continue
    raise RuntimeError("no free range of ports")


class Relay:
    """A sekisho-nxproxy on loopback."""

    def __init__(self, directory, authority, name="relay", limits=None, policy=None, prefix=(), **more):
        self.directory = f"{directory}/{name}"
        os.makedirs(f"{self.directory}/state")
        certificate, key = authority.issue(name, "DNS:localhost,IP:127.0.0.1")
        self.authority = authority
        self.port, self.admin, self.first = free_port(), free_port(), free_range(40)
        self.config = {
            "site": "siteA", "listen": f"127.0.0.1:{self.port}", "address": "127.0.0.1",
            "host_certificate": certificate, "host_key": key, "ca_directory": authority.trust,
            "state_directory": f"{self.directory}/state", "admin": f"127.0.0.1:{self.admin}",
            "policy": {"public_bind": [{"subject": ["*"], "ports": f"{self.first}-{self.first + 39}"}],
                       **(policy or {})},
            "limits": limits or {}, **more}  # fmt: skip
        self.prefix = list(prefix)
        self.process = None
        self.log = f"{self.directory}/log"

    def start(self):
        with open(f"{self.directory}/config.json", "w") as file:
            json.dump(self.config, file)
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"{self.directory}/notify"
        if os.path.exists(path):
            os.unlink(path)
        notify.bind(path)
        notify.settimeout(10)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, f"{BIN}/sekisho-nxproxy", "--config", f"{self.directory}/config.json"],
                stdout=log, stderr=log, env={**os.environ, "NOTIFY_SOCKET": path})  # fmt: skip
        try:
            assert b"READY=1" in notify.recv(1000)
        except TimeoutError:
            raise RuntimeError(open(self.log).read()) from None
        finally:
            notify.close()
        return self

    def become_nobody(self, *capabilities):
        """From its next start on it has no privileges but these; for tests that are root."""
        os.chmod(os.path.dirname(self.directory), 0o755)
        for top, _, files in os.walk(self.directory):
            for path in [top] + [f"{top}/{name}" for name in files]:
                os.chown(path, NOBODY, NOBODY)
        os.chown(self.config["host_key"], NOBODY, NOBODY)
        os.umask(0)  # it says that it is ready on a socket of ours
        kept = "-all" + "".join(f",+{one}" for one in capabilities)
        self.prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--inh-caps={kept}",
                       f"--ambient-caps={kept}", f"--bounding-set={kept}"]  # fmt: skip

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(20)

    @contextlib.contextmanager
    def without_descriptors(self):
        """It can open no more than it has open now."""
        limits = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        used = {int(name) for name in os.listdir(f"/proc/{self.process.pid}/fd")}
        lowest = next(number for number in range(limits[0]) if number not in used)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (lowest, limits[1]))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, limits)

    def page(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5).read().decode()

    def metric(self, name):
        for line in self.page("/metrics").splitlines():
            if line.rsplit(" ", 1)[0] == f"sekisho_nxproxy_{name}":
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def refused(self, reason):
        return self.metric(f'refused_total{{reason="{reason}"}}')


class Between:
    """A relay as a client of its sees it: what goes there and back passes here, and can be lost."""

    def __init__(self, authority, relay):
        self.relay = relay
        self.to_lose = []  # the next of these verbs, each with its connection
        self.to_refuse = {}  # the next answer of this verb becomes a refusal of that name
        self.passed = []
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(*authority.issue("between", "DNS:localhost,IP:127.0.0.1"))
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.check_hostname, self.client.verify_mode = False, ssl.CERT_NONE
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def speak_as(self, certificate, key):
        """The client, to the relay."""
        self.client.load_cert_chain(certificate, key)

    def accept(self):
        while True:
            threading.Thread(target=self.carry, args=(self.listener.accept()[0],), daemon=True).start()

    def carry(self, near):
        with contextlib.suppress(OSError):
            far = socket.create_connection(("127.0.0.1", self.relay.port))
            is_control = near.recv(1, socket.MSG_PEEK) == b"\x16"  # a TLS record; else a data connection
            if is_control:
                near, far = self.server.wrap_socket(near, server_side=True), self.client.wrap_socket(far)
            with near, far:
                self.pass_on(near, far, is_control)

    def pass_on(self, near, far, is_control):
        """Until one side ends."""
        kept = {near: b"", far: b""}  # of a message that has not come whole
        while True:
            waiting = [side for side in (near, far) if is_control and side.pending()]
            for side in waiting or select.select([near, far], [], [])[0]:
                data = side.recv(65536)
                if not data:
                    return
                other = far if side is near else near
                if not is_control:
                    other.sendall(data)
                    continue
                data = kept[side] + data
                while len(data) >= 8 and len(data) >= (size := 8 + int.from_bytes(data[2:4], "big")):
                    verb = NAMES[data[1]]
                    if verb in self.to_lose:
                        self.to_lose.remove(verb)
                        return
                    if verb in self.to_refuse:
                        error = {"code": CODES[self.to_refuse.pop(verb)], "words": "not now"}
                        other.sendall(encode("ERROR", int.from_bytes(data[4:8], "big"), error))
                    else:
                        other.sendall(data[:size])
                        self.passed.append(verb)
                    data = data[size:]
                kept[side] = data


class Session:
    """A control connection, blocking; `dial` gives a TCP connection to the relay (through another, say)."""

    def __init__(self, port, credential=None, token=None, resume=None, hops=0, dial=None, host="127.0.0.1"):
        self.dial = dial or (lambda: socket.create_connection((host, port), timeout=10))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if credential:
            context.load_cert_chain(*credential)
        self.tls = context.wrap_socket(self.dial())
        self._number = 0
        self.unasked = []
        self._counter = 0
        self._lock = threading.Lock()
        fields = {"version": 1, "program": "test"}
        if token:
            fields["token"] = token
        if resume:
            fields["session"], fields["key"] = resume.session, resume.key
            self._counter = resume._counter
        if hops:
            fields["hops"] = hops
        self.welcome = self.ask("HELLO", **fields)
        self.session, self.key = self.welcome["session"], self.welcome["key"]

    def send(self, verb, **fields):
        self._number += 1
        self.tls.sendall(encode(verb, self._number, fields))
        return self._number

    def receive(self, timeout=10):
        self.tls.settimeout(timeout)
        head = self._exactly(8)
        _, verb, length, number = struct.unpack(">BBHI", head)
        return decode(verb, number, self._exactly(length))

    def _exactly(self, length):
        data = b""
        while len(data) < length:
            more = self.tls.recv(length - len(data))
            if not more:
                raise ConnectionResetError("control connection closed")
            data += more
        return data

    def ask(self, verb, **fields):
        number = self.send(verb, **fields)
        while True:
            message = self.receive()
            if message["id"] != number:
                self.unasked.append(message)
            elif message["verb"] == "ERROR":
                raise Refused(message)
            else:
                return message

    def next_unasked(self, verb, timeout=10):
        deadline = time.monotonic() + timeout
        while True:
            for message in self.unasked:
                if message["verb"] == verb:
                    self.unasked.remove(message)
                    return message
            self.unasked.append(self.receive(max(0.01, deadline - time.monotonic())))

    def preface(self, kind, stream=0, target="", wants_opening=False, source="", counter=None):
        with self._lock:
            if counter is None:
                self._counter += 1
                counter = self._counter
        raw = target.encode()
        head = (b"NXD1" + struct.pack(">BBHQQQ", kind, 1 if wants_opening else 0, len(raw), self.session, counter,
                                      stream) + pack_address(source) + bytes(6) + raw)  # fmt: skip
        return head + hmac.new(self.key, head, hashlib.sha256).digest()

    def connect(self, target, first=b"", **options):
        """A stream to `target`; with wants_opening=True also the opening."""
        stream = self.dial()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(self.preface(1, target=target, **options) + first)
        return (stream, opening(stream)) if options.get("wants_opening") else stream

    def dial_wanting(self, target):
        """A CONNECT whose opening is still to come."""
        stream = self.dial()
        stream.sendall(self.preface(1, target=target, wants_opening=True))
        return stream

    def spare(self, stream=0):
        connection = self.dial()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(self.preface(2, stream=stream))
        return connection

    def close(self):
        self.tls.close()


def opening(stream):
    data = b""
    while len(data) < 64:
        more = stream.recv(64 - len(data))
        if not more:
            raise ConnectionResetError(f"closed after {len(data)} bytes of an opening")
        data += more
    assert data[:4] == b"NXO1", data
    endpoint, number = struct.unpack_from(">QQ", data, 42)
    return {"code": struct.unpack_from(">H", data, 4)[0], "peer": unpack_address(data[6:24]),
            "local": unpack_address(data[24:42]), "endpoint": endpoint, "stream": number}  # fmt: skip


class World:
    """A temporary directory with an authority, a relay, alice, bob and the queue server."""

    def __init__(self, **relay):
        self._directory = tempfile.TemporaryDirectory(prefix="nxproxy-test-")
        path = self._directory.name
        self.path = path
        self.authority = Authority(f"{path}/ca")
        self.alice, self.bob = self.authority.issue("Alice"), self.authority.issue("Bob")
        self.qserver = self.authority.issue("qserver")
        policy = {"token_issuer": [{"subject": "/O=Test/CN=qserver", "site": "siteA"}], **relay.pop("policy", {})}
        self.relay = Relay(path, self.authority, policy=policy, **relay).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.relay.process.poll() is None:
            self.relay.kill()
        self._directory.cleanup()

    def session(self, credential=None, **options):
        return Session(self.relay.port, credential or self.alice, **options)

    def token_session(self, job, owner="/O=Test/CN=Alice", **options):
        return Session(self.relay.port, None, token=self.authority.token(self.qserver, job, owner, **options))


_claims = []


def claim(sentence):
    def register(function):
        _claims.append((sentence, function))
        return function

    return register


def main():
    """Runs the claims, or those that match an argument."""
    import traceback

    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    failed = 0
    for sentence, function in _claims:
        if wanted not in sentence:
            continue
        began = time.monotonic()
        try:
            function()
            print(f"ok      {sentence} ({time.monotonic() - began:.2f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"NOT OK  {sentence}", flush=True)
            traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 0)
