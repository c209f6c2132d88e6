// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.testing.Ports;

/**
 * The files of {@code examples/launchers}, each of which starts four ranks on two hosts, or a host
 * each: here by names, over loopback. Slurm's commands are played by scripts.
 */
@Timeout(240)
class LauncherFilesTest {
  private static final int RANKS = 4;
  private static final String TOKEN = "0123456789abcdef".repeat(4);
  private static final Path FILES =
      Path.of(System.getProperty("windlass.root"), "examples/launchers");

  @TempDir private Path folder;
  private final List<Process> started = new ArrayList<>();

  @BeforeEach
  void requireUcx() {
    Path natives = Path.of(System.getProperty("org.windlass.library.path"));
    assumeTrue(
        Files.exists(natives.resolve("libwindlass-ucx.so")),
        "this build found no headers of UCX: Debian's libucx-dev");
  }

  @AfterEach
  void end() {
    started.forEach(
        process -> {
          process.descendants().forEach(ProcessHandle::destroyForcibly);
          process.destroyForcibly();
        });
  }

  private Path script(String name, String... lines) throws IOException {
    Path file = folder.resolve(name);
    Files.writeString(file, "#!/bin/sh\n" + String.join("\n", lines) + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
    return file;
  }

  private static String java(String... options) {
    return System.getProperty("java.home") + "/bin/java -XX:TieredStopAtLevel=1 "
        + String.join(" ", options);
  }

  /** What a launcher starts: ranks 0 and 1 on one host, and 2 and 3 on another. */
  private Path program() throws IOException {
    String natives = System.getProperty("org.windlass.library.path");
    return script(
        "program",
        "rank=${RANK:-${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}}",
        "export WINDLASS_HOST=node-$((rank / 2))",
        "exec " + java("-Xmx128m", "-Dorg.windlass.library.path=" + natives)
            + " -cp '" + System.getProperty("java.class.path") + "' " + SumOfRanks.class.getName());
  }

  private Path token() throws IOException {
    Path file = Files.writeString(folder.resolve("token"), TOKEN);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    return file;
  }

  /** Its output goes to a file of {@code name}. */
  private Process start(String name, List<String> command, Map<String, String> variables)
      throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(each -> each.startsWith("WINDLASS_"));
    builder.environment().put("WINDLASS_UCX_NET_DEVICES", "lo");
    builder.environment().put("PATH", folder + ":" + System.getenv("PATH"));
    builder.environment().putAll(variables);
    builder.redirectErrorStream(true).redirectOutput(folder.resolve(name + ".out").toFile());
    Process process = builder.start();
    started.add(process);
    return process;
  }

  private String ended(String name, Process process) throws Exception {
    boolean isOver = process.waitFor(90, TimeUnit.SECONDS);
    String said = Files.readString(folder.resolve(name + ".out"));
    assertThat(isOver).as("%s ends; it said: %s", name, said).isTrue();
    assertThat(process.exitValue()).as("%s said: %s", name, said).isZero();
    return said;
  }

  private static void assertAllAdded(String said) {
    for (int rank = 0; rank < RANKS; rank++) {
      assertThat(said).contains("rank " + rank + " of " + RANKS + ": 1048576 sums are right\n");
    }
  }

  /** A job's id by which the port that its script makes of it is free. */
  private static int slurmJob() throws IOException {
    for (int port = 17_000; port < 18_000; port++) {
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return 41_000 + socket.getLocalPort() - 17_000;
      } catch (IOException taken) {
        // Another program listens there.
      }
    }
    throw new IOException("no port from 17000 to 17999 is free");
  }

  @Test
  void tasksOfSlurmAreRanksOfSeveralHosts() throws Exception {
    script("scontrol", "[ \"$*\" = 'show hostnames these' ] || exit 1", "printf 'localhost\\nb\\n'");
    script(
        "srun",
        "while [ \"${1#--}\" != \"$1\" ]; do shift; done",
        "for task in 0 1 2 3; do",
        "  SLURM_PROCID=$task SLURM_NTASKS=4 SLURM_LOCALID=$((task % 2)) SLURM_STEP_ID=0 \"$@\" &",
        "  tasks=\"$tasks $!\"",
        "done",
        "for task in $tasks; do wait \"$task\" || exit 1; done");
    Map<String, String> batch =
        Map.of(
            "SLURM_JOB_ID", "" + slurmJob(),
            "SLURM_JOB_NODELIST", "these",
            "SLURM_CPUS_PER_TASK", "4",
            "WINDLASS_TOKEN_FILE", token().toString());
    List<String> command = List.of(FILES + "/slurm.sbatch", program().toString());
    assertAllAdded(ended("slurm", start("slurm", command, batch)));
  }

  @Test
  void mpirunStartsRanksOfSeveralHosts() throws Exception {
    String mpirun = "/usr/bin/mpirun.openmpi";
    assumeTrue(
        Files.isExecutable(Path.of(mpirun)), "no " + mpirun + ": apt-get install openmpi-bin");
    script("mpirun", "exec " + mpirun + " --allow-run-as-root --oversubscribe \"$@\"");
    Map<String, String> variables =
        Map.of(
            "HOSTS", "localhost:4",
            "PORT", "" + Ports.free(),
            "WINDLASS_TOKEN_FILE", token().toString());
    List<String> command = List.of(FILES + "/mpirun.sh", program().toString());
    assertAllAdded(ended("mpirun", start("mpirun", command, variables)));
  }

  @Test
  void torchrunOfEachHostStartsItsRanks() throws Exception {
    String torchrun = "/usr/bin/torchrun";
    assumeTrue(
        Files.isExecutable(Path.of(torchrun)), "no " + torchrun + ": apt-get install python3-torch");
    script("torchrun", "exec " + torchrun + " \"$@\"");
    Map<String, String> variables = new HashMap<>();
    variables.put("FIRST", "127.0.0.1");
    variables.put("NODES", "2");
    variables.put("PORT", "" + Ports.free());
    variables.put("WINDLASS_TOKEN_FILE", token().toString());
    List<String> command = List.of(FILES + "/torchrun.sh", program().toString());
    List<Process> nodes = new ArrayList<>();
    for (String node : List.of("0", "1")) {
      variables.put("NODE", node);
      nodes.add(start("node-" + node, command, variables));
    }
    String said = ended("node-0", nodes.get(0)) + ended("node-1", nodes.get(1));
    assertAllAdded(said);
  }

  /** Without what names the hosts, and without a command. */
  @ParameterizedTest
  @CsvSource({
    "mpirun.sh program, 'usage: HOSTS=node-a:2,node-b:2 [PORT=7000] '",
    "torchrun.sh program, 'usage: FIRST=node-a NODES=2 NODE=0 [PORT=29500] '",
    "mpirun.sh, 'usage: HOSTS='",
    "torchrun.sh, 'usage: FIRST='"
  })
  void aFileThatIsToldTooLittleSaysHowItIsUsed(String words, String usage) throws Exception {
    List<String> command = new ArrayList<>(List.of(words.split(" ")));
    command.set(0, FILES + "/" + command.get(0));
    Map<String, String> hosts = Map.of("HOSTS", "a:2", "FIRST", "a", "NODES", "1", "NODE", "0");
    Process process = start("usage", command, command.size() == 1 ? hosts : Map.of());
    assertThat(process.waitFor(90, TimeUnit.SECONDS)).isTrue();
    assertThat(Files.readString(folder.resolve("usage.out"))).startsWith(usage);
    assertThat(process.exitValue()).isEqualTo(2);
  }

  /** Each pod is a process with its variables and command; rank 0's name is known last. */
  @Test
  void podsOfKubernetesStartAtANameThatComesLater() throws Exception {
    KubernetesManifest manifest = KubernetesManifest.read();
    Path names = Files.createFile(folder.resolve("hosts"));
    Path security =
        Files.writeString(folder.resolve("security"), "networkaddress.cache.negative.ttl=1\n");
    String options =
        "-Djdk.net.hosts.file=" + names + " -Djava.security.properties=" + security
            + " -Dorg.windlass.library.path=" + System.getProperty("org.windlass.library.path");
    int port = Ports.free();
    List<String> command = new ArrayList<>(manifest.command());
    assertThat(command.get(0)).isEqualTo("java");
    command.set(0, System.getProperty("java.home") + "/bin/java");
    command.set(command.indexOf("/app/*"), System.getProperty("java.class.path"));
    Map<Integer, Process> pods = new HashMap<>();
    for (int index = RANKS - 1; index >= 0; index--) {
      Map<String, String> variables = variables(manifest, index, port);
      variables.put("JAVA_TOOL_OPTIONS", options);
      pods.put(index, start("pod-" + index, command, variables));
    }
    TimeUnit.SECONDS.sleep(3); // all have looked the name up by then
    assertThat(pods.values()).allMatch(Process::isAlive, "waits for the name");
    Files.writeString(names, "127.0.0.1 " + manifest.rendezvous()[0] + "\n");
    StringBuilder said = new StringBuilder();
    for (int index = 0; index < RANKS; index++) {
      said.append(ended("pod-" + index, pods.get(index)));
    }
    assertAllAdded(said.toString());
  }

  /** As the pod of that index gets them, but for what only a cluster has. */
  private static Map<String, String> variables(KubernetesManifest manifest, int index, int port)
      throws IOException {
    Map<String, String> variables = new HashMap<>();
    manifest
        .variables()
        .forEach(
            (name, said) -> {
              JsonObject from = said.getAsJsonObject("valueFrom");
              variables.put(
                  name,
                  from == null
                      ? manifest.value(name)
                      : from.has("secretKeyRef") ? TOKEN : "" + index);
            });
    variables.put("WINDLASS_HOST", "pod-" + index);
    variables.put("WINDLASS_UCX_NET_DEVICES", "lo");
    variables.put("WINDLASS_RENDEZVOUS", manifest.rendezvous()[0] + ":" + port);
    int first = Ports.free(100);
    variables.put("WINDLASS_UCX_PORT_RANGE", first + "-" + (first + 99));
    return variables;
  }
}
