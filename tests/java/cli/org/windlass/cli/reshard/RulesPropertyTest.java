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
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.ReferenceTensor;
import org.windlass.testing.TestFile;

/**
 * Random tensors with layouts of their own, transposed and joined by a random rule, between random
 * layouts: bit for bit against a slow reference, with ranks as threads and as processes.
 */
class RulesPropertyTest {
  private static TwoProcesses processes;

  private static final DType[] FLOATS = {DType.F32, DType.F16, DType.BF16, DType.F8E4M3};

  private Random random;
  private final List<ReferenceTensor> parts = new ArrayList<>();
  private List<Integer> order;
  private int dim;
  private boolean stacks;
  private DType dtype;
  private DType wire;

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
    parts.clear();
    try (ScratchFolder folder = ScratchFolder.create()) {
      checkOne(folder.path());
    }
  }

  private void checkOne(Path folder) throws IOException {
    int ndim = 1 + random.nextInt(3);
    order = new ArrayList<>(IntStream.range(0, ndim).boxed().toList());
    Collections.shuffle(order, random);
    stacks = random.nextBoolean();
    dim = random.nextInt(stacks ? ndim + 1 : ndim);
    boolean whole = random.nextInt(3) == 0;
    boolean casts = random.nextBoolean();
    DType source = random.nextBoolean() ? FLOATS[random.nextInt(4)] : DType.U16;
    dtype = casts && source.isFloating() ? FLOATS[random.nextInt(4)] : source;
    wire = source.isFloating() && random.nextInt(3) == 0 ? FLOATS[random.nextInt(4)] : source;
    int[] written = new int[ndim];
    Arrays.setAll(written, d -> 1 + random.nextInt(6));
    boolean even = random.nextBoolean();
    Layout from = null;
    StringBuilder rules = new StringBuilder("[");
    for (int i = 1 + random.nextInt(3); i >= 0; i--) {
      if (!stacks) {
        // Every second time what any target here cuts into equal pieces.
        written[dim] = even ? 12 * random.nextInt(3) : random.nextInt(7);
      }
      int[] shape = new int[ndim];
      for (int d = 0; d < ndim; d++) {
        shape[order.get(d)] = written[d];
      }
      // Every rank file belongs to every part's layout: the same ranks, cut another way each.
      from = layout(shape, from == null ? 1 + random.nextInt(4) : from.mesh().size(), 0, !whole);
      String name = "l." + parts.size() + ".w";
      parts.add(new ReferenceTensor(name, shape, source, from, random));
    }
    Path in = writeSource(folder, whole);
    int[] joined = joined("x", parts).shape();
    Layout to = layout(joined, 1 + random.nextInt(6), 4, false);
    List<Integer> named = new ArrayList<>(IntStream.range(0, parts.size()).boxed().toList());
    if (!stacks) {
      Collections.shuffle(named, random);
    }
    rules
        .append("{\"match\":\"l.{n}.w\",\"as\":[\"x\",\"y\"],\"transpose\":").append(order)
        .append(",\"to\":\"").append(to).append("\",")
        .append(stacks ? "\"stack\":" + dim : "\"dim\":" + dim + ",\"parts\":" + quoted(named))
        .append(source.isFloating() ? ",\"dtype\":\"" + dtype + "\"" : "").append("}]");
    Path file = Files.writeString(folder.resolve("rules.json"), rules);
    boolean single = random.nextInt(3) == 0;
    Path out = folder.resolve(single ? "out.safetensors" : "out");
    List<Object> arguments = new ArrayList<>(List.of("reshard", "--rules", file, in, out));
    if (whole) {
      arguments.addAll(List.of("--from", "1:R"));
    }
    if (wire != source) {
      arguments.addAll(List.of("--wire", wire));
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
    List<ReferenceTensor> inOrder = named.stream().map(parts::get).toList();
    if (!stacks && !single && !fuses(inOrder, to)) {
      assertThat(done.status()).as("%s: %s: %s", rules, arguments, done.err()).isEqualTo(2);
      return;
    }
    assertThat(done.status()).as("%s: %s: %s", rules, arguments, done.err()).isZero();
    processes.compare(arguments, out);
    if (single) {
      check(TestFile.read(out), inOrder, null, 0);
      return;
    }
    for (int place = 0; place < to.mesh().size(); place++) {
      Path rank = out.resolve(String.format("rank-%05d.safetensors", to.mesh().rankAtPlace(place)));
      check(TestFile.read(rank), inOrder, to, place);
    }
  }

  private int extent(ReferenceTensor part) {
    return part.shape[order.get(dim)];
  }

  private boolean cutsPieces(Layout to) {
    return to.placements().stream()
        .anyMatch(
            placement ->
                placement instanceof Placement.Shard shard && shard.dim() == dim
                    || placement instanceof Placement.StridedShard strided && strided.dim() == dim);
  }

  /** Returns true if a target cuts every part into equal pieces, and cuts nothing but parts. */
  private boolean fuses(List<ReferenceTensor> inOrder, Layout to) {
    if (inOrder.size() == 1 || !cutsPieces(to)) {
      return true;
    }
    // A plain cut means each part, a strided one the parts joined: one target cannot have both.
    if (to.placements().stream().anyMatch(p -> p instanceof Placement.Shard s && s.dim() == dim)
        && to.placements().stream()
            .anyMatch(p -> p instanceof Placement.StridedShard s && s.dim() == dim)) {
      return false;
    }
    boolean equal = inOrder.stream().map(this::extent).distinct().count() == 1;
    for (Placement placement : to.placements()) {
      if (placement instanceof Placement.StridedShard strided
          && strided.dim() == dim
          && !(equal && strided.split() == inOrder.size())) {
        return false;
      }
    }
    for (ReferenceTensor part : inOrder) {
      for (int place = 1; place < to.mesh().size(); place++) {
        if (piece(to, place, part).size() != piece(to, 0, part).size()) {
          return false;
        }
      }
    }
    return true;
  }

  /** The indices of a part that a place holds along the dimension that is fused. */
  private List<Integer> piece(Layout to, int place, ReferenceTensor part) {
    List<Placement> placements = new ArrayList<>();
    for (Placement placement : to.placements()) {
      boolean strided = placement instanceof Placement.StridedShard s && s.dim() == dim;
      placements.add(strided ? Placement.shard(dim) : placement);
    }
    int[] shape = new int[order.size()];
    Arrays.setAll(shape, d -> part.shape[order.get(d)]);
    return ReferenceTensor.indices(new Layout(to.mesh(), placements), place, shape).get(dim);
  }

  /** What a place holds of parts that lie one after another: its piece of each. */
  private List<List<Integer>> pieces(
      Layout to, int place, int[] shape, List<ReferenceTensor> inOrder) {
    List<List<Integer>> held = new ArrayList<>(ReferenceTensor.indices(to, place, shape));
    if (inOrder.size() > 1) {
      List<Integer> along = new ArrayList<>();
      int offset = 0;
      for (ReferenceTensor part : inOrder) {
        for (int index : piece(to, place, part)) {
          along.add(offset + index);
        }
        offset += extent(part);
      }
      held.set(dim, along);
    }
    return held;
  }

  private static String quoted(List<Integer> names) {
    return names.stream().map(name -> "\"" + name + "\"").toList().toString();
  }

  private Layout layout(int[] shape, int ranks, int firstRank, boolean partial) {
    Layout layout;
    do {
      layout = Layout.parse(layout(shape.length, ranks, firstRank, partial));
    } while (!ReferenceTensor.fits(shape, layout));
    return layout;
  }

  private String layout(int ndim, int ranks, int firstRank, boolean partial) {
    int outer = ranks % 2 == 0 && random.nextBoolean() ? 2 : 1;
    List<String> placements = new ArrayList<>();
    for (int m = 0; m < 2; m++) {
      placements.add(
          switch (random.nextInt(partial ? 6 : 5)) {
            case 0 -> "R";
            case 1, 2 -> "S" + random.nextInt(ndim);
            case 3 -> "S" + random.nextInt(ndim) + "*2";
            case 4 -> "SS" + random.nextInt(ndim) + "/2";
            default -> "P:max";
          });
    }
    return outer + "x" + ranks / outer + "@" + firstRank + ":" + String.join(",", placements);
  }

  private Path writeSource(Path folder, boolean whole) throws IOException {
    if (whole) {
      Path in = folder.resolve("in.safetensors");
      TestFile.write(in, parts.stream().map(ReferenceTensor::whole).toList(), Map.of());
      return in;
    }
    Path in = Files.createDirectory(folder.resolve("in"));
    Map<String, String> entries = new TreeMap<>();
    for (ReferenceTensor part : parts) {
      entries.put(
          part.name,
          "{\"shape\":" + Arrays.toString(part.shape) + ",\"layout\":\"" + part.from + "\"}");
    }
    StringBuilder json = new StringBuilder("{\"version\":1,\"tensors\":{");
    entries.forEach(
        (name, entry) ->
            json.append(json.charAt(json.length() - 1) == '{' ? "" : ",")
                .append('"').append(name).append("\":").append(entry));
    Files.writeString(in.resolve("layout.json"), json.append("}}"));
    for (int place = 0; place < parts.get(0).from.mesh().size(); place++) {
      int at = place;
      TestFile.write(
          in.resolve(String.format("rank-%05d.safetensors", place)),
          parts.stream().map(part -> part.source(at)).toList(),
          Map.of());
    }
    return in;
  }

  /** The joined tensor, whole: index by index, each part's element by its place. */
  private TestFile.Tensor joined(String name, List<ReferenceTensor> inOrder) {
    List<int[]> shapes = new ArrayList<>();
    int[] shape = null;
    for (ReferenceTensor part : inOrder) {
      List<Integer> extents = new ArrayList<>(order.stream().map(d -> part.shape[d]).toList());
      if (stacks) {
        extents.add(dim, 1);
      }
      int[] placed = extents.stream().mapToInt(Integer::intValue).toArray();
      shapes.add(placed);
      if (shape == null) {
        shape = placed.clone();
      } else {
        shape[dim] += placed[dim];
      }
    }
    long[] bits = new long[Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    for (int i = 0; i < bits.length; i++) {
      int[] index = new int[shape.length];
      int rest = i;
      for (int d = shape.length - 1; d >= 0; d--) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      int part = 0;
      while (index[dim] >= shapes.get(part)[dim]) {
        index[dim] -= shapes.get(part++)[dim];
      }
      ReferenceTensor from = inOrder.get(part);
      List<List<Integer>> one = new ArrayList<>(Collections.nCopies(from.shape.length, null));
      List<Integer> stored = new ArrayList<>(Arrays.stream(index).boxed().toList());
      if (stacks) {
        stored.remove(dim);
      }
      for (int d = 0; d < order.size(); d++) {
        one.set(order.get(d), List.of(stored.get(d)));
      }
      bits[i] = from.expected(one, wire, dtype).bits()[0];
    }
    return new TestFile.Tensor(name, dtype, shape, bits);
  }

  private void check(
      TestFile.Content found, List<ReferenceTensor> inOrder, Layout to, int place) {
    List<TestFile.Tensor> expected = new ArrayList<>();
    for (String name : List.of("x", "y")) {
      TestFile.Tensor all = joined(name, inOrder);
      if (to == null) {
        expected.add(all);
        continue;
      }
      List<List<Integer>> held =
          stacks
              ? ReferenceTensor.indices(to, place, all.shape())
              : pieces(to, place, all.shape(), inOrder);
      long[] bits =
          Arrays.stream(ReferenceTensor.linear(held, all.shape()))
              .mapToLong(i -> all.bits()[i])
              .toArray();
      expected.add(
          new TestFile.Tensor(name, dtype, ReferenceTensor.localShape(held), bits));
    }
    assertThat(found.tensors()).isEqualTo(expected);
  }
}
