# SPDX-License-Identifier: Apache-2.0
"""The all-gathers of a start, over keys of a store that docs/explanation/protocols.md lists."""

from __future__ import annotations

import contextlib
from typing import Any, Optional, Tuple

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    DeadlineExceededException, MismatchException, PeerLostException, WindlassException, expect,
    reading, require)
from .library import MOST_RANKS
from .store import VALUE, Store, log

Guard = Optional[Tuple[str, bytes]]

_CHECK_SECONDS = 0.2  # interval at which rank 0 checks which processes are still there
_LONGEST_QUIET = 10.0  # seconds before the missing ranks are logged, at most
_LAST_SECONDS = 2.0  # for the calls that explain a failure and report it to the others
_LOWER_FIRST_SECONDS = 0.5  # left to lower ranks to report who is missing at the deadline
_PIECE = VALUE // 2


def _reading(rank: int = 0) -> Any:
    return reading(
        "what ranks say at the start", "; run one version of windlass on all ranks", [rank])


class _Head:
    """The first part of a process's values in a round, or of all values."""

    def __init__(self, value: bytes, rank: int = 0) -> None:
        """rank: of the process that wrote it."""
        with _reading(rank):
            reader = Reader(value)
            self.number, self.size = reader.fields("ii")
            self.ranks = reader.ints(MOST_RANKS)
            self.pieces = reader.field("i")
            self.begin = reader.rest()


def _left(rank: int) -> WindlassException:
    return PeerLostException(
        f"rank {rank} joined the start and left before all ranks had joined; see the output of"
        " its process",
        [rank])


def _another_process(rank: int) -> WindlassException:
    return MismatchException(
        f"another process has joined this start as rank {rank} too, and is the one that counts; two"
        " processes can't have the same rank: start all ranks again", [rank])


def _failure(value: bytes) -> WindlassException:
    with _reading():
        reader = Reader(value)
        code, text = reader.fields("ia")
        return WindlassException.of(
            code, printable(text.decode("utf-8", "replace")), reader.ints(MOST_RANKS))


class AllGather:
    """The rounds of one start, as one rank takes part in them. Rank 0 collects what the others say,
    and publishes all of it.

    In the first round a rank that leaves may come again. After that, all others fail. If the start
    fails, all ranks raise the same exception."""

    def __init__(self, store: Store, name: str, rank: int, size: int, guard: Guard = None) -> None:
        """name: of the start at the store. size: number of all ranks.
        guard: a key of the store, and its value until the other job gives up."""
        self._store, self._name, self._rank, self._size = store, name, rank, size
        self._guard = guard
        self.is_open = rank == 0  # whether rank 0 is known to have come
        self._number = 0  # of the round
        self._has_logged = False
        self._failed = f"{name}/failed"
        self._failed_before: bytes | None = None  # by an earlier start of this name
        self._held: dict[str, bytes] = {}
        self._seen: dict[str, bytes] = {}  # the last values of keys of others

    def round(self, said: bytes, is_last: bool, until: Deadline) -> list[bytes]:
        """Returns what each rank says in this round. is_last: whether it ends the start."""
        self._until, self._quiet = until, until.at_most(min(_LONGEST_QUIET, until.left() / 4))
        try:
            if self._number == 0:
                self._failed_before = self._store.get(self._failed, until)
            self._put(f"rank/{self._rank}", {self._rank: said})
            every = self._collected(said) if self._rank == 0 else self._published(said)
        except WindlassException as e:
            if e.faulty_ranks:
                raise self._reported(e) from e
            if until.over():
                raise self._reported(self._late()) from e
            raise
        self._number += 1
        if is_last:
            self._await_others_read(until)
            self._forget()
        return [every[rank] for rank in range(self._size)]

    def quit(self) -> None:
        """Reports that this rank leaves, once the others have read the last round."""
        if self._number > 0 and self._held:
            with contextlib.suppress(WindlassException):
                self._await_others_read(Deadline(_LAST_SECONDS))
            self._reported(_left(self._rank))

    def _place(self, key: str, piece: int = 0) -> str:
        return f"{self._name}/{piece}/{key}" if piece else f"{self._name}/{key}"

    def _collected(self, said: bytes) -> dict[int, bytes]:
        every = {0: said}
        while len(every) < self._size:
            rank = next(rank for rank in range(self._size) if rank not in every)
            self._take(f"rank/{rank}", rank, every)
            for place in [*self._seen] if self._number == 0 and len(every) == self._size else ():
                if self._store.get(place, self._until) != self._seen[place]:
                    self._drop(place, every)
        self._put("all", dict(sorted(every.items())))
        return every

    def _published(self, said: bytes) -> dict[int, bytes]:
        if not self.is_open:
            value = self._change(self._place("rank/0"), None, {})
            self._require_size(0, _Head(value or b""))
            self.is_open = True
        while True:
            every: dict[int, bytes] = {}
            self._take("all", 0, every)
            with _reading():
                expect(len(every) == self._size, f"values of {len(every)} ranks")
            # Values without this rank's own are those of an earlier all-gather of this name.
            if self._number > 0 or every[self._rank] == said:
                return every

    def _put(self, key: str, said: dict[int, bytes]) -> None:
        """Writes values under a key. A long one has pieces, which come before its head."""
        values = b"".join(packed("a", each) for each in said.values())
        count = len(values) // _PIECE
        pieces = [values[at * _PIECE:(at + 1) * _PIECE] for at in range(count + 1)]
        pieces[0] = packed("i" * (4 + len(said)), self._number, self._size, len(said), *said,
                           count) + pieces[0]
        for piece, value in reversed([*enumerate(pieces)]):
            place = self._place(key, piece)
            if place in self._held:
                self._store.set(place, value, self._until)
            else:
                if not self._store.hold(place, value, self._until):
                    raise _another_process(self._rank)
            self._held[place] = value

    def _take(self, key: str, rank: int, every: dict[int, bytes]) -> None:
        """Waits for the values of the process of `rank` in this round, and adds them to `every`."""
        place = self._place(key)
        while True:
            head = self._awaited(place, rank, every)
            data = [head.begin]
            for piece in range(1, head.pieces + 1):
                value = self._store.get(self._place(key, piece), self._until)
                if value is None:
                    break
                data.append(value)
            # The pieces belong to this head if it is still there.
            if head.pieces <= 0 or self._store.get(place, self._until) == self._seen[place]:
                break
        with _reading(rank):
            values = Reader(b"".join(data)).fields("a" * len(head.ranks) + ".")
            expect(rank in head.ranks and len({*head.ranks}) == len(head.ranks)
                   and all(0 <= each < self._size and each not in every for each in head.ranks),
                   f"values of ranks {head.ranks}")
        every.update(zip(head.ranks, values))

    def _awaited(self, place: str, rank: int, every: dict[int, bytes]) -> _Head:
        while True:
            value = self._change(place, self._seen.pop(place, None), every)
            if value is not None:
                self._seen[place], head = value, _Head(value, rank)
                self._require_size(rank, head)
                if head.number == self._number:
                    return head
            if self._number > 0:
                raise _left(rank)  # another process may have come for it

    def _change(self, place: str, last: bytes | None, every: dict[int, bytes]) -> bytes | None:
        """Returns the value of a key once it is not `last`. Raises the failure of the start."""
        watched = {self._failed: self._failed_before, place: last}
        if self._guard is not None and self._number == 0:
            watched.update([self._guard])
        while True:
            limit = self._until if self._has_logged else self._quiet
            try:
                key, value = self._store.await_any(
                    watched, limit.at_most(_CHECK_SECONDS) if self._rank == 0 else limit)
            except DeadlineExceededException:
                if self._until.over():
                    raise
                self._look(every)
                continue
            if key == place:
                return value
            if key != self._failed:
                raise PeerLostException("the other job gave up before they had connected")
            if value is not None:
                # All get the values of a round that is complete.
                now = self._store.get(place, self._until) if self._rank > 0 else None
                if now in (None, last):
                    raise _failure(value)
                return now
            watched[key] = self._failed_before = None

    def _look(self, every: dict[int, bytes]) -> None:
        """Checks that the processes whose values were collected are there. Logs who is missing."""
        present = {*self._store.keys(self._place("rank/"), self._until)}
        if self._rank == 0:
            for place in self._seen.keys() - present:
                self._drop(place, every)
            for rank in every:
                place = self._place(f"rank/{rank}")
                if place in present and place not in self._seen and place not in self._held:
                    raise _another_process(rank)
        if not self._has_logged and self._quiet.over():
            self._has_logged = True
            lower = (self._place(f"rank/{rank}") for rank in range(self._rank))
            if not any(place in present and self._is_of_round(place) for place in lower):
                log.warning("%s so far; the start waits for %.3g s more",
                            self._describe(self._missing()), self._until.left())

    def _is_of_round(self, place: str) -> bool:
        value = self._store.get(place, Deadline(_LAST_SECONDS))
        return value is not None and _Head(value).number == self._number

    def _drop(self, place: str, every: dict[int, bytes]) -> None:
        """Forgets the values of a process that has left. It may come again in the first round."""
        gone = _Head(self._seen.pop(place)).ranks
        if self._number > 0:
            raise _left(min(gone, default=0))
        for rank in gone:
            every.pop(rank, None)

    def _require_size(self, rank: int, head: _Head) -> None:
        (one, its), (other, others) = sorted(
            [(self._rank, self._size), (rank, head.size)])
        require(its == others,
                f"rank {one} was started as one of {its} ranks, rank {other} as one of {others};"
                " set the same world size on all ranks (WINDLASS_WORLD_SIZE, or the launcher's"
                " variable), and start the same number of ranks in each process",
                MismatchException, [one, other])

    def _missing(self) -> set[int]:
        """Returns the ranks that have said nothing in this round; rank 0 if all have."""
        last, missing = Deadline(_LAST_SECONDS), {*range(self._size)}
        for place in self._store.keys(self._place("rank/"), last):
            value = self._store.get(place, last)
            head = None if value is None else _Head(value)
            if head is not None and head.number == self._number:
                missing -= {*head.ranks}
        return missing or {0}

    def _describe(self, missing: set[int]) -> str:
        ranks = sorted(missing)
        more = f" and {len(ranks) - 16} more" if len(ranks) > 16 else ""
        listed = ", ".join(map(str, ranks[:16])) + more
        what = f"rank{'s' if len(ranks) > 1 else ''} {listed} of {self._size} had"
        address = self._store.address
        if self._number > 0:
            return f"{what} joined at {address}, but not continued with the others"
        is_local = address.startswith("127.") and not address.startswith("127.0.0.1:")
        return (f"{what} not joined at {address}"
                + " (which no other host reaches: see /etc/hosts)" * is_local)

    def _late(self) -> WindlassException:
        """Returns why the deadline passed. The lowest rank that is there finds it out for all."""
        last = Deadline(_LAST_SECONDS)
        present = {*self._store.keys(self._place("rank/"), last)}
        if any(self._place(f"rank/{rank}") in present for rank in range(self._rank)):
            with contextlib.suppress(DeadlineExceededException):
                self._store.await_other(
                    self._failed, self._failed_before, last.at_most(_LOWER_FIRST_SECONDS))
            told = self._told()
            if told is not None:
                return told
        missing = self._missing()
        advice = ("see whether their processes are stopped" if self._number > 0
                  else "see why they did not start")
        return DeadlineExceededException(
            f"{self._describe(missing)} when the deadline passed; {advice}, or give more time",
            sorted(missing))

    def _told(self) -> WindlassException | None:
        """Returns the failure that a process has reported."""
        value = self._store.get(self._failed, Deadline(_LAST_SECONDS))
        return None if value in (None, self._failed_before) else _failure(value)

    def _reported(self, why: WindlassException) -> WindlassException:
        """Reports a failure to the other processes, if this one has joined. Waits until they
        have read it. Returns what all raise: the first failure that any has reported."""
        if self._place(f"rank/{self._rank}") not in self._held:
            self._forget()
            return why
        last = Deadline(_LAST_SECONDS)
        own = (packed("iti", why.code, str(why), len(why.faulty_ranks))
               + packed("i" * len(why.faulty_ranks), *why.faulty_ranks))
        with contextlib.suppress(WindlassException):  # else the keys go with the connection
            before = self._failed_before
            if self._store.hold(self._failed, own, last) or (
                    before is not None
                    and self._store.compare_and_set(self._failed, before, own, last)):
                self._forget("rank/")
                self._held[self._failed] = own
                self._await_others_gone(last)
            else:
                why = self._told() or why
        self._forget()
        return why

    def _await_others_read(self, until: Deadline) -> None:
        """Waits until the others have read what rank 0 has published, or removed their keys."""
        # Who is stopped fails when it goes on, and others name it in their next call.
        with contextlib.suppress(DeadlineExceededException):
            for place, value in self._seen.items() if self._rank == 0 else ():
                self._store.await_other(place, value, until)

    def _await_others_gone(self, until: Deadline) -> None:
        for place in self._store.keys(self._place("rank/"), until):
            value = self._store.get(place, until)
            while value is not None:
                value = self._store.await_other(place, value, until)

    def _forget(self, key: str = "") -> None:
        """Removes the keys of this process that begin so. Those that stay go with the
        connection."""
        last = Deadline(_LAST_SECONDS)
        with contextlib.suppress(WindlassException):
            for place in [*self._held]:
                if place.startswith(self._place(key)):
                    self._store.compare_and_set(place, self._held.pop(place), None, last)
