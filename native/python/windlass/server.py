# SPDX-License-Identifier: Apache-2.0
"""The store of a start whose rank 0 is a Python process."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import socket
import threading
import time
from typing import Any

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    DeadlineExceededException, InvalidArgumentException, Malformed, MismatchException,
    PeerLostException, ResourceException, UnsupportedException, WindlassException, expect)
from .launch import Address
from .library import MOST_RANKS, library_version
from .store import (
    CHALLENGE, GATHER, GET, HELLO, KEY, KEYS, LEAVE, MAGIC, NO_CALL, PING, PROOF, REFUSED, SET,
    STORE_PROTOCOL, TOTAL, VALUE, WELCOME, Frames, log, proof)

_STRANGERS, _MEMBERS = 512, 8192
_PROOF_SECONDS, _SILENCE_SECONDS, _CLOSE_SECONDS = 10.0, 60.0, 2.0
_PIECE = 64 << 10
_FIELDS = {SET: "sa", GET: "s", KEYS: "s", PING: "", LEAVE: "s", GATHER: "siBqsoi"}


class _Session:
    """One connection: a stranger's until it has shown the token, then a member's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.frames = Frames()
        self.since = time.monotonic()
        self.hello = self.challenge = b""
        self.member: tuple[str, int] = ("", -1)
        self.is_member = self.is_leaving = False
        self.has_failure = False  # of the start, which it has not been told
        self.sending: set[asyncio.Task] = set()
        self._draining = asyncio.Lock()

    async def next(self) -> bytes | None:
        """Returns the body of the next frame, None at the end of the connection."""
        await self.drain()
        while (body := self.frames.next()) is None:
            data = await self.reader.read(64 << 10)
            if not data:
                return None
            self.frames.took(data)
        return body

    async def drain(self) -> None:
        """Waits until there is room for more to send."""
        async with self._draining:  # before Python 3.10.7, only one task may wait
            await self.writer.drain()

    def send(self, *body: bytes) -> None:
        if not self.is_leaving and not self.writer.is_closing():
            self.writer.write(self.frames.made(*body))

    def reply(self, number: int, *fields: bytes) -> None:
        self.send(packed("Bi", 0, number), *fields)

    def refuse(self, number: int, why: WindlassException) -> None:
        ranks = why.culprits
        self.send(packed("Bisi" + "i" * len(ranks), why.code, number, _cut(str(why)), len(ranks),
                         *ranks))

    def turn_away(self, code: int, text: str) -> None:
        """Refuses a stranger."""
        self.send(packed("Bis", REFUSED, code, _cut(text)))
        self.is_leaving = True

    async def send_values(self, number: int, values: bytes) -> None:
        """Sends the values of a round, in pieces. All sessions share the bytes."""
        with contextlib.suppress(OSError):
            for at in range(0, len(values), _PIECE):
                state = 1 if at + _PIECE < len(values) else 2
                self.reply(number, bytes([state]), values[at:at + _PIECE])
                await self.drain()


def _listed(ranks: list[int]) -> str:
    more = f" and {len(ranks) - 16} more" if len(ranks) > 16 else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks[:16])) + more


def _cut(text: str) -> str:
    return printable(text).encode("utf-8", "replace")[:800].decode("utf-8", "ignore")


class StoreServer:
    """The store of one start, on a thread of its own, which no connection can make wait.

    It has the requests that the start and `windlass report` need. Connections without a proof of
    the token are few, have short frames and little time, and the oldest ends if there are too many.
    Ranks of the next start, which find this store, get no answer until it closes."""

    def __init__(self, address: Address, token: bytes, until: Deadline) -> None:
        """Listens at `address`. Port 0 takes a free one. Raises ResourceException if it can't."""
        self._token = token
        self._table: dict[str, bytes] = {}
        self._bytes = 0
        self._size = 0
        self._sessions: dict[int, _Session] = {}  # of each rank that has arrived
        self._said: dict[int, bytes] = {}  # by rank, in this round
        self._waiting: list[tuple[_Session, int]] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._is_last = self._is_over = self._has_warned = False
        self._failure: WindlassException | None = None
        self._strangers: dict[_Session, None] = {}
        self._members: dict[_Session, None] = {}
        self._ranks: set[tuple[str, int]] = set()
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
        self._loop = asyncio.new_event_loop()
        self._closing = self._loop.create_future()
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
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(
                lambda: self._closing.done() or self._closing.set_result(None))
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._listener, backlog=1024)
        await self._closing
        server.close()
        if 0 in self._sessions and not self._is_over:
            self._fail(_left(0))
        end = time.monotonic() + _CLOSE_SECONDS
        while (time.monotonic() < end
               and any(each in self._members for each in self._sessions.values())):
            for session in self._members:
                if not (session.has_failure or session.sending or session.is_leaving):
                    session.is_leaving = True
                    session.writer.write_eof()  # it reads the rest, and closes
            await asyncio.sleep(0.005)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection until its end."""
        session = _Session(reader, writer)
        if len(self._strangers) >= _STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.writer.transport.abort()
        self._strangers[session] = None
        try:
            while not session.is_leaving and await self._step(session):
                pass
            if session.is_leaving:
                writer.transport.set_write_buffer_limits(0)
                await asyncio.wait_for(session.drain(), _SILENCE_SECONDS)
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError):
            pass
        except Exception:
            log.exception("The store at %s ends a connection because of a fault.", self._name)
        finally:
            self._drop(session)

    async def _step(self, session: _Session) -> bool:
        """Handles the next frame; False at the end of the connection."""
        left = (_SILENCE_SECONDS if session.is_member
                else session.since + _PROOF_SECONDS - time.monotonic())
        try:
            body = await asyncio.wait_for(session.next(), left)
            if body is None:
                return False
            if session.is_member:
                self._request(session, body)
            elif session.hello:
                self._prove(session, body)
            else:
                self._greet(session, body)
        except Malformed as e:
            if not session.is_member:
                return False
            job, rank = session.member
            log.warning("The store at %s ends the session of rank %d of job %r, which sent %s",
                        self._name, rank, printable(job), e)
            session.refuse(NO_CALL, InvalidArgumentException(f"the store got {e}"))
            session.is_leaving = True
        return True

    def _drop(self, session: _Session) -> None:
        self._strangers.pop(session, None)
        if session in self._members:
            del self._members[session]
            self._ranks.discard(session.member)
        for task in session.sending:
            task.cancel()
        session.writer.transport.abort()
        ranks = [rank for rank, its in self._sessions.items() if its is session]
        if ranks and not self._is_over:
            self._fail(_left(min(ranks)))

    def _greet(self, session: _Session, body: bytes) -> None:
        reader = Reader(body)
        expect(reader.unpack("Bi") == (HELLO, MAGIC), "no hello")
        protocol, library = reader.fields("is")
        if protocol != STORE_PROTOCOL:
            session.turn_away(
                MismatchException.code,
                f"the member has version {printable(library)}, store protocol {protocol}; the store"
                f" has version {library_version()}, store protocol {STORE_PROTOCOL}; run both with"
                " one version")
            return
        reader.take(32)
        rank, size, job = reader.fields("iis")
        reader.end()
        expect((rank, size) == (-1, 0) or 0 <= rank < size <= MOST_RANKS, f"rank {rank} of {size}")
        session.member, session.hello = (job, rank), body
        session.challenge = (
            bytes([CHALLENGE]) + secrets.token_bytes(32) + packed("s", library_version()))
        session.send(
            session.challenge, proof(self._token, "server", body, session.challenge))

    def _prove(self, session: _Session, body: bytes) -> None:
        expect(body[0] == PROOF and len(body) == 33, "no proof")
        wanted = proof(self._token, "member", session.hello, session.challenge)
        if not hmac.compare_digest(body[1:], wanted):
            session.turn_away(
                ResourceException.code, "the member holds another token than the store")
            return
        session.frames.seal(self._token, session.hello, session.challenge, True)
        rank = session.member[1]
        if len(self._members) >= _MEMBERS:
            session.turn_away(
                ResourceException.code, "the store has as many members as it takes")
        elif rank >= 0 and session.member in self._ranks:
            session.turn_away(
                MismatchException.code,
                f"rank {rank} is connected already; two may not have one rank")
        else:
            self._strangers.pop(session, None)
            self._members[session] = None
            self._ranks.add(session.member)
            session.is_member = True
            session.send(packed("Bq", WELCOME, int(1000 * _SILENCE_SECONDS)))

    def _request(self, session: _Session, body: bytes) -> None:
        """Reads a request whole, and then carries it out."""
        reader = Reader(body)
        kind, number = reader.unpack("Bi")
        try:
            if kind not in _FIELDS:
                raise UnsupportedException(
                    f"the store of a Python rank has no requests of kind {kind}; jobs meet at the"
                    " store of a job of JVMs")
            expect(number != NO_CALL or kind in (PING, LEAVE), f"a request {kind} without an id")
            fields = reader.fields(_FIELDS[kind])
            if kind == GATHER:
                fields[-1] = _said(reader, fields[1], fields[-1])
            reader.end()
            if kind == SET:
                self._set(*fields)
                session.reply(number)
            elif kind == GET:
                session.reply(number, packed("o", self._table.get(*fields)))
            elif kind == KEYS:
                session.reply(number, self._listing(*fields))
            elif kind == GATHER:
                self._gather(session, number, *fields)
            elif kind == PING:
                session.reply(number)
            else:
                log.warning("The store at %s: rank %d goes, because %s",
                            self._name, session.member[1], printable(*fields))
                session.is_leaving = True
        except WindlassException as e:
            session.refuse(number, e)

    def _set(self, key: str, value: bytes) -> None:
        expect(1 <= len(key.encode("utf-8")) <= KEY, f"a key of {len(key)} letters")
        expect(len(value) <= VALUE, f"a value of {len(value)} bytes")
        self._bytes += 64 + 2 * len(key) + len(value)  # what it replaces counts on
        if self._bytes > TOTAL:
            raise ResourceException(f"the store has {TOTAL} bytes, as many as it takes")
        self._table[key] = value

    def _listing(self, prefix: str) -> bytes:
        found = sorted(key for key in self._table if key.startswith(prefix))
        listed = packed("i" + "s" * len(found), len(found), *found)
        if len(listed) > 2 * VALUE:
            raise ResourceException("the keys that begin so are too many; ask with a longer prefix")
        return listed

    def _gather(self, session: _Session, number: int, name: str, size: int, is_last: int,
                limit: int, key: str, _: bytes | None, own: dict[int, bytes]) -> None:
        """Adds what a session says to the round, which is complete once all ranks have spoken."""
        expect(is_last <= 1 and limit >= 1, "an all-gather without a limit")
        if name != "start" or key:
            raise UnsupportedException(
                "the store of a Python rank has no meetings; jobs meet at that of a job of JVMs")
        if self._is_over:
            if self._failure is not None and (session.has_failure or 0 in own):
                session.has_failure = False
                raise self._failure
            return
        if self._size not in (0, size):
            raise self._other_size(session, size, min(own))
        for rank in own:
            if self._sessions.get(rank, session) is not session:
                raise MismatchException(
                    f"another process has come to this start as rank {rank} too, and counts as"
                    " that; two may not have one rank: start all ranks again", [rank])
            expect(rank not in self._said, f"values of rank {rank} twice in one round")
        if sum(map(len, (*self._said.values(), *own.values()))) + 4 * size > TOTAL:
            raise ResourceException(f"what ranks say in one round has more than {TOTAL} bytes")
        self._size = size
        self._is_last = self._is_last or is_last == 1
        self._said.update(own)
        self._sessions.update(dict.fromkeys(own, session))
        if 0 in own:
            for other, its_number in self._waiting:
                other.reply(its_number, b"\0")
        elif 0 in self._sessions:
            session.reply(number, b"\0")
        seconds = limit / 1000
        if not self._waiting and not self._has_warned:
            soon = min(seconds / 4, 10.0)
            self._timers.append(self._loop.call_later(soon, self._warn, seconds - soon))
        self._timers.append(self._loop.call_later(seconds, self._expire))
        self._waiting.append((session, number))
        if len(self._said) == size:
            self._complete()

    def _other_size(self, session: _Session, size: int, rank: int) -> WindlassException:
        """Fails the start because a rank has another size. Returns the failure for it."""
        other = min(self._sessions)
        first, last = sorted([(rank, size), (other, self._size)])
        why = MismatchException(
            "rank %d was started as one of %d ranks, rank %d as one of %d; give all ranks one size,"
            " WINDLASS_WORLD_SIZE or what the launcher sets, and all processes as many ranks"
            % (*first, *last), sorted({rank, other}))
        self._fail(why)
        session.has_failure = False
        return why

    def _take_waiting(self) -> list[tuple[_Session, int]]:
        """Ends the round. Returns who waits for its result."""
        for timer in self._timers:
            timer.cancel()
        waiting = self._waiting
        self._timers, self._waiting, self._said = [], [], {}
        return waiting

    def _complete(self) -> None:
        values = packed("a" * self._size, *(self._said[rank] for rank in range(self._size)))
        self._is_over = self._is_last
        for session, number in self._take_waiting():
            task = self._loop.create_task(session.send_values(number, values))
            session.sending.add(task)
            task.add_done_callback(session.sending.discard)

    def _fail(self, why: WindlassException) -> None:
        """Ends the start. Its sessions that do not wait are told when they ask again."""
        self._failure, self._is_over = why, True
        for session in self._sessions.values():
            session.has_failure = True
        for session, number in self._take_waiting():
            session.has_failure = False
            session.refuse(number, why)

    def _missing(self) -> tuple[str, list[int], list[int]]:
        """Returns a text about the ranks that this round lacks, those that have not arrived at the
        start, and those that have."""
        absent = [rank for rank in range(self._size) if rank not in self._sessions]
        behind = [rank for rank in sorted(self._sessions) if rank not in self._said]
        is_local = self._name.startswith("127.") and not self._name.startswith("127.0.0.1:")
        alone = " (which no other host reaches: see /etc/hosts)" if is_local else ""
        texts = [f"{_listed(ranks)} of {self._size} {what}" for ranks, what in (
            (absent, f"had not come to {self._name}{alone}"),
            (behind, f"had come to {self._name} and not gone on with the others")) if ranks]
        return ", and ".join(texts), absent, behind

    def _expire(self) -> None:
        """Fails the start because the limit of a request has passed."""
        text, absent, behind = self._missing()
        cure = ("see why they did not start" if absent
                else "see whether their processes are stopped")
        self._fail(DeadlineExceededException(
            f"{text} when the deadline passed; {cure}, or give more time", sorted(absent + behind)))

    def _warn(self, left: float) -> None:
        self._has_warned = True
        log.warning("%s so far; the start waits for %.3g s more", self._missing()[0], left)


def _left(rank: int) -> WindlassException:
    return PeerLostException(
        f"rank {rank} came to the start and left before all had met; see what its process says",
        [rank])


def _said(reader: Reader, size: int, count: int) -> dict[int, bytes]:
    """Reads what the ranks of a process say."""
    expect(1 <= size <= MOST_RANKS and 1 <= count <= size, f"{count} ranks of {size}")
    own: dict[int, bytes] = {}
    for _ in range(count):
        rank, value = reader.fields("ia")
        expect(0 <= rank < size and rank not in own and len(value) <= VALUE,
               f"rank {rank} of {size}, with {len(value)} bytes")
        own[rank] = value
    return own
