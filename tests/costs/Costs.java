// SPDX-License-Identifier: Apache-2.0

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.report.Report;
import org.windlass.reshard.Reshard;
import org.windlass.reshard.ReshardResult;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * What Java adds to the cost table. Prints for each operation: name, ranks, size, bytes that all
 * threads allocate on the heap, exchanges, bytes moved, and calls of native methods. Exchanges and
 * bytes are "-" where operations.cpp counts them. The arguments are a folder to write to, and "all"
 * or "reshard".
 *
 * <p>Takes a JVM that interprets, which removes no allocation, and that has no thread-local buffers,
 * so that the heap grows by exactly what is allocated.
 */
public final class Costs {
  private static final int WARM = 3;
  private static final int MIB = 1 << 20;
  private static final String NONE = "-";

  private static final AtomicInteger ARRIVED = new AtomicInteger();
  private static final AtomicInteger PASSED = new AtomicInteger();

  private static final ThreadMXBean THREADS =
      (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** By the ranks' threads, in the call that is measured. */
  private static final AtomicLong ALLOCATED = new AtomicLong();

  private static String calls;

  /** An operation, as one rank calls it. */
  private interface Call {
    void run(int time) throws Exception;
  }

  private Costs() {}

  private static native void countCalls();

  private static native String calls();

  private static native void mark(String text);

  private static long used() {
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  private static void begin() {
    ALLOCATED.set(0);
    countCalls();
  }

  private static void end() {
    calls = calls();
  }

  /** Blocks until all ranks are here; the last one runs {@code action} first. Allocates nothing. */
  private static void meet(int ranks, Runnable action) {
    int arrived = ARRIVED.incrementAndGet();
    int round = (arrived - 1) / ranks;
    if (arrived % ranks == 0) {
      action.run();
      PASSED.incrementAndGet();
    }
    while (PASSED.get() <= round) {
      Thread.yield();
    }
  }

  private static void measure(Communicator comm, String name, long size, Call call)
      throws Exception {
    measure(comm, comm, name, size, call);
  }

  /** Measures a call on {@code counted}, which has its own exchanges if it is not {@code comm}. */
  private static void measure(
      Communicator comm, Communicator counted, String name, long size, Call call)
      throws Exception {
    Runnable begin = Costs::begin;
    Runnable end = Costs::end;
    for (int time = 0; time < WARM; time++) {
      call.run(time);
      meet(comm.size(), () -> {});
    }
    int sequence = sequence(counted);
    meet(comm.size(), begin);
    long before = THREADS.getCurrentThreadAllocatedBytes();
    call.run(WARM);
    ALLOCATED.addAndGet(THREADS.getCurrentThreadAllocatedBytes() - before);
    meet(comm.size(), end);
    if (comm.rank() == 0) {
      String exchanges = comm == counted ? NONE : "" + (sequence(counted) - sequence);
      print(name, comm.size(), size, ALLOCATED.get(), exchanges, NONE);
    }
  }

  private static int sequence(Communicator comm) {
    List<Report.Call> recent = comm.report().ranks().get(comm.rank()).recent();
    return recent.isEmpty() ? 0 : recent.get(0).sequence();
  }

  private static void print(
      String name, int ranks, long size, long allocated, String exchanges, String bytes) {
    System.out.printf(
        "%s %d %s %d %s %s %s%n",
        name, ranks, size == 0 ? NONE : "" + size, allocated, exchanges, bytes, calls);
  }

  private static void operations(Communicator comm) throws Exception {
    int ranks = comm.size();
    int peer = (comm.rank() + 1) % ranks;
    measure(comm, "barrier", 0, time -> comm.barrier());
    try (Window window = comm.window(4L * ranks * MIB)) {
      for (int bytes : new int[] {4, 4096, MIB}) {
        int part = bytes / 4;
        DistributedTensor in = window.tensorAt(0, DType.F32, part);
        DistributedTensor ins = window.tensorAt(0, DType.F32, (long) part * ranks);
        DistributedTensor out = window.tensorAt(2L * ranks * MIB, DType.F32, part);
        DistributedTensor outs =
            window.tensorAt(2L * ranks * MIB, DType.F32, (long) part * ranks);
        measure(comm, "put", bytes, time -> window.put(in, peer, out));
        measure(comm, "accumulate", bytes, time -> window.accumulate(in, peer, out));
        measure(comm, "all-to-all", bytes, time -> comm.allToAll(ins, outs));
        measure(comm, "broadcast", bytes, time -> comm.broadcast(in, out, 0));
        measure(comm, "all-gather", bytes, time -> comm.allGather(in, outs));
        measure(
            comm, "reduce-scatter", bytes, time -> comm.reduceScatter(ins, out, ReduceOp.SUM));
        measure(comm, "all-reduce", bytes, time -> comm.allReduce(in, out, ReduceOp.SUM));
      }
    }
    for (int bytes : new int[] {4096, MIB}) {
      experts(comm, bytes);
      redistribution(comm, bytes);
      link(comm, bytes);
    }
  }

  private static void experts(Communicator comm, int bytes) throws Exception {
    int hidden = 128;
    int tokens = bytes / (4 * hidden);
    ExpertOptions options = ExpertOptions.of(2 * comm.size(), 2, hidden, tokens, DType.F32);
    try (ExpertParallel experts = ExpertParallel.open(comm, options);
        ExpertRouting routing = experts.routing();
        Tensor in = Tensor.allocate(DType.F32, tokens, hidden);
        Tensor out = Tensor.allocate(DType.F32, tokens, hidden);
        Tensor weights = Tensor.allocate(DType.F32, tokens, 2);
        Tensor ids = Tensor.allocate(DType.I32, tokens, 2)) {
      for (int token = 0; token < tokens; token++) {
        ids.setLong(token % (2 * comm.size()), token, 0);
        ids.setLong((token + 1) % (2 * comm.size()), token, 1);
      }
      measure(
          comm,
          "dispatch-combine",
          bytes,
          time -> {
            experts.dispatch(routing, in, ids, weights);
            experts.combine(routing, out);
          });
    }
  }

  /** Elements of each side of a square f32 tensor. */
  private static long side(int bytes) {
    return Math.round(Math.sqrt(bytes / 4));
  }

  private static void redistribution(Communicator comm, int bytes) throws Exception {
    long side = side(bytes);
    long share = side / comm.size();
    Layout rows = Layout.parse(comm.size() + ":S0");
    Layout columns = Layout.parse(comm.size() + ":S1");
    try (Tensor in = Tensor.allocate(DType.F32, share, side);
        Tensor out = Tensor.allocate(DType.F32, side, share);
        Transfer transfer =
            TransferBuilder.of(comm)
                .add("t", new long[] {side, side}, DType.F32, rows, in, columns, out)
                .register()) {
      measure(comm, "redistribute", bytes, transfer::run);
    }
  }

  /** Every rank sends and receives. */
  private static void link(Communicator comm, int bytes) throws Exception {
    long side = side(bytes);
    long share = side / comm.size();
    DeviceMesh all = DeviceMesh.of(comm.size());
    try (Tensor in = Tensor.allocate(DType.F32, share, side);
        Tensor out = Tensor.allocate(DType.F32, side, share);
        Link link = Link.open(comm, "costs", all, all);
        LinkTransfer transfer =
            link.transferBuilder()
                .add("t", new long[] {side, side}, in, Layout.parse(comm.size() + ":S0"))
                .into("t", new long[] {side, side}, out, Layout.parse(comm.size() + ":S1"))
                .register()) {
      measure(comm, link.communicator(), "link-version", bytes, transfer::send);
    }
  }

  /** Writes four f32 matrices of 256 x 256, in two files. */
  private static void write(Path folder) throws IOException {
    int each = 256 * 256 * 4;
    String index = "";
    Files.createDirectories(folder);
    for (int file = 0; file < 2; file++) {
      String name = "model-" + file + ".safetensors";
      String tensors = "";
      for (int i = 0; i < 2; i++) {
        tensors +=
            String.format(
                "%s\"t%d.%d\":{\"dtype\":\"F32\",\"shape\":[256,256],\"data_offsets\":[%d,%d]}",
                i == 0 ? "" : ",", file, i, i * each, (i + 1) * each);
        index += String.format("%s\"t%d.%d\":\"%s\"", index.isEmpty() ? "" : ",", file, i, name);
      }
      byte[] header = ("{" + tensors + "}").getBytes(StandardCharsets.UTF_8);
      ByteBuffer all =
          ByteBuffer.allocate(8 + header.length + 2 * each).order(ByteOrder.LITTLE_ENDIAN);
      all.putLong(header.length).put(header);
      Files.write(folder.resolve(name), all.array());
    }
    Files.writeString(
        folder.resolve("model.safetensors.index.json"), "{\"weight_map\":{" + index + "}}");
  }

  /**
   * Replicas become columns of four ranks. Other threads of the JVM may allocate too, so the least of
   * several runs counts.
   */
  private static void reshard(Path work) throws IOException {
    write(work.resolve("in"));
    long least = Long.MAX_VALUE;
    for (int time = 0; time < 2 * WARM; time++) {
      Reshard reshard =
          Reshard.from(Layout.parse("1:R"))
              .to("4:S1")
              .in(work.resolve("in"))
              .out(work.resolve("out" + time));
      boolean isLast = time == 2 * WARM - 1;
      if (isLast) {
        mark("begin reshard 1 1048576");
      }
      begin();
      long before = used();
      ReshardResult result = reshard.run();
      long grown = used() - before;
      end();
      if (time >= WARM) {
        least = Math.min(least, grown);
      }
      if (isLast) {
        mark("end");
        print("reshard", 1, MIB, least, NONE, "" + (result.bytesIn() + result.bytesOut()));
      }
    }
  }

  /** Runs it. */
  public static void main(String[] arguments) throws Exception {
    System.load(System.getProperty("costs.agent"));
    if (arguments[1].equals("all")) {
      for (int ranks : new int[] {1, 2}) {
        try (LocalGroup group = LocalGroup.of(ranks)) {
          ARRIVED.set(0);
          PASSED.set(0);
          group.run(Costs::operations);
        }
      }
    }
    reshard(Path.of(arguments[0]));
  }
}
