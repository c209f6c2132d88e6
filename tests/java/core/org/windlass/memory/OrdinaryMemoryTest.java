// SPDX-License-Identifier: Apache-2.0
package org.windlass.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.MemoryPool;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Shapes;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.plan.TransferMode;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Processes;
import org.windlass.testing.Ranks;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Operations of ranks that are processes, on memory that only its own process maps, and on that of
 * pools: what moves, what is refused, and what a setting does. Methods without {@code @Test} are
 * what the ranks run.
 */
@Timeout(180)
class OrdinaryMemoryTest {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final DeviceMesh SENDER = DeviceMesh.of(1);
  private static final DeviceMesh RECEIVER = DeviceMesh.of(1).at(1);

  @TempDir Path folder;

  private static Communicator start() {
    return Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
  }

  /** The element {@code i} of what rank {@code from} has for rank {@code to}. */
  private static double value(int from, int to, long i) {
    return 100 * from + 10 * to + i % 7;
  }

  /** A tensor's elements in order, or what they are to be. */
  @FunctionalInterface
  private interface Elements {
    double at(int part, int i);
  }

  /** Of what all of {@code n} ranks have for rank {@code to}. */
  private static double sumTo(int n, int to, long i) {
    double sum = 0;
    for (int from = 0; from < n; from++) {
      sum += value(from, to, i);
    }
    return sum;
  }

  private static double[] values(int parts, int each, Elements elements) {
    double[] values = new double[parts * each];
    for (int i = 0; i < values.length; i++) {
      values[i] = elements.at(i / each, i % each);
    }
    return values;
  }

  private static void assertHas(Tensor tensor, int parts, int each, Elements elements) {
    double[] values = new double[(int) tensor.numel()];
    tensor.copyTo(values);
    assertThat(values).isEqualTo(values(parts, each, elements));
  }

  /** What lies in windows is in the tests of operations. */
  @OnRanks(4)
  void operationsMoveWhatLiesInPools(Ranks ranks) {
    ranks.run(OrdinaryMemoryTest::operations);
  }

  private static void operations(Communicator comm) {
    try (Window window = comm.window(8 << 20);
        MemoryPool pool = comm.memoryPool(1L << 36)) {
      // Ranks' tensors lie at different places of their parts.
      List<Tensor> before =
          IntStream.range(0, comm.rank()).mapToObj(i -> pool.allocate(DType.U8, 1000 * i)).toList();
      for (int each : new int[] {3, 40_001}) {
        equalParts(comm, pool::allocate, each);
      }
      unequalParts(comm, pool::allocate);
      redistribution(comm, TransferMode.DIRECT, 512, pool::allocate);
      redistribution(comm, TransferMode.DIRECT, 512, window::tensor);
      // Nothing has needed a copy from one process to another, as stages do.
      assertThat(comm.report().peerMemory())
          .startsWith(comm.report().ranks().get(0).process().isPresent() ? "not yet" : "shared");
      redistribution(comm, 512, window::tensor);
      redistribution(comm, 512, pool::allocate);
      before.forEach(Tensor::close);
      comm.barrier();
    }
  }

  /** Where a tensor's memory comes from. */
  @FunctionalInterface
  private interface Allocator {
    Tensor allocate(DType dtype, long... shape);
  }

  @Test
  void operationsMoveWhatLiesAnywhere() throws Exception {
    try (Processes processes = new Processes(OrdinaryMemoryTest.class, 3, folder)) {
      processes.run("ordinaryMemory");
    }
  }

  @Test
  void operationsMoveWhatLiesAnywhereThroughStages() throws Exception {
    try (Processes processes =
        new Processes(OrdinaryMemoryTest.class, 3, folder).with("WINDLASS_PEER_MEMORY", "stage")) {
      processes.run("ordinaryMemory");
    }
  }

  static void ordinaryMemory() {
    try (Communicator comm = start();
        Window window = comm.window(8 << 20)) {
      outsideOfWindows(comm, window);
      redistribution(comm, 512, OrdinaryMemoryTest::direct);
      redistribution(comm, 60_000, OrdinaryMemoryTest::mapped);
      pools(comm);
    }
  }

  @Test
  void aSettingThatIsNoneIsRefused() throws Exception {
    try (Processes processes =
        new Processes(OrdinaryMemoryTest.class, 2, folder).with("WINDLASS_PEER_MEMORY", "fast")) {
      processes.run("wrongSetting");
    }
  }

  static void wrongSetting() {
    assertThatThrownBy(OrdinaryMemoryTest::start)
        .hasMessageContaining("WINDLASS_PEER_MEMORY is 'fast', none of auto, readv and stage");
  }

  @Test
  void aLinkOutlivesAMoveThatAllRefuse() throws Exception {
    try (Processes processes = new Processes(OrdinaryMemoryTest.class, 2, folder)) {
      Processes.Rank reads =
          processes.with("WINDLASS_PEER_MEMORY", "readv").start(0, "refusedMoves");
      Processes.Rank stages =
          processes.with("WINDLASS_PEER_MEMORY", "stage").start(1, "refusedMoves");
      reads.ended();
      stages.ended();
    }
  }

  static void refusedMoves() {
    try (Communicator comm = start();
        Link link = Link.open(comm, "weights", SENDER, RECEIVER);
        Window window = link.communicator().window(1 << 20);
        MemoryPool pool = link.communicator().memoryPool(1 << 20);
        LinkTransfer apart = registered(link, "apart", direct(DType.F32, 1, 1000));
        LinkTransfer shared = registered(link, "shared", window.tensor(DType.F32, 1, 1000));
        LinkTransfer pooled = registered(link, "pooled", pool.allocate(DType.F32, 1, 1000))) {
      for (int attempt = 0; attempt < 3; attempt++) {
        move(shared, link, attempt);
        move(pooled, link, attempt);
        assertThatThrownBy(() -> move(apart, link, 1))
            .isInstanceOf(UnsupportedException.class)
            .hasMessageContaining("was set to stage");
        if (link.receives()) {
          assertThat(apart.version()).isEmpty();
          assertThat(apart.incomplete()).isEmpty();
          assertThat(shared.version()).hasValue(attempt);
          assertThat(pooled.version()).hasValue(attempt);
        }
      }
      assertThat(link.communicator().failure()).isEmpty();
      assertThat(link.communicator().report().peerMemory()).startsWith("refused: ");
    }
  }

  /** In place: the memory itself is sent and received. */
  private static LinkTransfer registered(Link link, String name, Tensor own) {
    long[] shape = {1, 1000};
    LinkTransferBuilder builder = link.transferBuilder().inPlace();
    return (link.sends()
            ? builder.add(name, shape, own, SENDER.layout(Placement.replicate()))
            : builder.into(name, shape, own, RECEIVER.layout(Placement.replicate())))
        .register(SOON);
  }

  private static void move(LinkTransfer transfer, Link link, long version) {
    if (link.sends()) {
      transfer.send(version, SOON);
    } else {
      transfer.receive(version, SOON);
    }
  }

  private static void equalParts(Communicator comm, Allocator allocator, int each) {
    int n = comm.size();
    int own = comm.rank();
    Tensor in = allocator.allocate(DType.F32, n, each);
    Tensor one = allocator.allocate(DType.F32, each);
    Tensor out = allocator.allocate(DType.F32, n, each);
    Tensor part = allocator.allocate(DType.F32, each);
    in.copyFrom(values(n, each, (p, i) -> value(own, p, i)));
    one.copyFrom(values(1, each, (p, i) -> value(own, 0, i)));
    Elements sum = (p, i) -> sumTo(n, own, i);
    Elements sumOfFirst = (p, i) -> sumTo(n, 0, i);

    for (Algorithm algorithm : List.of(Algorithm.AUTO, Algorithm.PUSH, Algorithm.PULL)) {
      out.fill(-1);
      comm.allToAll(in, out, algorithm);
      assertHas(out, n, each, (p, i) -> value(p, own, i));
    }
    comm.allGather(one, out);
    assertHas(out, n, each, (p, i) -> value(p, 0, i));
    comm.allGather(one.reshape(1, each), out.reshape(1, (long) n * each), 1);
    assertHas(out, n, each, (p, i) -> value(p, 0, i));
    comm.reduceScatter(in, part, ReduceOp.SUM);
    assertHas(part, 1, each, sum);
    for (Algorithm algorithm : List.of(Algorithm.AUTO, Algorithm.RING)) {
      part.fill(-1);
      comm.allReduce(one, part, ReduceOp.SUM, algorithm);
      assertHas(part, 1, each, sumOfFirst);
    }
    for (int root = 0; root < n; root++) {
      int from = root;
      part.fill(-1);
      comm.broadcast(one, part, root);
      assertHas(part, 1, each, (p, i) -> value(from, 0, i));
      comm.scatter(in, part, root);
      assertHas(part, 1, each, (p, i) -> value(from, own, i));
      out.fill(-1);
      comm.gather(one, out, root);
      assertHas(out, n, each, (p, i) -> own == from ? value(p, 0, i) : -1);
      part.fill(-1);
      comm.reduce(one, part, ReduceOp.SUM, root);
      assertHas(part, 1, each, (p, i) -> own == from ? sumOfFirst.at(p, i) : -1);
    }
    comm.allReduce(one, ReduceOp.SUM);
    assertHas(one, 1, each, sumOfFirst);
  }

  private static void unequalParts(Communicator comm, Allocator allocator) {
    int n = comm.size();
    int own = comm.rank();
    long[] toEach = LongStream.generate(() -> own + 1).limit(n).toArray();
    long[] fromEach = LongStream.rangeClosed(1, n).toArray();
    int all = n * (n + 1) / 2;
    Tensor in = allocator.allocate(DType.F32, n * n);
    Tensor out = allocator.allocate(DType.F32, all);
    in.fill(own);
    Elements ranks = (p, i) -> (int) ((Math.sqrt(8 * i + 1) - 1) / 2); // 0, 1, 1, 2, 2, 2, ...
    for (int round = 0; round < 2; round++) {
      out.fill(-1);
      if (round == 0) {
        comm.allToAllv(in, toEach, out, fromEach);
      } else {
        assertThat(comm.allToAllv(in, toEach, out)).isEqualTo(fromEach);
      }
      assertHas(out, 1, all, ranks);
    }
    out.fill(-1);
    comm.allGatherv(in.narrow(0, 0, own + 1), out, fromEach);
    assertHas(out, 1, all, ranks);
    Tensor whole = allocator.allocate(DType.F32, all);
    whole.copyFrom(values(1, all, (p, i) -> 10 * i + own));
    comm.reduceScatterv(whole, out.narrow(0, 0, own + 1), fromEach, ReduceOp.SUM);
    int first = own * (own + 1) / 2;
    Elements sums = (p, i) -> 10 * n * (first + i) + n * (n - 1) / 2;
    assertHas(out.narrow(0, 0, own + 1), 1, own + 1, sums);
  }

  /** Rows that ranks hold become whole on all, in each mode, from and to tensors of those. */
  private static void redistribution(Communicator comm, int columns, Allocator allocator) {
    for (TransferMode mode : TransferMode.values()) {
      redistribution(comm, mode, columns, allocator);
    }
  }

  private static void redistribution(
      Communicator comm, TransferMode mode, int columns, Allocator allocator) {
    int own = comm.rank();
    int n = comm.size();
    int rows = 2 * n;
    Layout from = Layout.parse(n + ":S0");
    Layout to = Layout.parse(n + ":R");
    Tensor source = allocator.allocate(DType.F32, 2, columns);
    Tensor target = allocator.allocate(DType.F32, rows, columns);
    source.copyFrom(values(2, columns, (row, i) -> value(2 * own + row, 0, i)));
    TransferBuilder builder =
        TransferBuilder.of(comm)
            .defaultMode(mode)
            .add(
                TensorSpec.of("w", DType.F32, from, rows, columns),
                source,
                TensorSpec.of("w", DType.F32, to, rows, columns),
                target);
    try (Transfer transfer = builder.register(SOON)) {
      for (int version = 1; version <= 2; version++) {
        target.fill(-1);
        transfer.run(version, SOON);
        assertHas(target, rows, columns, (row, i) -> value(row, 0, i));
      }
    }
  }

  /** What peers can't map moves too, from each of the places where a tensor may lie. */
  private static void outsideOfWindows(Communicator comm, Window window) {
    int own = comm.rank();
    int n = comm.size();
    for (int each : new int[] {4, 100_003}) {
      for (Tensor in : List.of(
          Tensor.allocate(DType.F32, n, each),
          direct(DType.F32, n, each),
          mapped(DType.F32, n, each))) {
        in.copyFrom(values(n, each, (p, i) -> value(own, p, i)));
        Tensor out = direct(DType.F32, n, each);
        comm.allToAll(in, out);
        assertHas(out, n, each, (p, i) -> value(p, own, i));
        Tensor shared = window.tensor(DType.F32, n, each);
        comm.allToAll(in, shared);
        assertHas(shared, n, each, (p, i) -> value(p, own, i));
        comm.allReduce(in, ReduceOp.SUM);
        assertHas(in, n, each, (p, i) -> sumTo(n, p, i));
      }
    }
    String way = System.getenv("WINDLASS_PEER_MEMORY");
    assertThat(comm.report().peerMemory())
        .startsWith(way == null ? "process_vm_readv: " : way + ": ");
    comm.barrier();
  }

  /** Of a pool of another communicator, and of one whose ranks have closed it. */
  private static void pools(Communicator comm) {
    int own = comm.rank();
    int n = comm.size();
    Tensor kept;
    try (MemoryPool pool = comm.memoryPool(1 << 24);
        Communicator part = comm.split(0, -own, SOON)) {
      kept = pool.allocate(DType.F32, n, 30_000);
      kept.fill(own);
      Tensor out = pool.allocate(DType.F32, n, 30_000);
      part.allToAll(kept, out);
      assertHas(out, n, 30_000, (p, i) -> n - 1 - p);
    }
    comm.barrier();
    comm.allReduce(kept, ReduceOp.SUM);
    assertHas(kept, n, 30_000, (p, i) -> n * (n - 1) / 2);
    kept.close();
    comm.barrier();
  }

  private static Tensor direct(DType dtype, long... shape) {
    int bytes = (int) (Shapes.numel(shape) * dtype.bytes());
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    return Tensor.of(buffer, dtype, shape);
  }

  /** In a file of this process alone, mapped. */
  private static Tensor mapped(DType dtype, long... shape) {
    try {
      Path file = Files.createTempFile("windlass", ".bin");
      try (FileChannel channel =
          FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        ByteBuffer buffer =
            channel.map(
                FileChannel.MapMode.READ_WRITE, 0, Shapes.numel(shape) * dtype.bytes());
        return Tensor.of(buffer.order(ByteOrder.nativeOrder()), dtype, shape);
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
