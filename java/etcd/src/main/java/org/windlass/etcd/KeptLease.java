// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.Lease;
import io.etcd.jetcd.common.exception.ErrorCode;
import io.etcd.jetcd.lease.LeaseGrantResponse;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.windlass.internal.Deadline;

/**
 * A lease of etcd. Keys that are put with it last as long as it does. A daemon thread renews it
 * three times per term. If this process ends, the lease expires.
 */
final class KeptLease implements AutoCloseable {
  /** Reason for errors after a lease has expired. */
  static final String GONE = "its lease has run out; this process was held up, or etcd was";

  private static final long RETRY_MS = 100;
  private static final long CLOSE_MS = 2_000;

  /** Time before the deadline at which jetcd ends the grant and reports why, at most a fourth. */
  private static final long REASON_NS = TimeUnit.MILLISECONDS.toNanos(250);

  private final EtcdConnection etcd;
  private final Lease client;
  private final long id;
  private final long termNs;
  private final Thread thread = new Thread(null, this::run, "windlass-store-etcd-lease", 0, false);

  /** Time at which the latest answered request was sent. The lease lasts a term from then. */
  private long renewedNs;

  private volatile boolean isKept = true;

  /** Obtains a lease of {@code seconds}, and keeps it until this is closed. */
  KeptLease(EtcdConnection etcd, long seconds, Call call) {
    this.etcd = etcd;
    client = etcd.client.getLeaseClient();
    renewedNs = System.nanoTime();
    long leftNs = call.until().leftNs();
    long limitNs = Math.max(1_000_000, leftNs - Math.min(REASON_NS, leftNs / 4));
    LeaseGrantResponse granted =
        etcd.read(call, () -> client.grant(seconds, limitNs, TimeUnit.NANOSECONDS));
    id = granted.getID();
    termNs = TimeUnit.SECONDS.toNanos(granted.getTTL());
    thread.setDaemon(true);
    thread.setContextClassLoader(null);
    thread.start();
  }

  long id() {
    return id;
  }

  Duration term() {
    return Duration.ofNanos(termNs);
  }

  private void run() {
    String why = "no answer";
    long pauseNs = termNs / 3;
    try {
      while (true) {
        TimeUnit.NANOSECONDS.sleep(pauseNs);
        long sentNs = System.nanoTime();
        long leftNs = termNs - (sentNs - renewedNs);
        if (leftNs <= 0) {
          end("it has not renewed a lease of " + Deadline.text(term()) + ": " + why);
          return;
        }
        try {
          client.keepAliveOnce(id).get(Math.min(leftNs, termNs / 3), TimeUnit.NANOSECONDS);
          renewedNs = sentNs;
          pauseNs = termNs / 3;
        } catch (TimeoutException e) {
          pauseNs = 0;
        } catch (ExecutionException e) {
          why = EtcdConnection.text(e.getCause());
          if (EtcdConnection.hasCode(e.getCause(), ErrorCode.NOT_FOUND)) {
            end(GONE);
            return;
          }
          pauseNs = TimeUnit.MILLISECONDS.toNanos(RETRY_MS);
        }
      }
    } catch (InterruptedException e) {
      // The lease is closed.
    } catch (RuntimeException | Error e) {
      end(e.toString());
    }
  }

  private void end(String why) {
    isKept = false;
    etcd.lost(why);
  }

  /** Revokes the lease, which removes its keys. If etcd does not answer, the lease expires. */
  @Override
  public void close() {
    thread.interrupt();
    if (isKept) {
      isKept = false;
      client
          .revoke(id)
          .orTimeout(CLOSE_MS, TimeUnit.MILLISECONDS)
          .exceptionally(failure -> null)
          .join();
    }
  }
}
