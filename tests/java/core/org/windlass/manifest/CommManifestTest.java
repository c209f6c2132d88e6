// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;

/** Manifests as they are read, written and refused, and what they mean for devices. */
class CommManifestTest {
  private static final String ELEMENTS =
      "{\"version\": 2, \"comm_groups\": [{\"devices\": [], \"slots\": [{\"name\": \"scratch\","
          + " \"dtype\": \"float32\", \"size\": 256, \"bits_per_element\": 32,"
          + " \"load_from_host\": false, \"store_to_host\": false}]}]}";

  private static final String BYTES =
      "{\"version\": 2, \"comm_groups\": [{\"devices\": [0, 2], \"slots\": [{\"name\": \"scratch\","
          + " \"nbytes\": 1024, \"load_from_host\": true, \"store_to_host\": false}]}]}";

  @TempDir private Path folder;

  private static CommManifest parse(String json) {
    return CommManifest.parse("m.json", json.getBytes(StandardCharsets.UTF_8));
  }

  private static String group(String members) {
    return "{\"version\":2,\"comm_groups\":[{" + members + "}]}";
  }

  private static String slot(String members) {
    return group("\"devices\":[],\"slots\":[{" + members + "}]");
  }

  @Test
  void aBootstrapHasNoNegativeNumbers() {
    var place = parse(BYTES).bootstrap(3).groups().get(0).slots().get(0);
    Optional<String> none = Optional.empty();
    refused(() -> new Bootstrap(-1, List.of()), "devices is -1; it must be 1 or more and at most");
    refused(
        () -> new Bootstrap.Group(none, List.of(0, -3), List.of(), 64),
        "members[1] of a group is -3; it must be 0 or more");
    refused(
        () -> new Bootstrap.Group(none, List.of(0), List.of(place), -64),
        "windowBytes of a group is -64; it must be 0 or more");
    refused(
        () -> new Bootstrap.Place(place.slot(), -1),
        "offset of slot \"scratch\" is -1; it must be 0 or more");
  }

  private static void refused(Runnable made, String what) {
    assertThatThrownBy(made::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith(what);
  }

  @Test
  void bothFormsAreRead() {
    assertThat(parse(ELEMENTS))
        .isEqualTo(
            new CommManifest(
                List.of(
                    new CommGroup(
                        List.of(),
                        List.of(
                            new Slot(
                                "scratch",
                                new Slot.Elements(ElementType.FLOAT32, 256),
                                false,
                                false))))));
    assertThat(parse(BYTES))
        .isEqualTo(
            new CommManifest(
                List.of(
                    new CommGroup(
                        List.of(0, 2),
                        List.of(new Slot("scratch", new Slot.Bytes(1024), true, false))))));
  }

  @Test
  void theSizeOfASlotIsThatOfItsBitsRoundedUp() {
    assertThat(new Slot.Elements(ElementType.INT4, 5).bytes()).isEqualTo(3);
    assertThat(new Slot.Elements(ElementType.UINT8, 5, 4).bytes()).isEqualTo(3);
    assertThat(new Slot.Elements(ElementType.INT64, 5).bytes()).isEqualTo(40);
    assertThat(new Slot.Elements(ElementType.BFLOAT16, 0).bytes()).isZero();
    long most = Long.MAX_VALUE / 8 - 7;
    assertThat(new Slot.Elements(ElementType.INT8, most).bytes()).isEqualTo(most);
    assertThatThrownBy(() -> new Slot.Elements(ElementType.INT8, most + 1))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("size is " + (most + 1));
  }

  @Test
  void slotsAreCarvedInOrderAndRanksAreDenseInTheOrderOfTheList() {
    CommManifest manifest =
        new CommManifest(
            List.of(
                new CommGroup(
                    Optional.of("tp"),
                    List.of(4, 0, 2),
                    List.of(
                        new Slot("a", new Slot.Bytes(1), false, false),
                        new Slot("b", new Slot.Elements(ElementType.FLOAT16, 33), true, false),
                        new Slot("c", new Slot.Bytes(0), false, true),
                        new Slot("d", new Slot.Bytes(64), false, false))),
                new CommGroup(List.of(), List.of())));
    Bootstrap bootstrap = manifest.bootstrap(5);
    Bootstrap.Group tp = bootstrap.groups().get(0);
    assertThat(tp.slots()).extracting(Bootstrap.Place::offset).containsExactly(0L, 64L, 192L, 192L);
    assertThat(tp.windowBytes()).isEqualTo(256);
    assertThat(tp.rankOf(4)).isEqualTo(OptionalInt.of(0));
    assertThat(tp.rankOf(0)).isEqualTo(OptionalInt.of(1));
    assertThat(tp.rankOf(2)).isEqualTo(OptionalInt.of(2));
    assertThat(tp.rankOf(1)).isEmpty();
    assertThat(tp.slots().get(1).slot().bytes()).isEqualTo(66);
    Bootstrap.Group all = bootstrap.groups().get(1);
    assertThat(all.members()).containsExactly(0, 1, 2, 3, 4);
    assertThat(all.windowBytes()).isZero();
    assertThatThrownBy(() -> manifest.bootstrap(4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("$.comm_groups[0].devices[0] is 4; there are devices 0 to 3");
    for (int devices : new int[] {0, -1, Bootstrap.MAX_DEVICES + 1, Integer.MAX_VALUE}) {
      assertThatThrownBy(() -> manifest.bootstrap(devices))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("devices is " + devices);
    }
  }

  @Test
  void windowsThatNoMachineHasAreRefused() {
    Slot half = new Slot("a", new Slot.Bytes(Long.MAX_VALUE / 8), false, false);
    Slot other = new Slot("b", new Slot.Bytes(1), false, false);
    CommManifest manifest =
        new CommManifest(List.of(new CommGroup(List.of(), List.of(other, half))));
    assertThatThrownBy(() -> manifest.bootstrap(1))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("$.comm_groups[0].slots[1] ends beyond");
  }

  @Test
  void namesWithQuotesAndBackslashesRoundTrip() {
    for (String name : List.of("a\"b\\c", "\n\u0000", "тензор", "\ud83d\ude00", "/", "$.x")) {
      CommManifest manifest =
          new CommManifest(
              List.of(
                  new CommGroup(
                      Optional.of(name),
                      List.of(3, 1),
                      List.of(
                          new Slot(name, new Slot.Elements(ElementType.INT8, 7, 4), true, true)))));
      assertThat(CommManifest.parse("m.json", manifest.toJson())).isEqualTo(manifest);
    }
  }

  @Test
  void aFileIsWrittenWholeAndTakesTheOldOnesPlace() throws Exception {
    Path file = folder.resolve(CommManifest.NAME);
    assertThatThrownBy(() -> CommManifest.read(file)).isInstanceOf(NoSuchFileException.class);
    parse(ELEMENTS).write(file);
    parse(BYTES).write(file);
    assertThat(CommManifest.read(file)).isEqualTo(parse(BYTES));
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).containsExactly(file);
    }
    Path nowhere = folder.resolve("none").resolve("m.json");
    assertThatThrownBy(() -> parse(BYTES).write(nowhere)).isInstanceOf(NoSuchFileException.class);
    Path taken = Files.createDirectories(folder.resolve("taken").resolve("by"));
    assertThatThrownBy(() -> parse(BYTES).write(taken.getParent()))
        .isInstanceOf(java.io.IOException.class);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).containsExactlyInAnyOrder(file, taken.getParent());
    }
  }

  static Stream<Arguments> wrong() {
    String name = "\"name\":\"a\",";
    return Stream.of(
        arguments("", "$: the JSON is empty"),
        arguments("[]", "$: the whole is a list, not an object"),
        arguments("{} {}", "$"),
        arguments("{\"version\":2", "$: not valid JSON"),
        arguments("{}", "$.version is missing"),
        arguments("{\"version\":2}", "$.comm_groups is missing"),
        arguments("{\"version\":1,\"comm_groups\":[]}", "$.version is 1; this reads 2"),
        arguments("{\"version\":true,\"comm_groups\":[]}", "$.version is true, not an integer"),
        arguments("{\"version\":2.0,\"comm_groups\":[]}", "$.version is 2.0, not an integer"),
        arguments("{\"version\":2,\"comm_groups\":[]}", "$.comm_groups is empty"),
        arguments("{\"version\":2,\"groups\":[]}", "$: the key \"groups\" is unknown"),
        arguments("{\"version\":2,\"version\":2}", "$: the key \"version\" stands twice"),
        arguments(group("\"slots\":[]"), "$.comm_groups[0].devices is missing"),
        arguments(group("\"devices\":[]"), "$.comm_groups[0].slots is missing"),
        arguments(group("\"devices\":[],\"slot\":[]"), "$.comm_groups[0]: the key \"slot\" is unknown"),
        arguments(group("\"devices\":[1,true],\"slots\":[]"), "$.comm_groups[0].devices[1] is true"),
        arguments(group("\"devices\":[-1],\"slots\":[]"), "$.comm_groups[0].devices[0] is -1, which is neg"),
        arguments(group("\"devices\":[2147483648],\"slots\":[]"), "$.comm_groups[0].devices[0] is 2147483648"),
        arguments(
            group("\"devices\":[3,1,3],\"slots\":[]"),
            "$.comm_groups[0].devices[2] is 3, as devices[0] is"),
        arguments(group("\"name\":\"\",\"devices\":[],\"slots\":[]"), "$.comm_groups[0].name is empty"),
        arguments(
            "{\"version\":2,\"comm_groups\":[{\"devices\":[],\"slots\":[]},"
                + "{\"name\":\"tp\",\"devices\":[],\"slots\":[]},"
                + "{\"name\":\"tp\",\"devices\":[],\"slots\":[]}]}",
            "$.comm_groups[2].name is \"tp\", as comm_groups[1].name is"),
        arguments(
            group("\"devices\":[],\"slots\":[{" + name + "\"nbytes\":1},{" + name + "\"nbytes\":2}]"),
            "$.comm_groups[0].slots[1].name is \"a\", as slots[0].name is"),
        arguments(slot("\"nbytes\":1"), "$.comm_groups[0].slots[0].name is missing"),
        arguments(slot("\"name\":\"\",\"nbytes\":1"), "$.comm_groups[0].slots[0].name is empty"),
        arguments(slot("\"name\":7,\"nbytes\":1"), "$.comm_groups[0].slots[0].name is 7, not a string"),
        arguments(slot("\"name\":\"\\ud800\",\"nbytes\":1"), "$.comm_groups[0].slots[0].name contains an unpaired surrogate"),
        arguments(slot("\"name\":\"a\""), "$.comm_groups[0].slots[0].nbytes is missing"),
        arguments(slot(name + "\"size\":1"), "$.comm_groups[0].slots[0].dtype is missing"),
        arguments(slot(name + "\"dtype\":\"int8\""), "$.comm_groups[0].slots[0].size is missing"),
        arguments(slot(name + "\"dtype\":\"f32\",\"size\":1"), "$.comm_groups[0].slots[0].dtype is \"f32\""),
        arguments(slot(name + "\"dtype\":\"int8\",\"size\":-1"), "$.comm_groups[0].slots[0].size is -1"),
        arguments(
            slot(name + "\"dtype\":\"int8\",\"size\":9223372036854775808"),
            "$.comm_groups[0].slots[0].size is 9223372036854775808, which does not fit"),
        arguments(
            slot(name + "\"dtype\":\"int64\",\"size\":9223372036854775807"),
            "$.comm_groups[0].slots[0].size is 9223372036854775807"),
        arguments(
            slot(name + "\"dtype\":\"float32\",\"size\":1,\"bits_per_element\":16"),
            "$.comm_groups[0].slots[0].bits_per_element is 16; elements of dtype float32 have 32"),
        arguments(
            slot(name + "\"dtype\":\"float32\",\"size\":1,\"bits_per_element\":4294967328"),
            "$.comm_groups[0].slots[0].bits_per_element is "),
        arguments(
            slot(name + "\"dtype\":\"float32\",\"size\":1,\"nbytes\":4"),
            "$.comm_groups[0].slots[0].nbytes stands beside dtype"),
        arguments(
            slot(name + "\"nbytes\":9223372036854775807"),
            "$.comm_groups[0].slots[0].nbytes is 9223372036854775807"),
        arguments(
            slot(name + "\"nbytes\":1,\"load_from_host\":1"),
            "$.comm_groups[0].slots[0].load_from_host is 1, neither true nor false"),
        arguments(
            slot(name + "\"nbytes\":1,\"store_to_host\":null"),
            "$.comm_groups[0].slots[0].store_to_host is null, neither true nor false"));
  }

  @ParameterizedTest
  @MethodSource("wrong")
  void whatIsWrongIsRefusedWithItsPlace(String json, String what) {
    assertThatThrownBy(() -> parse(json))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("m.json: " + what);
  }

  @Test
  void bytesThatAreNoTextAreRefused() {
    assertThatThrownBy(() -> CommManifest.parse("m.json", new byte[] {'{', (byte) 0xff}))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("m.json: $: the JSON is not valid UTF-8");
  }
}
