// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.bench.data.ByteSize;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Wrapped;
import org.windlass.internal.json.JsonObject;
import org.windlass.job.Job;
import org.windlass.kernel.Target;
import org.windlass.launch.LaunchEnvironment;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Runs {@code windlass doctor}: prints what this machine and this build support. */
@Command(
    name = "doctor",
    description = "Shows what works on this machine with this build, and what not.",
    footer = {
      "  windlass doctor",
      "  windlass doctor --json"
    })
final class DoctorCommand implements Runnable {
  private static final String NET_DEVICES = "WINDLASS_UCX_NET_DEVICES";
  private static final String LINK_RENDEZVOUS = "WINDLASS_LINK_RENDEZVOUS";
  private static final String AVAILABLE = "available";
  private static final String NO_DRIVER = "the driver is missing (see cuda below)";
  private static final String REFUSED = "refused: ";
  private static final String NO_NATIVES = "the natives do not load";

  private static final List<String> FEATURES =
      List.of("avx2", "f16c", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16");

  @Spec private CommandSpec spec;

  @Mixin private JsonOption json;

  @Override
  public void run() {
    Optional<String> refusal =
        NativeLibrary.problem().map(why -> why.strip().replaceAll("\\s*\\R\\s*", " "));
    Map<Target, String> targets = targets(refusal.isEmpty());
    Map<String, String> transports =
        transports(refusal.isEmpty(), Objects.requireNonNull(targets.get(Target.CUDA)));
    CudaReport cuda =
        refusal.isEmpty() ? CudaReport.ofMachine() : CudaReport.refused(NO_NATIVES);
    Map<String, Object> facts = facts(refusal, targets);
    String verdict = verdict(facts, targets, transports);
    PrintWriter out = spec.commandLine().getOut();
    if (json.isGiven()) {
      facts.put("targets", targets);
      facts.put("transports", transports);
      facts.put("cuda", cuda.json());
      facts.put("verdict", verdict);
      out.println(JsonObject.line(facts));
      return;
    }
    print(out, "", forPeople(facts));
    out.println("targets");
    if (refusal.isEmpty()) {
      // The line of target cuda already shows the driver's reason.
      String why = cuda.refusal().orElse(NO_DRIVER);
      targets.computeIfPresent(Target.CUDA, (name, state) -> state.replace(why, NO_DRIVER));
    }
    print(out, "  ", targets);
    out.println("transports");
    transports.computeIfPresent(
        "cuda", (name, state) -> state.equals(AVAILABLE) ? state : "as target cuda");
    print(out, "  ", transports);
    out.println("cuda");
    print(out, "  ", cuda.lines());
    print(out, "", Map.of("verdict", verdict));
  }

  /** Returns one line that says what works here, and which of the reported facts need attention. */
  private static String verdict(
      Map<String, Object> facts, Map<Target, String> targets, Map<String, String> transports) {
    List<String> wrong =
        facts.entrySet().stream()
            .filter(fact -> fact.getValue().toString().startsWith(REFUSED))
            .map(Map.Entry::getKey)
            .toList();
    String works = "targets " + available(targets) + "; transports " + available(transports);
    if (!targets.containsValue(AVAILABLE)) {
      return "not usable: no target is available";
    }
    return wrong.isEmpty()
        ? "ready: " + works
        : "correct " + String.join(", ", wrong) + "; " + works;
  }

  private static String available(Map<?, String> states) {
    return states.entrySet().stream()
        .filter(state -> state.getValue().startsWith(AVAILABLE))
        .map(state -> state.getKey().toString())
        .collect(Collectors.joining(", "));
  }

  private static Map<Target, String> targets(boolean loaded) {
    Map<Target, String> targets = new LinkedHashMap<>();
    for (Target target : Target.values()) {
      targets.put(
          target,
          !loaded
              ? NO_NATIVES
              : target.available() ? refusal().orElse(AVAILABLE) : target.whyNot());
    }
    return targets;
  }

  /** Returns the reason why a communicator cannot be made here, or empty if it can. */
  private static Optional<String> refusal() {
    try {
      LocalGroup.of(1).close();
      return Optional.empty();
    } catch (WindlassException refused) {
      return Optional.of(refused.getMessage());
    }
  }

  private static Map<String, Object> facts(
      Optional<String> nativeRefusal, Map<Target, String> targets) {
    Map<String, Object> facts = new LinkedHashMap<>();
    boolean loaded = nativeRefusal.isEmpty();
    Main.Version.text().ifPresent(text -> facts.put("version", text));
    if (loaded) {
      facts.put("abi", NativeLibrary.abiVersion());
    }
    facts.put("natives", nativeRefusal.orElseGet(NativeLibrary::place));
    facts.put(
        "jdk",
        System.getProperty("java.runtime.version") + ", " + System.getProperty("java.vendor"));
    facts.put("system", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    facts.put("processor", cpuinfo("model name").orElse(System.getProperty("os.arch")));
    facts.put("features", features());
    if (loaded) {
      String state = Objects.requireNonNull(targets.get(Target.loaded()));
      facts.put("kernels", state.equals(AVAILABLE) ? NativeLibrary.vectorPath() : state);
      facts.put("allowed_cores", NativeLibrary.allowedCores());
      facts.put("peer_memory", orRefusal(NativeLibrary::peerMemory));
    }
    sharedMemory()
        .ifPresentOrElse(
            bytes -> facts.put("shm_free_bytes", bytes),
            () -> facts.put("shm", "/dev/shm is not there"));
    facts.put("tmpdir", folderOfPrograms(Path.of(System.getProperty("java.io.tmpdir"))));
    facts.put("launch", launch(System.getenv()));
    facts.put("token", token(System.getenv()));
    facts.put("link_rendezvous", linkRendezvous(System.getenv()));
    return facts;
  }

  private static Map<String, Object> forPeople(Map<String, Object> facts) {
    Map<String, Object> told = new LinkedHashMap<>(facts);
    told.computeIfPresent("version", (name, version) -> "windlass " + version);
    told.computeIfPresent(
        "abi", (name, version) -> "version " + version + " of the C ABI, between jar and natives");
    told.computeIfPresent("shm_free_bytes", (name, bytes) -> ByteSize.rounded((Long) bytes));
    return told;
  }

  private static String orRefusal(Supplier<String> fact) {
    try {
      return fact.get();
    } catch (InvalidArgumentException | ResourceException refused) {
      return REFUSED + refused.getMessage();
    }
  }

  private static Optional<String> cpuinfo(String key) {
    try (var lines = Files.lines(Path.of("/proc/cpuinfo"), StandardCharsets.ISO_8859_1)) {
      return lines
          .filter(line -> line.startsWith(key))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst();
    } catch (IOException | UncheckedIOException unreadable) {
      return Optional.empty();
    }
  }

  private static List<String> features() {
    Set<String> found = new HashSet<>(List.of(cpuinfo("flags").orElse("").split(" ")));
    return FEATURES.stream().filter(found::contains).toList();
  }

  private static Optional<Long> sharedMemory() {
    try {
      return Optional.of(Files.getFileStore(Path.of("/dev/shm")).getUsableSpace());
    } catch (IOException missing) {
      return Optional.empty();
    }
  }

  /**
   * Returns the folder or, if code can't be loaded from it as the native library is, the reason.
   */
  static String folderOfPrograms(Path folder) {
    Path program = null;
    try {
      program = Files.createTempFile(folder, "windlass-doctor", "");
      Files.writeString(program, "#!/bin/sh\n");
      Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwx------"));
      new ProcessBuilder(program.toString()).start().waitFor();
      return folder + ", which may execute";
    } catch (IOException refused) {
      return REFUSED + folder + " cannot hold programs (" + refused.getMessage()
          + "); set -Djava.io.tmpdir to a folder of a file system without noexec";
    } catch (InterruptedException end) {
      Thread.currentThread().interrupt();
      return folder.toString();
    } finally {
      if (program != null) {
        program.toFile().delete();
      }
    }
  }

  static String launch(Map<String, String> variables) {
    return orRefusal(
        () ->
            LaunchEnvironment.of(variables)
                .map(LaunchEnvironment::toString)
                .orElse("none detected"));
  }

  /** Describes the source of the token, or an error in it. Never shows the token itself. */
  static String token(Map<String, String> variables) {
    return orRefusal(
        () ->
            LaunchEnvironment.checkedToken(variables)
                .map(name -> "from " + name)
                .orElse("none"));
  }

  /** Returns the address at which jobs connect, or the error in it, without a password. */
  static String linkRendezvous(Map<String, String> variables) {
    try {
      return Job.linkRendezvous(variables)
          .map(place -> LINK_RENDEZVOUS + " is " + place)
          .orElse(LINK_RENDEZVOUS + " is not set");
    } catch (InvalidArgumentException refused) {
      return REFUSED + refused.getMessage().replaceAll("(?s)'.*@", "'...@");
    }
  }

  private static Map<String, String> transports(boolean loaded, String cuda) {
    Map<String, String> transports = new LinkedHashMap<>();
    transports.put("threads", loaded ? AVAILABLE : NO_NATIVES);
    transports.put("processes", loaded ? AVAILABLE : NO_NATIVES);
    transports.put("ucx", loaded ? ucx(System.getenv()) : NO_NATIVES);
    transports.put("cuda", cuda);
    return transports;
  }

  private static String ucx(Map<String, String> variables) {
    String devices = variables.getOrDefault(NET_DEVICES, "");
    String over =
        devices.isEmpty()
            ? "lo, only this machine, as " + NET_DEVICES + " is not set"
            : devices.replaceAll("\\p{Cntrl}", "?") + ", as " + NET_DEVICES + " says";
    try {
      String[] words = NativeLibrary.ucx().split(": ", 2);
      return AVAILABLE + ": UCX " + words[0] + " over " + over + "; network devices: " + words[1];
    } catch (WindlassException refused) {
      return refused.getMessage().strip();
    }
  }

  private static void print(PrintWriter out, String indent, Map<?, ?> facts) {
    facts.forEach(
        (name, value) ->
            out.println(Wrapped.text(String.format("%s%-15s ", indent, name), text(value))));
  }

  private static String text(Object value) {
    if (value instanceof List<?> several) {
      return several.isEmpty()
          ? "none"
          : several.stream().map(Object::toString).collect(Collectors.joining(" "));
    }
    return value.toString();
  }
}
