# SPDX-License-Identifier: Apache-2.0
"""The store where ranks and jobs meet: a member's way into it, and a server."""

import collections
import contextlib
import hashlib
import hmac
import itertools
import logging
import secrets
import selectors
import socket
import struct
import threading
import time

from .errors import (
    DeadlineExceededException, InternalException, InvalidArgumentException, Malformed,
    PeerLostException, ResourceException, WindlassException)
from .deadline import Deadline
from .encoding import Reader, array_bytes, printable
from .library import MOST_RANKS, library_version

STORE_PROTOCOL = 2

_MAGIC = 0x574C5354
_HELLO, _CHALLENGE, _PROOF, _WELCOME, _REFUSED = 1, 2, 3, 4, 5
_SET, _GET, _AWAIT, _ADD, _CAS, _HOLD, _KEYS, _CANCEL, _PING, _LEAVE = range(16, 26)
_KEY, VALUE, TOTAL = 512, 512 << 10, 64 << 20
_MEETING_FRAME, _FRAME = 1 << 10, 2 * (512 << 10) + 512 + 64
_NO_CALL = 0
_SEAL = 16
_LONGEST_ATTEMPT = 5.0


def _text(value):
    data = value.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def _optional(value):
    return struct.pack(">i", -1) if value is None else array_bytes(value)


def _take_text(reader, most):
    length = reader.unpack("H")[0]
    if length > most:
        raise Malformed(f"a text of {length} bytes")
    try:
        return reader.take(length).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("a text that is no UTF-8") from None


def _take_optional(reader):
    length = reader.int()
    if length == -1:
        return None
    if not 0 <= length <= VALUE:
        raise Malformed(f"an array of {length} bytes")
    return reader.take(length)


def _take_value(reader):
    value = _take_optional(reader)
    if value is None:
        raise Malformed("no value")
    return value


def _take_prefix(reader):
    return _take_text(reader, _KEY)


def _take_key(reader):
    key = _take_prefix(reader)
    if not key:
        raise Malformed("an empty key")
    return key


def _take_reason(reader):
    return _take_text(reader, 800)


def _log():
    return logging.getLogger("windlass")


def _proof(token, whose, hello, challenge):
    """What shows, without showing the token, that who has said or heard both holds it."""
    proof = hmac.new(token, ("windlass store: " + whose).encode("ascii") + b"\0", hashlib.sha256)
    for part in (hello, challenge):
        proof.update(struct.pack(">i", len(part)) + part)
    return proof.digest()


class Frames:
    """Frames of a socket, both ways. What has come is bounded, whatever lengths announce. Once both
    sides have shown the token, frames are numbered, and a seal follows each: the start of an HMAC
    over its number, its length and its body, by the key of this session and direction."""

    def __init__(self, sock):
        self.socket = sock
        self.longest = _MEETING_FRAME
        self.queued = 0
        self._out = collections.deque()
        self._in = bytearray()
        self._sends = self._receives = None  # each a key, and the number of the next frame

    def met(self, sends, receives):
        """From now on frames may be long, and are sealed by these keys."""
        self.longest = _FRAME
        self._sends, self._receives = [sends, 0], [receives, 0]

    @staticmethod
    def _seal(direction, parts):
        key, number = direction
        direction[1] += 1
        seal = hmac.new(key, struct.pack(">q", number), hashlib.sha256)
        for part in parts:
            seal.update(part)
        return seal.digest()[:_SEAL]

    def fill(self):
        """Takes what has come, some of it at least; False at the end of the stream."""
        try:
            data = self.socket.recv(64 << 10)
        except BlockingIOError:
            return True
        self._in += data
        return bool(data)

    def next(self):
        """The body of the next frame that has come whole; None for none."""
        if len(self._in) < 4:
            return None
        (length,) = struct.unpack_from(">i", self._in)
        if not 1 <= length <= self.longest:
            raise Malformed(f"a frame of {length} bytes, of at most {self.longest}")
        end = whole = 4 + length
        if self._receives is not None:
            whole += _SEAL
        if len(self._in) < whole:
            return None
        frame, seal = bytes(self._in[:end]), bytes(self._in[end:whole])
        del self._in[:whole]
        if seal and not hmac.compare_digest(seal, self._seal(self._receives, [frame])):
            raise Malformed("a frame that does not fit its seal: it was changed, repeated, dropped"
                             " or moved on its way")
        return frame[4:]

    def left(self):
        """Bytes that have come and are in no frame so far."""
        return len(self._in)

    def send(self, *body):
        """Queues a frame, of which others may have parts too, for flush() to write."""
        frame = [struct.pack(">i", sum(map(len, body))), *body]
        if self._sends is not None:
            frame.append(self._seal(self._sends, frame))
        self._out.extend(memoryview(part) for part in frame if part)
        self.queued += sum(map(len, frame))

    def flush(self):
        """Writes what the socket takes; True once nothing waits."""
        try:
            while self._out:
                sent = self.socket.sendmsg([*itertools.islice(self._out, 16)])
                self.queued -= sent
                while sent > 0:
                    part = self._out.popleft()
                    if sent < len(part):
                        self._out.appendleft(part[sent:])
                    sent -= min(sent, len(part))
        except BlockingIOError:
            return False
        return True


class Store:
    """A member's way into a store: one connection, one call at a time. A member that says nothing
    for as long as the server bears silence is taken for gone, so every wait speaks up meanwhile."""

    def __init__(self, address, token, job, rank, size, until, opened=False):
        """Connects, and waits until there is a store, unless it was `opened` before."""
        self.address = "%s:%d" % address
        self._who = f"connect to the store at {self.address} as rank {rank} of {size}"
        self._id = _NO_CALL
        self._lost = None  # why there are no answers any more
        why = "no answer"
        for _ in until.pauses(0.005, 0.2):
            try:
                self._connect(address, token, job, rank, size, until)
                return
            except (Malformed, struct.error) as e:
                raise InvalidArgumentException(
                    f"{self._who}: what listens there is no store of Windlass: {e}") from e
            except OSError as e:
                if opened and isinstance(e, ConnectionRefusedError):
                    raise PeerLostException(f"{self._who}: its owner has ended: {e}") from e
                if why == "no answer" or not until.over():  # what was met before tells more
                    why = str(e)
        raise DeadlineExceededException(
            f"{self._who}: no store there after {until.whole:g} s: {why}; does its owner run?")

    def _connect(self, address, token, job, rank, size, until):
        def attempt():
            """A stranger who listens there, and says nothing, costs no more than this."""
            return max(0.001, min(_LONGEST_ATTEMPT, until.left()))

        sock = socket.create_connection(address, timeout=attempt())
        self._frames = Frames(sock)
        self._selector = selectors.DefaultSelector()
        try:
            if sock.getsockname() == sock.getpeername():
                raise ConnectionRefusedError("nobody listens there")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)
            self._greet(token, job, rank, size, Deadline(attempt()))
        except BaseException:
            self.close()
            raise

    def _greet(self, token, job, rank, size, until):
        hello = (struct.pack(">Bii", _HELLO, _MAGIC, STORE_PROTOCOL) + _text(library_version())
                 + secrets.token_bytes(32) + struct.pack(">ii", rank, size) + _text(job))
        self._frames.send(hello)
        whole = self._answer(_CHALLENGE, until)
        challenge, claimed = whole[:-32], whole[-32:]
        if len(challenge) < 35:
            raise Malformed(f"a challenge of {len(whole)} bytes")
        if not hmac.compare_digest(claimed, _proof(token, "server", hello, challenge)):
            self._frames.send(struct.pack(">Bi", _REFUSED, 8) + _text(""))
            self._frames.flush()
            raise ResourceException(
                f"{self._who}: the store holds another token than this member; set"
                " WINDLASS_TOKEN_FILE to the store's")
        self._frames.send(bytes([_PROOF]) + _proof(token, "member", hello, challenge))
        self._frames.met(_proof(token, "the member's frames", hello, challenge),
                         _proof(token, "the server's frames", hello, challenge))
        welcome = Reader(self._answer(_WELCOME, until)[1:])
        silence = welcome.long()
        welcome.end()
        if silence < 1:
            raise Malformed(f"a silence of {silence} ms")
        self.silence = silence / 1000
        self._heard = self._pinged = time.monotonic()

    def _answer(self, kind, until):
        """The next frame of a greeting; a refusal is raised."""
        while (body := self._frames.next()) is None:
            if until.over():
                raise TimeoutError(f"whoever listens there gave no answer for {until.whole:g} s")
            self._wait(until.left())
        if body[0] == _REFUSED:
            reader = Reader(body[1:])
            code = reader.int()
            if code not in (2, 8):
                raise Malformed(f"a refusal of code {code}")
            text = printable(_take_text(reader, 800))
            raise WindlassException.of(code, f"{self._who}: refused: {text}")
        if body[0] != kind:
            raise Malformed(f"a frame of kind {body[0]}")
        return body

    def _wait(self, seconds):
        """Writes what waits, and takes what comes meanwhile; whether anything came."""
        events = selectors.EVENT_READ
        try:
            if not self._frames.flush():
                events |= selectors.EVENT_WRITE
        except OSError:
            if self._id != _NO_CALL:
                self._hear_last()
            raise
        self._selector.modify(self._frames.socket, events)
        came = False
        for _, ready in self._selector.select(max(0.0, seconds)):
            if ready & selectors.EVENT_READ:
                came = True
                if not self._frames.fill():
                    raise ConnectionResetError("it closed the connection")
        return came

    def _ask(self, kind, key, body, until, what, read):
        """What `read` takes from the answer."""
        self._id = self._id % 0x7FFFFFFF + 1
        try:
            if self._lost is not None:
                raise self._lost
            self._frames.send(struct.pack(">Bi", kind, self._id) + _text(key) + body)
            while True:
                reply = self._next()
                if reply is not None:
                    reader = Reader(reply)
                    code, number = reader.unpack("Bi")
                    if number != self._id:
                        continue  # of a call that nobody waits for any more, or of a ping
                    if code == 0:
                        return read(reader)
                    text = printable(_take_text(reader, 800))
                    raise WindlassException.of(code, f"{what} {key}: {text}")
                if until.over():
                    if kind == _AWAIT:
                        self._frames.send(struct.pack(">Bi", _CANCEL, self._id))
                        self._frames.flush()
                    raise DeadlineExceededException(
                        f"{what} {key}: no answer of the store at {self.address} after"
                        f" {until.whole:g} s")
                self._listen(until)
        except OSError as e:
            self._lost = e
            raise PeerLostException(
                f"{what} {key}: the store at {self.address} was lost: {e}; its owner has ended,"
                " closed it or turned this member away") from e
        except Malformed as e:
            raise InternalException(
                f"{what} {key}: the store at {self.address} answered with {e}") from e

    def _next(self):
        """The next frame, if one has come whole. One that is none ends the session, and so does one
        by which the store says why it goes."""
        try:
            reply = self._frames.next()
            if reply is not None:
                reader = Reader(reply)
                code, number = reader.unpack("Bi")
                if number == _NO_CALL and code != 0:
                    raise ConnectionAbortedError(printable(_take_text(reader, 800)))
            return reply
        except Malformed as e:
            why = f"this member got {e}"
            _log().warning("The store at %s is left: %s", self.address, why)
            with contextlib.suppress(OSError):
                self._frames.send(struct.pack(">Bi", _LEAVE, _NO_CALL) + _text(why))
                self._frames.flush()
            raise ConnectionAbortedError(why) from e

    def _hear_last(self):
        """Raises what the store said last, if it said why it goes."""
        with contextlib.suppress(OSError):
            for _ in range(64):
                if not self._frames.fill():
                    break
        while self._next() is not None:
            pass

    def _listen(self, until):
        now = time.monotonic()
        if self._wait(min(until.left(), self.silence / 3)):
            self._heard = time.monotonic()
        elif now - self._heard > self.silence:
            raise TimeoutError(f"it has said nothing for {self.silence:g} s")
        if now - self._pinged >= self.silence / 3:
            self._pinged = now
            self._frames.send(struct.pack(">Bi", _PING, _NO_CALL))

    @staticmethod
    def _value(reader):
        value = _take_optional(reader)
        reader.end()
        return value

    def set(self, key, value, until):
        self._ask(_SET, key, array_bytes(value), until, "set", Reader.rest)

    def get(self, key, until):
        return self._ask(_GET, key, b"", until, "get", self._value)

    def await_other(self, key, seen, until):
        """What a key has, None for nothing, once that is other than `seen`."""
        return self._ask(_AWAIT, key, _optional(seen), until, "await", self._value)

    def compare_and_set(self, key, expected, value, until):
        body = _optional(expected) + _optional(value)
        return self._ask(_CAS, key, body, until, "compare and set", Reader.byte) != 0

    def hold(self, key, value, until):
        """Sets a key that is not there, as long as this connection lasts; whether it did."""
        return self._ask(_HOLD, key, array_bytes(value), until, "hold", Reader.byte) != 0

    def keys(self, prefix, until):
        def listed(reader):
            return [_take_text(reader, _KEY) for _ in range(reader.int())]

        return self._ask(_KEYS, prefix, b"", until, "keys", listed)

    def close(self):
        self._selector.close()
        self._frames.socket.close()


class StoreServer:
    """The store of a start whose rank 0 is this process: one thread, which no connection can make
    wait. Who has not shown the token is a stranger: few, with little time and short frames."""

    _STRANGERS, _MEMBERS, _WAITS = 512, 8192, 1024
    _PROOF_SECONDS, _SILENCE_MS, _BACKLOG = 10.0, 60_000, 1 << 20

    # By its kind, how what a request says is read.
    _FIELDS = {
        _SET: (_take_key, _take_value), _GET: (_take_key,), _AWAIT: (_take_key, _take_optional),
        _ADD: (_take_key, Reader.long), _CAS: (_take_key, _take_optional, _take_optional),
        _HOLD: (_take_key, _take_value), _KEYS: (_take_prefix,), _CANCEL: (), _PING: (),
        _LEAVE: (_take_reason,)}

    class _Session:
        def __init__(self, sock):
            self.frames = Frames(sock)
            self.since = time.monotonic()
            self.hello = self.challenge = self.member = None
            self.leaving = False
            self.waits = {}  # id: (key, seen)
            self.held = set()

    def __init__(self, address, token, until):
        self._token = token
        self._table = {}
        self._holders = {}
        self._bytes = 0
        self._strangers = {}
        self._members = {}
        self._waiting = {}  # key: sessions
        self._closing = False
        self._selector = selectors.DefaultSelector()
        try:
            family = self._resolved(address, until)
            self._listener = socket.socket(family[0], socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(family[4])
            self._listener.listen(1024)
        except OSError as e:
            raise ResourceException(
                "rank 0: no store can be opened at %s:%d: %s; another process that has rank 0 too,"
                " or another program, may listen there" % (*address, e)) from e
        self._listener.setblocking(False)
        self.address = self._listener.getsockname()[:2]
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(
            target=self._run, name=f"windlass-store-{self.address[1]}", daemon=True)
        self._thread.start()

    @staticmethod
    def _resolved(address, until):
        """Of a name, once it is known, as that of a pod is a while after its start."""
        while True:
            try:
                return socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            except socket.gaierror:
                if until.left() < 1:
                    raise
                time.sleep(0.2)

    def close(self):
        if not self._closing:
            self._closing = True
            self._wake.send(b"x")  # the thread may have seen it before, so it leaves these two open
            self._thread.join(10)
            if not self._thread.is_alive():
                self._wake.close()
                self._woken.close()

    def _run(self):
        while not self._closing:
            for key, events in self._selector.select(0.5):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is not self._woken and key.data is not None:
                    self._serve(key.data, events)
            now = time.monotonic()
            for session in self._sessions():
                is_member = id(session) in self._members
                patience = self._SILENCE_MS / 1000 if is_member else self._PROOF_SECONDS
                if now - session.since > patience:
                    self._drop(session)
        for session in self._sessions():
            self._drop(session)
        self._listener.close()
        self._selector.close()

    def _accept(self):
        try:
            sock, _ = self._listener.accept()
        except OSError:
            time.sleep(0.01)  # for want of descriptors; strangers give theirs back in time
            return
        if len(self._strangers) >= self._STRANGERS:
            self._drop(next(iter(self._strangers.values())))
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = self._Session(sock)
            self._selector.register(sock, selectors.EVENT_READ, session)
        except OSError:  # it has left already, or there is no memory for it
            sock.close()
            return
        self._strangers[id(session)] = session

    def _sessions(self):
        return [*self._strangers.values(), *self._members.values()]

    def _here(self, session):
        return id(session) in self._strangers or id(session) in self._members

    def _drop(self, session):
        if not self._here(session):
            return
        self._strangers.pop(id(session), None)
        self._members.pop(id(session), None)
        self._selector.unregister(session.frames.socket)
        session.frames.socket.close()
        for number in [*session.waits]:
            self._forget(session, number)
        for key in [*session.held]:
            self._remove(key)

    def _serve(self, session, events):
        if not self._here(session):
            return
        try:
            if events & selectors.EVENT_READ:
                if not session.frames.fill():
                    self._drop(session)
                    return
                if id(session) in self._members:
                    session.since = time.monotonic()
            has_more = True
            while has_more:
                has_more = self._work(session) and session.frames.flush()
            if session.frames.flush() and session.leaving:
                self._drop(session)
            else:
                self._watch(session)
        except Exception:  # whatever a stranger sends ends its own connection alone
            self._drop(session)

    def _work(self, session):
        """Handles frames that have come whole; whether it lacked room for replies."""
        while not session.leaving and session.frames.queued < self._BACKLOG:
            try:
                body = session.frames.next()
                if body is None:
                    return False
                if id(session) in self._members:
                    self._request(session, body)
                elif session.hello is None:
                    self._hello(session, body)
                else:
                    self._prove(session, body)
            except Malformed as e:
                if id(session) not in self._members:
                    raise
                self._end(session, e)
        return not session.leaving

    def _end(self, session, came):
        """Tells a member, and the log, why its session ends."""
        job, rank = session.member
        _log().warning("The store at %s:%d ends the session of rank %d of job %r, which sent %s",
                       *self.address, rank, printable(job), came)
        why = _text(f"the store got {came}"[:200])
        session.frames.send(struct.pack(">Bi", InvalidArgumentException.code, _NO_CALL) + why)
        session.leaving = True

    def _watch(self, session):
        """Waits for what a session may do next."""
        reads = not session.leaving and session.frames.queued < self._BACKLOG
        events = ((selectors.EVENT_READ if reads else 0)
                  | (selectors.EVENT_WRITE if session.frames.queued else 0))
        self._selector.modify(session.frames.socket, events, session)

    def _refuse(self, session, code, text):
        session.frames.send(struct.pack(">Bi", _REFUSED, code) + _text(text))
        session.leaving = True

    def _hello(self, session, body):
        reader = Reader(body)
        if reader.unpack("Bi") != (_HELLO, _MAGIC):
            raise Malformed("no hello")
        protocol = reader.int()
        library = printable(_take_text(reader, 64))
        if protocol != STORE_PROTOCOL:
            self._refuse(
                session, 2,
                f"the member has version {library}, store protocol {protocol}; the store has"
                f" version {library_version()}, store protocol {STORE_PROTOCOL}; run both with one"
                " version")
            return
        reader.take(32)
        rank, size = reader.unpack("ii")
        job = _take_text(reader, 128)
        reader.end()
        if (rank, size) != (-1, 0) and not (1 <= size <= MOST_RANKS and 0 <= rank < size):
            raise Malformed(f"rank {rank} of {size}")
        session.member = (job, rank)
        session.hello = body
        session.challenge = bytes([_CHALLENGE]) + secrets.token_bytes(32) + _text(library_version())
        session.frames.send(
            session.challenge + _proof(self._token, "server", body, session.challenge))

    def _prove(self, session, body):
        if body[0] != _PROOF or len(body) != 33:
            raise Malformed("no proof")
        wanted = _proof(self._token, "member", session.hello, session.challenge)
        if not hmac.compare_digest(body[1:], wanted):
            self._refuse(session, 8, "the member holds another token than the store")
            return
        session.frames.met(
            _proof(self._token, "the server's frames", session.hello, session.challenge),
            _proof(self._token, "the member's frames", session.hello, session.challenge))
        if len(self._members) >= self._MEMBERS:
            self._refuse(session, 8, "the store has as many members as it takes")
            return
        same = any(other.member == session.member for other in self._members.values())
        if session.member[1] >= 0 and same:
            self._refuse(
                session, 2,
                f"rank {session.member[1]} is connected already; two may not have one rank")
            return
        del self._strangers[id(session)]
        self._members[id(session)] = session
        session.since = time.monotonic()
        session.frames.send(struct.pack(">Bq", _WELCOME, self._SILENCE_MS))

    def _request(self, session, body):
        """Reads a request whole before anything of it is done."""
        reader = Reader(body)
        kind, number = reader.unpack("Bi")
        if kind not in self._FIELDS:
            raise Malformed(f"a request of kind {kind}")
        fields = [read(reader) for read in self._FIELDS[kind]]
        reader.end()
        try:
            reply = self._answer(session, kind, number, fields)
        except WindlassException as e:
            session.frames.send(struct.pack(">Bi", e.code, number) + _text(str(e)[:200]))
            return
        if reply is not None:
            self._done(session, number, *reply)

    def _answer(self, session, kind, number, fields):
        """What a reply consists of; None where there is none so far."""
        if kind == _SET:
            self._put(*fields)
        elif kind == _GET:
            return self._of(self._table.get(*fields))
        elif kind == _ADD:
            return [self._add(*fields)]
        elif kind == _CAS:
            key, expected, value = fields
            same = self._table.get(key) == expected
            if same and value is not None:
                self._put(key, value)
            elif same and expected is not None:
                self._remove(key)
            return [bytes([same])]
        elif kind == _HOLD:
            key, value = fields
            free = key not in self._table
            if free:
                self._put(key, value)
                self._holders[key] = session
                session.held.add(key)
            return [bytes([free])]
        elif kind == _KEYS:
            return [self._listing(*fields)]
        elif kind == _AWAIT:
            return self._await(session, number, *fields)
        elif kind == _CANCEL:
            self._forget(session, number)
            return None
        elif kind == _LEAVE:
            _log().warning("The store at %s:%d: rank %d goes, because %s",
                           *self.address, session.member[1], printable(*fields))
            session.leaving = True
            return None
        return []

    @staticmethod
    def _done(session, number, *reply):
        session.frames.send(struct.pack(">Bi", 0, number), *reply)

    @staticmethod
    def _of(value):
        """A value as replies have it, which share it."""
        return [struct.pack(">i", -1)] if value is None else [struct.pack(">i", len(value)), value]

    def _add(self, key, delta):
        value = self._table.get(key, bytes(8))
        if len(value) != 8:
            raise InvalidArgumentException(f"its value has {len(value)} bytes; a number has 8")
        total = (struct.unpack(">q", value)[0] + delta + (1 << 63)) % (1 << 64) - (1 << 63)
        self._put(key, struct.pack(">q", total))
        return struct.pack(">q", total)

    def _listing(self, prefix):
        found = sorted(key for key in self._table if key.startswith(prefix))
        listed = b"".join(_text(key) for key in found)
        if len(listed) > 2 * VALUE:
            raise ResourceException("the keys that begin so are too many; ask with a longer prefix")
        return struct.pack(">i", len(found)) + listed

    def _await(self, session, number, key, seen):
        now = self._table.get(key)
        if now != seen:
            return self._of(now)
        if number in session.waits:
            raise Malformed("two waits of one id")
        if len(session.waits) >= self._WAITS:
            raise ResourceException("this connection has as many waits as it may")
        session.waits[number] = (key, seen)
        self._waiting.setdefault(key, []).append((session, number))
        return None

    def _forget(self, session, number):
        key, _ = session.waits.pop(number, (None, None))
        others = self._waiting.get(key, [])
        if (session, number) in others:
            others.remove((session, number))
            if not others:
                del self._waiting[key]

    def _put(self, key, value):
        before = self._table.get(key)
        more = len(value) - (-(64 + 2 * len(key)) if before is None else len(before))
        if self._bytes + more > TOTAL:
            raise ResourceException(
                f"the store has {self._bytes} of at most {TOTAL} bytes, and this takes {more}"
                " more")
        self._table[key] = value
        self._bytes += more
        self._changed(key, value)

    def _remove(self, key):
        self._bytes -= 64 + 2 * len(key) + len(self._table.pop(key))
        holder = self._holders.pop(key, None)
        if holder is not None:
            holder.held.discard(key)
        self._changed(key, None)

    def _changed(self, key, value):
        for session, number in [*self._waiting.get(key, [])]:
            if number in session.waits and session.waits[number][1] != value:
                self._forget(session, number)
                self._done(session, number, *self._of(value))
                self._watch(session)
