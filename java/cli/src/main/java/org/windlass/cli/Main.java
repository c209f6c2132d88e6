// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import org.windlass.InvalidArgumentException;
import org.windlass.cli.bench.BenchCommand;
import org.windlass.internal.Native;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The {@code windlass} command. */
@Command(
    name = "windlass",
    description = "Moves tensors between ranks.",
    mixinStandardHelpOptions = true,
    scope = ScopeType.INHERIT,
    versionProvider = Main.Version.class,
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {
      "0:done",
      "1:a fault of windlass's own or of the device's",
      "2:bad usage or input, or ranks disagree; nothing was written",
      "3:a target or feature that is not available here",
      "4:a deadline passed",
      "5:a peer was lost or someone aborted",
      "6:verification failed",
      "7:disk, memory, /dev/shm or permission",
      "130:interrupted"
    },
    subcommands = {
      ReshardCommand.class,
      PlanCommand.class,
      BenchCommand.class,
      ExampleCommand.class,
      DoctorCommand.class,
      DemoCommand.class,
      UnavailableCommand.Run.class,
      UnavailableCommand.Report.class,
      UnavailableCommand.Manifest.class
    })
public final class Main implements Runnable {
  @Spec private CommandSpec spec;

  @Option(
      names = "--verbose",
      scope = ScopeType.INHERIT,
      description = "Print the stack trace of an error.")
  private boolean verbose;

  /** Runs the command and exits with its status. */
  public static void main(String[] args) {
    System.exit(run(writer(FileDescriptor.out), writer(FileDescriptor.err), args));
  }

  /**
   * Runs the command.
   *
   * @param out gets results
   * @param err gets progress and errors
   * @return the exit status
   */
  public static int run(PrintWriter out, PrintWriter err, String... args) {
    Main main = new Main();
    CommandLine line = new CommandLine(main);
    line.setOut(out);
    line.setErr(err);
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setParameterExceptionHandler(
        (wrong, given) -> Complaint.ofUsage(wrong).print(err, main.verbose));
    line.setExecutionExceptionHandler(
        (fault, command, result) -> Complaint.of(fault).print(err, main.verbose));
    try {
      return line.execute(args);
    } catch (OutOfMemoryError | StackOverflowError | LinkageError fault) {
      return Complaint.of(fault).print(err, main.verbose);
    } finally {
      out.flush();
      err.flush();
    }
  }

  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getErr());
    throw new InvalidArgumentException("windlass needs a command");
  }

  private static PrintWriter writer(FileDescriptor descriptor) {
    return new PrintWriter(
        new OutputStreamWriter(new FileOutputStream(descriptor), StandardCharsets.UTF_8), true);
  }

  /** The version, as the native library says it. */
  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"windlass " + Native.wl_version()};
    }
  }
}
