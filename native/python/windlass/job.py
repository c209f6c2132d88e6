# SPDX-License-Identifier: Apache-2.0
"""Jobs: how they find each other, and meet."""

import collections
import logging
import os
import secrets
import uuid

from .errors import (
    AbortedException, DeadlineExceededException, MismatchException, PeerLostException,
    UnsupportedException, WindlassException, expect, peek, reading, require, tried)
from .deadline import Deadline
from .encoding import Reader, packed, printable
from .library import ABI, MOST_RANKS, OP_LINK, library_version
from .launch import MeetingFile, host_and_port, token_of
from .store import Store
from .start import Host, Options, start
from .communicator import Communicator, Scope
from .link import Link, OFFER_FORMAT

MEETING_PROTOCOL = 3
PLAN_VERSION = 3


def _require_name(what, name):
    require(isinstance(name, str) and name and "/" not in name and name.isprintable()
             and len(name.encode("utf-8")) <= 64,
             f"{what} is {name!r}; it must have 1 to 64 bytes of characters that print, and no"
             " slash")


def versions():
    """All that two jobs have to have alike, as Java's jobs compare it."""
    return (
        f"windlass {library_version()}, ABI {ABI}, meeting protocol {MEETING_PROTOCOL}, plan"
        f" {PLAN_VERSION}, offer {OFFER_FORMAT}")


class _Announcement(collections.namedtuple(
        "_Announcement", "versions job instance pid ranks layout")):
    """What a job says of itself where it meets another."""

    _MAGIC, _FORM = 0x574C4D54, "uvuqiu"

    def bytes(self, options):
        return packed("i" + self._FORM + "Iiiq??", self._MAGIC, *self, options.first_sequence,
                       options.cores, options.blocks, options.deadline_ns, options.adjust_threads,
                       True)

    @staticmethod
    def of(data):
        """_Malformed for what is none; MismatchException for other versions."""
        reader = Reader(data)
        expect(reader.int() == _Announcement._MAGIC, "it begins otherwise")
        said = reader.utf()
        if said != versions():
            raise MismatchException(
                f"the other job has {printable(said)}; this one has {versions()}; run both with"
                " one version of Windlass")
        other = _Announcement(said, *reader.fields(_Announcement._FORM[1:]))
        expect(1 <= other.ranks <= MOST_RANKS, f"it has {other.ranks} ranks")
        return other

    def whose(self, first):
        last = first + self.ranks - 1
        ranks = f"rank {first} is" if first == last else f"ranks {first} to {last} are"
        return f"{ranks} job '{self.job}'"

    def __str__(self):
        return "job '%s' (%d %s, rank 0 is process %d)" % (
            self.job, self.ranks, "rank" if self.ranks == 1 else "ranks", self.pid)


class _Pairing:
    """The way of a source to the targets of its pair, at a store: what its rank 0 does, as Java's
    class of this name does it."""

    # How long it waits for a place that another job holds before it says so in the log; and before
    # it fails where that job is not one that it follows, beyond the time that the store may take to
    # let go of a job that has ended.
    _TELLS, _ENDS = 2.0, 5.0

    def __init__(self, store, pair, own, options, until):
        self._store, self._pair, self._path = store, pair, f"pair/{pair}/"
        self._own, self._until = own, until
        self._own_bytes = own.bytes(options)

    def source(self):
        """(meeting number, the target's key, its value there, its announcement as bytes)."""
        self._take_source()
        calls = None
        while True:
            path = self._path + "target/"
            for key in self._store.keys(path, self._until):
                name = key[len(path):]
                if name and "/" not in name and name.isprintable():
                    match = self._match(key)
                    if match:
                        return match
            try:
                calls = self._store.await_other(self._path + "calls", calls, self._until)
            except DeadlineExceededException as e:
                raise DeadlineExceededException(
                    f"pair '{self._pair}': no job receives it here that is not linked already, at"
                    f" the store at {self._store.address}, when the deadline passed; see whether"
                    " the other job runs, meets there by that name, with the same token where it"
                    " has one, and has the other role") from e

    def _take_source(self):
        key = self._path + "source"
        patience = self._store.silence + self._ENDS
        tells, ends, seen, told = Deadline(self._TELLS), None, None, False
        while not self._store.hold(key, self._own_bytes, self._until):
            there = self._store.get(key, self._until)
            if there is None:
                continue
            holder = peek(_Announcement.of, there)
            reason = (
                "pair '%s': another sends it already: %s; a pair has one source: name another pair,"
                " or end that job" % (self._pair, holder or "a job of another version"))
            is_final = holder is not None and holder.job != self._own.job
            if there != seen:
                seen, ends = there, Deadline(patience)
            if is_final and ends.over():
                raise MismatchException(reason)
            if not told and tells.over():
                told = True
                logging.getLogger("windlass").warning(
                    "job '%s', %s; it waits for that one to end, %.3g s at most",
                    self._own.job, reason,
                    min(ends, self._until, key=Deadline.left).left() if is_final
                    else self._until.left())
            first = tells if not told else ends if is_final else self._until
            try:
                self._store.await_other(key, there, min(first, self._until, key=Deadline.left))
            except DeadlineExceededException as e:
                if self._until.over():
                    raise DeadlineExceededException(reason) from e
        self._store.hold(self._path + "calls", bytes(8), self._until)

    def _match(self, key):
        seen = self._store.get(key, self._until)
        # A target's meeting, 0 for none so far, and what it says.
        standing = peek(lambda data: Reader(data).fields("qa"), seen)
        if standing is None or standing[0] != 0:
            return None
        meeting = secrets.randbits(62) + 1
        source = f"meeting/{meeting}/source"
        self._store.hold(source, b"", self._until)
        answered = packed("qa", meeting, standing[1]) + self._own_bytes
        if not self._store.compare_and_set(key, seen, answered, self._until):
            self._store.compare_and_set(source, b"", None, self._until)
            return None
        return meeting, key, answered, standing[1]


class Job(Scope):
    """A job of guests as one of its ranks has it: a communicator of its own, and the way to jobs of
    JVMs, which it meets at the store that WINDLASS_MEETING names and that one of those opens."""

    _STEP = 5.0  # seconds on the way to a store, before the next one

    def __init__(self, name, communicator, environment, options, owns):
        self.name = name
        self.communicator = communicator
        self._environment = dict(os.environ if environment is None else environment)
        self._host = Host(self._environment)
        self._options, self._owns = options, owns
        self._ranks = communicator._again(Deadline(options.deadline_ns / 1e9))

    @staticmethod
    def from_environment(name, environment=None, deadline=60.0, options=None):
        """Collective over the ranks that a launcher started, all of them guests.

        name: of the job, at most 64 bytes without a slash; jobs of one pair have different names.
        options: of its communicator, and of its links."""
        _require_name("name", name)
        options = options or Options()
        communicator = Communicator.from_environment(environment, deadline, options)
        try:
            return Job(name, communicator, environment, options, True)
        except BaseException as e:
            communicator._leave(e)
            raise

    @staticmethod
    def of(name, communicator, environment=None, options=None):
        """Collective over `communicator`, all of guests, which stays the caller's to close."""
        _require_name("name", name)
        return Job(name, communicator, environment, options or Options(), False)

    def meet(self, pair, deadline=60.0):
        """Collective: meets a job that receives the pair, in whatever order they come, and gives
        the link over which this job sends. It may be called again when a link has ended."""
        _require_name("pair", pair)
        until = Deadline(deadline)
        what = f"meet of pair '{pair}' as source"
        self._ranks._agree(until, f"of job '{self.name}' calls {what}")
        while True:
            link, failure = tried(lambda: self._met(pair, until))
            again = (failure is not None and not until.over() and isinstance(
                failure, (PeerLostException, AbortedException, DeadlineExceededException)))
            standing = 0 if failure is None else 1 if again else 2
            try:
                worst = max(each[0] for each in self._ranks._words(
                    OP_LINK, until.later(5), standing))
            except WindlassException as e:
                if link is not None:
                    link._end("meet", e)
                    link.close()
                raise failure or e
            if worst == 0:
                return link
            if link is not None:
                link.close()
            if worst == 2:
                failure = failure or AbortedException(
                    f"another rank of job '{self.name}' has failed; see what it says")
                raise WindlassException.of(
                    failure.code, f"{what}: {failure}", failure.culprits) from failure

    def _met(self, pair, until):
        ways = []  # at most one, into the store; rank 0's holds its signs
        own = _Announcement(
            versions(), self.name, str(uuid.uuid4()), os.getpid(), self._ranks.size, "")

        def match():
            address, token = self._place(until)
            store = self._connect(address, token, until)
            ways.append(store)
            meeting, key, value, other = _Pairing(store, pair, own, self._options, until).source()
            host, port = address
            return packed("qitata", meeting, port, host, token, key, value) + other

        def way():
            with reading("what the other job says of itself"):
                theirs = _Announcement.of(other)
            if not ways:
                ways.append(self._connect((host.decode("utf-8"), port), token, until))
            return theirs

        side = comm = None
        try:
            told = Reader(self._ranks._led(until, match))
            with reading("what rank 0 told"):
                meeting, port, host, token, key, value = told.fields("qiaaaa")
            other = told.rest()
            theirs, failure = tried(way)
            codes = self._ranks._words(OP_LINK, until.later(5), failure.code if failure else 0)
            if failure:
                raise failure
            failed = [rank for rank, each in enumerate(codes) if each[0]]
            if failed:
                raise WindlassException.of(
                    codes[failed[0]][0],
                    f"rank {failed[0]} of job '{self.name}' finds no way to the store", failed)
            side = self._ranks._again(until)
            handle = start(
                ways[0], f"meeting/{meeting}", (key.decode("utf-8"), value),
                self._ranks.rank, own.ranks + theirs.ranks, self._options, self._host, until)
            comm = Communicator(handle, self._options)
            whose = f" ({own.whose(0)}, {theirs.whose(own.ranks)})"
            layout = theirs.layout or "none"
            comm._agree(until, f"meets as '{pair}' from layout none to layout {layout}{whose}")
            link = Link(pair, whose, comm, side, own.ranks, until)
            side = comm = None
            return link
        except BaseException as e:
            if comm is not None and comm.failure() is None:
                comm.abort(f"meet failed there: {e}")
            raise
        finally:
            for each in (comm, side):
                if each is not None:
                    each._close_quietly()
            for each in ways:
                each.close()

    def _place(self, until):
        """((host, port), token) of the store where jobs meet, once one of them has it."""
        setting = self._environment.get("WINDLASS_MEETING", "")
        require(setting,
                 "WINDLASS_MEETING is not set, and nothing else says where jobs meet; set it to one"
                 " name for all of them, such as WINDLASS_MEETING=demo, or to HOST:PORT with"
                 " WINDLASS_TOKEN_FILE")
        if "://" in setting:
            raise UnsupportedException(
                f"WINDLASS_MEETING is {setting!r}; a Python job meets at HOST:PORT or by a name")
        if ":" in setting:
            token = token_of(self._environment)
            require(token is not None,
                     "WINDLASS_MEETING is an address, and there is no token, which proves that jobs"
                     " belong together; set WINDLASS_TOKEN_FILE to one file for all of them")
            return host_and_port("WINDLASS_MEETING", setting), token
        return MeetingFile("jobs\n" + setting, self._environment).wait(
            until, f"a job of JVMs, which opens the store of WINDLASS_MEETING={setting},")

    def _connect(self, address, token, until):
        # One that has gone since it was found is looked for anew.
        step = Deadline(max(0.001, min(self._STEP, until.left())))
        member = f"{self.name}/{uuid.uuid4()}"
        return Store(address, token, member, self._ranks.rank, self._ranks.size, step)

    def close(self):
        """Lets go of the communicator where the job made it. Links go on. Idempotent."""
        for each in reversed(self._communicators()):
            each.close()

    def _communicators(self):
        return [self.communicator, self._ranks] if self._owns else [self._ranks]

    def __repr__(self):
        return f"Job({self.name!r}, {self.communicator!r})"
