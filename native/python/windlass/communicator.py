# SPDX-License-Identifier: Apache-2.0
"""Communicators, and native handles that signal handlers may close."""

import contextlib
import ctypes
import hashlib
import os
import time
from ctypes import byref, c_int32, c_int64, c_void_p

from .errors import (
    ClosedException, InvalidArgumentException, MismatchException, WindlassException, reading, tried)
from .deadline import Deadline
from .encoding import Reader, fingerprint, packed, printable
from .library import (
    CollectiveCall, DTYPES, OP_ALL_REDUCE, OP_BARRIER, OP_BROADCAST, OP_LINK, REDUCE_OPS, integer,
    invoke, native)
from .start import Options, start_from_environment
from .tensors import view

_process = os.getpid()
os.register_at_fork(after_in_child=lambda: globals().update(_process=os.getpid()))
_KEPT = set()
"""Communicators with memory that peers may still touch after a failure."""


class Handle:
    """A native handle. After `end`, the last call in progress frees it, or `end` itself if there
    is none. Handles that belong to it are freed first.

    Any thread and any signal handler may call each method, since none waits for another. A single
    operation of a dict is atomic. A call registers before it reads whether the handle has ended;
    `end` marks the handle before it reads the calls. So at least one of the two sees the other."""

    def __init__(self, kind, free, owner=None):
        """kind: for messages. owner: the handle that this one belongs to, and ends with."""
        self._kind, self._free, self._owner = kind, free, owner
        self._process = _process
        self._users = {}  # calls in progress, and handles that belong to this one
        self._operations = {}
        self._has_ended = False
        if owner is not None:
            owner._users[self] = None
            if owner._has_ended:
                self.end()

    def use(self, what, work):
        """Returns work(whether the handle is open). The handle stays valid meanwhile."""
        if not self.is_here():
            raise ClosedException(
                f"{what}: the {self._kind} is of process {self._process}, from which this one was"
                " forked; a process uses what it has opened itself")
        call = object()
        try:
            self._users[call] = None
            return work(not self._has_ended)
        finally:
            self._users.pop(call, None)  # comes first: a signal handler may raise after it
            self._settle()

    def operate(self, what, work):
        """Returns work(). The handle has to be open, and one such operation runs at a time."""
        call = object()

        def alone(is_open):
            try:
                self._operations[call] = None
                if [*self._operations][0] is not call:
                    raise InvalidArgumentException(
                        f"{what}: another call is in progress on this {self._kind}; one at a time"
                        " may be")
                if not is_open:
                    raise ClosedException(f"{what}: the {self._kind} was closed")
                return work()
            finally:
                self._operations.pop(call, None)

        return self.use(what, alone)

    def is_here(self):
        """Whether this process made it, and not one that this one was forked from."""
        return self._process == _process

    def end(self):
        """Refuses further calls, and frees the handle once nothing uses it. Idempotent."""
        self._has_ended = True
        for user in [*self._users]:
            if isinstance(user, Handle):
                user.end()
        self._settle()

    def _settle(self):
        if not self._has_ended or self._users or not self.is_here():
            return
        free = vars(self).pop("_free", None)  # one caller gets it, also of several at once
        if free is not None:
            free()
            if self._owner is not None:
                self._owner._users.pop(self, None)
                self._owner._settle()


class Scope:
    """The base of all that a `with` closes. If the `with` ends with an exception, peers of each of
    the `_communicators` get it, in the list's order; then these close in the opposite order."""

    def _leave(self, failure):
        for each in self._communicators():
            each._ended(failure)
        for each in reversed(self._communicators()):
            each._close_quietly()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
        else:
            self._leave(value)


class Communicator(Scope):
    """This process's rank of a communicator, whose other ranks are JVMs' or guests.

    One thread at a time calls an operation; abort, failure and close may come from any, and from a
    signal handler. It is of the process that made it: in one that is forked from that, close does
    nothing, and every other call raises a ClosedException."""

    def __init__(self, comm, options):
        self._comm = comm
        self._options = options
        self._handle = Handle("communicator", self._free)
        self._held = []
        self.rank = native().wl_comm_rank(comm)
        self.size = native().wl_comm_size(comm)

    @staticmethod
    def from_environment(environment=None, deadline=60.0, options=None):
        """Collective over the ranks that a launcher started, each of which brings one.

        environment: variables, os.environ by default, that say which rank this is and where the
        others are; WINDLASS_HOST and what says how UCX reaches other hosts stand in os.environ as
        well. deadline: for all of it, in seconds."""
        until = Deadline(deadline)
        options = options or Options()
        comm = Communicator(start_from_environment(environment, options, until), options)
        try:
            comm.barrier(max(0.001, until.left()))  # behind it none finds this start's store
            return comm
        except BaseException as e:
            comm._leave(e)
            raise

    def _call(self, what, name, *arguments, on=None, holds=()):
        """One call of this rank, on its handle or another; what it touches stays until peers touch
        it no more."""
        def work():
            try:
                invoke(name, self._comm if on is None else on, *arguments)
            except BaseException:
                self._held.extend(holds)
                _KEPT.add(self)
                raise

        self._handle.operate(what, work)

    def _ns(self, deadline):
        return 0 if deadline is None else Deadline(deadline).ns()

    def _submit(self, what, operation, deadline_ns, holds=(), **fields):
        """One collective, of those fields of wl_call_t."""
        call = CollectiveCall(
            struct_size=ctypes.sizeof(CollectiveCall), operation=operation,
            deadline_ns=deadline_ns, **fields)
        self._call(what, "wl_submit", byref(call), holds=holds)

    def barrier(self, deadline=None):
        """Returns once all ranks have come."""
        self._submit("barrier", OP_BARRIER, self._ns(deadline))

    def _collective(self, what, operation, source, target, op, root, deadline):
        for name, each in (("array", source), ("output", target)):
            if not each.is_contiguous:
                raise InvalidArgumentException(
                    f"{what}: {name}, {each!r}, has strides {each.strides} and must be contiguous;"
                    " make a copy and use that")
        self._submit(
            what, operation, self._ns(deadline), in_=source.address, in_elements=source.numel,
            out=target.address, out_elements=target.numel, dtype=DTYPES[source.dtype][0], op=op,
            root=root, holds=(source, target))

    def broadcast(self, array, root, deadline=None):
        """`array` gets what it has on the root, on every rank; of one dtype and size everywhere."""
        both = view("broadcast: array", array)
        root = integer("broadcast: root", root, 0, self.size - 1)
        if not both.writable and self.rank != root:
            raise InvalidArgumentException(
                f"broadcast: array, {both!r}, is read-only; it must be writable where it gets the"
                " root's")
        self._collective("broadcast", OP_BROADCAST, both, both, 0, root, deadline)

    def all_reduce(self, array, output=None, op="sum", deadline=None):
        """`output`, `array` itself by default, gets the reduction of all ranks' arrays on every
        rank: by sum, max, min, product or avg, in ascending rank."""
        if op not in REDUCE_OPS:
            raise InvalidArgumentException(
                f"all_reduce: op is {op!r}; known: {' '.join(REDUCE_OPS)}")
        source = view("all_reduce: array", array)
        target = source if output is None else view("all_reduce: output", output)
        if not target.writable:
            raise InvalidArgumentException(
                "all_reduce: %s, %r, is read-only; it gets the result and must be writable"
                % ("array" if output is None else "output", target))
        if target.dtype != source.dtype or target.numel != source.numel:
            raise InvalidArgumentException(
                f"all_reduce: output is {target!r} and array is {source!r}; both must have one"
                " dtype and one number of elements")
        self._collective(
            "all_reduce", OP_ALL_REDUCE, source, target, REDUCE_OPS[op], 0, deadline)

    def split(self, color, key=None, deadline=None):
        """Collective: ranks of one color meet in a new communicator, by key, then rank; None on a
        rank whose color is negative. Both are integers of 32 bits: take a hash modulo 2**31."""
        color = integer("split: color", color)
        key = self.rank if key is None else integer("split: key", key)
        out = c_void_p()
        self._call("split", "wl_comm_split", color, key, self._ns(deadline), byref(out))
        return Communicator(out, self._options) if out else None

    def _again(self, until):
        return self.split(0, self.rank, until.left() + 5)

    def _words(self, operation, until, *own):
        """Collective: the words of each rank, in rank order."""
        count = len(own)
        every = (c_int64 * (count * self.size))()
        words = (c_int64 * count)(*own)
        self._submit(
            "exchange", operation, until.ns(), in_=ctypes.addressof(words), in_elements=count,
            out=ctypes.addressof(every), out_elements=len(every), dtype=DTYPES["i64"][0],
            holds=(words, every))
        return [tuple(every[rank * count:(rank + 1) * count]) for rank in range(self.size)]

    def _bytes(self, operation, until, own):
        """Collective: the bytes of each rank; ranks that say they give the same give them once."""
        most = 1 << 26
        digest = int.from_bytes(hashlib.sha256(own).digest()[:8], "big", signed=True)
        heads = self._words(operation, until, digest, len(own))
        for rank, (_, length) in enumerate(heads):
            if not 0 <= length <= most:
                raise MismatchException(
                    f"rank {rank} says that it gives {length} bytes, of at most {most}; run one"
                    " version of Windlass on all ranks", [rank])
        sender = [heads.index(head) for head in heads]
        counts = [head[1] if sender[rank] == rank else 0 for rank, head in enumerate(heads)]
        out = ctypes.create_string_buffer(max(1, sum(counts)))
        given = ctypes.create_string_buffer(own, max(1, len(own)))
        listed = (c_int64 * self.size)(*counts)
        self._submit(
            "exchange", operation, until.ns(), in_=ctypes.addressof(given),
            in_elements=counts[self.rank], out=ctypes.addressof(out), out_elements=sum(counts),
            dtype=DTYPES["u8"][0], out_counts=ctypes.addressof(listed),
            holds=(out, given, listed))
        every = Reader(out)
        parts = [every.take(count) for count in counts]
        return [parts[rank] for rank in sender]

    def _led(self, until, step):
        """Collective: what `step` gives, as bytes, on rank 0; where it raises there, all do."""
        self.barrier(until.left() + 5)
        own, failure = tried(lambda: b"\0" + step()) if self.rank == 0 else (b"", None)
        if failure is not None:
            own = packed("Bi", 1, failure.code) + str(failure).encode("utf-8")
        told = Reader(self._bytes(OP_LINK, until.later(5), own)[0])
        if failure is not None:
            raise failure
        with reading("what rank 0 told"):
            if told.byte() == 0:
                return told.rest()
            code = told.int()
        raise WindlassException.of(code, told.rest().decode("utf-8", "replace"))

    def _agree(self, until, here):
        """Collective: all say the same, or all raise."""
        every = self._words(OP_LINK, until, fingerprint(here))
        other = next((rank for rank, each in enumerate(every) if each != every[0]), None)
        if other is not None:
            texts = self._bytes(OP_LINK, until, here.encode("utf-8"))
            raise MismatchException(
                "rank 0 %s, rank %d %s" % (
                    printable(texts[0].decode("utf-8", "replace")), other,
                    printable(texts[other].decode("utf-8", "replace"))), [0, other])

    def failure(self):
        """The exception that every call raises from now on; None while the communicator lives."""
        def status(is_open):
            if not is_open:
                raise ClosedException("the communicator was closed")
            invoke("wl_comm_status", self._comm)

        return tried(lambda: self._handle.use("failure", status))[1]

    def abort(self, reason):
        """Ends it for all ranks, who get an AbortedException with the reason."""
        self._stop("abort", "wl_comm_abort", reason.encode("utf-8", "replace"))

    def _fail(self, code, culprits, message):
        ranks = (c_int32 * max(1, len(culprits)))(*culprits)
        self._stop("fail", "wl_comm_fail", code, ranks, len(culprits),
                   message.encode("utf-8", "replace"))

    def _stop(self, what, name, *arguments):
        def stop(is_open):
            with contextlib.suppress(ClosedException):  # it was closed meanwhile
                if is_open:
                    invoke(name, self._comm, *arguments)

        self._handle.use(what, stop)

    def close(self):
        """Leaves it; a call in progress ends with a ClosedException first. Idempotent.

        In a signal handler that has interrupted a call, that call frees the memory."""
        def leave(is_open):
            try:
                if is_open:
                    invoke("wl_comm_close", self._comm)
            finally:
                self._handle.end()

        if self._handle.is_here():
            self._handle.use("close", leave)

    def _free(self):
        for _ in range(200):
            if native().wl_comm_quiescent(self._comm):
                native().wl_comm_free(self._comm)
                self._held.clear()
                _KEPT.discard(self)
                return
            time.sleep(0.01)
        # Somebody may still read what this holds: it stays as long as the process.

    def _close_quietly(self):
        with contextlib.suppress(WindlassException):  # what ended it is being raised
            self.close()

    def _ended(self, failure):
        """Peers get what this rank ends with, unless it ends as it was asked to or they know."""
        if isinstance(failure, GeneratorExit) or (
                isinstance(failure, SystemExit) and failure.code in (None, 0)):
            return
        try:
            text = f"{type(failure).__name__}: {failure}"
        except Exception:
            text = type(failure).__name__
        with contextlib.suppress(WindlassException):  # what ended it is being raised
            if self.failure() is None:
                self.abort(f"rank {self.rank} ended with {text.rstrip(': ')}")

    def _communicators(self):
        return [self]

    def __repr__(self):
        return f"Communicator(rank {self.rank} of {self.size})"
