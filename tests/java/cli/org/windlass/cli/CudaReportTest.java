// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.windlass.error.DeviceException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.gpu.CudaDriver;
import org.windlass.internal.json.JsonObject;

/** What doctor says of GPUs, of machines as they may be. */
class CudaReportTest {
  private static final CudaDriver.Device H100 =
      new CudaDriver.Device("NVIDIA H100", 9, 0, 132, 80L << 30, (79L << 30) + (1 << 29), "13.0");

  private static String json(CudaReport report) {
    return JsonObject.line(Map.of("cuda", report.json()));
  }

  @Test
  void aMachineWithoutADriverHasOneLine() {
    CudaReport report = CudaReport.refused("it does not open");
    assertThat(report.lines()).isEqualTo(Map.of("driver", "it does not open"));
    assertThat(json(report)).isEqualTo("{\"cuda\":{\"refusal\":\"it does not open\"}}");
  }

  @Test
  void oneGpuReachesNobody() {
    CudaReport report = CudaReport.of(1, gpu -> H100, (from, to) -> true);
    assertThat(report.lines())
        .containsEntry("driver", "for CUDA 13.0")
        .containsEntry(
            "GPU 0", "NVIDIA H100, compute capability 9.0, 132 SMs, 79.5 of 80.0 GiB free")
        .hasEntrySatisfying("note", note -> assertThat(note).contains("take turns on it"));
    assertThat(json(report))
        .startsWith(
            "{\"cuda\":{\"driver\":\"13.0\",\"gpus\":[{\"name\":\"NVIDIA H100\","
                + "\"compute_capability\":\"9.0\",\"multiprocessors\":132,"
                + "\"total_bytes\":85899345920,\"free_bytes\":85362475008,\"reaches\":[]}],"
                + "\"note\":\"processes that share a GPU take turns");
  }

  @Test
  void eachGpuNamesThoseThatItReaches() {
    CudaReport report = CudaReport.of(3, gpu -> H100, (from, to) -> from + to == 2);
    assertThat(report.lines().get("GPU 0")).endsWith("GiB free, reaches 2");
    assertThat(report.lines().get("GPU 1")).endsWith("GiB free, reaches no other");
    assertThat(report.lines().get("GPU 2")).endsWith("GiB free, reaches 0");
    assertThat(json(report)).contains("\"reaches\":[2]", "\"reaches\":[]", "\"reaches\":[0]");
  }

  @Test
  void itsTableOfGridsIsToldOf() {
    assertThat(CudaReport.grids("", 2, gpu -> 7))
        .isEqualTo("WINDLASS_CUDA_GRIDS is not set: a rank takes as many cores as run at a time");
    assertThat(CudaReport.grids("/g", 2, gpu -> 7 * gpu))
        .isEqualTo("/g, rows: none for GPU 0, 7 for GPU 1");
    assertThat(CudaReport.grids("/g", 2, gpu -> 0))
        .startsWith("/g has no row for a GPU like these: it is not used");
    assertThat(
            CudaReport.grids(
                "/g",
                1,
                gpu -> {
                  throw new InvalidArgumentException("line 3 is wrong");
                }))
        .isEqualTo("refused: line 3 is wrong");
    CudaReport report = CudaReport.of(1, gpu -> H100, (from, to) -> true).withGrids("told");
    assertThat(report.lines()).containsEntry("grids", "told");
    assertThat(json(report)).contains("],\"grids\":\"told\",\"note\":");
  }

  @Test
  void aGpuThatRefusesHidesNoOther() {
    CudaReport report =
        CudaReport.of(
            2,
            gpu -> {
              if (gpu == 0) {
                throw new DeviceException("it fell off the bus");
              }
              return H100;
            },
            (from, to) -> true);
    assertThat(report.lines())
        .containsEntry("driver", "for CUDA 13.0")
        .containsEntry("GPU 0", "refused: it fell off the bus");
    assertThat(report.lines().get("GPU 1")).startsWith("NVIDIA H100").endsWith("reaches 0");
    assertThat(json(report)).contains("\"gpus\":[{\"refusal\":\"it fell off the bus\"},{");
  }
}
