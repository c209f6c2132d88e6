// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.windlass.error.InvalidArgumentException;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;

/** Random manifests, and what becomes of them once their text is mutated. */
class MutatedManifestTest {
  private static final int LEAST = 5_000;
  private static final Pattern PLACE =
      Pattern.compile("m\\.json: \\$(\\.[a-z_]+|\\[[0-9]+\\])*(: | ).*", Pattern.DOTALL);

  private static final Pattern TOKEN =
      Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*\"|-?[0-9]+|true|false");
  private static final List<String> WORDS =
      List.of(
          "0", "1", "2", "4", "8", "16", "32", "64", "-1", "1.5", "1e3", "2147483647", "2147483648",
          "9223372036854775807", "9223372036854775808", "true", "false", "null", "[]", "{}", "\"\"",
          "\"a\"", "\"name\"", "\"dtype\"", "\"size\"", "\"bits_per_element\"", "\"nbytes\"",
          "\"load_from_host\"", "\"store_to_host\"", "\"int8\"", "\"uint4\"", "\"float32\"",
          "\"bfloat16\"", "\"\\ud800\"", "\"\\u0000\"");

  private static int cases;
  private static int refused;

  @AfterAll
  static void someWereRefused() {
    if (cases >= LEAST) {
      System.out.printf("%d mutated manifests, %d refused%n", cases, refused);
      assertThat(refused).isBetween(cases / 10, cases - cases / 100);
    }
  }

  @RandomSeeds(value = LEAST, inLong = 100_000)
  void aMutatedManifestIsTakenOrRefusedWithItsPlace(long seed) {
    Random random = new Random(seed);
    CommManifest manifest = manifest(random);
    byte[] json = manifest.toJson();
    assertThat(parse(json)).isEqualTo(manifest);
    cases++;
    try {
      CommManifest taken =
          parse(random.nextBoolean() ? Mutation.of(json, random) : exchanged(json, random));
      assertThat(parse(taken.toJson())).isEqualTo(taken);
      assertThat(taken.bootstrap(1 << 10).groups()).hasSameSizeAs(taken.groups());
    } catch (InvalidArgumentException e) {
      refused++;
      String place = e.getMessage().startsWith("$.") ? "m.json: " + e.getMessage() : e.getMessage();
      assertThat(place).matches(PLACE);
    }
  }

  private static CommManifest parse(byte[] json) {
    return CommManifest.parse("m.json", json);
  }

  /** One key or value becomes another one of the text, or a word: the JSON stays well formed. */
  private static byte[] exchanged(byte[] json, Random random) {
    String text = new String(json, StandardCharsets.UTF_8);
    List<MatchResult> tokens = TOKEN.matcher(text).results().toList();
    MatchResult old = tokens.get(random.nextInt(tokens.size()));
    String other =
        random.nextBoolean()
            ? WORDS.get(random.nextInt(WORDS.size()))
            : tokens.get(random.nextInt(tokens.size())).group();
    return (text.substring(0, old.start()) + other + text.substring(old.end()))
        .getBytes(StandardCharsets.UTF_8);
  }

  private static CommManifest manifest(Random random) {
    List<CommGroup> groups = new ArrayList<>();
    int count = 1 + random.nextInt(3);
    for (int i = 0; i < count; i++) {
      Optional<String> name =
          random.nextBoolean() ? Optional.empty() : Optional.of(name(random) + i);
      List<Integer> devices =
          IntStream.generate(() -> random.nextInt(16))
              .limit(random.nextInt(5))
              .distinct()
              .boxed()
              .toList();
      List<Slot> slots = new ArrayList<>();
      int slotCount = random.nextInt(4);
      for (int s = 0; s < slotCount; s++) {
        slots.add(
            new Slot(name(random) + s, extent(random), random.nextBoolean(), random.nextBoolean()));
      }
      groups.add(new CommGroup(name, devices, slots));
    }
    return new CommManifest(groups);
  }

  private static Slot.Extent extent(Random random) {
    long size = random.nextLong() >>> (8 + random.nextInt(56));
    if (random.nextBoolean()) {
      return new Slot.Bytes(size);
    }
    ElementType[] types = ElementType.values();
    ElementType type = types[random.nextInt(types.length)];
    boolean isHalf = type.bits() == 8 && random.nextBoolean();
    return new Slot.Elements(type, size, isHalf ? 4 : type.bits());
  }

  private static String name(Random random) {
    String letters = "ab\"\\/\n é\u4e2d";
    StringBuilder name = new StringBuilder();
    for (int i = random.nextInt(6); i >= 0; i--) {
      name.append(letters.charAt(random.nextInt(letters.length())));
    }
    return name.toString();
  }
}
