# SPDX-License-Identifier: Apache-2.0
"""Layout strings, by the grammar and the limits of the JVM's layouts."""

from __future__ import annotations

import math
import re
from typing import Sequence

from .errors import require
from .library import REDUCE_OPS

_MOST_RANKS, _INT, _LONG = 1 << 20, (1 << 31) - 1, (1 << 63) - 1  # limits of the JVM's layouts
_DIM, _RANGE = "(?:[A-Za-z_][A-Za-z0-9_]*=)?[0-9]+", "[0-9]+(?:-[0-9]+)?"
_PLACEMENT = rf"(?:R|P(?::(?:{'|'.join(REDUCE_OPS)}))?|S[0-9]+(?:\*[0-9]+)?|SS[0-9]+/[0-9]+)"
_LAYOUT = re.compile(rf"({_DIM}(?:x{_DIM})*)(?:@(?:([0-9]+)|\[({_RANGE}(?:,{_RANGE})*)\]))?"
                     rf":({_PLACEMENT}(?:,{_PLACEMENT})*)")


class Layout:
    """A parsed layout, such as "dp=2xtp=2:R,S1".

    `ranks` are those of its mesh, row-major. `dims` are the tensor dimensions that it shards."""

    def __init__(self, text: str, what: str = "") -> None:
        """Parses a layout. Raises InvalidArgumentException, which begins with `what`, otherwise."""
        self._text, self._what = text, what
        found = _LAYOUT.fullmatch(text) if isinstance(text, str) else None
        self._require(found, "it must be MESH:PLACEMENT,..., such as '2:S0' or 'dp=2xtp=2:R,S1'")
        mesh, first, ranges, placements = found.groups()
        dims = re.findall("(?:([A-Za-z_][A-Za-z0-9_]*)=)?([0-9]+)(?:x|$)", mesh)
        names = [name for name, _ in dims if name]
        self._require(len(set(names)) == len(names),
                      "two mesh dimensions have one name; each must have its own")
        sizes = [self._number("a mesh dimension's size", each, 1, _MOST_RANKS) for _, each in dims]
        self.ranks = self._parse_ranks(math.prod(sizes), first, ranges)
        placements = placements.split(",")
        self._require(len(placements) == len(dims),
                      f"{len(placements)} placements for {len(dims)} mesh dimensions")
        partials = {each.partition(":")[2] or "sum" for each in placements if each[0] == "P"}
        self._require(len(partials) <= 1, "partial placements of one layout have one operation")
        self.dims, self._cuts, below = [], {}, 1
        for size, placement in zip(sizes[::-1], placements[::-1]):
            if placement[0] == "S":
                self._add_cut(placement, size, below)
            below *= size

    def __str__(self) -> str:
        return self._text

    def _require(self, condition, why):
        require(condition, f"{self._what}layout {self._text!r}: {why}")

    def _number(self, what, digits, least, most):
        value = int(digits.lstrip("0")[:20] or "0")
        self._require(least <= value <= most,
                      f"{what} is {digits[:40]}; it must be from {least} to {most}")
        return value

    def _parse_ranks(self, size, first, ranges):
        self._require(size <= _MOST_RANKS, f"its mesh has more than {_MOST_RANKS} ranks")
        if ranges is None:
            begin = self._number("the first rank", first or "0", 0, _MOST_RANKS - size)
            return range(begin, begin + size)
        ranks = []
        for low, high in re.findall("([0-9]+)-?([0-9]*)", ranges):
            low, high = (self._number("a rank", each, 0, _MOST_RANKS - 1)
                         for each in (low, high or low))
            self._require(low <= high, f"range {low}-{high} runs backwards")
            ranks += range(low, min(high, low + size) + 1)
            if len(ranks) > size:
                break
        self._require(len(ranks) == len(set(ranks)) == size,
                      f"its list of ranks must have {size} different ones")
        return ranks

    def _add_cut(self, placement, size, below):
        """Adds the cut of a mesh dimension to those of later ones, in the order of cutting."""
        # A strided shard follows the later plain shards whose sizes have its pieces as product.
        digits = re.fullmatch(r"SS?([0-9]+)(?:\*([0-9]+))?(?:/([0-9]+))?", placement).groups("1")
        dim, unit, pieces = map(self._number, ("a tensor dimension", "a unit", "a split"), digits,
                                (0, 1, 1), (_INT, _LONG, _INT))
        self.dims.insert(0, dim)
        cuts, at, made = self._cuts.setdefault(dim, []), 0, 1
        while made < pieces and at < len(cuts) and cuts[at][2:] == (1, 1):
            made, at = made * cuts[at][0], at + 1
        at, pieces = (at, 1) if made == pieces else (0, pieces)
        if size > 1:
            cuts.insert(at, (size, below, unit, pieces))

    def local_shape(self, shape: Sequence[int], rank: int) -> list[int]:
        """Returns the shape of the part that `rank`, a rank of the mesh, holds."""
        local, place = list(shape), self.ranks.index(rank)
        for dim, cuts in self._cuts.items():
            even = True
            for size, below, unit, pieces in cuts:
                even = even and local[dim] % (size * unit * pieces) == 0
                self._require(even or pieces == 1, f"dimension {dim} has extent {shape[dim]},"
                              f" which a strided shard cuts into unequal pieces; use S{dim}, or as"
                              f" split the size of a later mesh dimension that has S{dim}")
                piece = local[dim] // pieces
                step = -(-piece // (size * unit)) * unit
                local[dim] = pieces * min(step, max(piece - place // below % size * step, 0))
        return local
