# SPDX-License-Identifier: Apache-2.0
"""The store of a start whose rank 0 is a Python process."""

from __future__ import annotations

import contextlib
import hmac
import math
import secrets
import selectors
import socket
import threading
import time
from typing import Any, Generator

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    InvalidArgumentException, Malformed, MismatchException, ResourceException,
    UnsupportedException, WindlassException, expect, require)
from .launch import Address
from .library import MOST_RANKS, library_version
from .rounds import Rounds, read_values
from .store import (
    CALLS, CHALLENGE, GATHER, GATHER_FORM, GET, HELLO, KEY, KEYS, LEAVE, MAGIC, NO_CALL, PING,
    PROOF, QUIT, REFUSED, SET, STORE_PROTOCOL, TOTAL, VALUE, WELCOME, Frames, end_connection, log,
    proof)

_STRANGERS, _MEMBERS = 512, 8192
_PROOF_SECONDS, _SILENCE_SECONDS, _CLOSE_SECONDS = 10.0, 60.0, 2.0
_SECOND_REQUEST_SECONDS = 2.0  # a member that hears the reply to its first PING sends the second
_PIECE, _BACKLOG = 64 << 10, 1 << 20
_FIELDS = {PING: "", LEAVE: "s", QUIT: "s", GATHER: GATHER_FORM,
           **{kind: CALLS[kind][1] for kind in (SET, GET, KEYS)}}


class _Session:
    """One connection: a stranger's until it has shown the token, then a member's."""

    def __init__(self, sock: socket.socket, server: StoreServer) -> None:
        self.socket, self._changed = sock, server._changed
        self.frames = Frames()
        self.steps = server._serve(self)  # takes the body of each frame
        next(self.steps)
        self.since = time.monotonic()
        self.member: tuple[str, int] = ("", -1)
        self.is_member = self.is_leaving = False
        self.requests = 0  # since the WELCOME
        self.has_failure = False  # of the start, which it has not been told
        self.ranks: set[int] = set()  # that take part in the start
        self.out = bytearray()
        self.values: list[tuple[int, memoryview]] = []  # of all-gathers, by id

    def has_spoken(self) -> bool:
        """Returns whether it has sent two requests, or the first one just now: a relay may pass on
        the first PING, and keep its reply."""
        is_new = time.monotonic() - self.since < _SECOND_REQUEST_SECONDS
        return self.requests > 1 or (self.requests == 1 and is_new)

    def send(self, *body: bytes | memoryview) -> None:
        if not self.is_leaving:
            self.out += self.frames.made(*body)
            self._changed.add(self)

    def reply(self, number: int, *fields: bytes | memoryview) -> None:
        self.send(packed("Bi", 0, number), *fields)

    def refuse(self, number: int, why: WindlassException) -> None:
        ranks = why.faulty_ranks
        self.send(packed("Bisi" + "i" * len(ranks), why.code, number, _cut(str(why)), len(ranks),
                         *ranks))

    def send_values(self, number: int, values: memoryview) -> None:
        """Sends the values of a round, which all sessions share, in pieces as there is room."""
        self.values.append((number, values))
        self._changed.add(self)

    def write(self) -> bool:
        """Writes what the socket takes. Returns True if nothing is left."""
        while self.out or self.values and not self.is_leaving:
            if not self.out:
                number, values = self.values.pop(0)
                piece, rest = values[:_PIECE], values[_PIECE:]
                self.reply(number, b"\1" if rest else b"\2", piece)
                if rest:
                    self.values.insert(0, (number, rest))
            try:
                del self.out[:self.socket.send(self.out)]
            except BlockingIOError:
                return False
        return True


def _cut(text: str) -> str:
    return printable(text).encode("utf-8", "replace")[:800].decode("utf-8", "ignore")


class StoreServer:
    """The store of one start, on a thread of its own, which no connection can make wait.

    It has the requests that the start and `windlass report` need. A stranger, who has not shown the
    token, has 10 s and short frames. If there are too many strangers, the oldest ends."""

    def __init__(self, address: Address, token: bytes, until: Deadline) -> None:
        """Listens at `address`. Port 0 takes a free one. Raises ResourceException if it can't."""
        self._token = token
        self._table: dict[str, bytes] = {}
        self._replies = {SET: self._set, KEYS: self._listing, PING: lambda: b"",
                         GET: lambda key: packed("o", self._table.get(key))}
        self._bytes = 0
        self._checked = time.monotonic()
        self._strangers: dict[_Session, None] = {}  # the oldest comes first
        self._members: dict[_Session, None] = {}
        self._changed: set[_Session] = set()
        self._ranks: dict[tuple[str, int], _Session] = {}  # of members, by job and rank
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
        self.address: Address = self._listener.getsockname()[:2]
        self._name = "%s:%d" % self.address
        self._start = Rounds(self._name)
        self._listener.setblocking(False)
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, (self._accept,))
        self._selector.register(self._woken, selectors.EVENT_READ, (self._begin_end,))
        self._end = math.inf  # when the thread ends at the latest
        self._thread = threading.Thread(
            target=self._run, name=f"windlass-store-{self.address[1]}", daemon=True)
        self._thread.start()

    @staticmethod
    def _resolved(address: Address, until: Deadline) -> Any:
        """Waits until the name is known. The name of a pod appears some time after its start."""
        while True:
            try:
                return socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            except socket.gaierror:
                if until.left() < 1:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """Ends the start and all connections. Ranks may read for 2 s what they were sent.
        Idempotent."""
        if self._thread.is_alive():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                self._wake.send(b"\0")
            self._thread.join(10)
        self._wake.close()

    def _run(self) -> None:
        while self._end == math.inf or time.monotonic() < self._end and any(
                each.ranks for each in self._members):
            now = time.monotonic()
            until = min(self._start.next_time(), self._end, now + 0.5)
            for key, events in self._selector.select(max(0.0, until - now)):
                handle, *rest = key.data
                handle(*rest, events)
            self._end_overdue(time.monotonic())
            while self._changed:
                self._settle(self._changed.pop())
        for session in [*self._strangers, *self._members]:
            self._drop(session)
        self._selector.close()

    def _begin_end(self, _: int) -> None:
        self._end = time.monotonic() + _CLOSE_SECONDS
        for each in (self._listener, self._woken):
            self._selector.unregister(each)
            end_connection(each)
        self._start.close()
        self._changed.update(self._members)

    def _accept(self, _: int) -> None:
        """Takes a connection. If there is no room for one more, the oldest stranger ends."""
        sock = None
        try:
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = _Session(sock, self)
            self._selector.register(sock, selectors.EVENT_READ, (self._receive, session))
            self._strangers[session] = None
        except OSError:
            if sock is not None:  # it has left already
                sock.close()
            else:  # there may be no more descriptors
                time.sleep(0.01)
        if self._strangers and (sock is None or len(self._strangers) > _STRANGERS):
            self._drop(next(iter(self._strangers)))

    def _end_overdue(self, now: float) -> None:
        """Fails the start after its limit, and ends connections that are silent for too long."""
        self._start.expire(now)
        if now - self._checked >= 0.5:
            self._checked = now
            for sessions, seconds in (
                    (self._strangers, _PROOF_SECONDS), (self._members, _SILENCE_SECONDS)):
                for session in [each for each in sessions if now - each.since > seconds]:
                    self._drop(session)

    def _receive(self, session: _Session, events: int) -> None:
        """Reads received bytes, or ends the session if the connection has ended."""
        if session.socket.fileno() < 0:
            return  # it ended in this round
        self._changed.add(session)
        if events & selectors.EVENT_READ:
            try:
                data = session.socket.recv(64 << 10)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._drop(session)
            elif not session.is_leaving:
                session.frames.took(data)
                if session.is_member:
                    session.since = time.monotonic()

    def _settle(self, session: _Session) -> None:
        """Handles frames of a session, and sends replies."""
        is_closing = self._end != math.inf
        try:
            self._handle(session)
            is_written = session.write()
            if is_written and is_closing and not session.is_leaving and not session.has_failure:
                session.is_leaving = True
                session.socket.shutdown(socket.SHUT_WR)  # it reads the rest, and closes
        except OSError:
            self._drop(session)
        except Exception:
            log.exception("The store at %s ends a connection because of a fault.", self._name)
            self._drop(session)
        if session.socket.fileno() < 0:
            return
        if is_written and session.is_leaving and not is_closing:
            self._drop(session)
            return
        reads = selectors.EVENT_READ if len(session.out) < _BACKLOG else 0
        writes = 0 if is_written else selectors.EVENT_WRITE
        self._selector.modify(session.socket, reads | writes, (self._receive, session))

    def _handle(self, session: _Session) -> None:
        """Handles whole frames of a session as long as there is room for replies."""
        try:
            while not session.is_leaving and (body := session.frames.next()) is not None:
                session.steps.send(body)
                if len(session.out) >= _BACKLOG and not session.write():
                    return
        except WindlassException as e:  # it turns a stranger away
            session.send(packed("Bis", REFUSED, e.code, _cut(str(e))))
            session.is_leaving = True
        except Malformed as e:
            if not session.is_member:
                self._drop(session)
                return
            job, rank = session.member
            log.warning("The store at %s ends the session of rank %d of job %r, which sent %s",
                        self._name, rank, printable(job), e)
            session.refuse(NO_CALL, InvalidArgumentException(f"the store got {e}"))
            session.is_leaving = True

    def _drop(self, session: _Session) -> None:
        """Ends a session. If its ranks take part in the start, see Rounds.quit. Idempotent."""
        if session.socket.fileno() < 0:
            return
        self._selector.unregister(session.socket)
        end_connection(session.socket)
        session.steps.close()
        self._changed.discard(session)
        for sessions in (self._strangers, self._members):
            sessions.pop(session, None)
        if self._ranks.get(session.member) is session:
            del self._ranks[session.member]
        self._start.quit(session)

    def _serve(self, session: _Session) -> Generator[None, bytes, None]:
        """Greets a session, and then handles its requests. It is sent the body of each frame."""
        hello = yield
        reader = Reader(hello)
        expect(reader.fields("Bi") == [HELLO, MAGIC], "no hello")
        protocol, library = reader.fields("is")
        require(protocol == STORE_PROTOCOL,
                f"the member has version {printable(library)}, store protocol {protocol}; the store"
                f" has version {library_version()}, store protocol {STORE_PROTOCOL}; run both with"
                " one version", MismatchException)
        reader.take(32)
        rank, size, job = reader.fields("iis.")
        expect((rank, size) == (-1, 0) or 0 <= rank < size <= MOST_RANKS, f"rank {rank} of {size}")
        session.member = (job, rank)
        challenge = bytes([CHALLENGE]) + secrets.token_bytes(32) + packed("s", library_version())
        session.send(challenge, proof(self._token, "server", hello, challenge))
        answer = yield
        expect(answer[0] == PROOF and len(answer) == 33, "no proof")
        require(hmac.compare_digest(answer[1:], proof(self._token, "member", hello, challenge)),
                "the member holds another token than the store", ResourceException)
        session.frames.seal(self._token, hello, challenge, True)
        require(len(self._members) < _MEMBERS, "the store has as many members as it takes",
                ResourceException)
        other = self._ranks.get(session.member)
        if other is not None:
            require(not other.has_spoken(),
                    f"rank {rank} is connected already; two may not have one rank",
                    MismatchException)
            self._drop(other)  # it may be held by somebody who has no token
        self._strangers.pop(session, None)
        self._members[session] = None
        if rank >= 0:
            self._ranks[session.member] = session
        session.is_member = True
        session.send(packed("Bq", WELCOME, int(1000 * _SILENCE_SECONDS)))
        while True:
            self._request(session, (yield))

    def _request(self, session: _Session, body: bytes) -> None:
        """Reads a request whole, and then carries it out."""
        session.requests += 1
        reader = Reader(body)
        kind, number = reader.fields("Bi")
        try:
            require(kind in _FIELDS,
                    f"the store of a Python rank has no requests of kind {kind}; jobs link at the"
                    " store of a job of JVMs", UnsupportedException)
            expect(number != NO_CALL or kind in (PING, LEAVE, QUIT), f"kind {kind} without an id")
            fields = reader.fields(_FIELDS[kind])
            if kind == GATHER:
                fields[-1] = read_values(reader, fields[1], fields[-1])
            reader.end()
            if kind in self._replies:
                session.reply(number, self._replies[kind](*fields))
            elif kind == GATHER:
                self._start.gather(session, number, *fields)
            elif kind == QUIT:
                self._start.quit(session)
            else:
                log.warning("The store at %s: rank %d goes, because %s",
                            self._name, session.member[1], printable(*fields))
                session.is_leaving = True
        except WindlassException as e:
            session.refuse(number, e)

    def _set(self, key: str, value: bytes) -> bytes:
        expect(1 <= len(key.encode("utf-8")) <= KEY, f"a key of {len(key)} letters")
        expect(len(value) <= VALUE, f"a value of {len(value)} bytes")
        bytes_ = self._bytes + 64 + 2 * len(key) + len(value)  # replaced values count, too
        if bytes_ > TOTAL:
            raise ResourceException(f"the store has {self._bytes} of at most {TOTAL} bytes")
        self._table[key], self._bytes = value, bytes_
        return b""

    def _listing(self, prefix: str) -> bytes:
        found = sorted(key for key in self._table if key.startswith(prefix))
        listed = packed("l", found)
        if len(listed) > 2 * VALUE:
            raise ResourceException("the keys that begin so are too many; ask with a longer prefix")
        return listed
