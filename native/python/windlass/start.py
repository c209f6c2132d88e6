# SPDX-License-Identifier: Apache-2.0
"""The start of a communicator."""

import collections
import contextlib
import ctypes
import hashlib
import os
import re
import secrets
import struct
import uuid
from ctypes import byref, c_char, c_int32, c_uint64, c_void_p

from .errors import (
    DeadlineExceededException, InvalidArgumentException, Malformed, MismatchException,
    PeerLostException, ResourceException, UnsupportedException, WindlassException, expect, peek,
    reading, require, tried)
from .deadline import Deadline
from .encoding import Reader, array_bytes, packed, printable
from .library import (
    GroupConfig, MAX_BLOCKS, MOST_RANKS, Process, integer, invoke, library_version, native, sized)
from .launch import LaunchEnvironment, MeetingFile, own_process, read_boot_id
from .store import Store, StoreServer, TOTAL, VALUE

START_PROTOCOL = 4

_NO_START = uuid.UUID(int=0)
_OPEN, _SAID, _FAILED = 0, 1, 2
_LOOK = 0.2
_LAST_LOOK = 2.0


class _Word(collections.namedtuple("_Word", "start member step value refused")):
    """What a rank says in a step of a start: a value, or the failure that has it refuse."""

    def bytes(self):
        kind = ("Ba", 0, self.value) if self.refused is None else (
            "Biu", 1, self.refused.code, str(self.refused))
        return packed("ggu", self.start, self.member, self.step) + packed(*kind)

    @staticmethod
    def of(data):
        reader = Reader(data)
        start, member, step, kind = reader.fields("gguB")
        expect(kind <= 1, "a word of no kind")
        value = reader.array() if kind == 0 else b""
        refused = WindlassException.of(*reader.fields("iu")) if kind == 1 else None
        return _Word(start, member, step, value, refused)


class _Outcome(collections.namedtuple("_Outcome", "start step kind body")):
    """What is decided of a step for all ranks: a value, and further ones where it is long."""

    def values(self):
        parts = []
        if len(self.body) > VALUE - 128:
            parts = [self.body[at:at + VALUE] for at in range(0, len(self.body), VALUE)]
        first = packed("guBi", self.start, self.step, self.kind, len(parts))
        return [first + (b"" if parts else self.body)] + parts

    @staticmethod
    def of(first, further=lambda step, value: b""):
        reader = Reader(first)
        start, step, kind, count = reader.fields("guBi")
        if kind > _FAILED or not 0 <= count <= TOTAL // VALUE:
            raise Malformed(f"an outcome of no kind, or of {count} values")
        body = reader.rest() + b"".join(further(step, value) for value in range(1, count + 1))
        return _Outcome(start, step, kind, body)

    def failure(self):
        reader = Reader(self.body)
        code, message = reader.fields("iv")
        return WindlassException.of(code, message, reader.ints(MOST_RANKS))

    @staticmethod
    def failed(start, step, failure):
        ranks = failure.culprits
        body = packed("iui", failure.code, str(failure), len(ranks))
        return _Outcome(start, step, _FAILED, body + struct.pack(f">{len(ranks)}i", *ranks))


class _Decided(Exception):
    """Another has decided, or has removed the start, while rank 0 collects."""


class _Gathering:
    """The steps by which the ranks of a start tell one another something at a store, as Java's
    class of this name does them; this process is one rank."""

    _SAID_BY_ALL = ("what ranks say at the start", "; run one version of windlass on all of them")

    def __init__(self, store, prefix, others, rank, size, until, opened=None):
        self._store, self._prefix, self._others = store, prefix, others
        self._rank, self._size, self._until = rank, size, until
        self._decisions = prefix + "decision"
        self._member = uuid.uuid4()
        self._start = None
        self._decision = opened
        self._further = []
        self._said = None
        self._seen = [None] * size
        self._heard = [None] * size
        self.hosts = None  # before it is known which ranks live on which

    @staticmethod
    def await_open(store, prefix, until):
        """Waits until rank 0 has opened a start that has not come to anything."""
        now = None
        while True:
            now = store.await_other(prefix + "decision", now, until)
            if _Gathering._is_open(now):
                return now

    @staticmethod
    def _is_open(decision):
        outcome = peek(_Outcome.of, decision)
        return outcome is not None and outcome.kind == _OPEN

    def gather(self, step, work):
        """What `work` gives on each rank, in rank order; where it raises on one, all do."""
        value, refused = tried(work)
        try:
            if self._start is None:
                if self._rank == 0:
                    self._open()
                else:
                    self._join(step, value)
            self._say(_Word(self._start, self._member, step, value, refused))
            outcome = self._decide(step) if self._rank == 0 else self._told()
        except WindlassException as e:
            if not self._until.over():
                raise
            outcome = self._late(step, e)
        with reading(*self._SAID_BY_ALL):
            if outcome.kind == _FAILED:
                raise outcome.failure()
            if outcome.kind != _SAID or outcome.step != step:
                raise Malformed(f"step {printable(outcome.step)} in {step}")
            reader = Reader(outcome.body)
            said = [reader.fields("ga") for _ in range(self._size)]
        if said[self._rank][0] != self._member:
            raise self._another(self._rank)
        return [value for _, value in said]

    @staticmethod
    def _another(rank):
        return MismatchException(
            f"another process has come to this start as rank {rank} too, and counts as that; two"
            " may not have one rank: start all ranks again", [rank])

    def _left(self, rank):
        return PeerLostException(
            f"rank {self._name(rank)} came to the start and left before all had met; see what its"
            " process says", [rank])

    def _name(self, rank):
        """What a rank is called, behind "rank": by its host, too, where they live on several."""
        return f"{rank}" if self.hosts is None else self.hosts.rank(rank)

    def _open(self):
        self._start = uuid.uuid4()
        opened = _Outcome(self._start, "", _OPEN, struct.pack(">i", self._size))
        self._decision = opened.values()[0]
        self._take(self._decisions, self._decision)

    def _take(self, key, data):
        """Holds a key, in place of what is left there of an earlier start."""
        while not self._store.hold(key, data, self._until):
            self._remove(key, self._until)

    def _remove(self, key, until, is_this=lambda data: True):
        data = self._store.get(key, until)
        if data is not None and is_this(data):
            self._store.compare_and_set(key, data, None, until)

    def _key(self, rank):
        return f"{self._prefix}rank/{rank}"

    def _join(self, step, value):
        now = self._decision or self._store.get(self._decisions, self._until)
        before = peek(_Outcome.of, now)
        while not self._is_open(now):
            outcome = peek(_Outcome.of, now)
            is_new = outcome is not None and (before is None or outcome.start != before.start)
            if is_new and outcome.kind == _FAILED:
                self._start = outcome.start  # it was opened, and has failed, while this waited
                return
            if self._said is None:
                self._say(_Word(_NO_START, self._member, step, value or b"", None))
            now = self._await_other(self._decisions, now, self._require_others)
        outcome = _Outcome.of(now)
        self._start, self._decision = outcome.start, now
        with reading(*self._SAID_BY_ALL):
            size = Reader(outcome.body).int()
        if size != self._size:
            why = MismatchException(
                f"rank 0 was started as one of {size} ranks, rank {self._rank} as one of"
                f" {self._size}; give all ranks one size, and all processes as many ranks",
                [0, self._rank])
            self._decided(_Outcome.failed(self._start, step, why), self._until)
            raise why

    def _say(self, word):
        data = word.bytes()
        key, before, self._said = self._key(self._rank), self._said, data
        if before is None:
            self._take(key, data)
        elif not self._store.compare_and_set(key, before, data, self._until):
            raise self._another(self._rank)

    def _is_of_this(self, said):
        return said is not None and said.start == self._start

    def _told(self):
        now = self._store.await_other(self._decisions, self._decision, self._until)
        outcome = self._outcome(now, self._until)
        if outcome is None:
            raise self._left(0)
        return outcome

    def _outcome(self, now, until):
        if not self._is_of_this(peek(_Outcome.of, now)):
            return None

        def further(step, value):
            data = self._store.get(f"{self._prefix}of/{self._start}/{step}/{value}", until)
            if data is None:
                raise self._left(0)
            return data

        with reading(*self._SAID_BY_ALL):
            outcome = _Outcome.of(now, further)
        self._decision = now
        return outcome

    def _await_other(self, key, seen, look):
        """A wait with a look at something else from time to time, which may raise."""
        while True:
            once = Deadline(max(0.001, min(_LOOK, self._until.left())))
            try:
                return self._store.await_other(key, seen, once)
            except DeadlineExceededException:
                if self._until.over():
                    raise
                look()

    def _require_others(self):
        if self._others is not None:
            key, value = self._others
            if self._store.get(key, self._until) != value:
                raise PeerLostException("the other job gave up before they had met")

    def _require_undecided(self):
        if self._store.get(self._decisions, self._until) != self._decision:
            raise _Decided

    def _decide(self, step):
        try:
            outcome = self._decided(self._collected(step), self._until)
        except _Decided:
            outcome = self._outcome(self._store.get(self._decisions, self._until), self._until)
        if outcome is None:
            raise self._another(0)
        return outcome

    def _collected(self, step):
        said = []
        for rank in range(self._size):
            try:
                word = self._word(rank)
                if word is not None and word.step != step:
                    raise Malformed("it is at step " + printable(word.step))
            except Malformed as e:
                return _Outcome.failed(self._start, step, MismatchException(
                    f"what rank {rank} says at the start can't be read: {e}; run one version of"
                    " windlass on all of them", [rank]))
            if word is None:
                return _Outcome.failed(self._start, step, self._left(rank))
            if word.refused is not None:
                return _Outcome.failed(self._start, step, self._why_refused(rank, word.refused))
            said.append(word.member.bytes + array_bytes(word.value))
        return _Outcome(self._start, step, _SAID, b"".join(said))

    def _why_refused(self, rank, refused):
        """What `rank` says; where others have left meanwhile, that, which may be why it does."""
        with contextlib.suppress(DeadlineExceededException):  # the store doesn't say in time
            for other in range(self._size):
                is_known = self._heard[other] is not None
                if is_known and self._store.get(self._key(other), self._until) is None:
                    return self._left(other)
        return WindlassException.of(
            refused.code, f"rank {self._name(rank)}: {refused}", [rank])

    def _word(self, rank):
        """The next word of a rank, None where it has left, or another is that rank by now."""
        last = self._heard[rank]

        def look():
            if last is None:
                self._require_others()
            self._require_undecided()

        while True:
            data = self._await_other(self._key(rank), self._seen[rank], look)
            word = None if data is None else _Word.of(data)
            is_of_this = self._is_of_this(word)
            if last is not None and not (is_of_this and word.member == last.member):
                return None
            self._seen[rank] = data
            if is_of_this:
                self._heard[rank] = word
                return word

    def _decided(self, outcome, until):
        """`outcome`, or what was decided before; None where the start is there no more."""
        first, *further = outcome.values()
        for value, data in enumerate(further, 1):
            key = f"{self._prefix}of/{outcome.start}/{outcome.step}/{value}"
            self._further.append(key)
            self._store.hold(key, data, until)
        if self._store.compare_and_set(self._decisions, self._decision, first, until):
            self._decision = first
            return outcome
        return self._outcome(self._store.get(self._decisions, until), until)

    def _late(self, step, failure):
        """The outcome of a step whose deadline has passed: who has not come so far."""
        last = Deadline(_LAST_LOOK)
        try:
            absent, behind = [], []
            for rank in range(self._size):
                word = peek(_Word.of, self._store.get(self._key(rank), last))
                if word is None or word.start not in (self._start, _NO_START):
                    absent.append(rank)
                elif word.step != step:
                    behind.append(rank)
            place, culprits = self._store.address, sorted(absent + behind)
            if culprits:
                what = [f"ranks {absent} of {self._size} had not come"] if absent else []
                what += [f"ranks {behind} had not gone on with the others"] if behind else []
                text = (
                    f"{' and '.join(what)}, at {place}, when the deadline passed; see why they did"
                    " not start, or whether their processes are stopped, or give more time")
            elif self._rank == 0:
                text = (
                    f"all of {self._size} ranks came to {place} as the deadline passed; give more"
                    " time")
            else:
                culprits = [0]
                text = (
                    f"rank 0 of {self._size} came to {place}, and had not let the others go on when"
                    " the deadline passed; see whether its process is stopped")
            why = DeadlineExceededException(text, culprits)
            outcome = None
            if self._start is not None and self._decision is not None:
                outcome = self._decided(_Outcome.failed(self._start, step, why), last)
        except WindlassException as e:
            raise failure from e
        if outcome is None:
            raise why from failure
        return outcome

    def end(self, is_done):
        """Takes back what this process has said; as rank 0 once the others have heard the rest."""
        is_first = self._rank == 0 and self._start is not None
        last = Deadline(_LAST_LOOK)
        with contextlib.suppress(WindlassException):  # who has not left by now finds the store gone
            if is_first and not is_done and self._is_open(self._decision):
                self._decided(_Outcome.failed(self._start, "", self._left(0)), last)
            until = self._until if is_done else last
            for rank in range(1, self._size if is_first else 0):
                seen = self._store.get(self._key(rank), until)
                while self._is_of_this(peek(_Word.of, seen)):
                    seen = self._store.await_other(self._key(rank), seen, until)
        last = Deadline(_LAST_LOOK)
        # What a store that is lost has of them ends with this way in.
        with contextlib.suppress(WindlassException):
            if self._said is not None:
                self._store.compare_and_set(self._key(self._rank), self._said, None, last)
            for key in self._further:
                self._remove(key, last)
            if is_first:
                self._remove(self._decisions, last, lambda data: self._is_of_this(
                    peek(_Outcome.of, data)))


class _Arrival(collections.namedtuple(
        "_Arrival", "library rank target host machine named pid started pid_namespace cores cpus"
        " options")):
    """What a rank says of itself when it comes to a start."""

    _FORM = "vivuvviQQiuv"  # behind the protocol's version

    @staticmethod
    def own(rank, options, host):
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as file:
                cpus = re.search("^Cpus_allowed_list:(.*)", file.read(), re.MULTILINE)
            boot_id = read_boot_id()
        except OSError as e:
            raise UnsupportedException(f"/proc doesn't tell of this host: {e}", [rank]) from e
        process = own_process()
        return _Arrival(
            library_version(), rank, native().wl_target().decode("ascii"), boot_id,
            os.uname().nodename, host.name, process.pid, process.started, process.pid_namespace,
            native().wl_allowed_cores(), cpus[1].strip() if cpus else "", options)

    def bytes(self):
        return packed("i" + self._FORM, START_PROTOCOL, *self)

    @staticmethod
    def of(rank, data):
        with reading(f"what rank {rank} says of itself", culprits=[rank]):
            protocol, library = Reader(data).fields("iv")
            if protocol != START_PROTOCOL:
                raise MismatchException(
                    f"rank {rank} runs windlass {library}, which starts by protocol {protocol};"
                    f" this one runs {library_version()}, by protocol {START_PROTOCOL}; use one"
                    " version everywhere", [rank])
            _, *told = Reader(data).fields("i" + _Arrival._FORM)
        told = _Arrival(*told)
        if told.rank != rank:
            raise MismatchException(
                f"rank {rank} says that it is rank {told.rank}; start all ranks again", [rank])
        return told

    def process(self):
        return sized(
            Process, pid=self.pid, started=self.started, pid_namespace=self.pid_namespace)

    def mask(self):
        mask = set()
        for part in self.cpus.split(","):
            ends = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
            if not ends or int(ends[2] or ends[1]) >= 1 << 16:
                return set()
            mask.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
        return mask


def _shared_cores(arrivals):
    """How many cores all share: what their masks have together, or what a quota leaves of it."""
    masks = [each.mask() for each in arrivals]
    union = set().union(*masks)
    bounded = any(each.cores < len(mask) for each, mask in zip(arrivals, masks))
    most = max(1, *(each.cores for each in arrivals))
    return most if bounded or not union else len(union)


class Host:
    """What a process's variables say of the host that it is of, as Java's class of this name."""

    def __init__(self, variables):
        self.name = variables.get("WINDLASS_HOST") or ""
        require(re.fullmatch("[!-~]{0,63}", self.name),
                 f"WINDLASS_HOST is '{printable(self.name)}'; a host's name has 1 to 63 characters"
                 " of ASCII, none of them a space")
        silence = variables.get("WINDLASS_HOST_SILENCE") or "2"
        is_number = re.fullmatch("[0-9]{1,4}([.][0-9]{1,3})?", silence)
        seconds = float(silence) if is_number else -1
        require(seconds == 0 or seconds >= 0.5,
                 f"WINDLASS_HOST_SILENCE is '{printable(silence)}'; it must be seconds, from 0.5"
                 " to 9999.999, or 0, which lets a host be silent")
        self.silence_ns = round(seconds * 1e9)


class _Hosts:
    """Which of the ranks of a start live on one host, and can share memory, as Java's class of this
    name; hosts have numbers, from 0 on, in the order of their lowest ranks."""

    def __init__(self, arrivals):
        self.arrivals, self.numbers, self._firsts = arrivals, [], []
        known = {}
        for each in arrivals:
            place = (each.host, each.pid_namespace)
            number = known.setdefault(each.named or place, len(known))
            if number == len(self._firsts):
                self._firsts.append(each)
            first = self._firsts[number]
            if (first.host, first.pid_namespace) != place:
                raise MismatchException(
                    f"ranks {first.rank} and {each.rank} both have WINDLASS_HOST '{each.named}',"
                    " and live on different machines, or in different pid namespaces; give those of"
                    " each a name of their own, or none", [first.rank, each.rank])
            self.numbers.append(number)

    def are_several(self):
        return len(self._firsts) > 1

    def first(self, rank):
        """The one of the lowest rank of that rank's host."""
        return self._firsts[self.numbers[rank]]

    def cores(self):
        """How many cores those of any host share, at least."""
        return min(
            _shared_cores([each for each in self.arrivals if self.numbers[each.rank] == number])
            for number in range(len(self._firsts)))

    def rank(self, rank):
        """What a rank is called, behind "rank": by its host, too, where they live on several."""
        arrival = self.arrivals[rank]
        host = " on host %d (%s)" % (self.numbers[rank], arrival.named or arrival.machine)
        return "%d%s" % (rank, host if self.are_several() else "")


class Options:
    """What a communicator is to be like, the same on all ranks; defaults as Java's."""

    def __init__(self, deadline=60.0, first_sequence=1, cores=0, blocks=0, adjust_threads=False):
        self.deadline_ns = round(Deadline(deadline).whole * 1e9)
        self.first_sequence = integer("first_sequence", first_sequence)
        self.cores = integer("cores", cores, 0)
        self.blocks = integer("blocks", blocks, 0, MAX_BLOCKS)
        self.adjust_threads = bool(adjust_threads)

    def text(self):
        """As Java's record has it, which ranks compare by its entries."""
        return (
            f"firstSequence={self.first_sequence}, cores={self.cores}, blocks={self.blocks},"
            f" deadline={self.deadline_ns} ns, adjustThreads={str(self.adjust_threads).lower()}")


def start(store, prefix, others, opened, rank, size, options, host, until):
    """Meets the other ranks of a start and joins their group: this rank's `wl_comm_t*`."""
    gathering = _Gathering(store, prefix, others, rank, size, until, opened)
    is_done = False
    try:
        said = gathering.gather("arrive", lambda: _Arrival.own(rank, options.text(), host).bytes())
        arrivals = [_Arrival.of(each, data) for each, data in enumerate(said)]
        _compare(arrivals)
        gathering.hosts = _Hosts(arrivals)
        comm = _share_and_attach(gathering, rank, size, options, host)
        is_done = True
        return comm
    finally:
        gathering.end(is_done)


def _compare(arrivals):
    first = arrivals[0]
    for other in arrivals[1:]:
        what = None
        if other.library != first.library:
            what = f"run windlass {first.library} and {other.library}"
        elif other.target != first.target:
            what = f"have kernels for {first.target} and {other.target}"
        elif other.options != first.options:
            ones, others = first.options.split(", "), other.options.split(", ")
            what = "were given %s and %s; give all ranks the same options" % (
                ", ".join(each for each in ones if each not in others),
                ", ".join(each for each in others if each not in ones))
        if what:
            raise MismatchException(f"ranks 0 and {other.rank} {what}", [0, other.rank])


def _share_and_attach(gathering, rank, size, options, host):
    hosts, maker = gathering.hosts, gathering.hosts.first(rank)
    shared, group, comm = c_int32(-1), c_void_p(), c_void_p()
    wires = []

    def share():
        if rank == maker.rank:
            numbers = (c_int32 * size)(*hosts.numbers)
            config = _group_config(size, options, hosts.cores())
            config.hosts = ctypes.addressof(numbers) if hosts.are_several() else None
            invoke("wl_group_share", byref(config), byref(shared))
        inode = native().wl_file_inode(shared) if shared.value >= 0 else 0
        return struct.pack(">iQ", shared.value, inode)

    def attach():
        _attach(maker, rank, number, inode, group)

    def open_wire():
        attach()
        return _open_wire(group, rank)

    def join():
        if not hosts.are_several():
            attach()
        if wires:
            lengths = (c_uint64 * len(wires))(*map(len, wires))
            invoke("wl_group_connect", group, b"".join(wires), lengths, len(wires), host.silence_ns)
        invoke("wl_group_join", group, rank, byref(comm))
        _watch(hosts, rank, group)
        return b""

    try:
        told = gathering.gather("share", share)[maker.rank]
        if len(told) != 12:
            raise MismatchException(
                f"what rank {maker.rank} says of the memory that all share can't be read: it has"
                f" {len(told)} bytes; run one version of windlass on all ranks", [maker.rank])
        number, inode = struct.unpack(">iQ", told)
        if hosts.are_several():
            wires += [each for each in gathering.gather("wire", open_wire) if each]
        gathering.gather("attach", join)
        return comm
    except BaseException:
        if comm:
            native().wl_comm_free(comm)
        raise
    finally:
        if group:
            native().wl_group_release(group)
        if shared.value >= 0:
            native().wl_file_close(shared)


def _group_config(size, options, cores):
    return sized(
        GroupConfig, ranks=size, first_sequence=options.first_sequence % (1 << 32),
        cores=options.cores or cores, deadline_ns=options.deadline_ns, blocks=options.blocks,
        adjust_threads=int(options.adjust_threads))


def _attach(maker, rank, number, inode, group):
    file = c_int32(number)
    if rank != maker.rank:
        invoke("wl_file_open", byref(maker.process()), number, byref(file))
    try:
        if native().wl_file_inode(file) != inode:
            raise ResourceException(
                f"process {maker.pid} has given up this start, and has other memory by now")
        invoke("wl_group_attach", file, byref(group))
    finally:
        if rank != maker.rank:
            native().wl_file_close(file)


def _open_wire(group, rank):
    """The name by which the processes of other hosts reach this one."""
    invoke("wl_group_open_wire", group, (c_int32 * 1)(rank), 1)
    count = c_uint64()
    invoke("wl_group_wire_name", group, None, 0, byref(count))
    name = (c_char * count.value)()
    invoke("wl_group_wire_name", group, name, count.value, byref(count))
    return name.raw


def _watch(hosts, rank, group):
    """Watches the processes of the host that `rank` of this one lives on."""
    processes = {}
    for each in hosts.arrivals:
        if hosts.numbers[each.rank] == hosts.numbers[rank]:
            processes.setdefault(bytes(each.process()), []).append(each)
    processes.pop(bytes(hosts.arrivals[rank].process()))
    for each in processes.values():
        ranks = (c_int32 * len(each))(*(one.rank for one in each))
        invoke("wl_group_watch", group, byref(each[0].process()), ranks, len(each), 0)


def start_from_environment(environment, options, until):
    """This rank's `wl_comm_t*`."""
    launch = LaunchEnvironment(environment)
    native()  # where there is none, no peer is waited for
    if launch.size == 1:
        group, comm = c_void_p(), c_void_p()
        invoke("wl_group_create", byref(_group_config(1, options, 0)), byref(group))
        try:
            invoke("wl_group_join", group, 0, byref(comm))
        finally:
            native().wl_group_release(group)
        return comm
    variables = os.environ if environment is None else environment
    host = Host(variables)
    address, token, file = launch.rendezvous, launch.token, None
    if address or token:
        require(address is not None,
                 "there is a token and no place where the ranks meet; set WINDLASS_RENDEZVOUS to"
                 " HOST:PORT, such as 127.0.0.1:29500, on all of them")
        require(token is not None,
                 "there is no token, which proves that ranks belong together; set"
                 " WINDLASS_TOKEN_FILE to a file that only you can read, of 64 hexadecimal digits"
                 " (openssl rand -hex 32)")
    elif launch.job is None:
        raise InvalidArgumentException(
            "nothing tells this job from others, by which its ranks find one another; set"
            " WINDLASS_JOB to a name of its own on all of them, or WINDLASS_RENDEZVOUS and"
            " WINDLASS_TOKEN_FILE")
    else:
        file = MeetingFile(launch.launcher + "\n" + launch.job, variables)
        address, token = ("127.0.0.1", 0), secrets.token_bytes(32)
        if launch.rank > 0:
            address, token = file.wait(until, "rank 0")
    if launch.rank > 0 or launch.launcher_has_store:
        return _meet(launch, address, token, options, host, until)
    server = StoreServer(address, token, until)
    try:
        if file is not None:
            address = server.address
            file.write(address, token)
        return _meet(launch, address, token, options, host, until)
    finally:
        if file is not None:
            file.close()
        server.close()


def _meet(launch, address, token, options, host, until):
    job = (launch.job or "windlass").encode("utf-8")
    name = job.decode("utf-8") if len(job) <= 128 else hashlib.sha256(job).hexdigest()
    whose, culprits = ("the launcher", []) if launch.launcher_has_store else ("rank 0", [0])
    while True:
        try:
            store = Store(
                address, token, name, launch.rank, launch.size, until, launch.launcher_has_store)
        except (PeerLostException, DeadlineExceededException) as e:
            raise WindlassException.of(
                e.code, f"waiting for {whose}, which has the store where ranks meet: {e}",
                culprits) from e
        try:
            opened = None
            if launch.rank > 0 and not launch.launcher_has_store:
                try:
                    opened = _Gathering.await_open(store, "start/", until)
                except PeerLostException:
                    continue  # it was that of an earlier start
            arrival = _Arrival.own(launch.rank, "", host)
            store.set(f"process/{arrival.pid}/{arrival.host}", arrival.bytes(), until)
            return start(
                store, "start/", None, opened, launch.rank, launch.size, options, host, until)
        finally:
            store.close()
