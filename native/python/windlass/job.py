# SPDX-License-Identifier: Apache-2.0
"""Jobs of Python ranks, and how one connects to a job that receives its tensors."""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import secrets
import uuid
from typing import Mapping

from .errors import (
    AbortedException, DeadlineExceededException, MismatchException, PeerLostException,
    UnsupportedException, WindlassException, expect, peek, reading, require, tried)
from .deadline import Deadline
from .encoding import Reader, packed, printable
from .library import ABI, MOST_RANKS, OP_LINK, library_version
from .launch import RendezvousFile, host_and_port, token_of
from .gather import AllGather
from .store import Store
from .start import Host, Options, start
from .communicator import Communicator, Scope
from .link import Link
from .link_transfer import OFFER_FORMAT, ranks_in_words

LINK_PROTOCOL = 6
_OLD_SETTING = "WINDLASS_MEETING"
PLAN_VERSION = 3

_JOINED, _AGAIN, _FAILED = 0, 1, 2  # outcomes of one attempt to connect, the worst last


def _require_name(what, name):
    require(isinstance(name, str) and name and "/" not in name and name.isprintable()
            and len(name.encode("utf-8")) <= 64,
            f"{what} is {name!r}; it must have 1 to 64 bytes of printable characters, without a"
            " slash")


def versions() -> str:
    """Returns the versions that two jobs compare as they connect, in words."""
    return (
        f"windlass {library_version()}, ABI {ABI}, link protocol {LINK_PROTOCOL}, plan"
        f" {PLAN_VERSION}, offer {OFFER_FORMAT}")


class _Announcement(collections.namedtuple(
        "_Announcement", "versions job instance pid ranks layout")):
    """Description of a job for the job that it connects to. `layout` is empty if there is none."""

    _MAGIC, _FORM = 0x574C4D54, "uvuqiu"

    def bytes(self, options: Options) -> bytes:
        # The last field says that the ranks are Python's.
        return packed("i" + self._FORM + "Iiiq??", self._MAGIC, *self,
                      options.first_sequence % (1 << 32), options.cores, options.blocks,
                      options.deadline_ns, options.adjust_threads, True)

    @staticmethod
    def of(data: bytes) -> _Announcement:
        """Reads an announcement. Raises Malformed, or MismatchException for other versions."""
        reader = Reader(data)
        expect(reader.field("i") == _Announcement._MAGIC, "it is no announcement of a job")
        others = reader.field("u")
        require(others == versions(),
                f"the other job has {printable(others)}; this one has {versions()}; run both with"
                " one version of Windlass", MismatchException)
        other = _Announcement(others, *reader.fields(_Announcement._FORM[1:]))
        expect(1 <= other.ranks <= MOST_RANKS, f"it has {other.ranks} ranks")
        return other

    def ranks_from(self, first: int) -> str:
        """Says which ranks of a link this job has, if `first` is its first one."""
        last = first + self.ranks - 1
        ranks = f"rank {first} is" if first == last else f"ranks {first} to {last} are"
        return f"{ranks} job '{self.job}'"

    def __str__(self):
        return f"job '{self.job}' ({ranks_in_words(self.ranks)}, rank 0 is process {self.pid})"


class _LinkSearch:
    """Search for the job that receives on a link, at a store. Rank 0 of the sending job runs it."""

    _WARN_AFTER = 2.0
    """Seconds that another source may hold the link before a warning is logged."""
    _FAIL_AFTER = 5.0
    """Seconds that a source of another name may hold the link, after the store has had the time
    to remove a job that ended."""

    def __init__(self, store, link_name, own, options, until):
        self._store, self._link_name, self._path = store, link_name, f"link/{link_name}/"
        self._own, self._until = own, until
        self._own_bytes = own.bytes(options)

    def find(self) -> tuple[int, str, bytes, bytes]:
        """Waits for a receiving job, and answers it.

        Returns the number of the rendezvous, the target's key, the value of that key, and the
        target's announcement."""
        self._become_source()
        calls, path = None, self._path + "target/"
        while True:
            for key in self._store.keys(path, self._until):
                name = key[len(path):]
                if name and "/" not in name and name.isprintable():
                    found = self._answer(key)
                    if found:
                        return found
            try:
                calls = self._store.await_other(self._path + "calls", calls, self._until)
            except DeadlineExceededException as e:
                raise DeadlineExceededException(
                    f"link '{self._link_name}': no job receives it here that is not linked yet,"
                    f" at the store at {self._store.address}, when the deadline passed;"
                    " check that the other job runs, connects to the same store with the same"
                    " link name and token, and has the other role") from e

    def _become_source(self):
        """Waits until no other job sends on the link."""
        key, patience = self._path + "source", self._store.silence + self._FAIL_AFTER
        warn_at, seen = Deadline(self._WARN_AFTER), None
        while not self._store.hold(key, self._own_bytes, self._until):
            value = self._store.get(key, self._until)
            if value is None:
                continue
            if value != seen:
                seen, fail_at = value, Deadline(patience)
            holder = peek(_Announcement.of, value)
            reason = (
                "link '%s': another sends it already: %s; a link name has one source: use another"
                " link name, or end that job"
                % (self._link_name, holder or "a job of another version"))
            ends = [self._until, warn_at]
            if holder is not None and holder.job != self._own.job:
                ends.append(fail_at)
                require(not fail_at.over(), reason, MismatchException)
            if warn_at.over():
                warn_at = ends[1] = self._until  # it is warned once
                logging.getLogger("windlass").warning(
                    "job '%s', %s; it waits for that one to end, %.3g s at most", self._own.job,
                    reason, min(each.left() for each in ends))
            try:
                self._store.await_other(key, value, min(ends, key=Deadline.left))
            except DeadlineExceededException as e:
                if self._until.over():
                    raise DeadlineExceededException(reason) from e
        self._store.hold(self._path + "calls", bytes(8), self._until)

    def _answer(self, key):
        """Returns what `find` does if the target at `key` takes this job's answer, else None."""
        value = self._store.get(key, self._until)
        # The number of the target's rendezvous, 0 before it has one, and its announcement.
        target = peek(lambda data: Reader(data).fields("qa"), value)
        if target is None or target[0] != 0:
            return None
        number = secrets.randbits(62) + 1
        source = f"rendezvous/{number}/source"
        self._store.hold(source, b"", self._until)
        answer = packed("qa", number, target[1]) + self._own_bytes
        if not self._store.compare_and_set(key, value, answer, self._until):
            self._store.compare_and_set(source, b"", None, self._until)
            return None
        return number, key, answer, target[1]


class Job(Scope):
    """One rank of a job of Python ranks, which sends tensors to jobs of JVMs.

    The jobs find each other at the store that WINDLASS_LINK_RENDEZVOUS names. A job of JVMs opens
    it. `name` is the job's, and `communicator` has its ranks."""

    _CONNECT_SECONDS = 5.0  # then the store is looked up again

    def __init__(self, name: str, communicator: Communicator,
                 environment: Mapping[str, str] | None, options: Options, owns: bool) -> None:
        self.name = name
        self.communicator = communicator
        self._environment = dict(os.environ if environment is None else environment)
        self._host = Host(self._environment)
        self._options, self._owns = options, owns
        self._ranks = communicator.split(0, deadline=options.deadline_ns / 1e9)

    @staticmethod
    def from_environment(name: str, environment: Mapping[str, str] | None = None,
                         deadline: float = 60.0, options: Options | None = None) -> Job:
        """Collective: returns a job of the ranks that a launcher started, all of them Python's.

        name: at most 64 bytes without a slash; targets of one link need different names.
        environment, deadline: see `Communicator.from_environment`. options: of the job's
        communicator and of its links."""
        _require_name("name", name)
        options = options or Options()
        with contextlib.ExitStack() as unfinished:
            communicator = unfinished.enter_context(
                Communicator.from_environment(environment, deadline, options))
            job = Job(name, communicator, environment, options, True)
            unfinished.pop_all()
            return job

    @staticmethod
    def of(name: str, communicator: Communicator, environment: Mapping[str, str] | None = None,
           options: Options | None = None) -> Job:
        """Collective: returns a job of the ranks of `communicator`, all of them Python's.

        The caller closes the communicator. See `from_environment` for the other arguments."""
        _require_name("name", name)
        return Job(name, communicator, environment, options or Options(), False)

    def connect(self, link_name: str, deadline: float = 60.0) -> Link:
        """Collective: waits for a job that receives on the link, and returns the link to it.

        link_name: at most 64 bytes without a slash. The jobs may come in any order. This may be
        called again when the link has ended. Raises MismatchException if another job sends on the
        link."""
        _require_name("link name", link_name)
        until = Deadline(deadline)
        what = f"connect to link '{link_name}' as source"
        self._ranks._agree(until, f"of job '{self.name}' calls {what}")
        retried = (PeerLostException, AbortedException, DeadlineExceededException)
        while True:
            link, failure = tried(lambda: self._connect_once(link_name, until))
            outcome = _JOINED if failure is None else _FAILED
            if isinstance(failure, retried) and not until.over():
                outcome = _AGAIN
            every, lost = tried(lambda: self._ranks._words(OP_LINK, until.later(5), outcome))
            worst = _FAILED if lost else max(every)[0]
            if worst == _JOINED:
                return link
            if link is not None:
                link._leave(lost)
            if worst == _FAILED:
                failure = failure or lost or AbortedException(
                    f"another rank of job '{self.name}' has failed; see its output")
                raise WindlassException.of(
                    failure.code, f"{what}: {failure}", failure.faulty_ranks) from failure

    def _connect_once(self, link_name, until):
        own = _Announcement(
            versions(), self.name, str(uuid.uuid4()), os.getpid(), self._ranks.size, "")
        store = None

        def find():
            nonlocal store
            if self._ranks.rank > 0:
                return b""
            (host, port), token = self._find_store(until)
            store = self._connect((host, port), token, until)
            search = _LinkSearch(store, link_name, own, self._options, until)
            number, key, value, other = search.find()
            return packed("qitata", number, port, host, token, key, value) + other

        def join():
            nonlocal store
            store = store or self._connect((host.decode("utf-8"), port), token, until)
            return b""

        try:
            # The store of rank 0 stays open: it has the keys by which the other job sees this one.
            found = Reader(self._ranks._on_each(until, find)[0])
            with reading("the rendezvous that rank 0 found"):
                number, port, host, token, key, value = found.fields("qiaaaa")
            with reading("the announcement of the other job"):
                theirs = _Announcement.of(found.rest())
            self._ranks._on_each(until, join)
            with contextlib.ExitStack() as unfinished:
                side = unfinished.enter_context(self._ranks.split(0, deadline=until.left() + 5))
                rank, size = self._ranks.rank, own.ranks + theirs.ranks
                all_gather = AllGather(
                    store, f"rendezvous/{number}", rank, size, (key.decode("utf-8"), value))
                comm = unfinished.enter_context(Communicator(
                    start(all_gather, rank, size, self._options, self._host, until),
                    self._options))
                whose = f" ({own.ranks_from(0)}, {theirs.ranks_from(own.ranks)})"
                layout = theirs.layout or "none"
                layouts = f"from layout none to layout {layout}{whose}"
                comm._agree(until, f"connects as '{link_name}' {layouts}")
                link = Link(link_name, whose, comm, side, own.ranks, until)
                unfinished.pop_all()
                return link
        finally:
            if store is not None:
                store.close()

    def _find_store(self, until):
        """Waits for the store where jobs find each other. Returns ((host, port), token)."""
        require(not self._environment.get(_OLD_SETTING),
                f"{_OLD_SETTING} is set, whose name is now WINDLASS_LINK_RENDEZVOUS; set that"
                " instead")
        setting = self._environment.get("WINDLASS_LINK_RENDEZVOUS", "")
        require(setting,
                "WINDLASS_LINK_RENDEZVOUS is not set, so it is unknown where jobs connect; set it"
                " to the same name in all jobs, such as WINDLASS_LINK_RENDEZVOUS=demo, or to"
                " HOST:PORT with WINDLASS_TOKEN_FILE")
        if "://" in setting:
            raise UnsupportedException(
                f"WINDLASS_LINK_RENDEZVOUS is {setting!r}; a Python job connects at HOST:PORT or by"
                " a name")
        if ":" in setting:
            token = token_of(self._environment)
            require(token is not None,
                    "WINDLASS_LINK_RENDEZVOUS is an address, and there is no token, which proves"
                    " that jobs belong together; set WINDLASS_TOKEN_FILE to one file for all of"
                    " them")
            return host_and_port("WINDLASS_LINK_RENDEZVOUS", setting), token
        return RendezvousFile("jobs\n" + setting, self._environment).wait(
            until, f"a job of JVMs, which opens the store of WINDLASS_LINK_RENDEZVOUS={setting},")

    def _connect(self, address, token, until):
        member = f"{self.name}/{uuid.uuid4()}"
        return Store(address, token, member, self._ranks.rank, self._ranks.size,
                     until.at_most(self._CONNECT_SECONDS))

    def _communicators(self):
        return [self.communicator, self._ranks] if self._owns else [self._ranks]

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.communicator!r})"
