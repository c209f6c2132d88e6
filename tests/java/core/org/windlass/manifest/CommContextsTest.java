// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** Communicators, windows and slots that a manifest means, and what goes in and out of them. */
@Timeout(120)
class CommContextsTest {
  /** Two groups that overlap, the first in no ascending order, and one of all. */
  private static final String THREE_GROUPS =
      """
      {"version": 2, "comm_groups": [
        {"name": "experts", "devices": [2, 0], "slots": [
          {"name": "scratch", "dtype": "float32", "size": 257},
          {"name": "codes", "nbytes": 10},
          {"name": "nibbles", "dtype": "uint8", "size": 5, "bits_per_element": 4},
          {"name": "none", "dtype": "int64", "size": 0},
          {"name": "rows", "dtype": "bfloat16", "size": 64}]},
        {"name": "tail", "devices": [1, 2], "slots": [{"name": "scratch", "nbytes": 8}]},
        {"devices": [], "slots": []}]}
      """;

  private static final String ALL_DTYPES =
      """
      {"version": 2, "comm_groups": [{"devices": [], "slots": [
        {"name": "float32", "dtype": "float32", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "float16", "dtype": "float16", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "bfloat16", "dtype": "bfloat16", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "int8", "dtype": "int8", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "int16", "dtype": "int16", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "int32", "dtype": "int32", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "int64", "dtype": "int64", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "uint8", "dtype": "uint8", "size": 24, "load_from_host": true, "store_to_host": true},
        {"name": "int4", "dtype": "int4", "size": 47, "load_from_host": true, "store_to_host": true},
        {"name": "bytes", "nbytes": 192, "load_from_host": true, "store_to_host": true}]}]}
      """;

  static CommManifest parse(String json) {
    return CommManifest.parse("m.json", json.getBytes(StandardCharsets.UTF_8));
  }

  /** Of {@code dtype}, with random bits. */
  private static Tensor random(Random random, DType dtype, long... shape) {
    Tensor tensor = Tensor.allocate(dtype, shape);
    byte[] bits = new byte[(int) tensor.bytes()];
    random.nextBytes(bits);
    tensor.asByteBuffer().put(bits);
    return tensor;
  }

  /** In row-major order. */
  private static byte[] bits(Tensor tensor) {
    byte[] bits = new byte[(int) tensor.bytes()];
    Tensor.allocate(tensor.dtype(), tensor.shape()).copyFrom(tensor).asByteBuffer().get(bits);
    return bits;
  }

  @OnRanks({3, 4})
  void groupsAreCommunicatorsOfDenseRanksAndSlotsAreTensorsOfTheirWindows(Ranks ranks) {
    ranks.run(
        comm -> {
          int device = comm.rank();
          try (CommContexts contexts = parse(THREE_GROUPS).open(comm)) {
            assertThat(contexts.bootstrap()).isEqualTo(parse(THREE_GROUPS).bootstrap(comm.size()));
            CommContext all = contexts.get(2);
            assertThat(all.communicator().rank()).isEqualTo(device);
            assertThat(all.communicator().size()).isEqualTo(comm.size());
            assertThat(all.window().bytes()).isZero();
            if (device == 1 || device == 3) {
              noMember(contexts, device);
            } else {
              member(contexts.get("experts"), device);
              assertThat(contexts.get(0)).isSameAs(contexts.get("experts"));
            }
            assertThat(contexts.find("tail").isPresent()).isEqualTo(device == 1 || device == 2);
            assertThat(contexts.find(1)).isEqualTo(contexts.find("tail"));
            assertThatThrownBy(() -> contexts.find("tails"))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessage(
                    "find: the manifest has no group \"tails\"; it has group 0 (\"experts\"),"
                        + " group 1 (\"tail\"), group 2");
            assertThatThrownBy(() -> contexts.get(3))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("group is 3; it must lie in [0, 3)");
            if (device == 2) { // in both at once
              contexts.get("tail").communicator().barrier();
            } else {
              contexts.find("tail").ifPresent(tail -> tail.communicator().barrier());
            }
          }
        });
  }

  private static void noMember(CommContexts contexts, int device) {
    assertThat(contexts.find("experts")).isEmpty();
    assertThatThrownBy(() -> contexts.get("experts"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(
            "get: device "
                + device
                + " is no member of group 0 (\"experts\"); its members are 2, 0");
  }

  private static void member(CommContext experts, int device) {
    Communicator group = experts.communicator();
    assertThat(group.size()).isEqualTo(2);
    assertThat(group.rank()).isEqualTo(device == 2 ? 0 : 1);
    assertThat(experts.rankOf(2)).isZero();
    assertThat(experts.rankOf(0)).isOne();
    assertThatThrownBy(() -> experts.rankOf(1))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("device 1 is no member of group 0 (\"experts\")");
    assertThat(experts.window().bytes()).isEqualTo(experts.group().windowBytes());
    slot(experts, "scratch", DType.F32, 257);
    slot(experts, "codes", DType.U8, 10);
    slot(experts, "nibbles", DType.U8, 3);
    slot(experts, "none", DType.I64, 0);
    slot(experts, "rows", DType.BF16, 64);
    assertThatThrownBy(() -> experts.tensor("row"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(
            "tensor: group 0 (\"experts\") has no slot \"row\"; it has \"scratch\", \"codes\","
                + " \"nibbles\", \"none\", \"rows\"");
    int peer = 1 - group.rank();
    DistributedTensor rows = experts.tensor("rows");
    group.barrier();
    experts.window().put(Tensor.allocate(DType.BF16, 64).fill(group.rank() + 1), peer, rows);
    group.barrier();
    assertThat(rows.getDouble(63)).isEqualTo(peer + 1);
    group.allReduce(experts.tensor("scratch").fill(group.rank() + 1), ReduceOp.SUM);
    assertThat(experts.tensor("scratch").getDouble(256)).isEqualTo(3);
  }

  private static void slot(CommContext context, String name, DType dtype, long elements) {
    DistributedTensor tensor = context.tensor(name);
    assertThat(tensor.dtype()).isEqualTo(dtype);
    assertThat(tensor.shape()).containsExactly(elements);
    assertThat(tensor.window()).isSameAs(context.window());
    assertThat(context.group().slots())
        .filteredOn(place -> place.slot().name().equals(name))
        .extracting(Bootstrap.Place::offset)
        .containsExactly(tensor.offset());
    assertThat(bits(tensor)).as(name).isEqualTo(new byte[(int) tensor.bytes()]);
  }

  static Stream<Arguments> loaded() {
    return Ranks.with(new int[] {1, 2, 4}, 1L, 2L, System.nanoTime());
  }

  /** Strided, contiguous, and of several dimensions: what is loaded comes back, one rank on. */
  @ParameterizedTest(name = "{0}, seed {1}")
  @MethodSource("loaded")
  void hostTensorsGoInAndComeOutBitForBit(Ranks ranks, long seed) {
    ranks.run(comm -> goInAndOut(comm, CommManifest::open, seed));
  }

  /** How a manifest is opened. */
  interface Opener {
    CommContexts open(CommManifest manifest, Communicator communicator, HostTensors hosts);
  }

  /** On whichever target this process runs. */
  static void goInAndOut(Communicator comm, Opener opener, long seed) {
    HostTensors hosts = HostTensors.none();
    Tensor[] tensors = hosts(seed, comm.rank());
    Tensor[] golden = hosts(seed, (comm.rank() + 1) % comm.size());
    CommManifest manifest = parse(ALL_DTYPES);
    for (int i = 0; i < tensors.length; i++) {
      hosts = hosts.and(manifest.groups().get(0).slots().get(i).name(), tensors[i]);
    }
    try (CommContexts contexts = opener.open(manifest, comm, hosts)) {
      CommContext all = contexts.get(0);
      int next = (comm.rank() + 1) % comm.size();
      Tensor[] got = new Tensor[tensors.length];
      for (int i = 0; i < tensors.length; i++) {
        DistributedTensor slot = all.tensor(manifest.groups().get(0).slots().get(i).name());
        Tensor own = Tensor.allocate(slot.dtype(), slot.shape());
        all.window().get(own, comm.rank(), slot);
        assertThat(bits(own)).as("slot %d, seed %d", i, seed).isEqualTo(bits(tensors[i]));
        got[i] = Tensor.allocate(slot.dtype(), slot.shape());
        all.window().get(got[i], next, slot); // loaded on every rank when open returns
      }
      all.communicator().barrier();
      for (int i = 0; i < tensors.length; i++) {
        DistributedTensor slot = all.tensor(manifest.groups().get(0).slots().get(i).name());
        all.window().put(got[i], comm.rank(), slot);
      }
      contexts.storeToHost();
    }
    for (int i = 0; i < tensors.length; i++) {
      assertThat(bits(tensors[i])).as("slot %d, seed %d", i, seed).isEqualTo(bits(golden[i]));
    }
  }

  /** For each slot of {@link #ALL_DTYPES}. */
  private static Tensor[] hosts(long seed, int rank) {
    Random random = new Random(seed + rank);
    return new Tensor[] {
      random(random, DType.F32, 6, 4).transpose(0, 1),
      random(random, DType.F16, 24),
      random(random, DType.BF16, 2, 3, 4),
      random(random, DType.I8, 4, 12).narrow(1, 2, 6),
      random(random, DType.I16, 24, 1),
      random(random, DType.I32, 4, 6),
      random(random, DType.I64, 24),
      random(random, DType.U8, 3, 8).transpose(0, 1),
      random(random, DType.U8, 24),
      random(random, DType.F64, 24), // bytes are of any dtype
    };
  }

  @OnRanks(2)
  void slotsOfOneNameTakeTheirOwnGroupsTensors(Ranks ranks) {
    ranks.run(
        comm -> {
          String slots = "\"slots\": [{\"name\": \"w\", \"nbytes\": 1, \"load_from_host\": true}]}";
          CommManifest manifest =
              parse(
                  "{\"version\": 2, \"comm_groups\": [{\"name\": \"a\", \"devices\": [], "
                      + slots
                      + ", {\"devices\": [0], "
                      + slots
                      + "]}");
          Tensor one = Tensor.allocate(DType.U8, 1).fill(1);
          Tensor two = Tensor.allocate(DType.U8, 1).fill(2);
          // Rank 1 is in the first group alone: what is for the other is left alone.
          HostTensors hosts = HostTensors.none().and("a", "w", one).and(1, "w", two);
          try (CommContexts contexts = manifest.open(comm, hosts)) {
            assertThat(contexts.get("a").tensor("w").getLong(0)).isEqualTo(1);
            contexts.find(1).ifPresent(c -> assertThat(c.tensor("w").getLong(0)).isEqualTo(2));
          }
          HostTensors byName = comm.rank() == 1 ? HostTensors.of("w", two) : hosts;
          try (CommContexts contexts = manifest.open(comm, byName)) {
            assertThat(contexts.get(0).tensor("w").getLong(0)).isEqualTo(comm.rank() + 1);
          }
        });
  }

  private static final String STORED =
      """
      {"version": 2, "comm_groups": [{"devices": [], "slots": [
        {"name": "first", "dtype": "int32", "size": 1, "store_to_host": true},
        {"name": "second", "dtype": "int32", "size": 1, "store_to_host": true}]}]}
      """;

  private static CommContexts open(Communicator comm, Tensor first, Tensor second) {
    CommContexts contexts =
        parse(STORED).open(comm, HostTensors.of("first", first).and("second", second));
    contexts.get(0).tensor("first").fill(1);
    contexts.get(0).tensor("second").fill(2);
    return contexts;
  }

  @OnRanks(2)
  void nothingIsStoredWhereAHostTensorOfOneRankIsGone(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor first = Tensor.allocate(DType.I32, 1);
          Tensor second = Tensor.allocate(DType.I32, 1);
          CommContexts contexts = open(comm, first, second);
          if (comm.rank() == 1) {
            second.close();
          }
          assertThatThrownBy(contexts::storeToHost)
              .isInstanceOf(ClosedException.class)
              .hasMessage(
                  "storeToHost: rank 1: host tensor \"second\" (i32[1]) is over memory that was"
                      + " closed");
          assertThat(first.getLong(0)).isZero();
          comm.barrier();
          assertThatThrownBy(contexts::close)
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessage(
                  "close: not stored were host tensor \"first\", host tensor \"second\"; call storeToHost() before"
                      + " close");
          contexts.close();
        });
  }

  @OnRanks(2)
  void aRankThatFailsKeepsOthersFromStoring(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor first = Tensor.allocate(DType.I32, 1);
          Tensor second = Tensor.allocate(DType.I32, 1);
          try (CommContexts contexts = open(comm, first, second)) {
            if (comm.rank() == 1) {
              comm.abort("the program has failed");
            }
            assertThatThrownBy(contexts::storeToHost).hasMessageContaining("the program has failed");
          } // after a failure nothing is missed
          assertThat(first.getLong(0)).isZero();
        });
  }

  @OnRanks({1, 2})
  void storingIsAStepThatMayBeRepeated(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor first = Tensor.allocate(DType.I32, 1);
          Tensor second = Tensor.allocate(DType.I32, 1);
          CommContext context;
          try (CommContexts contexts = open(comm, first, second)) {
            context = contexts.get(0);
            contexts.storeToHost();
            assertThat(first.getLong(0)).isOne();
            context.tensor("first").fill(7);
            assertThat(first.getLong(0)).isOne();
            contexts.storeToHost();
          }
          assertThat(first.getLong(0)).isEqualTo(7);
          assertThat(second.getLong(0)).isEqualTo(2);
          DistributedTensor ended = context.tensor("first");
          assertThatThrownBy(() -> ended.fill(0)).isInstanceOf(ClosedException.class);
          assertThatThrownBy(() -> context.communicator().barrier())
              .isInstanceOf(ClosedException.class);
          comm.barrier();
        });
  }

  private static final String ONE_SLOT =
      """
      {"version": 2, "comm_groups": [{"name": "g", "devices": [], "slots": [
        {"name": "w", "dtype": "float32", "size": 100000, "store_to_host": true}]}]}
      """;

  @OnRanks(2)
  void whatWasSubmittedOnAGroupIsAwaitedBeforeItIsStored(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var host = Tensor.allocate(DType.F32, 100_000);
              var contexts = parse(ONE_SLOT).open(comm, HostTensors.of("w", host))) {
            var group = contexts.get("g");
            group.tensor("w").fill(1);
            group.communicator().runAsync(c -> pause());
            group.communicator().runAsync(c -> c.allReduce(group.tensor("w"), ReduceOp.SUM));
            contexts.storeToHost();
            assertThat(host.getDouble(0)).isEqualTo(2);
            assertThat(host.getDouble(99_999)).isEqualTo(2);
          }
        });
  }

  private static void pause() {
    try {
      Thread.sleep(100);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @OnRanks(2)
  void nothingIsStoredOfAGroupThatHasFailed(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var host = Tensor.allocate(DType.F32, 100_000);
              var contexts = parse(ONE_SLOT).open(comm, HostTensors.of("w", host))) {
            var group = contexts.get("g");
            group.tensor("w").fill(7);
            group.communicator().abort("this group is done");
            comm.barrier();
            assertThatThrownBy(contexts::storeToHost).hasMessageContaining("this group is done");
            assertThat(host.getDouble(0)).isZero();
            comm.barrier(); // the communicator that it was opened on goes on
          }
        });
  }
}
