// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Optional;
import org.windlass.error.ErrorCode;
import org.windlass.error.WindlassException;
import org.windlass.internal.json.JsonObject;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * An error in the form in which the command prints it. One line says what happened and where. The
 * next line says what to do.
 *
 * @param code the kind
 * @param status the exit status
 * @param message what happened, and where
 * @param hint what to do
 * @param fault exception that caused the error
 */
public record Complaint(
    ErrorCode code, int status, String message, String hint, Throwable fault) {
  public Complaint(ErrorCode code, String message, String hint, Throwable fault) {
    this(code, code.exitStatus(), message, hint, fault);
  }

  public static Complaint ofUsage(ParameterException fault) {
    CommandLine line = fault.getCommandLine();
    String command = line.getCommandSpec().qualifiedName();
    String message = fault.getMessage();
    if (fault instanceof UnmatchedArgumentException unmatched) {
      message = "unknown argument " + String.join(" ", unmatched.getUnmatched());
    }
    return new Complaint(
        ErrorCode.INVALID_ARGUMENT,
        command + ": " + message,
        command + " --help shows what it takes",
        fault);
  }

  public static Complaint of(Throwable fault) {
    if (fault instanceof ExceptionInInitializerError && fault.getCause() != null) {
      return of(fault.getCause());
    }
    if (fault instanceof ComplaintException said) {
      return said.complaint();
    }
    if (fault instanceof WindlassException known) {
      return of(known.code(), text(known), fault);
    }
    if (fault instanceof IOException || fault instanceof UncheckedIOException) {
      return of(ErrorCode.RESOURCE, text(fault), fault);
    }
    if (fault instanceof OutOfMemoryError) {
      return of(ErrorCode.RESOURCE, "out of memory: " + text(fault), fault);
    }
    if (fault instanceof LinkageError) {
      for (Throwable cause = fault; cause != null; cause = cause.getCause()) {
        if (cause instanceof UnsatisfiedLinkError) {
          return new Complaint(
              ErrorCode.UNSUPPORTED,
              text(cause),
              "mend or unset what the message names; windlass doctor shows what is available",
              fault);
        }
      }
    }
    return of(ErrorCode.INTERNAL, fault.getClass().getSimpleName() + ": " + text(fault), fault);
  }

  private static Complaint of(ErrorCode code, String message, Throwable fault) {
    return new Complaint(code, message, hint(code, fault), fault);
  }

  private static String text(Throwable fault) {
    return fault.getMessage() == null ? fault.getClass().getSimpleName() : fault.getMessage();
  }

  private static String hint(ErrorCode code, Throwable fault) {
    return switch (code) {
      case INVALID_ARGUMENT, MISMATCH -> "correct what the message names and try again";
      case UNSUPPORTED ->
          "take what the message allows; windlass doctor shows the targets and transports that are"
              + " here";
      case DEADLINE_EXCEEDED ->
          "where that is slow and not stuck, give it more seconds with --deadline; the message says"
              + " what had not come";
      case PEER_LOST, ABORTED -> "look at what the named rank or reason says, then run it again";
      case VERIFICATION_FAILED ->
          "do not use the result; if the input's replicas are equal, this is a fault to report";
      case RESOURCE ->
          (text(fault).contains("Too many open files")
                  ? "raise the limit of open files (ulimit -n)"
                  : "make room or grant the permission")
              + ", then run it again; " + left(fault).orElse("nothing was left behind");
      case CLOSED, DEVICE, INTERNAL ->
          "run it again with --verbose and report what it prints, with the command line";
    };
  }

  /** Returns a note about files that could not be removed, from the suppressed exceptions. */
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
      err.println("windlass: " + code + ": " + line());
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
