// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.windlass.Target;
import org.windlass.internal.Native;
import org.windlass.internal.NativeLoader;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code windlass doctor}: what this machine and this build offer. */
@Command(
    name = "doctor",
    description = "Shows version, JDK, processor, launch environment, targets and transports.")
final class DoctorCommand implements Runnable {
  private static final String AVAILABLE = "available";

  /** Processor features that the kernels have a path for. */
  private static final List<String> FEATURES =
      List.of("avx2", "f16c", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16");

  /**
   * Environment variables that launchers set, by launcher, in the order in which they are looked
   * for.
   */
  private static final Map<String, List<String>> LAUNCHERS =
      Map.of(
          "torchrun or windlass run", List.of("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
          "Open MPI", List.of("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
          "PMIx", List.of("PMIX_RANK", "PMIX_NAMESPACE"),
          "Slurm", List.of("SLURM_PROCID", "SLURM_NTASKS"));

  @Spec private CommandSpec spec;

  @Option(names = "--json", description = "One JSON object.")
  private boolean json;

  @Override
  public void run() {
    Map<String, String> facts = facts();
    Map<String, String> targets = new LinkedHashMap<>();
    for (Target target : Target.values()) {
      targets.put(target.toString(), target.available() ? AVAILABLE : target.whyNot());
    }
    Map<String, String> transports = transports();
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      out.println(json(facts, targets, transports));
      return;
    }
    print(out, "", facts);
    out.println("targets");
    print(out, "  ", targets);
    out.println("transports");
    print(out, "  ", transports);
  }

  private static Map<String, String> facts() {
    Map<String, String> facts = new LinkedHashMap<>();
    facts.put("version", Native.wl_version() + " (C ABI " + Native.wl_abi_version() + ")");
    facts.put("natives", String.valueOf(NativeLoader.loadedFrom()));
    facts.put(
        "jdk",
        System.getProperty("java.runtime.version") + ", " + System.getProperty("java.vendor"));
    facts.put("system", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    facts.put("processor", cpuinfo("model name").orElse(System.getProperty("os.arch")));
    facts.put("features", features());
    facts.put("kernels", Native.wl_isa_path());
    facts.put("allowed_cores", Integer.toString(Native.wl_allowed_cores()));
    facts.put("shared_memory", sharedMemory());
    facts.put("launch", launch(System.getenv()));
    return facts;
  }

  private static java.util.Optional<String> cpuinfo(String key) {
    try (var lines = Files.lines(Path.of("/proc/cpuinfo"), StandardCharsets.ISO_8859_1)) {
      return lines
          .filter(line -> line.startsWith(key))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst();
    } catch (IOException | java.io.UncheckedIOException unreadable) {
      return java.util.Optional.empty();
    }
  }

  private static String features() {
    Set<String> found = new TreeSet<>(List.of(cpuinfo("flags").orElse("").split(" ")));
    List<String> known = new ArrayList<>(FEATURES);
    known.retainAll(found);
    return known.isEmpty() ? "none that a kernel has a path for" : String.join(" ", known);
  }

  private static String sharedMemory() {
    try {
      long bytes = Files.getFileStore(Path.of("/dev/shm")).getUsableSpace();
      return (bytes >> 20) + " MiB free in /dev/shm";
    } catch (IOException missing) {
      return "/dev/shm is not there";
    }
  }

  /** What of the launchers' variables is set. */
  static String launch(Map<String, String> environment) {
    List<String> found = new ArrayList<>();
    for (String launcher : new TreeSet<>(LAUNCHERS.keySet())) {
      List<String> variables =
          LAUNCHERS.get(launcher).stream()
              .filter(environment::containsKey)
              .map(name -> name + "=" + environment.get(name))
              .toList();
      if (!variables.isEmpty()) {
        found.add(launcher + " (" + String.join(" ", variables) + ")");
      }
    }
    return found.isEmpty() ? "none detected" : String.join("; ", found);
  }

  private static Map<String, String> transports() {
    Map<String, String> transports = new LinkedHashMap<>();
    transports.put("threads", AVAILABLE);
    transports.put("processes", "this build has no shared-memory windows");
    transports.put("ucx", "this build holds no UCX");
    transports.put("cuda", "this build holds no CUDA windows");
    return transports;
  }

  private static void print(PrintWriter out, String indent, Map<String, String> facts) {
    facts.forEach((name, value) -> out.printf("%s%-14s %s%n", indent, name, value));
  }

  private static String json(
      Map<String, String> facts, Map<String, String> targets, Map<String, String> transports) {
    StringWriter text = new StringWriter();
    try (JsonGenerator generator = new JsonFactory().createGenerator(text)) {
      generator.writeStartObject();
      for (Map.Entry<String, String> fact : facts.entrySet()) {
        generator.writeStringField(fact.getKey(), fact.getValue());
      }
      write(generator, "targets", targets);
      write(generator, "transports", transports);
      generator.writeEndObject();
    } catch (IOException impossible) {
      throw new java.io.UncheckedIOException(impossible);
    }
    return text.toString();
  }

  private static void write(JsonGenerator generator, String name, Map<String, String> map)
      throws IOException {
    generator.writeObjectFieldStart(name);
    for (Map.Entry<String, String> entry : map.entrySet()) {
      generator.writeStringField(entry.getKey(), entry.getValue());
    }
    generator.writeEndObject();
  }
}
