# SPDX-License-Identifier: Apache-2.0
"""Links, over which a job sends versions of its tensors to another job."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from ctypes import byref, c_int32, c_int64, c_void_p
from typing import Iterator

from .errors import (
    AbortedException, ClosedException, DeadlineExceededException, WindlassException, require)
from .deadline import LONGEST, Deadline
from .library import DTYPES, OP_LINK_MOVE, TensorStruct, native, sized
from .communicator import Communicator, Handle, Scope
from .link_transfer import LinkTransferBuilder

_MIXED = "some senders finish, and others send a version"

class Link(Scope):
    """A link over which this job sends tensors to another job.

    `name` is the link's. `communicator` has the ranks of both jobs, the senders' first. After the
    link has failed, the jobs may connect again. One thread at a time calls operations on it."""

    # Numbers of signals, and of the words that senders write at receivers. Two more signals are for
    # transfers over several links, which Python ranks don't have.
    _ASKED, _CONFIRMED, _WITHDRAWN, _OFFERED, _SIGNALS = 0, 1, 2, 3, 6
    _VERSION, _LEFT_NS, _NEWEST, _WAITING, _WORDS = 0, 1, 2, 3, 4

    # Outcomes of a handover.
    _FAILED, _LATE, _MOVES, _ENDS = 0, 1, 2, 3

    _FINISHED = -2  # value of _WAITING at rank 0 of the receivers: no version follows

    _finished = False
    _doing = "send"  # the operation, for messages

    # Seconds beyond a deadline for the ranks of this job to agree, and seconds kept for a move.
    _GRACE, _RESERVE = 2.0, 1.0

    def __init__(self, name: str, whose: str, comm: Communicator, side: Communicator,
                 senders: int, until: Deadline) -> None:
        """whose: text about the ranks of both jobs. side: the ranks of this job."""
        self.name, self.communicator = name, comm
        self._whose, self._side, self._senders = whose, side, senders
        self._ticket = self._registrations = 0
        self._move_seconds = 0.0
        window = self._window = c_void_p()
        self._handle = Handle("link", lambda: native().wl_window_free(window), comm._handle)
        self._stride = comm.size * 64  # bytes of one signal
        signals = self._SIGNALS * self._stride

        def create():
            comm._call("connect", "wl_window_create", signals + self._WORDS * 8, until.ns(),
                       byref(window))
            self._words = native().wl_window_address(window, comm.rank) + signals
            (c_int64 * self._WORDS).from_address(self._words)[:] = [-1, 0, -1, -1]

        self._handle.use("connect", create)

    def transfer_builder(self) -> LinkTransferBuilder:
        """Returns an empty builder of tensors, which are sent together."""
        return LinkTransferBuilder(self)

    def _finish(self, until):
        if not self._finished:
            self._doing = "finish"
            with self._operating(self._doing, ()):
                require(self._lead(until, self._tell_end)[0] == self._ENDS, _MIXED, AbortedException)
            self._finished = True

    def _tell_end(self, until):
        """Returns once the receivers have the end, or have left: then this job may leave.

        At the deadline, ends the link. That also ends a put to another host, which would last
        longer."""
        comm = self.communicator
        late = threading.Timer(until.left(), comm._fail, (
            AbortedException.code, [self._senders],
            "the receivers don't get the end of the versions"))
        late.daemon = True
        late.start()
        try:
            for _ in until.later(LONGEST).pauses(20e-6, 1e-3):
                is_alive = comm.failure() is None
                self._move("wl_put", self._senders, self._WAITING, self._FINISHED)
                if self._move("wl_get", self._senders, self._WAITING, 0) == self._FINISHED:
                    break
        except AbortedException as e:
            if not is_alive or not e.faulty_ranks or not all(
                    rank >= self._senders and comm._has_closed(rank) for rank in e.faulty_ranks):
                raise
        finally:
            late.cancel()
        return self._ENDS, 0

    def _operation(self, what):
        return f"{what} on link '{self.name}'{self._whose}"

    def _end(self, operation, failure, shared=()):
        """Ends the link for all ranks, unless every rank has a failure of the kinds `shared`."""
        if not isinstance(failure, shared) and self.communicator.failure() is None:
            self.communicator.abort(f"{operation} failed there: {failure}")

    @contextlib.contextmanager
    def _operating(self, what: str, shared: tuple) -> Iterator[None]:
        """Names the operation in its failures, and ends the link as `_end` does."""
        try:
            yield
        except BaseException as e:
            operation = self._operation(what)
            self._end(operation, e, shared)
            if not isinstance(e, WindlassException):
                raise
            raise WindlassException.of(e.code, f"{operation}: {e}", e.faulty_ranks) from e

    def _side_words(self, until, *own):
        """Collective over the senders. A failure of theirs ends the link."""
        try:
            return self._side._words(OP_LINK_MOVE, until, *own)
        except WindlassException as e:
            if self._side.failure() is None or isinstance(e, ClosedException):
                raise
            code = AbortedException.code if isinstance(e, DeadlineExceededException) else e.code
            self._raise_on_all(code, e.faulty_ranks, f"the senders failed: {e}")

    def _raise_on_all(self, code, faulty_ranks, message):
        """Ends the link. If it had ended before, its first failure is raised."""
        self.communicator._fail(code, faulty_ranks, message)
        raise self.communicator.failure() or WindlassException.of(code, message, faulty_ranks)

    def _offer(self, registration: int, version: int, until: Deadline) -> Deadline | None:
        """Collective over the senders: waits until the receivers ask for a version.

        Returns the deadline of the move; None if the receivers have not asked before `until`."""
        kind, left_ns = self._lead(
            until, lambda agreed: self._hand_over(registration, version, agreed))
        require(kind != self._ENDS, _MIXED, AbortedException)
        return None if kind == self._LATE else Deadline(max(1, left_ns) / 1e9)

    def _lead(self, until, step):
        """Collective over the senders: returns the outcome of a step that rank 0 runs."""
        every = self._side_words(until.later(self._GRACE), until.ns())
        agreed = Deadline(max(1, min(every)[0]) / 1e9)
        outcome = (self._FAILED, 0)
        try:
            if self._side.rank == 0:
                outcome = step(agreed)
        except BaseException as e:
            self._end("the handover", e)
            raise
        finally:
            outcome = self._side_words(agreed.later(self._GRACE), *outcome)[0]
        if outcome[0] == self._FAILED:
            raise self.communicator.failure() or AbortedException(
                "rank 0 of this job has failed; see its output")
        return outcome

    def _settle(self, is_sent, until):
        """Collective over the senders, after a move: if it failed on one, it fails on all."""
        try:
            every = self._side_words(until.later(self._GRACE), int(is_sent))
        except WindlassException:
            if is_sent:
                raise
            return
        without = [rank for rank, (each,) in enumerate(every) if not each]
        if is_sent and without:
            self._raise_on_all(
                AbortedException.code, without,
                f"ranks {without} have not sent it, so that it fails on all ranks of their job")

    def _hand_over(self, registration, version, until):
        """Returns the outcome of a handover, and the nanoseconds that are left for the move."""
        self._announce(version, registration)
        try:
            reserve = min(until.whole / 2, max(self._RESERVE, 2 * self._move_seconds))
            for _ in Deadline(max(1e-6, until.left() - reserve)).pauses(20e-6, 1e-3):
                if self._test(self._ASKED, self._ticket + 1):
                    self._ticket += 1
                    moving = Deadline(max(until.left(), self._RESERVE))
                    if self._is_confirmed(version, moving):
                        return self._MOVES, max(moving.ns(), int(self._RESERVE * 1e9))
            return self._LATE, 0
        finally:
            self._announce(version, -1)

    def _is_confirmed(self, version, until):
        """Offers a version for the ticket. Returns False if the receivers withdraw the ticket."""
        if self._test(self._WITHDRAWN, self._ticket):
            return False
        self._move("wl_put", self._senders, self._VERSION, version, until.ns())
        self._call("wl_notify", self._senders, self._OFFERED * self._stride, self._ticket)
        for _ in until.pauses(20e-6, 1e-3):
            if self._test(self._CONFIRMED, self._ticket):
                return True
            if self._test(self._WITHDRAWN, self._ticket):
                return False
        self._raise_on_all(
            AbortedException.code, [self._senders],
            f"the receivers have asked for a version, but don't answer to version {version}, which"
            f" they were offered; see whether rank {self._senders} is stopped")

    def _announce(self, version, registration):
        """Writes at each receiver which version is the newest, and which registration waits."""
        if self.communicator.failure() is not None:
            return  # the caller's next call raises it
        for rank in range(self._senders, self.communicator.size):
            self._move("wl_put", rank, self._NEWEST, version, registration)

    def _call(self, name, *arguments):
        self._handle.use(self._doing, lambda: self.communicator._call(
            self._doing, name, self._window, *arguments))

    def _test(self, signal, value):
        reached = c_int32()
        self._call("wl_test", self._senders, signal * self._stride, value, byref(reached))
        return reached.value != 0

    def _move(self, call, rank, word, *values):
        """Puts or gets words of a rank's window. Returns the first one."""
        cells = (c_int64 * len(values))(*values)
        shape, stride = (c_int64 * 1)(len(values)), (c_int64 * 1)(1)
        local, remote = (
            sized(TensorStruct, dtype=DTYPES["i64"][0], ndim=1, data=address, shape=shape,
                  strides=stride)
            for address in (ctypes.addressof(cells), self._words + word * 8))
        self._call(call, byref(local), rank, byref(remote))
        return cells[0]

    def _communicators(self):
        return [self.communicator, self._side]

    def __repr__(self) -> str:
        return f"Link({self.name!r}{self._whose})"
