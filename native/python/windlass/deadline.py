# SPDX-License-Identifier: Apache-2.0
"""The deadline that several steps of one call share."""

from __future__ import annotations

import time
from typing import Iterator

from .errors import require

LONGEST = 1e9


class Deadline:
    """A point in time. `whole` is how many seconds it was away at first."""

    def __init__(self, seconds: float) -> None:
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        require(is_number and 0 < seconds < float("inf"),
                f"deadline is {seconds!r}; it must be a finite number of seconds, more than 0")
        self.whole = min(float(seconds), LONGEST)
        self._end = time.monotonic() + self.whole

    def left(self) -> float:
        """Returns the seconds that remain, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        return self.left() <= 0

    def ns(self) -> int:
        """Returns the nanoseconds that remain, at least 1."""
        return max(1, int(self.left() * 1e9))

    def later(self, seconds: float) -> Deadline:
        return Deadline(self.left() + seconds)

    def at_most(self, seconds: float) -> Deadline:
        """Returns this deadline, or the one in `seconds` if that comes first."""
        return Deadline(max(0.001, min(seconds, self.left())))

    def pauses(self, first: float, most: float) -> Iterator[None]:
        """Yields at once, and then after pauses that double, until the deadline."""
        pause = first
        while True:
            yield
            time.sleep(min(pause, self.left()))
            if self.over():
                return
            pause = min(2 * pause, most)
