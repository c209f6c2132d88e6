# SPDX-License-Identifier: Apache-2.0
"""Links, over which a job sends versions of its tensors to another job."""

from __future__ import annotations

import contextlib
import ctypes
import struct
import time
from ctypes import byref, c_int32, c_int64, c_void_p
from typing import Any, Iterable, Iterator

from .errors import (
    AbortedException, ClosedException, DeadlineExceededException, InvalidArgumentException,
    MismatchException, UnsupportedException, VerificationFailedException, WindlassException,
    expect, reading, require)
from .deadline import Deadline
from .encoding import Reader, packed, printable
from .library import (
    DTYPES, FLOATING, NO_VERSION, OP_LINK_MOVE, OP_LINK_REGISTER, TensorStruct, TransferConfig,
    integer, integers, native, sized)
from .tensors import describe_change, memory_of, view
from .communicator import Communicator, Handle, Scope
from .layout import Layout

OFFER_FORMAT = 3
TABLE_FORMAT = 1

_MODES = ("direct", "staged", "gather-broadcast")
_HEADER = 9  # words before the sections of a table
_SHARED = (MismatchException, VerificationFailedException)  # failures that every rank of a move has
_LONG = (1 << 63) - 1


class Link(Scope):
    """A link over which this job sends tensors to another job.

    `name` is the link's. `communicator` has the ranks of both jobs, the senders' first. After the
    link has failed, the jobs may connect again. One thread at a time calls operations on it."""

    # Numbers of signals, and of the words that senders write at receivers.
    _ASKED, _CONFIRMED, _WITHDRAWN, _OFFERED, _SIGNALS = 0, 1, 2, 3, 4
    _VERSION, _LEFT_NS, _NEWEST, _WAITING, _WORDS = 0, 1, 2, 3, 4

    # Outcomes of a handover.
    _FAILED, _LATE, _MOVES, _ENDS = 0, 1, 2, 3

    _FINISHED = -2  # value of _WAITING at rank 0 of the receivers: no version follows

    _finished = False

    # Seconds beyond a deadline for the ranks of this job to agree, and seconds kept for a move.
    _GRACE, _RESERVE = 2.0, 1.0

    def __init__(self, name: str, whose: str, comm: Communicator, side: Communicator,
                 senders: int, until: Deadline) -> None:
        """whose: says which ranks are of which job. side: the ranks of this job."""
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
            with self._operating("finish", ()):
                self._require_alike(self._lead(until, self._tell_end)[0] == self._ENDS)
            self._finished = True

    @staticmethod
    def _require_alike(is_alike):
        if not is_alike:
            raise AbortedException("some senders finish, and others send a version")

    def _tell_end(self, until):
        """Returns once the receivers have the end, or have left: then this job may leave."""
        for _ in until.pauses(20e-6, 1e-3):
            try:
                self._put(self._senders, self._WAITING, self._FINISHED)
                if self._get(self._senders, self._WAITING) == self._FINISHED:
                    return self._ENDS, 0
            except AbortedException as e:
                if not e.faulty_ranks or min(e.faulty_ranks) < self._senders:
                    raise
                return self._ENDS, 0  # the receivers have left
        self._raise_on_all(AbortedException.code, [self._senders],
                           "the receivers don't get the end of the versions")

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
        self._require_alike(kind != self._ENDS)
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
        self._put(self._senders, self._VERSION, version)
        self._put(self._senders, self._LEFT_NS, until.ns())
        self._call("wl_notify", self._senders, self._OFFERED * self._stride, self._ticket)
        for _ in until.pauses(20e-6, 1e-3):
            if self._test(self._CONFIRMED, self._ticket):
                return True
            if self._test(self._WITHDRAWN, self._ticket):
                return False
        self._raise_on_all(
            AbortedException.code, [self._senders],
            f"the receivers have asked for a version, and don't answer to version {version}, which"
            f" they were offered; see whether rank {self._senders} is stopped")

    def _announce(self, version, registration):
        """Writes at each receiver which version is the newest, and which registration waits."""
        if self.communicator.failure() is not None:
            return  # the caller's next call raises it
        for rank in range(self._senders, self.communicator.size):
            self._put(rank, self._NEWEST, version)
            self._put(rank, self._WAITING, registration)

    def _call(self, name, *arguments):
        self._handle.use("send", lambda: self.communicator._call(
            "send", name, self._window, *arguments))

    def _test(self, signal, value):
        reached = c_int32()
        self._call("wl_test", self._senders, signal * self._stride, value, byref(reached))
        return reached.value != 0

    def _put(self, rank, word, value):
        self._move_word("wl_put", rank, word, value)

    def _get(self, rank, word):
        return self._move_word("wl_get", rank, word, 0)

    def _move_word(self, call, rank, word, value):
        one, cell = (c_int64 * 1)(1), c_int64(value)
        local, remote = (
            sized(TensorStruct, dtype=DTYPES["i64"][0], ndim=1, data=address, shape=one,
                  strides=one)
            for address in (ctypes.addressof(cell), self._words + word * 8))
        self._call(call, byref(local), rank, byref(remote))
        return cell.value

    def _communicators(self):
        return [self.communicator, self._side]

    def __repr__(self) -> str:
        return f"Link({self.name!r}{self._whose})"


class LinkTransferBuilder:
    """Tensors of a link that are sent together. Each rank adds the tensors that it has a part of.

    `register` compares them with the other job's, and returns what sends them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sends = []
        self._tensors = {}
        self._registered = False

    def add(self, name: str, shape: Iterable[int], source: Any, layout: str,
            dtype: str | None = None, wire: str | None = None, mode: str = "direct",
            bucket_bytes: int = 16 << 20, padded_shape: Iterable[int] | None = None
            ) -> LinkTransferBuilder:
        """Adds a tensor to send, and returns this builder. Copies nothing.

        name: the same in both jobs. shape: of the whole tensor, without padding; padded_shape:
        with it. source: this rank's part, as `tensor` takes it, or None if this rank has none.
        layout: of the whole tensor over the ranks of this job, such as "dp=2xtp=2:R,S1".
        dtype: see `tensor`. wire: dtype to convert floating-point elements to before they are
        sent. mode: direct, staged or gather-broadcast. bucket_bytes: size of the buckets into
        which mode staged packs tensors. Raises InvalidArgumentException or UnsupportedException."""
        require(not self._registered, "add: the builder was registered already; make another")
        require(isinstance(name, str), f"add: name is {name!r}; it must be a string")
        what = f"add: tensor '{name}'"
        require(name not in self._tensors, what + " was added before; add each once")
        for option, value, known in (("mode", mode, _MODES), ("wire", wire, (None, *DTYPES))):
            names = " ".join(map(str, known))
            require(value in known, f"{what}: {option} is {value!r}; it must be one of {names}")
        shape = integers(what + ": shape", shape)
        padded = shape if padded_shape is None else integers(what + ": padded_shape", padded_shape)
        require(len(padded) == len(shape) and all(a >= b for a, b in zip(padded, shape)),
                f"{what}: padded_shape is {padded}; it must have as many extents as shape, {shape},"
                " and none less")
        bucket_bytes = integer(what + ": bucket_bytes", bucket_bytes, 1, _LONG)
        part = None if source is None else view(f"add: source of tensor '{name}'", source, dtype)
        self._require_part(name, shape, padded, layout, part)
        if part is not None:
            wire = wire if wire and part.dtype in FLOATING else ""
            self._sends.append(packed("tttmmttq", name, part.dtype, layout, shape, padded, wire,
                                      mode, bucket_bytes))
            self._tensors[name] = (part, source, memory_of(source))
        return self

    def _require_part(self, name, shape, padded, layout, part):
        """Refuses a source that is not this rank's part under the layout."""
        try:
            layout = Layout(layout)
        except InvalidArgumentException as e:
            raise InvalidArgumentException(f"add: tensor '{name}': {e}") from e
        for dim in layout.dims:
            require(dim < len(shape),
                    f"add: tensor '{name}' has {len(shape)} dimensions, and layout '{layout}' cuts"
                    f" dimension {dim}")
        size, highest = self._link._senders, max(layout.ranks)
        require(highest < size,
                f"add: tensor '{name}': layout '{layout}' names"
                f" {ranks_in_words(len(layout.ranks))} up to rank {highest}; this job has"
                f" {ranks_in_words(size)}, counted from 0")
        # The senders are the first ranks of the link, so both count this rank alike.
        what, rank = f"add: source of tensor '{name}'", self._link.communicator.rank
        if rank not in layout.ranks:
            require(part is None,
                    f"{what} is {part!r}; rank {rank} is outside the mesh of {layout} and holds"
                    " nothing: give None")
            return
        local = layout.local_shape(padded, rank)
        require(part is not None or 0 in local,
                f"{what} is None; under {layout} rank {rank} holds {local}: give that")
        require(part is None or part.shape == local,
                f"{what} has shape {part and part.shape}; under {layout} rank {rank} holds {local}")

    def register(self, deadline: float = 60.0) -> LinkTransfer:
        """Collective over both jobs: plans how the tensors of this builder move.

        Raises MismatchException on every rank if only one job has a name, or shapes differ, and
        InvalidArgumentException if a part is not of its layout's shape. Then the link goes on."""
        require(not self._registered, "register: the builder was registered already")
        until = Deadline(deadline)
        link, comm = self._link, self._link.communicator
        self._registered = True
        shared = (MismatchException, UnsupportedException, InvalidArgumentException)
        with link._operating("register", shared):
            # No checksums, not in place, these tensors to send, and none to receive.
            offer = (packed("i??i", OFFER_FORMAT, False, False, len(self._sends))
                     + b"".join(self._sends) + packed("i", 0))
            comm._bytes(OP_LINK_REGISTER, until, offer)
            comm._bytes(OP_LINK_REGISTER, until, self._bindings())
            plan = comm._bytes(OP_LINK_REGISTER, until, b"")
            halves, words = self._table(plan[link._senders])
            handles = [c_void_p() for _ in range(halves)]
            transfer = LinkTransfer(
                link, link._registrations, handles,
                [(name, *each) for name, each in self._tensors.items()])

            def create():
                for handle in handles:
                    config, memory = _transfer_config(words)
                    comm._call("register", "wl_transfer_create", byref(config), until.ns(),
                               byref(handle), holds=(memory,))

            transfer._handle.use("register", create)
        link._registrations += 1
        return transfer

    def _bindings(self):
        """Returns each tensor's name and binding, as the other job takes them."""
        out = bytearray(packed("ii", TABLE_FORMAT, len(self._tensors)))
        for name, (part, *_) in self._tensors.items():
            binding = self._binding(part)
            out += packed("t" + "q" * len(binding), name, *binding)
        return bytes(out)

    @staticmethod
    def _binding(part):
        """Returns the words by which a table names a tensor's memory."""
        address = part.address if part.bytes else 0
        return (DTYPES[part.dtype][0], len(part.shape), address, address, part.bytes,
                *part.shape, *part.strides)

    def _table(self, data):
        """Reads and checks this rank's part of the plan. Returns (halves, words)."""
        comm, planner = self._link.communicator, self._link._senders
        with reading(f"the part of the plan that rank {planner} has made for rank {comm.rank}",
                     "; run one version of Windlass on all ranks", [planner]):
            reader = Reader(data)
            form, is_refusal = reader.fields("i?")
            expect(form == TABLE_FORMAT, f"it has format {form}, here it is {TABLE_FORMAT}")
            if is_refusal:
                code, text = reader.fields("ia")
                text = printable(text.decode("utf-8", "replace"))
                raise WindlassException.of(code, text, reader.ints(comm.size))
            halves, count = reader.fields("ii")
            expect(halves in (1, 2), f"a transfer of {halves} halves")
            parts = {}
            for _ in range(count):
                rank, size = reader.fields("ii")
                parts[rank] = reader.take(8 * size)
            reader.end()
            expect(comm.rank in parts, f"it has nothing for rank {comm.rank}")
            words = struct.unpack(f">{len(parts[comm.rank]) // 8}q", parts[comm.rank])
            self._check(words)
            return halves, words

    def _check(self, words):
        """Requires that a table names only this rank's own tensors, and none to receive into.

        The library checks the rest of the table when it makes the transfer."""
        counts, sizes = words[1:_HEADER:2], words[2:_HEADER:2]
        expect(len(words) >= _HEADER and sum(sizes) == len(words) - _HEADER
               and all(0 <= count <= size for count, size in zip(counts, sizes)),
               f"its sections have {counts} entries in {sizes} of {len(words)} words")
        own = {self._binding(part) for part, *_ in self._tensors.values()}
        at = _HEADER
        for is_source, count, size in zip((True, False), counts, sizes):
            end = at + size
            for _ in range(count):
                ndim = words[at + 1] if at + 1 < end else -1
                expect(0 <= ndim <= 16 and at + 5 + 2 * ndim <= end, "a binding that ends early")
                binding = words[at:at + 5 + 2 * ndim]
                expect(binding[2:5] == (0, 0, 0) or is_source and binding in own,
                       "it names memory that this rank has not stated")
                at += len(binding)
            expect(at == end, f"{end - at} words follow its bindings")


def ranks_in_words(count: int) -> str:
    """Returns a number of ranks, such as "1 rank" or "2 ranks"."""
    return "%d rank%s" % (count, "" if count == 1 else "s")


def _transfer_config(words):
    """Returns the C ABI's struct of a table, and the memory that it points to."""
    memory = (c_int64 * max(1, len(words)))(*words)
    config = sized(TransferConfig, fingerprint=words[0] & (1 << 64) - 1)
    at = ctypes.addressof(memory) + 8 * _HEADER
    sections = ("source_binding", "target_binding", "chunk", "stage")
    for name, count, size in zip(sections, words[1:_HEADER:2], words[2:_HEADER:2]):
        setattr(config, name + "s", at)
        setattr(config, name + "_words", size)
        setattr(config, name + "_count", count)
        at += 8 * size
    return config, memory


class LinkTransfer(Scope):
    """A builder that both jobs have registered. Each version is sent once.

    The transfer keeps the tensors' memory until it, or its link, is closed."""

    def __init__(self, link: Link, number: int, handles: list, tensors: list) -> None:
        self._link, self._number, self._handles, self._tensors = link, number, handles, tensors
        self._next = 0
        self._handle = Handle("transfer", self._free, link.communicator._handle)

    def send(self, version: int, deadline: float = 60.0) -> None:
        """Collective over the senders: sends the present values of the tensors.

        version: 0 or more, the same on every sender. Raises DeadlineExceededException if the
        receivers have not asked for a version in time; then nothing moved, and the link goes on.
        A MismatchException also leaves the link as it was. Any other failure ends the link."""
        late = self._begin(version, deadline)
        if late is not None:
            raise DeadlineExceededException(late)

    def try_send(self, version: int, deadline: float = 60.0) -> bool:
        """Collective over the senders: `send` for loops without an `except`.

        Returns False, on all senders alike, if the receivers have not asked for a version in time;
        then nothing moved, and the link goes on. An exception means that the link is over, or that
        the call was wrong."""
        return self._begin(version, deadline) is None

    def finish(self, deadline: float = 60.0) -> None:
        """Collective over the senders: ends the versions of the link. Idempotent.

        Receivers get that as a result, whether they wait now or ask later, and also after this job
        has closed the link. Does not wait for them to ask. A failure ends the link."""
        self._handle.use("finish", lambda: self._link._finish(Deadline(deadline)), alone=True)

    def _begin(self, version, deadline):
        """Sends a version. Returns why the receivers did not get it, or None."""
        require(not isinstance(version, bool),
                f"send: version is {version!r}; it must be an integer")
        version = integer("send: version", version, 0, _LONG)
        require(not self._link._finished, f"send: link '{self._link.name}' was finished")
        return self._handle.use(
            "send", lambda: self._send(version, Deadline(deadline)), alone=True)

    def _send(self, version, until):
        link, what = self._link, f"send of version {version}"
        with link._operating(what, _SHARED):
            moving = link._offer(self._number, version, until)
        if moving is None:
            return (f"{link._operation(what)}: the receivers have not asked for a version when the"
                    " deadline passed; nothing moved, and the link goes on")
        change = self._moved()
        # A rank whose tensors changed takes part without a version, so that no rank commits it.
        cell = c_int64(NO_VERSION if change else version)
        began = time.monotonic()
        shared = () if change else (*_SHARED, UnsupportedException)
        with link._operating(what, shared):
            is_sent = False
            try:
                try:
                    link.communicator._call(
                        "send", "wl_transfer_move", self._number, byref(cell), moving.ns(),
                        on=self._handles[self._next], holds=self._tensors)
                finally:
                    require(not change, change)
                is_sent = True
            except BaseException as e:
                link._end(link._operation(what), e, shared)
                raise
            finally:
                link._settle(is_sent, moving)
        link._move_seconds = time.monotonic() - began
        self._next = (self._next + 1) % len(self._handles)
        return None

    def _moved(self):
        """Says which tensor is no longer what it was when it was added; None if all are."""
        for name, _, source, before in self._tensors:
            try:
                now = memory_of(source)
            except Exception as e:
                return f"tensor '{name}' can't be read any more: {e}"
            if now != before:
                return (
                    f"tensor '{name}' has changed since it was added:"
                    f" {describe_change(before, now)}; connect again and add it as it is now, and"
                    " write new values into it in place")
        return None

    def close(self) -> None:
        """Releases the tensors, once a send in progress has ended. Idempotent; any thread."""
        self._handle.end()

    def _free(self):
        for handle in self._handles:
            native().wl_transfer_free(handle)
        self._tensors = []
