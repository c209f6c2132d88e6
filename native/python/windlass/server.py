# SPDX-License-Identifier: Apache-2.0
"""The store of a start whose rank 0 is a Python process."""

from __future__ import annotations

import collections
import contextlib
import hmac
import itertools
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
    InvalidArgumentException, Malformed, MismatchException, ResourceException, WindlassException,
    expect, require)
from .launch import Address
from .library import MOST_RANKS, library_version
from .store import (
    AWAIT, CALLS, CANCEL, CAS, CHALLENGE, GET, HELLO, HOLD, KEY, KEYS, LEAVE, MAGIC, NO_CALL, PING,
    PROOF, REFUSED, SET, STORE_PROTOCOL, VALUE, WATCHED, WELCOME, Frames, end_connection, log,
    proof)
from .table import Table, Wait

_STRANGERS, _MEMBERS = 512, 8192
_PROOF_SECONDS, _SILENCE_SECONDS, _CLOSE_SECONDS = 10.0, 60.0, 2.0
_SECOND_REQUEST_SECONDS = 2.0  # a member that hears the reply to its first PING sends the second
_BACKLOG = 1 << 20
_WAITS = 1024  # most of one connection
_FORMS = {PING: "", CANCEL: "", LEAVE: "s", AWAIT: "i", **{kind: CALLS[kind][1] for kind in CALLS}}


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
        self.is_holder = False  # whether it holds keys, or has held some
        self.waits: dict[int, Wait] = {}  # by the ids of their requests
        self.out: collections.deque[memoryview] = collections.deque()
        self.queued = 0  # bytes of `out`

    def has_spoken(self) -> bool:
        """Returns whether it has sent two requests, or the first one just now: a relay may pass on
        the first PING, and keep its reply."""
        is_new = time.monotonic() - self.since < _SECOND_REQUEST_SECONDS
        return self.requests > 1 or (self.requests == 1 and is_new)

    def send(self, *body: bytes) -> None:
        """Queues a frame. Its parts are not copied, since many sessions may share a value."""
        if not self.is_leaving:
            parts = [memoryview(part) for part in self.frames.parts(*body) if part]
            self.out.extend(parts)
            self.queued += sum(map(len, parts))
            self._changed.add(self)

    def reply(self, number: int, *fields: bytes) -> None:
        self.send(packed("Bi", 0, number), *fields)

    def refuse(self, number: int, why: WindlassException) -> None:
        self.send(packed("Bis", why.code, number, _cut(str(why))))

    def write(self) -> bool:
        """Writes what the socket takes. Returns True if nothing is left."""
        while self.out:
            try:
                sent = self.socket.sendmsg(itertools.islice(self.out, 64))
            except BlockingIOError:
                return False
            self.queued -= sent
            while sent:
                part = self.out.popleft()
                if sent < len(part):
                    self.out.appendleft(part[sent:])
                sent -= min(sent, len(part))
        return True


def _cut(text: str) -> str:
    return printable(text).encode("utf-8", "replace")[:800].decode("utf-8", "ignore")


class StoreServer:
    """The store of a start, on a thread of its own, which no connection can make wait.

    A stranger, who has not shown the
    token, has 10 s and short frames. If there are too many strangers, the oldest ends."""

    def __init__(self, address: Address, token: bytes, until: Deadline) -> None:
        """Listens at `address`. Port 0 takes a free one. Raises ResourceException if it can't."""
        self._token = token
        self._table = Table()
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
                each.is_holder for each in self._members):
            seconds = min(0.5, self._end - time.monotonic())
            for key, events in self._selector.select(max(0.0, seconds)):
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
        """Ends connections that are silent for too long."""
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
            if is_written and is_closing and not session.is_leaving:
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
        reads = selectors.EVENT_READ if session.queued < _BACKLOG else 0
        writes = 0 if is_written else selectors.EVENT_WRITE
        self._selector.modify(session.socket, reads | writes, (self._receive, session))

    def _handle(self, session: _Session) -> None:
        """Handles whole frames of a session as long as there is room for replies."""
        try:
            while not session.is_leaving and (body := session.frames.next()) is not None:
                session.steps.send(body)
                if session.queued >= _BACKLOG and not session.write():
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
        """Ends a session and its waits, and removes the keys that it holds. Idempotent."""
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
        for wait in session.waits.values():
            self._table.cancel(wait)
        session.waits.clear()
        self._table.release(session)

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
                    f"rank {rank} is connected already; two members can't have the same rank",
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
        expect(kind in _FORMS, f"a request of kind {kind}")
        expect(number != NO_CALL or kind in (PING, LEAVE), f"kind {kind} without an id")
        fields = reader.fields(_FORMS[kind])
        if kind == AWAIT:
            (count,) = fields
            expect(1 <= count <= WATCHED, f"a wait for {count} keys")
            fields = reader.fields("so" * count)
            expect(len({*fields[::2]}) == count, "a wait for one key twice")
        reader.end()
        if kind != LEAVE:
            for key in fields[:1] if kind != AWAIT else fields[::2]:
                expect(kind == KEYS or key, "an empty key")
                expect(len(key.encode("utf-8")) <= KEY, f"a key of {len(key)} letters")
        for value in fields[1:]:
            expect(value is None or len(value) <= VALUE, f"a value of {len(value or b'')} bytes")
        try:
            self._carry_out(session, kind, number, fields)
        except WindlassException as e:
            session.refuse(number, e)

    def _carry_out(self, session: _Session, kind: int, number: int, fields: list[Any]) -> None:
        table = self._table
        if kind == AWAIT:
            self._await(session, number, dict(zip(fields[::2], fields[1::2])))
        elif kind == CANCEL:
            wait = session.waits.pop(number, None)
            if wait is not None:
                table.cancel(wait)
        elif kind == LEAVE:
            log.warning("The store at %s: rank %d goes, because %s",
                        self._name, session.member[1], printable(*fields))
            session.is_leaving = True
        elif kind == GET:
            session.reply(number, *_optional(table.get(*fields)))
        elif kind == HOLD:
            session.is_holder = True
            session.reply(number, packed("?", table.hold(*fields, session)))
        elif kind == CAS:
            session.reply(number, packed("?", table.exchange(*fields)))
        elif kind == KEYS:
            session.reply(number, table.listing(*fields))
        else:
            if kind == SET:
                table.put(*fields)
            session.reply(number)

    def _await(self, session: _Session, number: int, seen: dict[str, bytes | None]) -> None:
        expect(number not in session.waits, "two waits of one id")
        require(len(session.waits) < _WAITS,
                f"this connection has {_WAITS} waits, as many as it may", ResourceException)

        def then(key: str, value: bytes | None) -> None:
            session.waits.pop(number, None)
            session.reply(number, packed("s", key), *_optional(value))

        wait = self._table.wait(seen, then)
        if wait is not None:
            session.waits[number] = wait


def _optional(value: bytes | None) -> tuple[bytes, ...]:
    """Returns the parts of a value, or of none, in a reply."""
    return (packed("i", -1),) if value is None else (packed("i", len(value)), value)
