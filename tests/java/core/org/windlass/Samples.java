// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static java.time.Duration.ofSeconds;

import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.checkpoint.SafetensorsHeader;
import org.windlass.checkpoint.SafetensorsIndex;
import org.windlass.checkpoint.SafetensorsWriter;

/**
 * A value of each type that a public call takes or is made on, such that calls with them can be
 * carried out: one rank, two dimensions, two elements along each.
 */
final class Samples implements AutoCloseable {
  private final Path folder;
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final Map<String, Supplier<?>> values = new HashMap<>();
  private int paths;

  Samples(Path folder) {
    this.folder = folder;
    plain();
    plans();
    running();
    checkpoints();
  }

  /** A value for a parameter: its type's, unless its name asks for another. */
  Object of(Parameter parameter) {
    String name = parameter.getName();
    Object value = of(parameter.getParameterizedType());
    if (value instanceof Integer && name.matches("ranks|size|split|ranksPerHost")) {
      return 1;
    }
    if (value instanceof Long && name.matches("unit|bucketBytes")) {
      return 1L;
    }
    if (value instanceof long[] && name.matches("counts|.*Counts|.*Offsets")) {
      return new long[1];
    }
    boolean ofFile =
        parameter.getDeclaringExecutable().getDeclaringClass() == CheckpointWriter.class;
    return value instanceof String && ofFile ? "w.safetensors" : value;
  }

  Object of(Type type) {
    Supplier<?> value = values.get(type.getTypeName());
    if (value == null) {
      throw new AssertionError("no sample of " + type.getTypeName() + ": add one here");
    }
    return value.get();
  }

  private <T> void put(Class<T> type, Supplier<? extends T> value) {
    values.put(type.getTypeName(), value);
  }

  private void generic(String type, Supplier<?> value) {
    values.put(type.replaceAll("\\b(List|Map|Optional)<", "java.util.$1<"), value);
  }

  private <T extends AutoCloseable> Supplier<T> once(Supplier<T> make) {
    return new Supplier<>() {
      private T made;

      @Override
      public T get() {
        if (made == null) {
          made = make.get();
          opened.add(made);
        }
        return made;
      }
    };
  }

  private <T extends AutoCloseable> Supplier<T> each(Supplier<T> make) {
    return () -> {
      T made = make.get();
      opened.add(made);
      return made;
    };
  }

  private void plain() {
    put(boolean.class, () -> false);
    put(int.class, () -> 0);
    put(long.class, () -> 0L);
    put(double.class, () -> 0.0);
    put(String.class, () -> "w");
    put(Object.class, () -> "w");
    put(Object[].class, () -> new Object[] {"b", 1});
    put(int[].class, () -> new int[] {0, 0});
    put(long[].class, () -> new long[] {2, 2});
    put(long[][].class, () -> new long[][] {{0, 2}, {0, 2}});
    put(byte[].class, () -> new byte[4]);
    put(short[].class, () -> new short[4]);
    put(float[].class, () -> new float[4]);
    put(double[].class, () -> new double[4]);
    put(Throwable.class, () -> new IllegalStateException("sample"));
    put(Duration.class, () -> ofSeconds(1));
    put(ByteBuffer.class, () -> ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder()));
    put(Path.class, () -> folder.resolve("path-" + paths++));
    generic("List<java.lang.Integer>", () -> List.of(0));
    generic("List<java.lang.Long>", () -> List.of(2L, 2L));
    generic("List<java.lang.String>", () -> List.of("a", "b"));
    generic("Map<java.lang.String, java.lang.String>", () -> Map.of("w", "w.safetensors"));
  }

  private void plans() {
    put(DType.class, () -> DType.I64);
    put(ReduceOp.class, () -> ReduceOp.SUM);
    put(Algorithm.class, () -> Algorithm.AUTO);
    put(TransferMode.class, () -> TransferMode.DIRECT);
    put(DeviceMesh.class, () -> DeviceMesh.parse("a=1xb=1"));
    put(Layout.class, () -> Layout.parse("1x1:R,R"));
    put(Placement[].class, () -> new Placement[] {Placement.replicate(), Placement.replicate()});
    put(TensorSpec.class, () -> TensorSpec.of("w", DType.I64, Layout.parse("1x1:R,R"), 2, 2));
    put(PlanOptions.class, PlanOptions::defaults);
    put(Plan.class, Samples::plan);
    put(Region.class, () -> Region.whole(2, 2));
    put(Route.class, () -> plan().routes().get(0));
    generic("List<org.windlass.Placement>", () -> List.of(Placement.replicate(), Placement.shard(0)));
    generic("List<org.windlass.Plan>", () -> List.of(plan()));
    generic("List<org.windlass.Traffic$Link>", () -> plan().traffic().links());
    generic("List<org.windlass.Report$Call>", List::of);
    generic("List<org.windlass.Report$Rank>", List::of);
    generic("Optional<org.windlass.ErrorCode>", Optional::empty);
    generic("Optional<org.windlass.WindlassException>", Optional::empty);
    values.put("java.lang.Iterable<org.windlass.Route>", () -> plan().routes());
    values.put("java.util.function.Consumer<org.windlass.Route>", () -> ignored());
  }

  private static Plan plan() {
    Layout layout = Layout.parse("1x1:R,R");
    return Plan.of(layout, layout, new long[] {2, 2}, DType.I64);
  }

  private static <T> Consumer<T> ignored() {
    return value -> {};
  }

  private void running() {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(ofSeconds(10));
    Supplier<LocalGroup> group = once(() -> Communicator.local(1, options));
    Supplier<Communicator> one = () -> group.get().communicator(0);
    Supplier<Window> window = once(() -> one.get().window(1 << 16));
    Supplier<DistributedTensor> distributed = () -> window.get().tensorAt(0, DType.I64, 2, 2);
    Supplier<Tensor> tensor = () -> Tensor.allocate(DType.I64, 2, 2);
    TensorSpec spec = (TensorSpec) of(TensorSpec.class);
    Supplier<Link> link =
        once(() -> one.get().link("pair", DeviceMesh.of(1), DeviceMesh.of(1)));
    put(CommunicatorOptions.class, () -> options);
    put(LocalGroup.class, group);
    put(Communicator.class, one);
    put(Collectives.class, one);
    put(Window.class, window);
    put(Signals.class, () -> window.get().signals(2));
    put(Tensor.class, tensor);
    put(DistributedTensor.class, distributed);
    put(Batch.class, () -> one.get().batch());
    put(
        Transfer.class,
        once(() -> one.get().batch().add(spec, tensor.get(), spec, tensor.get()).register()));
    put(Link.class, link);
    put(LinkBatch.class, () -> link.get().batch());
    put(
        LinkTransfer.class,
        once(() -> link.get().batch().add(spec, tensor.get()).into(spec, tensor.get()).register()));
    put(Operation.class, () -> done(one.get()));
    Consumer<Object> nothing = ignored();
    Function<Object, Object> same = value -> value;
    RankBody<RuntimeException> body = rank -> {};
    RankFunction<Integer, RuntimeException> rank = Communicator::rank;
    values.put("java.util.function.Consumer<? super org.windlass.Collectives>", () -> nothing);
    values.put(
        "java.util.function.Function<? super org.windlass.Collectives, ? extends T>", () -> same);
    values.put("org.windlass.RankBody<E>", () -> body);
    values.put("org.windlass.RankFunction<T, E>", () -> rank);
  }

  private static Operation<Void> done(Communicator communicator) {
    Operation<Void> operation = communicator.async(Collectives::barrier);
    operation.await();
    return operation;
  }

  private void checkpoints() {
    List<SafetensorsHeader.Item> items =
        List.of(new SafetensorsHeader.Item("w", DType.I64, List.of(2L, 2L)));
    Supplier<SafetensorsWriter> file =
        each(() -> SafetensorsWriter.create(folder.resolve("file-" + paths++), items, Map.of()));
    Path written = written(file);
    put(Checkpoint.class, once(() -> Checkpoint.open(written)));
    put(CheckpointWriter.class, each(() -> CheckpointWriter.begin((Path) of(Path.class), false)));
    put(SafetensorsFile.class, once(() -> SafetensorsFile.open(written)));
    put(SafetensorsWriter.class, file);
    put(SafetensorsHeader.class, () -> file.get().header());
    put(SafetensorsIndex.class, () -> new SafetensorsIndex(Map.of("w", "w.safetensors")));
    put(SafetensorsEntry.class, () -> file.get().header().tensors().iterator().next());
    LayoutFile.Entry entry =
        new LayoutFile.Entry(List.of(2L, 2L), Optional.of(DType.I64), Optional.empty());
    generic("List<org.windlass.checkpoint.SafetensorsHeader$Item>", () -> items);
    generic("Optional<org.windlass.DType>", Optional::empty);
    generic("Optional<org.windlass.Layout>", Optional::empty);
    generic("Optional<org.windlass.checkpoint.LayoutFile$Parts>", Optional::empty);
    generic(
        "Map<java.lang.String, org.windlass.checkpoint.LayoutFile$Entry>",
        () -> Map.of("w", entry));
  }

  private static Path written(Supplier<SafetensorsWriter> file) {
    try (SafetensorsWriter writer = file.get()) {
      return writer.path();
    }
  }

  @Override
  public void close() {
    for (int i = opened.size() - 1; i >= 0; i--) {
      try {
        opened.get(i).close();
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    }
  }
}
