// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/**
 * What opening a manifest refuses: before a window is made, on every rank, with one message, and
 * the communicator lives.
 */
@Timeout(120)
class RefusedContextsTest {
  private static final String MANIFEST =
      """
      {"version": 2, "comm_groups": [
        {"name": "a", "devices": [1, 0], "slots": [
          {"name": "w", "dtype": "float32", "size": 8, "load_from_host": true},
          {"name": "quiet", "nbytes": 8}]},
        {"devices": [0], "slots": [
          {"name": "out", "nbytes": 4, "store_to_host": true},
          {"name": "w", "dtype": "int4", "size": 3, "load_from_host": true}]}]}
      """;

  @TempDir private Path folder;

  /** What a rank brings. */
  private interface Hosts extends Serializable {
    HostTensors of(int rank);
  }

  private static HostTensors right(int rank) {
    HostTensors hosts = HostTensors.none().and("a", "w", Tensor.allocate(DType.F32, 8));
    return rank != 0
        ? hosts
        : hosts
            .and("out", Tensor.allocate(DType.U8, 4))
            .and(1, "w", Tensor.allocate(DType.U8, 2));
  }

  private static void refused(
      Ranks ranks, Class<? extends WindlassException> kind, String message, Hosts hosts) {
    ranks.run(
        comm -> {
          CommManifest manifest = CommContextsTest.parse(MANIFEST);
          assertThatThrownBy(() -> manifest.open(comm, hosts.of(comm.rank())))
              .isInstanceOf(kind)
              .hasMessage("open: " + message);
          assertThat(comm.failure()).isEmpty();
          CommContexts contexts = manifest.open(comm, right(comm.rank()));
          contexts.storeToHost();
          contexts.close();
        });
  }

  private static void invalid(Ranks ranks, String message, Hosts hosts) {
    refused(ranks, InvalidArgumentException.class, message, hosts);
  }

  @OnRanks(2)
  void slotsOnDevicesWhereThereAreNoneOrNotOfAll(Ranks ranks) {
    ranks.run(
        comm -> {
          CommManifest manifest = CommContextsTest.parse(MANIFEST);
          HostTensors hosts = right(comm.rank());
          assertThatThrownBy(() -> manifest.openOnDevices(comm, hosts))
              .isInstanceOf(UnsupportedException.class)
              .hasMessage(
                  "open: target sim has no devices on which callers have tensors; slots in the"
                      + " memory of hosts are opened by open");
          assertThatThrownBy(
                  () -> {
                    if (comm.rank() == 0) {
                      manifest.open(comm, hosts);
                    } else {
                      manifest.openOnDevices(comm, hosts);
                    }
                  })
              .isInstanceOf(MismatchException.class)
              .hasMessage(
                  "open: ranks want slots in different memory: rank 0 in that of hosts, rank 1 in"
                      + " that of devices; call open on all ranks, or openOnDevices on all ranks");
          assertThat(comm.failure()).isEmpty();
          CommContexts contexts = manifest.open(comm, hosts);
          contexts.storeToHost();
          contexts.close();
        });
  }

  @OnRanks(2)
  void aHostTensorOfAnotherSizeOrDtype(Ranks ranks) {
    invalid(
        ranks,
        "rank 1: host tensor \"w\" is f32[7], of 28 bytes; slot \"w\" of group 0 (\"a\") takes 8"
            + " elements of f32, 32 bytes",
        rank -> rank == 0 ? right(0) : HostTensors.of("w", Tensor.allocate(DType.F32, 7)));
    invalid(
        ranks,
        "rank 1: host tensor \"w\" is i32[8], of 32 bytes; slot \"w\" of group 0 (\"a\") takes 8"
            + " elements of f32, 32 bytes",
        rank -> rank == 0 ? right(0) : HostTensors.of("w", Tensor.allocate(DType.I32, 8)));
    invalid(
        ranks,
        "rank 0: host tensor \"out\" is u8[5], of 5 bytes; slot \"out\" of group 1 takes 4 bytes",
        rank ->
            rank == 1
                ? right(1)
                : HostTensors.none()
                    .and("a", "w", Tensor.allocate(DType.F32, 8))
                    .and("out", Tensor.allocate(DType.U8, 5))
                    .and(1, "w", Tensor.allocate(DType.U8, 2)));
    invalid(
        ranks,
        "rank 0: host tensor \"w\" of group 1 is i8[2], of 2 bytes; slot \"w\" of group 1 takes 2"
            + " elements of u8, 2 bytes",
        rank ->
            rank == 1
                ? right(1)
                : HostTensors.none().and(1, "w", Tensor.allocate(DType.I8, 2)));
  }

  @OnRanks(2)
  void aHostTensorThatIsMissing(Ranks ranks) {
    invalid(
        ranks,
        "rank 1: slot \"w\" of group 0 (\"a\") is loaded from the host, and there is no host tensor"
            + " \"w\"; give one by HostTensors",
        rank -> rank == 0 ? right(0) : HostTensors.none());
    invalid(
        ranks,
        "rank 0: slot \"out\" of group 1 is stored to the host, and there is no host tensor"
            + " \"out\"; give one by HostTensors",
        rank -> right(1));
  }

  @OnRanks(2)
  void aHostTensorThatNoSlotAsksFor(Ranks ranks) {
    String asking =
        "slot \"w\" of group 0 (\"a\"), slot \"out\" of group 1, slot \"w\" of group 1";
    for (String name : new String[] {"quiet", "W"}) {
      invalid(
          ranks,
          "host tensor \""
              + name
              + "\" is not asked for by any slot; the slots with load_from_host or store_to_host are "
              + asking,
          rank -> right(rank).and(name, Tensor.allocate(DType.U8, 8)));
    }
    invalid(
        ranks,
        "host tensor \"out\" of group \"a\" is not asked for by any slot; the slots with load_from_host or"
            + " store_to_host are "
            + asking,
        rank -> right(rank).and("a", "out", Tensor.allocate(DType.U8, 4)));
  }

  @OnRanks(2)
  void aHostTensorForOneOfSeveralSlots(Ranks ranks) {
    invalid(
        ranks,
        "rank 0: host tensor \"w\" may go to slot \"w\" of group 0 (\"a\") or slot \"w\" of group"
            + " 1; say which by HostTensors.and(group, slot, tensor)",
        rank -> HostTensors.of("w", Tensor.allocate(DType.F32, 8)));
    invalid(
        ranks,
        "slot \"w\" of group 0 (\"a\") has two tensors: host tensor \"w\" of group \"a\" and host"
            + " tensor \"w\" of group 0",
        rank -> right(rank).and(0, "w", Tensor.allocate(DType.F32, 8)));
  }

  @OnRanks(2)
  void aHostTensorThatCannotBeUsed(Ranks ranks) {
    invalid(
        ranks,
        "rank 0: host tensor \"out\" (u8[4]) is read-only; slot \"out\" of group 1 is stored to it",
        rank ->
            HostTensors.of(
                "out",
                Tensor.of(ByteBuffer.allocateDirect(4).asReadOnlyBuffer(), DType.U8, 4))
                .and("a", "w", Tensor.allocate(DType.F32, 8)));
    refused(
        ranks,
        ClosedException.class,
        "rank 1: host tensor \"w\" of group \"a\" (f32[8]) is over memory that was closed",
        rank -> {
          Tensor tensor = Tensor.allocate(DType.F32, 8);
          if (rank == 1) {
            tensor.close();
          }
          return rank == 0 ? right(0) : HostTensors.none().and("a", "w", tensor);
        });
  }

  @OnRanks({2, 4})
  void moreDevicesThanRanks(Ranks ranks) {
    int count = ranks.count();
    ranks.run(
        comm -> {
          CommManifest manifest =
              CommContextsTest.parse(
                  "{\"version\":2,\"comm_groups\":[{\"devices\":[0," + count + "],\"slots\":[]}]}");
          assertThatThrownBy(() -> manifest.open(comm))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessage(
                  "open: $.comm_groups[0].devices[1] is "
                      + count
                      + "; there are devices 0 to "
                      + (count - 1)
                      + ", the "
                      + count
                      + " ranks of the communicator");
          comm.barrier();
        });
  }

  @OnRanks(2)
  void aSlotThatIsTooLarge(Ranks ranks) {
    ranks.run(
        comm -> {
          for (long bytes : new long[] {1L << 50, Long.MAX_VALUE / 8 - 128}) {
            CommManifest manifest =
                CommContextsTest.parse(
                    "{\"version\":2,\"comm_groups\":[{\"name\":\"a\",\"devices\":[],\"slots\":["
                        + "{\"name\":\"small\",\"nbytes\":64},{\"name\":\"huge\",\"nbytes\":"
                        + bytes
                        + "}]}]}");
            assertThatThrownBy(() -> manifest.open(comm))
                .isInstanceOf(ResourceException.class)
                .hasMessageContaining(
                    "slot \"huge\" of group 0 (\"a\") is too large: it takes "
                        + bytes
                        + " bytes on each of 2 ranks, and after the slots before it ")
                .hasMessageContaining(" that are free on this machine");
          }
          comm.barrier();
        });
  }

  @OnRanks({2, 4})
  void differentManifests(Ranks ranks) {
    int last = ranks.count() - 1;
    ranks.run(
        comm -> {
          String[][] changes = {
            {"\"size\": 8", "\"size\": 9", "[0].slots[0] is \"w\" (8 x float32, load_from_host) on"
                + " rank 0 and \"w\" (9 x float32, load_from_host) on rank " + last},
            {"[1, 0]", "[0, 1]", "[0].devices is [1, 0] on rank 0 and [0, 1] on rank " + last},
            {"\"name\": \"a\", ", "", "[0].name is \"a\" on rank 0 and missing on rank " + last},
            {", {\"devices\": [0]", "", " is 2 long on rank 0 and 1 long on rank " + last},
          };
          for (String[] change : changes) {
            String other =
                change[1].isEmpty() && change[0].startsWith(",")
                    ? MANIFEST.substring(0, MANIFEST.indexOf(",\n  {\"devices\": [0]")) + "]}"
                    : MANIFEST.replace(change[0], change[1]);
            CommManifest manifest =
                CommContextsTest.parse(comm.rank() == last ? other : MANIFEST);
            assertThatThrownBy(() -> manifest.open(comm, right(comm.rank())))
                .isInstanceOf(MismatchException.class)
                .hasMessage(
                    "open: ranks have different manifests: $.comm_groups"
                        + change[2]
                        + "; give all ranks one file");
          }
          comm.barrier();
        });
  }

  @OnRanks(4)
  void whatFailsOnOneRankAllGet(Ranks ranks) {
    ranks.run(
        comm -> {
          RankAgreement agreement =
              new RankAgreement(
                  comm,
                  Native.WL_OP_MANIFEST_OPEN,
                  "open",
                  Deadline.of(Duration.ofSeconds(30)));
          Throwable failure =
              catchThrowable(
                  () ->
                      agreement.carryOut(
                          () -> {
                            switch (comm.rank()) {
                              case 0 -> throw new AbortedException("rank 2 closed");
                              case 2 -> throw new ResourceException("no memory");
                              case 3 -> throw new IllegalStateException("a fault");
                              default -> { }
                            }
                          }));
          assertThat(failure)
              .isInstanceOf(ResourceException.class)
              .hasMessage("open: rank 2: no memory");
          assertThat(((WindlassException) failure).faultyRanks()).containsExactly(2);
          assertThatThrownBy(
                  () ->
                      agreement.carryOut(
                          () -> {
                            throw new IllegalStateException("a fault");
                          }))
              .isInstanceOf(InternalException.class)
              .hasMessage("open: java.lang.IllegalStateException: a fault");
          agreement.carryOut(() -> {});
        });
  }

  @Test
  void aRankThatDoesNotComeCostsTheDeadline() {
    try (LocalGroup group = LocalGroup.of(2)) {
      CommManifest manifest = CommContextsTest.parse(MANIFEST);
      long start = System.nanoTime();
      assertThatThrownBy(
              () -> manifest.open(group.communicator(0), right(0), Duration.ofMillis(100)))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("s in manifest open, operation #1 on 2 ranks: rank 1 has not come")
          .hasMessageNotContaining("gather");
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
    }
  }

  @Test
  void aRankThatDoesNotStoreIsNamedInWhatOthersCalled() {
    CommManifest manifest = CommContextsTest.parse(MANIFEST);
    CommContexts[] contexts = new CommContexts[2];
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(comm -> contexts[comm.rank()] = manifest.open(comm, right(comm.rank())));
      assertThatThrownBy(() -> contexts[0].storeToHost(Duration.ofMillis(100)))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("s in storeToHost, operation #")
          .hasMessageContaining("rank 1 has not come")
          .hasMessageNotContaining("gather");
      group.run(comm -> contexts[comm.rank()].close());
    }
  }

  @Test
  void aProgramWithoutAManifest() throws Exception {
    Map<String, String> nothing = Map.of();
    Path file = folder.resolve(CommManifest.NAME);
    assertThatThrownBy(() -> CommManifest.fromEnvironment(nothing, folder))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(
            "there is no comm manifest: WINDLASS_MANIFEST is not set, and "
                + file
                + " is not there; set WINDLASS_MANIFEST to the file, or start where"
                + " comm_manifest.json lies");
    CommManifest manifest = CommContextsTest.parse(MANIFEST);
    manifest.write(file);
    assertThat(CommManifest.fromEnvironment(nothing, folder)).isEqualTo(manifest);
    Path other = folder.resolve("other.json");
    Map<String, String> named = Map.of("WINDLASS_MANIFEST", other.toString());
    assertThatThrownBy(() -> CommManifest.fromEnvironment(named, folder))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("WINDLASS_MANIFEST is " + other + ", which is not there");
    Files.writeString(other, "{}");
    assertThatThrownBy(() -> CommManifest.fromEnvironment(named, folder))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(other + ": $.version is missing");
    Map<String, String> itsFolder = Map.of("WINDLASS_MANIFEST", folder.toString());
    assertThatThrownBy(() -> CommManifest.fromEnvironment(itsFolder, folder))
        .isInstanceOf(ResourceException.class)
        .hasMessageContaining(folder.toString());
  }

  @Test
  void twoGroupsOfOneName() {
    assertThatThrownBy(
            () ->
                CommContextsTest.parse(
                    "{\"version\":2,\"comm_groups\":[{\"name\":\"tp\",\"devices\":[],\"slots\":[]},"
                        + "{\"name\":\"tp\",\"devices\":[0],\"slots\":[]}]}"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("m.json: $.comm_groups[1].name is \"tp\", as comm_groups[0].name is");
  }
}
