// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.store.Texts;
import org.windlass.testing.RandomSeeds;

/** Variables of launchers: what they say, which count, and what is wrong with them. */
class LaunchEnvironmentTest {
  private static final String DIGITS = "0123456789abcdef".repeat(4);

  /** Variables written as a shell does, such as {@code RANK=1 WORLD_SIZE=2}. */
  private static Map<String, String> variables(String text) {
    Map<String, String> variables = new LinkedHashMap<>();
    for (String each : text.split(" ")) {
      int end = each.indexOf('=');
      variables.put(each.substring(0, end), each.substring(end + 1));
    }
    return variables;
  }

  private static LaunchEnvironment of(String text) {
    return LaunchEnvironment.of(variables(text)).orElseThrow();
  }

  static Stream<Arguments> launchers() {
    return Stream.of(
        arguments(
            "WINDLASS_RANK=3 WINDLASS_WORLD_SIZE=8 WINDLASS_LOCAL_RANK=1"
                + " WINDLASS_LOCAL_WORLD_SIZE=4 WINDLASS_JOB=policy"
                + " WINDLASS_RENDEZVOUS=head:7000 WINDLASS_TOKEN_FILE=/run/token",
            "windlass run, or by hand: rank 3 of 8, local rank 1, 4 on this host, job policy,"
                + " rendezvous head port 7000, token from WINDLASS_TOKEN_FILE"),
        arguments(
            "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=10.0.0.1"
                + " MASTER_PORT=29500 TORCHELASTIC_RUN_ID=ab12",
            "torchrun: rank 3 of 8, local rank 1, 4 on this host, job ab12, ranks join by a file of"
                + " this host"),
        arguments(
            "RANK=3 WORLD_SIZE=8 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 WINDLASS_TOKEN_FILE=/t",
            "torchrun: rank 3 of 8, job 10.0.0.1:29500, rendezvous 10.0.0.1 port 29501, token from"
                + " WINDLASS_TOKEN_FILE"),
        arguments(
            "RANK=0 WORLD_SIZE=1 TORCHELASTIC_RUN_ID=none",
            "torchrun: rank 0 of 1, no other rank"),
        arguments(
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1",
            "windlass run, or by hand: rank 0 of 2, no job, rendezvous or token, so that ranks"
                + " can't join; set WINDLASS_JOB to a name of the job's own"),
        arguments(
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_HOST=a WINDLASS_RENDEZVOUS=h:1",
            "windlass run, or by hand: rank 0 of 2, host a, rendezvous h port 1, no token"),
        arguments(
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_RENDEZVOUS=etcd://h:1,[::1]:2/p/q",
            "windlass run, or by hand: rank 0 of 2, rendezvous etcd://h:1,[::1]:2/p/q, no job or"
                + " token; set WINDLASS_JOB"),
        arguments(
            "RANK=0 WORLD_SIZE=2 WINDLASS_RENDEZVOUS=etcd://h:1/p MASTER_ADDR=a MASTER_PORT=1"
                + " TORCHELASTIC_RUN_ID=j WINDLASS_TOKEN_FILE=/t",
            "torchrun: rank 0 of 2, job j, rendezvous etcd://h:1/p, token from"
                + " WINDLASS_TOKEN_FILE"),
        arguments(
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1"
                + " OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=3370450945"
                + " WINDLASS_TOKEN=" + DIGITS,
            "Open MPI: rank 1 of 2, local rank 1, 2 on this host, job 3370450945, no"
                + " rendezvous, token from WINDLASS_TOKEN"),
        arguments(
            "PMIX_RANK=5 PMIX_NAMESPACE=slurm.pmix.7.0 SLURM_PROCID=5 SLURM_NTASKS=6"
                + " SLURM_LOCALID=2",
            "PMIx: rank 5 of 6, local rank 2, job slurm.pmix.7.0, ranks join by a file of this"
                + " host"),
        arguments(
            "SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_LOCALID=2 SLURM_JOB_ID=77 SLURM_STEP_ID=3",
            "Slurm: rank 5 of 6, local rank 2, job 77.3, ranks join by a file of this host"),
        arguments(
            "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=77 SLURM_STEP_ID=3",
            "Slurm: rank 1 of 2, job 77.3, ranks join by a file of this host"),
        arguments(
            "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=77 SLURM_STEP_ID=3",
            "Slurm: rank 1 of 2, job 77.3, ranks join by a file of this host"),
        arguments(
            "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=77",
            "Slurm: rank 0 of 1, job 77, no other rank"));
  }

  @ParameterizedTest
  @MethodSource("launchers")
  void eachLauncherIsRead(String text, String said) {
    assertThat(of(text)).hasToString(said);
  }

  @Test
  void whatIsReadIsToldOneByOne() {
    LaunchEnvironment all =
        of(
            "RANK=2 WORLD_SIZE=4096 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WINDLASS_JOB=j"
                + " WINDLASS_RENDEZVOUS=[::1]:65535 WINDLASS_TOKEN=" + DIGITS);
    assertThat(all.launcher()).isEqualTo(LaunchEnvironment.Launcher.TORCHRUN);
    assertThat(all.rank()).isEqualTo(2);
    assertThat(all.size()).isEqualTo(4096);
    assertThat(all.localRank()).hasValue(0);
    assertThat(all.localSize()).hasValue(2);
    assertThat(all.job()).contains("j");
    assertThat(all.rendezvous().orElseThrow().getHostString()).isEqualTo("::1");
    assertThat(all.rendezvous().orElseThrow().getPort()).isEqualTo(65535);
    assertThat(all.rendezvous().orElseThrow().isUnresolved()).isTrue();
    assertThat(all.tokenVariable()).contains("WINDLASS_TOKEN");
    assertThat(all.toString()).doesNotContain(DIGITS);
    LaunchEnvironment least = of("RANK=0 WORLD_SIZE=1");
    assertThat(least.localRank()).isEqualTo(OptionalInt.empty());
    assertThat(least.localSize()).isEqualTo(OptionalInt.empty());
    assertThat(least.job()).isEmpty();
    assertThat(least.rendezvous()).isEmpty();
    assertThat(least.store()).isEmpty();
    LaunchEnvironment etcd = of("RANK=0 WORLD_SIZE=1 WINDLASS_RENDEZVOUS=etcd://h:1/p");
    assertThat(etcd.store()).contains("etcd://h:1/p");
    assertThat(etcd.rendezvous()).isEmpty();
    assertThat(least.tokenVariable()).isEmpty();
  }

  @Test
  void withoutALauncherThereIsNone() {
    assertThat(LaunchEnvironment.of(Map.of())).isEmpty();
    assertThat(LaunchEnvironment.of(variables("HOME=/ RANK= WORLD_SIZE="))).isEmpty();
    assertThat(LaunchEnvironment.of(variables("SLURM_NTASKS=4 SLURM_JOB_ID=7"))).isEmpty();
    assertThat(LaunchEnvironment.of(variables("MASTER_ADDR=a WINDLASS_TOKEN=x"))).isEmpty();
  }

  @Test
  void theFirstLauncherInOrderCounts() {
    String slurm = "SLURM_PROCID=4 SLURM_NTASKS=5 SLURM_STEP_ID=0";
    String pmix = slurm + " PMIX_RANK=4 PMIX_NAMESPACE=n";
    String openMpi = pmix + " OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3";
    String torchrun = openMpi + " RANK=1 WORLD_SIZE=2";
    String windlass = torchrun + " WINDLASS_RANK=1 WINDLASS_WORLD_SIZE=2";
    assertThat(Stream.of(windlass, torchrun, openMpi, pmix, slurm).map(text -> of(text).launcher()))
        .containsExactly(LaunchEnvironment.Launcher.values());
    assertThat(of(torchrun + " WINDLASS_RANK=").rank()).isEqualTo(1);
  }

  /** Such as what a shell has exported from another start. */
  @Test
  void whereOneLauncherSaysThatThereIsNoOtherRankAndAnotherOneThatThereAreTheyAreNamed() {
    String alone = "RANK=0 WORLD_SIZE=1";
    String mpi = " OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2";
    assertThat(of(alone + mpi).rank()).isZero();
    assertThat(of(alone + mpi).toString())
        .contains(
            "RANK and WORLD_SIZE say rank 0 of 1, and count; OMPI_COMM_WORLD_RANK and"
                + " OMPI_COMM_WORLD_SIZE say rank 1 of 2: unset those that are left");
    String slurm = " SLURM_PROCID=3 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=4";
    assertThat(of(alone + slurm).others()).hasValueSatisfying(
        told -> assertThat(told).contains("SLURM_PROCID and SLURM_STEP_NUM_TASKS say rank 3 of 4"));
    for (String agreed :
        List.of(
            alone,
            "RANK=1 WORLD_SIZE=2" + mpi,
            alone + " OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1",
            alone + " SLURM_NTASKS=8",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=1" + mpi)) {
      assertThat(of(agreed).others()).as(agreed).isEmpty();
    }
  }

  @Test
  void thePortThatTorchrunsAgentHoldsIsNotTaken() {
    String address = "RANK=0 WORLD_SIZE=1 WINDLASS_TOKEN=" + DIGITS;
    address += " MASTER_ADDR=h MASTER_PORT=";
    assertThat(of(address + 29500).rendezvous().orElseThrow().getPort()).isEqualTo(29501);
    assertThat(of(address + 65535).rendezvous().orElseThrow().getPort()).isEqualTo(65534);
    assertThat(of(address + "29500 WINDLASS_RENDEZVOUS=g:29500").rendezvous().orElseThrow())
        .hasToString("g/<unresolved>:29500");
  }

  /** Variables, and what the refusal says. */
  static Stream<Arguments> wrong() {
    String rank = "RANK=0 WORLD_SIZE=2 ";
    return Stream.of(
        arguments("RANK=3", "RANK is '3', and WORLD_SIZE is not set; set both"),
        arguments("RANK=3\u202e", "RANK is '3?', and WORLD_SIZE is not set; set both"),
        arguments("WORLD_SIZE=3", "WORLD_SIZE is '3', and RANK is not set; set both"),
        arguments("WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=", "WINDLASS_WORLD_SIZE is not set"),
        arguments("WINDLASS_WORLD_SIZE=2 RANK=0 WORLD_SIZE=2", "WINDLASS_RANK is not set"),
        arguments(
            "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE is not set; start it with mpirun"),
        arguments("SLURM_PROCID=0", "SLURM_NTASKS is not set; start it with srun"),
        arguments(
            "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=77",
            "SLURM_NTASKS is '2', and SLURM_STEP_ID is not set, as in a batch script, which is one"
                + " process; start it with srun"),
        arguments(
            "PMIX_RANK=0", "SLURM_NTASKS is not set; set WINDLASS_RANK and WINDLASS_WORLD_SIZE"),
        arguments("PMIX_RANK=0 SLURM_NTASKS=4", "PMIX_RANK is '0', and SLURM_PROCID is not set"),
        arguments(
            "PMIX_RANK=1 SLURM_NTASKS=4 SLURM_PROCID=0", "SLURM_PROCID is '0': one launcher runs"),
        arguments("WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 RANK=1", "RANK is '1': one launcher runs"),
        arguments("RANK=two WORLD_SIZE=4", "RANK is 'two'; it must be a number from 0 to 4095"),
        arguments("RANK=+1 WORLD_SIZE=4", "RANK is '+1'"),
        arguments("RANK=-1 WORLD_SIZE=4", "RANK is '-1'"),
        arguments("RANK=1.0 WORLD_SIZE=4", "RANK is '1.0'"),
        arguments("RANK=\u0661 WORLD_SIZE=4", "RANK is '\u0661'"),
        arguments("RANK=18446744073709551616 WORLD_SIZE=4", "RANK is '18446744073709551616'"),
        arguments("RANK=4294967296 WORLD_SIZE=4", "RANK is '4294967296'"),
        arguments("RANK=0 WORLD_SIZE=0", "WORLD_SIZE is '0'; it must be a number from 1 to 4096"),
        arguments("RANK=0 WORLD_SIZE=4097", "WORLD_SIZE is '4097'"),
        arguments("RANK=4 WORLD_SIZE=4", "RANK is '4', and WORLD_SIZE is '4'; a rank must be less"),
        arguments(rank + "LOCAL_RANK=2", "LOCAL_RANK is '2', and WORLD_SIZE is '2'"),
        arguments(rank + "LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "and LOCAL_WORLD_SIZE is '1'"),
        arguments(
            rank + "LOCAL_RANK=0 LOCAL_WORLD_SIZE=3", "LOCAL_WORLD_SIZE is '3', and WORLD_SIZE"),
        arguments(
            rank + "LOCAL_WORLD_SIZE=2", "LOCAL_WORLD_SIZE is '2', and LOCAL_RANK is not set"),
        arguments(
            rank + "MASTER_ADDR=h", "MASTER_PORT is not set; set both, or WINDLASS_RENDEZVOUS"),
        arguments(rank + "MASTER_PORT=29500", "MASTER_ADDR is not set"),
        arguments(rank + "MASTER_ADDR=h MASTER_PORT=0", "MASTER_PORT is '0'"),
        arguments(rank + "MASTER_ADDR=h MASTER_PORT=65536", "MASTER_PORT is '65536'"),
        arguments(
            rank + "MASTER_ADDR=a/b MASTER_PORT=1", "MASTER_ADDR is 'a/b'; 'a/b' is not a host name"),
        arguments(
            rank + "WINDLASS_RENDEZVOUS=head",
            "WINDLASS_RENDEZVOUS is 'head'; it must be HOST:PORT"),
        arguments(rank + "WINDLASS_RENDEZVOUS=etcd://", "WINDLASS_RENDEZVOUS is no address"),
        arguments(
            rank + "WINDLASS_RENDEZVOUS=etcd://user:secret@h:1/p", "neither user nor password"),
        arguments(rank + "WINDLASS_RENDEZVOUS=etcd://" + "h".repeat(1001), "at most 1000 letters"),
        arguments(rank + "WINDLASS_RENDEZVOUS=::1:7000", "before its port: [::1]:7000"),
        arguments(rank + "WINDLASS_RENDEZVOUS=fd77::1:7000", "before its port: [fd77::1]:7000"),
        arguments(rank + "WINDLASS_RENDEZVOUS=fd77::", "its port must be a number"),
        arguments(rank + "WINDLASS_RENDEZVOUS=0.0.0.0:7000", "'0.0.0.0' is every address of a"),
        arguments(rank + "WINDLASS_RENDEZVOUS=[::]:7000", "name one by which others reach it"),
        arguments(rank + "WINDLASS_RENDEZVOUS=:7000", "must be HOST:PORT"),
        arguments(rank + "WINDLASS_RENDEZVOUS=head:", "its port must be a number from 1 to 65535"),
        arguments(rank + "WINDLASS_RENDEZVOUS=head:x", "WINDLASS_RENDEZVOUS is 'head:x'; its port"),
        arguments(rank + "WINDLASS_RENDEZVOUS=a%b:1", "'a%b' is not a host name"),
        arguments(rank + "WINDLASS_JOB=" + "j".repeat(256), "WINDLASS_JOB has 256 characters"),
        arguments(rank + "TORCHELASTIC_RUN_ID=a\nb", "TORCHELASTIC_RUN_ID has 3 characters"),
        arguments(
            rank + "WINDLASS_TOKEN_FILE=/t WINDLASS_TOKEN=" + DIGITS,
            "WINDLASS_TOKEN_FILE and WINDLASS_TOKEN are both set"));
  }

  @ParameterizedTest
  @MethodSource("wrong")
  void whatIsWrongIsNamed(String text, String reason) {
    assertThatThrownBy(() -> LaunchEnvironment.of(variables(text)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(reason)
        .hasMessageNotContaining("secret");
  }

  private static final List<String> NAMES =
      List.of(
          ("WINDLASS_RANK WINDLASS_WORLD_SIZE WINDLASS_LOCAL_RANK WINDLASS_LOCAL_WORLD_SIZE"
                  + " RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT"
                  + " OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK"
                  + " OMPI_COMM_WORLD_LOCAL_SIZE PMIX_RANK PMIX_NAMESPACE SLURM_PROCID SLURM_NTASKS"
                  + " SLURM_LOCALID SLURM_JOB_ID WINDLASS_JOB WINDLASS_RENDEZVOUS"
                  + " WINDLASS_TOKEN_FILE WINDLASS_TOKEN")
              .split(" "));

  private static final List<String> VALUES =
      List.of(
          "0", "0", "1", "1", "2", "2", "3", "4", "4096", "65535", "", "-1", "x", "h:1", "[::1]:2",
          "etcd://h:1/p",
          ":", "99999999999999999999", "\0", "\ud800", "\n", DIGITS, "a".repeat(300));

  @RandomSeeds(500)
  void randomVariablesAreReadWholeOrRefusedByName(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 20; i++) {
      Map<String, String> variables = new LinkedHashMap<>();
      int count = random.nextInt(NAMES.size());
      for (int j = 0; j < count; j++) {
        variables.put(
            NAMES.get(random.nextInt(NAMES.size())), VALUES.get(random.nextInt(VALUES.size())));
      }
      try {
        LaunchEnvironment.of(variables).ifPresent(LaunchEnvironmentTest::requireSound);
      } catch (InvalidArgumentException refused) {
        String said = refused.getMessage();
        assertThat(NAMES).as(said).anyMatch(said::startsWith);
        assertThat(said).isEqualTo(Texts.printable(said));
      }
    }
  }

  private static void requireSound(LaunchEnvironment read) {
    assertThat(read.size()).isBetween(1, 4096);
    assertThat(read.rank()).isBetween(0, read.size() - 1);
    read.localSize().ifPresent(local -> assertThat(local).isBetween(1, read.size()));
    read.localRank()
        .ifPresent(
            local -> assertThat(local).isBetween(0, read.localSize().orElse(read.size()) - 1));
    read.rendezvous().ifPresent(at -> assertThat(at.getPort()).isBetween(1, 65535));
    assertThat(read.toString()).doesNotContain("\n");
  }

  /** A whole job as a launcher would start it, inside a batch script of Slurm's. */
  @RandomSeeds(200)
  void theRanksOfAJobAreReadAsTheyWereSet(long seed) {
    Random random = new Random(seed);
    int hosts = 1 + random.nextInt(4);
    int perHost = 1 + random.nextInt(8);
    boolean isOpenMpi = random.nextBoolean();
    String family = isOpenMpi ? "OMPI_COMM_WORLD_" : random.nextBoolean() ? "" : "WINDLASS_";
    List<Integer> ranks = new ArrayList<>();
    for (int rank = 0; rank < hosts * perHost; rank++) {
      Map<String, String> variables = new LinkedHashMap<>();
      variables.put(family + "RANK", "" + rank);
      variables.put(family + (isOpenMpi ? "SIZE" : "WORLD_SIZE"), "" + hosts * perHost);
      variables.put(family + "LOCAL_RANK", "" + rank % perHost);
      variables.put(family + (isOpenMpi ? "LOCAL_SIZE" : "LOCAL_WORLD_SIZE"), "" + perHost);
      variables.put("SLURM_PROCID", "0");
      variables.put("SLURM_NTASKS", "" + random.nextInt(3));
      LaunchEnvironment read = LaunchEnvironment.of(variables).orElseThrow();
      ranks.add(read.rank());
      assertThat(read.size()).isEqualTo(hosts * perHost);
      assertThat(read.localRank()).hasValue(rank % perHost);
      assertThat(read.localSize()).hasValue(perHost);
    }
    assertThat(ranks).doesNotHaveDuplicates().hasSize(hosts * perHost);
  }
}
