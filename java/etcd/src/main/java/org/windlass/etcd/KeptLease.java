// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Lease;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * A lease of etcd: keys that are put with it last as long as it. One daemon thread renews it, three
 * times in the time that it runs; the end of this process lets it run out.
 */
final class KeptLease implements AutoCloseable {
  /** What is said of one that is no more. */
  static final String GONE = "its lease has run out; this process was held up, or etcd was";

  private static final long RETRY_MS = 100;
  private static final long CLOSE_MS = 2_000;

  private final Lease client;
  private final long id;
  private final long nanos;
  private final Consumer<String> lost;
  private final CountDownLatch closing = new CountDownLatch(1);
  private final Thread thread;

  /** When what was answered last was sent; the lease lasts {@link #nanos} from then at least. */
  private long renewedNs;

  private volatile boolean isKept = true;

  /**
   * Keeps one that was granted.
   *
   * @param seconds that it runs
   * @param grantedNs when it was asked for
   * @param lost is told once why it is not kept any more
   */
  KeptLease(Lease client, long id, long seconds, long grantedNs, Consumer<String> lost) {
    this.client = client;
    this.id = id;
    this.nanos = TimeUnit.SECONDS.toNanos(seconds);
    this.renewedNs = grantedNs;
    this.lost = lost;
    this.thread = new Thread(null, this::run, "windlass-store-etcd-lease", 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(null);
  }

  /** Begins to keep it. */
  void start() {
    thread.start();
  }

  long id() {
    return id;
  }

  /** Bytes that no other lease has. */
  ByteSequence name() {
    return ByteSequence.from(ByteBuffer.allocate(Long.BYTES).putLong(id).array());
  }

  private void run() {
    String why = "no answer";
    long pauseNs = nanos / 3;
    try {
      while (!closing.await(pauseNs, TimeUnit.NANOSECONDS)) {
        long sentNs = System.nanoTime();
        long leftNs = nanos - (sentNs - renewedNs);
        if (leftNs <= 0) {
          end(
              "it has not renewed a lease of "
                  + TimeUnit.NANOSECONDS.toSeconds(nanos)
                  + " s: "
                  + why);
          return;
        }
        try {
          client.keepAliveOnce(id).get(Math.min(leftNs, nanos / 3), TimeUnit.NANOSECONDS);
          renewedNs = sentNs;
          pauseNs = nanos / 3;
        } catch (TimeoutException e) {
          pauseNs = 0;
        } catch (ExecutionException e) {
          why = Requests.told(e.getCause());
          if (Requests.isGone(e.getCause())) {
            end(GONE);
            return;
          }
          pauseNs = TimeUnit.MILLISECONDS.toNanos(RETRY_MS);
        }
      }
    } catch (InterruptedException e) {
      // It is closed.
    } catch (RuntimeException | Error e) {
      end(e.toString());
    }
  }

  private void end(String why) {
    isKept = false;
    lost.accept(why);
  }

  /** Ends it, and with it its keys, where etcd can be asked to. Idempotent. */
  @Override
  public void close() {
    closing.countDown();
    boolean interrupted = Thread.interrupted();
    try {
      thread.interrupt();
      thread.join(CLOSE_MS);
      if (isKept) {
        isKept = false;
        client.revoke(id).get(CLOSE_MS, TimeUnit.MILLISECONDS);
      }
    } catch (InterruptedException e) {
      interrupted = true;
    } catch (ExecutionException | TimeoutException e) {
      // It runs out by itself.
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
