# SPDX-License-Identifier: Apache-2.0
"""The start of a communicator: its ranks find each other, compare settings, and share memory.

A start has up to four steps, which are all-gathers. docs/explanation/protocols.md has their values.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import secrets
import struct
import uuid
from ctypes import byref, c_char, c_int32, c_uint64, c_void_p
from typing import Any, Callable, Mapping

from .deadline import Deadline
from .encoding import Reader, packed, printable
from .errors import (
    DeadlineExceededException, InvalidArgumentException, MismatchException, PeerLostException,
    ResourceException, WindlassException, expect, reading, require, tried)
from .gather import AllGather
from .hosts import Arrival, Host, Hosts, compare
from .launch import Address, LaunchEnvironment, RendezvousFile
from .library import MAX_BLOCKS, GroupConfig, integer, invoke, native, sized
from .server import StoreServer
from .store import Store


class Options:
    """Options of a communicator, the same on all ranks; the defaults are Java's."""

    def __init__(self, deadline: float = 60.0, first_sequence: int = 1, cores: int = 0,
                 blocks: int = 0, adjust_threads: bool = False) -> None:
        """deadline: seconds of a call that names no deadline.
        first_sequence: sequence number of the first operation, 32 bits.
        cores: number of cores that the ranks of a host share; 0 takes what the system allows.
        blocks: number of threads of a rank's long operations, at most 64; 0 chooses by the cores.
        adjust_threads: whether operations may move the threads that call them among cores.
        Raises InvalidArgumentException if a value is out of range."""
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


class _Steps:
    """The all-gathers of a start, as one rank makes them."""

    def __init__(self, gather: Callable[[bytes, bool], list[bytes]], rank: int) -> None:
        """gather: takes what this rank says, and True in the last step. Returns what all say."""
        self._gather, self._rank = gather, rank
        self._member = uuid.uuid4()
        self._members: list[uuid.UUID] | None = None
        self.hosts: Hosts | None = None  # known after the first step

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
                e.code, f"{e}{self._where(e.faulty_ranks)}", e.faulty_ranks) from e
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
                     "; make the same call on all ranks, and run one version of windlass on all"
                     " of them", [rank]):
            reader = Reader(data)
            member, step, kind = reader.fields("guB")
            expect(kind <= 1, f"it has kind {kind}")
            if kind == 0:
                return member, step, None, reader.fields("a.")[0]
            return member, step, WindlassException.of(*reader.fields("iv.")), b""

    def _compare(self, step: str, said: list[Any]) -> None:
        """Raises a MismatchException unless all ranks are at this step of this start."""
        members = [member for member, *_ in said]
        if members[self._rank] != self._member:
            raise MismatchException(
                f"another has said that it is rank {self._rank}; give each its own", [self._rank])
        for rank, (member, its_step, *_) in enumerate(said):
            require(its_step == step,
                    f"rank {rank} is at step {printable(its_step)} of its start, rank {self._rank}"
                    f" at {step}; start all ranks again together", MismatchException, [rank])
            require(self._members is None or member == self._members[rank],
                    f"rank {rank} takes part in another start than before; make only one start at"
                    " a time on each rank", MismatchException, [rank])
        self._members = members


def start(all_gather: AllGather, rank: int, size: int, options: Options, host: Host,
          until: Deadline) -> c_void_p:
    """Joins the group of the other ranks of a start. Returns this rank's wl_comm_t*."""
    steps = _Steps(lambda said, is_last: all_gather.round(said, is_last, until), rank)
    try:
        said = steps.take("arrive", lambda: Arrival.own(rank, options.text(), host).to_bytes())
        arrivals = [Arrival.of(each, data) for each, data in enumerate(said)]
        compare(arrivals)
        steps.hosts = Hosts(arrivals)
        return _share_and_attach(steps, steps.hosts, rank, size, options, host)
    except BaseException:
        all_gather.quit()
        raise


def _share_and_attach(steps: _Steps, hosts: Hosts, rank: int, size: int, options: Options,
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
            number, inode = Reader(told).fields("iQ.")
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


def _attach(maker: Arrival, rank: int, number: int, inode: int, group: c_void_p) -> None:
    """Attaches to the memory of a host. Its `maker` has it open as file `number`."""
    file = c_int32(number)
    if rank != maker.rank:
        invoke("wl_file_open", byref(maker.process()), number, byref(file))
    try:
        if native().wl_file_inode(file) != inode:
            raise ResourceException(
                f"process {maker.pid} has given up this start, and has made new memory since")
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


def _watch(hosts: Hosts, rank: int, group: c_void_p) -> None:
    """Watches the other processes of this rank's host."""
    processes: dict[bytes, list[Arrival]] = {}
    for each in hosts.together(rank):
        processes.setdefault(bytes(each.process()), []).append(each)
    processes.pop(bytes(hosts.arrivals[rank].process()))
    for those in processes.values():
        ranks = (c_int32 * len(those))(*(each.rank for each in those))
        invoke("wl_group_watch", group, byref(those[0].process()), ranks, len(those), 0)


def start_from_environment(environment: Mapping[str, str] | None, options: Options,
                           until: Deadline) -> c_void_p:
    """Joins the ranks that a launcher started. Returns this rank's wl_comm_t*."""
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
        return _join(launch, address, token, options, host, until)


def _place(launch: LaunchEnvironment, variables: Mapping[str, str],
           closing: contextlib.ExitStack, until: Deadline) -> tuple[Address, bytes]:
    """Returns where the store is, and its token. Rank 0 opens it, unless the launcher has."""
    address, token, file = launch.rendezvous, launch.token, None
    if address is None and token is None:
        require(launch.job is not None,
                "nothing tells this job from others, by which its ranks find one another; set"
                " WINDLASS_JOB to a name of its own on all of them, or WINDLASS_RENDEZVOUS and"
                " WINDLASS_TOKEN_FILE")
        file = RendezvousFile(f"{launch.launcher}\n{launch.job}", variables)
        if launch.rank > 0:
            return file.wait(until, "rank 0")
        address, token = ("127.0.0.1", 0), secrets.token_bytes(32)
    require(address is not None,
            "there is a token and no rendezvous; set WINDLASS_RENDEZVOUS to"
            " HOST:PORT, such as 127.0.0.1:29500, on all of them")
    require(token is not None,
            "there is no token, which proves that ranks belong together; set WINDLASS_TOKEN_FILE to"
            " a file that only you can read, of 64 hexadecimal digits (openssl rand -hex 32)")
    if launch.rank == 0 and not launch.launcher_has_store:
        server = StoreServer(address, token, until)
        closing.callback(server.close)
        if file is not None:
            address = server.address
            file.write(address, token)
            closing.callback(file.close)
    return address, token


def _join(launch: LaunchEnvironment, address: Address, token: bytes, options: Options, host: Host,
          until: Deadline) -> c_void_p:
    job = (launch.job or "windlass").encode("utf-8", "replace")
    name = job.decode("utf-8") if len(job) <= 128 else hashlib.sha256(job).hexdigest()
    is_own = launch.rank == 0 and not launch.launcher_has_store
    whose, faulty_ranks = ("the launcher", []) if launch.launcher_has_store else ("rank 0", [0])
    before = ""
    while True:
        store = all_gather = None
        try:
            store = Store(
                address, token, name, launch.rank, launch.size, until, launch.launcher_has_store)
            arrival = Arrival.own(launch.rank, "", host)
            store.set(f"process/{arrival.pid}/{arrival.host}", arrival.to_bytes(), until)
            all_gather = AllGather(store, "start", launch.rank, launch.size)
            return start(all_gather, launch.rank, launch.size, options, host, until)
        except (PeerLostException, DeadlineExceededException) as e:
            # If a store ends before rank 0 arrived there, an earlier start had opened it.
            has_first = all_gather is not None and all_gather.is_open
            is_earlier = (store is not None and store.lost is not None and not has_first
                          and launch.rank > 0 and not launch.launcher_has_store)
            if is_earlier and not until.over():
                before = f" (before that: {e})"
                continue
            if is_own or e.faulty_ranks:
                raise
            raise WindlassException.of(
                e.code, f"waiting for {whose}, which has the rendezvous store: {e}{before}",
                faulty_ranks) from e
        finally:
            if store is not None:
                store.close()
