# SPDX-License-Identifier: Apache-2.0
"""The one deadline of several steps."""

import time

from .errors import InvalidArgumentException


class Deadline:
    """The one deadline of several steps."""

    _LONGEST = 1e9

    def __init__(self, seconds):
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds < float("inf"):
            raise InvalidArgumentException(
                f"deadline is {seconds!r}; it must be a finite number of seconds, more than 0")
        self.whole = min(float(seconds), self._LONGEST)
        self._end = time.monotonic() + self.whole

    def left(self):
        return max(0.0, self._end - time.monotonic())

    def over(self):
        return self.left() <= 0

    def ns(self):
        return max(1, int(self.left() * 1e9))

    def later(self, seconds):
        return Deadline(self.left() + seconds)

    def pauses(self, first, most):
        """Yields at once, and then after pauses that grow, until the deadline is over."""
        pause = first
        while True:
            yield
            time.sleep(min(pause, self.left()))
            if self.over():
                return
            pause = min(2 * pause, most)
