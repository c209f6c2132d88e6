# SPDX-License-Identifier: Apache-2.0
"""Someone between a member and the store of a Python rank 0, who has no token, changes nothing that
either side believes. As SealTest does for Java."""

import contextlib
import itertools
import logging
import secrets
import socket
import struct
import threading
import time

import windlass
from windlass import gather, server, store
from windlass.deadline import Deadline
from windlass.encoding import packed
from windlass.library import library_version

TOKEN = secrets.token_bytes(32)
REQUESTS = {
    store.SET: packed("sa", "kept", b"\2"), store.GET: packed("s", "kept"),
    store.KEYS: packed("s", "kept"), store.PING: b"", store.LEAVE: packed("s", "kept"),
    store.AWAIT: packed("isoso", 2, "kept", b"\1", "none", None),
    store.CAS: packed("soo", "kept", b"\1", b"\2"), store.HOLD: packed("sa", "kept", b"\2"),
    store.CANCEL: b""}
REPLIES = {"set": [packed("Bi", 0, 1)], "await": [packed("Biso", 0, 1, "a", b"x")]}
LONGEST = bytes(4 + store.FRAME + store.SEAL)
CHANGED = b"does not fit its seal"


class Log(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Between:
    """A member's socket, whose frames a test changes before they go."""

    def __init__(self, address):
        self.store = store.Store(address, TOKEN, "raw", -1, 0, Deadline(30))
        self.frames = self.store._frames
        self.socket = self.store._socket
        self.socket.settimeout(30)

    def sealed(self, kind):
        """A request as the next frame of this member."""
        return bytearray(self.frames.made(packed("Bi", kind, 7), REQUESTS[kind]))

    def send(self, *frames):
        with contextlib.suppress(OSError):  # it has ended
            for frame in frames:
                self.socket.sendall(frame)

    def came(self):
        """Returns the bytes until the end of the connection."""
        came = b""
        with contextlib.suppress(ConnectionError):
            while data := self.socket.recv(1 << 16):
                came += data
        return came

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.store.close()


def run():
    log = Log()
    logging.getLogger("windlass").addHandler(log)
    opened = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    until = Deadline(240)
    honest = store.Store(opened.address, TOKEN, "test", 0, 1, until)
    honest.set("kept", b"\1", until)
    requests(opened.address)
    assert any("does not fit its seal" in line and "raw" in line for line in log.lines), log.lines
    order(opened.address)
    greetings(opened.address)
    assert honest.get("kept", until) == b"\1"
    assert honest.keys("", until) == ["kept"]
    all_gather(opened.address, honest)
    replies(log)
    reply_order()
    broken()
    swallowed()
    silent()
    slow()
    dribbled()
    honest.close()
    opened.close()
    assert not any("because of a fault" in line for line in log.lines), log.lines


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
                assert at < 4 or CHANGED in came, (kind, at, came)


def order(address):
    """Frames that were dropped, moved, repeated, cut or sent back."""
    for kind in (store.SET, store.HOLD):
        for choose in (lambda ping, it: [it], lambda ping, it: [it, ping],
                       lambda ping, it: [ping, ping, it]):
            with Between(address) as member:
                ping, it = member.sealed(store.PING), member.sealed(kind)
                member.send(*choose(ping, it))
                assert CHANGED in member.came()
        for length in range(len(REQUESTS[kind]) + 4 + 5 + store.SEAL):
            with Between(address) as member:
                member.send(member.sealed(kind)[:length])
    with Between(address) as member:
        member.send(member.sealed(store.GET))
        reply = bytearray()
        while len(reply) < 4 + 5 + 4 + 1 + store.SEAL:
            reply += member.socket.recv(1 << 16)
        member.send(reply)
        assert CHANGED in member.came()


def all_gather(address, honest):
    """Two honest ranks go on, and get what they said."""
    until = Deadline(30)
    other = store.Store(address, TOKEN, "test", 1, 2, until)
    values = []
    thread = threading.Thread(target=lambda: values.append(
        gather.AllGather(other, "start", 1, 2).round(b"b", True, until)))
    thread.start()
    values.append(gather.AllGather(honest, "start", 0, 2).round(b"a", True, until))
    thread.join()
    assert values == [[b"a", b"b"]] * 2, values
    other.close()


def frames_of(stream, is_member):
    """The frames of a greeting, as bytes that a test may change; then what comes, as it comes."""
    data = bytearray()
    for number in itertools.count():
        while True:
            length = struct.unpack_from(">i", data)[0] if len(data) >= 4 else 1 << 20
            seal = 0 if number < (2 if is_member else 1) else store.SEAL
            whole = 4 + length + seal if number < 3 else max(1, len(data))
            if len(data) >= whole:
                break
            more = stream.recv(1 << 16)
            if not more:
                return
            data += more
        yield data[:whole]
        del data[:whole]


class Relay:
    """Passes one connection on, and what `change` makes of the frame of that number from the member
    (HELLO 0, PROOF 1, PING 2) or from the store (CHALLENGE 0, WELCOME 1, reply 2). Those that
    follow the PROOF are sealed."""

    def __init__(self, address, from_member, number, change):
        self.from_member, self.number, self.change = from_member, number, change
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.length = 0
        self.threads = [threading.Thread(target=self.accept, args=(address,))]
        self.threads[0].start()

    def accept(self, address):
        member, _ = self.listener.accept()
        self.listener.close()
        upstream = socket.create_connection(address)
        both = [threading.Thread(target=self.passes, args=(member, upstream, True)),
                threading.Thread(target=self.passes, args=(upstream, member, False))]
        for each in both:
            each.start()
        for each in both:
            each.join()
        member.close()
        upstream.close()

    def passes(self, source, target, from_member):
        with contextlib.suppress(OSError):
            for number, frame in enumerate(frames_of(source, from_member)):
                if from_member == self.from_member and number == self.number:
                    self.length = len(frame)
                    for each in self.change(frame, source):
                        target.sendall(each)
                else:
                    target.sendall(frame)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            source.shutdown(socket.SHUT_RD)

    def attempt(self):
        """Returns the error of a member that connects through this; None if it joined."""
        try:
            place = self.listener.getsockname()[:2]
            met = store.Store(place, TOKEN, "raw", -1, 0, Deadline(0.4), True)
        except windlass.WindlassException as e:
            failure = e
        else:
            try:
                met.get("kept", Deadline(5))
                failure = None
            except windlass.WindlassException as e:
                failure = e
            met.close()
        self.listener.close()
        self.threads[0].join()
        return failure


def changed_at(at):
    def change(frame, _):
        if at < len(frame):
            frame[at] ^= 1 << at % 8
        return [frame, bytes(1 << 10)] if at < 4 else [frame]

    return change


def sent_back(frame, source):
    source.sendall(frame)
    return []


def greetings(address):
    """Each byte of each frame of the greeting; and each frame dropped, repeated, cut, sent back."""
    for from_member, number in itertools.product((True, False), range(3)):
        at, length = 0, 1
        while at < length:
            relay = Relay(address, from_member, number, changed_at(at))
            failure = relay.attempt()
            assert failure is not None, (from_member, number, at)
            length = max(length, relay.length)
            at += 1
        assert length > 12, length
        for change in (lambda frame, _: [], lambda frame, _: [frame, frame],
                       lambda frame, _: [frame[:-1]], sent_back):
            failure = Relay(address, from_member, number, change).attempt()
            assert failure is not None, (from_member, number)
    assert Relay(address, True, 9, changed_at(0)).attempt() is None
    refusals(address)


def refusals(address):
    """A refusal before the token is shown has no seal. Who changes it changes the reason only."""
    store.STORE_PROTOCOL += 1
    failure = Relay(address, False, 9, changed_at(0)).attempt()
    assert isinstance(failure, windlass.MismatchException), failure
    at, length = 0, 1
    while at < length:
        relay = Relay(address, False, 0, changed_at(at))
        assert relay.attempt() is not None, at
        length = max(length, relay.length)
        at += 1
    store.STORE_PROTOCOL -= 1


def answered(frames, call):
    """What a call raises or returns, and what the member says last. The store answers with what
    `frames` gives for a function that makes a frame, and the request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        said = []
        thread = threading.Thread(target=answer, args=(listener, frames, said))
        thread.start()
        member = store.Store(listener.getsockname()[:2], TOKEN, "raw", -1, 0, Deadline(30))
        try:
            result = call(member)
        except windlass.WindlassException as e:
            result = e
        member.close()
        thread.join()
        return result, said


def answer(listener, frames, said):
    peer, _ = listener.accept()
    with peer:
        own = store.Frames()

        def body():
            while (frame := own.next()) is None:
                data = peer.recv(1 << 16)
                if not data:
                    return None
                own.took(data)
            return frame

        hello = body()
        challenge = (bytes([store.CHALLENGE]) + secrets.token_bytes(32)
                     + packed("s", library_version()))
        peer.sendall(own.made(challenge, store.proof(TOKEN, "server", hello, challenge)))
        body()
        own.seal(TOKEN, hello, challenge, True)
        peer.sendall(own.made(packed("Bq", store.WELCOME, 60_000)))
        body()
        peer.sendall(own.made(packed("Bi", 0, store.NO_CALL)))
        body()
        request = body()
        with contextlib.suppress(OSError):  # the member has gone
            peer.sendall(b"".join(
                frames(lambda fields: bytearray(own.made(fields)), request)))
            peer.shutdown(socket.SHUT_WR)
            while (frame := body()) is not None:
                said.append(frame)


CALLS = {
    "set": lambda member: member.set("a", b"1", Deadline(30)),
    "await": lambda member: member.await_any({"a": None}, Deadline(30))}


def replies(log):
    """Replies that are changed at each of their bytes, as a member sees them."""
    left = []
    for name, fields in REPLIES.items():
        right, _ = answered(lambda made, _: [made(each) for each in fields], CALLS[name])
        assert right == (None if name == "set" else ["a", b"x"]), right
        for number, field in enumerate(fields):
            for at in range(4 + len(field) + store.SEAL):
                def frames(made, _):
                    every = [made(each) for each in fields]
                    every[number][at] ^= 1 << at % 8
                    return every + ([LONGEST] if at < 4 else [])

                result, said = answered(frames, CALLS[name])
                assert isinstance(result, windlass.PeerLostException), (name, number, at, result)
                left += said  # a reset connection may lose it
                assert at < 4 or "this member got a frame" in str(result), (at, result)
    assert left and all(each[0] == store.LEAVE for each in left), left
    assert any("is left: this member got a frame" in line for line in log.lines), log.lines


def reply_order():
    """Replies that are dropped, moved, repeated, cut or the member's own."""
    ping, (right,) = packed("Bi", 0, store.NO_CALL), REPLIES["await"]

    def own(made, request):
        return [struct.pack(">i", len(request)) + request + bytes(store.SEAL)]

    for frames in (
            lambda made, _: [made(ping), made(right)][1:],
            lambda made, _: [made(ping), made(right)][::-1],
            lambda made, _: [made(ping)] * 2 + [made(right)],
            lambda made, _: [made(right)[:-1]],
            own):
        result, _ = answered(frames, CALLS["await"])
        assert isinstance(result, windlass.PeerLostException), result


def broken():
    """A frame of the greeting that was changed behind the PROOF breaks one connection. The next
    attempt comes in, and if none does, the reason is known."""
    opened = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    for number in (1, 2):
        for comes_in in (True, False):
            relay = Relay(opened.address, False, number, changed_at(8))
            place, is_done = relay.listener.getsockname()[:2], threading.Event()
            if comes_in:
                threading.Thread(target=listen_after, args=(relay, place, is_done)).start()
            try:
                met = store.Store(place, TOKEN, "raw", -1, 0, Deadline(30 if comes_in else 1))
                assert comes_in and met.get("kept", Deadline(30)) is None
                met.close()
            except windlass.DeadlineExceededException as e:
                assert not comes_in and "does not fit its seal" in str(e), e
            is_done.set()
            relay.threads[0].join()
    opened.close()


def listen_after(relay, place, is_done):
    """Opens a store where a relay was, until `is_done` is set."""
    relay.threads[0].join()
    opened = server.StoreServer(place, TOKEN, Deadline(30))
    is_done.wait()
    opened.close()


def swallowed():
    """A relay that passes only the greeting costs a member one attempt."""
    store.LONGEST_ATTEMPT = 0.5
    opened = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    for from_member in (True, False):
        relay = Relay(opened.address, from_member, 2, lambda frame, _: [])
        failure = relay.attempt()
        assert isinstance(failure, windlass.DeadlineExceededException), failure
        assert "gave no answer for 0.4 s" in str(failure), failure
    opened.close()


def silent():
    """Whoever listens first and says nothing costs a member one attempt."""
    store.LONGEST_ATTEMPT = 0.5
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
    opened = server.StoreServer(address, TOKEN, Deadline(30))
    thread.join()
    assert came and 0.4 < time.monotonic() - begin < 4
    came[0].close()
    taken.close()
    opened.close()


def slow():
    """A reader that takes little at a time gets all of a long value, and the reason behind it."""
    opened = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    opened._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
    until = Deadline(60)
    honest = store.Store(opened.address, TOKEN, "test", 0, 1, until)
    value = secrets.token_bytes(400 << 10)
    honest.set("kept", value, until)
    with Between(opened.address) as member:
        asks = [member.sealed(store.GET) for _ in range(8)]
        changed = member.sealed(store.PING)
        changed[5] ^= 1
        member.send(*asks, changed)
        came = member.came()
        assert came.count(value) == 8, came.count(value)
        assert CHANGED in came[-200:], came[-200:]
    assert honest.get("kept", until) == value
    honest.close()
    opened.close()


def dribbled():
    """A stranger whose answer comes byte by byte costs no more than one that says nothing."""
    store.LONGEST_ATTEMPT = 0.5
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
                with contextlib.suppress(OSError):
                    peer.sendall(b"x")
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
