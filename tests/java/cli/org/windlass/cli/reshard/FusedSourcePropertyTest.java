// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.layout.Layout;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.ReferenceTensor;
import org.windlass.testing.TestFile;

/**
 * Rank files that hold a tensor of random parts, each part by a layout of its own, to tensors of
 * their own or fused again: bit for bit against a slow reference of each part.
 */
class FusedSourcePropertyTest {
  private Random random;

  private String pick(String... choices) {
    return choices[random.nextInt(choices.length)];
  }

  /** Parts of one tensor, one after another along a dimension. */
  private static TestFile.Tensor joined(String name, List<TestFile.Tensor> parts, int dim) {
    int[] shape = parts.get(0).shape().clone();
    shape[dim] = parts.stream().mapToInt(part -> part.shape()[dim]).sum();
    int outer = Arrays.stream(shape, 0, dim).reduce(1, (a, b) -> a * b);
    long[] bits = new long[Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    int at = 0;
    for (int row = 0; row < outer; row++) {
      for (TestFile.Tensor part : parts) {
        int length = part.bits().length / outer;
        System.arraycopy(part.bits(), row * length, bits, at, length);
        at += length;
      }
    }
    return new TestFile.Tensor(name, parts.get(0).dtype(), shape, bits);
  }

  @RandomSeeds(value = 40, inLong = 1500)
  void partsOfRankFilesAreReadByTheirLayouts(long seed) throws IOException {
    random = new Random(seed);
    int dim = random.nextInt(2);
    DType source = random.nextBoolean() ? DType.F32 : DType.U16;
    boolean isPartial = random.nextInt(4) == 0;
    List<ReferenceTensor> parts = new ArrayList<>();
    List<String> sizes = new ArrayList<>();
    int width = 1 + random.nextInt(5);
    for (int i = 1 + random.nextInt(3); i >= 0; i--) {
      int[] shape = {width, width};
      shape[dim] = 4 * (1 + random.nextInt(4));
      String s = "S" + dim;
      String from =
          isPartial
              ? "2x2:P:max," + s
              : pick("4:" + s, "2x2:" + s + ",R", "2x2:R," + s, "2x2:" + s + "," + s, "4:R");
      String name = "part" + parts.size();
      parts.add(new ReferenceTensor(name, shape, source, Layout.parse(from), random));
      sizes.add("" + shape[dim]);
    }
    try (ScratchFolder scratch = ScratchFolder.create()) {
      check(scratch.path(), parts, sizes, dim, source);
    }
  }

  private void check(
      Path folder, List<ReferenceTensor> parts, List<String> sizes, int dim, DType dtype)
      throws IOException {
    Path in = Files.createDirectory(folder.resolve("in"));
    for (int rank = 0; rank < 4; rank++) {
      int place = rank;
      TestFile.write(
          in.resolve("rank-0000" + rank + ".safetensors"),
          List.of(joined("w", parts.stream().map(part -> part.source(place)).toList(), dim)),
          Map.of());
    }
    boolean isApart = random.nextBoolean();
    boolean isWhole = random.nextInt(3) == 0;
    boolean transposes = random.nextBoolean();
    int written = transposes ? 1 - dim : dim;
    String s = "S" + written;
    Layout to =
        Layout.parse(pick("2@0:" + s, "4@0:" + s, "2x2@0:R," + s, "1@0:R", "3@0:S" + (1 - written)));
    List<String> from = parts.stream().map(part -> "\"" + part.from + "\"").toList();
    List<String> names = parts.stream().map(part -> "\"" + part.name + "\"").toList();
    String rule =
        "[{\"match\":\"w\",\"dim\":" + written + ",\"split\":" + sizes + ",\"from\":" + from
            + ",\"unit\":1" + (isApart ? ",\"as\":" + names : "")
            + (transposes ? ",\"transpose\":true" : "") + "}]";
    Path rules = Files.writeString(folder.resolve("rules.json"), rule);
    Path out = folder.resolve(isWhole ? "out.safetensors" : "out");
    Cli done =
        Cli.run("reshard", "--verify", "--rules", rules, "--from", "4:R", "--to", to.qualified(), in, out);
    assertThat(done.status()).as("%s to %s: %s", rule, to, done.err()).isZero();
    for (int place = 0; place < (isWhole ? 1 : to.mesh().size()); place++) {
      List<TestFile.Tensor> expected = new ArrayList<>();
      for (ReferenceTensor part : parts) {
        int[] shape = {part.shape[transposes ? 1 : 0], part.shape[transposes ? 0 : 1]};
        Layout layout = isWhole ? Layout.parse("1:R") : to;
        List<List<Integer>> held = ReferenceTensor.indices(layout, place, shape);
        expected.add(expected(part, held, transposes, dtype));
      }
      Path file = isWhole ? out : out.resolve("rank-0000" + place + ".safetensors");
      assertThat(TestFile.read(file).tensors())
          .as("%s to %s, rank %d", rule, to, place)
          .isEqualTo(isApart ? expected : List.of(joined("w", expected, written)));
    }
  }

  private static TestFile.Tensor expected(
      ReferenceTensor part, List<List<Integer>> held, boolean transposes, DType dtype) {
    int rows = held.get(0).size();
    int columns = held.get(1).size();
    long[] bits = new long[rows * columns];
    for (int i = 0; i < bits.length; i++) {
      List<Integer> row = List.of(held.get(0).get(i / columns));
      List<Integer> column = List.of(held.get(1).get(i % columns));
      bits[i] =
          part.expected(transposes ? List.of(column, row) : List.of(row, column), dtype, dtype)
              .bits()[0];
    }
    return new TestFile.Tensor(part.name, dtype, new int[] {rows, columns}, bits);
  }
}
