# SPDX-License-Identifier: Apache-2.0
"""The all-gathers of a start, at the store of a Python rank 0."""

from __future__ import annotations

import math
import time
from typing import Any

from .encoding import Reader, packed
from .errors import (
    DeadlineExceededException, MismatchException, PeerLostException, ResourceException,
    UnsupportedException, WindlassException, expect)
from .library import MOST_RANKS
from .store import LONGEST_MS, TOTAL, VALUE, log


def read_values(reader: Reader, size: int, count: int) -> dict[int, bytes]:
    """Reads the values of `count` ranks of a start with `size` ranks. Raises Malformed."""
    expect(1 <= size <= MOST_RANKS and 1 <= count <= size, f"{count} ranks of {size}")
    own: dict[int, bytes] = {}
    for _ in range(count):
        rank, value = reader.fields("ia")
        expect(0 <= rank < size and rank not in own and len(value) <= VALUE,
               f"rank {rank} of {size}, with {len(value)} bytes")
        own[rank] = value
    return own


def _left(rank: int) -> WindlassException:
    return PeerLostException(
        f"rank {rank} came to the start and left before all had joined; see what its process says",
        [rank])


def _listed(ranks: list[int]) -> str:
    more = f" and {len(ranks) - 16} more" if len(ranks) > 16 else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks[:16])) + more


class Rounds:
    """The rounds of one start. A round is complete once it has a value of each rank.

    A session is a connection. It has the methods reply, refuse and send_values. Its attribute ranks
    is the set of ranks that it connects. Its attribute has_failure is True until it gets the reason
    why the start failed. In the first round, a rank other than 0 may leave and join again. A start
    fails or ends for good: ranks of the next start find this store and get no answer."""

    def __init__(self, address: str) -> None:
        """address: of the store, for messages."""
        self._address = address
        self._size = 0
        self._sessions: dict[int, Any] = {}  # of each rank that has arrived
        self._said: dict[int, bytes] = {}  # by rank, in this round
        self._bytes = 0
        # Sessions, ids of their requests, and when these are late, by time.monotonic().
        self._waiting: list[tuple[Any, int, float]] = []
        self._limit = self._warning = math.inf  # of this round, by time.monotonic()
        self._is_first_round = True
        self._is_last = self._is_over = self._has_warned = False
        self._failure: WindlassException | None = None

    def next_time(self) -> float:
        """Returns when to call `expire`, by time.monotonic()."""
        return min(self._limit, self._warning)

    def expire(self, now: float) -> None:
        """Fails the start if the limit of a request has passed. Warns once before."""
        if now >= self._limit:
            text, absent, behind = self._missing()
            advice = ("see why they did not start" if absent
                      else "see whether their processes are stopped")
            self._fail(DeadlineExceededException(
                f"{text} when the deadline passed; {advice}, or give more time",
                sorted(absent + behind)))
        elif now >= self._warning:
            self._warning, self._has_warned = math.inf, True
            log.warning("%s so far; the start waits for %.3g s more",
                        self._missing()[0], self._limit - now)

    def close(self) -> None:
        """Fails the start if rank 0, whose process closes the store, takes part in it."""
        if 0 in self._sessions and not self._is_over:
            self._fail(_left(0))

    def quit(self, session: Any) -> None:
        """Ends the part of a session. In the first round its ranks may come again, except rank 0,
        whose process has this store. Otherwise the start fails."""
        if not self._is_over and session.ranks:
            self._waiting = [each for each in self._waiting if each[0] is not session]
            if self._is_first_round and 0 not in session.ranks:
                while session.ranks:
                    rank = session.ranks.pop()
                    del self._sessions[rank]
                    self._bytes -= len(self._said.pop(rank))
                self._limit = min((late for *_, late in self._waiting), default=math.inf)
                if not self._waiting:
                    self._size, self._is_last, self._warning = 0, False, math.inf
            else:
                self._fail(_left(min(session.ranks)))
        session.has_failure = False

    def gather(self, session: Any, number: int, name: str, size: int, is_last: int, limit: int,
               key: str, _: bytes | None, own: dict[int, bytes]) -> None:
        """Adds the values of a session to the round. Replies now or once it is complete.

        number: id of the request. limit: milliseconds that the session waits. The rest is as in
        Store.gather. Raises the failure of the start, and the refusal of this request."""
        expect(is_last <= 1 <= limit <= LONGEST_MS, f"a limit of {limit} ms")
        if name != "start" or key:
            raise UnsupportedException(
                "the store of a Python rank has no links; jobs connect at that of a job of JVMs")
        if not self._is_over and self._size not in (0, size):
            first, last = sorted([(min(own), size), (min(self._sessions), self._size)])
            self._fail(MismatchException(
                "rank %d was started as one of %d ranks, rank %d as one of %d; give all ranks one"
                " size, WINDLASS_WORLD_SIZE or what the launcher sets, and all processes as many"
                " ranks" % (*first, *last), sorted({first[0], last[0]})))
            session.has_failure = True
        if self._is_over:
            if self._failure is not None and (session.has_failure or 0 in own):
                session.has_failure = False
                raise self._failure
            return
        for rank in own:
            if self._sessions.get(rank, session) is not session:
                raise MismatchException(
                    f"another process has come to this start as rank {rank} too, and counts as"
                    " that; two may not have one rank: start all ranks again", [rank])
            expect(rank not in self._said, f"values of rank {rank} twice in one round")
        total = self._bytes + sum(map(len, own.values()))
        if total + 4 * size > TOTAL:
            raise ResourceException(f"the values of one round have more than {TOTAL} bytes")
        self._size, self._bytes = size, total
        self._is_last = self._is_last or is_last == 1
        self._said.update(own)
        self._sessions.update(dict.fromkeys(own, session))
        session.ranks.update(own)
        if 0 in own:
            for other, its_number, _ in self._waiting:
                other.reply(its_number, b"\0")
        elif 0 in self._sessions:
            session.reply(number, b"\0")
        now, seconds = time.monotonic(), limit / 1000
        if not self._waiting and not self._has_warned:
            self._warning = now + min(seconds / 4, 10.0)
        self._limit = min(self._limit, now + seconds)
        self._waiting.append((session, number, now + seconds))
        if len(self._said) == size:
            self._complete()

    def _end_round(self) -> list[tuple[Any, int, float]]:
        """Returns the requests that wait for the end of the round."""
        waiting, self._waiting, self._said = self._waiting, [], {}
        self._limit, self._warning, self._bytes = math.inf, math.inf, 0
        return waiting

    def _complete(self) -> None:
        values = packed("a" * self._size, *(self._said[rank] for rank in range(self._size)))
        self._is_over, self._is_first_round = self._is_last, False
        for session, number, _ in self._end_round():
            session.send_values(number, memoryview(values))

    def _fail(self, why: WindlassException) -> None:
        """Ends the start. A session that does not wait gets the reason when it asks again."""
        self._failure, self._is_over = why, True
        for session in self._sessions.values():
            session.has_failure = True
        for session, number, _ in self._end_round():
            session.has_failure = False
            session.refuse(number, why)

    def _missing(self) -> tuple[str, list[int], list[int]]:
        """Returns a text about the ranks that this round lacks, the ranks among them that have not
        arrived at the start, and the ranks that have arrived."""
        absent = [rank for rank in range(self._size) if rank not in self._sessions]
        behind = [rank for rank in sorted(self._sessions) if rank not in self._said]
        is_local = self._address.startswith("127.") and not self._address.startswith("127.0.0.1:")
        alone = " (which no other host reaches: see /etc/hosts)" if is_local else ""
        texts = [f"{_listed(ranks)} of {self._size} {what}" for ranks, what in (
            (absent, f"had not come to {self._address}{alone}"),
            (behind, f"had come to {self._address} and not gone on with the others")) if ranks]
        return ", and ".join(texts), absent, behind
