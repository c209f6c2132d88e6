// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import static java.util.Objects.requireNonNullElse;

import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The software that a target other than {@code sim} needs to compile and run its kernels. Targets
 * are listed to users in this order.
 */
public enum TargetToolkit {
  /** None: the checked targets run on any x86-64 processor. */
  CHECKED("a2a3sim", "a5sim"),

  /** NVIDIA's compiler and driver. */
  CUDA("cuda"),

  /** CANN, the Ascend toolkit. */
  ASCEND("a2a3", "a5");

  private final List<String> targets;

  TargetToolkit(String... targets) {
    this.targets = List.of(targets);
  }

  /** Returns the toolkit of {@code target}, or null for {@code sim}. */
  public static @Nullable TargetToolkit of(String target) {
    return Stream.of(values())
        .filter(toolkit -> toolkit.targets.contains(target))
        .findFirst()
        .orElse(null);
  }

  List<String> targets() {
    return targets;
  }

  /**
   * Returns what {@code target} lacks on this machine, with the places searched. Empty if the
   * machine seems to have everything; only an operation can show that for certain. The native
   * library must be loaded, for any target.
   */
  public String lacking(String target) {
    if (NativeLoader.has(target)) {
      return this == CUDA ? requireNonNullElse(NativeLoader.cudaRefusal(), "") : "";
    }
    String library = "this build has no libwindlass-" + target + ".so";
    return switch (this) {
      case CHECKED ->
          library + "; in a checkout on x86-64, scripts/demo --target " + target
              + " or mvn package builds it";
      case CUDA ->
          "this build has no libwindlass-cuda.so; in a checkout, scripts/demo --target cuda or mvn"
              + " package -Dwindlass.targets=all builds it with NVIDIA's compiler: " + compiler() + "; "
              + requireNonNullElse(
                  NativeLoader.cudaRefusal(),
                  "the CUDA driver, libcuda.so.1, opens and has a device");
      case ASCEND ->
          library + ", for which a toolkit is looked for by " + folder("ASCEND_HOME_PATH")
              + " and " + folder("PTO_ISA_ROOT") + "; "
              + requireNonNullElse(
                  NativeLoader.ascendRefusal(), "the Ascend runtime, libascendcl.so, opens");
    };
  }

  private static String folder(String variable) {
    String value = requireNonNullElse(System.getenv(variable), "");
    return variable + " (" + (value.isEmpty() ? "not set" : value) + ")";
  }

  /** Returns a text that says where nvcc is. Looks in the same places as cmake/cuda.cmake. */
  private static String compiler() {
    return Stream.concat(
            Pattern.compile(":").splitAsStream(requireNonNullElse(System.getenv("PATH"), "")),
            Stream.of(System.getenv("CUDA_HOME"), System.getenv("CUDA_PATH"), "/usr/local/cuda")
                .filter(folder -> folder != null && !folder.isEmpty())
                .map(folder -> folder + "/bin"))
        .filter(TargetToolkit::hasCompiler)
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
