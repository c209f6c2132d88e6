# SPDX-License-Identifier: Apache-2.0
"""Someone between a member and the store of a Python rank 0, who has no token, changes nothing that
either believes. As SealTest does for Java."""

import logging
import secrets
import socket
import struct
import threading

import windlass

TOKEN = secrets.token_bytes(32)
KEY = windlass._text("kept")
REQUESTS = {
    windlass._SET: KEY + windlass._array(b"\2"), windlass._GET: KEY,
    windlass._AWAIT: KEY + windlass._optional(b"\2"), windlass._ADD: KEY + struct.pack(">q", 1),
    windlass._CAS: KEY + windlass._optional(b"\1") + windlass._optional(b"\2"),
    windlass._HOLD: KEY + windlass._array(b"\2"), windlass._KEYS: KEY, windlass._CANCEL: b"",
    windlass._PING: b"", windlass._LEAVE: KEY}
LONGEST = bytes(4 + windlass._FRAME + windlass._SEAL)


class Log(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Between:
    """A member's socket, whose frames a test changes before they go."""

    def __init__(self, address):
        until = windlass._Until(30)
        self.store = windlass._Store(address, TOKEN, "raw", -1, 0, until)
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
    server = windlass._StoreServer(("127.0.0.1", 0), TOKEN, windlass._Until(30))
    until = windlass._Until(120)
    honest = windlass._Store(server.address, TOKEN, "test", 0, 1, until)
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
            ping, put = member.sealed(windlass._PING), member.sealed(windlass._SET)
            member.send(*choose(ping, put))
            assert b"does not fit its seal" in member.came()
    with Between(address) as member:
        member.send(member.sealed(windlass._GET))
        reply = bytearray()
        while len(reply) < 4 + 5 + 4 + 1 + windlass._SEAL:
            reply += member.socket.recv(1 << 16)
        member.send(reply)
        assert b"does not fit its seal" in member.came()


def replies(log):
    """A server whose reply is changed at each of its bytes, as a member sees it."""
    reply = struct.pack(">iBi", 5, 0, 1)
    for at in range(len(reply) + windlass._SEAL):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=answer, args=(listener, reply, at))
            thread.start()
            store = windlass._Store(
                listener.getsockname()[:2], TOKEN, "raw", -1, 0, windlass._Until(30))
            try:
                store.set("a", b"1", windlass._Until(30))
                raise SystemExit(f"byte {at} was believed")
            except windlass.PeerLostException as e:
                assert "this member got a frame" in str(e), (at, e)
            store.close()
            thread.join()
    assert any("is left: this member got a frame" in line for line in log.lines), log.lines


def answer(listener, reply, at):
    peer, _ = listener.accept()
    with peer:
        frames = windlass._Frames(peer)

        def body():
            while (frame := frames.next()) is None:
                assert frames.fill(), "the member has left"
            return frame

        hello = body()
        challenge = (bytes([windlass._CHALLENGE]) + secrets.token_bytes(32)
                     + windlass._text(windlass._version()))
        frames.send(challenge, windlass._proof(TOKEN, "server", hello, challenge))
        frames.flush()
        body()
        frames.met(windlass._proof(TOKEN, "the server's frames", hello, challenge),
                   windlass._proof(TOKEN, "the member's frames", hello, challenge))
        frames.send(struct.pack(">Bq", windlass._WELCOME, 60_000))
        frames.flush()
        body()
        changed = bytearray(reply + frames._seal(frames._sends, [reply]))
        changed[at] ^= 1 << at % 8
        try:
            peer.sendall(changed + (LONGEST if at < 4 else b""))
            if at >= 4:
                assert body()[0] == windlass._LEAVE
            while peer.recv(1 << 16):
                pass  # until the member has gone
        except ConnectionError:
            assert at < 4


def silent():
    """Whoever listens first and says nothing costs a member one attempt."""
    windlass._LONGEST_ATTEMPT = 0.5
    begin = windlass.time.monotonic()
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()[:2]
    came = []

    def join():
        came.append(windlass._Store(address, TOKEN, "test", 0, 1, windlass._Until(60)))

    thread = threading.Thread(target=join)
    thread.start()
    taken, _ = listener.accept()
    listener.close()
    server = windlass._StoreServer(address, TOKEN, windlass._Until(30))
    thread.join()
    assert came and 0.4 < windlass.time.monotonic() - begin < 4
    came[0].close()
    taken.close()
    server.close()


def slow():
    """A reader that takes little at a time gets all of a long value, and the reason behind it."""
    server = windlass._StoreServer(("127.0.0.1", 0), TOKEN, windlass._Until(30))
    server._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
    until = windlass._Until(60)
    honest = windlass._Store(server.address, TOKEN, "test", 0, 1, until)
    value = secrets.token_bytes(400 << 10)
    honest.set("kept", value, until)
    with Between(server.address) as member:
        asks = [member.sealed(windlass._GET) for _ in range(8)]
        changed = member.sealed(windlass._PING)
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
    windlass._LONGEST_ATTEMPT = 0.5
    begin = windlass.time.monotonic()
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
        windlass._Store(listener.getsockname()[:2], TOKEN, "test", 0, 1, windlass._Until(1.5))
        raise SystemExit("a stranger was believed")
    except windlass.DeadlineExceededException as e:
        assert "gave no answer for 0.5 s" in str(e), e
    assert windlass.time.monotonic() - begin < 4
    ends.set()
    thread.join()
    listener.close()
