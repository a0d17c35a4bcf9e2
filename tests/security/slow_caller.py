# SPDX-License-Identifier: Apache-2.0
# A caller whose credential is good and whose manners are not, in bare HTTP/2 over TLS: what no gRPC client can be
# told to do.  Runs on a host of the lab; says "holds N" when N calls stand, goes on, and at the end of its standard
# input says "left N": how many still stood.
import argparse
import os
import select
import socket
import ssl
import struct
import sys
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
CALLS_OF_A_CONNECTION = 100
BYTE_EVERY_S = 1


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def field(name, value):
    """A header field as a literal: no table, no code."""

    def text(string):
        size = len(string)
        return (bytes([size]) if size < 127 else bytes([127, size - 127])) + string.encode()

    return b"\x10" + text(name) + text(value)


class Connection:
    """Some calls.  Answers pings, so that it counts as alive; what else it takes is its manner."""

    def __init__(self, options, calls):
        context = ssl.create_default_context(capath=options.authorities)
        context.check_hostname = False
        context.load_cert_chain(options.certificate, options.key)
        context.set_alpn_protocols(["h2"])
        host, port = options.server.rsplit(":", 1)
        self.link = context.wrap_socket(socket.create_connection((host, int(port)), timeout=20), server_hostname=host)
        self.options, self.alive, self.buffer = options, set(), b""
        self.window, self.windows, self.first_window = 65535, {}, 65535
        # A deaf one forbids every byte of an answer.
        window = 0 if options.manner == "deaf" else 65535
        self.link.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))
        self.heard(0.5)
        for number in range(calls):
            self.open(2 * number + 1)

    def open(self, stream):
        head = b"".join(field(*pair) for pair in (
            (":method", "POST"), (":scheme", "https"), (":path", self.options.method), (":authority", self.options.server.rsplit(":", 1)[0]),
            ("te", "trailers"), ("content-type", "application/grpc")))  # fmt: skip
        self.link.sendall(frame(HEADERS, END_HEADERS, stream, head))
        self.alive.add(stream)
        self.windows[stream] = self.first_window
        if self.options.manner == "deaf":
            body = bytes.fromhex(self.options.message)
            self.say(stream, b"\0" + struct.pack(">I", len(body)) + body, END_STREAM)
            return
        self.say(stream, b"\0" + struct.pack(">I", self.options.size))
        left = self.options.at_once
        while left > 0 and stream in self.alive:
            piece = min(left, 16384, self.window, self.windows[stream])
            if piece <= 0:
                if not self.heard(0.1):
                    break  # the server has enough
                continue
            self.say(stream, b"x" * piece)
            left -= piece

    def say(self, stream, body, flags=0):
        self.window -= len(body)
        self.windows[stream] -= len(body)
        self.link.sendall(frame(DATA, flags, stream, body))

    def heard(self, patience):
        """Takes what has come.  False if that was nothing."""
        if not self.link.pending() and not select.select([self.link], [], [], patience)[0]:
            return False
        data = self.link.recv(65536)
        if not data:
            raise OSError("closed")
        self.buffer += data
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            body, self.buffer = self.buffer[9 : 9 + size], self.buffer[9 + size :]
            self.take(kind, flags, stream, body)
        return True

    def take(self, kind, flags, stream, body):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(body), 6):
                name, value = struct.unpack(">HI", body[at : at + 6])
                if name == INITIAL_WINDOW_SIZE:
                    for known in self.windows:
                        self.windows[known] += value - self.first_window
                    self.first_window = value
            self.link.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.link.sendall(frame(PING, ACK, 0, body))
        elif kind == WINDOW_UPDATE:
            more = struct.unpack(">I", body)[0]
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == RST_STREAM or kind in (HEADERS, DATA) and flags & END_STREAM:
            self.alive.discard(stream)
        elif kind == GOAWAY:
            raise OSError("sent away")

    def one_byte_more(self):
        for stream in sorted(self.alive):
            if self.window > 0 and self.windows[stream] > 0:
                self.say(stream, b"x")


class Caller:
    def __init__(self, options):
        self.options, self.connections, self.is_over = options, [], threading.Event()

    def open(self):
        left = self.options.calls
        while left > 0:
            calls = min(left, CALLS_OF_A_CONNECTION)
            left -= calls
            try:
                self.connections.append(Connection(self.options, calls))
            except OSError:  # the server has closed it: it has enough
                pass

    def standing(self):
        return sum(len(one.alive) for one in self.connections)

    def go_on(self):
        due = time.monotonic()
        while not self.is_over.wait(0.05):
            is_due = self.options.manner == "slow" and time.monotonic() >= due
            due = time.monotonic() + BYTE_EVERY_S if is_due else due
            for one in list(self.connections):
                try:
                    while one.heard(0):
                        pass
                    if is_due:
                        one.one_byte_more()
                except OSError:  # it was sent away
                    self.connections.remove(one)


def main():
    parser = argparse.ArgumentParser(description="Calls that are not said to their end, or whose answers are not taken.")
    parser.add_argument("manner", choices=("slow", "deaf"))
    parser.add_argument("server", help="HOST:PORT")
    parser.add_argument("method")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--size", type=int, default=4 << 20, help="slow: of the message that is promised")
    parser.add_argument("--at-once", type=int, default=0, help="slow: so much of it at once, the rest byte by byte")
    parser.add_argument("--message", default="", help="deaf: the question, in hexadecimal digits")
    parser.add_argument("--certificate", default=os.environ.get("X509_USER_PROXY", f"/tmp/x509up_u{os.geteuid()}"))
    parser.add_argument("--key", default=None)
    parser.add_argument("--authorities", default="/etc/grid-security/certificates")
    caller = Caller(parser.parse_args())
    caller.open()
    going_on = threading.Thread(target=caller.go_on)
    going_on.start()
    print(f"holds {caller.standing()}", flush=True)
    sys.stdin.read()
    caller.is_over.set()
    going_on.join()
    print(f"left {caller.standing()}", flush=True)


main()
