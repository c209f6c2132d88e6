# SPDX-License-Identifier: Apache-2.0
"""Someone between a member and the store of a Python rank 0, who has no token, changes nothing that
either believes. As SealTest does for Java."""

import logging
import secrets
import socket
import struct
import threading
import time

import windlass
from windlass import store
from windlass.deadline import Deadline
from windlass.encoding import array_bytes
from windlass.library import library_version

TOKEN = secrets.token_bytes(32)
KEY = store._text("kept")
REQUESTS = {
    store._SET: KEY + array_bytes(b"\2"), store._GET: KEY,
    store._AWAIT: KEY + store._optional(b"\2"), store._ADD: KEY + struct.pack(">q", 1),
    store._CAS: KEY + store._optional(b"\1") + store._optional(b"\2"),
    store._HOLD: KEY + array_bytes(b"\2"), store._KEYS: KEY, store._CANCEL: b"",
    store._PING: b"", store._LEAVE: KEY}
LONGEST = bytes(4 + store._FRAME + store._SEAL)


class Log(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Between:
    """A member's socket, whose frames a test changes before they go."""

    def __init__(self, address):
        until = Deadline(30)
        self.store = store.Store(address, TOKEN, "raw", -1, 0, until)
        self.frames = self.store._frames
        self.socket = self.frames.socket
        self.socket.setblocking(True)
        self.socket.settimeout(30)

    def sealed(self, kind):
        """A request as the next frame of this member."""
        body = struct.pack(">Bi", kind, 7) + REQUESTS[kind]
        frame = struct.pack(">i", len(body)) + body
        return bytearray(frame + self.frames._seal(self.frames._sends, [frame]))

    def send(self, *frames):
        try:
            for frame in frames:
                self.socket.sendall(frame)
        except OSError:
            pass  # it has ended

    def came(self):
        """All that comes before the end."""
        came = b""
        try:
            while data := self.socket.recv(1 << 16):
                came += data
        except ConnectionError:
            pass
        return came

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.store.close()


def run():
    log = Log()
    logging.getLogger("windlass").addHandler(log)
    server = store.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    until = Deadline(120)
    honest = store.Store(server.address, TOKEN, "test", 0, 1, until)
    honest.set("kept", b"\1", until)
    requests(server.address)
    assert honest.get("kept", until) == b"\1"
    assert any("does not fit its seal" in line and "raw" in line for line in log.lines), log.lines
    order(server.address)
    assert honest.get("kept", until) == b"\1"
    replies(log)
    silent()
    slow()
    dribbled()
    honest.close()
    server.close()


def requests(address):
    for kind in REQUESTS:
        with Between(address) as member:
            length = len(member.sealed(kind))
        for at in range(length):
            with Between(address) as member:
                changed = member.sealed(kind)
                changed[at] ^= 1 << at % 8
                member.send(changed, LONGEST if at < 4 else b"")
                came = member.came()
                assert at < 4 or b"does not fit its seal" in came, (kind, at, came)


def order(address):
    """Frames that were dropped, moved, repeated, or sent back."""
    for choose in (lambda ping, put: [put], lambda ping, put: [put, ping],
                   lambda ping, put: [ping, ping, put]):
        with Between(address) as member:
            ping, put = member.sealed(store._PING), member.sealed(store._SET)
            member.send(*choose(ping, put))
            assert b"does not fit its seal" in member.came()
    with Between(address) as member:
        member.send(member.sealed(store._GET))
        reply = bytearray()
        while len(reply) < 4 + 5 + 4 + 1 + store._SEAL:
            reply += member.socket.recv(1 << 16)
        member.send(reply)
        assert b"does not fit its seal" in member.came()


def replies(log):
    """A server whose reply is changed at each of its bytes, as a member sees it."""
    reply = struct.pack(">iBi", 5, 0, 1)
    for at in range(len(reply) + store._SEAL):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=answer, args=(listener, reply, at))
            thread.start()
            member = store.Store(
                listener.getsockname()[:2], TOKEN, "raw", -1, 0, Deadline(30))
            try:
                member.set("a", b"1", Deadline(30))
                raise SystemExit(f"byte {at} was believed")
            except windlass.PeerLostException as e:
                assert "this member got a frame" in str(e), (at, e)
            member.close()
            thread.join()
    assert any("is left: this member got a frame" in line for line in log.lines), log.lines


def answer(listener, reply, at):
    peer, _ = listener.accept()
    with peer:
        frames = store.Frames(peer)

        def body():
            while (frame := frames.next()) is None:
                assert frames.fill(), "the member has left"
            return frame

        hello = body()
        challenge = (bytes([store._CHALLENGE]) + secrets.token_bytes(32)
                     + store._text(library_version()))
        frames.send(challenge, store._proof(TOKEN, "server", hello, challenge))
        frames.flush()
        body()
        frames.met(store._proof(TOKEN, "the server's frames", hello, challenge),
                   store._proof(TOKEN, "the member's frames", hello, challenge))
        frames.send(struct.pack(">Bq", store._WELCOME, 60_000))
        frames.flush()
        body()
        changed = bytearray(reply + frames._seal(frames._sends, [reply]))
        changed[at] ^= 1 << at % 8
        try:
            peer.sendall(changed + (LONGEST if at < 4 else b""))
            if at >= 4:
                assert body()[0] == store._LEAVE
            while peer.recv(1 << 16):
                pass  # until the member has gone
        except ConnectionError:
            assert at < 4


def silent():
    """Whoever listens first and says nothing costs a member one attempt."""
    store._LONGEST_ATTEMPT = 0.5
    begin = time.monotonic()
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()[:2]
    came = []

    def join():
        came.append(store.Store(address, TOKEN, "test", 0, 1, Deadline(60)))

    thread = threading.Thread(target=join)
    thread.start()
    taken, _ = listener.accept()
    listener.close()
    server = store.StoreServer(address, TOKEN, Deadline(30))
    thread.join()
    assert came and 0.4 < time.monotonic() - begin < 4
    came[0].close()
    taken.close()
    server.close()


def slow():
    """A reader that takes little at a time gets all of a long value, and the reason behind it."""
    server = store.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    server._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
    until = Deadline(60)
    honest = store.Store(server.address, TOKEN, "test", 0, 1, until)
    value = secrets.token_bytes(400 << 10)
    honest.set("kept", value, until)
    with Between(server.address) as member:
        asks = [member.sealed(store._GET) for _ in range(8)]
        changed = member.sealed(store._PING)
        changed[5] ^= 1
        member.send(*asks, changed)
        came = member.came()
        assert came.count(value) == 8, came.count(value)
        assert b"does not fit its seal" in came[-200:], came[-200:]
    assert honest.get("kept", until) == value
    honest.close()
    server.close()


def dribbled():
    """A stranger whose answer comes byte by byte costs no more than one that says nothing."""
    store._LONGEST_ATTEMPT = 0.5
    begin = time.monotonic()
    listener = socket.create_server(("127.0.0.1", 0))
    ends = threading.Event()

    def answers():
        peers = []
        listener.settimeout(0.05)
        while not ends.is_set():
            try:
                peers.append(listener.accept()[0])
                peers[-1].sendall(struct.pack(">i", 1000))
            except socket.timeout:
                pass
            for peer in peers:
                try:
                    peer.sendall(b"x")
                except OSError:
                    pass
        for peer in peers:
            peer.close()

    thread = threading.Thread(target=answers)
    thread.start()
    try:
        store.Store(listener.getsockname()[:2], TOKEN, "test", 0, 1, Deadline(1.5))
        raise SystemExit("a stranger was believed")
    except windlass.DeadlineExceededException as e:
        assert "gave no answer for 0.5 s" in str(e), e
    assert time.monotonic() - begin < 4
    ends.set()
    thread.join()
    listener.close()
