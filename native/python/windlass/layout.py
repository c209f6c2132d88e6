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

    def __init__(self, text: str) -> None:
        """Parses a layout. Raises InvalidArgumentException if `text` is none."""
        self._text = text
        found = _LAYOUT.fullmatch(text) if isinstance(text, str) else None
        self._require(found, "it must be MESH:PLACEMENT,..., such as '2:S0' or 'dp=2xtp=2:R,S1'")
        mesh, first, ranges, placements = found.groups()
        dims = re.findall("(?:([A-Za-z_][A-Za-z0-9_]*)=)?([0-9]+)(?:x|$)", mesh)
        names = [name for name, _ in dims if name]
        self._require(len(set(names)) == len(names),
                      "two mesh dimensions have one name; each must have its own")
        self._sizes = [self._number("a mesh dimension's size", size, 1, _MOST_RANKS)
                       for _, size in dims]
        self.ranks = self._parse_ranks(math.prod(self._sizes), first, ranges)
        placements = placements.split(",")
        self._require(len(placements) == len(dims),
                      f"{len(placements)} placements for {len(dims)} mesh dimensions")
        partials = {each.partition(":")[2] or "sum" for each in placements if each[0] == "P"}
        self._require(len(partials) <= 1, "partial placements of one layout have one operation")
        self._shards = [self._parse_shard(each) for each in placements]
        self.dims = [each[0] for each in self._shards if each]

    def __str__(self) -> str:
        return self._text

    def _require(self, condition, why):
        require(condition, f"layout {self._text!r}: {why}")

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

    def _parse_shard(self, placement):
        """Returns (tensor dimension, unit, pieces) of a shard; None for another placement."""
        if placement[0] != "S":
            return None
        dim, unit, pieces = re.fullmatch(
            r"SS?([0-9]+)(?:\*([0-9]+))?(?:/([0-9]+))?", placement).groups("1")
        unit = self._number("a unit", unit, 1, _LONG)
        pieces = self._number("a split", pieces, 1, _INT)
        return self._number("a tensor dimension", dim, 0, _INT), unit, pieces

    def local_shape(self, shape: Sequence[int], rank: int) -> list[int]:
        """Returns the shape of the part that `rank`, a rank of the mesh, holds."""
        local, below, place = list(shape), len(self.ranks), self.ranks.index(rank)
        for size, shard in zip(self._sizes, self._shards):
            below //= size
            if shard:
                dim, unit, pieces = shard
                index = place // below % size
                piece = -(-local[dim] // pieces) or 1
                whole, rest = divmod(local[dim], piece)
                local[dim] = (whole * self._share(piece, unit, size, index)
                              + self._share(rest, unit, size, index))
        return local

    @staticmethod
    def _share(length, unit, parts, index):
        unit = min(unit, length) or 1
        step = -(-(-(-length // unit)) // parts) * unit
        return min((index + 1) * step, length) - min(index * step, length)
