// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.etcd.EtcdStoreTest.LONG;
import static org.windlass.etcd.EtcdStoreTest.ONE;
import static org.windlass.etcd.EtcdStoreTest.TWO;
import static org.windlass.etcd.EtcdStoreTest.assertTimesOut;
import static org.windlass.etcd.EtcdStoreTest.brief;
import static org.windlass.etcd.EtcdStoreTest.failingWait;
import static org.windlass.etcd.EtcdStoreTest.rank;
import static org.windlass.etcd.EtcdStoreTest.since;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.StoreTest.start;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Store;

/** How long an etcd, and a process that holds something there, may be gone: as long as a lease. */
@Timeout(120)
class EtcdLeaseTest {
  @Test
  void anEtcdThatIsKilledIsLostToThoseWhoWaitAndThoseWhoCome() throws Exception {
    try (Etcd etcd = new Etcd()) {
      String name = Etcd.newName();
      Store owner = brief(etcd, name, 0, 2);
      Store one = brief(etcd, name, 1, 2);
      FutureTask<String> wait = failingWait(one, "absent", Native.WL_PEER_LOST);
      FutureTask<String> owners = failingWait(owner, "absent", Native.WL_PEER_LOST);
      Thread.sleep(100);
      etcd.kill();
      assertThat(wait.get(30, TimeUnit.SECONDS))
          .contains(
              "await absent",
              etcd.address() + " was lost",
              "lease of " + Etcd.SHORT_LEASE_SECONDS + " s");
      assertThat(owners.get(30, TimeUnit.SECONDS)).contains("was lost");
      assertFails(Native.WL_PEER_LOST, () -> one.set("a", ONE, LONG)).contains("set a");
      owner.close();
      one.close();
      assertTimesOut(
          limit -> etcd.connect(name, 1, 2, limit).close(),
          "connect to the store at " + etcd.address(),
          "rank 1 of 2",
          "refused");
      // Who has little time waits no longer for an etcd that is gone.
      long beginNs = System.nanoTime();
      Duration little = Duration.ofMillis(20);
      assertFails(Native.WL_DEADLINE_EXCEEDED, () -> etcd.connect(name, 1, 2, little))
          .contains("connect to the store at " + etcd.address());
      assertThat(since(beginNs)).isLessThan(LONG);
    }
  }

  @Test
  void anEtcdThatComesBackWithinTheLeaseIsNotLost() throws Exception {
    try (Etcd etcd = new Etcd()) {
      String name = Etcd.newName();
      try (Store owner = rank(etcd, name, 0, 2);
          Store one = rank(etcd, name, 1, 2)) {
        assertThat(one.hold("held", ONE, LONG)).isTrue();
        FutureTask<byte[]> wait = start(() -> one.awaitOther("late", null, LONG).orElseThrow());
        Thread.sleep(100);
        etcd.kill();
        etcd.start();
        owner.set("late", TWO, LONG);
        assertThat(wait.get(30, TimeUnit.SECONDS)).isEqualTo(TWO);
        assertThat(owner.get("held", LONG)).contains(ONE);
      }
      assertThat(etcd.keys(Etcd.PREFIX)).isEmpty();
    }
  }

  /** A process that comes in and stays; arguments: address, name, rank, size, seconds of its lease. */
  static final class Holder {
    public static void main(String[] arguments) throws Exception {
      int rank = Integer.parseInt(arguments[2]);
      int size = Integer.parseInt(arguments[3]);
      Etcd.load(arguments[0]);
      Store store = connect(arguments[0], arguments[1], rank, size, Long.parseLong(arguments[4]));
      store.hold("rank/" + rank, ONE, LONG);
      store.set("left", ONE, LONG);
      System.out.println("holds");
      System.in.read();
    }

    private static Store connect(String address, String name, int rank, int size, long lease) {
      return Etcd.connect(address, name, rank, size, lease, LONG);
    }
  }

  private static Child holder(Etcd etcd, String name, int rank, int size, long lease)
      throws Exception {
    return new Child(
        Holder.class,
        Map.of(),
        etcd.address(),
        name,
        String.valueOf(rank),
        String.valueOf(size),
        String.valueOf(lease));
  }

  /** Whether {@code store} has {@link #ONE} at {@code key} for that long. */
  private static boolean lasts(Store store, String key, Duration howLong) {
    try {
      store.awaitOther(key, ONE, howLong);
      return false;
    } catch (WindlassException e) {
      assertFails(
          Native.WL_DEADLINE_EXCEEDED,
          () -> {
            throw e;
          });
      assertThat(e).hasMessageContaining(key);
      return true;
    }
  }

  /** A busy machine may hold up who renews a lease; then the next one is twice as long. */
  @Test
  void whatAKilledProcessHeldGoesWithinItsLease() throws Exception {
    for (long lease = Etcd.SHORT_LEASE_SECONDS; !heldByAProcess(lease); lease *= 2) {
      assertThat(lease).as("the lease of a process that lived").isLessThan(30);
    }
  }

  /** Whether what a process holds lasts longer than a lease; then it is killed. */
  private static boolean heldByAProcess(long lease) throws Exception {
    Etcd etcd = Etcd.shared();
    String name = Etcd.newName();
    try (Store owner = rank(etcd, name, 0, 2);
        Child child = holder(etcd, name, 1, 2, lease)) {
      child.line("holds");
      if (!lasts(owner, "rank/1", Duration.ofMillis(1500 * lease))) {
        return false;
      }
      child.kill();
      // Who comes waits for as long as its own lease lasts, and some more.
      FutureTask<Store> again = start(() -> rank(etcd, name, 1, 2));
      assertThat(owner.awaitOther("rank/1", ONE, LONG)).isEmpty();
      assertThat(owner.get("left", LONG)).contains(ONE);
      try (Store next = again.get(60, TimeUnit.SECONDS)) {
        assertThat(next.hold("rank/1", TWO, LONG)).isTrue();
      }
      return true;
    }
  }

  /**
   * The name of a job whose two ranks were there at once, and are killed. A busy machine may hold up
   * who renews a lease; then the next one is twice as long.
   */
  private static String killedJob(Etcd etcd) throws Exception {
    for (long lease = Etcd.SHORT_LEASE_SECONDS; ; lease *= 2) {
      String name = Etcd.newName();
      try (Child zero = holder(etcd, name, 0, 2, lease);
          Child one = holder(etcd, name, 1, 2, lease)) {
        one.line("holds");
        zero.line("holds");
        return name;
      } catch (AssertionError lost) {
        assertThat(lease).as("the lease of a process that lived: %s", lost).isLessThan(30);
      }
    }
  }

  @Test
  void aJobThatWasKilledIsStartedAgainUnderItsName() throws Exception {
    Etcd etcd = Etcd.shared();
    String name = killedJob(etcd);
    FutureTask<Store> early = start(() -> rank(etcd, name, 1, 2));
    Thread.sleep(300);
    assertThat(early).isNotDone(); // who had the store can't let it in any more
    try (Store owner = rank(etcd, name, 0, 2);
        Store member = early.get(30, TimeUnit.SECONDS)) {
      assertThat(owner.keys("", LONG)).isEmpty();
      member.set("a", ONE, LONG);
      assertThat(owner.get("a", LONG)).contains(ONE);
    }
    assertThat(etcd.keys(Etcd.PREFIX + "/" + name)).isEmpty();
  }
}
