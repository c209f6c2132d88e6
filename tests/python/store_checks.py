# SPDX-License-Identifier: Apache-2.0
"""All-gathers at the store of a Python rank 0: what ranks get, and why a start fails."""

import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
import time

import windlass
from windlass import gather, server, store
from windlass.deadline import Deadline
from windlass.encoding import packed

TOKEN = secrets.token_bytes(32)


@contextlib.contextmanager
def opened(count, size=None):
    """(the server, a member for each of `count` ranks)."""
    at = server.StoreServer(("127.0.0.1", 0), TOKEN, Deadline(30))
    members = [member(at, rank, size or count) for rank in range(count)]
    try:
        yield at, members
    finally:
        for each in members:
            each.close()
        at.close()


class Member(store.Store):
    """A member, and its all-gathers of the start."""

    start = None

    def gather(self, size, own, is_last, until):
        ((rank, said),) = own.items()
        if self.start is None:
            self.start = gather.AllGather(self, "start", rank, size)
        return self.start.round(said, is_last, until)


def member(at, rank, size):
    return Member(at.address, TOKEN, "test", rank, size, Deadline(30))


class Call(threading.Thread):
    """An all-gather on a thread: `result` is what it gives or raises."""

    def __init__(self, who, size, own, is_last=False, seconds=30.0):
        super().__init__()
        self.who, self.rest = who, (size, own, is_last)
        self.seconds = seconds
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.who.gather(*self.rest, Deadline(self.seconds))
        except windlass.WindlassException as e:
            self.result = e

    def end(self):
        self.join()
        return self.result


def fails(call, kind, faulty_ranks, *words):
    result = call.end() if isinstance(call, Call) else call
    assert type(result) is kind and result.faulty_ranks == faulty_ranks, (result, result.faulty_ranks)
    assert all(each in str(result) for each in words), (words, str(result))


def run():
    for check in (rounds, long_values, several_ranks, sizes, one_rank_twice, held_ranks, comes_again,
                  leaves, late, behind, first_comes, closes, forked, addresses, next_start, kinds,
                  waits, tables, replaced, stale, failed_before, much_twice, shared_rank, unreadable):
        check()


def rounds():
    with opened(3) as (_, members):
        for number in range(4):
            said = [b"%d of %d" % (rank, number) for rank in range(3)]
            calls = [Call(each, 3, {rank: said[rank]}, number == 3)
                     for rank, each in enumerate(members)]
            assert [call.end() for call in calls] == [said] * 3


def long_values():
    """Values that take several frames."""
    with opened(3) as (_, members):
        said = [secrets.token_bytes(size) for size in (0, 512 << 10, 300_000)]
        calls = [Call(each, 3, {rank: said[rank]}) for rank, each in enumerate(members)]
        assert [call.end() for call in calls] == [said] * 3
        with contextlib.suppress(windlass.PeerLostException):  # the session ends
            members[1].set("a", bytes((512 << 10) + 1), Deadline(30))
            raise SystemExit("a value was too long")


def several_ranks():
    """A process with two ranks, as JVMs may have."""
    with opened(2, 3) as (at, members):
        waits = Call(members[0], 3, {0: b"a"})
        members[1].hold("start/rank/1", packed("iiiiii", 0, 3, 2, 2, 1, 0)
                        + packed("aa", b"c", b"b"), Deadline(30))
        assert waits.end() == [b"a", b"b", b"c"]


def sizes():
    for first in (0, 1):
        with opened(2) as (_, members):
            waits = Call(members[first], 2 + first, {first: b""})
            time.sleep(0.1)
            comes = Call(members[1 - first], 3 - first, {1 - first: b""})
            for call in (waits, comes):
                fails(call, windlass.MismatchException, [0, 1],
                      "rank 0 was started as one of 2 ranks, rank 1 as one of 3; set the same"
                      " world size on all ranks (WINDLASS_WORLD_SIZE, or the launcher's"
                      " variable), and start the same number of ranks in each process")


def one_rank_twice():
    with opened(3) as (at, members):
        other = Member(at.address, TOKEN, "other", 1, 3, Deadline(30))
        waits = [Call(members[rank], 3, {rank: b"%d" % rank}) for rank in (0, 1)]
        time.sleep(0.1)
        fails(Call(other, 3, {1: b""}), windlass.MismatchException, [1],
              "another process has joined this start as rank 1 too, and is the one that counts;"
              " two processes can't have the same rank: start all ranks again")
        other.close()
        assert members[2].gather(3, {2: b"2"}, False, Deadline(30)) == [b"0", b"1", b"2"]
        assert [call.end() for call in waits] == [[b"0", b"1", b"2"]] * 2


class Silent(store.Store):
    """A member that sends at most a PING behind its PROOF."""

    sends_ping = False

    def _be_welcomed(self, limit):
        self._answer(store.WELCOME, limit)
        self.silence = 60.0
        if self.sends_ping:
            self._send(limit, packed("Bi", store.PING, store.NO_CALL))


def held_ranks():
    """A connection that has sent one request at most does not keep its rank from others."""
    for Silent.sends_ping in (False, True):
        held_rank()


def held_rank():
    with opened(0) as (at, _):
        silent = Silent(at.address, TOKEN, "test", 1, 2, Deadline(30))
        if Silent.sends_ping:
            time.sleep(2.1)
        spoken = member(at, 1, 2)
        spoken.set("a", b"1", Deadline(30))
        try:
            member(at, 1, 2)
            raise SystemExit("two have one rank")
        except windlass.MismatchException as e:
            assert "rank 1 is connected already; two members can't have the same rank" in str(e), e
        try:
            silent.get("a", Deadline(30))
            raise SystemExit("it was not replaced")
        except windlass.PeerLostException:
            spoken.close()
            silent.close()


def comes_again():
    """In the first round a rank that leaves takes back what it said, and may come again."""
    with opened(2, 3) as (at, members):
        waits = Call(members[0], 3, {0: b"a"})
        time.sleep(0.1)
        leaver = Call(members[1], 3, {1: b"old"}, seconds=0.8)
        time.sleep(0.5)
        members[1].close()
        assert isinstance(leaver.end(), windlass.WindlassException), leaver.result
        time.sleep(0.5)
        assert waits.result is None, waits.result  # after the deadline of the one that left
        members[1:] = [member(at, rank, 3) for rank in (1, 2)]
        calls = [Call(members[rank], 3, {rank: b"bc"[rank - 1:rank]}) for rank in (1, 2)]
        assert [call.end() for call in (waits, *calls)] == [[b"a", b"b", b"c"]] * 3
    with opened(1, 3) as (at, _):
        for rank, size in ((1, 2), (2, 3)):  # no trace of the first is left
            early = member(at, rank, size)
            call = Call(early, size, {rank: b""}, seconds=0.5)
            time.sleep(0.1)
            if size == 2:
                early.close()
            fails(call, windlass.PeerLostException if size == 2
                  else windlass.DeadlineExceededException, [] if size == 2 else [0, 1])
        early.close()


def leaves():
    """Those that wait hear it, and others if they ask within two seconds."""
    with opened(3) as (_, members):
        calls = [Call(each, 3, {rank: b""}) for rank, each in enumerate(members)]
        assert all(call.end() == [b""] * 3 for call in calls)
        waits = Call(members[0], 3, {0: b""})
        time.sleep(0.1)
        members[2].close()
        text = ("rank 2 joined the start and left before all ranks had joined; see the output of"
                " its process")
        time.sleep(0.5)
        fails(Call(members[1], 3, {1: b""}), windlass.PeerLostException, [2], text)
        fails(waits, windlass.PeerLostException, [2], text)
    with opened(3) as (_, members):  # while another is awaited
        calls = [Call(each, 3, {rank: b""}) for rank, each in enumerate(members)]
        assert all(call.end() == [b""] * 3 for call in calls)
        waits = Call(members[0], 3, {0: b""})
        time.sleep(0.1)
        begin = time.monotonic()
        members[2].close()
        fails(waits, windlass.PeerLostException, [2], text)
        assert time.monotonic() - begin < 4  # the last two seconds are for rank 1


def late():
    with opened(2, 4) as (at, members):
        begin = time.monotonic()
        calls = [Call(members[0], 4, {0: b""}, seconds=0.5), Call(members[1], 4, {1: b""})]
        for call in calls:
            fails(call, windlass.DeadlineExceededException, [2, 3],
                  "ranks 2, 3 of 4 had not joined at %s:%d when the deadline passed; see why they did"
                  " not start, or give more time" % at.address)
        assert 0.4 < time.monotonic() - begin < 3


def behind():
    log = Log()
    logging.getLogger("windlass").addHandler(log)
    with opened(2) as (at, members):
        calls = [Call(each, 2, {rank: b""}) for rank, each in enumerate(members)]
        assert all(call.end() == [b"", b""] for call in calls)
        fails(Call(members[1], 2, {1: b""}, seconds=0.5), windlass.DeadlineExceededException, [0],
              "rank 0 of 2 had joined at %s:%d, but not continued with the others when the deadline"
              " passed; see whether their processes are stopped, or give more time" % at.address)
    logging.getLogger("windlass").removeHandler(log)
    assert len(log.lines) == 1 and "so far; the start waits for 0." in log.lines[0], log.lines


class Log(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def first_comes():
    """A member knows whether rank 0 has arrived before all ranks have."""
    with opened(3) as (_, members):
        waits = Call(members[1], 3, {1: b""})
        time.sleep(0.1)
        assert not members[1].start.is_open
        Call(members[0], 3, {0: b""})
        time.sleep(0.1)
        assert members[1].start.is_open
        also = Call(members[2], 3, {2: b""})
        assert waits.end() == also.end() == [b""] * 3 and members[2].start.is_open


def closes():
    """Ranks that wait hear why; the server ends once they have read it."""
    with opened(3) as (at, members):
        calls = [Call(each, 3, {rank: b""}) for rank, each in enumerate(members)]
        assert all(call.end() == [b""] * 3 for call in calls)
        waits = [Call(members[rank], 3, {rank: b""}) for rank in (1, 2)]
        time.sleep(0.1)
        begin = time.monotonic()
        members[0].close()
        closing = threading.Thread(target=at.close)
        closing.start()
        for call in waits:
            fails(call, windlass.PeerLostException, [0], "rank 0 joined the start and left")
        for each in members:
            each.close()
        closing.join()
        assert time.monotonic() - begin < 1.5
    with opened(2) as (at, members):
        calls = [Call(each, 2, {rank: b"x"}, True) for rank, each in enumerate(members)]
        assert all(call.end() == [b"x"] * 2 for call in calls)
        assert members[0].keys("", Deadline(30)) == []
        begin = time.monotonic()
        at.close()  # they do not close
        assert 1.9 < time.monotonic() - begin < 3


@contextlib.contextmanager
def child():
    """A forked child, which has all open files until the end of the block."""
    number = os.fork()
    if number == 0:
        time.sleep(60)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def forked():
    """What is closed ends, even if a forked child has its files too."""
    with opened(2) as (at, members):
        members[1].set("a", b"", Deadline(30))
        with child():
            begin = time.monotonic()
            members[1].close()
            while len(at._members) == 2:
                assert time.monotonic() - begin < 5, "the session did not end"
                time.sleep(0.01)
            at.close()
            assert time.monotonic() - begin < 5 and not at._thread.is_alive()
            with socket.socket() as other:
                assert other.connect_ex(at.address) != 0, "the port is open"
            try:
                members[0].get("a", Deadline(5))
                raise SystemExit("the connection goes on")
            except windlass.PeerLostException:
                pass


def addresses():
    """The addresses of a name share the time of an attempt, and one that answers is found."""
    real, held = socket.getaddrinfo, []

    def hole():
        """A listener without room, where a connection gets no answer."""
        held.append(socket.socket())
        held[-1].bind(("127.0.0.1", 0))
        held[-1].listen(0)
        place = held[-1].getsockname()
        for _ in range(3):
            held.append(socket.socket())
            held[-1].setblocking(False)
            held[-1].connect_ex(place)
        return place

    with opened(0) as (at, _):
        places = [hole() for _ in range(3)]
        socket.getaddrinfo = lambda *_, **__: [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
        try:
            begin = time.monotonic()
            try:
                store.Store(("several", 1), TOKEN, "test", 0, 1, Deadline(1))
                raise SystemExit("nobody is there")
            except windlass.DeadlineExceededException as e:
                assert "timed out" in str(e), e
            assert time.monotonic() - begin < 2
            places.append(at.address)
            store.Store(("several", 1), TOKEN, "test", 0, 1, Deadline(4)).close()
        finally:
            socket.getaddrinfo = real
            for each in held:
                each.close()


def next_start():
    """A rank that finds the store of another start sees it lost, and that it had no rank 0."""
    with opened(0) as (at, _):
        early = member(at, 1, 2)
        waits = Call(early, 2, {1: b""})
        time.sleep(0.1)
        at.close()
        fails(waits, windlass.PeerLostException, [], "was lost")
        assert early.lost is not None and not early.start.is_open
        early.close()
    with opened(1) as (at, members):
        assert members[0].gather(1, {0: b"x"}, True, Deadline(30)) == [b"x"]
        late = member(at, 1, 2)
        waits = Call(late, 2, {1: b""})
        time.sleep(0.1)
        members[0].close()
        at.close()
        fails(waits, windlass.PeerLostException, [], "was lost")
        assert late.lost is not None and not late.start.is_open
        late.close()


def kinds():
    """Other requests, and halves of them, end the session."""
    key, keys = packed("s", "a"), [packed("so", each, None) for each in "abcde"]
    for kind, fields in (
            (26, key), (27, key), (19, key), (store.SET, key), (store.SET, key + packed("i", -1)),
            (store.GET, key + b"x"), (store.GET, packed("s", "")), (store.GET, packed("s", "k" * 513)),
            (store.AWAIT, packed("i", 0)), (store.AWAIT, packed("i", -1)),
            (store.AWAIT, packed("i", 2) + keys[0]), (store.AWAIT, packed("i", 2) + keys[0] * 2),
            (store.AWAIT, packed("i", 1) + keys[0] + keys[1]),
            (store.AWAIT, packed("i", 5) + b"".join(keys)),
            (store.AWAIT, packed("i", 1) + packed("so", "", None))):
        with opened(1, 2) as (_, (own,)):
            try:
                own._ask(kind, "it", fields, Deadline(30), "")
                raise SystemExit("it was taken: %r" % fields)
            except windlass.PeerLostException as e:
                assert "the store got " in str(e), e


def waits():
    """A wait for several keys ends with the first that differs; a held key goes with its holder."""
    until = Deadline(30)
    with opened(2) as (_, (one, other)):
        for key, value in (("b", b"1"), ("a", b"2")):
            found = []
            thread = threading.Thread(target=lambda: found.append(
                one.await_any({"a": None, "b": None if key == "b" else b"1", "c": None}, until)))
            thread.start()
            time.sleep(0.1)
            assert not found
            other.set(key, value, until)
            thread.join()
            assert found == [[key, value]], found
        assert one.await_any({"c": None, "b": b"0", "a": None}, until) == ["b", b"1"]
        assert one.hold("h", b"1", until) and not other.hold("h", b"2", until)
        other.set("h", b"3", until)
        assert other.compare_and_set("a", b"2", None, until)
        assert not other.compare_and_set("a", b"2", b"3", until) and other.get("a", until) is None
        try:
            other.await_other("h", b"3", Deadline(0.1))
            raise SystemExit("it has not changed")
        except windlass.DeadlineExceededException as e:
            assert "await h: no answer" in str(e), e
        one.close()
        assert other.await_other("h", b"3", until) is None
        assert other.keys("", until) == ["b"]
        for number in range(1, 1026):  # a session has 1024 waits
            other._request(until, store.AWAIT, number, packed("iso", 1, "w", None))
        code, number, reader = other._reply(until)
        assert (code, number) == (8, 1025) and "1024 waits" in reader.field("s")


def tables():
    with opened(1) as (_, (own,)):
        until = Deadline(60)
        assert own.get("a", until) is None and own.keys("", until) == []
        for key, value in (("b", b"1"), ("a", b""), ("a/1", bytes(512 << 10)), ("a", b"2")):
            own.set(key, value, until)
        assert own.get("a", until) == b"2" and own.get("a/1", until) == bytes(512 << 10)
        assert own.keys("", until) == ["a", "a/1", "b"] and own.keys("a/", until) == ["a/1"]
        try:
            for number in range(200):
                own.set(f"k{number}", bytes(512 << 10), until)
            raise SystemExit("it holds too much")
        except windlass.ResourceException as e:
            assert number > 120, (number, e)
        assert own.get("b", until) == b"1"


def replaced():
    """A rank that is replaced after the first round fails the start at once."""
    with opened(3) as (at, members):
        for _ in range(2):
            calls = [Call(each, 3, {rank: b""}) for rank, each in enumerate(members)]
            assert all(call.end() == [b""] * 3 for call in calls)
        members[2].close()
        members[2] = member(at, 2, 3)
        again = Call(members[2], 3, {2: b"new"})
        while members[0].get("start/rank/2", Deadline(30)) is None:
            time.sleep(0.001)
        calls = [Call(members[rank], 3, {rank: b""}) for rank in (0, 1)]
        for call in (again, *calls):
            fails(call, windlass.PeerLostException, [2], "rank 2 joined the start and left")


def stale():
    """What a start before has published is not taken for what this one has."""
    with opened(3) as (_, members):
        calls = [Call(each, 3, {rank: b""}) for rank, each in enumerate(members)]
        assert all(call.end() == [b""] * 3 for call in calls)
        members[1].start.quit()  # the others are busy
        members[1].start = None
        fails(Call(members[1], 3, {1: b"new"}, seconds=0.5), windlass.DeadlineExceededException,
              [0], "rank 0 of 3 had not joined")


def failed_before():
    """A failure is told although that of the start before is still there."""
    with opened(3) as (at, members):
        other = Member(at.address, TOKEN, "other", 0, 1, Deadline(30))
        other.hold("start/failed", packed("iti", 2, "old", 0), Deadline(30))
        calls = [Call(members[2], 3, {2: b""}), Call(members[1], 4, {1: b""})]
        time.sleep(0.1)
        for call in (*calls, Call(members[0], 3, {0: b""})):
            fails(call, windlass.MismatchException, [0, 1], "rank 0 was started as one of 3 ranks")
        other.close()
        assert members[0].keys("start/", Deadline(30)) == []


def much_twice():
    """Only the later process of a rank fails, though it says much."""
    with opened(2) as (at, members):
        other = Member(at.address, TOKEN, "other", 1, 2, Deadline(30))
        waits = Call(members[1], 2, {1: b"b"})
        time.sleep(0.1)
        fails(Call(other, 2, {1: bytes(700_000)}), windlass.MismatchException, [1],
              "another process has joined this start as rank 1 too")
        assert members[0].gather(2, {0: b"a"}, False, Deadline(30)) == waits.end() == [b"a", b"b"]
        other.close()


def shared_rank():
    """Two JVMs with several ranks each say that they have rank 2."""
    with opened(2, 4) as (_, members):
        for first, own in ((1, (1, 2)), (2, (2, 3))):
            members[1].hold(f"start/rank/{first}", packed("iiiiii", 0, 4, 2, *own, 0)
                            + packed("aa", b"b", b"c"), Deadline(30))
        call = Call(members[0], 4, {0: b"a"}, seconds=10.0)
        fails(call, windlass.MismatchException, [2],
              "another process has joined this start as rank 2 too")


def unreadable():
    with opened(2) as (_, members):
        members[1].hold("start/rank/1", b"123", Deadline(30))
        fails(Call(members[0], 2, {0: b"a"}), windlass.MismatchException, [1], "can't be read")
