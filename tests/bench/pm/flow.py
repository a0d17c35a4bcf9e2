# SPDX-License-Identifier: Apache-2.0
"""One end of a flow for `share`: flow.py pm send|receive BEGIN END JOB, or flow.py tcp send|receive BEGIN END ADDRESS PORT
CONGESTION.  Sends until END; a receiver says how many bytes came from BEGIN to END, and in how many seconds."""

import ctypes
import errno
import os
import socket
import sys
import time

MESSAGE = 8192


class Pm:
    def __init__(self, job, node):
        self._pm = ctypes.CDLL(f"{os.environ['SEKISHO_BIN']}/libpm.so.0")
        self._context = ctypes.c_void_p()
        words = [b"--job", job.encode(), b"--node", str(node).encode(), b"--daemon", b"", b"--wait", b"sleep"]
        self._check(self._pm.pmOpenDevice(b"udp", len(words), (ctypes.c_char_p * len(words))(*words), ctypes.byref(self._context)))
        self._buffer, self._length = ctypes.c_void_p(), ctypes.c_size_t()

    @staticmethod
    def _check(error):
        if error != 0:
            raise OSError(error, os.strerror(error))

    def send(self, node=1, length=MESSAGE):
        while (error := self._pm.pmGetSendBuffer(self._context, node, ctypes.byref(self._buffer), ctypes.c_size_t(length))) == errno.ENOBUFS:
            self._pm.pmWait(self._context, ctypes.c_long(2000))
        self._check(error)
        self._check(self._pm.pmSend(self._context))

    def receive(self):
        while (error := self._pm.pmReceive(self._context, ctypes.byref(self._buffer), ctypes.byref(self._length))) == errno.ENOBUFS:
            if self._pm.pmWait(self._context, ctypes.c_long(100_000)) == errno.ETIMEDOUT:
                return 0
        self._check(error)
        self._check(self._pm.pmReleaseReceiveBuffer(self._context))
        return self._length.value


class Tcp:
    def __init__(self, address, port, congestion, is_sender):
        if not is_sender:
            with socket.create_server((address, int(port))) as server:
                self._socket = server.accept()[0]
            self._socket.settimeout(0.1)
            return
        for _ in range(100):  # the other end is started at the same time
            try:
                self._socket = socket.socket()
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.connect((address, int(port)))
                return
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise OSError(f"nobody listens at {address}:{port}")

    def send(self):
        self._socket.sendall(bytes(MESSAGE))

    def receive(self):
        try:
            return len(self._socket.recv(65536))
        except TimeoutError:
            return 0


def main():
    kind, role, begin, end = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    if kind == "pm":
        peer = Pm(sys.argv[5], 0 if role == "send" else 1)
    else:
        peer = Tcp(*sys.argv[5:8], role == "send")
    if role == "send":
        try:
            while time.monotonic() < end:
                peer.send()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the receiver has seen its end a moment earlier
        return
    count = 0
    while (now := time.monotonic()) < end:
        got = peer.receive()
        count += got if time.monotonic() >= begin else 0
    print(count, end - begin)
    sys.stdout.flush()
    os._exit(0)  # nothing that the sender still sends is waited for


if __name__ == "__main__":
    main()
