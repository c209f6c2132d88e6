// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.windlass.error.InvalidArgumentException;

class DeviceMeshTest {
  @Test
  void placesAreRowMajor() {
    DeviceMesh mesh = DeviceMesh.of("dp", 2, "tp", 4).at(8);
    assertThat(mesh.rankAt(1, 2)).isEqualTo(14);
    assertThat(mesh.coordinates(14)).containsExactly(1, 2);
    assertThat(mesh.coordinates(16)).isNull();
    assertThat(mesh.contains(7)).isFalse();
    assertThat(mesh.ranks()).containsExactly(8, 9, 10, 11, 12, 13, 14, 15);
    assertThat(mesh.lowestRank()).isEqualTo(8);
    assertThat(mesh.highestRank()).isEqualTo(15);
  }

  @Test
  void listedRanksKeepTheirPlaces() {
    DeviceMesh mesh = DeviceMesh.of(2, 2).ranks(7, 3, 0, 12);
    assertThat(mesh.rankAt(1, 0)).isZero();
    assertThat(mesh.coordinates(12)).containsExactly(1, 1);
    assertThat(mesh.placeOf(5)).isEqualTo(-1);
    assertThat(mesh.placeOf(13)).isEqualTo(-1);
    assertThat(mesh.lowestRank()).isZero();
    assertThat(mesh.highestRank()).isEqualTo(12);
    assertThat(mesh).hasToString("2x2@[7,3,0,12]");
  }

  @Test
  void aListOfConsecutiveRanksIsTheMeshFromItsFirst() {
    assertThat(DeviceMesh.of(3).ranks(4, 5, 6)).isEqualTo(DeviceMesh.of(3).at(4));
    assertThat(DeviceMesh.parse("3@[4-6]")).hasToString("3@4");
  }

  @Test
  void overlapIsBySharedRanks() {
    DeviceMesh even = DeviceMesh.of(3).ranks(0, 4, 2);
    assertThat(even.overlaps(DeviceMesh.of(3).ranks(1, 5, 3))).isFalse();
    assertThat(even.overlaps(DeviceMesh.of(2).at(3))).isTrue();
    assertThat(DeviceMesh.of(4).overlaps(DeviceMesh.of(4).at(4))).isFalse();
    assertThat(DeviceMesh.of(4).overlaps(DeviceMesh.of(4).at(3))).isTrue();
  }

  @Test
  void wrongMeshesNameWhatIsWrong() {
    refused(() -> DeviceMesh.of(), "at least one dimension");
    refused(() -> DeviceMesh.of(2, 0), "dimension 1 has size 0");
    refused(() -> DeviceMesh.of(-3), "size -3");
    refused(() -> DeviceMesh.of(1 << 20, 2), "more than 1048576 ranks");
    refused(() -> DeviceMesh.of("a", 2, "a", 2), "two mesh dimensions are named 'a'");
    refused(() -> DeviceMesh.of("a b", 2), "'a b'");
    refused(() -> DeviceMesh.of("a", 2, "b"), "pairs");
    refused(() -> DeviceMesh.of("a", 2, 3, "b"), "dimension 1 is a name (String)");
    refused(() -> DeviceMesh.of(4).at(-1), "from rank -1");
    refused(() -> DeviceMesh.of(4).at((1 << 20) - 3), "from rank 1048573");
    refused(() -> DeviceMesh.of(2).ranks(0), "has 2 places, but the list has 1 ranks");
    refused(() -> DeviceMesh.of(2).ranks(1, 1), "rank 1 is twice in mesh 2");
    refused(() -> DeviceMesh.of(2).ranks(0, -1), "rank -1");
    refused(() -> DeviceMesh.of(2).rankAt(2), "coordinate 2 of dimension 0");
    refused(() -> DeviceMesh.of(2).rankAt(0, 0), "2 coordinates");
    refused(() -> DeviceMesh.of(2).rankAtPlace(2), "place 2");
    refused(() -> DeviceMesh.of(2).layout(), "0 placements for the 1 dimensions");
  }

  private static void refused(Runnable call, String message) {
    assertThatThrownBy(call::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(message);
  }
}
