# SPDX-License-Identifier: Apache-2.0
"""Communicators, and native handles that any thread and any signal handler may close."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import struct
import time
from ctypes import byref, c_int32, c_int64, c_void_p
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

from .errors import (
    ClosedException, MismatchException, WindlassException, reading, require, tried)
from .deadline import Deadline
from .encoding import Reader, fingerprint, packed, printable
from .library import (
    CollectiveCall, DTYPES, Message, OP_ALL_REDUCE, OP_BARRIER, OP_BROADCAST, OP_LINK, OP_RECEIVE,
    OP_SEND, PREMULTIPLIED_SUM, REDUCE_OPS, RankState, integer, invoke, native, sized)
from .start import Options, start_from_environment
from .tensors import Tensor, view

_process = os.getpid()
os.register_at_fork(after_in_child=lambda: globals().update(_process=os.getpid()))

_Self = TypeVar("_Self")
_LONGEST_BYTES = 1 << 26  # of what one rank gives in an exchange

ANY = -1
"""Any source or any tag of a receive."""


class Received(NamedTuple):
    """Result of a receive: the rank that sent the message, its tag, and its elements."""

    source: int
    tag: int
    count: int


_KEPT = set()
"""Communicators that failed and hold memory which peers may still access."""


class Handle:
    """Lifetime of a native handle. `end` frees the handle, or the last call in progress does.
    Handles that belong to this one are freed first.

    Any thread and any signal handler may call each method, since none waits for another. A single
    operation of a dict is atomic. A call registers before it reads whether the handle has ended.
    `end` marks the handle before it reads the calls. So at least one of the two sees the other."""

    def __init__(self, kind: str, free: Callable[[], None], owner: Handle | None = None) -> None:
        """kind: for messages. owner: the handle that this one belongs to, and ends with."""
        self._kind, self._free, self._owner = kind, free, owner
        self._process = _process
        # Calls in progress, with True for an exclusive one, and handles that belong to this one.
        self._users = {}
        self._has_ended = False
        if owner is not None:
            owner._users[self] = False
            if owner._has_ended:
                self.end()

    def use(self, what: str, work: Callable[[], Any], alone: bool = False) -> Any:
        """Returns work(). The handle stays valid meanwhile. Raises ClosedException after `end`.

        alone: True if only one such call may run at a time."""
        require(self.is_here(),
                f"{what}: the {self._kind} is of process {self._process}, from which this one was"
                " forked; a process uses what it has opened itself", ClosedException)
        call = object()
        try:
            self._users[call] = alone
            require(not alone or len(self._users) == 1 or call is next(
                each for each in [*self._users] if self._users.get(each)),
                    f"{what}: another call is in progress on this {self._kind}; one at a time may"
                    " be")
            require(not self._has_ended, f"{what}: the {self._kind} was closed", ClosedException)
            return work()
        finally:
            self._users.pop(call, None)  # comes first: a signal handler may raise after it
            self._settle()

    def is_here(self) -> bool:
        """Returns False in a process that was forked after this handle was made."""
        return self._process == _process

    def end(self) -> None:
        """Refuses further calls, and frees the handle once nothing uses it. Idempotent."""
        self._has_ended = True
        for user in [*self._users]:
            if isinstance(user, Handle):
                user.end()
        self._settle()

    def _settle(self):
        if not self._has_ended or self._users or not self.is_here():
            return
        free = vars(self).pop("_free", None)  # only one of several concurrent callers gets it
        if free is not None:
            free()
            if self._owner is not None:
                self._owner._users.pop(self, None)
                self._owner._settle()


class Scope:
    """Base class of objects that a `with` closes. If the `with` ends with an exception, the peers
    of each communicator in `_communicators()` get its text first."""

    def _communicators(self) -> list[Communicator]:
        return []

    def _leave(self, failure):
        if failure is None:
            self.close()
            return
        for each in self._communicators():
            each._report(failure)
        with contextlib.suppress(WindlassException):  # `failure` is raised instead
            self.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: Any, failure: BaseException | None, trace: Any) -> None:
        self._leave(failure)

    def close(self) -> None:
        """Closes the communicators of this object, in the opposite order. Idempotent."""
        with contextlib.ExitStack() as stack:
            for each in self._communicators():
                stack.callback(each.close)


def _ns(deadline):
    return 0 if deadline is None else Deadline(deadline).ns()


class Communicator(Scope):
    """One rank of a communicator. The other ranks are JVMs or Python processes.

    `rank` is this rank, from 0 on, and `size` the number of ranks. Deadlines are seconds; None
    stands for the communicator's own. One thread at a time calls an operation. Any thread and any
    signal handler may call `abort`, `failure` and `close`. In a process that was forked from the
    communicator's, `close` does nothing, and other calls raise ClosedException."""

    def __init__(self, comm: c_void_p, options: Options) -> None:
        self._comm = comm
        self._options = options
        self._handle = Handle("communicator", self._free)
        self._held = []
        self.rank: int = native().wl_comm_rank(comm)
        self.size: int = native().wl_comm_size(comm)

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None, deadline: float = 60.0,
                         options: Options | None = None) -> Communicator:
        """Collective: joins the ranks that a launcher started, one in each process.

        environment: the launcher's variables, `os.environ` by default. WINDLASS_HOST and the
        settings of UCX must be in `os.environ` as well. deadline: for the whole start."""
        until = Deadline(deadline)
        options = options or Options()
        with contextlib.ExitStack() as unfinished:
            comm = unfinished.enter_context(
                Communicator(start_from_environment(environment, options, until), options))
            # A start that comes after this barrier can't find the store of this one.
            comm.barrier(max(0.001, until.left()))
            unfinished.pop_all()
            return comm

    def _call(self, what, name, *arguments, on=None, holds=()):
        """Calls a function of the C ABI on the handle `on`, by default the communicator's.

        If the call fails, peers may still access its memory. So this keeps `holds` alive."""
        def work():
            try:
                invoke(name, self._comm if on is None else on, *arguments)
            except BaseException:
                self._held.extend(holds)
                _KEPT.add(self)
                raise

        self._handle.use(what, work, alone=True)

    def _submit(self, what, operation, deadline_ns, source=None, target=None, holds=(), **fields):
        """Runs a collective. `fields` are further ones of the C ABI's wl_call_t."""
        if source is not None:
            for name, each in (("array", source), ("output", target)):
                require(each.is_contiguous,
                        f"{what}: {name}, {each!r}, has strides {each.strides} and must be"
                        " contiguous; make a copy and use that")
            fields.update(
                in_=source.address, in_elements=source.numel, out=target.address,
                out_elements=target.numel, dtype=DTYPES[source.dtype][0])
        call = sized(CollectiveCall, operation=operation, deadline_ns=deadline_ns, **fields)
        self._call(what, "wl_submit", byref(call), holds=(source, target, *holds))

    def barrier(self, deadline: float | None = None) -> None:
        """Collective: returns once all ranks have called it."""
        self._submit("barrier", OP_BARRIER, _ns(deadline))

    def broadcast(self, array: Any, root: int, deadline: float | None = None) -> None:
        """Collective: copies the root's `array` into `array` of every other rank.

        array: contiguous, as `tensor` takes it, of one dtype and size on all ranks."""
        both = view("broadcast: array", array)
        root = integer("broadcast: root", root, 0, self.size - 1)
        require(both.writable or self.rank == root,
                f"broadcast: array, {both!r}, is read-only; it must be writable where it gets the"
                " root's")
        self._submit("broadcast", OP_BROADCAST, _ns(deadline), both, both, root=root)

    def all_reduce(self, array: Any, output: Any = None, op: str = "sum",
                   deadline: float | None = None, factor: float | None = None) -> None:
        """Collective: writes the reduction of all ranks' arrays to `output`, by default `array`.

        array, output: contiguous, as `tensor` takes them, of one dtype and size on all ranks.
        op: sum, max, min, product, avg, and, or or xor, applied in ascending order of ranks.
        factor: multiplies this rank's array before the sum; every rank has its own factor."""
        require(op in REDUCE_OPS, f"all_reduce: op is {op!r}; known: {' '.join(REDUCE_OPS)}")
        require(factor is None or op == "sum",
                f"all_reduce: op is {op!r}; only a sum takes a factor")
        require(factor is None or isinstance(factor, (int, float)),
                f"all_reduce: factor is {factor!r}; it must be a number")
        source = view("all_reduce: array", array)
        target = source if output is None else view("all_reduce: output", output)
        require(target.writable,
                "all_reduce: %s, %r, is read-only; it gets the result and must be writable"
                % ("array" if output is None else "output", target))
        require((target.dtype, target.numel) == (source.dtype, source.numel),
                f"all_reduce: output is {target!r} and array is {source!r}; both must have one"
                " dtype and one number of elements")
        self._submit("all_reduce", OP_ALL_REDUCE, _ns(deadline), source, target,
                     op=REDUCE_OPS[op] if factor is None else PREMULTIPLIED_SUM,
                     factor=0.0 if factor is None else factor)

    def send(self, array: Any, peer: int, tag: int = 0, deadline: float | None = None) -> None:
        """Sends `array` to rank `peer`, which receives it. The other ranks take no part.

        array: contiguous, as `tensor` takes it. It may be changed afterwards. tag: 0 or more.
        Arrays of more than 4,096 bytes may wait for their receive."""
        self._messages("send", deadline, self._message("send", OP_SEND, array, peer, tag))

    def receive(self, array: Any, peer: int, tag: int = 0,
                deadline: float | None = None) -> Received:
        """Receives a message of rank `peer` into the first elements of `array`.

        array: contiguous, as `tensor` takes it, of the message's dtype. peer, tag: may be ANY."""
        message = self._message("receive", OP_RECEIVE, array, peer, tag)
        return self._messages("receive", deadline, message)

    def send_receive(self, array: Any, to: int, output: Any, source: int, tag: int = 0,
                     deadline: float | None = None) -> Received:
        """Sends `array` to rank `to` and receives into `output` from rank `source`, together."""
        return self._messages(
            "send_receive", deadline, self._message("send_receive", OP_SEND, array, to, tag),
            self._message("send_receive", OP_RECEIVE, output, source, tag))

    def _message(self, what, operation, array, peer, tag):
        """Returns a wl_message_t and its tensor."""
        tensor = view(f"{what}: array", array)
        require(tensor.is_contiguous, f"{what}: array, {tensor!r}, must be contiguous")
        require(tensor.writable or operation == OP_SEND,
                f"{what}: array, {tensor!r}, is read-only; it gets the message")
        least = ANY if operation == OP_RECEIVE else 0
        return sized(
            Message, operation=operation, dtype=DTYPES[tensor.dtype][0], data=tensor.address,
            elements=tensor.numel, peer=integer(f"{what}: peer", peer, least, self.size - 1),
            tag=integer(f"{what}: tag", tag, least)), tensor

    def _messages(self, what, deadline, *messages):
        """Runs messages, and returns the Received of the last."""
        structs = (Message * len(messages))(*(message for message, _ in messages))
        self._call(what, "wl_messages", structs, len(messages), _ns(deadline),
                   holds=[tensor for _, tensor in messages])
        last = structs[-1]
        if last.operation == OP_RECEIVE:
            return Received(last.source, last.found_tag, last.received)
        return None

    def split(self, color: int, key: int | None = None,
              deadline: float | None = None) -> Communicator | None:
        """Collective: returns a communicator of the ranks with this color, ordered by key and rank.

        color: None is returned if it is negative. key: this rank by default. Both are 32-bit
        integers, so take a hash modulo 2**31."""
        color = integer("split: color", color)
        key = self.rank if key is None else integer("split: key", key)
        out = c_void_p()
        self._call("split", "wl_comm_split", color, key, _ns(deadline), byref(out))
        return Communicator(out, self._options) if out else None

    def _gather(self, operation, until, dtype, own, total, counts=None):
        """Collective: returns the bytes of all ranks' elements, in rank order.

        total: elements of all ranks. counts: elements of each rank, None if they are equal."""
        size = DTYPES[dtype][1]
        given = ctypes.create_string_buffer(own, max(1, len(own)))
        out = ctypes.create_string_buffer(max(1, total * size))
        listed = counts and (c_int64 * self.size)(*counts)
        self._submit(
            "exchange", operation, until.ns(),
            Tensor(ctypes.addressof(given), dtype, [len(own) // size], owner=given),
            Tensor(ctypes.addressof(out), dtype, [total], owner=out), [listed],
            out_counts=counts and ctypes.addressof(listed))
        return out.raw[:total * size]

    def _words(self, operation, until, *own):
        """Collective: returns the 64-bit words of each rank, in rank order."""
        form = f"={len(own)}q"
        own = struct.pack(form, *own)
        every = self._gather(operation, until, "i64", own, len(own) // 8 * self.size)
        return list(struct.iter_unpack(form, every))

    def _bytes(self, operation, until, own):
        """Collective: returns the bytes of each rank, in rank order. Equal ones are sent once."""
        digest = int.from_bytes(hashlib.sha256(own).digest()[:8], "big", signed=True)
        heads = self._words(operation, until, digest, len(own))
        for rank, (_, length) in enumerate(heads):
            require(0 <= length <= _LONGEST_BYTES,
                    f"rank {rank} gives {length} bytes, but the limit is"
                    f" {_LONGEST_BYTES};"
                    " run one version of Windlass on all ranks", MismatchException, [rank])
        sender = [heads.index(head) for head in heads]
        counts = [head[1] if sender[rank] == rank else 0 for rank, head in enumerate(heads)]
        own = own if sender[self.rank] == self.rank else b""
        every = Reader(self._gather(operation, until, "u8", own, sum(counts), counts))
        parts = [every.take(count) for count in counts]
        return [parts[rank] for rank in sender]

    def _on_each(self, until, step):
        """Collective: returns the result of `step` on each rank. If one fails, all ranks raise."""
        own, failure = tried(lambda: b"\0" + step())
        if failure is not None:
            own = packed("Biu", 1, failure.code, str(failure))
        results = [Reader(each) for each in self._bytes(OP_LINK, until.later(5), own)]
        if failure is not None:
            raise failure
        for rank, result in enumerate(results):
            with reading(f"the result of rank {rank}"):
                if result.field("B"):
                    code, text = result.fields("iu")
                    raise WindlassException.of(code, f"rank {rank}: {text}", [rank])
        return [result.rest() for result in results]

    def _agree(self, until, call):
        """Collective: raises on all ranks unless `call`, which describes a call, is the same."""
        every = self._words(OP_LINK, until, fingerprint(call))
        other = next((rank for rank, each in enumerate(every) if each != every[0]), None)
        if other is not None:
            texts = [printable(each.decode("utf-8", "replace"))
                     for each in self._bytes(OP_LINK, until, call.encode("utf-8"))]
            raise MismatchException(
                f"rank 0 {texts[0]}, rank {other} {texts[other]}", [0, other])

    def failure(self) -> WindlassException | None:
        """Returns the exception that every call raises from now on; None if there is none."""
        return tried(lambda: self._handle.use(
            "failure", lambda: invoke("wl_comm_status", self._comm)))[1]

    def _has_closed(self, rank):
        """Returns whether a rank has left the communicator."""
        state = sized(RankState)
        self._handle.use("report", lambda: native().wl_comm_state(self._comm, rank, byref(state)))
        return state.closed != 0

    def abort(self, reason: str) -> None:
        """Ends the communicator. All ranks raise AbortedException with the reason."""
        self._stop("abort", "wl_comm_abort", reason.encode("utf-8", "replace"))

    def _fail(self, code, faulty_ranks, message):
        ranks = (c_int32 * max(1, len(faulty_ranks)))(*faulty_ranks)
        self._stop("fail", "wl_comm_fail", code, ranks, len(faulty_ranks),
                   message.encode("utf-8", "replace"))

    def close(self) -> None:
        """Leaves the communicator. A call in progress raises ClosedException first. Idempotent.

        If a signal handler calls this during another call, that call frees the memory."""
        if self._handle.is_here():
            try:
                self._stop("close", "wl_comm_close")
            finally:
                self._handle.end()

    def _stop(self, what, name, *arguments):
        """Calls a function of the C ABI beside operations; does nothing after `close`."""
        is_here = self._handle.is_here()
        with contextlib.suppress(ClosedException) if is_here else contextlib.nullcontext():
            self._handle.use(what, lambda: invoke(name, self._comm, *arguments))

    def _free(self):
        for _ in range(200):
            if native().wl_comm_quiescent(self._comm):
                native().wl_comm_free(self._comm)
                self._held.clear()
                _KEPT.discard(self)
                return
            time.sleep(0.01)
        # Peers may still read the memory, so it stays until this process ends.

    def _report(self, failure):
        """Aborts with the text of `failure`, unless peers know one or this is a plain exit."""
        if isinstance(failure, GeneratorExit) or (
                isinstance(failure, SystemExit) and failure.code in (None, 0)):
            return
        text = type(failure).__name__
        with contextlib.suppress(Exception):  # an exception may have no text
            text = f"{text}: {failure}"
        with contextlib.suppress(WindlassException):  # `failure` is raised instead
            if self.failure() is None:
                self.abort(f"rank {self.rank} ended with {text.rstrip(': ')}")

    def _communicators(self):
        return [self]

    def __repr__(self) -> str:
        return f"Communicator(rank {self.rank} of {self.size})"
