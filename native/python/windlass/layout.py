# SPDX-License-Identifier: Apache-2.0
"""Layout strings."""

import math
import re

from .errors import require
from .library import REDUCE_OPS


class Layout:
    """What a layout string says, as Java's LayoutParser reads it: `ranks` of its mesh, row-major,
    and `dims`, the tensor dimensions that it cuts."""

    _MOST_RANKS = 1 << 20
    _DIM, _RANGE = "(?:[A-Za-z_][A-Za-z0-9_]*=)?[0-9]+", "[0-9]+(?:-[0-9]+)?"
    _PLACEMENT = r"(?:R|P(?::(?:%s))?|S[0-9]+(?:\*[0-9]+)?|SS[0-9]+/[0-9]+)" % "|".join(REDUCE_OPS)
    _GRAMMAR = re.compile(
        r"({0}(?:x{0})*)(?:@(?:([0-9]+)|\[({1}(?:,{1})*)\]))?:({2}(?:,{2})*)".format(
            _DIM, _RANGE, _PLACEMENT))

    def __init__(self, text):
        self._text = text
        found = self._GRAMMAR.fullmatch(text) if isinstance(text, str) else None
        self._require(found, "it must be MESH:PLACEMENT,..., such as '2:S0' or 'dp=2xtp=2:R,S1'")
        grid, first, listed, placements = found.groups()
        sizes = self._sizes(grid)
        self.ranks = self._mesh(sizes, first, listed)
        placements = placements.split(",")
        self._require(len(placements) == len(sizes),
                      f"{len(placements)} placements for {len(sizes)} mesh dimensions")
        partials = {each.partition(":")[2] or "sum" for each in placements if each[0] == "P"}
        self._require(len(partials) <= 1, "partial placements of one layout have one operation")
        self._cuts = [self._cut(each) for each in placements]
        self._grid = sizes
        self.dims = [each[0] for each in self._cuts if each]

    def __str__(self):
        return self._text

    def _require(self, condition, why):
        require(condition, f"layout {self._text!r}: {why}")

    def _number(self, what, digits, least, most):
        value = int(digits.lstrip("0")[:20] or "0")
        self._require(least <= value <= most,
                      f"{what} is {digits[:40]}; it must be from {least} to {most}")
        return value

    def _sizes(self, grid):
        dims = re.findall("(?:([A-Za-z_][A-Za-z0-9_]*)=)?([0-9]+)(?:x|$)", grid)
        names = [name for name, _ in dims if name]
        self._require(len(set(names)) == len(names),
                      "two mesh dimensions have one name; each must have its own")
        return [self._number("a mesh dimension's size", digits, 1, self._MOST_RANKS)
                for _, digits in dims]

    def _mesh(self, sizes, first, listed):
        size, most = math.prod(sizes), self._MOST_RANKS
        self._require(size <= most, f"its mesh has more than {most} ranks")
        if listed is None:
            begin = self._number("the first rank", first or "0", 0, most - size)
            return range(begin, begin + size)
        ranks = []
        for each in listed.split(","):
            low, _, high = each.partition("-")
            low = self._number("a rank", low, 0, most - 1)
            high = self._number("a rank", high, 0, most - 1) if high else low
            self._require(low <= high, f"range {low}-{high} runs backwards")
            ranks += range(low, min(high, low + size) + 1)
            if len(ranks) > size:
                break
        self._require(len(ranks) == len(set(ranks)) == size,
                      f"its list of ranks must have {size} different ones")
        return ranks

    def _cut(self, placement):
        """Of a shard (tensor dimension, unit, pieces), as Java's Cut has them; else None."""
        if placement[0] != "S":
            return None
        dim, mark, digits = re.fullmatch("SS?([0-9]+)(?:([*/])([0-9]+))?", placement).groups()
        unit = self._number("a unit", digits, 1, (1 << 63) - 1) if mark == "*" else 1
        pieces = self._number("a split", digits, 1, (1 << 31) - 1) if mark == "/" else 1
        return self._number("a tensor dimension", dim, 0, (1 << 31) - 1), unit, pieces

    def local_shape(self, shape, rank):
        """What `rank`, which the mesh has, holds of a tensor of that shape."""
        local, below, place = list(shape), len(self.ranks), self.ranks.index(rank)
        for size, cut in zip(self._grid, self._cuts):
            below //= size
            if cut:
                dim, unit, pieces = cut
                piece = -(-local[dim] // pieces) or 1
                whole, rest = divmod(local[dim], piece)
                own = place // below % size
                local[dim] = (whole * self._share(piece, unit, size, own)
                              + self._share(rest, unit, size, own))
        return local

    @staticmethod
    def _share(length, unit, parts, own):
        unit = min(unit, length) or 1
        step = -(-(-(-length // unit)) // parts) * unit
        return min((own + 1) * step, length) - min(own * step, length)
