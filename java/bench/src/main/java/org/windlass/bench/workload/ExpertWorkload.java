// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.Arrays;
import java.util.Map;
import java.util.OptionalDouble;
import org.windlass.bench.data.ExpertTraffic;
import org.windlass.bench.data.Floor;
import org.windlass.internal.json.JsonObject;

/** A dispatch of tokens to experts and the combine, in any implementation. */
interface ExpertWorkload extends Workload {
  ExpertTraffic traffic();

  @Override
  default int ranks() {
    return traffic().ranks();
  }

  @Override
  default long bytes() {
    return traffic().tokenBytes();
  }

  /** Returns the largest number of bytes that a rank receives, in both directions. */
  @Override
  default long receivedBytes() {
    ExpertTraffic traffic = traffic();
    long[] rows = new long[traffic.ranks()];
    int each = traffic.experts() / traffic.ranks();
    for (int from = 0; from < traffic.ranks(); from++) {
      for (int id : traffic.ids(from)) {
        if (id / each != from) {
          rows[id / each]++;
          rows[from]++;
        }
      }
    }
    return Arrays.stream(rows).max().orElseThrow() * traffic.hidden() * traffic.dtype().bytes();
  }

  @Override
  default Map<String, Object> details() {
    ExpertTraffic traffic = traffic();
    return JsonObject.of(
        "tokens", traffic.tokens(),
        "hidden", traffic.hidden(),
        "top_k", traffic.topK(),
        "experts", traffic.experts() / traffic.ranks());
  }

  @Override
  default OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.expertsMicros(traffic(), traffic().idsOfAll(), iterations));
  }
}
