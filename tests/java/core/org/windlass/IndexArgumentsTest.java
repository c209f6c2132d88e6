// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Array;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.testing.PublicApi;

/** Indices before the first, one past the last and far out, for every parameter that is one. */
class IndexArgumentsTest {
  /** By the parameter's name, how many there are for {@link Samples}. */
  private static final Map<String, Integer> COUNTS =
      Map.ofEntries(
          Map.entry("dim", 2),
          Map.entry("dim0", 2),
          Map.entry("dim1", 2),
          Map.entry("index", 2),
          Map.entry("expert", 2),
          Map.entry("coordinates", 1),
          Map.entry("place", 1),
          Map.entry("peer", 1),
          Map.entry("root", 1),
          Map.entry("rank", 1),
          Map.entry("ranks", 1),
          Map.entry("firstRank", DeviceMesh.MAX_RANKS));

  /** Where any rank may be named. */
  private static final Set<String> ANY_RANK =
      Set.of(
          "Bucket.pack(rank)",
          "Chunk(rank)",
          "DeviceMesh.ranks(ranks)",
          "Hosts.hostOf(rank)",
          "Plan.chunksFor(rank)",
          "Plan.routesFor(rank)",
          "Plan.stagingBytes(rank)",
          "Report.Rank(rank)",
          "Totals.of(rank)",
          "Traffic.ofPlans(rank)");

  /** A dimension of tensors to come. */
  private static final Set<String> ANY_DIMENSION =
      Set.of(
          "Placement.shard(dim)",
          "Placement.Shard(dim)",
          "Placement.stridedShard(dim)",
          "Placement.StridedShard(dim)");

  /** Questions that have an answer for every number; and counts of ranks. */
  private static final Set<String> TOTAL =
      Set.of(
          "DeviceMesh.contains(rank)",
          "DeviceMesh.coordinates(rank)",
          "DeviceMesh.placeOf(rank)");

  private static final Set<String> COUNTS_OF_RANKS =
      Set.of(
          "LocalGroup.of(ranks)",
          "LocalGroup.fromEnvironment(ranks)",
          "Report(ranks)",
          "Signals.bytes(ranks)");

  /** -1 is {@link PointToPoint#ANY_SOURCE} there. */
  private static final Set<String> ANY_SOURCE =
      Set.of("PointToPoint.receive(peer)", "PointToPoint.receiveAsync(peer)");

  /** What a group records, and refuses when it runs. */
  private static final Set<String> RECORDED =
      Set.of("MessageGroup.send(peer)", "MessageGroup.receive(peer)");

  @TempDir static Path folder;
  private static Samples samples;

  @BeforeAll
  static void open() {
    samples = new Samples(folder);
  }

  @AfterAll
  static void close() {
    samples.close();
  }

  static Stream<PublicApi.Argument> indices() {
    return PublicApi.arguments(Communicator.class).stream()
        .filter(argument -> COUNTS.containsKey(argument.name()))
        .filter(argument -> !COUNTS_OF_RANKS.contains(argument.text()))
        .filter(argument -> !RECORDED.contains(argument.text()));
  }

  private static LongStream wrong(String text, String name) {
    if (ANY_DIMENSION.contains(text)) {
      return LongStream.of(-1, Integer.MIN_VALUE);
    }
    int count = ANY_RANK.contains(text) ? DeviceMesh.MAX_RANKS : COUNTS.get(name);
    return LongStream.of(
        ANY_SOURCE.contains(text) ? -2 : -1, count, Integer.MIN_VALUE, Integer.MAX_VALUE);
  }

  /** {@code index} as the parameter's type; the first of several. */
  private static Object value(Class<?> type, Object sample, long index) {
    if (type == int.class) {
      return (int) index;
    }
    if (type == long.class) {
      return index;
    }
    boolean ints = type == int[].class;
    Object all = Array.newInstance(ints ? int.class : long.class, Array.getLength(sample));
    if (ints) {
      Array.setInt(all, 0, (int) index);
    } else {
      Array.setLong(all, 0, index);
    }
    return all;
  }

  @ParameterizedTest
  @MethodSource("indices")
  void isRefused(PublicApi.Argument argument) throws ReflectiveOperationException {
    Class<?> type = argument.parameter().getType();
    for (long index : wrong(argument.text(), argument.name()).toArray()) {
      Object value = value(type, sampleOf(argument), index);
      Throwable failure = argument.failure(samples, value).orElse(null);
      if (TOTAL.contains(argument.text())) {
        assertThat(failure).as("%s", argument).isNull();
      } else {
        assertThat(failure).as("%s", argument)
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessageContaining(Long.toString(index));
      }
    }
  }

  /** A list has as many indices as there are dimensions, but one where it lists the one rank. */
  private static Object sampleOf(PublicApi.Argument argument) {
    return argument.name().equals("ranks") ? new int[1] : samples.of(argument.parameter());
  }

  @Test
  void everyIndexIsMet() {
    List<String> texts = indices().map(PublicApi.Argument::text).toList();
    assertThat(texts).containsAll(ANY_RANK).containsAll(ANY_DIMENSION).containsAll(TOTAL);
    assertThat(texts).hasSizeGreaterThan(50);
    assertThat(PublicApi.arguments(Communicator.class))
        .extracting(PublicApi.Argument::text)
        .containsAll(COUNTS_OF_RANKS);
  }

  @Test
  void coordinatesAreOneForEachDimension() {
    assertThatThrownBy(() -> DeviceMesh.of(2, 2).rankAt(1))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("1 coordinates");
  }
}
