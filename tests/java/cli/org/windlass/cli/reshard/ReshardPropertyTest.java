// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.cli.Cli;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.ReferenceNumbers;
import org.windlass.testing.ReferenceTensor;
import org.windlass.testing.TestFile;

/**
 * Random checkpoints from random layouts to random layouts, bit for bit against a slow reference,
 * with ranks as threads and as processes.
 */
class ReshardPropertyTest {
  /** How many of them run once more as the command that starts its processes itself. */
  private static final int LAUNCHES = Boolean.getBoolean("windlass.long") ? 3 : 1;

  private static TwoProcesses processes;
  private static int launched;

  private static final DType[] FLOATS = {
    DType.F64, DType.F32, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2
  };

  private final List<ReferenceTensor> tensors = new ArrayList<>();
  private Random random;
  private Layout from;
  private String to;
  private boolean whole;
  private DType wire;
  private DType dtype;

  @BeforeAll
  static void start() {
    processes = new TwoProcesses();
  }

  @AfterAll
  static void end() throws IOException {
    processes.close();
  }

  @RandomSeeds(value = 15, inLong = 600)
  void theResultIsWhatTheDefinitionsSay(long seed) throws IOException {
    random = new Random(seed);
    tensors.clear();
    try (ScratchFolder folder = ScratchFolder.create()) {
      checkOne(folder.path());
    }
  }

  private void checkOne(Path folder) throws IOException {
    whole = random.nextInt(3) == 0;
    from = Layout.parse(layout(!whole, random.nextInt(4) == 0));
    to = layout(false, random.nextBoolean());
    wire = random.nextInt(3) == 0 ? FLOATS[random.nextInt(FLOATS.length)] : null;
    dtype = random.nextInt(2) == 0 ? FLOATS[random.nextInt(FLOATS.length)] : null;
    for (int i = random.nextInt(4); i >= 0; i--) {
      addTensor(i);
    }
    Path in = writeSource(folder);
    List<Object> arguments = new ArrayList<>();
    arguments.addAll(List.of("reshard", "--from", from, "--to", to, in));
    boolean single = random.nextInt(3) == 0;
    boolean indexed = !single && random.nextInt(4) == 0;
    Path out = folder.resolve(single ? "out.safetensors" : "out");
    arguments.add(out);
    if (indexed) {
      arguments.addAll(List.of("--max-shard-bytes", 1 + random.nextInt(300)));
    }
    if (wire != null) {
      arguments.addAll(List.of("--wire", wire));
    }
    if (dtype != null) {
      arguments.addAll(List.of("--dtype", dtype));
    }
    if (random.nextBoolean()) {
      arguments.addAll(List.of("--bucket-bytes", 1 + random.nextInt(100)));
    }
    if (random.nextBoolean()) {
      arguments.addAll(List.of("--mode", "staged"));
    }
    if (random.nextBoolean()) {
      arguments.add("--verify");
    }
    Cli done = Cli.run(arguments.toArray());
    assertThat(done.status()).as("%s: %s", arguments, done.err()).isZero();
    if (single || indexed) {
      checkWhole(out, indexed);
    } else {
      checkRanks(out);
    }
    processes.compare(arguments, out);
    if (launched++ < LAUNCHES) {
      compareLaunch(arguments, out);
    }
  }

  private static void compareLaunch(List<Object> arguments, Path out) throws IOException {
    Path launch = out.resolveSibling("launch-" + out.getFileName());
    List<Object> words = new ArrayList<>(arguments);
    words.replaceAll(word -> word.equals(out) ? launch : word);
    words.addAll(List.of("--launch", "processes"));
    Cli done = Cli.run(words.toArray());
    assertThat(done.status()).as("%s: %s", words, done.err()).isZero();
    TwoProcesses.assertSame(launch, out);
  }

  /** A layout of up to three mesh dimensions and sixteen ranks. */
  private String layout(boolean partial, boolean placed) {
    int ndim = 1 + random.nextInt(3);
    List<String> sizes = new ArrayList<>();
    List<String> placements = new ArrayList<>();
    int ranks = 1;
    String op = List.of("P", "P:avg", "P:max", "P:min", "P:product").get(random.nextInt(5));
    for (int m = 0; m < ndim; m++) {
      int size = 1 + random.nextInt(ndim == 1 ? 8 : ndim == 2 ? 4 : 2);
      ranks *= size;
      sizes.add((random.nextBoolean() ? "m" + m + "=" : "") + size);
      placements.add(
          switch (random.nextInt(partial ? 6 : 5)) {
            case 0 -> "R";
            case 1, 2 -> "S" + random.nextInt(3);
            case 3 -> "S" + random.nextInt(2) + "*" + (1 + random.nextInt(3));
            case 4 -> "SS" + random.nextInt(2) + "/" + (1 + random.nextInt(3));
            default -> op;
          });
    }
    for (int m = 0; m < ndim; m++) {
      String plain = placements.get(m).startsWith("SS") ? placements.get(m).substring(1, 3) : "";
      int later = m + 1 + placements.subList(m + 1, ndim).indexOf(plain);
      if (later > m && random.nextInt(3) > 0) {
        placements.set(m, "S" + plain + "/" + sizes.get(later).replaceAll(".*=", ""));
      }
    }
    String at = "";
    if (placed) {
      List<Integer> all = new ArrayList<>();
      for (int rank = 0; rank < 16; rank++) {
        all.add(rank);
      }
      Collections.shuffle(all, random);
      boolean listed = random.nextBoolean();
      at =
          listed
              ? "@" + all.subList(0, ranks).toString().replace(" ", "")
              : "@" + random.nextInt(16 - ranks + 1);
    }
    return String.join("x", sizes) + at + ":" + String.join(",", placements);
  }

  /** How many dimensions a tensor has at least of which none is cut in vain. */
  private static int cuts(Layout layout) {
    int most = 0;
    for (Placement placement : layout.placements()) {
      if (placement instanceof Placement.Shard shard) {
        most = Math.max(most, shard.dim() + 1);
      } else if (placement instanceof Placement.StridedShard strided) {
        most = Math.max(most, strided.dim() + 1);
      }
    }
    return most;
  }

  private void addTensor(int index) {
    // A dimension that no tensor has is cut by no layout.
    int least = index == 0 ? Math.max(cuts(from), cuts(Layout.parse(to))) : 0;
    int[] shape = new int[Math.max(least, random.nextInt(6))];
    for (int d = 0; d < shape.length; d++) {
      shape[d] = random.nextInt(10) == 0 ? 0 : 1 + random.nextInt(shape.length < 3 ? 9 : 4);
    }
    ReferenceTensor.raise(shape, from, Layout.parse(to));
    ReduceOp op = from.partialOp().orElse(null);
    DType type;
    do {
      type =
          random.nextInt(3) > 0
              ? FLOATS[random.nextInt(FLOATS.length)]
              : DType.values()[random.nextInt(DType.values().length)];
      // Fewer than eight bits move only where cuts fall on bytes; a test of their own covers them.
    } while (type.bits() < 8
        || op != null && !type.canReduce(op)
        || dtype != null && type.toString().endsWith("fnuz"));
    tensors.add(
        new ReferenceTensor(
            "layer." + index + ".weight", shape, type, from.defaultedFor(shape.length), random));
  }

  private Path writeSource(Path folder) throws IOException {
    if (!whole) {
      Path in = Files.createDirectory(folder.resolve("in"));
      for (int place = 0; place < from.mesh().size(); place++) {
        int at = place;
        TestFile.write(
            in.resolve(String.format("rank-%05d.safetensors", from.mesh().rankAtPlace(place))),
            tensors.stream().map(tensor -> tensor.source(at)).toList(),
            Map.of("format", "pt"));
      }
      return in;
    }
    if (random.nextBoolean()) {
      Path in = folder.resolve("in.safetensors");
      TestFile.write(
          in, tensors.stream().map(ReferenceTensor::whole).toList(), Map.of("format", "pt"));
      return in;
    }
    Path in = Files.createDirectory(folder.resolve("in"));
    StringBuilder map = new StringBuilder("{\"weight_map\":{");
    for (int i = 0; i < tensors.size(); i++) {
      String name = "part-" + i + ".safetensors";
      TestFile.write(in.resolve(name), List.of(tensors.get(i).whole()), Map.of("format", "pt"));
      map.append(i == 0 ? "" : ",")
          .append('"').append(tensors.get(i).name).append("\":\"").append(name).append('"');
    }
    Files.writeString(in.resolve("model.safetensors.index.json"), map.append("}}").toString());
    return in;
  }

  private TestFile.Tensor expected(ReferenceTensor tensor, List<List<Integer>> dims) {
    return tensor.expected(dims, wireOf(tensor), targetOf(tensor));
  }

  private static boolean casts(ReferenceTensor tensor) {
    return Arrays.asList(FLOATS).contains(tensor.dtype);
  }

  private DType targetOf(ReferenceTensor tensor) {
    return dtype != null && casts(tensor) ? dtype : tensor.dtype;
  }

  private DType wireOf(ReferenceTensor tensor) {
    return wire != null && casts(tensor) ? wire : tensor.dtype;
  }

  private void checkRanks(Path out) throws IOException {
    Layout target = Layout.parseTarget(to, from);
    try (Stream<Path> files = Files.list(out)) {
      assertThat(files).hasSize(target.mesh().size() + 1);
    }
    for (int place = 0; place < target.mesh().size(); place++) {
      // By place where the layout names no ranks.
      int number = to.contains("@") ? target.mesh().rankAtPlace(place) : place;
      TestFile.Content found =
          TestFile.read(out.resolve(String.format("rank-%05d.safetensors", number)));
      assertThat(found.metadata()).isEqualTo(Map.of("format", "pt"));
      List<TestFile.Tensor> expected = new ArrayList<>();
      for (ReferenceTensor tensor : tensors) {
        Layout applied = target.defaultedFor(tensor.shape.length);
        expected.add(expected(tensor, ReferenceTensor.indices(applied, place, tensor.shape)));
      }
      compare(found.tensors(), expected);
    }
  }

  private void checkWhole(Path out, boolean indexed) throws IOException {
    List<TestFile.Tensor> found = new ArrayList<>();
    if (indexed) {
      try (Stream<Path> files = Files.list(out)) {
        for (Path file :
            files.filter(path -> path.toString().endsWith(".safetensors")).sorted().toList()) {
          found.addAll(TestFile.read(file).tensors());
        }
      }
    } else {
      found.addAll(TestFile.read(out).tensors());
    }
    List<TestFile.Tensor> expected = new ArrayList<>();
    for (ReferenceTensor tensor : tensors) {
      List<List<Integer>> all = new ArrayList<>();
      for (int extent : tensor.shape) {
        all.add(IntStream.range(0, extent).boxed().toList());
      }
      expected.add(expected(tensor, all));
    }
    compare(found, expected);
  }

  private void compare(List<TestFile.Tensor> found, List<TestFile.Tensor> expected) {
    assertThat(found).hasSameSizeAs(expected);
    for (int i = 0; i < expected.size(); i++) {
      ReferenceTensor tensor = tensors.get(i);
      boolean anyNan = tensor.anyNan(wireOf(tensor), targetOf(tensor));
      assertThat(canonical(found.get(i), anyNan)).isEqualTo(canonical(expected.get(i), anyNan));
    }
  }

  private static TestFile.Tensor canonical(TestFile.Tensor tensor, boolean anyNan) {
    if (!anyNan) {
      return tensor;
    }
    DType type = tensor.dtype();
    long[] bits =
        Arrays.stream(tensor.bits())
            .map(
                b ->
                    Double.isNaN(ReferenceNumbers.decode(type, b))
                        ? ReferenceNumbers.encode(type, Double.NaN)
                        : b)
            .toArray();
    return new TestFile.Tensor(tensor.name(), type, tensor.shape(), bits);
  }
}
