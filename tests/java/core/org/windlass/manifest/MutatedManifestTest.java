// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.windlass.InvalidArgumentException;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;

/** Random manifests, and what becomes of them once their text is mutated. */
class MutatedManifestTest {
  private static final int LEAST = 5_000;
  private static final Pattern PLACE =
      Pattern.compile("m\\.json: \\$(\\.[a-z_]+|\\[[0-9]+\\])*(: | ).*", Pattern.DOTALL);

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
    String text = new String(manifest.toJson(), StandardCharsets.UTF_8);
    assertThat(parse(text)).isEqualTo(manifest);
    cases++;
    try {
      CommManifest taken = parse(Mutation.of(text, random));
      assertThat(CommManifest.parse("m.json", taken.toJson())).isEqualTo(taken);
      assertThat(taken.bootstrap(1 << 10).groups()).hasSameSizeAs(taken.groups());
    } catch (InvalidArgumentException e) {
      refused++;
      String place = e.getMessage().startsWith("$.") ? "m.json: " + e.getMessage() : e.getMessage();
      assertThat(place).matches(PLACE);
    }
  }

  private static CommManifest parse(String text) {
    return CommManifest.parse("m.json", text.getBytes(StandardCharsets.UTF_8));
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
