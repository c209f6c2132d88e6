// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.testing.RandomSeeds;

/** What becomes of the bytes that ranks write. */
@Timeout(120)
class RankLinesTest {
  private static final Duration SILENCE = Duration.ofMillis(200);

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final SharedOutput output =
      new SharedOutput(out, OutputStream.nullOutputStream(), () -> {});

  private String passedOn(int rank, String text) throws InterruptedException {
    InputStream from = new ByteArrayInputStream(text.getBytes(StandardCharsets.ISO_8859_1));
    new RankLines(rank, from, output::writeOut).finish(SILENCE);
    return out.toString(StandardCharsets.ISO_8859_1);
  }

  @Test
  void eachLineStandsBehindItsRank() throws InterruptedException {
    assertThat(passedOn(3, "one\n\ntwo \r\n")).isEqualTo("[3] one\n[3] \n[3] two \r\n");
  }

  @Test
  void aLineWithoutAnEndGetsOne() throws InterruptedException {
    assertThat(passedOn(12, "one\ntwo")).isEqualTo("[12] one\n[12] two\n");
  }

  @Test
  void nothingIsNothing() throws InterruptedException {
    assertThat(passedOn(0, "")).isEmpty();
  }

  @Test
  void aLineOfAnyLengthGoesOnInPieces() throws InterruptedException {
    String text = "x".repeat(5 * RankLines.LONGEST / 2);
    List<String> lines = passedOn(0, text + "\nend").lines().toList();
    assertThat(lines).hasSizeBetween(4, 5).allMatch(line -> line.startsWith("[0] "));
    assertThat(lines.stream().mapToInt(String::length).max().orElseThrow())
        .isBetween(RankLines.LONGEST, RankLines.LONGEST + (1 << 16));
    lines = lines.stream().map(line -> line.substring(4)).toList();
    assertThat(String.join("", lines)).isEqualTo(text + "end");
  }

  @Test
  void whatHoldsAStreamInSilenceIsNotAwaited() throws IOException, InterruptedException {
    try (PipedOutputStream holder = new PipedOutputStream()) {
      RankLines lines = new RankLines(0, new PipedInputStream(holder), output::writeOut);
      holder.write("a line\nand a half".getBytes(StandardCharsets.US_ASCII));
      holder.flush();
      lines.finish(SILENCE);
      assertThat(out.toString(StandardCharsets.US_ASCII)).isEqualTo("[0] a line\n[0] and a half\n");
      holder.write("late\n".getBytes(StandardCharsets.US_ASCII));
    }
    Thread.sleep(50);
    assertThat(out.toString(StandardCharsets.US_ASCII)).doesNotContain("late");
  }

  /** A stream that gives its bytes in pieces of random lengths. */
  private static final class Pieces extends InputStream {
    private final InputStream whole;
    private final Random random;

    Pieces(byte[] bytes, long seed) {
      whole = new ByteArrayInputStream(bytes);
      random = new Random(seed);
    }

    @Override
    public int read() throws IOException {
      return whole.read();
    }

    @Override
    public int read(byte[] to, int from, int length) throws IOException {
      return whole.read(to, from, Math.min(length, 1 + random.nextInt(2000)));
    }
  }

  /** Lines of any bytes; most of them short. */
  private static byte[] lines(Random random) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    int count = random.nextInt(200);
    for (int i = 0; i < count; i++) {
      byte[] line = new byte[random.nextInt(random.nextInt(10) == 0 ? 20_000 : 60)];
      random.nextBytes(line);
      bytes.writeBytes(line);
      bytes.write('\n');
    }
    return bytes.toByteArray();
  }

  @RandomSeeds(10)
  void linesOfSeveralRanksStayWholeAndInOrder(long seed) throws InterruptedException {
    out.reset();
    Random random = new Random(seed);
    List<byte[]> given = new ArrayList<>();
    List<RankLines> ranks = new ArrayList<>();
    for (int rank = 0; rank < 8; rank++) {
      given.add(lines(random));
      InputStream from = new Pieces(given.get(rank), random.nextLong());
      ranks.add(new RankLines(rank, from, output::writeOut));
    }
    for (RankLines each : ranks) {
      each.finish(Duration.ofSeconds(20));
    }
    List<StringBuilder> seen = new ArrayList<>();
    given.forEach(each -> seen.add(new StringBuilder()));
    for (String line : out.toString(StandardCharsets.ISO_8859_1).split("(?<=\n)")) {
      if (!line.isEmpty()) {
        assertThat(line.substring(0, 4)).matches("\\[[0-7]\\] ");
        seen.get(line.charAt(1) - '0').append(line.substring(4));
      }
    }
    for (int rank = 0; rank < 8; rank++) {
      String all = new String(given.get(rank), StandardCharsets.ISO_8859_1);
      assertThat(seen.get(rank).toString()).as("rank %d", rank).isEqualTo(all);
    }
  }
}
