// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.windlass.cli.out.JsonLine;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.report.JobReport;
import org.windlass.report.Report;
import org.windlass.report.RunningJob;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass report}: shows the state of every rank of a running job from outside. */
@Command(
    name = "report",
    description = "Shows where every rank of a job is that runs on this machine in processes.",
    footer = {
      "%nADDRESS is HOST:PORT, the rendezvous of the job, whose token WINDLASS_TOKEN_FILE or"
          + " WINDLASS_TOKEN has; or the process id of any of its ranks, however they were launched."
          + " It takes the job's user, or root, and reads what the processes share: it holds up no"
          + " rank, and shows ranks that hang, that are stopped, and that have ended.",
      "%nA row for each rank: its process, and whether that is stopped or has ended; the operation"
          + " that it is in or was in last, with its number; since when; how many of its waits found"
          + " another thread busy on its core; whom it waits for.",
      "%nOf a job on several hosts it shows, on each, the ranks of that host so, and of the others"
          + " what they have entered, as far as this host knows; columns stay empty that it can't"
          + " know.",
      "%n--watch goes on until the job is over on this host: status 0 where all ranks have closed"
          + " their communicators, 5 where one has ended without."
    })
final class ReportCommand implements Callable<Integer> {
  private static final double LEAST_S = 0.01;
  private static final double MOST_S = 86_400;

  /** Moves the cursor to the first line and column. */
  private static final String HOME = "\u001b[H";

  /** Clears the line, or the screen, from the cursor on. */
  private static final String REST_OF_LINE = "\u001b[K";

  private static final String REST = "\u001b[J";

  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "ADDRESS", description = "HOST:PORT, or the process id of a rank.")
  private String address;

  @Option(
      names = "--watch",
      description = "Repeat until the job is over, in place where the output is a terminal.")
  private boolean watch;

  @Option(
      names = "--every",
      paramLabel = "S",
      description = "Seconds between two looks of --watch (default: ${DEFAULT-VALUE}).")
  private double every = 1;

  @Option(
      names = "--deadline",
      paramLabel = "S",
      description = "Seconds for the job to answer at HOST:PORT (default: ${DEFAULT-VALUE}).")
  private double deadline = 10;

  @Mixin private JsonOption json;

  @Override
  public Integer call() throws InterruptedException {
    Duration pause = seconds("--every", every);
    Duration limit = seconds("--deadline", deadline);
    PrintWriter out = spec.commandLine().getOut();
    boolean redraws = watch && !json.isGiven() && Terminal.redraws(Terminal.OUTPUT);
    try (RunningJob job = found(limit)) {
      JobReport report = job.report();
      for (boolean isFirst = true; ; isFirst = false) {
        out.print(json.isGiven() ? json(report) + "\n" : text(report, redraws, isFirst));
        out.flush();
        if (!watch || report.isOver()) {
          break;
        }
        Thread.sleep(pause.toMillis());
        report = job.report();
      }
      return watch ? end(report, out) : 0;
    }
  }

  private RunningJob found(Duration limit) {
    try {
      return RunningJob.at(address, System.getenv(), limit);
    } catch (ResourceException e) {
      throw new ComplaintException(
          new Complaint(
              e.code(),
              e.getMessage(),
              "set WINDLASS_TOKEN_FILE, or WINDLASS_TOKEN, to the token of that job where the message"
                  + " tells of another; be the job's user, or root, where it tells of a permission",
              e),
          e);
    }
  }

  private static Duration seconds(String name, double value) {
    if (!(value >= LEAST_S && value <= MOST_S)) {
      throw new InvalidArgumentException(
          "report: " + name + " " + value + ": not in [" + LEAST_S + ", " + (long) MOST_S + "]");
    }
    return Duration.ofNanos((long) (value * 1e9));
  }

  /** Reports how the job ended, and returns the exit status. */
  private int end(JobReport report, PrintWriter out) {
    String lost =
        report.communicators().stream()
            .filter(group -> !group.lost().isEmpty())
            .map(ReportCommand::lost)
            .collect(Collectors.joining("; "));
    if (!lost.isEmpty()) {
      throw new PeerLostException("report: the job is over: " + lost);
    }
    if (!json.isGiven()) {
      boolean spansHosts =
          report.communicators().stream()
              .flatMap(group -> group.report().ranks().stream())
              .anyMatch(Report.Rank::elsewhere);
      out.println(
          "the job is over: all ranks " + (spansHosts ? "of this host " : "")
              + "have closed their communicators");
    }
    return 0;
  }

  private static String lost(JobReport.Group group) {
    List<Integer> lost = group.lost();
    String named =
        lost.stream()
            .limit(8)
            .map(
                rank ->
                    rank
                        + group.report().ranks().get(rank).process()
                            .map(process -> " (process " + process.pid() + ")")
                            .orElse(""))
            .collect(Collectors.joining(", "));
    return (lost.size() == 1 ? "rank " : "ranks ") + named
        + (lost.size() > 8 ? " and " + (lost.size() - 8) + " more" : "")
        + " ended without closing communicator " + group.id()
        + group.report().failure().map(why -> ", which had failed: " + why.getMessage()).orElse("");
  }

  private static String text(JobReport report, boolean redraws, boolean isFirst) {
    String lines = report.toString().replace("\r", "") + "\n";
    if (redraws) {
      return HOME + (isFirst ? REST : "") + lines.replace("\n", REST_OF_LINE + "\n") + REST;
    }
    return (isFirst ? "" : "\n") + lines;
  }

  private static String json(JobReport report) {
    return JsonLine.of(
        json -> {
          json.writeBooleanField("over", report.isOver());
          json.writeArrayFieldStart("communicators");
          for (JobReport.Group group : report.communicators()) {
            write(json, group);
          }
          json.writeEndArray();
        });
  }

  private static void write(JsonGenerator json, JobReport.Group group) throws IOException {
    json.writeStartObject();
    json.writeStringField("id", group.id());
    json.writeStringField("parent", group.parent().orElse(null));
    json.writeNumberField("age_us", micros(group.age()));
    json.writeFieldName("failure");
    if (group.report().failure().isPresent()) {
      write(json, group.report().failure().get());
    } else {
      json.writeNull();
    }
    json.writeStringField("peer_memory", group.report().peerMemory());
    json.writeArrayFieldStart("ranks");
    for (Report.Rank rank : group.report().ranks()) {
      json.writeStartObject();
      json.writeNumberField("rank", rank.rank());
      if (group.parent().isPresent()) {
        json.writeNumberField("parent_rank", group.former().get(rank.rank()));
      }
      write(json, rank);
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeEndObject();
  }

  private static void write(JsonGenerator json, WindlassException failure) throws IOException {
    json.writeStartObject();
    json.writeStringField("code", failure.code().toString());
    json.writeStringField("message", failure.getMessage());
    json.writeStringField("operation", failure.operation());
    writeRanks(json, "ranks", failure.faultyRanks());
    json.writeEndObject();
  }

  private static void write(JsonGenerator json, Report.Rank rank) throws IOException {
    json.writeNumberField("host", rank.host());
    json.writeBooleanField("elsewhere", rank.elsewhere());
    if (rank.process().isPresent()) {
      json.writeNumberField("process", rank.process().get().pid());
      json.writeStringField("process_state", rank.process().get().state().toString());
    } else {
      json.writeNullField("process");
    }
    json.writeBooleanField("closed", rank.closed());
    json.writeFieldName("call");
    if (rank.recent().isEmpty()) {
      json.writeNull();
    } else {
      write(json, rank.recent().get(0), rank.elsewhere());
    }
    json.writeStringField("item", rank.item().orElse(null));
    writeRanks(json, "waits_for", rank.waitsFor());
    writeKnown(json, "contested", rank.elsewhere(), Integer.toUnsignedLong(rank.contested()));
  }

  private static void write(JsonGenerator json, Report.Call call, boolean elsewhere)
      throws IOException {
    json.writeStartObject();
    json.writeStringField("operation", call.operation());
    json.writeStringField("text", call.text());
    json.writeNumberField("sequence", Integer.toUnsignedLong(call.sequence()));
    json.writeFieldName("inside");
    if (elsewhere) {
      json.writeNull();
    } else {
      json.writeBoolean(call.inside());
    }
    json.writeStringField("failure", call.failure().map(Object::toString).orElse(null));
    writeKnown(json, "bytes", elsewhere, call.bytes());
    json.writeNumberField("since_us", micros(call.since()));
    writeKnown(json, "took_us", elsewhere, micros(call.took()));
    json.writeEndObject();
  }

  /** Writes a value, or null for a rank on another host, whose value is unknown here. */
  private static void writeKnown(JsonGenerator json, String name, boolean elsewhere, long value)
      throws IOException {
    if (elsewhere) {
      json.writeNullField(name);
    } else {
      json.writeNumberField(name, value);
    }
  }

  private static void writeRanks(JsonGenerator json, String name, List<Integer> ranks)
      throws IOException {
    json.writeArrayFieldStart(name);
    for (int rank : ranks) {
      json.writeNumber(rank);
    }
    json.writeEndArray();
  }

  private static long micros(Duration time) {
    return time.toNanos() / 1000;
  }
}
