// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.TestKernels;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Calls that cannot be carried out as written: each is an exception of the right kind whose message
 * names the argument, and leaves the communicator alive.
 */
class WrongCallsTest {
  private static final int RANKS = 4;
  private static final LocalGroup GROUP = LocalGroup.of(RANKS);
  private static final Communicator RANK = GROUP.communicator(0);
  private static final List<Window> WINDOWS = Windows.of(GROUP);
  private static final LocalGroup ALONE = LocalGroup.of(1);
  private static final Communicator ONE = ALONE.communicator(0);
  private static final Layout WHOLE = Layout.parse("1:R");
  private static final Layout ROWS = Layout.parse("4:S0");

  private record Wrong(
      String name, Class<? extends RuntimeException> kind, String names, ThrowingCallable call) {
    @Override
    public String toString() {
      return name;
    }
  }

  /** Bodies of ranks stand outside the class whose initialiser waits for them. */
  private static final class Windows {
    static List<Window> of(LocalGroup group) {
      return group.call(communicator -> communicator.window(4096));
    }
  }

  private static final List<Wrong> CALLS = new ArrayList<>();

  private static void invalid(String name, String names, ThrowingCallable call) {
    CALLS.add(new Wrong(name, InvalidArgumentException.class, names, call));
  }

  private static void missing(String name, String names, ThrowingCallable call) {
    CALLS.add(new Wrong(name, NullPointerException.class, names, call));
  }

  private static void wrong(
      String name, Class<? extends WindlassException> kind, String names, ThrowingCallable call) {
    CALLS.add(new Wrong(name, kind, names, call));
  }

  private static Tensor f32(long... shape) {
    return Tensor.allocate(DType.F32, shape);
  }

  private static ByteBuffer direct(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  static {
    groups();
    subgroups();
    collectives();
    partCollectives();
    windows();
    oneSided();
    launches();
    tensors();
    views();
    elements();
    batches();
  }

  private static void groups() {
    CommunicatorOptions options = CommunicatorOptions.defaults();
    invalid("no ranks", "ranks is 0", () -> LocalGroup.of(0));
    invalid("negative ranks", "ranks is -3", () -> LocalGroup.of(-3));
    invalid("too many ranks", "ranks is 1000000", () -> LocalGroup.of(1_000_000));
    invalid("negative cores", "cores is -1", () -> options.withCores(-1));
    invalid("negative blocks", "blocks is -1", () -> options.withBlocks(-1));
    invalid("too many blocks", "blocks is 65", () -> options.withBlocks(65));
    invalid("zero deadline", "deadline is 0 s", () -> options.withDeadline(Duration.ZERO));
    invalid("rank out of range", "rank is 4", () -> GROUP.communicator(4));
    invalid("negative rank", "rank is -1", () -> GROUP.communicator(-1));
    invalid("a run inside a run", "another run", WrongCallsTest::runInsideRun);
    invalid("unknown target", "target is \"tpu\"", () -> Target.parse("tpu"));
    invalid("unknown algorithm", "algorithm is \"warp\"", () -> Algorithm.parse("warp"));
    wrong("absent target", UnsupportedException.class, "target a5", Target.A5::require);
  }

  private static void subgroups() {
    invalid("an empty list", "ranks is empty", RANK::subgroup);
    invalid("a listed rank out of range", "ranks[1] is 4", () -> RANK.subgroup(0, 4));
    invalid("a negative listed rank", "ranks[0] is -1", () -> RANK.subgroup(-1));
    invalid("a rank listed twice", "ranks[2] is 1", () -> RANK.subgroup(1, 0, 1));
    invalid(
        "no limit",
        "deadline is 0 s",
        () -> ONE.runAsync(Collectives::barrier).await(Duration.ZERO));
  }

  private static void runInsideRun() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(outer -> group.run(inner -> {}));
    }
  }

  private static void collectives() {
    Tensor in = f32(4, 2);
    Tensor out = f32(4, 2);
    Duration past = Duration.ofSeconds(-1);
    Tensor readOnly =
        Tensor.of(direct(32).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), DType.F32, 8);
    Tensor closed = f32(4, 2);
    closed.close();
    invalid(
        "dtypes differ",
        "in has dtype i32, out has f32",
        () -> RANK.allToAll(Tensor.allocate(DType.I32, 4, 2), out));
    invalid("sizes differ", "in has 12 elements, out has 8", () -> RANK.allToAll(f32(4, 3), out));
    invalid("no multiple of ranks", "in has 6 elements", () -> RANK.allToAll(f32(6), f32(6)));
    invalid(
        "strided in",
        "in (f32[2, 4]) is not contiguous",
        () -> RANK.allToAll(in.transpose(0, 1), out));
    invalid(
        "strided out",
        "out (f32[2, 4]) is not contiguous",
        () -> RANK.allToAll(in, out.transpose(0, 1)));
    invalid("in is out", "overlaps", () -> RANK.allToAll(in, in));
    Tensor both = f32(12);
    invalid(
        "in overlaps out",
        "overlaps",
        () -> RANK.allToAll(both.narrow(0, 0, 8), both.narrow(0, 4, 8)));
    invalid("read-only out", "out (f32[8]) is read-only", () -> RANK.allToAll(in, readOnly));
    invalid(
        "an algorithm of another operation",
        "algorithm",
        () -> ONE.allToAll(in, out, Algorithm.STAGED));
    invalid("negative deadline", "deadline is -1 s", () -> RANK.withDeadline(past));
    wrong("closed in", ClosedException.class, "in (f32[4, 2])", () -> RANK.allToAll(closed, out));
    wrong("closed out", ClosedException.class, "out (f32[4, 2])", () -> RANK.allToAll(in, closed));
    invalid("root out of range", "root is 4", () -> RANK.broadcast(in, 4));
    invalid("negative root", "root is -1", () -> RANK.broadcast(in, -1));
    wrong(
        "scatter into closed memory",
        ClosedException.class,
        "scatter: out (f32[4, 2])",
        () -> RANK.scatter(null, closed, 1));
    wrong(
        "broadcast into closed memory",
        ClosedException.class,
        "broadcast: out (f32[4, 2])",
        () -> RANK.broadcast(null, closed, 1));
    missing("broadcast of nothing", "in", () -> RANK.broadcast(null, out, 0));
    invalid(
        "broadcast dtypes",
        "in has dtype i32, out has f32",
        () -> RANK.broadcast(Tensor.allocate(DType.I32, 8), out, 0));
    invalid(
        "broadcast sizes", "in has 9 elements, out has 8", () -> RANK.broadcast(f32(9), out, 0));
    invalid(
        "broadcast strided",
        "broadcast: tensor (f32[2, 4]) is not contiguous",
        () -> RANK.broadcast(out.transpose(0, 1), 0));
    invalid(
        "broadcast strided in",
        "in (f32[2, 4]) is not contiguous",
        () -> RANK.broadcast(in.transpose(0, 1), f32(8), 0));
    invalid(
        "broadcast overlap",
        "overlaps",
        () -> RANK.broadcast(both.narrow(0, 0, 8), both.narrow(0, 4, 8), 0));
    invalid(
        "broadcast read-only",
        "broadcast: tensor (f32[8]) is read-only",
        () -> RANK.broadcast(readOnly, 1));
    invalid(
        "broadcast by push",
        "algorithm",
        () -> ONE.broadcast(in, out, 0, Algorithm.PUSH));
    for (int root = 0; root < 2; root++) {
      int of = root;
      wrong(
          "broadcast closed",
          ClosedException.class,
          "broadcast: tensor (f32[4, 2])",
          () -> RANK.broadcast(closed, of));
    }
    invalid(
        "all-reduce in place, strided",
        "allReduce: tensor (f32[2, 4]) is not contiguous",
        () -> RANK.allReduce(out.transpose(0, 1), ReduceOp.SUM));
    invalid(
        "all-reduce in place, read-only",
        "allReduce: tensor (f32[8]) is read-only",
        () -> RANK.allReduce(readOnly, ReduceOp.SUM));
    wrong(
        "all-reduce in place, closed",
        ClosedException.class,
        "allReduce: tensor (f32[4, 2])",
        () -> RANK.allReduce(closed, ReduceOp.SUM));
  }

  private static void partCollectives() {
    Tensor in = f32(12);
    Tensor out = f32(12);
    Tensor ints = Tensor.allocate(DType.I32, 12);
    Tensor closed = f32(12);
    closed.close();
    long[] threes = {3, 3, 3, 3};
    long[] offsets = {0, 3, 6, 9};
    invalid("v dtypes", "in has dtype f32, out has i32", () -> RANK.allToAllv(in, threes, ints));
    invalid(
        "v strided",
        "in (f32[3, 4]) is not contiguous",
        () -> RANK.allToAllv(f32(4, 3).transpose(0, 1), threes, out));
    invalid(
        "too few counts",
        "sendCounts has 3 values; it must have one for each of 4 ranks",
        () -> RANK.allToAllv(in, new long[3], out));
    invalid(
        "too many offsets",
        "receiveOffsets has 5 values",
        () -> RANK.allToAllv(in, threes, offsets, out, threes, new long[5]));
    invalid(
        "negative send count",
        "allToAllv: sendCounts[1] is -3",
        () -> RANK.allToAllv(in, new long[] {3, -3, 3, 3}, out, threes));
    invalid(
        "negative receive count",
        "allToAllv: receiveCounts[3] is -1",
        () -> RANK.allToAllv(in, threes, out, new long[] {3, 3, 3, -1}));
    invalid(
        "more than in holds",
        "allToAllv: sendCounts[3] is 4; from element 9 on, in holds 3 more",
        () -> RANK.allToAllv(in, new long[] {3, 3, 3, 4}, out));
    invalid(
        "more than out holds",
        "allToAllv: receiveCounts[0] is 13",
        () -> RANK.allToAllv(in, threes, out, new long[] {13, 0, 0, 0}));
    invalid(
        "send offset beyond in",
        "allToAllv: sendOffsets[2] is 13; in holds 12 elements",
        () -> RANK.allToAllv(in, threes, new long[] {0, 3, 13, 9}, out, threes, offsets));
    invalid(
        "negative receive offset",
        "allToAllv: receiveOffsets[1] is -2",
        () -> RANK.allToAllv(in, threes, offsets, out, threes, new long[] {0, -2, 6, 9}));
    invalid(
        "parts overlap",
        "allToAllv: receiveOffsets[3] is 7: the part overlaps that of rank 2",
        () -> RANK.allToAllv(in, threes, offsets, out, threes, new long[] {0, 3, 6, 7}));
    invalid(
        "what a rank sends itself",
        "allToAllv: sendCounts[0] is 3 and receiveCounts[0] is 2",
        () -> RANK.allToAllv(in, threes, out, new long[] {2, 3, 3, 3}));
    String overlap = "allToAllv: in (12 x f32) overlaps out (12 x f32)";
    invalid("v in is out", overlap, () -> RANK.allToAllv(in, threes, in, threes));
    invalid("packed in is out", overlap, () -> RANK.allToAllv(in, threes, in));
    wrong(
        "v closed",
        ClosedException.class,
        "in (f32[12])",
        () -> RANK.allToAllv(closed, threes, out));
    invalid(
        "gather of another count",
        "allGatherv: in holds 4 elements, and counts[0] is 3",
        () -> RANK.allGatherv(f32(4), out, threes));
    invalid(
        "gather into another sum",
        "allGatherv: out holds 12 elements, and counts add to 11",
        () -> RANK.allGatherv(f32(3), out, new long[] {3, 3, 3, 2}));
    invalid(
        "gather not in place",
        "allGatherv: in (3 x f32) overlaps out (12 x f32); in place, in is part 0 of out",
        () -> RANK.allGatherv(out.narrow(0, 1, 3), out, threes));
    invalid(
        "negative gather",
        "allGatherv: counts[2] is -4",
        () -> RANK.allGatherv(f32(3), out, new long[] {3, 3, -4, 3}));
    invalid(
        "scatter not in place",
        "reduceScatterv: out (3 x f32) overlaps in (12 x f32); in place, out is part 0 of in",
        () -> RANK.reduceScatterv(in, in.narrow(0, 3, 3), threes, ReduceOp.SUM));
    wrong(
        "v average of integers",
        UnsupportedException.class,
        "i32 doesn't reduce with avg",
        () -> RANK.reduceScatterv(ints, Tensor.allocate(DType.I32, 3), threes, ReduceOp.AVG));
  }

  private static void windows() {
    Window window = ONE.window(100);
    Window shut = ONE.window(100);
    DistributedTensor orphan = shut.tensor(DType.F32, 4);
    shut.close();
    LocalGroup over = LocalGroup.of(1);
    Communicator gone = over.communicator(0);
    over.close();
    invalid("negative window", "bytes is -1", () -> ONE.window(-1));
    wrong("window beyond memory", ResourceException.class, "bytes", () -> ONE.window(1L << 60));
    wrong(
        "tensor beyond its window",
        ResourceException.class,
        "100",
        () -> window.tensor(DType.F32, 26));
    invalid("tensor at a negative offset", "offset is -8", () -> window.tensorAt(-8, DType.F32, 1));
    invalid("tensor at the end", "holds 4", () -> window.tensorAt(96, DType.F32, 2));
    invalid("tensor past the end", "offset is 104", () -> window.tensorAt(104, DType.F32, 0));
    invalid("unaligned tensor", "not a multiple of 4", () -> window.tensorAt(2, DType.F32, 1));
    wrong(
        "tensor of a closed window",
        ClosedException.class,
        "window",
        () -> shut.tensor(DType.F32, 1));
    wrong(
        "tensorAt of a closed window",
        ClosedException.class,
        "window",
        () -> shut.tensorAt(0, DType.F32, 1));
    wrong("fill after close", ClosedException.class, "closed", () -> orphan.fill(1));
    wrong(
        "all-to-all after close",
        ClosedException.class,
        "in (f32[4])",
        () -> ONE.allToAll(orphan, f32(4)));
    wrong("barrier after close", ClosedException.class, "closed", gone::barrier);
    wrong("window after close", ClosedException.class, "closed", () -> gone.window(64));
    wrong("split after close", ClosedException.class, "closed", () -> gone.split(0, 0));
    wrong("register after close", ClosedException.class, "closed", () ->
        TransferBuilder.of(gone).register());
  }

  private static void launches() {
    KernelLibrary library = KernelLibrary.load(TestKernels.FILE, Target.SIM);
    Kernel shift = library.kernel("shift");
    DistributedTensor out = WINDOWS.get(0).tensor(DType.F32, 8);
    Tensor in = f32(8);
    Tensor closed = f32(8);
    closed.close();
    Tensor readOnly =
        Tensor.of(direct(32).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), DType.I32, 2, 4);
    String what = "launch of shift on rank 0: argument ";
    invalid("a kernel that isn't", "has no \"warp\"; it has [shift(", () -> library.kernel("warp"));
    missing("a null kernel", "kernel", () -> RANK.launch(null));
    missing("a null argument", "arguments[1]", () -> RANK.launch(shift, in, null, 1));
    missing("null arguments", "arguments", () -> RANK.launch(shift, (Object[]) null));
    invalid(
        "too few arguments",
        "it is given 2 arguments, and takes 3: shift(f32 in,",
        () -> RANK.launch(shift, in, out));
    invalid(
        "a text for a scalar",
        what + "2 is of java.lang.String; a kernel takes tensors, and int, long, float and double",
        () -> RANK.launch(shift, in, out, "1"));
    invalid(
        "a long for an int",
        what + "2, steps, is i64, and must be i32",
        () -> RANK.launch(shift, in, out, 1L));
    invalid(
        "a scalar for a tensor",
        what + "0, in, is a scalar, and must be a tensor",
        () -> RANK.launch(shift, 1, out, 1));
    invalid(
        "an argument of another dtype",
        what + "0, in, is i32, and must be f32",
        () -> RANK.launch(shift, Tensor.allocate(DType.I32, 8), out, 1));
    invalid(
        "an argument of another size",
        what + "1, out, has 8 elements, and must have as many as in has: 9",
        () -> RANK.launch(shift, f32(9), out, 1));
    invalid(
        "a plain tensor where peers write",
        what + "1, out, is memory that only this rank reaches; it must lie in a window",
        () -> RANK.launch(shift, in, f32(8), 1));
    invalid(
        "a window of another communicator",
        "launch of shift on rank 0: argument 1, out, lies in a window of another communicator",
        () -> ONE.launch(shift, in, out, 1));
    invalid(
        "a strided argument",
        what + "0, in, is not contiguous",
        () -> RANK.launch(shift, f32(2, 4).transpose(0, 1), out, 1));
    invalid(
        "a read-only argument that is written",
        "argument 1, out, is read-only, and the kernel writes it",
        () -> RANK.launch(library.kernel("scalars"), readOnly, readOnly, 1, 1L, 1f, 1.0));
    invalid(
        "what the kernel refuses",
        "launch of shift on rank 0: the kernel refuses it: steps is negative",
        () -> RANK.launch(shift, in, out, -1));
    wrong(
        "a closed argument",
        ClosedException.class,
        "argument 0",
        () -> RANK.launch(shift, closed, out, 1));
  }

  private static void oneSided() {
    Window window = WINDOWS.get(0);
    Window small = ONE.window(128);
    Window shut = ONE.window(128);
    Signals orphans = shut.signals(1);
    DistributedTensor lost = shut.tensor(DType.F32, 2, 2);
    shut.close();
    Signals signals = window.signals(2);
    DistributedTensor remote = window.tensor(DType.F32, 4, 2);
    Tensor local = f32(4, 2);
    Tensor readOnly =
        Tensor.of(direct(32).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), DType.F32, 4, 2);
    Tensor closed = f32(4, 2);
    closed.close();
    invalid(
        "put to no rank",
        "put: peer is 4; it must lie in [0, 4)",
        () -> window.put(local, 4, remote));
    invalid("get from a negative rank", "get: peer is -1", () -> window.get(local, -1, remote));
    invalid("put to another window", "another window", () -> small.put(local, 0, remote));
    invalid(
        "put of another dtype",
        "put: local is i32[4, 2], remote f32[4, 2]; dtypes and shapes must agree",
        () -> window.put(Tensor.allocate(DType.I32, 4, 2), 1, remote));
    invalid(
        "get of another shape",
        "get: local is f32[8], remote f32[4, 2]; dtypes and shapes must agree",
        () -> window.get(f32(8), 1, remote));
    invalid(
        "get into read-only",
        "local (f32[4, 2]) is read-only",
        () -> window.get(readOnly, 1, remote));
    invalid(
        "put onto itself",
        "put: local (f32[3, 2]) overlaps remote (f32[3, 2])",
        () -> window.put(remote.narrow(0, 0, 3), 0, remote.narrow(0, 1, 3)));
    wrong(
        "put of closed memory",
        ClosedException.class,
        "local",
        () -> window.put(closed, 1, remote));
    wrong(
        "put to a closed window",
        ClosedException.class,
        "window",
        () -> shut.put(f32(2, 2), 0, lost));
    invalid("negative signals", "count is -1", () -> window.signals(-1));
    wrong(
        "more signals than room",
        ResourceException.class,
        "192 bytes; the window has 128 of 128",
        () -> small.signals(3));
    wrong("signals of a closed window", ClosedException.class, "window", () -> shut.signals(1));
    invalid(
        "notify to no rank",
        "notify: peer is 4; it must lie in [0, 4)",
        () -> signals.notify(4, 0, 1));
    invalid("notify of no signal", "index is 2", () -> signals.notify(1, 2, 1));
    invalid("negative count", "notify: value is -1", () -> signals.notify(1, 0, -1));
    invalid(
        "await of no rank",
        "await: peer is -1; it must lie in [0, 4)",
        () -> signals.await(-1, 0, 1));
    invalid("await of no signal", "index is -1", () -> signals.await(1, -1, 1));
    invalid("test of no signal", "index is 2", () -> signals.test(1, 2, 1));
    invalid(
        "test of no rank",
        "test: peer is 4; it must lie in [0, 4)",
        () -> signals.test(4, 0, 1));
    invalid("await in no time", "deadline is 0 s", () -> signals.withDeadline(Duration.ZERO));
    wrong("notify after close", ClosedException.class, "window", () -> orphans.notify(0, 0, 1));
    wrong("await after close", ClosedException.class, "window", () -> orphans.await(0, 0, 1));
  }

  private static void tensors() {
    invalid("negative extent", "shape[1] is -1", () -> f32(2, -1));
    invalid("bytes overflow", "shape", () -> f32(1L << 31, 1L << 31));
    invalid("elements overflow", "shape", () -> f32(Long.MAX_VALUE, Long.MAX_VALUE, 0));
    invalid("too many dimensions", "17 dimensions", () -> f32(new long[17]));
    wrong(
        "less than a byte",
        UnsupportedException.class,
        "dtype is f4",
        () -> Tensor.allocate(DType.F4, 2));
    wrong(
        "beyond memory",
        ResourceException.class,
        "bytes",
        () -> Tensor.allocate(DType.U8, 1L << 60));
    invalid(
        "heap buffer",
        "buffer is on the Java heap",
        () -> Tensor.of(ByteBuffer.allocate(64), DType.F32, 1));
    invalid(
        "big-endian buffer",
        "BIG_ENDIAN",
        () -> Tensor.of(ByteBuffer.allocateDirect(64), DType.F32, 1));
    invalid(
        "short buffer",
        "needs 68 bytes, the memory holds 64",
        () -> Tensor.of(direct(64), DType.F32, 17));
    invalid(
        "unaligned slice",
        "not a multiple of 4",
        () -> Tensor.of(direct(64).position(1), DType.F32, 1));
    invalid("negative bytes", "bytes is -1", () -> Tensor.of(4096, -1, null, DType.U8, 0));
    invalid("no address", "address is 0", () -> Tensor.of(0, 64, null, DType.U8, 1));
    invalid("address wraps", "bytes is", () -> Tensor.of(Long.MAX_VALUE, 64, null, DType.U8, 1));
    wrong(
        "no segment",
        WindlassException.class,
        "egment",
        () -> Tensor.ofSegment("text", DType.U8, 1));
    Tensor readOnly =
        Tensor.of(direct(4).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), DType.F32, 1);
    invalid("write to read-only", "read-only", () -> readOnly.fill(1));
    invalid("copy to read-only", "read-only", () -> readOnly.copyFrom(new float[1]));
  }

  private static void views() {
    Tensor tensor = f32(4, 6);
    invalid("narrow dim", "dim is 2", () -> tensor.narrow(2, 0, 1));
    invalid("narrow negative dim", "dim is -1", () -> tensor.narrow(-1, 0, 1));
    invalid("narrow start", "start is 5", () -> tensor.narrow(0, 5, 0));
    invalid("narrow length", "length is 3", () -> tensor.narrow(0, 2, 3));
    invalid("narrow overflow", "length is", () -> tensor.narrow(0, 2, Long.MAX_VALUE));
    invalid("select index", "index is 6", () -> tensor.select(1, 6));
    invalid("select of a scalar", "no dimensions", () -> f32().select(0, 0));
    invalid("transpose dim", "dim1 is 7", () -> tensor.transpose(0, 7));
    invalid("splitDim sizes", "multiply to 8", () -> tensor.splitDim(1, 2, 4));
    invalid("splitDim negative", "sizes", () -> tensor.splitDim(1, -2, -3));
    invalid(
        "splitDim of everything",
        "dimensions",
        () -> tensor.splitDim(0, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    invalid("reshape elements", "has 25 elements", () -> tensor.reshape(5, 5));
    invalid("reshape strided", "not contiguous", () -> tensor.transpose(0, 1).reshape(24));
    invalid("buffer of strided", "not contiguous", () -> tensor.transpose(0, 1).asByteBuffer());
    invalid("buffer offset", "offset is 97", () -> tensor.asByteBuffer(97, 0));
    invalid("buffer length", "length is 9", () -> tensor.asByteBuffer(88, 9));
  }

  private static void elements() {
    Tensor bytes = Tensor.allocate(DType.I8, 2);
    Tensor floats = f32(2, 2);
    Tensor complex = Tensor.allocate(DType.C64, 1);
    invalid("fill out of range", "value is 128", () -> bytes.fill(128));
    invalid("fill with a fraction", "value is 0.5", () -> bytes.fill(0.5));
    invalid("fill with NaN", "value is NaN", () -> bytes.fill(Double.NaN));
    invalid("fill a bool with 2", "value is 2", () -> Tensor.allocate(DType.BOOL, 1).fill(2));
    wrong("fill of complex", UnsupportedException.class, "c64", () -> complex.fill(1.0));
    invalid("index of too few dimensions", "index has 1", () -> floats.getDouble(1));
    invalid("index out of range", "index[1] is 2", () -> floats.getDouble(0, 2));
    invalid("index of an integer", "getDouble: index[0] is 2", () -> bytes.getDouble(2));
    invalid("long of a float", "dtype is f32", () -> floats.getLong(0, 0));
    invalid("array too short", "values has 3", () -> floats.copyFrom(new float[3]));
    invalid("array of another dtype", "dtype f32", () -> floats.copyFrom(new int[4]));
    invalid("floats of integers", "dtype i8", () -> bytes.copyTo(new float[2]));
    invalid("copy of another shape", "source is f32[4]", () -> floats.copyFrom(f32(4)));
    invalid(
        "copy of another kind",
        "dtype i32",
        () -> floats.copyFrom(Tensor.allocate(DType.I32, 2, 2)));
    invalid(
        "copy onto itself",
        "source (f32[2, 2]) overlaps",
        () -> floats.copyFrom(floats.transpose(0, 1)));
  }

  private static TransferBuilder add(Layout from, Tensor source, Layout to, Tensor target) {
    return TransferBuilder.of(ONE).add("w", new long[] {4, 2}, DType.F32, from, source, to, target);
  }

  private static void batches() {
    Tensor a = f32(4, 2);
    Tensor b = f32(4, 2);
    Tensor closed = f32(4, 2);
    closed.close();
    long[] shape = {4, 2};
    TensorSpec spec = TensorSpec.of("w", DType.F32, WHOLE, 4, 2);
    invalid(
        "mesh too large",
        "'w' has layout 4:S0, which needs rank 3",
        () -> add(ROWS, a, WHOLE, b));
    invalid("target mesh too large", "to: tensor 'w'", () -> add(WHOLE, a, ROWS, b));
    invalid(
        "mesh beyond the last rank", "rank 7", () -> add(WHOLE, a, Layout.parse("1@7:R"), null));
    invalid("shard of a missing dimension", "'w'", () -> add(Layout.parse("1:S2"), a, WHOLE, b));
    invalid(
        "target Partial",
        "to: tensor 'w' has layout 1:P",
        () -> add(WHOLE, a, Layout.parse("1:P"), b));
    missing("no source view", "source of tensor 'w' is null", () -> add(WHOLE, null, WHOLE, b));
    missing("no target view", "target of tensor 'w' is null", () -> add(WHOLE, a, WHOLE, null));
    invalid(
        "source shape",
        "source of tensor 'w' has shape [2, 4]",
        () -> add(WHOLE, f32(2, 4), WHOLE, b));
    invalid(
        "target shape", "target of tensor 'w' has shape [8]", () -> add(WHOLE, a, WHOLE, f32(8)));
    invalid(
        "source dtype",
        "source of tensor 'w' has dtype i32",
        () -> add(WHOLE, Tensor.allocate(DType.I32, 4, 2), WHOLE, b));
    invalid(
        "a view outside the mesh",
        "outside the mesh",
        () -> TransferBuilder.of(RANK)
            .add("w", shape, DType.F32, Layout.parse("1@1:R"), a, WHOLE, b));
    invalid(
        "target is source",
        "overlaps source of tensor 'w'",
        () -> add(WHOLE, a, WHOLE, a).register());
    invalid(
        "a target twice",
        "target of tensor 'v'",
        () -> add(WHOLE, a, WHOLE, b).add("v", shape, DType.F32, WHOLE, a, WHOLE, b).register());
    invalid(
        "one name, two shapes",
        "'w' was added before",
        () ->
            add(WHOLE, a, WHOLE, b)
                .add("w", new long[] {8}, DType.F32, WHOLE, f32(8), WHOLE, f32(8)));
    invalid(
        "shapes of both ends",
        "to: tensor 'w' has shape [8]",
        () ->
            TransferBuilder.of(ONE).add(spec, a, TensorSpec.of("w", DType.F32, WHOLE, 8), f32(8)));
    wrong(
        "integer to float",
        UnsupportedException.class,
        "'w'",
        () ->
            TransferBuilder.of(ONE)
                .add(
                    TensorSpec.of("w", DType.I32, WHOLE, 4, 2),
                    Tensor.allocate(DType.I32, 4, 2),
                    spec,
                    b));
    wrong(
        "average of integers",
        UnsupportedException.class,
        "'i'",
        () ->
            TransferBuilder.of(ONE)
                .add(
                    "i",
                    shape,
                    DType.I32,
                    Layout.parse("1:P:avg"),
                    Tensor.allocate(DType.I32, 4, 2),
                    WHOLE,
                    Tensor.allocate(DType.I32, 4, 2)));
    wrong(
        "wire of another kind",
        UnsupportedException.class,
        "'w'",
        () ->
            TransferBuilder.of(ONE).defaultWire(DType.I32)
                .add("w", shape, DType.F32, WHOLE, a, WHOLE, b));
    wrong(
        "a closed view",
        ClosedException.class,
        "source of tensor 'w'",
        () -> add(WHOLE, closed, WHOLE, b));
    invalid("no bucket", "bucketBytes", () -> TransferBuilder.of(ONE).defaultBucketBytes(0));
    invalid("added after register", "registered", WrongCallsTest::addAfterRegister);
    wrong(
        "run after close",
        ClosedException.class,
        "transfer was closed",
        WrongCallsTest::runAfterClose);
    wrong(
        "run over a closed view",
        ClosedException.class,
        "target of tensor 'w'",
        WrongCallsTest::runOverClosedView);
  }

  private static void addAfterRegister() {
    TransferBuilder builder = add(WHOLE, f32(4, 2), WHOLE, f32(4, 2));
    try (Transfer transfer = builder.register()) {
      transfer.run();
      builder.add("v", new long[0], DType.F32, WHOLE, f32(), WHOLE, f32());
    }
  }

  private static void runAfterClose() {
    Transfer transfer = add(WHOLE, f32(4, 2), WHOLE, f32(4, 2)).register();
    transfer.close();
    transfer.run();
  }

  private static void runOverClosedView() {
    Tensor target = f32(4, 2);
    try (Transfer transfer = add(WHOLE, f32(4, 2), WHOLE, target).register()) {
      target.close();
      transfer.run();
    }
  }

  static Stream<Wrong> calls() {
    return CALLS.stream();
  }

  @ParameterizedTest
  @MethodSource("calls")
  void isRefusedByName(Wrong wrong) {
    assertThatThrownBy(wrong.call).isInstanceOf(wrong.kind).hasMessageContaining(wrong.names);
    assertThat(RANK.failure()).isEmpty();
    assertThat(ONE.failure()).isEmpty();
    ONE.barrier();
  }

  @Test
  void thereAreAtLeastSixty() {
    assertThat(CALLS).hasSizeGreaterThan(60);
  }

  @AfterAll
  static void close() {
    GROUP.close();
    ALONE.close();
  }
}
