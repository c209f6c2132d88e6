// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.windlass.gpu.CudaDriver;

/** A machine without driver, natives of the presets, or the presets. */
class WithoutCudaTest {
  private static final Path CLASSES =
      Path.of(System.getProperty("windlass.root"), "java/cuda/target/classes");

  private static List<String> classes() throws Exception {
    try (Stream<Path> files = Files.walk(CLASSES)) {
      return files
          .map(file -> CLASSES.relativize(file).toString())
          .filter(file -> file.endsWith(".class") && !file.endsWith("-info.class"))
          .map(file -> file.replace(".class", "").replace('/', '.'))
          .toList();
    }
  }

  @Test
  void classesLoadWithoutTheDriver() throws Exception {
    assumeThat(CudaDriver.problem()).as("no driver here").isPresent();
    List<String> classes = classes();
    assertThat(classes)
        .contains("org.windlass.cuda.DevicePointers", "org.windlass.cuda.CudaPresets");
    for (String name : classes) {
      assertThat(Class.forName(name).getName()).isEqualTo(name);
    }
  }

  /** Twice: a class that could not be initialised gives its reason once. */
  @Test
  void presetsThatDoNotLoadAreTold() {
    assumeThat(CudaDriver.problem()).as("no driver here").isPresent();
    for (int call = 0; call < 2; call++) {
      assertThat(CudaPresets.problem().orElseThrow())
          .contains("org.bytedeco.cuda.global.cudart", "no jnicudart in java.library.path");
    }
  }

  /** In a class loader that has ours and JavaCPP, and no presets. */
  @Test
  void pointersNeedNoPresets() throws Exception {
    List<URL> urls = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(":")) {
      if (!entry.matches(".*/cuda-[0-9][^/]*\\.jar")) {
        urls.add(Path.of(entry).toUri().toURL());
      }
    }
    ClassLoader platform = ClassLoader.getPlatformClassLoader();
    try (URLClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), platform)) {
      Object refusal =
          loader.loadClass(CudaPresets.class.getName()).getMethod("problem").invoke(null);
      assertThat(((Optional<?>) refusal).orElseThrow().toString())
          .contains("is not on the class path; org.bytedeco:cuda has it");
      Class<?> pointers = Class.forName(DevicePointers.class.getName(), true, loader);
      assertThat(pointers.getClassLoader()).isSameAs(loader);
      assertThat(pointers.getMethods()).isNotEmpty();
    }
  }
}
