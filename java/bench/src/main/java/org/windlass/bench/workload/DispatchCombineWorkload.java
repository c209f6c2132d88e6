// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.ExpertTraffic;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;
import org.windlass.report.Report;

/**
 * A dispatch of tokens to experts, which return the tokens unchanged, and the combine. The time
 * includes sorting, counts and offsets.
 *
 * @param plain whether tokens and sums lie in the rank's own memory; rows lie in windows
 */
public record DispatchCombineWorkload(ExpertTraffic traffic, boolean plain)
    implements ExpertWorkload {
  @Override
  public RankWork open(Communicator comm) {
    Buffers buffers = new Buffers(comm, plain, traffic.tokenBytes(), traffic.tokenBytes());
    ExpertParallel experts =
        ExpertParallel.open(
            comm,
            ExpertOptions.of(
                traffic.experts(),
                traffic.topK(),
                traffic.hidden(),
                traffic.tokens(),
                traffic.dtype()));
    ExpertRouting routing = experts.routing();
    Tensor tokens = buffers.tensor(traffic.dtype(), traffic.tokens(), traffic.hidden());
    Tensor sums = buffers.tensor(traffic.dtype(), traffic.tokens(), traffic.hidden());
    Tensor ids = Tensor.allocate(DType.I32, traffic.tokens(), traffic.topK());
    ids.copyFrom(traffic.ids(comm.rank()));
    Tensor weights = Tensor.allocate(DType.F32, traffic.tokens(), traffic.topK());
    weights.fill(ExpertTraffic.WEIGHT);
    ExpertTraffic.Tokens input = traffic.new Tokens(comm.rank(), tokens);
    return new RankWork() {
      @Override
      public void rewrite(long iteration) {
        input.rewrite(iteration);
      }

      @Override
      public void call() {
        experts.dispatch(routing, tokens, ids, weights);
        experts.combine(routing, sums);
      }

      @Override
      public void verify(long iteration) {
        input.verify(sums, iteration);
      }

      @Override
      public void close() {
        ids.close();
        weights.close();
        routing.close();
        experts.close();
        buffers.close();
      }
    };
  }

  /** Returns means over all ranks' last calls: the time spent moving rows, and the time waiting. */
  @Override
  public Map<String, Object> seen(Report report) {
    Map<String, Object> fields = new LinkedHashMap<>();
    for (String half : List.of("dispatch", "combine")) {
      List<Report.Call> calls =
          report.ranks().stream()
              .flatMap(rank -> rank.recent().stream())
              .filter(call -> call.operation().equals("expert-" + half) && !call.inside())
              .toList();
      double waited = mean(calls, Report.Call::waited);
      fields.put(half + "_moving_us", mean(calls, Report.Call::took) - waited);
      fields.put(half + "_waiting_us", waited);
    }
    return fields;
  }

  private static double mean(List<Report.Call> calls, Function<Report.Call, Duration> time) {
    return calls.stream().mapToLong(call -> time.apply(call).toNanos()).average().orElse(0) / 1e3;
  }
}
