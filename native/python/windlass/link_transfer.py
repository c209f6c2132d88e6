# SPDX-License-Identifier: Apache-2.0
"""The tensors of a link: what is registered together, and how its versions are sent."""

from __future__ import annotations

import ctypes
import struct
import time
from ctypes import byref, c_int64, c_void_p
from typing import Any, Iterable

from .errors import (
    DeadlineExceededException, InvalidArgumentException, MismatchException, UnsupportedException,
    VerificationFailedException, WindlassException, expect, reading, require)
from .deadline import Deadline
from .encoding import Reader, packed, printable
from .library import (
    DTYPES, FLOATING, NO_VERSION, OP_LINK_REGISTER, TransferConfig, integer, integers, native,
    sized)
from .tensors import describe_change, memory_of, view
from .communicator import Handle, Scope

OFFER_FORMAT = 4
TABLE_FORMAT = 1

_MODES = ("direct", "staged", "gather-broadcast")
_FINISHED = -3  # WL_FINISHED, which a side names that takes a version back
_HEADER = 9  # words before the sections of a table
_SHARED = (MismatchException, VerificationFailedException)  # failures that every rank of a move has
_LONG = (1 << 63) - 1


class LinkTransferBuilder:
    """Tensors of a link that are sent together. Each rank adds the tensors that it has a part of.

    `register` compares them with the other job's, and returns what sends them."""

    def __init__(self, link: Any) -> None:
        """link: the Link whose tensors these are."""
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
        `register` compares the parts with it.
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
        require(isinstance(layout, str),
                f"{what}: layout is {layout!r}; it must be a string such as 'dp=2xtp=2:R,S1'")
        bucket_bytes = integer(what + ": bucket_bytes", bucket_bytes, 1, _LONG)
        part = None if source is None else view(f"add: source of tensor '{name}'", source, dtype)
        if part is not None:
            wire = wire if wire and part.dtype in FLOATING else ""
            self._sends.append(packed("tttmmttq", name, part.dtype, layout, shape, padded, wire,
                                      mode, bucket_bytes))
            self._tensors[name] = (part, source, memory_of(source))
        return self

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
            # No checksums, not in place, one link, these tensors to send, and none to receive.
            offer = (packed("i??ii", OFFER_FORMAT, False, False, 1, len(self._sends))
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

    def __init__(self, link: Any, number: int, handles: list, tensors: list) -> None:
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
        moved = _FINISHED
        while moved == _FINISHED:  # receivers that take a version back ask again
            with link._operating(what, _SHARED):
                moving = link._offer(self._number, version, until)
            if moving is None:
                return (f"{link._operation(what)}: the receivers have not asked for a version when"
                        " the deadline passed; nothing moved, and the link goes on")
            began = time.monotonic()
            moved = self._move(what, version, moving)
        link._move_seconds = time.monotonic() - began
        self._next = (self._next + 1) % len(self._handles)
        return None

    def _move(self, what, version, moving):
        """Returns the version that all ranks have moved, or _FINISHED if none."""
        link = self._link
        change = self._moved()
        # A rank whose tensors changed takes part without a version, so that no rank commits it.
        cell = c_int64(NO_VERSION if change else version)
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
        return cell.value

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
