// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.error.MismatchException;
import org.windlass.internal.store.Encoding;

/** What Python ranks state of their memory, as another process may send it. */
class PythonTablesTest {
  private static final int RANK = 1;

  /** Of tensors {@code names}, each a view of 2 x 3. */
  private static byte[] stated(int format, int count, long ndim, String... names) {
    return Encoding.bytes(
        out -> {
          out.writeInt(format);
          out.writeInt(count);
          for (String name : names) {
            Encoding.putArray(out, name.getBytes(StandardCharsets.UTF_8));
            for (long word : new long[] {12, ndim, 64, 64, 24, 2, 3, 3, 1}) {
              out.writeLong(word);
            }
          }
        });
  }

  private static void requireRefused(byte[] bytes) {
    assertThatThrownBy(() -> PythonTables.decode(RANK, bytes, Set.of("v", "w")))
        .as(Arrays.toString(bytes))
        .isInstanceOfSatisfying(
            MismatchException.class, e -> assertThat(e.faultyRanks()).containsExactly(RANK))
        .hasMessageStartingWith("what Python rank 1 says of its tensors can't be read: ");
  }

  @Test
  void whatAPythonRankStatesIsReadWhole() {
    var views = PythonTables.decode(RANK, stated(1, 2, 2, "v", "w"), Set.of("v", "w"));
    assertThat(views).containsOnlyKeys("v", "w");
    assertThat(views.get("w").shape()).containsExactly(2, 3);
    assertThat(views.get("w").strides()).containsExactly(3, 1);
    assertThat(views.get("w").address()).isEqualTo(64);
  }

  @Test
  void whatIsMalformedIsRefused() {
    byte[] whole = stated(PythonTables.FORMAT, 2, 2, "v", "w");
    for (int length = 0; length < whole.length; length++) {
      requireRefused(Arrays.copyOf(whole, length));
    }
    requireRefused(Arrays.copyOf(whole, whole.length + 1));
    List.of(
            stated(2, 2, 2, "v", "w"),
            stated(1, 3, 2, "v", "w"),
            stated(1, 1, 2, "v", "w"),
            stated(1, Integer.MAX_VALUE, 2, "v"),
            stated(1, 2, 2, "w", "w"),
            stated(1, 1, 2, "other"),
            stated(1, 1, -1, "w"),
            stated(1, 1, 17, "w"),
            stated(1, 1, Long.MAX_VALUE, "w"))
        .forEach(PythonTablesTest::requireRefused);
    byte[] longName = whole.clone();
    ByteBuffer.wrap(longName).putInt(8, Integer.MAX_VALUE);
    requireRefused(longName);
  }

  @Test
  void aDtypeIsNamedWhateverItsNumber() {
    assertThat(PythonTables.named(DType.F32.code())).isEqualTo("f32");
    assertThat(PythonTables.named(DType.BOOL.code())).isEqualTo("bool");
    assertThat(PythonTables.named(-1)).isEqualTo("dtype -1");
    assertThat(PythonTables.named(99)).isEqualTo("dtype 99");
  }
}
