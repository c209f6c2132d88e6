// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;

/** Calls of a process that finds no natives: each gets the same exception, as often as it is made. */
public final class WithoutNatives {
  private static final int TIMES = 3;

  private WithoutNatives() {}

  /** Makes each call as often as it is tried, and prints what it threw. */
  public static void make(Map<String, Runnable> calls) {
    for (int i = 0; i < TIMES; i++) {
      calls.forEach(
          (name, call) -> {
            try {
              call.run();
              System.out.println(name + ": nothing");
            } catch (Throwable thrown) {
              System.out.println(
                  name + ": " + thrown.getClass().getSimpleName() + ": "
                      + String.valueOf(thrown.getMessage()).lines().findFirst().orElse(""));
            }
          });
    }
  }

  /**
   * Runs a program that {@link #make}s some calls in such a process, where each must be refused.
   *
   * @param calls how many calls the program makes
   */
  public static void requireRefused(Class<?> program, int calls, Path folder)
      throws IOException, InterruptedException {
    assertThat(said(program, Path.of("/nonexistent"), folder).lines())
        .hasSize(calls * TIMES)
        .allMatch(
            line -> line.matches("[^:]+: UnsupportedException: cannot load the Windlass natives .*"));
  }

  /** What a program prints, which ends well, in a process whose natives are in that folder. */
  public static String said(Class<?> program, Path natives, Path folder)
      throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-Dorg.windlass.library.path=" + natives,
                "-cp",
                System.getProperty("java.class.path"),
                program.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    return said;
  }
}
