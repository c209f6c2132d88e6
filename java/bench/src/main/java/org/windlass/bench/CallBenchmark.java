// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Window;

/**
 * Measures the cost of a call from Java on a communicator of one rank, where no call waits.
 * call_bench.cpp measures the same calls from C. JMH's gc profiler shows the bytes of a call.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class CallBenchmark {
  private LocalGroup group;
  private Communicator comm;
  private Window window;
  private DistributedTensor in;
  private DistributedTensor out;

  @Setup
  public void open() {
    group = LocalGroup.of(1);
    comm = group.communicator(0);
    window = comm.window(4096);
    in = window.tensor(DType.F32, 1);
    out = window.tensor(DType.F32, 1);
  }

  @TearDown
  public void close() {
    window.close();
    group.close();
  }

  @Benchmark
  public void barrier() {
    comm.barrier();
  }

  @Benchmark
  public void allToAll() {
    comm.allToAll(in, out);
  }

  @Benchmark
  public void allReduce() {
    comm.allReduce(in, out, ReduceOp.SUM);
  }

  @Benchmark
  public void broadcast() {
    comm.broadcast(in, 0);
  }
}
