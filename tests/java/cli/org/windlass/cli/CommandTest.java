// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.DeviceException;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;

class CommandTest {
  @ParameterizedTest
  @ValueSource(strings = {"", "reshard", "plan", "bench", "example", "doctor", "demo", "run"})
  void everyLevelHasHelp(String command) {
    Cli help = command.isEmpty() ? Cli.run("--help") : Cli.run(command, "--help");
    assertThat(help.status()).isZero();
    assertThat(help.out()).contains("Usage: windlass").contains("--help");
    assertThat(help.err()).isEmpty();
  }

  @Test
  void helpShowsNothingThatTheCommandAlwaysRefuses() {
    assertThat(Cli.run("demo", "--help").out()).contains("--deadline").doesNotContain("--launch");
    assertThat(Cli.run("reshard", "--help").out())
        .contains("--mode", "staged")
        .doesNotContain("gather-broadcast");
    assertThat(Cli.run("plan", "--help").out()).contains("gather-broadcast");
  }

  @Test
  void theCommandsAreListedAndTheirStatusesExplained() {
    String help = Cli.run("--help").out();
    assertThat(help).contains("reshard", "plan", "bench", "example", "doctor", "130", "interrupted");
    assertThat(help).contains("demo", "run", "report", "manifest");
    assertThat(Cli.run("--version").out()).startsWith("windlass ");
  }

  /** A command line, its status, and what its error line says. */
  static Stream<Arguments> wrong() {
    return Stream.of(
        arguments(List.of(), 2, "InvalidArgument: no command is given"),
        arguments(List.of("resharp"), 2, "InvalidArgument: unknown argument resharp"),
        arguments(List.of("plan", "--nonsense"), 2, "unknown argument --nonsense"),
        arguments(List.of("reshard"), 2, "InvalidArgument: reshard: Missing required"),
        arguments(List.of("reshard", "--to", "4:S0", "a"), 2, "OUT"),
        arguments(List.of("reshard", "--to", "4:S0", "a", "b", "c"), 2, "unknown argument c"),
        arguments(List.of("reshard", "--to", "4:S0", "--bucket-bytes", "x", "a", "b"), 2, "--bucket-bytes: 'x' is no size"),
        arguments(List.of("reshard", "--to", "4:S0", "--bucket-bytes", "0", "a", "b"), 2, "--bucket-bytes: '0' is no size"),
        arguments(List.of("reshard", "--to", "4:S0", "--deadline", "0", "a", "b"), 2, "--deadline 0.0"),
        arguments(List.of("reshard", "--to", "4:S0", "--mode", "slow", "a", "b"), 2, "--mode slow"),
        arguments(List.of("reshard", "--to", "4:S0", "--launch", "fork", "a", "b"), 2, "--launch fork"),
        arguments(List.of("reshard", "--to", "4:S0", "--mode", "gather-broadcast", "a", "b"), 2, "direct or staged"),
        arguments(List.of("reshard", "--to", "4:S0", "--launch", "processes", "a", "b"), 2, "a: no such file"),
        arguments(List.of("reshard", "--to", "4:S0", "--target", "cuda", "a", "b"), 3, "cuda"),
        arguments(List.of("reshard", "--to", "4:S0", "--target", "tpu", "a", "b"), 2, "tpu"),
        arguments(List.of("reshard", "--to", "4:S0", "--dtype", "f12", "a", "b"), 2, "'f12' is no dtype"),
        arguments(List.of("reshard", "--to", "4:S0", "--wire", "i32", "a", "b"), 2, "--wire i32: not a dtype"),
        arguments(List.of("plan", "--from", "2:S0", "--to", "2:S0", "--shape", "4", "--dtype", "f32", "--wire", "i32"), 2, "--wire i32: not a dtype"),
        arguments(List.of("plan", "--from", "4:S0"), 2, "--to is missing"),
        arguments(List.of("plan", "--mode", "stage"), 2, "--mode stage: must be direct or staged or gather-broadcast"),
        arguments(List.of("example", "nothing"), 2, "no such example"),
        arguments(List.of("example", "broadcast", "--counters"), 3, "target sim does not count what kernels do"),
        arguments(List.of("example", "broadcast", "--trace", "/tmp/trace.json"), 3, "run with target a2a3sim"),
        arguments(List.of("example", "--counters"), 2, "give the name of an example, or --all"),
        arguments(List.of("example", "broadcast", "--counters", "--launch", "processes"), 2, "use --launch threads"),
        arguments(List.of("example", "broadcast", "--target", "a5"), 3, "no libwindlass-a5.so"),
        arguments(List.of("example", "broadcast", "--target", "cuda"), 3, "target cuda is not available here: "),
        arguments(List.of("example", "broadcast", "--target", "a2a3"), 3, "libascendcl.so, does not open: ASCEND_HOME_PATH is"),
        arguments(List.of("example", "--all", "--ranks", "0"), 2, "--ranks 0"),
        arguments(List.of("example", "all-reduce", "--ranks", "1000"), 2, "--ranks 1000: 1 to 64 ranks run here"),
        arguments(List.of("bench", "barrier", "--ranks", "65"), 2, "--ranks 65: 1 to 64 ranks run here"),
        arguments(List.of("bench", "redistribute", "--from", "33:S0", "--to", "33:S0", "--shape", "66"), 2, "the ranks of the layouts, 66: 1 to 64 ranks"),
        arguments(List.of("example", "all-reduce", "--deadline", "-1"), 2, "--deadline -1.0"),
        arguments(List.of("reshard", "--from", "1:R", "--to", "1:R", "/dev/null/in", "out"), 2, "a part of this path is a file"),
        arguments(List.of("bench", "put", "--ops-csv", "/nonexistent/out.csv"), 2, "the folder /nonexistent does not exist"),
        arguments(List.of("bench", "put", "--ops-csv", "/tmp"), 2, "/tmp: is a folder"),
        arguments(List.of("bench", "redistribute", "--from", "2:S0", "--to", "2:P", "--shape", "4"), 2, "--to 2:P: a target cannot be Partial"),
        arguments(List.of("bench", "all-reduc", "--bytes", "4K"), 2, "bench 'all-reduc': no such operation"),
        arguments(List.of("bench", "put", "--bytes", "4,,"), 2, "--bytes: '4,,' has an empty size"),
        arguments(List.of("bench", "put", "--bytes", ","), 2, "--bytes: ',' has an empty size"),
        arguments(List.of("bench", "put", "--bytes", ""), 2, "--bytes: '' has an empty size"),
        arguments(List.of("bench", "put", "--dtype", "f4"), 3, "--dtype f4: its elements are less than a byte"),
        arguments(List.of("plan", "--tensors", "/dev/zero"), 2, "/dev/zero: has more than 100000000 bytes"),
        arguments(List.of("bench", "put", "--deadline", "1e-12"), 2, "--deadline 1.0E-12: not in [1e-9, 1e8]"),
        arguments(List.of("demo", "--layers", "0"), 2, "--layers 0"),
        arguments(List.of("demo", "--launch", "threads"), 2, "unknown argument --launch"),
        arguments(List.of("run", "true"), 2, "Missing required option: '--ranks=N'"),
        arguments(List.of("run", "-n", "2"), 2, "Missing required parameter: 'COMMAND"),
        arguments(List.of("run", "-n", "two", "true"), 2, "'two' is not an int"),
        arguments(List.of("run", "-n", "0", "true"), 2, "-n 0: 1 to 256 ranks run here"),
        arguments(List.of("run", "-n", "2000", "true"), 2, "-n 2000: 1 to 256 ranks run here"),
        arguments(List.of("run", "-n", "2", "--many", "true"), 2, "unknown argument --many"),
        arguments(List.of("run", "-n", "2", "no-such"), 2, "run: no-such: no such command on the"),
        arguments(List.of("run", "-n", "2", "./no-such"), 2, "run: ./no-such: no such file"),
        arguments(List.of("run", "-n", "2", "/etc/passwd"), 7, "run: rank 0: Cannot run"),
        arguments(List.of("run", "-n", "2", "--", "no-such", "--json"), 2, "no-such: no such"),
        arguments(List.of("report"), 2, "Missing required parameter: 'ADDRESS'"),
        arguments(List.of("report", "127.0.0.1:1"), 2, "report: there is no token"),
        arguments(List.of("report", "here"), 2, "it must be HOST:PORT"),
        arguments(List.of("report", "0"), 2, "report: 0 is no process id"),
        arguments(List.of("report", "999999999"), 2, "there is no process 999999999"),
        arguments(List.of("report", "1", "--every", "0"), 2, "report: --every 0.0: not in"),
        arguments(List.of("report", "1", "--deadline", "-1"), 2, "report: --deadline -1.0: not in"),
        arguments(List.of("run", "-n", "1", "--deadline", "0", "true"), 2, "run: --deadline 0.0: not"),
        arguments(List.of("report", "etcd://127.0.0.1:1/a"), 3, "name the process id of a rank"),
        arguments(List.of("manifest"), 2, "Missing required parameter: 'FILE'"),
        arguments(List.of("manifest", "m.json", "--devices", "2"), 2, "m.json: no such file"));
  }

  @ParameterizedTest
  @MethodSource("wrong")
  void anErrorIsOneLineAndAHint(List<String> arguments, int status, String reason) {
    Cli failed = Cli.run(arguments.toArray());
    assertThat(failed.status()).as(failed.err()).isEqualTo(status);
    assertThat(failed.out()).isEmpty();
    List<String> lines = failed.err().lines().toList();
    if (arguments.isEmpty()) {
      assertThat(lines.get(0)).startsWith("Usage: windlass");
      lines = lines.subList(lines.size() - 2, lines.size());
    }
    assertThat(lines).hasSize(2);
    assertThat(lines.get(0)).startsWith("windlass: ").contains(reason);
    assertThat(lines.get(1)).startsWith("hint: ").doesNotContain("written");
  }

  static Stream<Arguments> statuses() {
    return Stream.of(
        arguments(new InvalidArgumentException("m"), 2),
        arguments(new MismatchException("m"), 2),
        arguments(new UnsupportedException("m"), 3),
        arguments(new DeadlineExceededException("m"), 4),
        arguments(new PeerLostException("m"), 5),
        arguments(new AbortedException("m"), 5),
        arguments(new VerificationFailedException("m"), 6),
        arguments(new ResourceException("m"), 7),
        arguments(new IOException("m"), 7),
        arguments(new OutOfMemoryError("m"), 7),
        arguments(new DeviceException("m"), 1),
        arguments(new InternalException("m"), 1),
        arguments(new IllegalStateException("m"), 1),
        arguments(new UnsatisfiedLinkError("m"), 3),
        arguments(new ExceptionInInitializerError(new UnsatisfiedLinkError("m")), 3));
  }

  @ParameterizedTest
  @MethodSource("statuses")
  void everyKindOfFaultHasItsStatus(Throwable fault, int status) {
    java.io.StringWriter err = new java.io.StringWriter();
    assertThat(Complaint.of(fault).print(new java.io.PrintWriter(err), false, false)).isEqualTo(status);
    assertThat(err.toString().lines()).hasSize(2);
  }

  @Test
  void aStackTraceIsShownOnRequestOnly() {
    String quiet = Cli.run("plan", "--from", "x").err();
    String verbose = Cli.run("plan", "--from", "x", "--verbose").err();
    assertThat(quiet).doesNotContain("\tat ");
    assertThat(verbose).contains("\tat org.windlass");
    assertThat(Cli.run("--verbose", "plan", "--from", "x").err()).contains("\tat org.windlass");
  }

  /** Wrong command lines of commands with --json as their last option. */
  static Stream<Arguments> wrongWithJson() {
    return wrong()
        .filter(
            each -> {
              List<?> words = (List<?>) each.get()[0];
              return !words.isEmpty() && !Set.of("example", "demo", "run").contains(words.get(0));
            });
  }

  @ParameterizedTest
  @MethodSource("wrongWithJson")
  void anErrorIsOneObjectWithJson(List<String> arguments, int status, String reason)
      throws IOException {
    List<Object> all = new ArrayList<>(arguments);
    all.add("--json");
    Cli failed = Cli.run(all.toArray());
    assertThat(failed.status()).as(failed.err()).isEqualTo(status);
    assertThat(failed.out()).isEmpty();
    assertThat(failed.err().lines()).hasSize(1);
    Map<String, Object> error = object(failed.err());
    assertThat(error.keySet()).containsExactly("code", "status", "message", "hint");
    assertThat(error).containsEntry("status", (long) status);
    assertThat((String) error.get("message")).contains(reason.replaceFirst("^[A-Z][A-Za-z]+: ", ""));
  }

  @Test
  void theTraceOfAnErrorWithJsonStandsInIt() throws IOException {
    Cli failed = Cli.run("plan", "--from", "x", "--json", "--verbose");
    assertThat(failed.err().lines()).hasSize(1);
    assertThat((String) object(failed.err()).get("trace")).contains("\tat org.windlass");
  }

  /** The members of an object: texts, longs, and null for what is neither. */
  private static Map<String, Object> object(String text) throws IOException {
    Map<String, Object> members = new LinkedHashMap<>();
    try (JsonParser parser = new JsonFactory().createParser(text)) {
      assertThat(parser.nextToken()).isEqualTo(JsonToken.START_OBJECT);
      while (parser.nextToken() != JsonToken.END_OBJECT) {
        String name = parser.currentName();
        JsonToken token = parser.nextToken();
        members.put(
            name,
            token == JsonToken.VALUE_STRING
                ? (Object) parser.getText()
                : token == JsonToken.VALUE_NUMBER_INT ? (Object) parser.getLongValue() : null);
        parser.skipChildren();
      }
    }
    return members;
  }

  @Test
  void aDeadlineHoldsForExamples() {
    Cli late = Cli.run("example", "all-gather", "--ranks", "8", "--deadline", "1e-9");
    assertThat(late.status()).as(late.err()).isEqualTo(4);
    assertThat(late.err()).contains("hint: if it is slow rather than stuck, allow more seconds with --deadline");
  }

  @Test
  void aMessageOfSeveralLinesBecomesOne() {
    java.io.StringWriter err = new java.io.StringWriter();
    Complaint.of(new ResourceException("one\n  two\r\nthree"))
        .print(new java.io.PrintWriter(err), false, false);
    assertThat(err.toString()).startsWith("windlass: Resource: one; two; three\nhint: ");
  }

  @Test
  void doctorSaysWhatThereIs() throws IOException {
    Cli wrapped = Cli.run("doctor");
    assertThat(wrapped.out().lines()).allSatisfy(line -> assertThat(line).matches(".{1,80}|\\S* *\\S+"));
    Cli text = new Cli(wrapped.status(), unwrapped(wrapped.out()), wrapped.err());
    assertThat(text.status()).isZero();
    assertThat(text.out()).endsWith("\n").containsPattern("\nverdict +ready: targets sim.*; transports threads, processes.*\n$");
    assertThat(text.out()).containsPattern("tmpdir +/\\S*, which may execute\n");
    assertThat(text.out().split("libcuda.so.1, does not open", -1)).hasSizeLessThanOrEqualTo(2);
    assertThat(text.out()).containsPattern("version +windlass [0-9]").contains("of the C ABI");
    assertThat(text.out()).contains("jdk", "allowed_cores", "launch", "cuda");
    assertThat(text.out()).containsPattern("sim +available\\n").containsPattern("threads +available\\n");
    assertThat(text.out()).containsPattern("processes +available\\n");
    assertThat(text.out())
        .containsPattern(
            "ucx +(available: UCX [0-9.]+ over lo, only this machine, as \\S+ is not set; network"
                + " devices: .*\\blo\\b|ranks on several hosts need UCX, by libwindlass-ucx.so: )");
    Cli json = Cli.run("doctor", "--json");
    assertThat(json.out().lines()).hasSize(1);
    Map<String, Object> facts = object(json.out());
    assertThat(facts.get("allowed_cores")).isInstanceOf(Long.class);
    assertThat(facts.get("abi")).isInstanceOf(Long.class);
    assertThat(facts.get("shm_free_bytes")).isInstanceOf(Long.class);
    assertThat(facts.get("version")).isInstanceOf(String.class);
    assertThat((String) facts.get("peer_memory"))
        .matches("process_vm_readv: works here|stage: .+");
    assertThat(facts).containsKeys("features", "targets", "transports", "cuda", "tmpdir");
    assertThat((String) facts.get("verdict")).startsWith("ready: targets sim");
    assertThat(text.out()).containsPattern("(?m)^cuda\\n  driver +\\S");
  }

  /** What doctor prints, with each fact on one line. */
  static String unwrapped(String doctor) {
    return doctor.replaceAll("\\n {16,18}", " ");
  }

  @Test
  void doctorSaysWhereProgramsMayNotRun() {
    assertThat(DoctorCommand.folderOfPrograms(Path.of("/proc")))
        .startsWith("refused: /proc cannot hold programs (").contains("java.io.tmpdir");
  }

  /** Ranks reach each other on GPUs where the target runs, and nowhere else. */
  @Test
  void doctorSaysOfCudaAsATransportWhatItSaysOfTheTarget() {
    assertThat(Cli.run("doctor").out())
        .containsPattern("(?s)\\n  cuda +(available\\n.*\\n  cuda +available|.*\\n  cuda +as target cuda)\\n");
    assertThat(Cli.run("doctor", "--json").out())
        .containsPattern("\"targets\":\\{.*\"cuda\":(\".+\")[,}].*\"transports\":\\{.*\"cuda\":\\1}");
  }

  @Test
  void doctorDetectsLaunchers() {
    assertThat(DoctorCommand.launch(Map.of("HOME", "/"))).isEqualTo("none detected");
    assertThat(DoctorCommand.launch(Map.of("RANK", "3", "WORLD_SIZE", "8")))
        .startsWith("torchrun: rank 3 of 8, no job, rendezvous or token, so that ranks can't join");
    assertThat(DoctorCommand.launch(Map.of("OMPI_COMM_WORLD_RANK", "1", "SLURM_PROCID", "0")))
        .startsWith("refused: OMPI_COMM_WORLD_RANK is '1', and OMPI_COMM_WORLD_SIZE is not set");
  }

  @Test
  void doctorSaysWhereJobsConnect() {
    assertThat(DoctorCommand.linkRendezvous(Map.of()))
        .isEqualTo("WINDLASS_LINK_RENDEZVOUS is not set");
    String formerSetting = "WINDLASS_MEETING";
    assertThat(DoctorCommand.linkRendezvous(Map.of(formerSetting, "demo")))
        .startsWith("refused: " + formerSetting + " is set, whose name is now WINDLASS_LINK_R");
    assertThat(DoctorCommand.linkRendezvous(Map.of("WINDLASS_LINK_RENDEZVOUS", "demo")))
        .isEqualTo("WINDLASS_LINK_RENDEZVOUS is demo");
    assertThat(DoctorCommand.linkRendezvous(Map.of("WINDLASS_LINK_RENDEZVOUS", "10.0.0.1:7000")))
        .isEqualTo("WINDLASS_LINK_RENDEZVOUS is 10.0.0.1:7000");
    assertThat(DoctorCommand.linkRendezvous(Map.of("WINDLASS_LINK_RENDEZVOUS", "a:b:c")))
        .startsWith("refused: WINDLASS_LINK_RENDEZVOUS is 'a:b:c'; its port must be a number");
    for (String secret : List.of("etcd://u:secret@h:1/p\n", "u:secret@h:1", "secret@h:x")) {
      assertThat(DoctorCommand.linkRendezvous(Map.of("WINDLASS_LINK_RENDEZVOUS", secret)))
          .startsWith("refused: WINDLASS_LINK_RENDEZVOUS is ")
          .doesNotContain("secret")
          .doesNotContain("\n");
    }
    assertThat(Cli.run("doctor", "--json").out())
        .contains("\"link_rendezvous\":\"WINDLASS_LINK_RENDEZVOUS is ");
  }

  @Test
  void doctorReadsTheToken(@TempDir Path folder) throws IOException {
    assertThat(DoctorCommand.token(Map.of())).isEqualTo("none");
    Map<String, String> gone = Map.of("WINDLASS_TOKEN_FILE", folder.resolve("gone").toString());
    assertThat(DoctorCommand.token(gone))
        .startsWith("refused: ")
        .endsWith("gone: cannot be read: No such file or directory");
    String digits = "0123456789abcdef".repeat(4);
    Path file = Files.writeString(folder.resolve("token"), digits);
    Map<String, String> there = Map.of("WINDLASS_TOKEN_FILE", file.toString());
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    assertThat(DoctorCommand.token(there)).contains("chmod 600").doesNotContain(digits);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    assertThat(DoctorCommand.token(there)).isEqualTo("from WINDLASS_TOKEN_FILE");
    assertThat(DoctorCommand.token(Map.of("WINDLASS_TOKEN", "secret")))
        .startsWith("refused: WINDLASS_TOKEN has no token")
        .doesNotContain("secret");
    assertThat(Cli.run("doctor", "--json").out()).contains("\"token\":\"");
  }

  @Test
  void examplesAreListedAndRun() {
    Cli list = Cli.run("example");
    assertThat(list.status()).isZero();
    assertThat(list.out()).contains("all-to-all", "broadcast", "weight-sync", "torch-trainer");
    Cli one = Cli.run("example", "broadcast", "--ranks", "3", "--target", "sim");
    assertThat(one.status()).as(one.err()).isZero();
    assertThat(one.out()).contains("broadcast");
  }
}
