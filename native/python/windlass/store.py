# SPDX-License-Identifier: Apache-2.0
"""The store where ranks and jobs find each other: its frames, and the way of a member to it.

docs/explanation/protocols.md has the greeting, the seals of frames, and the fields of requests and
replies.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import itertools
import logging
import secrets
import socket
import struct
import time
from typing import Any, Callable, Mapping

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    DeadlineExceededException, InternalException, InvalidArgumentException, Malformed,
    PeerLostException, ResourceException, WindlassException, expect)
from .launch import Address
from .library import library_version

STORE_PROTOCOL = 4
MAGIC = 0x574C5354
HELLO, CHALLENGE, PROOF, WELCOME, REFUSED = range(1, 6)
SET, GET, AWAIT = range(16, 19)
CAS, HOLD, KEYS, CANCEL, PING, LEAVE = range(20, 26)
NO_CALL = 0
"""The id of a request without a reply, and of a reply that ends the session."""

KEY, VALUE, TOTAL = 512, 512 << 10, 64 << 20
"""Most bytes of a key, of a value, and of all that a store holds."""

WATCHED = 4
"""Most keys that one AWAIT waits for."""

GREETING_FRAME, FRAME = 1 << 10, 4 << 20
"""Most bytes of a frame in the greeting, and after it."""

SEAL = 16
LONGEST_ATTEMPT = 5.0
"""Seconds for one attempt to connect, its greeting included."""

CALLS = {SET: ("set", "sa", "."), GET: ("get", "s", "o."),
         CAS: ("compare and set", "soo", "?."), HOLD: ("hold", "sa", "?."),
         KEYS: ("keys", "s", "l.")}
"""Name of each request that begins with a key, and the forms of its fields and of its reply."""

log = logging.getLogger("windlass")


def proof(token: bytes, whose: str, hello: bytes, challenge: bytes) -> bytes:
    """Returns an HMAC that proves the token to whoever said or heard `hello` and `challenge`."""
    made = hmac.new(token, b"windlass store: " + whose.encode("ascii") + b"\0", hashlib.sha256)
    made.update(packed("aa", hello, challenge))
    return made.digest()


def _sealer(key: bytes) -> Callable[..., bytes]:
    """Returns a function that gives the seal of each next frame of one direction."""
    numbers = itertools.count()

    def seal(*parts: bytes) -> bytes:
        made = hmac.new(key, struct.pack(">q", next(numbers)), hashlib.sha256)
        for part in parts:
            made.update(part)
        return made.digest()[:SEAL]

    return seal


class Frames:
    """The frames of one connection. Before `seal` they are short and have empty seals."""

    def __init__(self) -> None:
        self._longest, self._seal_bytes, self._in = GREETING_FRAME, 0, bytearray()
        self._seal_sent = self._seal_received = lambda *parts: b""

    def seal(self, token: bytes, hello: bytes, challenge: bytes, is_server: bool) -> None:
        """Seals each frame from now on."""
        self._longest, self._seal_bytes = FRAME, SEAL
        both = [_sealer(proof(token, f"the {whose}'s frames", hello, challenge))
                for whose in ("member", "server")]
        self._seal_sent, self._seal_received = reversed(both) if is_server else both

    def parts(self, *body: bytes) -> list[bytes]:
        """Returns the next frame to send, in parts that are not copied."""
        parts = [struct.pack(">i", sum(map(len, body))), *body]
        return [*parts, self._seal_sent(*parts)]

    def made(self, *body: bytes) -> bytes:
        """Returns the next frame to send."""
        return b"".join(self.parts(*body))

    def took(self, data: bytes) -> None:
        """Adds received bytes."""
        self._in += data

    def next(self) -> bytes | None:
        """Returns the body of the next whole frame that was received, None if there is none."""
        if len(self._in) < 4:
            return None
        (length,) = struct.unpack_from(">i", self._in)
        expect(1 <= length <= self._longest,
               f"a frame of {length} bytes, but the limit is {self._longest}")
        end = 4 + length
        whole = end + self._seal_bytes
        if len(self._in) < whole:
            return None
        frame, seal = bytes(self._in[:end]), bytes(self._in[end:whole])
        del self._in[:whole]
        expect(hmac.compare_digest(seal, self._seal_received(frame)),
               "a frame that does not fit its seal: it was changed, repeated, dropped or moved on"
               " its way")
        return frame[4:]


def end_connection(sock: socket.socket) -> None:
    """Closes a socket, and ends its connection even if a forked child has it too."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


class Store:
    """A member's connection to a store, for one call at a time.

    The server ends the session of a member that is silent for `silence` seconds, so a waiting call
    sends PINGs. Calls raise PeerLostException if the connection is lost, and
    DeadlineExceededException if there is no answer in time. If the server refuses a request, the
    call raises the exception of that refusal."""

    def __init__(self, address: Address, token: bytes, job: str, rank: int, size: int,
                 until: Deadline, opened: bool = False) -> None:
        """Connects to the store at `address`, once there is one.

        opened: whether the store must be open already; if nobody listens, its owner has ended.
        Raises DeadlineExceededException if there is no store in time, InvalidArgumentException if
        something else listens there, and what the store refuses this member with."""
        self.address = "%s:%d" % address
        self.lost: OSError | None = None  # why there are no more answers
        self._id = NO_CALL
        self._fault = ""  # why this member last left a store
        who = f"connect to the store at {self.address} as rank {rank} of {size}"
        why = "no answer"
        for _ in until.pauses(0.005, 0.2):
            try:
                self._connect(address, token, job, rank, size, until)
                return
            except Malformed as e:
                raise InvalidArgumentException(
                    f"{who}: the program that listens there is not a Windlass store: {e}") from e
            except WindlassException as e:
                raise WindlassException.of(e.code, f"{who}: {e}") from e
            except OSError as e:
                if opened and isinstance(e, ConnectionRefusedError):
                    raise PeerLostException(f"{who}: its owner has ended: {e}") from e
                if why == "no answer" or not until.over():  # earlier attempts tell more
                    why = str(e)
        before = f" (before that: {self._fault})" if self._fault not in ("", why) else ""
        raise DeadlineExceededException(
            f"{who}: no store there after {until.whole:g} s: {why}{before}; does its owner run?")

    def _connect(self, address: Address, token: bytes, job: str, rank: int, size: int,
                 until: Deadline) -> None:
        limit = until.at_most(LONGEST_ATTEMPT)
        self._frames = Frames()
        self._open(address, limit)
        try:
            if self._socket.getsockname() == self._socket.getpeername():
                raise ConnectionRefusedError("nobody listens there")
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._greet(token, packed("Biis", HELLO, MAGIC, STORE_PROTOCOL, library_version())
                        + secrets.token_bytes(32) + packed("iis", rank, size, job), limit)
        except BaseException as e:
            self.close()
            if isinstance(e, socket.timeout):
                raise ConnectionAbortedError(
                    f"whoever listens there gave no answer for {limit.whole:.3g} s") from None
            raise

    def _open(self, address: Address, limit: Deadline) -> None:
        """Connects to one of the addresses of a name. They share the time until `limit`."""
        places = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        for count, (family, kind, protocol, _, place) in zip(range(len(places), 0, -1), places):
            self._socket = socket.socket(family, kind, protocol)
            try:
                self._socket.settimeout(max(0.001, limit.left() / count))
                self._socket.connect(place)
                return
            except BaseException as e:
                self._socket.close()
                if count == 1 or not isinstance(e, OSError):
                    raise

    def _greet(self, token: bytes, hello: bytes, limit: Deadline) -> None:
        self._send(limit, hello)
        whole = self._answer(CHALLENGE, limit)
        challenge, claimed = whole[:-32], whole[-32:]
        expect(len(challenge) >= 35, f"a challenge of {len(whole)} bytes")
        if not hmac.compare_digest(claimed, proof(token, "server", hello, challenge)):
            self._send(limit, packed("Bis", REFUSED, ResourceException.code, ""))
            raise ResourceException(
                "the store holds another token than this member; set WINDLASS_TOKEN_FILE to the"
                " store's")
        self._send(limit, bytes([PROOF]), proof(token, "member", hello, challenge))
        self._frames.seal(token, hello, challenge, False)
        try:
            self._be_welcomed(limit)
        except Malformed as e:
            raise self._leave(e, limit) from e

    def _be_welcomed(self, limit: Deadline) -> None:
        """Reads the WELCOME, and sends a PING. Its reply shows that nobody relays the greeting and
        swallows the rest. A second PING shows the server the same."""
        (silence,) = Reader(self._answer(WELCOME, limit)[1:]).fields("q.")
        expect(silence >= 1, f"a silence of {silence} ms")
        self.silence = silence / 1000
        self._send(limit, packed("Bi", PING, NO_CALL))
        _, number, reply = self._reply(limit)
        expect(number == NO_CALL, f"a reply to request {number}")
        reply.end()
        self._send(limit, packed("Bi", PING, NO_CALL))

    def _leave(self, fault: Malformed, until: Deadline) -> OSError:
        """Tells the store why this member ends the connection. Returns the exception to raise."""
        self._fault = why = f"this member got {fault}"
        log.warning("The store at %s is left: %s", self.address, why)
        with contextlib.suppress(OSError):
            self._send(until, packed("Bis", LEAVE, NO_CALL, why))
        return ConnectionAbortedError(why)

    def _answer(self, kind: int, limit: Deadline) -> bytes:
        """Returns the next frame of the greeting. Raises a refusal."""
        body = self._receive(limit)
        if body[0] == REFUSED:
            code, text = Reader(body[1:]).fields("is")
            expect(code in (2, 8), f"a refusal of code {code}")
            raise WindlassException.of(code, f"refused: {printable(text)}")
        expect(body[0] == kind, f"a frame of kind {body[0]}")
        return body

    def _send(self, until: Deadline, *body: bytes) -> None:
        self._socket.settimeout(max(0.001, until.left()))
        self._socket.sendall(self._frames.made(*body))

    def _receive(self, until: Deadline) -> bytes:
        """Returns the body of the next frame. Raises socket.timeout at the deadline."""
        while (body := self._frames.next()) is None:
            if until.over():
                raise socket.timeout
            self._socket.settimeout(max(0.001, until.left()))
            data = self._socket.recv(64 << 10)
            if not data:
                raise ConnectionResetError("it closed the connection")
            self._frames.took(data)
            self._heard = time.monotonic()
        return body

    def _ask(self, kind: int, what: str, body: bytes, until: Deadline, form: str) -> list[Any]:
        """Sends a request, and returns the fields of its reply."""
        self._id = self._id % 0x7FFFFFFF + 1
        try:
            if self.lost is not None:
                raise self.lost
            self._request(until, kind, self._id, body)
            while True:
                code, number, reader = self._reply(until)
                if number != self._id:
                    continue  # it answers a PING, or a call that has passed its deadline
                if code != 0:
                    (text,) = reader.fields("s.")
                    raise WindlassException.of(code, f"{what}: {printable(text)}")
                return reader.fields(form)
        except socket.timeout:
            if kind == AWAIT:
                with contextlib.suppress(OSError):
                    self._request(until, CANCEL, self._id, b"")
            raise DeadlineExceededException(
                f"{what}: no answer of the store at {self.address} after"
                f" {until.whole:g} s") from None
        except OSError as e:
            self.lost = e
            raise PeerLostException(
                f"{what}: the store at {self.address} was lost: {e}; its owner has ended, closed it"
                " or turned this member away") from e
        except Malformed as e:
            raise InternalException(
                f"{what}: the store at {self.address} answered with {e}") from e

    def _request(self, until: Deadline, kind: int, number: int, body: bytes) -> None:
        try:
            self._send(until, packed("Bi", kind, number), body)
        except OSError as e:
            timed_out = isinstance(e, socket.timeout)
            self.lost = ConnectionAbortedError("a request went in part") if timed_out else e
            with contextlib.suppress(socket.timeout, ConnectionResetError):
                while True:  # the store may have said why it ends the session
                    self._reply(Deadline(0.001))
            raise

    def _reply(self, until: Deadline) -> tuple[int, int, Reader]:
        """Returns code, id and the rest of the next reply. Raises socket.timeout at the deadline,
        and another OSError if the session has ended."""
        while True:
            try:
                reader = Reader(self._receive(until.at_most(self.silence / 3)))
                code, number = reader.fields("Bi")
            except socket.timeout:
                if until.over():
                    raise
                if time.monotonic() - self._heard > self.silence:
                    raise ConnectionAbortedError(
                        f"it has said nothing for {self.silence:g} s") from None
                self._request(until, PING, NO_CALL, b"")
                continue
            except Malformed as e:
                raise self._leave(e, until) from e
            if number == NO_CALL and code != 0:
                raise ConnectionAbortedError(printable(reader.field("s")))
            return code, number, reader

    def _call(self, kind: int, *arguments: Any) -> Any:
        """Sends a key and values, which a deadline follows. Returns the field of the reply."""
        name, form, result = CALLS[kind]
        *fields, until = arguments
        reply = self._ask(kind, f"{name} {fields[0]}", packed(form, *fields), until, result)
        return next(iter(reply), None)

    # Each has the fields that CALLS gives it. None stands for no value.
    set = functools.partialmethod(_call, SET)
    get = functools.partialmethod(_call, GET)
    compare_and_set = functools.partialmethod(_call, CAS)  # True if the value was the first one
    hold = functools.partialmethod(_call, HOLD)  # lasts as long as this connection; True if it did
    keys = functools.partialmethod(_call, KEYS)

    def await_any(self, seen: Mapping[str, bytes | None], until: Deadline) -> list[Any]:
        """Waits until one of several keys has another value than in `seen`, where None stands for
        no value. Returns the first such key, and its value."""
        body = packed("i" + "so" * len(seen), len(seen), *itertools.chain(*seen.items()))
        return self._ask(AWAIT, f"await {next(iter(seen))}", body, until, "so.")

    def await_other(self, key: str, value: bytes | None, until: Deadline) -> bytes | None:
        """Returns the value of a key once it is not `value`."""
        return self.await_any({key: value}, until)[1]

    def close(self) -> None:
        end_connection(self._socket)
