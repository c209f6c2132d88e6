// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.testing.SafetensorsBytes;

/** A check of a right result passes; with any one bit of it changed, it names the element. */
class SlowCheckTest {
  private static final long[] SHAPE = {3, 4};

  @TempDir Path folder;

  private SafetensorsFile file(String name, String dtype, String shape, byte[] data)
      throws IOException {
    String header =
        "{\"w\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%d]}}"
            .formatted(dtype, shape, data.length);
    return SafetensorsFile.open(SafetensorsBytes.write(folder.resolve(name), header, data));
  }

  private static Division division(String layout, long... shape) {
    return Division.plain(Layout.parse(layout), shape);
  }

  private static SourcePart whole(String layout, SafetensorsFile file, long... shape) {
    return new SourcePart(
        "w", shape, division(layout, shape), Optional.empty(), Optional.of(file), rank -> file);
  }

  private static SourcePart ofRanks(
      Division division, Optional<DType> wire, IntFunction<SafetensorsFile> files, long... shape) {
    return new SourcePart("w", shape, division, wire, Optional.empty(), files);
  }

  private static void compareWhole(SlowCheck check, SafetensorsFile file) {
    check.compare("the whole tensor", division("1:R", check.shape()), 0, file);
  }

  private static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }

  @Test
  void aFusedTensorHoldsEachRanksPieceOfEveryPart() throws IOException {
    // q of four and k of two elements on two ranks: cut as one tensor, rank 0 would hold q alone.
    try (SafetensorsFile q = file("q", "U8", "[4]", bytes(0, 1, 2, 3));
        SafetensorsFile k = file("k", "U8", "[2]", bytes(8, 9));
        SafetensorsFile right = file("right", "U8", "[3]", bytes(2, 3, 9));
        SafetensorsFile wrong = file("wrong", "U8", "[3]", bytes(3, 8, 9))) {
      List<SourcePart> parts =
          List.of(
              whole("1:R", q, 4).placed(List.of(0), 0, new TensorMove.Segment(0, 0, 4)),
              whole("1:R", k, 2).placed(List.of(0), 0, new TensorMove.Segment(0, 4, 2)));
      SlowCheck check = new SlowCheck("w", new long[] {6}, parts, () -> {});
      List<Layout> each = List.of(Layout.parse("2:S0"), Layout.parse("2:S0"));
      Division fused = new Division(List.of(6L), 0, List.of(4L, 2L), each);
      assertThatCode(() -> check.compare("target rank 1", fused, 1, right)).doesNotThrowAnyException();
      assertThatCode(() -> check.compare("target rank 1", division("2:S0", 6), 1, wrong))
          .doesNotThrowAnyException();
      assertThatThrownBy(() -> check.compare("target rank 1", fused, 1, wrong))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessageContaining("differs at index [2]: target rank 1 holds 0x3");
    }
  }

  @Test
  void paddingIsZeros() throws IOException {
    try (SafetensorsFile source = file("s", "U8", "[3,1]", bytes(1, 2, 3));
        SafetensorsFile right = file("right", "U8", "[2,2]", bytes(3, 0, 0, 0));
        SafetensorsFile wrong = file("wrong", "U8", "[2,2]", bytes(3, 0, 5, 0))) {
      Division padded = division("2:S0", 4, 2);
      SourcePart part = whole("1:R", source, 3, 1);
      SlowCheck check = new SlowCheck("w", new long[] {3, 1}, List.of(part), () -> {});
      assertThatCode(() -> check.compare("target rank 1", padded, 1, right)).doesNotThrowAnyException();
      assertThatThrownBy(() -> check.compare("target rank 1", padded, 1, wrong))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessage("tensor \"w\" has padding at element 2 of target rank 1, which is 0x5 and not 0");
      // No target has the padding of a source, which is checked with the replicas.
      SourcePart read =
          ofRanks(padded, Optional.empty(), rank -> rank == 0 ? right : wrong, 3, 1);
      assertThatThrownBy(() -> read.compareReplicas(() -> {}))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessage("tensor \"w\" has padding at element 2 of source rank 1, which is 0x5 and not 0");
      SlowCheck back = new SlowCheck("w", new long[] {3, 1}, List.of(read), () -> {});
      try (SafetensorsFile whole = file("whole", "U8", "[3,1]", bytes(3, 0, 3));
          SafetensorsFile other = file("other", "U8", "[3,1]", bytes(3, 1, 3))) {
        assertThatCode(() -> compareWhole(back, whole)).doesNotThrowAnyException();
        assertThatThrownBy(() -> compareWhole(back, other))
            .hasMessageContaining("differs at index [1, 0]")
            .hasMessageContaining("source rank 0 gives 0x0");
      }
    }
  }

  @Test
  void everyBitOfEachRankCounts() throws IOException {
    // 0 to 11 in three rows of four: by rows from two ranks to columns on two, the second strided.
    try (SafetensorsFile top = file("a", "U8", "[2,4]", bytes(0, 1, 2, 3, 4, 5, 6, 7));
        SafetensorsFile bottom = file("b", "U8", "[1,4]", bytes(8, 9, 10, 11))) {
      List<SafetensorsFile> sources = List.of(top, bottom);
      SourcePart part = ofRanks(division("2:S0", SHAPE), Optional.empty(), sources::get, SHAPE);
      assertThatCode(() -> part.compareReplicas(() -> {})).doesNotThrowAnyException();
      SlowCheck check = new SlowCheck("w", SHAPE, List.of(part), () -> {});
      Division to = division("2@8:SS1/2", SHAPE);
      byte[] right = bytes(0, 2, 4, 6, 8, 10);
      try (SafetensorsFile good = file("good", "U8", "[3,2]", right)) {
        assertThatCode(() -> check.compare("target rank 8", to, 8, good)).doesNotThrowAnyException();
        assertThatThrownBy(() -> check.compare("target rank 9", to, 9, good))
            .isInstanceOf(VerificationFailedException.class)
            .hasMessage(
                "tensor \"w\" differs at index [0, 1]: target rank 9 holds 0x0, and source rank 0 gives 0x1");
      }
      for (int bit = 0; bit < 8 * right.length; bit++) {
        byte[] wrong = right.clone();
        wrong[bit / 8] ^= (byte) (1 << bit % 8);
        String index = "[" + bit / 16 + ", " + (bit / 8 % 2) * 2 + "]";
        try (SafetensorsFile bad = file("bad" + bit, "U8", "[3,2]", wrong)) {
          assertThatThrownBy(() -> check.compare("target rank 8", to, 8, bad))
              .hasMessageContaining("index " + index)
              .hasMessageContaining("source rank " + (bit / 16 < 2 ? 0 : 1));
        }
      }
    }
  }

  @Test
  void termsAreReducedAndCastTwice() throws IOException {
    List<SafetensorsFile> sources = new ArrayList<>();
    for (float term : new float[] {1, 0x1p-9f}) {
      byte[] data = new byte[4];
      ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN).putFloat(term);
      sources.add(file("t" + term, "F32", "[]", data));
    }
    SourcePart part = ofRanks(division("2:P"), Optional.of(DType.BF16), sources::get);
    SlowCheck check = new SlowCheck("w", new long[0], List.of(part), () -> {});
    // The sum needs nine bits after the point: the bf16 wire drops them before the f16 target sees them.
    try (SafetensorsFile right = file("right", "F16", "[]", bytes(0x00, 0x3c));
        SafetensorsFile unwired = file("unwired", "F16", "[]", bytes(0x02, 0x3c))) {
      assertThatCode(() -> compareWhole(check, right)).doesNotThrowAnyException();
      assertThatThrownBy(() -> compareWhole(check, unwired))
          .hasMessageContaining("index []")
          .hasMessageContaining("holds 0x3c02")
          .hasMessageContaining("gives 0x3c00");
    }
    sources.forEach(SafetensorsFile::close);
  }

  @Test
  void rowsLongerThanItsBufferAreComparedToo() throws IOException {
    byte[] data = new byte[3 << 20];
    new java.util.Random(3).nextBytes(data);
    byte[] wrong = data.clone();
    wrong[wrong.length - 7] ^= 1;
    String shape = "[" + data.length + "]";
    try (SafetensorsFile source = file("s", "U8", shape, data);
        SafetensorsFile same = file("same", "U8", shape, data);
        SafetensorsFile other = file("other", "U8", shape, wrong)) {
      long[] length = {data.length};
      SourcePart part = whole("3:S0", source, length);
      SlowCheck check = new SlowCheck("w", length, List.of(part), () -> {});
      assertThatCode(() -> compareWhole(check, same)).doesNotThrowAnyException();
      assertThatThrownBy(() -> compareWhole(check, other))
          .hasMessageContaining("index [" + (data.length - 7) + "]")
          .hasMessageContaining("source rank 2");
    }
  }

  @Test
  void longRowsAreComparedAsTheyAreCastToo() throws IOException {
    int elements = 100_000;
    ByteBuffer ones = ByteBuffer.allocate(4 * elements).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer cast = ByteBuffer.allocate(2 * elements).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      ones.putFloat(i % 100);
      cast.putShort((short) (Float.floatToRawIntBits(i % 100) >>> 16));
    }
    byte[] wrong = cast.array().clone();
    wrong[2 * (elements - 7)] ^= 1;
    String shape = "[" + elements + "]";
    try (SafetensorsFile source = file("s", "F32", shape, ones.array());
        SafetensorsFile same = file("same", "BF16", shape, cast.array());
        SafetensorsFile other = file("other", "BF16", shape, wrong)) {
      long[] length = {elements};
      SourcePart part = whole("1:R", source, length);
      SlowCheck check = new SlowCheck("w", length, List.of(part), () -> {});
      assertThatCode(() -> compareWhole(check, same)).doesNotThrowAnyException();
      assertThatThrownBy(() -> compareWhole(check, other))
          .hasMessageContaining("index [" + (elements - 7) + "]");
    }
  }

  private static Runs held(String layout, long extent, int rank) {
    return Holding.of(division(layout, extent), new long[] {extent}, rank);
  }

  private static List<Runs.Run> runs(String layout, long extent, int rank) {
    return held(layout, extent, rank).dims().get(0);
  }

  @Test
  void partsOfABoundaryAreThoseOfTheChunkRule() {
    assertThat(runs("2x2:SS0/2,S0", 8, 0)).containsExactly(new Runs.Run(0, 2, 0));
    assertThat(runs("2x2:SS0/2,S0", 8, 1)).containsExactly(new Runs.Run(4, 6, 0));
    assertThat(runs("2x2:SS0/2,S0", 8, 2)).containsExactly(new Runs.Run(2, 4, 0));
    assertThat(runs("2x2:SS0/2,S0", 8, 3)).containsExactly(new Runs.Run(6, 8, 0));
    String fsdp = "dp=4xtp=2:SS0/2,S0";
    assertThat(IntStream.range(0, 8).mapToObj(rank -> held(fsdp, 9, rank).shape()[0]))
        .containsExactly(2L, 1L, 2L, 1L, 1L, 1L, 0L, 1L);
    assertThat(runs(fsdp, 9, 7)).containsExactly(new Runs.Run(8, 9, 0));
    assertThat(runs("4:S0*128", 300, 1)).containsExactly(new Runs.Run(128, 256, 0));
    assertThat(runs("4:S0*128", 300, 3)).isEmpty();
    assertThat(held("4:S0", 5, 3).shape()[0]).isZero();
    assertThat(held("2:S0*4611686018427387904", 5, 0).shape()[0]).isEqualTo(5);
  }
}
