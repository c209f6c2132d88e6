// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.PairOfRanks;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.store.Token;
import org.windlass.launch.LaunchStore;
import org.windlass.testing.NothingLeft;
import org.windlass.testing.Processes;
import org.windlass.testing.Ucx;

/**
 * Jobs of processes, looked at from outside, by this one. Methods without {@code @Test} are what
 * the ranks run.
 */
@Timeout(120)
@ExtendWith(NothingLeft.class)
class RunningJobTest {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Duration MOMENT = Duration.ofSeconds(2);
  private static final int SIZE = 3;

  @TempDir Path folder;

  private Processes processes() throws IOException {
    return new Processes(RunningJobTest.class, SIZE, folder).with("TEST_FOLDER", folder + "");
  }

  /** Lets ranks go on that wait for it. */
  private void say(String what) throws IOException {
    Files.createFile(folder.resolve(what));
  }

  private static void await(String what) throws InterruptedException {
    Path file = Path.of(System.getenv("TEST_FOLDER")).resolve(what);
    for (long start = System.nanoTime(); !Files.exists(file); Thread.sleep(5)) {
      assertThat(System.nanoTime() - start).isLessThan(SOON.toNanos());
    }
  }

  private static RunningJob at(Processes processes) {
    return RunningJob.at(processes.address(), processes.variables(), SOON);
  }

  private static RunningJob at(Processes.Rank rank) {
    return RunningJob.at("" + rank.pid(), Map.of(), SOON);
  }

  private static JobReport awaitReport(RunningJob job, Predicate<JobReport> seen)
      throws InterruptedException {
    JobReport report = job.report();
    for (long start = System.nanoTime(); !seen.test(report); report = job.report()) {
      assertThat(System.nanoTime() - start).as(report.toString()).isLessThan(SOON.toNanos());
      Thread.sleep(5);
    }
    return report;
  }

  private static List<Report.Rank> ranks(JobReport report) {
    return report.communicators().get(0).report().ranks();
  }

  private static boolean waitsFor(int rank, int other, JobReport report) {
    return !report.communicators().isEmpty()
        && ranks(report).get(rank).waitsFor().contains(other)
        && ranks(report).get(rank).current().orElseThrow().operation().equals("barrier");
  }

  private static Report.ProcessState state(int rank, JobReport report) {
    return ranks(report).get(rank).process().orElseThrow().state();
  }

  /** Two of three wait for the last one, which is asked to come. */
  static void oneIsLate() throws Exception {
    try (Communicator comm =
        Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON)) {
      comm.barrier();
      System.out.println("met");
      if (comm.rank() == SIZE - 1) {
        await("come");
      }
      Throwable failure = catchThrowable(comm::barrier);
      if (failure != null) {
        assertThat(failure).isInstanceOf(PeerLostException.class);
      }
      System.out.println("through");
      await("end");
    }
  }

  @Test
  void aJobIsSeenFromItsBeginningToItsEnd() throws Exception {
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.start("oneIsLate");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      try (RunningJob job = at(processes)) {
        JobReport waits =
            awaitReport(job, report -> waitsFor(0, 2, report) && waitsFor(1, 2, report));
        assertThat(waits.isOver()).isFalse();
        assertThat(waits.communicators()).hasSize(1);
        JobReport.Group world = waits.communicators().get(0);
        assertThat(world.parent()).isEmpty();
        assertThat(world.report().failure()).isEmpty();
        assertThat(world.lost()).isEmpty();
        assertThat(world.report().peerMemory()).startsWith("not yet: ");
        for (int rank = 0; rank < SIZE; rank++) {
          assertThat(ranks(waits).get(rank).process())
              .contains(
                  new Report.Process(
                      (int) started.get(rank).pid(), Report.ProcessState.RUNS));
        }
        assertThat(ranks(waits).get(2).recent().get(0).inside()).isFalse();
        assertThat(waits.toString().lines().skip(1))
            .anyMatch(line -> line.matches("rank +process +since +busy +where"))
            .anyMatch(
                line ->
                    line.matches("   0 +" + started.get(0).pid() + " .* in barrier #\\d+, waits for 2"));

        say("come");
        for (Processes.Rank rank : started) {
          rank.await("through");
        }
        JobReport idle =
            awaitReport(job, r -> ranks(r).stream().allMatch(rank -> rank.current().isEmpty()));
        assertThat(idle.isOver()).isFalse();

        say("end");
        JobReport end = awaitReport(job, JobReport::isOver);
        assertThat(ranks(end)).allMatch(Report.Rank::closed);
        assertThat(end.communicators().get(0).lost()).isEmpty();
      }
      for (Processes.Rank rank : started) {
        rank.ended();
      }
    }
  }

  @Test
  void ranksThatAreStoppedAndKilledAreSeen() throws Exception {
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.start("oneIsLate");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      try (RunningJob job = at(started.get(1));
          RunningJob ofStopped = at(started.get(0))) {
        awaitReport(job, report -> waitsFor(0, 2, report) && waitsFor(1, 2, report));
        String own = "" + ProcessHandle.current().pid();
        assertThatThrownBy(() -> RunningJob.at(own, processes.variables(), MOMENT))
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessageContaining("name one of those that it has started: ")
            .hasMessageContaining("" + started.get(2).pid());
        started.get(0).signal("STOP");
        awaitReport(job, report -> state(0, report) == Report.ProcessState.STOPPED);
        JobReport stopped = ofStopped.report();
        assertThat(waitsFor(0, 2, stopped)).as(stopped.toString()).isTrue();
        assertThat(stopped.toString()).containsPattern(started.get(0).pid() + " stopped .*  in barrier #");
        // Whose store it is, which can't answer now.
        assertThatThrownBy(
                () -> RunningJob.at(processes.address(), processes.variables(), MOMENT))
            .isInstanceOf(DeadlineExceededException.class);
        started.get(0).signal("CONT");
        awaitReport(job, report -> state(0, report) == Report.ProcessState.RUNS);

        started.get(2).kill();
        JobReport lost =
            awaitReport(
                job,
                report -> report.communicators().get(0).report().failure().isPresent()
                    && state(2, report) == Report.ProcessState.ENDED);
        JobReport.Group world = lost.communicators().get(0);
        assertThat(world.report().failure().get()).isInstanceOf(PeerLostException.class);
        assertThat(world.report().failure().get().faultyRanks()).containsExactly(2);
        assertThat(world.lost()).containsExactly(2);
        assertThat(lost.isOver()).isFalse();
        assertThat(lost.toString()).contains("process " + started.get(2).pid() + " on ");

        say("end");
        JobReport end = awaitReport(job, JobReport::isOver);
        assertThat(end.communicators().get(0).lost()).containsExactly(2);
        assertThat(ofStopped.report().isOver()).isTrue();
      }
    }
  }

  /**
   * What a look on host a, at rank 0 alone, says of ranks 1 and 2, on host b. One that is killed
   * there is lost, as one of this host is.
   */
  @Test
  void ofOtherHostsItIsSeenWhatRanksHaveEnteredAndWhoIsLost() throws Exception {
    Ucx.require();
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.startOnHosts("abb", "oneIsLate");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      try (RunningJob job = at(started.get(0))) {
        JobReport waits =
            awaitReport(
                job,
                report ->
                    waitsFor(0, 2, report) && sequence(1, report) == sequence(2, report) + 1);
        assertThat(ranks(waits).get(0).waitsFor()).containsExactly(2);
        assertThat(ranks(waits)).extracting(Report.Rank::host).containsExactly(0, 1, 1);
        assertThat(ranks(waits))
            .extracting(Report.Rank::elsewhere)
            .containsExactly(false, true, true);
        for (int rank : new int[] {1, 2}) {
          assertThat(ranks(waits).get(rank).process())
              .contains(
                  new Report.Process((int) started.get(rank).pid(), Report.ProcessState.UNKNOWN));
          assertThat(ranks(waits).get(rank).current()).isEmpty();
          assertThat(ranks(waits).get(rank).waitsFor()).isEmpty();
        }
        assertThat(waits.toString().lines().skip(1).map(line -> line.replaceAll(" +", " ")))
            .contains("rank host process since busy where")
            .anyMatch(line -> line.matches(" 0 0 \\d+ \\S+ \\S+ \\d+ in barrier #\\d+, waits for 2"))
            .anyMatch(line -> line.matches(" 1 1 \\d+ unknown \\S+ \\S+ entered barrier #\\d+"))
            .anyMatch(line -> line.matches(" 2 1 \\d+ unknown \\S+ \\S+ entered barrier #\\d+"));

        started.get(2).kill();
        awaitReport(job, report -> report.communicators().get(0).lost().equals(List.of(2)));
        say("end");
        JobReport end = awaitReport(job, JobReport::isOver);
        assertThat(end.communicators().get(0).lost()).containsExactly(2);
        assertThat(ranks(end).get(0).closed()).isTrue();
      }
      for (int rank : new int[] {0, 1}) {
        started.get(rank).ended();
      }
    }
  }

  private static int sequence(int rank, JobReport report) {
    return ranks(report).get(rank).recent().get(0).sequence();
  }

  @Test
  void aJobIsOverOnAHostOnceItsOwnRanksAreGone() throws Exception {
    Ucx.require();
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.startOnHosts("aab", "oneIsLate");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      try (RunningJob job = at(started.get(0))) {
        // So that nobody on host a hears what becomes of host b.
        started.get(2).signal("STOP");
        assertThat(job.report().isOver()).isFalse();
        started.get(0).kill();
        started.get(1).kill();
        JobReport end = awaitReport(job, JobReport::isOver);
        assertThat(end.communicators().get(0).lost()).containsExactly(0, 1);
        assertThat(ranks(end).get(2).isGone()).isFalse();
      }
    }
  }

  @Test
  void atTheStoreOfTheLauncherAJobIsFoundWhoseRankZeroIsStopped() throws Exception {
    try (Processes processes = processes();
        LaunchStore store = LaunchStore.open(processes.variables())) {
      store.variables().forEach(processes::with);
      String address = store.variables().get("WINDLASS_RENDEZVOUS");
      try (RunningJob early = RunningJob.at(address, processes.variables(), SOON)) {
        assertThat(early.report().communicators()).isEmpty();
      }
      List<Processes.Rank> started = processes.start("oneIsLate");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      started.get(0).signal("STOP");
      try (RunningJob job = RunningJob.at(address, processes.variables(), SOON)) {
        JobReport report =
            awaitReport(job, seen -> state(0, seen) == Report.ProcessState.STOPPED);
        assertThat(ranks(report)).hasSize(SIZE);
        started.get(0).signal("CONT");
        say("come");
        say("end");
        awaitReport(job, JobReport::isOver);
      }
      for (Processes.Rank rank : started) {
        rank.ended();
      }
    }
  }

  /** One communicator, and after a while the next. */
  static void oneAfterTheOther() throws Exception {
    for (String next : List.of("next", "end")) {
      try (Communicator comm =
          Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON)) {
        comm.barrier();
        System.out.println("before " + next);
        await(next);
      }
      await("again");
    }
  }

  @Test
  void aJobGoesOnWhoseRanksMakeTheNextCommunicator() throws Exception {
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.start("oneAfterTheOther");
      for (Processes.Rank rank : started) {
        rank.await("before next");
      }
      try (RunningJob job = at(processes)) {
        String first = job.report().communicators().get(0).id();
        say("next");
        JobReport closed =
            awaitReport(job, report -> ranks(report).stream().allMatch(Report.Rank::closed));
        assertThat(closed.communicators().get(0).id()).isEqualTo(first);
        assertThat(closed.isOver()).isFalse();

        say("again");
        for (Processes.Rank rank : started) {
          rank.await("before end");
        }
        JobReport next = job.report();
        assertThat(next.communicators()).hasSize(1);
        assertThat(next.communicators().get(0).id()).isNotEqualTo(first);
        assertThat(next.isOver()).isFalse();

        say("end");
        JobReport end = awaitReport(job, JobReport::isOver);
        assertThat(ranks(end)).allMatch(Report.Rank::closed);
      }
      for (Processes.Rank rank : started) {
        rank.ended();
      }
    }
  }

  /** A half, and a communicator that is left open by one rank for a while. */
  static void splits() throws Exception {
    try (Communicator comm =
            Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
        Communicator two = comm.split(comm.rank() == 1 ? -1 : 0, -comm.rank())) {
      System.out.println("met");
      await("end");
      if (two != null) {
        two.barrier();
      }
    }
  }

  @Test
  void splitsAreShownBesideTheWhole() throws Exception {
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.start("splits");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      try (RunningJob job = at(processes)) {
        JobReport report = job.report();
        assertThat(report.communicators()).hasSize(2);
        JobReport.Group world = report.communicators().get(0);
        JobReport.Group two = report.communicators().get(1);
        assertThat(two.parent()).contains(world.id());
        assertThat(two.former()).containsExactly(2, 0);
        assertThat(two.report().ranks())
            .extracting(rank -> rank.process().orElseThrow().pid())
            .containsExactly((int) started.get(2).pid(), (int) started.get(0).pid());
        assertThat(two.toString())
            .startsWith("communicator " + two.id() + ": 2 ranks, made ")
            .contains("ranks 2 0 of " + world.id());
      }
      say("end");
      for (Processes.Rank rank : started) {
        rank.ended();
      }
    }
  }

  /** Collectives without a pause, whose results are right. */
  static void busy() throws Exception {
    try (Communicator comm =
            Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
        Window window = comm.window(1 << 16)) {
      Tensor tensor = window.tensor(DType.F32, 100);
      System.out.println("met");
      Path end = Path.of(System.getenv("TEST_FOLDER")).resolve("end");
      for (boolean isOver = false; !isOver; ) {
        for (int round = 0; round < 200; round++) {
          tensor.fill(comm.rank() + round);
          comm.allReduce(tensor, ReduceOp.SUM);
          double[] sums = new double[100];
          tensor.copyTo(sums);
          assertThat(sums).containsOnly(3 + 3.0 * round);
        }
        tensor.fill(Files.exists(end) ? 1 : 0);
        comm.allReduce(tensor, ReduceOp.MIN);
        double[] all = new double[100];
        tensor.copyTo(all);
        isOver = all[0] == 1;
      }
    }
  }

  @Test
  void looksDisturbNobody() throws Exception {
    try (Processes processes = processes()) {
      List<Processes.Rank> started = processes.start("busy");
      for (Processes.Rank rank : started) {
        rank.await("met");
      }
      int inside = 0;
      try (RunningJob job = at(processes)) {
        for (int look = 0; look < (Boolean.getBoolean("windlass.long") ? 500 : 60); look++) {
          JobReport report = job.report();
          assertThat(report.isOver()).isFalse();
          for (Report.Rank rank : ranks(report)) {
            assertThat(rank.recent()).allMatch(call -> call.failure().isEmpty());
            inside += rank.current().isPresent() ? 1 : 0;
          }
        }
      }
      assertThat(inside).isPositive();
      say("end");
      for (Processes.Rank rank : started) {
        rank.ended();
      }
    }
  }

  @Test
  void whoIsNoJobOrIsRefusedIsNamed() throws Exception {
    Map<String, String> token = Map.of("WINDLASS_TOKEN", Token.random().digits());
    assertThatThrownBy(() -> RunningJob.at("nowhere", token, MOMENT))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("HOST:PORT")
        .hasMessageContaining("or the process id of a rank");
    assertThatThrownBy(() -> RunningJob.at("127.0.0.1:7000", Map.of(), MOMENT))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("WINDLASS_TOKEN_FILE");
    assertThatThrownBy(() -> RunningJob.at("no.such.invalid:7000", token, MOMENT))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no known address");
    assertThatThrownBy(() -> RunningJob.at("etcd://127.0.0.1:2379/a", token, MOMENT))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("process id of a rank");
    assertThatThrownBy(() -> RunningJob.at(Processes.loopback(), token, MOMENT))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("no store there");
    assertThatThrownBy(() -> RunningJob.at("0", token, MOMENT))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> RunningJob.at("999999999", token, MOMENT))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no process 999999999");
    long own = ProcessHandle.current().pid();
    assertThatThrownBy(() -> RunningJob.at("" + own, token, MOMENT))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no communicator whose ranks live in several processes");
  }

  @Test
  void garbageAtTheAddressIsNamed() throws Exception {
    Map<String, String> token = Map.of("WINDLASS_TOKEN", Token.random().digits());
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      Thread answer =
          new Thread(
              () -> {
                try (Socket socket = server.accept()) {
                  socket
                      .getOutputStream()
                      .write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes(StandardCharsets.UTF_8));
                  socket.getInputStream().read(new byte[64]);
                } catch (IOException e) {
                  // The other side has gone.
                }
              });
      answer.start();
      assertThatThrownBy(
              () -> RunningJob.at("127.0.0.1:" + server.getLocalPort(), token, SOON))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("the program that listens there is not a Windlass store");
      answer.join();
    }
  }

  /** Ranks as threads of this process, which is a process like any other. */
  @Test
  void theStoreStaysAsLongAsTheCommunicatorDoes() throws Exception {
    String address = Processes.loopback();
    Map<String, String> token = Map.of("WINDLASS_TOKEN", Token.random().digits());
    try (PairOfRanks pair = new PairOfRanks(address, token)) {
      try (RunningJob job = RunningJob.at(address, token, SOON)) {
        assertThat(ranks(job.report()))
            .extracting(rank -> rank.process().orElseThrow().pid())
            .containsOnly((int) ProcessHandle.current().pid());
      }
      Map<String, String> other = Map.of("WINDLASS_TOKEN", Token.random().digits());
      assertThatThrownBy(() -> RunningJob.at(address, other, SOON))
          .isInstanceOf(ResourceException.class)
          .hasMessageContaining("the store holds another token than this member; set WINDLASS");
      // The next start of this job begins there while the first one runs.
      try (PairOfRanks second = new PairOfRanks(address, token);
          RunningJob job = RunningJob.at(address, token, SOON)) {
        assertThat(job.report().communicators()).hasSize(2);
        pair.leave();
        assertThat(second.isOpen()).isTrue();
        awaitReport(job, report -> report.communicators().size() == 1);
        assertThat(RunningJob.at(address, token, SOON)).satisfies(RunningJob::close);
      }
    }
    assertThatThrownBy(() -> RunningJob.at(address, token, MOMENT))
        .isInstanceOf(DeadlineExceededException.class);
  }

  @Test
  void aClosedOneSaysSo() throws Exception {
    Map<String, String> token = Map.of("WINDLASS_TOKEN", Token.random().digits());
    PairOfRanks pair = new PairOfRanks(Processes.loopback(), token);
    try {
      RunningJob job = RunningJob.at("" + ProcessHandle.current().pid(), Map.of(), SOON);
      job.close();
      job.close();
      assertThatThrownBy(job::report).isInstanceOf(ClosedException.class);
    } finally {
      pair.close();
    }
  }

  /** Ranks that begin the next start before rank 0 has let go of the one before. */
  static void startsInARow() throws Exception {
    for (int round = 0; round < (Boolean.getBoolean("windlass.long") ? 20 : 5); round++) {
      try (Communicator comm =
          Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON)) {
        comm.barrier();
        Thread.sleep(comm.rank() == 0 ? 20 : 0);
      }
    }
  }

  @Test
  void aStartFollowsOneWhoseStoreIsStillThere() throws Exception {
    try (Processes processes = processes()) {
      processes.run("startsInARow");
    }
  }
}
