# SPDX-License-Identifier: Apache-2.0
"""Links over which a job sends versions of its tensors to another."""

import contextlib
import ctypes
import struct
import time
from ctypes import byref, c_int32, c_int64, c_void_p

from .errors import (
    AbortedException, ClosedException, DeadlineExceededException, InvalidArgumentException,
    Malformed, MismatchException, UnsupportedException, VerificationFailedException,
    WindlassException, expect, reading, require)
from .deadline import Deadline
from .encoding import Reader, packed, printable
from .library import (
    DTYPES, FLOATING, NO_VERSION, OP_LINK_MOVE, OP_LINK_REGISTER, TensorStruct, TransferConfig,
    integer, integers, native, sized)
from .tensors import describe_change, memory_of, view
from .communicator import Handle, Scope
from .layout import Layout

OFFER_FORMAT = 3
TABLE_FORMAT = 1


class Link(Scope):
    """A link over which this job sends to another; its communicator has the senders' ranks first.

    When it has failed, the job may meet again. One thread at a time calls operations on it."""

    _ASKED, _CONFIRMED, _WITHDRAWN, _OFFERED, _SIGNALS = 0, 1, 2, 3, 4
    _VERSION, _LEFT_NS, _NEWEST, _WAITING, _WORDS = 0, 1, 2, 3, 4
    _FAILED, _LATE, _MOVES = 0, 1, 2
    _GRACE, _RESERVE = 2.0, 1.0

    def __init__(self, name, whose, comm, side, senders, until):
        self.name, self.communicator = name, comm
        self._whose, self._side, self._senders = whose, side, senders
        self._ticket = self._registrations = 0
        self._move_seconds = 0.0
        window = self._window = c_void_p()
        self._handle = Handle("link", lambda: native().wl_window_free(window), comm._handle)
        self._lines = self._SIGNALS * comm.size * 64

        def create(_):
            comm._call("meet", "wl_window_create", self._lines + self._WORDS * 8, until.ns(),
                       byref(window))
            self._words = native().wl_window_address(window, comm.rank) + self._lines
            (c_int64 * self._WORDS).from_address(self._words)[:] = [-1, 0, -1, -1]

        self._handle.use("meet", create)

    def batch(self):
        """Tensors that move together."""
        return LinkBatch(self)

    def _operation(self, what):
        return f"{what} on link '{self.name}'{self._whose}"

    def _end(self, operation, failure, shared=()):
        """Unless every rank has the failure, peers get it now: the link ends."""
        if not isinstance(failure, shared) and self.communicator.failure() is None:
            self.communicator.abort(f"{operation} failed there: {failure}")

    def _side_words(self, until, *own):
        """Collective over the senders, whose failures are the link's."""
        try:
            return self._side._words(OP_LINK_MOVE, until, *own)
        except WindlassException as e:
            if self._side.failure() is None or isinstance(e, ClosedException):
                raise
            code = AbortedException.code if isinstance(e, DeadlineExceededException) else e.code
            self.communicator._fail(code, e.culprits, f"the senders failed: {e}")
            raise self.communicator.failure() or e from e

    def _offer(self, registration, version, until):
        """Collective over the senders: waits until the receivers ask. For the move; None where they
        have not asked in time, and nothing was said."""
        every = self._side_words(until.later(self._GRACE), until.ns())
        agreed = Deadline(max(1, min(each[0] for each in every)) / 1e9)
        own = (self._FAILED, 0)
        try:
            if self._side.rank == 0:
                own = self._offered(registration, version, agreed)
        except BaseException as e:
            self._end("the handover", e)
            raise
        finally:
            own = self._side_words(agreed.later(self._GRACE), *own)[0]
        if own[0] == self._FAILED:
            raise self.communicator.failure() or AbortedException(
                "rank 0 of this job has failed in it")
        return None if own[0] == self._LATE else Deadline(max(1, own[1]) / 1e9)

    def _offered(self, registration, version, until):
        self._announce(version, registration)
        try:
            reserve = min(until.whole / 2, max(self._RESERVE, 2 * self._move_seconds))
            pause = 20e-6
            while until.left() > reserve:
                if self._test(self._ASKED, self._ticket + 1):
                    self._ticket += 1
                    moving = Deadline(max(until.left(), self._RESERVE))
                    if self._is_confirmed(version, moving):
                        return self._MOVES, max(moving.ns(), int(self._RESERVE * 1e9))
                    pause = 20e-6
                else:
                    time.sleep(pause)
                    pause = min(2 * pause, 1e-3)
            return self._LATE, 0
        finally:
            self._announce(version, -1)

    def _is_confirmed(self, version, until):
        """Offers a version for the ticket; False where that has been, or is, withdrawn."""
        if self._test(self._WITHDRAWN, self._ticket):
            return False
        self._put(self._senders, self._VERSION, version)
        self._put(self._senders, self._LEFT_NS, until.ns())
        self._call("wl_notify", self._senders, self._line(self._OFFERED),
                   self._ticket & 0xFFFFFFFF)
        for _ in until.pauses(20e-6, 1e-3):
            if self._test(self._CONFIRMED, self._ticket):
                return True
            if self._test(self._WITHDRAWN, self._ticket):
                return False
        message = (
            f"the receivers have asked for a version, and don't answer to version {version}, which"
            f" they were offered; see whether rank {self._senders} is stopped")
        self.communicator._fail(AbortedException.code, [self._senders], message)
        raise self.communicator.failure() or AbortedException(message, [self._senders])

    def _announce(self, version, waiting):
        if self.communicator.failure() is not None:
            return  # which the call says that follows, or has said
        for rank in range(self._senders, self.communicator.size):
            self._put(rank, self._NEWEST, version)
            self._put(rank, self._WAITING, waiting)

    def _call(self, name, *arguments):
        self._handle.use("send", lambda _: self.communicator._call(
            "send", name, self._window, *arguments))

    def _line(self, signal):
        return signal * self.communicator.size * 64

    def _test(self, signal, value):
        reached = c_int32()
        self._call("wl_test", self._senders, self._line(signal), value & 0xFFFFFFFF,
                   byref(reached))
        return reached.value != 0

    def _put(self, rank, word, value):
        one, cell = (c_int64 * 1)(1), c_int64(value)

        def struct_of(address):
            return sized(TensorStruct, dtype=DTYPES["i64"][0], ndim=1, data=address, shape=one,
                          strides=one)

        local = struct_of(ctypes.addressof(cell))
        remote = struct_of(self._words + word * 8)
        self._call("wl_put", byref(local), rank, byref(remote))

    def close(self):
        """Leaves the link, and closes what was registered on it. Idempotent."""
        try:
            self._side.close()
        finally:
            self.communicator.close()

    def _communicators(self):
        return [self.communicator, self._side]

    def __repr__(self):
        return f"Link({self.name!r}{self._whose})"


@contextlib.contextmanager
def _operating(link, what, shared):
    """Names the operation in its failures. These end the link, but for those of a kind that every
    rank has, which `shared` lists."""
    try:
        yield
    except BaseException as e:
        operation = link._operation(what)
        link._end(operation, e, shared)
        if not isinstance(e, WindlassException):
            raise
        raise WindlassException.of(e.code, f"{operation}: {e}", e.culprits) from e


def _ranks(count, more=""):
    return "%d rank%s%s" % (count, "" if count == 1 else "s", more)


class LinkBatch:
    """Tensors of a link that are sent together. A rank adds those that it has a part of; `register`
    finds what the other job calls by the same names, and gets this rank's part of the plan."""

    _MODES = ("direct", "staged", "gather-broadcast")

    def __init__(self, link):
        self._link = link
        self._sends = []
        self._tensors = {}
        self._registered = False

    def add(self, name, shape, source, layout, dtype=None, wire=None, mode="direct",
            bucket_bytes=16 << 20, padded_shape=None):
        """Adds a tensor to send.

        name: what both sides call it. shape: of the whole tensor. source: this rank's part, as
        `tensor` takes it, kept and not copied; None where it holds nothing. layout: of the whole
        tensor over the job's ranks, such as "2:S0" or "dp=2xtp=2:R,S1". dtype: see `tensor`. wire,
        mode, bucket_bytes: the sender's choices of how it moves."""
        require(not self._registered, "add: the batch is registered already; make another")
        require(isinstance(name, str), f"add: name is {name!r}; it must be a string")
        what = f"add: tensor '{name}'"
        require(name not in self._tensors, what + " was added before; add each once")
        for option, value, known in (
                ("mode", mode, self._MODES), ("wire", wire, (None, *DTYPES))):
            names = " ".join(map(str, known))
            require(value in known, f"{what}: {option} is {value!r}; it must be one of {names}")
        shape = integers(what + ": shape", shape)
        padded = shape if padded_shape is None else integers(
            what + ": padded_shape", padded_shape)
        require(len(padded) == len(shape) and all(a >= b for a, b in zip(padded, shape)),
                 f"{what}: padded_shape is {padded}; it must have as many extents as shape,"
                 f" {shape}, and none less")
        bucket_bytes = integer(what + ": bucket_bytes", bucket_bytes, 1, (1 << 63) - 1)
        found = self._require_layout(name, shape, layout)
        bound = None if source is None else view(f"add: source of tensor '{name}'", source, dtype)
        self._require_part(name, padded, found, bound)
        if bound is None:
            return self
        wire = wire if wire and bound.dtype in FLOATING else ""
        self._sends.append(packed("tttmmttq", name, bound.dtype, layout, shape, padded, wire, mode,
                                   bucket_bytes))
        self._tensors[name] = (bound, source, memory_of(source))
        return self

    def _require_layout(self, name, shape, layout):
        try:
            found = Layout(layout)
        except InvalidArgumentException as e:
            raise InvalidArgumentException(f"add: tensor '{name}': {e}") from e
        lacking = [dim for dim in found.dims if dim >= len(shape)]
        if lacking:
            raise InvalidArgumentException(
                f"add: tensor '{name}' has {len(shape)} dimensions, and layout '{layout}' cuts"
                f" dimension {lacking[0]}")
        size, highest = self._link._senders, max(found.ranks)
        named = _ranks(len(found.ranks), f" up to rank {highest}")
        require(highest < size,
                 f"add: tensor '{name}': layout '{layout}' names {named}; this job has"
                 f" {_ranks(size)}, counted from 0")
        return found

    def _require_part(self, name, padded, layout, bound):
        """Refuses a source that is not this rank's part, which the link counts as the job does."""
        what, rank = f"add: source of tensor '{name}'", self._link.communicator.rank
        if rank not in layout.ranks:
            require(bound is None,
                     f"{what} is {bound!r}; rank {rank} is outside the mesh of {layout} and holds"
                     " nothing: give None")
            return
        local = layout.local_shape(padded, rank)
        require(bound is not None or 0 in local,
                 f"{what} is None; under {layout} rank {rank} holds {local}: give that")
        if bound is not None and bound.shape != local:
            raise InvalidArgumentException(
                f"{what} has shape {bound.shape}; under {layout} rank {rank} holds {local}")

    def register(self, deadline=60.0):
        """Collective over the link: a LinkTransfer.

        MismatchException on every rank where a name stands on one side alone or shapes differ,
        InvalidArgumentException where a part is not what its layout says; the link goes on."""
        require(not self._registered, "register: the batch is registered already")
        until = Deadline(deadline)
        link, comm = self._link, self._link.communicator
        self._registered = True
        shared = (MismatchException, UnsupportedException, InvalidArgumentException)
        with _operating(link, "register", shared):
            # Neither checksums, nor in place; and nothing to receive.
            offer = (struct.pack(">i??i", OFFER_FORMAT, False, False, len(self._sends))
                     + b"".join(self._sends) + struct.pack(">i", 0))
            comm._bytes(OP_LINK_REGISTER, until, offer)
            comm._bytes(OP_LINK_REGISTER, until, self._bindings())
            told = comm._bytes(OP_LINK_REGISTER, until, b"")[link._senders]
            halves, words = self._table(told)
            handles = [c_void_p() for _ in range(halves)]
            transfer = LinkTransfer(
                link, link._registrations, handles,
                [(name, *each) for name, each in self._tensors.items()])

            def create(_):
                for handle in handles:
                    config, memory = _transfer_config(words)
                    comm._call("register", "wl_transfer_create", byref(config), until.ns(),
                               byref(handle), holds=(memory,))

            transfer._handle.use("register", create)
        link._registrations += 1
        return transfer

    def _bindings(self):
        """What this rank states of its memory: for each tensor its name and its binding, as the
        flat table has it."""
        out = [struct.pack(">ii", TABLE_FORMAT, len(self._tensors))]
        for name, (bound, *_) in self._tensors.items():
            binding = self._binding(bound)
            out.append(packed("t" + "q" * len(binding), name, *binding))
        return b"".join(out)

    @staticmethod
    def _binding(bound):
        address = bound.address if bound.bytes else 0
        return (DTYPES[bound.dtype][0], len(bound.shape), address, address, bound.bytes,
                *bound.shape, *bound.strides)

    def _table(self, told):
        """What the other job's rank 0 has planned for this rank: (halves, words), checked."""
        comm, sender = self._link.communicator, self._link._senders
        with reading(f"the part of the plan that rank {sender} has made for rank {comm.rank}",
                    "; run one version of Windlass on all ranks", [sender]):
            reader = Reader(told)
            form = reader.int()
            expect(form == TABLE_FORMAT, f"it has format {form}, here it is {TABLE_FORMAT}")
            if reader.byte() != 0:
                code, text = reader.int(), reader.array().decode("utf-8", "replace")
                culprits = reader.ints(comm.size)
                raise WindlassException.of(code, printable(text), culprits)
            halves = reader.int()
            expect(halves in (1, 2), f"a transfer of {halves} halves")
            words = None
            for _ in range(reader.int()):
                rank, count = reader.unpack("ii")
                data = reader.take(8 * count)
                if rank == comm.rank:
                    words = struct.unpack(f">{count}q", data)
            reader.end()
            expect(words is not None, f"it has nothing for rank {comm.rank}")
            self._check(words)
            return halves, words

    def _check(self, words):
        """The table names this rank's own tensors alone, and nothing to receive into; the rest of
        it is checked where it is bound."""
        expect(len(words) >= _HEADER, "it ends early")
        sizes = words[2:_HEADER:2]
        if any(not 0 <= size <= len(words) for size in sizes) or sum(sizes) != len(words) - _HEADER:
            raise Malformed(f"its sections have {sizes} of {len(words) - _HEADER} words")
        counts = words[1:_HEADER:2]
        if any(not 0 <= count <= size for count, size in zip(counts, sizes)):
            raise Malformed(f"its sections have {counts} entries in {sizes} words")
        stated = {self._binding(bound) for bound, *_ in self._tensors.values()}
        at = _HEADER
        for section, count in enumerate(counts[:2]):
            end = at + sizes[section]
            for _ in range(count):
                ndim = words[at + 1] if at + 1 < end else -1
                expect(0 <= ndim <= 16 and at + 5 + 2 * ndim <= end, "a binding that ends early")
                binding = words[at:at + 5 + 2 * ndim]
                is_empty = binding[2:5] == (0, 0, 0)
                if not is_empty and (section == 1 or binding not in stated):
                    raise Malformed("it names memory that this rank has not stated")
                at += 5 + 2 * ndim
            expect(at == end, f"{end - at} words follow its bindings")


_HEADER = 9


def _transfer_config(words):
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
    """A batch that both sides have registered. Each version moves once; receivers commit it once
    all of it is there. It keeps the tensors' memory until it, or its link, is closed."""

    _SHARED = (MismatchException, VerificationFailedException)

    def __init__(self, link, number, handles, tensors):
        self._link, self._number, self._handles, self._tensors = link, number, handles, tensors
        self._next = 0
        self._handle = Handle("transfer", self._free, link.communicator._handle)

    def send(self, version, deadline=60.0):
        """Collective over the senders: sends this rank's tensors, which may change when it returns.

        version: 0 or more, the same on every sender. DeadlineExceededException where the receivers
        have not asked for one in time: nothing moved, and the link goes on. After another failure
        but a MismatchException the link has ended."""
        require(not isinstance(version, bool),
                 f"send: version is {version!r}; it must be an integer")
        version = integer("send: version", version, 0, (1 << 63) - 1)
        self._handle.operate("send", lambda: self._send(version, Deadline(deadline)))

    def _send(self, version, until):
        link = self._link
        what = f"send of version {version}"
        with _operating(link, what, self._SHARED):
            moving = link._offer(self._number, version, until)
        if moving is None:
            raise DeadlineExceededException(
                f"{link._operation(what)}: the receivers have not asked for a version when the"
                " deadline passed; nothing moved, and the link goes on")
        moved = self._moved()
        cell = c_int64(NO_VERSION if moved else version)
        shared = () if moved else self._SHARED + (UnsupportedException,)
        began = time.monotonic()
        with _operating(link, what, shared):
            try:
                self._move(cell, moving)
            finally:
                if moved:
                    raise InvalidArgumentException(moved)
        link._move_seconds = time.monotonic() - began
        self._next = (self._next + 1) % len(self._handles)

    def _move(self, cell, until):
        self._link.communicator._call(
            "send", "wl_transfer_move", self._number, byref(cell), until.ns(),
            on=self._handles[self._next], holds=self._tensors)

    def _moved(self):
        """What is wrong where a tensor is no more what it was when it was added."""
        for name, _, source, before in self._tensors:
            try:
                now = memory_of(source)
            except Exception as e:
                return f"tensor '{name}' can't be read any more: {e}"
            if now != before:
                return (
                    f"tensor '{name}' has changed since it was added: {describe_change(before, now)};"
                    " meet again and add it as it is now, and write new values into it in place")
        return None

    def _leave(self, _):
        self.close()

    def close(self):
        """Lets go of the tensors, once a send in progress has ended. Idempotent; any thread."""
        self._handle.end()

    def _free(self):
        for handle in self._handles:
            native().wl_transfer_free(handle)
        self._tensors = []
