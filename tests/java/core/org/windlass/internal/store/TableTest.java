// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TableTest {
  private static long usedBytes() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** All processes of a start wait for another value than the long one that they have read. */
  @Test
  void waitsDoNotKeepTheValuesThatWereSeen() {
    Table table = new Table();
    table.set("a", new byte[Limits.VALUE]);
    List<Store.Change> changes = new ArrayList<>();
    long before = usedBytes();
    for (int i = 0; i < 100; i++) {
      assertThat(table.await(Map.of("a", new byte[Limits.VALUE]), changes::add)).isNotNull();
    }
    assertThat(usedBytes() - before).isLessThan(10L * Limits.VALUE);
    table.set("a", new byte[Limits.VALUE]);
    assertThat(changes).isEmpty();
    table.set("a", new byte[1]);
    assertThat(changes).hasSize(100);
  }
}
