# SPDX-License-Identifier: Apache-2.0
"""What Python ranks of the tests run: `ranks.py NAME`, with what a launcher tells. A failure of
Windlass is printed as the name of its class, its faulty_ranks and its message. It ends when whoever
started it does."""

import ctypes
import functools
import logging
import os
import random
import signal
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../native/python"))

import numpy as np

import windlass

PACKAGE = os.path.dirname(windlass.__file__)
SOON = float(os.environ.get("TEST_DEADLINE", "40"))


def say(*words):
    print(*words, flush=True)


def joined():
    return windlass.Communicator.from_environment(deadline=SOON)


def collectives():
    """As PythonRanksTest's method of this name."""
    with joined() as comm:
        for round_ in range(3):
            for dtype in ("uint8", "int64", "float16", "float32", "float64"):
                for count in (0, 1, 7, 5000):
                    sums(comm, round_, dtype, count)
            comm.barrier(SOON)
        say("done")


def sums(comm, round_, dtype, count):
    own = (np.arange(count) % 13 + comm.rank + round_).astype(dtype)
    total = np.zeros(count, dtype)
    comm.all_reduce(own, total, deadline=SOON)
    wanted = sum(np.arange(count) % 13 + rank + round_ for rank in range(comm.size))
    assert (total == wanted.astype(dtype)).all(), (dtype, count)
    comm.all_reduce(own, op="max", deadline=SOON)
    assert (own == (np.arange(count) % 13 + comm.size - 1 + round_).astype(dtype)).all()
    own = (np.arange(count) % 13 + 4 * comm.rank).astype(dtype)
    terms = [(np.arange(count) % 13 + 4 * rank).astype(dtype) for rank in range(comm.size)]
    if np.issubdtype(dtype, np.integer):
        for op, combined in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
            comm.all_reduce(own, total, op, deadline=SOON)
            assert (total == functools.reduce(combined, terms)).all(), (op, dtype, count)
    else:
        comm.all_reduce(own, total, factor=0.5 * (comm.rank + 1), deadline=SOON)
        wanted = sum(0.5 * (rank + 1) * term for rank, term in enumerate(terms))
        assert (total == wanted.astype(dtype)).all(), (dtype, count)
    got = np.zeros(count + 1, dtype)
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    received = comm.send_receive(own, after, got, before, round_, deadline=SOON)
    assert received == (before, round_, count) and (got[:count] == terms[before]).all()
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(own, rank, 5)
    else:
        assert comm.receive(got, windlass.ANY, windlass.ANY) == (0, 5, count)
        assert (got[:count] == terms[0]).all()
    for root in range(comm.size):
        told = (np.arange(count) % 7 + root if comm.rank == root else np.zeros(count)).astype(dtype)
        comm.broadcast(told, root, deadline=SOON)
        assert (told == (np.arange(count) % 7 + root).astype(dtype)).all()


def page():
    """Runs the program of docs/how-to/use-python-ranks.md."""
    with windlass.Communicator.from_environment(deadline=60) as comm:
        gradient = np.full(1000, comm.rank, np.float32)
        comm.all_reduce(gradient, op="avg", deadline=10)
        comm.broadcast(gradient, root=0)
        comm.barrier()
    assert (gradient == (comm.size - 1) / 2).all()
    say("done")


def integers():
    """What 32 or 64 bits do not hold is refused, and its lowest bits are never taken for it."""
    with joined() as comm:
        one = np.zeros(1, np.float32)
        hash_ = 3600164055
        cases = [
            (lambda: comm.split(hash_), "split: color is 3600164055; it must be an integer from -2147483648"),
            (lambda: comm.split(-(1 << 32) + 3), "split: color"),
            (lambda: comm.split(0, 1 << 31), "split: key is 2147483648"),
            (lambda: comm.split(1.5), "split: color is 1.5; it must be an integer"),
            (lambda: comm.broadcast(one, (1 << 32) + 1), "broadcast: root is 4294967297"),
            (lambda: comm.broadcast(one, 1.0), "broadcast: root is 1.0; it must be an integer"),
            (lambda: comm.broadcast(one, -1), "broadcast: root is -1; it must be an integer from 0 to 1"),
            (lambda: windlass.Options(cores=(1 << 32) + 1), "cores is 4294967297"),
            (lambda: windlass.Options(blocks=65), "blocks is 65; it must be an integer from 0 to 64"),
            (lambda: windlass.Options(blocks=(1 << 32) + 1), "blocks"),
            (lambda: windlass.Options(first_sequence=(1 << 32) + 1), "first_sequence is"),
            (lambda: windlass.Tensor(one.ctypes.data, "f32", [1.5]), "an extent is 1.5"),
            (lambda: windlass.Tensor(one.ctypes.data, "f32", [1 << 63]), "an extent is"),
            (lambda: windlass.Tensor(one.ctypes.data, "f32", [1], [-1]), "a stride is -1"),
            (lambda: comm._call("x", "wl_comm_split", 1 << 31, 0, 0, None), "an argument is 2147483648"),
            (lambda: comm.broadcast(windlass.Tensor(one.ctypes.data, "f32", [1 << 33, 1 << 33], [0, 0]), 0), ""),
        ]
        for call, words in cases:
            try:
                call()
            except windlass.InvalidArgumentException as e:
                assert words in str(e), (words, str(e))
            else:
                raise SystemExit("it was taken: " + words)
        assert comm.split(np.int64(7), np.int32(-comm.rank)).rank == comm.size - 1 - comm.rank
        assert comm.split(hash_ % 2**31).size == comm.size
        assert comm.split(-1) is None
        negative = windlass.Options(first_sequence=-1)
        announced = windlass.job._Announcement("", "", "", 1, 1, "").bytes(negative)
        assert announced.count(b"\xff" * 4) == 1, announced
        comm.barrier(SOON)
    say("done")


def barriers():
    """Barriers until something ends them."""
    with joined() as comm:
        say("is there")
        while True:
            comm.barrier(SOON)


def waits():
    """One barrier, to which no other comes."""
    with joined() as comm:
        say("is there")
        comm.barrier(SOON)


def joins():
    with joined() as comm:
        say(comm)
        comm.barrier(SOON)


def launches():
    """What variables say, for each line of a file."""
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file.read().splitlines():
            variables = dict(each.split("=", 1) for each in line.split(" ") if each)
            try:
                found = windlass.LaunchEnvironment(variables)
                at = "%s:%d" % found.rendezvous if found.rendezvous else "none"
                say(found.launcher, found.rank, found.size, found.job or "none", at,
                    str(found.launcher_has_store).lower())
            except windlass.InvalidArgumentException:
                say("refused")


def forges():
    """Comes without a look at what the store shows of the token."""
    windlass.store.hmac.compare_digest = lambda claimed, wanted: True
    joins()


def another():
    """Does something else than the others, who come to a barrier."""
    with joined() as comm:
        comm.all_reduce(np.zeros(4, np.float32), deadline=SOON)


def stays():
    with joined() as comm:
        say("is there")
        time.sleep(SOON)


def raised(call, *words):
    """The exception of a call, which has those words."""
    try:
        call()
    except windlass.WindlassException as e:
        assert all(each in str(e) for each in words), (words, str(e))
        return e
    raise SystemExit("it was taken: %s" % (words,))


def messages(comm):
    """What a user reads names the call and its argument, and says what must be."""
    a, b = np.zeros(4, np.float32), np.zeros(4, np.float64)
    read_only = np.zeros(4, np.float32)
    read_only.flags.writeable = False
    raised(lambda: comm.all_reduce([1, 2]), "all_reduce: array: a list is no tensor; give a numpy")
    raised(lambda: comm.all_reduce(a, a[::-1]), "all_reduce: output: strides are (-4,) bytes",
           "make a copy")
    raised(lambda: comm.all_reduce(a[::2]), "all_reduce: array, ", "must be contiguous")
    raised(lambda: comm.all_reduce(a, read_only), "all_reduce: output, ", "must be writable")
    raised(lambda: comm.all_reduce(a, b), "output is Tensor(f64[4]) and array is Tensor(f32[4]); both must")
    raised(lambda: comm.all_reduce(np.array([object()])), "all_reduce: array: an array of type |O",
           "convert it to numbers")
    raised(lambda: comm.all_reduce(np.zeros(2, "M8[s]")), "a.view('u8')")
    raised(lambda: comm.all_reduce(np.zeros(2, "c16")), "convert it to numbers")
    raised(lambda: comm.broadcast(a.astype(">f4"), 0), "broadcast: array: an array of type >f4, whose")
    raised(lambda: comm.broadcast(a, comm.size), "root is %d; it must be" % comm.size)
    for deadline in (0, float("inf"), "5", True):
        raised(lambda: comm.barrier(deadline),
               "deadline is %r; it must be a finite number of seconds, more than 0" % (deadline,))
    raised(lambda: windlass.tensor(a, "bf16"), "dtype is 'bf16', of 2 bytes, and the array has f32, of 4",
           "give wire='bf16'")
    raised(lambda: windlass.tensor(a, "b16"), "dtype is 'b16'; known: bool u8")
    raised(lambda: windlass.Tensor(4097, "f32", [2]), "for f32 it must be a multiple of 4")
    error = windlass.library.ErrorStruct()
    for code, text, wanted in (
            (2, b"rank 0 is in allReduce, rank 1 in barrier", "rank 0 is in all_reduce, rank 1 in barrier"),
            (5, b"my allReduce is over", "my allReduce is over")):
        error.message = text
        assert str(windlass.library._error(code, error)) == wanted
    raised(lambda: comm.all_reduce(np.zeros(4, np.int32), op="avg"), "all_reduce: dtype i32 doesn't reduce with avg")


def refusals():
    """Arguments that are refused before anything is sent."""
    with joined() as comm:
        messages(comm)
        for wrong in (
                lambda: comm.all_reduce(np.zeros(4, np.float32)[::2]),
                lambda: comm.all_reduce(np.zeros(4, np.float32), np.zeros(5, np.float32)),
                lambda: comm.all_reduce(np.zeros(4, np.float32), op="median"),
                lambda: comm.all_reduce(np.zeros(4, np.float32), op="max", factor=0.5),
                lambda: comm.all_reduce(np.zeros(4, np.float32), factor="half"),
                lambda: comm.all_reduce([1, 2, 3]),
                lambda: comm.barrier(0),
                lambda: comm.barrier(float("nan")),
                lambda: windlass.Tensor(4097, "f32", [2]),
                lambda: windlass.Tensor(4096, "f33", [2]),
                lambda: windlass.Tensor(4096, "f32", [2], [-1]),
                lambda: windlass.tensor(np.zeros(3, np.uint16), "f32")):
            try:
                wrong()
                raise SystemExit("it was taken")
            except windlass.InvalidArgumentException:
                pass
        read_only = np.zeros(4, np.float32)
        read_only.flags.writeable = False
        try:
            comm.all_reduce(read_only)
            raise SystemExit("it was taken")
        except windlass.InvalidArgumentException:
            pass
        other = np.dtype(np.float32).newbyteorder()
        for array, cure in (
                (np.zeros(3, other), "convert it, as by a.astype(a.dtype.newbyteorder('='))"),
                (np.zeros(3, "V2"), "view it as an integer of its size")):
            try:
                windlass.tensor(array)
                raise SystemExit("it was taken")
            except windlass.UnsupportedException as e:
                assert cure in str(e), e
        view = windlass.tensor(np.zeros((4, 6), np.uint16)[:, 1:3], "bf16")
        assert (view.shape, view.strides, view.is_contiguous) == ([4, 2], [6, 1], False)
        comm.barrier(SOON)
    try:
        comm.barrier()
        raise SystemExit("it was taken")
    except windlass.ClosedException:
        say("done")


def scalars():
    """numpy's scalars are values; a 0-d array is memory."""
    with joined() as comm:
        values = np.arange(4, dtype=np.float32) + comm.rank
        for call in (lambda: comm.all_reduce(values.mean()), lambda: comm.broadcast(values[0], 0)):
            try:
                call()
                raise SystemExit("it was taken")
            except windlass.InvalidArgumentException as e:
                say(type(e).__name__, e)
        one = np.array(values.mean())
        comm.all_reduce(one)
        say("sum", float(one))


class Textless(Exception):
    def __str__(self):
        raise ValueError("it has no text")


def leaves():
    """Ends amid a `with`, as the argument says."""
    ends = {"key": KeyError("mine"), "interrupt": KeyboardInterrupt(), "status": SystemExit(3),
            "textless": Textless(), "quit": SystemExit(0)}
    try:
        with joined() as comm:
            if sys.argv[2] == "windlass":
                comm.all_reduce(np.zeros(4, np.float32), op="median")
            raise ends[sys.argv[2]]
    except BaseException as e:
        say("done" if e in ends.values() or "median" in str(e) else repr(e))


def forks():
    """A child that is forked while ranks start does not disturb them."""
    with joined() as comm:
        child = os.fork()
        if child == 0:
            try:
                with comm:
                    in_a_child(comm)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert comm.failure() is None
        comm.barrier(SOON)
    say("done")


def early_store():
    """The store's thread may have ended before its owner closes the store."""
    from windlass.server import StoreServer

    server = StoreServer(("127.0.0.1", 0), bytes(32), None)
    server.close()
    assert not server._thread.is_alive()
    server.close()
    say("done")


def earlier():
    """Rank 0, before whom others find the store of an earlier start, which then ends."""
    from windlass.server import StoreServer

    launch = windlass.LaunchEnvironment()
    server = StoreServer(launch.rendezvous, launch.token, windlass.deadline.Deadline(SOON))
    while not server._table.get("start/rank/1"):
        time.sleep(0.01)
    server.close()
    joins()


def seals():
    import seal_checks

    seal_checks.run()
    say("done")


def store():
    import store_checks

    store_checks.run()
    say("done")


def fuzz():
    import fuzz_checks

    fuzz_checks.run(int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
    say("done")


def package():
    import package_checks

    package_checks.run()
    say("done")


def in_a_child(comm):
    for call in (
            comm.barrier,
            lambda: comm.all_reduce(np.zeros(4, np.float32)),
            lambda: comm.split(0),
            lambda: comm.abort("from a child")):
        try:
            call()
            raise SystemExit("it was taken")
        except windlass.ClosedException as e:
            assert "of process %d, from which this one was forked" % os.getppid() in str(e), e
    assert isinstance(comm.failure(), windlass.ClosedException)
    library, structs = windlass.native(), windlass.library
    error = structs.sized(structs.ErrorStruct)
    for code in (
            library.wl_comm_close(comm._comm, ctypes.byref(error)),
            library.wl_comm_abort(comm._comm, b"", ctypes.byref(error)),
            library.wl_submit(comm._comm, ctypes.byref(structs.CollectiveCall()),
                              ctypes.byref(error))):
        assert code == windlass.ClosedException.code, code
    library.wl_comm_free(comm._comm)


def handlers():
    """A signal handler may ask and abort wherever the main thread is in a call."""
    seen = []
    with joined() as comm:
        def asks(*_):
            seen.append(comm.failure())
        signal.signal(signal.SIGUSR1, asks)

        def send():
            while len(seen) < 2000:
                before = len(seen)
                os.kill(os.getpid(), signal.SIGUSR1)
                while len(seen) == before:
                    time.sleep(0)
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        while sender.is_alive():
            comm.failure()
        comm.barrier(SOON)
        signal.signal(signal.SIGUSR1, lambda *_: (comm.abort("by a handler"), seen.append(None)))

        class Interrupted:
            def __getattr__(self, name):
                if name == "wl_comm_quiescent":
                    os.kill(os.getpid(), signal.SIGUSR1)
                return getattr(library, name)
        library = windlass.native()
        windlass.library._library = Interrupted()
        comm.close()
        windlass.library._library = library
    assert len(seen) > 2000
    say("done")


class Link(windlass.Link):
    """A link whose receivers do not ask for a version. It has no window."""

    def __init__(self, communicator):
        self.name, self._whose, self.communicator = "none", "", communicator
        self.offered, self.goes_on = threading.Event(), threading.Event()

    def _offer(self, *_):
        self.offered.set()
        self.goes_on.wait(SOON)


def closes():
    """A transfer, its link and a send end on several threads, and every handle is freed once."""
    comm = joined()
    library, freed = windlass.native(), []

    class Slow:
        def __getattr__(self, name):
            if name != "wl_transfer_free":
                return getattr(library, name)
            return lambda handle: (freed.append(handle), time.sleep(0.05))
    windlass.library._library = Slow()
    link = Link(comm)
    transfer = windlass.LinkTransfer(link, 0, [1, 2], [])

    def send():
        try:
            transfer.send(1, SOON)
        except windlass.DeadlineExceededException:
            freed.append("sent")
    sender = threading.Thread(target=send)
    sender.start()
    assert link.offered.wait(SOON)
    try:
        transfer.send(2, SOON)
        raise SystemExit("it was taken")
    except windlass.InvalidArgumentException:
        pass
    transfer.close()
    assert freed == [], freed
    link.goes_on.set()
    sender.join()
    assert freed == [1, 2, "sent"], freed
    del freed[:]
    transfers = [windlass.LinkTransfer(link, 0, [number], []) for number in range(4)]
    threads = [threading.Thread(target=each.close) for each in transfers for _ in range(2)]
    threads.append(threading.Thread(target=comm.close))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(freed) == [0, 1, 2, 3], freed
    say("done")


class Watched:
    """The native library. It knows which handles were freed, and records their later uses."""

    FREES = ("wl_comm_free", "wl_window_free", "wl_transfer_free")
    FAKED = ("wl_transfer_move", "wl_transfer_free")

    def __init__(self, library):
        self.library, self.freed, self.faults = library, [], []
        self.before = {}  # name: what runs once, before the function of that name

    def __getattr__(self, name):
        function = (lambda *_: 0) if name in self.FAKED else getattr(self.library, name)

        def call(*arguments):
            handles = [each for each in arguments if isinstance(each, ctypes.c_void_p)]
            self.before.pop(name, lambda: None)()
            self.look(name, handles)
            if name in self.FREES:
                self.freed.extend(handles)
                return function(*arguments)
            result = function(*arguments)
            self.look(name, handles)
            return result
        return call

    def look(self, name, handles):
        freed = [each for each in handles if any(each is other for other in self.freed)]
        self.faults.extend((name, each) for each in freed)


class Ends:
    """What one rank has open: a communicator, a link to itself, a transfer that moves nothing."""

    def __init__(self, watched, number):
        watched.freed, watched.faults = [], []
        self.watched = watched
        variables = {"WINDLASS_RANK": "0", "WINDLASS_WORLD_SIZE": "1",
                     "WINDLASS_JOB": "ends-%d-%d" % (os.getpid(), number)}
        self.comm = windlass.Communicator.from_environment(variables, SOON)
        self.link = windlass.Link(
            "itself", "", self.comm, self.comm.split(0), 0, windlass.deadline.Deadline(SOON))
        self.link._offer = lambda *_: windlass.deadline.Deadline(SOON)
        self.transfer = windlass.LinkTransfer(self.link, 0, [ctypes.c_void_p(1 << 12)], [])
        self.longest = 0.0  # seconds that a close has taken
        self.calls = [
            self.comm.failure,
            self.comm.barrier,
            lambda: self.comm.abort("it ends"),
            lambda: self.comm._fail(5, [0], "it ends"),
            lambda: self.comm.all_reduce(np.zeros(3, np.float32)),
            lambda: self.comm.split(0).close(),
            lambda: self.link._test(self.link._ASKED, 1),
            lambda: self.link._move("wl_put", 0, self.link._NEWEST, 5),
            lambda: self.transfer.send(1, SOON),
            self.transfer.close,
            self.link.close,
            self.another,
        ]
        self.ends = [self.comm.close, self.link.close, self.transfer.close]
        self.others = []

    def another(self):
        self.others.append(ctypes.c_void_p(1 << 12))
        windlass.LinkTransfer(self.link, 1, self.others[-1:], [])

    def end(self, call):
        began = time.monotonic()
        call()
        self.longest = max(self.longest, time.monotonic() - began)

    def check(self, what):
        assert self.longest < 1, (what, self.longest)
        assert not self.watched.faults, (what, self.watched.faults)
        frees = [self.comm._comm, self.link._side._comm, self.link._window,
                 *self.transfer._handles, *self.others]
        for handle in frees:
            count = sum(each is handle for each in self.watched.freed)
            assert count == 1, (what, handle, count)


def tried(call):
    try:
        call()
    except windlass.WindlassException:
        pass


def interrupt_before(watched, name, by_handler):
    """Everything is closed right before a native call, by a signal handler or another thread."""
    each, threads = Ends(watched, 0), []

    def close(*_):
        each.end(each.link.close)
        each.end(each.transfer.close)

    def interrupt():
        if by_handler:
            signal.raise_signal(signal.SIGUSR1)
            return
        threads.append(threading.Thread(target=close))
        threads[0].start()
        threads[0].join(0.02)  # it may wait for the call, which does not wait for it
    signal.signal(signal.SIGUSR1, close)
    watched.before = {name: interrupt}
    for call in each.calls:
        tried(call)
    for thread in threads:
        thread.join()
    assert not watched.before, name
    each.check((name, by_handler))


def interrupt_each(watched, number, chance):
    """Everything is closed between two steps of Python, at some of all such places in a call."""
    at, seen = 1, 1
    while at <= seen:
        each, seen = Ends(watched, 0), 0

        def trace(frame, event, _):
            nonlocal seen
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return None
            frame.f_trace_opcodes = True
            seen += event == "opcode"
            if seen == at and event == "opcode":
                each.end(each.link.close)
            return trace
        sys.settrace(trace)
        try:
            tried(each.calls[number])
        finally:
            sys.settrace(None)
        if seen < at:
            each.link.close()
        each.check((number, at))
        at += chance.randint(1, 5)


def interrupt_at_random(watched, number, chance):
    """At some instant a signal handler closes or raises, or another thread closes, or both do."""
    each = Ends(watched, number)
    call = chance.choice(each.calls[:2] + each.calls[4:9])
    closes, also = chance.choice(each.ends + [None]), chance.choice(each.ends + [None] * 5)

    def handler(*_):
        if closes is None:
            raise KeyboardInterrupt
        each.end(closes)
    # A handler that raises between the last call and the free leaks. So only one of both ends.
    threads = [threading.Thread(target=each.end, args=[also])] if closes and also else []
    ends = each.calls[8] if closes == each.transfer.close else each.comm.barrier

    def endless():
        while True:
            call()
            ends()
    signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 2e-3))
        for thread in threads:
            thread.start()
        tried(endless)
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        try:
            each.comm.barrier(SOON)
            each.transfer.send(2, SOON)
        except windlass.AbortedException:
            assert "send of version 1" in str(each.comm.failure())
    signal.setitimer(signal.ITIMER_REAL, 0)
    each.end(each.link.close)
    each.check((call, closes, also))
    assert each.comm not in windlass.communicator._KEPT


def interrupts():
    """A signal handler that closes frees nothing that a call below it uses, and does not wait."""
    seed = int(os.environ.get("TEST_SEED") or time.time_ns() % (1 << 32))
    say("seed", seed)
    watched = Watched(windlass.native())
    windlass.library._library = watched
    for name in ("wl_comm_status", "wl_comm_abort", "wl_comm_fail", "wl_submit", "wl_comm_split",
                 "wl_test", "wl_put", "wl_transfer_move", "wl_comm_close",
                 "wl_comm_quiescent", "wl_comm_free", "wl_window_free", "wl_transfer_free"):
        for by_handler in (True, False):
            interrupt_before(watched, name, by_handler)
    chance, runs = random.Random(seed), 0
    for number in range(len(Ends(watched, 0).calls)):
        interrupt_each(watched, number, chance)
    sys.setswitchinterval(1e-5)
    end = time.monotonic() + float(os.environ.get("TEST_SECONDS", "2"))
    while time.monotonic() < end:
        runs += 1
        interrupt_at_random(watched, runs, chance)
    say(runs, "runs")
    say("done")


# ---- jobs ----

# Each tensor's name, shape, dtype, layout over two senders, and how it moves; PythonJobsTest has
# what receives it.
TENSORS = [
    ("columns", [6, 40], "float32", "2:S1", {}),
    ("rows", [7, 5], "float32", "2:S0", {"mode": "staged", "bucket_bytes": 48}),
    ("same", [9], "int64", "2:R", {}),
    ("one", [3, 4], "float64", "1@1:R", {}),
    ("sum", [4, 6], "float32", "2:P:sum", {}),
    ("cast", [33], "float32", "2:S0", {"wire": "bf16"}),
    ("cube", [2, 3, 4], "uint8", "2:S2", {"mode": "gather-broadcast"}),
]


def whole(shape, dtype, version):
    count = int(np.prod(shape))
    values = (np.arange(count) % 61 + 3 * version) % 120
    return values.astype(dtype).reshape(shape)


def part(value, layout, rank):
    """This rank's piece, in memory of strides of its own; None where it holds nothing."""
    where, placement = layout.split(":", 1)
    if where == "1@1":
        return value if rank == 1 else None
    if placement.startswith("S"):
        dim = int(placement[1:])
        cut = -(-value.shape[dim] // 2)
        return np.take(value, range(rank * cut, min(value.shape[dim], (rank + 1) * cut)), dim)
    if placement.startswith("P"):
        return value - 5 if rank == 0 else np.full_like(value, 5)
    return value


def strided(piece):
    """The same values, not side by side."""
    room = np.zeros([2 * extent for extent in piece.shape], piece.dtype)
    view = room[tuple(slice(None, None, 2) for _ in piece.shape)]
    view[...] = piece
    return view


def bound(job, link, tensors=None):
    """(sources by name, the transfer)."""
    builder, sources = link.transfer_builder(), {}
    for name, own, dtype, layout, how in tensors or TENSORS:
        piece = part(whole(own, dtype, 0), layout, job.communicator.rank)
        if piece is not None:
            sources[name] = strided(piece)
            builder.add(name, own, sources[name], layout, **how)
    return sources, builder.register(SOON)


def fill(job, sources, version, tensors=None):
    for name, own, dtype, layout, _ in tensors or TENSORS:
        if name in sources:
            sources[name][...] = part(whole(own, dtype, version), layout, job.communicator.rank)


def in_job(work):
    with windlass.Job.from_environment("trainer", deadline=SOON) as job:
        work(job)


def trainer():
    """Sends five versions."""
    def work(job):
        with job.connect("policy", SOON) as link:
            sources, transfer = bound(job, link)
            with transfer:
                for version in range(1, 6):
                    fill(job, sources, version)
                    transfer.send(version, SOON)
        say("done")
    in_job(work)


def finishes():
    """Sends two versions, one that no receiver asks for, and then the end."""
    def work(job):
        with job.connect("policy", SOON) as link:
            sources, transfer = bound(job, link)
            for version in (1, 2):
                fill(job, sources, version)
                assert transfer.try_send(version, SOON) is True
            if sys.argv[2:] == ["late"]:
                assert transfer.try_send(3, 0.5) is False
                say("is late")
            elif sys.argv[2:] == ["alone"]:
                time.sleep(1)  # the receivers leave
            transfer.finish(SOON)
            transfer.finish(SOON)
            raised(lambda: transfer.send(4, SOON), "send: link 'policy' was finished")
        say("done")
    in_job(work)


def again_and_again():
    """Sends version after version, and connects again once a link has ended; until it is ended."""
    def work(job):
        version = 0
        while True:
            try:
                with job.connect("policy", SOON) as link:
                    sources, transfer = bound(job, link)
                    say("connected")
                    while True:
                        version += 1
                        fill(job, sources, version)
                        transfer.send(version, SOON)
            except (windlass.PeerLostException, windlass.AbortedException) as e:
                say(type(e).__name__, e.faulty_ranks, e)
    in_job(work)


def refused():
    """Registers what the receivers refuse, then what they take."""
    def work(job):
        tensors = [("w", [8, 4], "float32", "2:S0", {})]
        parts = {  # rows of this rank's part, and the layout
            "part": (3, "2:S0"), "none": (4 if job.communicator.rank else None, "2:S0"),
            "outside": (8, "1@1:R"), "layout": (4, "2:S5"), "mesh": (4, "2@[0,2]:S0"),
            "garbage": (4, "garbage")}
        with job.connect("policy", SOON) as link:
            for what in sys.argv[2:]:
                try:
                    wrong = tensors
                    if what == "name":
                        wrong = [("v", [8, 4], "float32", "2:S0", {})]
                    elif what == "shape":
                        wrong = [("w", [4, 4], "float32", "2:S0", {})]
                    if what in parts:
                        rows, layout = parts[what]
                        source = None if rows is None else np.zeros((rows, 4), np.float32)
                        link.transfer_builder().add("w", [8, 4], source, layout).register(SOON)
                    else:
                        bound(job, link, wrong)
                    say(what, "was taken")
                except windlass.WindlassException as e:
                    say(what, type(e).__name__, e)
            sources, transfer = bound(job, link, tensors)
            fill(job, sources, 1, tensors)
            transfer.send(1, SOON)
        say("done")
    in_job(work)


def change(what, array, base):
    """Makes the array another one over the same memory, or over none."""
    if what in ("dtype", "early"):
        array.dtype = np.int32
        return "dtype from <f4 to <i4"
    if what == "order":
        array.dtype = array.dtype.newbyteorder()
        return "dtype from <f4 to >f4"
    if what == "strides":
        array.strides = (4, 32)
        return "strides from contiguous to (4, 32)"
    if what == "shape":
        array.shape = (4, 8)
        return "shape from (8, 4) to (4, 8)"
    if what == "resize":
        array.resize((0,), refcheck=False)
        return "shape from (8, 4) to (0,)"
    if what == "base":
        base.resize((0,), refcheck=False)
        return "memory of its base from "
    array.address += 4
    return "address from "


def changes():
    """Sends a version, changes the array in place, and sends no other."""
    def work(job):
        for what in sys.argv[2:]:
            with job.connect("policy", SOON) as link:
                base = np.zeros((64, 4), np.float32)
                array = base[8:16] if what == "base" else np.zeros((8, 4), np.float32)
                if what == "tensor":
                    array = windlass.tensor(array)
                builder = link.transfer_builder()
                at = job.communicator.size - 1
                builder.add("w", [8, 4], array if job.communicator.rank == at else None, "1@1:R")
                if what == "early" and job.communicator.rank == at:
                    change(what, array, base)
                transfer = builder.register(SOON)
                if what != "early":
                    transfer.send(1, SOON)
                wanted = change(what, array, base) if job.communicator.rank == at else ""
                raised(lambda: transfer.send(2, SOON),
                       "tensor 'w' has changed since it was added: " + wanted)
        say("done")
    in_job(work)


def throws_in_link():
    """One rank ends with an error amid a link."""
    def work(job):
        with job.connect("policy", SOON) as link:
            _, transfer = bound(job, link, [("w", [8, 4], "float32", "2:S0", {})])
            for version in (-1, 1.5, "1", True, 1 << 63):
                raised(lambda: transfer.send(version), "send: version is %r; it must" % (version,))
            if job.communicator.rank == 1:
                raise KeyError("mine")
            transfer.send(1, SOON)
    in_job(work)


def late():
    """Sends a version that no receiver asks for, then one that it does; then has moved a tensor."""
    def work(job):
        with job.connect("policy", SOON) as link:
            sources, transfer = bound(job, link)
            try:
                transfer.send(1, 1.0)
                raise SystemExit("it was taken")
            except windlass.DeadlineExceededException as e:
                say(type(e).__name__, e)
            fill(job, sources, 2)
            say("is there")
            transfer.send(2, SOON)
        say("done")
    in_job(work)


def second():
    """Would send where another job does."""
    # The search acts as if the store forgot an ended job at once. The store takes 60 s.
    search = windlass.job._LinkSearch
    search._WARN_AFTER, search._FAIL_AFTER = 0.1, 0.5 - 60
    logging.basicConfig(stream=sys.stdout, format="logged %(message)s")

    def work(job):
        try:
            job.connect("policy", SOON)
        except windlass.WindlassException as e:
            say(type(e).__name__, e)
    in_job(work)


class OwnLink:
    """A link of a job of one rank to another, with the members that a builder reads."""

    class communicator:
        rank, size = 0, 2

    _senders = 1


def adds():
    """What `add` says of its arguments."""
    builder = windlass.LinkTransferBuilder(OwnLink)
    builder.add("w", (8, 8), np.zeros((8, 8), np.float32), "1:S0")
    array, taken = np.zeros((8, 8), np.float32), {"name": "v", "shape": (8, 8), "layout": "1:S0"}
    for changed, words in (
            ({"name": 7}, "add: name is 7; it must be a string"),
            ({"name": "w"}, "add: tensor 'w' was added before"),
            ({"mode": "fast"}, "tensor 'v': mode is 'fast'; it must be one of direct staged"),
            ({"wire": "bf17"}, "tensor 'v': wire is 'bf17'; it must be one of None bool u8"),
            ({"shape": 8}, "tensor 'v': shape is 8; it must be a sequence of integers"),
            ({"shape": "8x8"}, "tensor 'v': shape: an extent is '8'; it must be an integer"),
            ({"padded_shape": (8, 7)}, "tensor 'v': padded_shape is [8, 7]; it must have"),
            ({"layout": None}, "tensor 'v': layout is None; it must be a string such as"),
            ({"bucket_bytes": 0}, "tensor 'v': bucket_bytes is 0; it must be an integer from 1"),
            ({"source": [1.0]}, "add: source of tensor 'v': a list is no tensor; give a numpy"),
            ({"source": array[::-1]}, "source of tensor 'v': strides are (-32, 4) bytes"),
            ({"dtype": "bf16"}, "source of tensor 'v': dtype is 'bf16', of 2 bytes")):
        arguments = {"source": array, **taken, **changed}
        raised(lambda: builder.add(**arguments), words)
    torch = Strided()
    builder.add("t", (8, 8), torch, "1:S0")
    for attribute, value, words in (
            ("dtype", "torch.int32", "dtype from torch.float32 to torch.int32"),
            ("strides", (1, 8), "strides from (8, 1) to (1, 8)"),
            ("shape", (64,), "shape from (8, 8) to (64,)"),
            ("address", 0, "address from ")):
        before = getattr(torch, attribute)
        moving = type("Moving", (), {"_tensors": [("t", *builder._tensors["t"])]})
        assert windlass.LinkTransfer._moved(moving) is None
        setattr(torch, attribute, value)
        said = windlass.LinkTransfer._moved(moving)
        assert "tensor 't' has changed since it was added: " + words in said, said
        setattr(torch, attribute, before)
    torch.stride = None
    said = windlass.LinkTransfer._moved(moving)
    assert "tensor 't' can't be read any more: " in said, said
    say("done")


class Strided:
    """The members of a torch tensor that the package reads."""

    def __init__(self):
        self.room = np.zeros((8, 8), np.float32)
        self.address, self.dtype, self.shape = self.room.ctypes.data, "torch.float32", (8, 8)
        self.strides, self.device, self.layout = (8, 1), type("Cpu", (), {"type": "cpu"}), "torch.strided"

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides

    def is_conj(self):
        return False

    def storage(self):
        return self.room

    untyped_storage = storage


def tampered():
    """What a table from the other job has to be, before any of it is bound."""
    builder = windlass.LinkTransferBuilder(OwnLink)
    builder.add("w", [2, 3], np.zeros((2, 3), np.float32), "1:R")
    own = builder._binding(builder._tensors["w"][0])
    none = (12, 2, 0, 0, 0, 0, 0, 0, 0)
    words = [77, 1, len(own), 1, len(none), 0, 0, 0, 0, *own, *none]
    pack = struct.pack

    def table(words, form=1, halves=2, rank=0, kind=0, more=b""):
        return (pack(">ibiiii", form, kind, halves, 1, rank, len(words))
                + pack(">%dq" % len(words), *words) + more)

    assert builder._table(table(words)) == (2, tuple(words))
    wrong = [
        b"", b"\0", table(words)[:-1], table(words, more=b"x"), table(words, form=2),
        table(words, halves=3), table(words, halves=-1), table(words, rank=1), table(words[:8]),
        pack(">ibiiii", 1, 0, 2, 1, 0, 0x7FFFFFFF), pack(">ibiiii", 1, 0, 2, -1, 0, 0),
        pack(">ibi", 1, 1, 2) + pack(">i", 1 << 30),
    ]
    for at, value in (
            (2, -1), (2, 1 << 62), (2, 3), (1, 2), (1, 1 << 40), (3, -1), (4, 8), (6, 1), (8, -8),
            (10, 17), (10, -1), (10, 3), (11, own[2] + 4), (12, own[3] - 8), (13, own[4] + 1),
            (14, 3), (16, 100), (20, own[2]), (22, 8)):
        wrong.append(table(words[:at] + [value] + words[at + 1:]))
    for each in wrong:
        try:
            builder._table(each)
        except windlass.MismatchException:
            continue
        raise SystemExit("it was taken: %r" % each)
    try:
        builder._table(pack(">ibi", 1, 1, 7) + pack(">i", 2) + b"no" + pack(">ii", 1, 1))
        raise SystemExit("it was taken")
    except windlass.UnsupportedException as e:
        assert (str(e), e.faulty_ranks) == ("no", [1])
    say("done")


def versions():
    say(windlass.versions())


def end_with_parent():
    while os.read(0, 1 << 12):  # a buffered read would hold up the end of the interpreter
        pass
    os._exit(2)


def main():
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        globals()[sys.argv[1]]()
    except windlass.WindlassException as e:
        say("%s %s: %s" % (type(e).__name__, e.faulty_ranks, e))


if __name__ == "__main__":
    main()
