// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

record CudaToolkit() implements TargetToolkit {
  @Override
  public List<String> targets() {
    return List.of("cuda");
  }

  @Override
  public String lacking(String target) {
    if (!NativeLoader.has(target)) {
      return "this build has no libwindlass-cuda.so; in a checkout, scripts/demo --target cuda or"
          + " mvn package -Dwindlass.targets=all builds it with NVIDIA's compiler: " + compiler()
          + "; " + driver();
    }
    String refusal = NativeLoader.cudaRefusal();
    return refusal == null ? "" : refusal;
  }

  private static String driver() {
    String refusal = NativeLoader.cudaRefusal();
    return refusal == null ? "the CUDA driver, libcuda.so.1, opens and has a device" : refusal;
  }

  /** Returns a text that says where nvcc is. Looks in the same places as cmake/cuda.cmake. */
  private static String compiler() {
    String path = System.getenv("PATH");
    return Stream.concat(
            Pattern.compile(":").splitAsStream(path == null ? "" : path),
            Stream.of(System.getenv("CUDA_HOME"), System.getenv("CUDA_PATH"), "/usr/local/cuda")
                .filter(folder -> folder != null && !folder.isEmpty())
                .map(folder -> folder + "/bin"))
        .filter(CudaToolkit::hasCompiler)
        .findFirst()
        .map(folder -> "nvcc is in " + folder)
        .orElse("nvcc is neither on the PATH nor under CUDA_HOME, CUDA_PATH or /usr/local/cuda");
  }

  private static boolean hasCompiler(String folder) {
    try {
      return Files.isExecutable(Path.of(folder, "nvcc"));
    } catch (InvalidPathException e) {
      return false;
    }
  }
}
