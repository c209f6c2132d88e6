# SPDX-License-Identifier: Apache-2.0
"""Ranks at a start: how each describes itself, what they compare, and which hosts they live on."""

from __future__ import annotations

import collections
import os
import re
from typing import Any, Mapping

from .encoding import Reader, packed, printable
from .errors import MismatchException, UnsupportedException, reading, require
from .launch import own_process, read_boot_id
from .library import Process, library_version, native, sized

START_PROTOCOL = 5


class Host:
    """The host of this process as variables name it, and how long it may be silent."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.name = variables.get("WINDLASS_HOST") or ""
        require(re.fullmatch("[!-~]{0,63}", self.name),
                f"WINDLASS_HOST is '{printable(self.name)}'; a host's name has 1 to 63 characters"
                " of ASCII, none of them a space")
        silence = variables.get("WINDLASS_HOST_SILENCE") or "2"
        seconds = float(silence) if re.fullmatch("[0-9]{1,4}([.][0-9]{1,3})?", silence) else -1
        require(seconds == 0 or seconds >= 0.5,
                f"WINDLASS_HOST_SILENCE is '{printable(silence)}'; it must be seconds, from 0.5"
                " to 9999.999, or 0 for no limit")
        self.silence_ns = round(seconds * 1e9)


class Arrival(collections.namedtuple(
        "Arrival", "library rank target host machine named pid started pid_namespace cores cpus"
        " options")):
    """The description of a rank and its process that it gives when it arrives at a start."""

    _FORM = "vivuvviQQiuv"  # after the version of the protocol

    @staticmethod
    def own(rank: int, options: str, host: Host) -> Arrival:
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as file:
                cpus = re.search("^Cpus_allowed_list:(.*)", file.read(), re.MULTILINE)
            boot_id = read_boot_id()
        except OSError as e:
            raise UnsupportedException(f"/proc doesn't identify this host: {e}", [rank]) from e
        process = own_process()
        return Arrival(
            library_version(), rank, native().wl_target().decode("ascii"), boot_id,
            os.uname().nodename, host.name, process.pid, process.started, process.pid_namespace,
            native().wl_allowed_cores(), cpus[1].strip() if cpus else "", options)

    def to_bytes(self) -> bytes:
        return packed("i" + self._FORM, START_PROTOCOL, *self)

    @staticmethod
    def of(rank: int, data: bytes) -> Arrival:
        with reading(f"what rank {rank} says of itself", faulty_ranks=[rank]):
            protocol, library = Reader(data).fields("iv")
            require(protocol == START_PROTOCOL,
                    f"rank {rank} runs windlass {library}, which starts by protocol {protocol};"
                    f" this one runs {library_version()}, by protocol {START_PROTOCOL}; use one"
                    " version everywhere", MismatchException, [rank])
            _, *fields = Reader(data).fields("i" + Arrival._FORM)
        arrival = Arrival(*fields)
        require(arrival.rank == rank,
                f"rank {rank} says that it is rank {arrival.rank}; start all ranks again",
                MismatchException, [rank])
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


def _shared_cores(arrivals: list[Arrival]) -> int:
    """Returns how many cores the processes of a host share: those of all their masks, or fewer if
    a quota bounds them."""
    masks = [each.mask() for each in arrivals]
    union = set().union(*masks)
    bounded = any(each.cores < len(mask) for each, mask in zip(arrivals, masks))
    most = max(1, *(each.cores for each in arrivals))
    return most if bounded or not union else len(union)


class Hosts:
    """The hosts of a start's ranks. Ranks of one host can share memory. Hosts have numbers, from 0
    on, in the order of their lowest ranks."""

    def __init__(self, arrivals: list[Arrival]) -> None:
        self.arrivals = arrivals
        self.numbers: list[int] = []
        self._firsts: list[Arrival] = []
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
                    " and live on different machines, or in different pid namespaces; give each"
                    " machine a name of its own, or none", [first.rank, each.rank])
            self.numbers.append(number)

    def are_several(self) -> bool:
        return len(self._firsts) > 1

    def together(self, rank: int) -> list[Arrival]:
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


_COMPARED = {"library": "run windlass %s and %s", "target": "have kernels for %s and %s",
             "options": "were given %s and %s; give all ranks the same options"}


def compare(arrivals: list[Arrival]) -> None:
    """Raises a MismatchException unless all ranks have one version, target and options."""
    first = arrivals[0]
    for other in arrivals[1:]:
        for name, what in _COMPARED.items():
            one, two = (getattr(each, name).split(", ") for each in (first, other))
            differences = (", ".join(each for each in one if each not in two),
                           ", ".join(each for each in two if each not in one))
            require(one == two, f"ranks 0 and {other.rank} {what % differences}",
                    MismatchException, [0, other.rank])
