// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiPredicate;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.WindlassException;
import org.windlass.gpu.CudaDriver;
import org.windlass.gpu.CudaGrids;
import org.windlass.internal.json.JsonObject;

/**
 * The part of {@code windlass doctor} about NVIDIA's driver and GPUs.
 *
 * @param refusal reason why no GPU is available; empty if a GPU is available
 * @param gpus GPUs that this process sees, in the order of their numbers
 * @param grids which rows of a table of grids apply to these GPUs, as text; empty if the report
 *     leaves this out
 */
record CudaReport(Optional<String> refusal, List<Gpu> gpus, Optional<String> grids) {
  private static final String SHARED =
      "processes that share a GPU take turns on it, so ranks that wait for each other are"
          + " slow: run them as threads of one process";

  /**
   * One GPU. If the driver can't describe it, {@code device} is null and {@code refusal} says why.
   *
   * @param reaches numbers of the GPUs whose memory this GPU can access
   */
  record Gpu(
      CudaDriver.@Nullable Device device, @Nullable String refusal, List<Integer> reaches) {}

  /** Returns the report of this machine. The native library has to be loadable. */
  static CudaReport ofMachine() {
    return CudaDriver.problem()
        .map(CudaReport::refused)
        .orElseGet(
            () -> {
              int count = CudaDriver.deviceCount();
              CudaReport report = of(count, CudaDriver::device, CudaDriver::reaches);
              String file = System.getenv().getOrDefault(CudaGrids.VARIABLE, "");
              return report.withGrids(grids(file, count, CudaGrids::rows));
            });
  }

  CudaReport withGrids(String told) {
    return new CudaReport(refusal, gpus, Optional.of(told));
  }

  /**
   * Describes a table of grids.
   *
   * @param file path of the table; empty for none
   * @param count number of GPUs
   * @param rows returns the number of the table's rows for a GPU
   */
  static String grids(String file, int count, IntUnaryOperator rows) {
    if (file.isEmpty()) {
      return CudaGrids.VARIABLE + " is not set: a rank takes as many cores as run at a time";
    }
    try {
      List<String> of = new ArrayList<>();
      int all = 0;
      for (int gpu = 0; gpu < count; gpu++) {
        int own = rows.applyAsInt(gpu);
        all += own;
        of.add((own == 0 ? "none" : String.valueOf(own)) + " for GPU " + gpu);
      }
      return all == 0
          ? file + " has no row for a GPU like these: it is not used, and a rank takes as many cores as"
              + " run at a time"
          : file + ", rows: " + String.join(", ", of);
    } catch (WindlassException refused) {
      return "refused: " + refused.getMessage();
    }
  }

  static CudaReport refused(String why) {
    return new CudaReport(Optional.of(why), List.of(), Optional.empty());
  }

  static CudaReport of(
      int count, IntFunction<CudaDriver.Device> devices, BiPredicate<Integer, Integer> reaches) {
    List<Gpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int gpu = i;
      try {
        List<Integer> reached =
            IntStream.range(0, count)
                .filter(peer -> peer != gpu && reaches.test(gpu, peer))
                .boxed()
                .toList();
        gpus.add(new Gpu(devices.apply(gpu), null, reached));
      } catch (WindlassException refused) {
        gpus.add(new Gpu(null, refused.getMessage(), List.of()));
      }
    }
    return new CudaReport(Optional.empty(), gpus, Optional.empty());
  }

  Map<String, String> lines() {
    Map<String, String> lines = new LinkedHashMap<>();
    lines.put("driver", refusal.orElseGet(() -> "for CUDA " + cuda().orElse("of no version")));
    for (int gpu = 0; gpu < gpus.size(); gpu++) {
      lines.put("GPU " + gpu, text(gpus.get(gpu)));
    }
    grids.ifPresent(told -> lines.put("grids", told));
    if (!gpus.isEmpty()) {
      lines.put("note", SHARED);
    }
    return lines;
  }

  private Optional<String> cuda() {
    return gpus.stream().filter(gpu -> gpu.device != null).map(gpu -> gpu.device.cuda()).findFirst();
  }

  private String text(Gpu gpu) {
    if (gpu.device == null) {
      return "refused: " + gpu.refusal;
    }
    CudaDriver.Device is = gpu.device;
    String reaches =
        gpu.reaches.stream().map(Object::toString).collect(Collectors.joining(" "));
    return is.name() + ", compute capability " + is.major() + "." + is.minor()
        + ", " + is.multiprocessors() + " SMs, "
        + gib(is.freeBytes()) + " of " + gib(is.totalBytes()) + " GiB free"
        + (gpus.size() == 1 ? "" : ", reaches " + (reaches.isEmpty() ? "no other" : reaches));
  }

  private static String gib(long bytes) {
    return JsonObject.decimal(bytes / 0x1p30, 1).toString();
  }

  Map<String, Object> json() {
    return refusal.isPresent()
        ? JsonObject.of("refusal", refusal)
        : JsonObject.of(
            "driver", cuda().orElse(""),
            "gpus", gpus.stream().map(CudaReport::json),
            "grids", grids,
            "note", SHARED);
  }

  private static Map<String, Object> json(Gpu gpu) {
    return gpu.device == null
        ? JsonObject.of("refusal", gpu.refusal)
        : JsonObject.of(
            "name", gpu.device.name(),
            "compute_capability", gpu.device.major() + "." + gpu.device.minor(),
            "multiprocessors", gpu.device.multiprocessors(),
            "total_bytes", gpu.device.totalBytes(),
            "free_bytes", gpu.device.freeBytes(),
            "reaches", gpu.reaches);
  }
}
