# SPDX-License-Identifier: Apache-2.0
"""The start of a communicator: its ranks meet, compare what must be alike, and share memory.

A start has three or four all-gathers: "arrive", "share", "wire" if ranks live on several hosts, and
"attach". In each, a rank says its member id (a UUID of 16 bytes), the step's name as DataOutput
writes it, and a byte: 0 and a value, or 1 with the code and the message of its failure.
"""

from __future__ import annotations

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
from typing import Any, Callable, Mapping

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    DeadlineExceededException, MismatchException, PeerLostException, ResourceException,
    UnsupportedException, WindlassException, expect, reading, require, tried)
from .launch import Address, LaunchEnvironment, MeetingFile, own_process, read_boot_id
from .library import (
    MAX_BLOCKS, GroupConfig, Process, integer, invoke, library_version, native, sized)
from .server import StoreServer
from .store import Guard, Store

START_PROTOCOL = 5


class Options:
    """Options of a communicator, the same on all ranks; the defaults are Java's."""

    def __init__(self, deadline: float = 60.0, first_sequence: int = 1, cores: int = 0,
                 blocks: int = 0, adjust_threads: bool = False) -> None:
        """deadline: seconds of a call that names none. first_sequence: number of the first
        operation. cores, blocks: of the host's cores, and workers of a rank; 0 lets Windlass
        choose. adjust_threads: whether ranks use fewer cores while others need them.
        Raises InvalidArgumentException for a value out of range."""
        self.deadline_ns = round(Deadline(deadline).whole * 1e9)
        self.first_sequence = integer("first_sequence", first_sequence)
        self.cores = integer("cores", cores, 0)
        self.blocks = integer("blocks", blocks, 0, MAX_BLOCKS)
        self.adjust_threads = bool(adjust_threads)

    def text(self) -> str:
        """Returns the text of Java's record, by which ranks compare options."""
        return (
            f"firstSequence={self.first_sequence}, cores={self.cores}, blocks={self.blocks},"
            f" deadline={self.deadline_ns} ns, adjustThreads={str(self.adjust_threads).lower()}")


class Host:
    """The host of this process as variables name it, and how long it may be silent."""

    def __init__(self, variables: Mapping[str, str]) -> None:
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


class _Arrival(collections.namedtuple(
        "_Arrival", "library rank target host machine named pid started pid_namespace cores cpus"
        " options")):
    """What a rank says about itself when it arrives at a start."""

    _FORM = "vivuvviQQiuv"  # after the version of the protocol

    @staticmethod
    def own(rank: int, options: str, host: Host) -> _Arrival:
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

    def bytes(self) -> bytes:
        return packed("i" + self._FORM, START_PROTOCOL, *self)

    @staticmethod
    def of(rank: int, data: bytes) -> _Arrival:
        with reading(f"what rank {rank} says of itself", culprits=[rank]):
            protocol, library = Reader(data).fields("iv")
            if protocol != START_PROTOCOL:
                raise MismatchException(
                    f"rank {rank} runs windlass {library}, which starts by protocol {protocol};"
                    f" this one runs {library_version()}, by protocol {START_PROTOCOL}; use one"
                    " version everywhere", [rank])
            _, *fields = Reader(data).fields("i" + _Arrival._FORM)
        arrival = _Arrival(*fields)
        if arrival.rank != rank:
            raise MismatchException(
                f"rank {rank} says that it is rank {arrival.rank}; start all ranks again", [rank])
        return arrival

    def process(self) -> Any:
        return sized(
            Process, pid=self.pid, started=self.started, pid_namespace=self.pid_namespace)

    def mask(self) -> set[int]:
        """Returns the numbers of the cores that the process may use."""
        mask: set[int] = set()
        for part in self.cpus.split(","):
            ends = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
            if not ends or int(ends[2] or ends[1]) >= 1 << 16:
                return set()
            mask.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
        return mask


def _shared_cores(arrivals: list[_Arrival]) -> int:
    """Returns how many cores the processes of a host share: those of all their masks, or fewer if
    a quota bounds them."""
    masks = [each.mask() for each in arrivals]
    union = set().union(*masks)
    bounded = any(each.cores < len(mask) for each, mask in zip(arrivals, masks))
    most = max(1, *(each.cores for each in arrivals))
    return most if bounded or not union else len(union)


class _Hosts:
    """The hosts of a start's ranks. Ranks of one host can share memory. Hosts have numbers, from 0
    on, in the order of their lowest ranks."""

    def __init__(self, arrivals: list[_Arrival]) -> None:
        self.arrivals = arrivals
        self.numbers: list[int] = []
        self._firsts: list[_Arrival] = []
        known: dict[Any, int] = {}
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

    def are_several(self) -> bool:
        return len(self._firsts) > 1

    def together(self, rank: int) -> list[_Arrival]:
        """Returns the arrivals of the host of `rank`, the lowest rank first."""
        return [each for each in self.arrivals if self.numbers[each.rank] == self.numbers[rank]]

    def cores(self) -> int:
        """Returns the number of cores that the ranks of any host share at least."""
        return min(_shared_cores(self.together(first.rank)) for first in self._firsts)

    def name(self, rank: int) -> str:
        """Returns the name of a rank after "rank". It names its host if there are several."""
        arrival = self.arrivals[rank]
        host = " on host %d (%s)" % (self.numbers[rank], arrival.named or arrival.machine)
        return "%d%s" % (rank, host if self.are_several() else "")


class _Steps:
    """The all-gathers of a start, as one rank makes them."""

    def __init__(self, gather: Callable[[bytes, bool], list[bytes]], rank: int) -> None:
        """gather: given what this rank says, and whether it is the last time, what all say."""
        self._gather, self._rank = gather, rank
        self._member = uuid.uuid4()
        self._members: list[uuid.UUID] | None = None
        self.hosts: _Hosts | None = None  # known after the first step

    def take(self, step: str, work: Callable[[], bytes], is_last: bool = False) -> list[bytes]:
        """Returns the results of `work` of all ranks. If it raises on a rank, all ranks raise."""
        value, failure = tried(work)
        own = packed("gu", self._member, step) + (
            packed("Ba", 0, value) if failure is None
            else packed("Biu", 1, failure.code, str(failure)))
        try:
            every = self._gather(own, is_last)
        except WindlassException as e:
            raise failure or WindlassException.of(
                e.code, f"{e}{self._where(e.culprits)}", e.culprits) from e
        said = [self._read(rank, data) for rank, data in enumerate(every)]
        self._compare(step, said)
        for rank, (_, _, why, _) in enumerate(said):
            if why is not None:
                name = self.hosts.name(rank) if self.hosts else rank
                raise WindlassException.of(why.code, f"rank {name}: {why}", [rank])
        return [value for _, _, _, value in said]

    def _where(self, ranks: list[int]) -> str:
        """Names the hosts of ranks, if there are several hosts and they are known."""
        if self.hosts is None or not self.hosts.are_several() or not ranks:
            return ""
        return " (%s)" % ", ".join("rank " + self.hosts.name(rank) for rank in ranks[:8])

    @staticmethod
    def _read(rank: int, data: bytes) -> tuple[uuid.UUID, str, WindlassException | None, bytes]:
        """Returns member, step, failure and value of what a rank says."""
        with reading(f"what rank {rank} says at the start",
                     "; have all ranks call the same, and run one version of windlass on all of"
                     " them", [rank]):
            reader = Reader(data)
            member, step, kind = reader.fields("guB")
            expect(kind <= 1, f"it has kind {kind}")
            failure = WindlassException.of(*reader.fields("iv")) if kind == 1 else None
            value = reader.array() if kind == 0 else b""
            reader.end()
            return member, step, failure, value

    def _compare(self, step: str, said: list[Any]) -> None:
        """Raises a MismatchException unless all ranks are at this step of this start."""
        members = [member for member, *_ in said]
        if members[self._rank] != self._member:
            raise MismatchException(
                f"another has said that it is rank {self._rank}; give each its own", [self._rank])
        for rank, (member, its_step, *_) in enumerate(said):
            if its_step != step:
                raise MismatchException(
                    f"rank {rank} is at step {printable(its_step)} of its start, rank {self._rank}"
                    f" at {step}; have all ranks start anew together", [rank])
            if self._members is not None and member != self._members[rank]:
                raise MismatchException(
                    f"rank {rank} speaks in another start than before; have each rank make one"
                    " start at a time", [rank])
        self._members = members


def start(store: Store, name: str, guard: Guard, rank: int, size: int, options: Options, host: Host,
          until: Deadline) -> c_void_p:
    """Meets the other ranks of the start `name` at a store, and joins their group.

    guard: see Store.gather. Returns this rank's wl_comm_t*."""
    def gather(said: bytes, is_last: bool) -> list[bytes]:
        return store.gather(name, size, {rank: said}, is_last, until, guard)

    steps = _Steps(gather, rank)
    said = steps.take("arrive", lambda: _Arrival.own(rank, options.text(), host).bytes())
    arrivals = [_Arrival.of(each, data) for each, data in enumerate(said)]
    _compare(arrivals)
    steps.hosts = _Hosts(arrivals)
    return _share_and_attach(steps, steps.hosts, rank, size, options, host)


def _compare(arrivals: list[_Arrival]) -> None:
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


def _share_and_attach(steps: _Steps, hosts: _Hosts, rank: int, size: int, options: Options,
                      host: Host) -> c_void_p:
    """The lowest rank of each host makes the memory that its ranks share, and all attach to it."""
    maker = hosts.together(rank)[0]
    shared, group, comm = c_int32(-1), c_void_p(), c_void_p()
    wires: list[bytes] = []

    def share() -> bytes:
        if rank == maker.rank:
            numbers = (c_int32 * size)(*hosts.numbers)
            config = _group_config(size, options, hosts.cores())
            config.hosts = ctypes.addressof(numbers) if hosts.are_several() else None
            invoke("wl_group_share", byref(config), byref(shared))
        inode = native().wl_file_inode(shared) if shared.value >= 0 else 0
        return struct.pack(">iQ", shared.value, inode)

    def open_wire() -> bytes:
        _attach(maker, rank, number, inode, group)
        return _open_wire(group, rank)

    def join() -> bytes:
        if not hosts.are_several():
            _attach(maker, rank, number, inode, group)
        if wires:
            lengths = (c_uint64 * len(wires))(*map(len, wires))
            invoke("wl_group_connect", group, b"".join(wires), lengths, len(wires), host.silence_ns)
        invoke("wl_group_join", group, rank, byref(comm))
        _watch(hosts, rank, group)
        return b""

    try:
        told = steps.take("share", share)[maker.rank]
        with reading(f"what rank {maker.rank} says of the memory that all share",
                     "; run one version of windlass on all ranks", [maker.rank]):
            reader = Reader(told)
            number, inode = reader.unpack("iQ")
            reader.end()
        if hosts.are_several():
            wires += [each for each in steps.take("wire", open_wire) if each]
        steps.take("attach", join, True)
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


def _group_config(size: int, options: Options, cores: int) -> Any:
    return sized(
        GroupConfig, ranks=size, first_sequence=options.first_sequence % (1 << 32),
        cores=options.cores or cores, deadline_ns=options.deadline_ns, blocks=options.blocks,
        adjust_threads=int(options.adjust_threads))


def _attach(maker: _Arrival, rank: int, number: int, inode: int, group: c_void_p) -> None:
    """Attaches to the memory that `maker` has made, which is its file of that number."""
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


def _open_wire(group: c_void_p, rank: int) -> bytes:
    """Returns the name by which processes of other hosts reach this one."""
    invoke("wl_group_open_wire", group, (c_int32 * 1)(rank), 1)
    count = c_uint64()
    invoke("wl_group_wire_name", group, None, 0, byref(count))
    name = (c_char * count.value)()
    invoke("wl_group_wire_name", group, name, count.value, byref(count))
    return name.raw


def _watch(hosts: _Hosts, rank: int, group: c_void_p) -> None:
    """Watches the other processes of this rank's host."""
    processes: dict[bytes, list[_Arrival]] = {}
    for each in hosts.together(rank):
        processes.setdefault(bytes(each.process()), []).append(each)
    processes.pop(bytes(hosts.arrivals[rank].process()))
    for each in processes.values():
        ranks = (c_int32 * len(each))(*(one.rank for one in each))
        invoke("wl_group_watch", group, byref(each[0].process()), ranks, len(each), 0)


def start_from_environment(environment: Mapping[str, str] | None, options: Options,
                           until: Deadline) -> c_void_p:
    """Meets the ranks that a launcher started. Returns this rank's wl_comm_t*."""
    launch = LaunchEnvironment(environment)
    native()  # raises before a peer is waited for
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
    with contextlib.ExitStack() as closing:
        address, token = _place(launch, variables, closing, until)
        return _meet(launch, address, token, options, host, until)


def _place(launch: LaunchEnvironment, variables: Mapping[str, str],
           closing: contextlib.ExitStack, until: Deadline) -> tuple[Address, bytes]:
    """Returns where the store is, and its token. Rank 0 opens it, unless the launcher has."""
    address, token, file = launch.rendezvous, launch.token, None
    if address or token:
        require(address,
                "there is a token and no place where the ranks meet; set WINDLASS_RENDEZVOUS to"
                " HOST:PORT, such as 127.0.0.1:29500, on all of them")
        require(token,
                "there is no token, which proves that ranks belong together; set"
                " WINDLASS_TOKEN_FILE to a file that only you can read, of 64 hexadecimal digits"
                " (openssl rand -hex 32)")
    else:
        require(launch.job is not None,
                "nothing tells this job from others, by which its ranks find one another; set"
                " WINDLASS_JOB to a name of its own on all of them, or WINDLASS_RENDEZVOUS and"
                " WINDLASS_TOKEN_FILE")
        file = MeetingFile(f"{launch.launcher}\n{launch.job}", variables)
        if launch.rank > 0:
            return file.wait(until, "rank 0")
        address, token = ("127.0.0.1", 0), secrets.token_bytes(32)
    if launch.rank == 0 and not launch.launcher_has_store:
        server = StoreServer(address, token, until)
        closing.callback(server.close)
        if file is not None:
            address = server.address
            file.write(address, token)
            closing.callback(file.close)
    return address, token


def _meet(launch: LaunchEnvironment, address: Address, token: bytes, options: Options, host: Host,
          until: Deadline) -> c_void_p:
    job = (launch.job or "windlass").encode("utf-8", "replace")
    name = job.decode("utf-8") if len(job) <= 128 else hashlib.sha256(job).hexdigest()
    is_own = launch.rank == 0 and not launch.launcher_has_store
    whose, culprits = ("the launcher", []) if launch.launcher_has_store else ("rank 0", [0])
    while True:
        store = None
        try:
            store = Store(
                address, token, name, launch.rank, launch.size, until, launch.launcher_has_store)
            arrival = _Arrival.own(launch.rank, "", host)
            store.set(f"process/{arrival.pid}/{arrival.host}", arrival.bytes(), until)
            return start(
                store, "start", ("", None), launch.rank, launch.size, options, host, until)
        except (PeerLostException, DeadlineExceededException) as e:
            # A store that ends before rank 0 has come there is that of an earlier start.
            is_earlier = (store is not None and store.lost is not None and not store.has_first
                          and launch.rank > 0 and not launch.launcher_has_store)
            if is_earlier and not until.over():
                continue
            if is_own or e.culprits:
                raise
            raise WindlassException.of(
                e.code, f"waiting for {whose}, which has the store where ranks meet: {e}",
                culprits) from e
        finally:
            if store is not None:
                store.close()
