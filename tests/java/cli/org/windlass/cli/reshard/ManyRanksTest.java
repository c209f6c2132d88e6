// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.TestFile;

/**
 * A thousand ranks cost what their files cost: seconds of processor time, which other load does not
 * change, where work that grows with ranks times ranks takes minutes; and no thread for each.
 */
@Timeout(600)
class ManyRanksTest {
  private static final int RANKS = 1000;
  private static final boolean LONG = Boolean.getBoolean("windlass.long");
  private static final int TENSORS = 40;
  private static final double CPU_SECONDS = 30;
  private static final int THREADS = 100;

  @TempDir Path folder;

  private List<TestFile.Tensor> tensors() {
    List<TestFile.Tensor> tensors = new ArrayList<>();
    for (int t = 0; t < TENSORS; t++) {
      long[] bits = new long[1100 * 128];
      int salt = t;
      Arrays.setAll(bits, i -> (i * 40503L + salt * 977) & 0xffff);
      tensors.add(new TestFile.Tensor("l." + t + ".w", DType.BF16, new int[] {1100, 128}, bits));
    }
    return tensors;
  }

  private static void run(Object... arguments) {
    OperatingSystemMXBean system =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    ManagementFactory.getThreadMXBean().resetPeakThreadCount();
    long begin = system.getProcessCpuTime();
    Cli done = Cli.run(arguments);
    double seconds = (system.getProcessCpuTime() - begin) / 1e9;
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(seconds).as("seconds of processor time").isLessThan(CPU_SECONDS);
    assertThat(ManagementFactory.getThreadMXBean().getPeakThreadCount()).isLessThan(THREADS);
  }

  @Test
  void aThousandRanksCostWhatTheyMove() throws Exception {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, tensors(), Map.of());
    Path rows = folder.resolve("rows");
    Path columns = folder.resolve("columns");
    Path back = folder.resolve("back.safetensors");
    run("reshard", "--from", "1:R", "--to", RANKS + ":S0", in, rows);
    try (Stream<Path> files = Files.list(rows)) {
      assertThat(files).hasSize(RANKS + 1);
    }
    run("reshard", "--to", (LONG ? 125 : 25) + "x8@0:S0,S1", rows, columns);
    run("reshard", "--to", "1:R", columns, back);
    assertThat(TestFile.read(back).tensors()).isEqualTo(tensors());
  }
}
