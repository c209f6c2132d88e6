// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.Lease;
import io.etcd.jetcd.common.exception.ErrorCode;
import io.etcd.jetcd.lease.LeaseGrantResponse;
import io.etcd.jetcd.lease.LeaseKeepAliveResponse;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.windlass.internal.Deadline;

/**
 * A lease of etcd. Keys that are put with the lease last as long as the lease. The client renews it
 * three times per term. If this process ends, the lease expires.
 */
final class KeptLease implements StreamObserver<LeaseKeepAliveResponse>, AutoCloseable {
  static final String GONE = "its lease has expired; this process or etcd was too slow";

  private static final long CLOSE_MS = 2_000;

  /**
   * Time before the deadline, at most a fourth of the limit, that is left for jetcd to report why
   * it failed.
   */
  private static final long REASON_NS = TimeUnit.MILLISECONDS.toNanos(250);

  private final EtcdConnection etcd;
  private final Lease client;
  private final long id;
  private final Duration term;

  private volatile String why = "no answer";

  private volatile boolean isKept = true;

  /** Requests a lease with a term of {@code seconds}, and renews it until {@link #close}. */
  KeptLease(EtcdConnection etcd, long seconds, Call call) {
    this.etcd = etcd;
    client = etcd.client.getLeaseClient();
    long leftNs = call.until().leftNs();
    long limitNs = Math.max(1_000_000, leftNs - Math.min(REASON_NS, leftNs / 4));
    LeaseGrantResponse granted =
        etcd.read(call, () -> client.grant(seconds, limitNs, TimeUnit.NANOSECONDS));
    id = granted.getID();
    term = Duration.ofSeconds(granted.getTTL());
    client.keepAlive(id, this);
  }

  long id() {
    return id;
  }

  Duration term() {
    return term;
  }

  @Override
  public void onNext(LeaseKeepAliveResponse response) {}

  @Override
  public void onError(Throwable failure) {
    why = EtcdConnection.text(failure);
    if (EtcdConnection.hasCode(failure, ErrorCode.NOT_FOUND)) {
      end(GONE);
    }
  }

  /** Called when no renewal has arrived for a whole term. */
  @Override
  public void onCompleted() {
    end("it has not renewed a lease of " + Deadline.text(term) + ": " + why);
  }

  private void end(String reason) {
    isKept = false;
    etcd.lost(reason);
  }

  /** Revokes the lease, which removes its keys. If etcd does not answer, the lease expires. */
  @Override
  public void close() {
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
