// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.windlass.bench.sample.GridTuner.Choice;
import org.windlass.bench.sample.GridTuner.Tried;
import org.windlass.bench.side.Operation;
import org.windlass.error.InvalidArgumentException;
import org.windlass.gpu.CudaGrids;

/** Tables of grids as they are read and written; the natives say what is one. */
class GridRowsTest {
  private static final String KEY = "9.0 132 all-reduce 8 8";

  @AfterEach
  void goByNone() {
    CudaGrids.useVariable();
  }

  @Test
  void whatIsWrittenIsReadBack() {
    GridRows rows = GridRows.none().with(KEY, List.of(KEY + " 0 4096 2", KEY + " 4097 65536 8"));
    assertThat(rows.text()).startsWith("windlass-cuda-grids 1\n# ").endsWith(" 8\nend 2\n");
    assertThat(GridRows.of(rows.text())).isEqualTo(rows);
    assertThat(GridRows.of(GridRows.none().text())).isEqualTo(GridRows.none());
  }

  @Test
  void rowsOfOthersAreKept() {
    String own = KEY + " 0 9 1";
    String ofMoreGpus = "9.0 132 all-reduce 8 1 0 9 1";
    String ofAnother = "9.0 132 all-reduce 4 4 0 9 2";
    GridRows rows =
        GridRows.of(
            "windlass-cuda-grids 1\n  " + own + " \n#\n" + ofMoreGpus + "\n\n"
                + ofAnother.replace(" ", "\t") + "\nend 3\n");
    assertThat(rows.rows()).containsExactly(own, ofMoreGpus, ofAnother);
    assertThat(rows.with(KEY, List.of(KEY + " 0 4 3")).rows())
        .containsExactly(ofMoreGpus, ofAnother, KEY + " 0 4 3");
  }

  @Test
  void whatIsNoTableIsRefused() {
    assertThatThrownBy(() -> GridRows.of("windlass-cuda-grids 1\n" + KEY + " 0 4 0\nend 1"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("line 2: '0' is no number of cores, 1 to 1024");
    assertThatThrownBy(() -> GridRows.of("windlass-cuda-grids 1\nend 0\0"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("character 27 of a table of grids is a NUL");
  }

  @Test
  void theFewestCoresAreChosenThatTakeHardlyLonger() {
    Choice choice = choice(4096, 5.0, 3.0, 2.05, 2.0, 2.2);
    assertThat(choice.chosen()).isEqualTo(new Tried(4, 2.05));
    assertThat(choice.whole()).isEqualTo(new Tried(16, 2.2));
    assertThat(choice(4096, 5.0, 3.0, 2.07, 2.0).chosen().cores()).isEqualTo(8);
    assertThat(choice(4096, 1.0).chosen().cores()).isEqualTo(1);
    assertThat(choice.rowBytes()).isEqualTo(4096);
    // A rank's output has a part of each.
    List<Tried> one = List.of(new Tried(1, 1));
    assertThat(Choice.of(Operation.ALL_GATHER, 8, 4096, one).rowBytes()).isEqualTo(8 * 4096);
  }

  @Test
  void rowsAreOfAllBytesUpToTheLargestSize() {
    List<Choice> choices =
        List.of(
            choice(1 << 20, 9, 9, 9, 1),
            choice(4, 1, 9),
            choice(4096, 1, 9),
            choice(65536, 9, 1, 9),
            choice(65536, 9, 9, 1));
    assertThat(GridTuner.into(GridRows.none(), KEY, choices).rows())
        .containsExactly(KEY + " 0 16384 1", KEY + " 16385 262144 2", KEY + " 262145 1048576 8");
  }

  /** With 1, 2, 4 and so on cores. */
  private static Choice choice(long bytes, double... micros) {
    List<Tried> tried = new ArrayList<>();
    for (int i = 0; i < micros.length; i++) {
      tried.add(new Tried(1 << i, micros[i]));
    }
    return Choice.of(Operation.ALL_REDUCE, 8, bytes, tried);
  }
}
