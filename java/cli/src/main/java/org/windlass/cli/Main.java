// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.windlass.NativeLibrary;
import org.windlass.error.ErrorCode;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.kernel.Target;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** Entry point of the {@code windlass} command. */
@Command(
    name = "windlass",
    description = "Moves tensors between ranks.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    footer = {"  windlass doctor", "  windlass help reshard"},
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {
      "0:done",
      "1:a fault of Windlass or of the device",
      "2:bad usage or input, or ranks disagree; nothing was written",
      "3:a target or feature is not available here",
      "4:a deadline passed",
      "5:a peer was lost, or a rank aborted",
      "6:verification failed",
      "7:disk, memory, /dev/shm, permission, or output that cannot be written",
      "130:interrupted"
    })
public final class Main implements Runnable {
  private static final String RUN = "run";

  /** Commands that are about all other commands. */
  private static final Set<String> OF_ALL = Set.of("help", "completion");

  /** Width of the longest name of an option in help. */
  private static final int OPTION_WIDTH = 24;

  private static final Map<String, Supplier<Object>> COMMANDS = commands();

  @Spec private CommandSpec spec;

  @Option(
      names = "--verbose",
      scope = ScopeType.INHERIT,
      description = "Print the stack trace of an error.")
  private boolean verbose;

  @Option(
      names = {"-q", "--quiet"},
      scope = ScopeType.INHERIT,
      description = "Print no progress and no warnings.")
  private boolean quiet;

  public static void main(String[] args) {
    // A lack of descriptors is reported with these classes, and could not load them.
    WindlassException.of(ErrorCode.RESOURCE.number(), "", List.of());
    ProcessEnd.awaitSignals(asksForJson(args));
    chooseTarget(args);
    int status =
        run(stream(FileDescriptor.out), new PrintWriter(stream(FileDescriptor.err), true), args);
    ProcessEnd.exit(status);
  }

  /**
   * Chooses the target before the command line is parsed: its version comes from the target's
   * library.
   */
  private static void chooseTarget(String... args) {
    List<String> own = options(args);
    for (int i = 0; i < own.size(); i++) {
      String word = own.get(i);
      if (word.startsWith("--target=")) {
        use(word.substring("--target=".length()));
      } else if (word.equals("--target") && i + 1 < own.size()) {
        use(own.get(i + 1));
      }
    }
  }

  private static void use(String target) {
    try {
      Target.parse(target).use();
    } catch (WindlassException refused) {
      // The command itself reports the error, since it takes this option too.
    }
  }

  /** Runs a command line, writes results to {@code out}, and returns the exit status. */
  public static int run(Writer out, PrintWriter err, String... args) {
    Main main = new Main();
    Results results = new Results(out);
    boolean json = asksForJson(args);
    Function<Complaint, Integer> complain =
        complaint -> {
          if (results.isReaderGone() || ProcessEnd.isNear()) {
            return ErrorCode.RESOURCE.exitStatus();
          }
          Complaint first = results.complaint().orElse(complaint);
          if (LaunchedRank.isThis()) {
            return LaunchedRank.tell(first);
          }
          return first.print(err, json, main.verbose);
        };
    try {
      CommandLine line = new CommandLine(main);
      addCommands(line, args);
      line.setOut(new PrintWriter(results, true));
      line.setErr(err);
      // Take arguments literally, also if one begins with @, as a decorator of a name may.
      line.setExpandAtFiles(false);
      // The arguments after the command that ranks run belong to that command, and not to windlass.
      line.getSubcommands().values().stream()
          .filter(command -> command.getCommandName().equals(RUN))
          .forEach(command -> command.setStopAtPositional(true));
      line.registerConverter(Path.class, Main::path);
      line.setParameterExceptionHandler(
          (wrong, given) -> complain.apply(Complaint.ofUsage(wrong)));
      line.setExecutionStrategy(
          parsed -> {
            try {
              return new CommandLine.RunLast().execute(parsed);
            } catch (UncheckedIOException unwritten) {
              // The parser prints help and version. If such a write fails, this reports the
              // failure.
              return complain.apply(Complaint.of(unwritten));
            }
          });
      line.setExecutionExceptionHandler(
          (fault, command, result) ->
              complain.apply(
                  fault instanceof ParameterException wrong
                      ? Complaint.ofUsage(wrong)
                      : Complaint.of(fault, command.getCommandSpec().qualifiedName())));
      int status = line.execute(args);
      if (status == 0) {
        results.flush();
      }
      return status;
    } catch (RuntimeException | Error fault) {
      return complain.apply(Complaint.of(fault));
    } finally {
      err.flush();
    }
  }

  private static Map<String, Supplier<Object>> commands() {
    Map<String, Supplier<Object>> commands = new LinkedHashMap<>();
    commands.put("reshard", ReshardCommand::new);
    commands.put("plan", PlanCommand::new);
    commands.put("bench", BenchCommand::new);
    commands.put("example", ExampleCommand::new);
    commands.put("doctor", DoctorCommand::new);
    commands.put("demo", DemoCommand::new);
    commands.put(RUN, RunCommand::new);
    commands.put("report", ReportCommand::new);
    commands.put("manifest", ManifestCommand::new);
    commands.put("completion", CompletionCommand::new);
    commands.put("help", HelpCommand::new);
    return commands;
  }

  static Stream<String> commandNames() {
    return COMMANDS.keySet().stream();
  }

  static void addCommands(CommandLine line, String... args) {
    // Building the description of a command takes tens of milliseconds.
    Optional<String> named =
        firstWord(args).filter(COMMANDS::containsKey).filter(name -> !OF_ALL.contains(name));
    COMMANDS.forEach(
        (name, command) -> {
          if (named.isEmpty() || named.get().equals(name)) {
            CommandLine added = new CommandLine(command.get());
            added.getCommandSpec().addOption(help());
            line.addSubcommand(name, added);
          }
        });
    Stream.concat(Stream.of(line), line.getSubcommands().values().stream())
        .map(each -> each.getCommandSpec().usageMessage())
        .forEach(
            help ->
                help.abbreviateSynopsis(true)
                    .longOptionsMaxWidth(OPTION_WIDTH)
                    .footerHeading("%nExamples:%n"));
    line.getSubcommands()
        .forEach(
            (name, command) -> {
              UsageMessageSpec help = command.getCommandSpec().usageMessage();
              Stream<String> details = Stream.of("", "Details: man windlass-" + name);
              help.footer(
                  Stream.concat(Stream.of(help.footer()), details).toArray(String[]::new));
            });
  }

  /** Returns the stream for progress and warnings. The stream may discard them. */
  static PrintWriter notes(CommandSpec command) {
    boolean isQuiet = command.root().userObject() instanceof Main main && main.quiet;
    return isQuiet || LaunchedRank.isThis()
        ? new PrintWriter(Writer.nullWriter())
        : command.commandLine().getErr();
  }

  private static OptionSpec help() {
    return OptionSpec.builder("-h", "--help")
        .usageHelp(true)
        .description("Show this help and exit.")
        .build();
  }

  private static Optional<String> firstWord(String... args) {
    return Stream.of(args).filter(word -> !word.startsWith("-")).findFirst();
  }

  /** Parses a path. Throws for an empty text, such as from an unset variable. */
  private static Path path(String text) {
    if (text.isEmpty()) {
      throw new TypeConversionException("the path is empty");
    }
    try {
      return Path.of(text);
    } catch (InvalidPathException e) {
      throw new TypeConversionException(
          "'" + text + "' is no path in this JVM's locale; set one that is installed, such as"
              + " LC_ALL=C.UTF-8");
    }
  }

  /** Returns true if errors shall be JSON. Also works for command lines that cannot be parsed. */
  private static boolean asksForJson(String... args) {
    return options(args).contains("--json");
  }

  /** Returns the arguments that may be options, even if the command line cannot be parsed. */
  private static List<String> options(String... args) {
    List<String> all = List.of(args);
    if (firstWord(args).equals(Optional.of(RUN))) {
      return List.of();
    }
    int end = all.indexOf("--");
    return all.subList(0, end < 0 ? all.size() : end);
  }

  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getErr());
    throw new InvalidArgumentException("no command is given");
  }

  private static Writer stream(FileDescriptor descriptor) {
    return new OutputStreamWriter(new FileOutputStream(descriptor), StandardCharsets.UTF_8);
  }

  static final class Version implements IVersionProvider {
    /** Returns the version of the command's jar, or otherwise that of the library if it loads. */
    static Optional<String> text() {
      return Optional.ofNullable(Main.class.getPackage().getImplementationVersion())
          .or(
              () ->
                  NativeLibrary.problem().isEmpty()
                      ? Optional.of(NativeLibrary.version())
                      : Optional.empty());
    }

    @Override
    public String[] getVersion() {
      // Picocli calls this for every command line, help included.
      String version = "windlass" + text().map(text -> " " + text).orElse("");
      return new String[] {
        NativeLibrary.problem().isEmpty()
            ? version
            : version + ", without its natives: windlass doctor shows why"
      };
    }
  }
}
