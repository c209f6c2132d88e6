// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.windlass.reshard.tensor.Runs;

/** Represents the indices {@code start} to {@code end} (exclusive) of a dimension. */
record Span(long start, long end) {
  /** Returns the global indices that runs cover. Adjacent runs become one span. */
  static List<Span> of(List<Runs.Run> runs) {
    List<Span> spans = new ArrayList<>();
    for (Runs.Run run : runs) {
      int last = spans.size() - 1;
      if (run.start() == run.end()) {
        continue;
      }
      if (last >= 0 && spans.get(last).end() == run.start()) {
        spans.set(last, new Span(spans.get(last).start(), run.end()));
      } else {
        spans.add(new Span(run.start(), run.end()));
      }
    }
    return spans;
  }

  static String text(List<Span> spans, Span whole) {
    if (spans.isEmpty()) {
      return "no scales";
    }
    return spans.equals(List.of(whole))
        ? "all scales"
        : "scales " + spans.stream().map(Span::toString).collect(Collectors.joining(", "));
  }

  @Override
  public String toString() {
    return end - start == 1 ? "" + start : start + " to " + (end - 1);
  }
}
