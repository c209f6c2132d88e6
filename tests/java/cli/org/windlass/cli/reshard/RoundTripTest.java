// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.TestFile;

/**
 * A random attention layer and vocabulary of a Hugging Face checkpoint, fused for an engine and
 * taken apart again: each rank has the rows that a list of rows says, and the bytes come back.
 */
class RoundTripTest {
  private static final String Q = "l.0.self_attn.q_proj.weight";
  private static final String K = "l.0.self_attn.k_proj.weight";
  private static final String V = "l.0.self_attn.v_proj.weight";
  private static final String QKV = "l.0.self_attn.qkv_proj.weight";

  private static TwoProcesses processes;

  private Random random;
  private int head;
  private int queries;
  private int keys;
  private int ranks;
  private int columns;

  @BeforeAll
  static void start() {
    processes = new TwoProcesses();
  }

  @AfterAll
  static void end() throws IOException {
    processes.close();
  }

  private TestFile.Tensor tensor(String name, DType dtype, int rows) {
    long mask = (1L << dtype.bits()) - 1;
    long[] bits = random.longs((long) rows * columns).map(bit -> bit & mask).toArray();
    return new TestFile.Tensor(name, dtype, new int[] {rows, columns}, bits);
  }

  /** A row of one of the tensors; a row that is in none holds zeros. */
  private record Row(TestFile.Tensor tensor, int row) {
    long[] bits(int columns) {
      long[] bits = new long[columns];
      if (row < tensor.shape()[0]) {
        System.arraycopy(tensor.bits(), row * columns, bits, 0, columns);
      }
      return bits;
    }
  }

  private static void add(List<Row> rows, TestFile.Tensor of, int first, int count) {
    for (int row = first; row < first + count; row++) {
      rows.add(new Row(of, row));
    }
  }

  private static void run(Path folder, String rules, Path in, Path out, Object... options)
      throws IOException {
    Path file = Files.writeString(folder.resolve("rules.json"), rules.replace('\'', '"'));
    List<Object> all = new ArrayList<>(List.of("reshard", "--verify", "--rules", file, in, out));
    all.addAll(List.of(options));
    Cli done = Cli.run(all.toArray());
    assertThat(done.status()).as("%s %s: %s", rules, all, done.err()).isZero();
    processes.compare(all, out);
  }

  @RandomSeeds(value = 25, inLong = 800)
  void theBytesComeBack(long seed) throws IOException {
    random = new Random(seed);
    head = 1 + random.nextInt(4);
    keys = 1 << random.nextInt(4);
    queries = keys * (1 + random.nextInt(3));
    columns = 1 + random.nextInt(3);
    int groups = random.nextBoolean() ? keys : 1;
    int most = groups > 1 ? keys : queries;
    do {
      ranks = 1 + random.nextInt(8);
    } while (most % ranks != 0 || keys % ranks != 0 && ranks % keys != 0);
    DType dtype = random.nextBoolean() ? DType.BF16 : DType.I32;
    TestFile.Tensor q = tensor(Q, dtype, queries * head);
    TestFile.Tensor k = tensor(K, dtype, keys * head);
    TestFile.Tensor v = tensor(V, dtype, keys * head);
    TestFile.Tensor embed = tensor("embed.weight", dtype, 1 + random.nextInt(70));
    int pad = 1 + random.nextInt(20);
    try (ScratchFolder scratch = ScratchFolder.create()) {
      Path folder = scratch.path();
      Path made = folder.resolve("made.safetensors");
      TestFile.write(made, List.of(embed, q, k, v), Map.of("lm_head.weight", "embed.weight"));
      // The same tensors with the header that the command writes.
      Path hf = folder.resolve("hf.safetensors");
      run(folder, "[]", made, hf, "--from", "1:R", "--to", "1:R");
      Path fused = folder.resolve("fused");
      run(folder, fuse(groups, pad), hf, fused, "--from", "1:R", "--to", ranks + "@0:S0");
      check(fused, groups, pad, q, k, v, embed);
      Path back = folder.resolve("back.safetensors");
      if (random.nextBoolean()) {
        // Another number of ranks, whose vocabulary is padded once more, and the parts are apart.
        Path other = folder.resolve("other");
        run(folder, split(groups, ",'to':'1:R'") + ",{'match':'embed.weight','pad_to':7}]", fused, other, "--to", "3@0:S0");
        run(folder, "[]", other, back, "--to", "1@0:R");
      } else {
        run(folder, split(groups, "") + "]", fused, back, "--to", "1@0:R");
      }
      assertThat(Files.readAllBytes(back)).isEqualTo(Files.readAllBytes(hf));
    }
  }

  private String fuse(int groups, int pad) {
    String shared = (keys < ranks ? keys + "x" + ranks / keys + ":S0,R" : ranks + ":S0");
    String parts =
        groups > 1
            ? "['q','k','v'],'groups':" + groups
            : "['q',{'name':'k','to':'" + shared + "'},{'name':'v','to':'" + shared + "'}]";
    return "[{'match':'l.{l}.self_attn.{p}_proj.weight','dim':0,'unit':" + head + ",'parts':" + parts
        + ",'as':'l.{l}.self_attn.qkv_proj.weight'},{'match':'embed.weight','pad_to':" + pad + "}]";
  }

  private String split(int groups, String more) {
    return "[{'match':'*qkv_proj.weight','dim':0,'unit':" + head + ",'groups':" + groups + ",'split':["
        + queries / groups + "," + keys / groups + "," + keys / groups
        + "],'as':['{p}q_proj.weight','{p}k_proj.weight','{p}v_proj.weight']" + more + "}";
  }

  private void check(
      Path fused,
      int groups,
      int pad,
      TestFile.Tensor q,
      TestFile.Tensor k,
      TestFile.Tensor v,
      TestFile.Tensor embed)
      throws IOException {
    int padded = (embed.shape()[0] + pad - 1) / pad * pad;
    int each = (padded + ranks - 1) / ranks;
    for (int r = 0; r < ranks; r++) {
      List<Row> rows = new ArrayList<>();
      int own = groups > 1 ? groups / ranks : 1;
      for (int g = 0; g < own; g++) {
        int at = groups > 1 ? r * own + g : r;
        int all = groups > 1 ? groups : ranks;
        int heads = groups > 1 ? keys / groups : Math.max(keys / ranks, 1);
        int first = groups > 1 || keys >= ranks ? at * heads : at / (ranks / keys);
        add(rows, q, at * queries / all * head, queries / all * head);
        add(rows, k, first * head, heads * head);
        add(rows, v, first * head, heads * head);
      }
      List<Row> words = new ArrayList<>();
      add(words, embed, Math.min(r * each, padded), Math.max(0, Math.min(each, padded - r * each)));
      List<TestFile.Tensor> found =
          TestFile.read(fused.resolve(String.format("rank-%05d.safetensors", r))).tensors();
      assertThat(found)
          .as("rank %d of %d, %d groups", r, ranks, groups)
          .containsExactly(made("embed.weight", words, embed.dtype()), made(QKV, rows, q.dtype()));
    }
  }

  private TestFile.Tensor made(String name, List<Row> rows, DType dtype) {
    long[] bits =
        rows.stream().flatMapToLong(row -> LongStream.of(row.bits(columns))).toArray();
    return new TestFile.Tensor(name, dtype, new int[] {rows.size(), columns}, bits);
  }
}
