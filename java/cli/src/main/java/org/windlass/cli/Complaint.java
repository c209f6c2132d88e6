// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.windlass.error.ErrorCode;
import org.windlass.error.WindlassException;
import org.windlass.internal.json.JsonObject;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * An error as the command prints it. The first line says what happened and where. The second line
 * says what to do.
 *
 * @param code the kind of the error
 * @param status the exit status
 * @param message what happened, and where
 * @param hint what to do
 * @param fault exception that caused the error
 */
public record Complaint(
    ErrorCode code, int status, String message, String hint, Throwable fault) {
  private static final String RED = "\u001b[1;31m";

  private static final String PLAIN = "\u001b[0m";

  /** Number of letters for each letter in which a suggestion may differ from a mistyped word. */
  private static final int LETTERS_AN_EDIT = 3;

  private static final Pattern SETTING = Pattern.compile("\\bWINDLASS_[A-Z_]+");
  private static final Pattern OPTION = Pattern.compile("(?<![\\w-])--[a-z][a-z-]+");

  /** Advice for exhausted resources, keyed by words of the message. */
  private static final List<Map.Entry<String, String>> REMEDIES =
      List.of(
          Map.entry("Too many open files", "raise the limit of open files (ulimit -n)"),
          Map.entry("out of memory", "raise the heap, as WINDLASS_JAVA_OPTIONS=-Xmx4g does"),
          Map.entry("No space left", "make room on that file system"),
          Map.entry("ermission denied", "grant the permission, or run it as another user"));

  /** Advice for errors whose code alone does not tell what to do, keyed by words of the message. */
  private static final List<Map.Entry<String, String>> ADVICE =
      List.of(
          Map.entry("is open to others", "run chmod 600 on it"),
          Map.entry("not a safetensors file", "check which file the path names"),
          Map.entry("copy or download it again", "check whether the file is whole"),
          Map.entry(
              "report: there is no token",
              "set WINDLASS_TOKEN_FILE to the file with the token of the job's ranks, or"
                  + " WINDLASS_TOKEN to its digits; or name the process id of a rank"));

  public Complaint(ErrorCode code, String message, String hint, Throwable fault) {
    this(code, code.exitStatus(), message, hint, fault);
  }

  public static Complaint ofUsage(ParameterException fault) {
    CommandSpec spec = fault.getCommandLine().getCommandSpec();
    String command = spec.qualifiedName();
    String message = fault.getMessage();
    String help = spec.parent() == null ? "lists the commands" : "shows its options";
    String hint = command + " --help " + help;
    if (fault instanceof UnmatchedArgumentException unmatched) {
      message = "unknown argument " + String.join(" ", unmatched.getUnmatched());
      List<String> similar = similar(unmatched.getUnmatched().get(0), spec);
      if (!similar.isEmpty()) {
        hint = "did you mean " + String.join(" or ", similar) + "? " + hint;
      }
    }
    return new Complaint(
        ErrorCode.INVALID_ARGUMENT,
        (spec.parent() == null ? "" : spec.name() + ": ") + message,
        hint,
        fault);
  }

  /** Returns the commands or options whose names differ least from a mistyped word. */
  private static List<String> similar(String word, CommandSpec spec) {
    String name = word.replaceFirst("=.*", "");
    Map<Integer, List<String>> byEdits =
        (name.startsWith("-") ? spec.optionsMap() : spec.subcommands())
            .keySet().stream()
            .filter(known -> known.length() > 2)
            .collect(
                Collectors.groupingBy(
                    known -> edits(name, known), TreeMap::new, Collectors.toList()));
    return byEdits.entrySet().stream()
        .limit(1)
        .filter(nearest -> nearest.getKey() <= (name.length() + 1) / LETTERS_AN_EDIT)
        .flatMap(nearest -> nearest.getValue().stream())
        .toList();
  }

  /**
   * Returns the number of letters to insert, delete or replace so that one word becomes the other.
   */
  private static int edits(String from, String to) {
    int[] edits = IntStream.rangeClosed(0, to.length()).toArray();
    for (int i = 1; i <= from.length(); i++) {
      int diagonal = edits[0];
      edits[0] = i;
      for (int j = 1; j <= to.length(); j++) {
        int replaced = diagonal + (from.charAt(i - 1) == to.charAt(j - 1) ? 0 : 1);
        diagonal = edits[j];
        edits[j] = Math.min(replaced, Math.min(edits[j - 1], diagonal) + 1);
      }
    }
    return edits[to.length()];
  }

  public static Complaint of(Throwable fault) {
    return of(fault, "windlass");
  }

  /** Returns the error of a command, such as {@code windlass bench}, that failed. */
  static Complaint of(Throwable fault, String command) {
    if (fault instanceof ExceptionInInitializerError && fault.getCause() != null) {
      return of(fault.getCause(), command);
    }
    if (fault instanceof ComplaintException said) {
      return said.complaint();
    }
    if (fault instanceof WindlassException known) {
      return of(known.code(), text(known), fault, command);
    }
    if (fault instanceof IOException || fault instanceof UncheckedIOException) {
      return of(ErrorCode.RESOURCE, text(fault), fault, command);
    }
    if (fault instanceof OutOfMemoryError) {
      return of(ErrorCode.RESOURCE, "out of memory: " + text(fault), fault, command);
    }
    if (fault instanceof LinkageError) {
      for (Throwable cause = fault; cause != null; cause = cause.getCause()) {
        if (cause instanceof UnsatisfiedLinkError) {
          return new Complaint(
              ErrorCode.UNSUPPORTED,
              text(cause),
              "correct or unset the setting in the message; windlass doctor shows what loads",
              fault);
        }
      }
    }
    String message = fault.getClass().getSimpleName() + ": " + text(fault);
    return of(ErrorCode.INTERNAL, message, fault, command);
  }

  private static Complaint of(ErrorCode code, String message, Throwable fault, String command) {
    return new Complaint(code, message, hint(code, message, fault, command), fault);
  }

  private static String text(Throwable fault) {
    return fault.getMessage() == null ? fault.getClass().getSimpleName() : fault.getMessage();
  }

  private static String hint(ErrorCode code, String message, Throwable fault, String command) {
    Optional<String> advice = advice(message);
    if (advice.isPresent()) {
      return advice.get();
    }
    return switch (code) {
      case INVALID_ARGUMENT -> usageHint(message, command);
      case MISMATCH -> "give all ranks the same command line, settings and files";
      case UNSUPPORTED -> "windlass doctor shows which targets and transports work here";
      case DEADLINE_EXCEEDED ->
          "if it is slow rather than stuck, allow more seconds with --deadline";
      case PEER_LOST, ABORTED ->
          "read what the named rank printed last; the other ranks ended because of it";
      case VERIFICATION_FAILED ->
          "do not use the result; if the input's replicas are equal, report this fault";
      case RESOURCE ->
          advice(REMEDIES, message).orElse("make room or grant the permission")
              + ", then run it again; " + left(fault).orElse("nothing was left behind");
      case CLOSED, DEVICE, INTERNAL ->
          "run it again with --verbose and report what it prints, with the command line";
    };
  }

  /** Returns the advice for an error that this class knows by words of its message. */
  static Optional<String> advice(String message) {
    return advice(ADVICE, message);
  }

  private static Optional<String> advice(
      List<Map.Entry<String, String>> known, String message) {
    return known.stream()
        .filter(each -> message.contains(each.getKey()))
        .findFirst()
        .map(Map.Entry::getValue);
  }

  private static String usageHint(String message, String command) {
    Matcher setting = SETTING.matcher(message);
    if (setting.find()) {
      return "correct " + setting.group() + " as the message says, or unset it";
    }
    if (message.contains("no such file")) {
      return "check the path; relative paths begin at " + Path.of("").toAbsolutePath();
    }
    Matcher option = OPTION.matcher(message);
    return command + " --help shows "
        + (option.find() ? "what " + option.group() + " takes" : "what it takes, with examples");
  }

  /**
   * Returns a note about files that could not be removed. They are in the suppressed exceptions.
   */
  private static Optional<String> left(Throwable fault) {
    for (Throwable each = fault; each != null; each = each.getCause()) {
      for (Throwable more : each.getSuppressed()) {
        if (more instanceof WindlassException known && known.code() == ErrorCode.RESOURCE) {
          return Optional.of("what is left, a later run removes: " + text(more));
        }
      }
    }
    return Optional.empty();
  }

  /** Prints this complaint, as text or as one JSON object, and returns the exit status. */
  public int print(PrintWriter err, boolean asJson, boolean verbose) {
    if (asJson) {
      Map<String, Object> json =
          JsonObject.of("code", code, "status", status, "message", line(), "hint", hint);
      if (verbose) {
        json.put("trace", trace());
      }
      err.println(JsonObject.line(json));
    } else {
      String kind = "windlass: " + code;
      boolean isColoured = Terminal.isColoured(Terminal.ERROR);
      err.println((isColoured ? RED + kind + PLAIN : kind) + ": " + line());
      err.println("hint: " + hint);
      if (verbose) {
        fault.printStackTrace(err);
      }
    }
    err.flush();
    return status;
  }

  String trace() {
    StringWriter trace = new StringWriter();
    fault.printStackTrace(new PrintWriter(trace, true));
    return trace.toString();
  }

  private String line() {
    return message.strip().replaceAll(":\\s*\\R\\s*", ": ").replaceAll("\\s*\\R\\s*", "; ");
  }
}
