// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.StoreTest.start;

import io.etcd.jetcd.Auth;
import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.options.PutOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractStringAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.LinkRendezvous;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;

/** Who gets into a store in etcd, what those inside see when it ends, and what is left then. */
@Timeout(120)
class EtcdStoreTest {
  static final Duration LONG = Duration.ofSeconds(60);

  static final byte[] ONE = {1};
  static final byte[] TWO = {2};

  static Store rank(Etcd etcd, String name, int rank, int size) {
    return etcd.connect(name, rank, size, LONG);
  }

  /** One of a short lease. */
  static Store brief(Etcd etcd, String name, int rank, int size) {
    return Etcd.connect(etcd.address(), name, rank, size, Etcd.SHORT_LEASE_SECONDS, LONG);
  }

  /** A wait for {@code key} that fails with {@code code}, as its message tells. */
  static FutureTask<String> failingWait(Store store, String key, int code) {
    return start(
        () -> {
          String[] message = new String[1];
          assertFails(code, () -> store.awaitOther(key, null, LONG).orElseThrow())
              .satisfies(text -> message[0] = text);
          return message[0];
        });
  }

  /** A call that ends by a deadline. */
  interface Limited {
    void within(Duration limit);
  }

  /**
   * The message of a call that ends at its deadline, and says by then what {@code reasons} do. A busy
   * machine may need more time to learn them: the next call has twice as much.
   */
  static AbstractStringAssert<?> assertTimesOut(Limited call, String... reasons) {
    for (Duration limit = Duration.ofSeconds(1); ; limit = limit.multipliedBy(2)) {
      Duration now = limit;
      String[] message = new String[1];
      AbstractStringAssert<?> told =
          assertFails(Native.WL_DEADLINE_EXCEEDED, () -> call.within(now))
              .satisfies(text -> message[0] = text);
      if (Stream.of(reasons).allMatch(message[0]::contains) || limit.compareTo(LONG) > 0) {
        return told.contains(reasons);
      }
    }
  }

  static Duration since(long beginNs) {
    return Duration.ofNanos(System.nanoTime() - beginNs);
  }

  @Test
  void theStoreIsRankZerosAndNothingIsLeftOfIt() throws Exception {
    Etcd etcd = Etcd.shared();
    String name = Etcd.newName();
    FutureTask<Store> early = start(() -> rank(etcd, name, 1, 3));
    Thread.sleep(100);
    assertThat(early).isNotDone();
    Store owner = rank(etcd, name, 0, 3);
    Store one = early.get(30, TimeUnit.SECONDS);
    Store two = rank(etcd, name, 2, 3);
    assertThat(one.address()).isEqualTo(etcd.address());
    one.set("left", ONE, LONG);
    assertThat(two.hold("held", ONE, LONG)).isTrue();
    assertThat(owner.keys("", LONG)).containsExactly("held", "left");
    two.close();
    assertThat(owner.awaitOther("held", ONE, LONG)).isEmpty();
    FutureTask<String> wait = failingWait(one, "absent", Native.WL_PEER_LOST);
    Thread.sleep(50);
    assertThat(wait).isNotDone();
    owner.close();
    assertThat(wait.get(30, TimeUnit.SECONDS))
        .contains("await absent", etcd.address() + " was lost", "rank 0");
    assertFails(Native.WL_PEER_LOST, () -> one.get("left", LONG)).contains("get left", "rank 0");
    assertFails(Native.WL_PEER_LOST, () -> one.set("left", TWO, LONG)).contains("set left");
    assertFails(Native.WL_CLOSED, () -> owner.get("left", LONG)).contains("get left");
    one.close();
    assertThat(etcd.keys(Etcd.PREFIX + "/" + name)).isEmpty();
  }

  @Test
  void storesOfTwoNamesHaveNothingInCommon() {
    Etcd etcd = Etcd.shared();
    try (Store one = rank(etcd, Etcd.newName(), 0, 1);
        Store other = rank(etcd, Etcd.newName(), 0, 1)) {
      one.set("a", ONE, LONG);
      assertThat(other.keys("", LONG)).isEmpty();
      assertThat(other.hold("a", TWO, LONG)).isTrue();
      assertThat(one.get("a", LONG)).contains(ONE);
    }
  }

  /** In one of several tries, since this machine may be busy. */
  @Test
  void whoSearchesForLessTimeThanAnOwnerMayTakeBecomesTheOwner() {
    Map<String, String> variables =
        Map.of(
            "WINDLASS_LINK_RENDEZVOUS", Etcd.shared().address(),
            "WINDLASS_TOKEN", "0a".repeat(32));
    boolean isFound = false;
    for (int i = 0; i < 20 && !isFound; i++) {
      try (LinkRendezvous rendezvous = new LinkRendezvous(variables, Etcd.LIBRARY)) {
        rendezvous.find(Duration.ofMillis(2800)); // half of which is for the store to open
        isFound = true;
      } catch (WindlassException e) {
        assertThat(e).hasMessageContaining("no answer of");
      }
    }
    assertThat(isFound).isTrue();
  }

  @Test
  void aRankIsThereOnce() throws Exception {
    Etcd etcd = Etcd.shared();
    String name = Etcd.newName();
    try (Store owner = rank(etcd, name, 0, 2);
        Store one = rank(etcd, name, 1, 2)) {
      String process = "process " + ProcessHandle.current().pid();
      List<FutureTask<?>> refused = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        int again = rank;
        refused.add(
            start(
                () ->
                    assertFails(Native.WL_MISMATCH, () -> brief(etcd, name, again, 2))
                        .contains("rank " + again + " of 2 of job \"test\" (" + process)
                        .contains("already", "WINDLASS_JOB")));
      }
      assertTimesOut(
          limit -> etcd.connect(name, 1, 2, limit), process, "already");
      for (FutureTask<?> each : refused) {
        each.get(LONG.toSeconds(), TimeUnit.SECONDS);
      }
      one.set("a", ONE, LONG);
      assertThat(owner.get("a", LONG)).contains(ONE);
    }
  }

  @Test
  void ranksOfAnotherVersionAreRefusedAndBothAreNamed() throws Exception {
    Etcd etcd = Etcd.shared();
    String name = Etcd.newName();
    Statement now = Statement.of(new Member("test", 0, 2, "9.8.7"));
    Statement later = new Statement(Statement.PROTOCOL + 1, "9.8.7", now.who());
    for (ByteSequence said : new ByteSequence[] {later.toBytes(0), Etcd.bytes("hello")}) {
      try (Client client = etcd.client()) {
        long lease = client.getLeaseClient().grant(60).get().getID();
        ByteSequence key = Etcd.bytes(Etcd.PREFIX + "/" + name + "/owner");
        PutOption option = PutOption.builder().withLeaseId(lease).build();
        client.getKVClient().put(key, said, option).get();
        assertFails(Native.WL_MISMATCH, () -> rank(etcd, name, 1, 2))
            .contains("protocol " + Statement.PROTOCOL, Etcd.LIBRARY);
        client.getLeaseClient().revoke(lease).get();
      }
    }
  }

  @Test
  void whatNoMemberHasWrittenIsNotListed() throws Exception {
    Etcd etcd = Etcd.shared();
    String name = Etcd.newName();
    try (Store store = rank(etcd, name, 0, 1);
        Client client = etcd.client()) {
      store.set("a", ONE, LONG);
      String own =
          etcd.keys(Etcd.PREFIX + "/" + name).stream()
              .filter(key -> key.endsWith("/value/a"))
              .findFirst()
              .orElseThrow();
      String value = own.substring(0, own.length() - 1);
      for (String key : List.of("", "x".repeat(600))) {
        client.getKVClient().put(Etcd.bytes(value + key), Etcd.bytes("none")).get();
      }
      assertThat(store.keys("", LONG)).containsExactly("a");
      for (String key : etcd.keys(Etcd.PREFIX + "/" + name)) {
        client.getKVClient().delete(Etcd.bytes(key)).get();
      }
    }
  }

  @Test
  void anEtcdThatForgetsRevisionsHidesNoChange() throws Exception {
    Etcd etcd = Etcd.shared();
    try (Store store = rank(etcd, Etcd.newName(), 0, 1);
        Client client = etcd.client()) {
      for (int i = 0; i < 20; i++) {
        String key = "key/" + i;
        FutureTask<byte[]> wait = start(() -> store.awaitOther(key, null, LONG).orElseThrow());
        store.set("other", new byte[] {(byte) i}, LONG);
        ByteSequence any = Etcd.bytes("any");
        long revision = client.getKVClient().put(any, any).get().getHeader().getRevision();
        client.getKVClient().compact(revision).get();
        store.set(key, ONE, LONG);
        assertThat(wait.get(30, TimeUnit.SECONDS)).isEqualTo(ONE);
      }
    }
  }

  @Test
  void anInterruptEndsTheWayThereAndStaysSet() throws Exception {
    Etcd etcd = Etcd.shared();
    CountDownLatch begun = new CountDownLatch(1);
    FutureTask<Boolean> connect =
        new FutureTask<>(
            () -> {
              begun.countDown();
              assertFails(Native.WL_ABORTED, () -> rank(etcd, Etcd.newName(), 1, 2))
                  .contains("interrupted");
              return Thread.currentThread().isInterrupted();
            });
    Thread thread = new Thread(connect, "member");
    thread.start();
    begun.await();
    Thread.sleep(300);
    thread.interrupt();
    assertThat(connect.get(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void whoWaitsForRankZeroInVainIsToldSo() {
    Etcd etcd = Etcd.shared();
    assertTimesOut(
            limit -> etcd.connect(Etcd.newName(), 1, 2, limit),
            "rank 0 has not come",
            etcd.address())
        .containsPattern("after \\d+ s");
  }

  @Test
  void aUserThatEtcdKnowsGetsInAndOthersDont() throws Exception {
    try (Etcd etcd = new Etcd()) {
      try (Client client = etcd.client()) {
        Auth auth = client.getAuthClient();
        auth.roleAdd(Etcd.bytes("root")).get();
        auth.userAdd(Etcd.bytes("root"), Etcd.bytes("secret")).get();
        auth.userGrantRole(Etcd.bytes("root"), Etcd.bytes("root")).get();
        auth.authEnable().get();
      }
      Map<String, String> variables =
          Map.of(EtcdConnection.USER, "root", EtcdConnection.PASSWORD, "secret");
      Member member = new Member("test", 0, 1, Etcd.LIBRARY);
      try (Store store =
          new EtcdProvider()
              .connect(etcd.address(), "known", member, variables, LONG)) {
        store.set("a", ONE, LONG);
        assertThat(store.get("a", LONG)).contains(ONE);
      }
      Map<String, String> wrong = Map.of(EtcdConnection.USER, "root", EtcdConnection.PASSWORD, "other");
      for (Map<String, String> stranger : Stream.of(wrong, Map.<String, String>of()).toList()) {
        assertFails(
                Native.WL_RESOURCE,
                () ->
                    new EtcdProvider()
                        .connect(etcd.address(), "unknown", member, stranger, LONG))
            .contains(etcd.address())
            .doesNotContain("other");
      }
    }
  }

  @Test
  void aConnectionIsEncryptedForAnEtcdThatACertificateVouchesFor() throws Exception {
    try (Etcd etcd = new Etcd("--auto-tls");
        Etcd another = new Etcd("--auto-tls")) {
      Member member = new Member("test", 0, 1, Etcd.LIBRARY);
      String file = etcd.certificate().toString();
      try (Store store =
          new EtcdProvider()
              .connect(
                  etcd.address(),
                  "known",
                  member,
                  Map.of(EtcdConnection.AUTHORITIES, file),
                  LONG)) {
        store.set("a", ONE, LONG);
        assertThat(store.get("a", LONG)).contains(ONE);
      }
      String wrong = another.certificate().toString();
      assertTimesOut(
              limit ->
                  new EtcdProvider()
                      .connect(
                          etcd.address(),
                          "unknown",
                          member,
                          Map.of(EtcdConnection.AUTHORITIES, wrong),
                          limit),
              etcd.address(),
              "PKIX")
          .doesNotContain("\n");
      Path none = etcd.certificate().resolveSibling("none.pem");
      assertFails(
              Native.WL_RESOURCE,
              () ->
                  new EtcdProvider()
                      .connect(
                          etcd.address(),
                          "unknown",
                          member,
                          Map.of(EtcdConnection.AUTHORITIES, none.toString()),
                          LONG))
          .contains(EtcdConnection.AUTHORITIES, none.toString());
    }
  }

  @Test
  void closingLeavesNoThreadAndNoDescriptor() throws Exception {
    comeAndGo(2);
    awaitQuiet();
    long before = sockets();
    comeAndGo(10);
    awaitQuiet();
    assertThat(sockets()).isLessThanOrEqualTo(before);
  }

  private static void comeAndGo(int times) throws Exception {
    Etcd etcd = Etcd.shared();
    for (int i = 0; i < times; i++) {
      String name = Etcd.newName();
      try (Store owner = rank(etcd, name, 0, 2)) {
        Store one = rank(etcd, name, 1, 2);
        FutureTask<String> wait = failingWait(one, "absent", Native.WL_CLOSED);
        owner.set("a", ONE, LONG);
        Optional<byte[]> seen = one.awaitOther("a", null, LONG);
        assertThat(seen).contains(ONE);
        one.close();
        wait.get(30, TimeUnit.SECONDS);
      }
    }
  }

  /** Those of the connection's library are shared, and end some seconds after the last use. */
  private static void awaitQuiet() throws InterruptedException {
    long begin = System.nanoTime();
    while (Thread.getAllStackTraces().keySet().stream()
        .anyMatch(t -> t.getName().matches("(windlass-store|jetcd|grpc-.*worker|vert).*"))) {
      assertThat(since(begin)).as("%s", Thread.getAllStackTraces().keySet()).isLessThan(LONG);
      Thread.sleep(50);
    }
  }

  private static long sockets() throws Exception {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.filter(
              descriptor -> {
                try {
                  return Files.readSymbolicLink(descriptor)
                      .toString()
                      .matches("(socket|anon_inode):.*");
                } catch (IOException e) {
                  return false; // the one that listed them
                }
              })
          .count();
    }
  }
}
