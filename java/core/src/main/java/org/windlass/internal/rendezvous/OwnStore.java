// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * The store of a job whose rank 0 lives in this process, at an address that others are told: open
 * as long as any of those uses it that have met there, so that the job is found there while it runs.
 * Whoever starts a job anew meanwhile meets there, too.
 */
public final class OwnStore implements AutoCloseable {
  /** By the address that was asked for. */
  private static final Map<InetSocketAddress, Shared> OPEN = new HashMap<>();

  private final InetSocketAddress asked;
  private final Shared shared;
  private boolean isOpen = true;

  /** A server, and how many use it; guarded by {@link #OPEN}. */
  private static final class Shared {
    final StoreServer server;
    final Token token;
    int users;

    /** One at a time starts there. */
    boolean isStarting;

    Shared(StoreServer server, Token token) {
      this.server = server;
      this.token = token;
    }
  }

  private OwnStore(InetSocketAddress asked, Shared shared) {
    this.asked = asked;
    this.shared = shared;
  }

  /**
   * The one at {@code place}, which is opened where this process has none with that token, or where
   * another start there is in progress.
   *
   * @param library the version of this library, as errors name it
   * @param failures makes what is thrown: Resource where it can't listen there
   */
  public static OwnStore open(MeetingFile.Place place, String library, FailureMaker failures) {
    synchronized (OPEN) {
      Shared shared = OPEN.get(place.address());
      boolean isFree =
          shared != null
              && !shared.isStarting
              && shared.token.digits().equals(place.token().digits());
      if (!isFree) {
        StoreServer server =
            StoreServer.open(
                place.address(),
                place.token(),
                library,
                StoreServer.Bounds.defaults(),
                failures);
        shared = new Shared(server, place.token());
        OPEN.put(place.address(), shared);
      }
      shared.users++;
      shared.isStarting = true;
      return new OwnStore(place.address(), shared);
    }
  }

  /** Where it is. */
  public MeetingFile.Place place() {
    return new MeetingFile.Place(shared.server.address(), shared.token);
  }

  /** Says that those have met who were to. */
  public void started() {
    synchronized (OPEN) {
      shared.isStarting = false;
    }
  }

  /** Lets go of it; the last one closes it. Idempotent. */
  @Override
  public void close() {
    synchronized (OPEN) {
      if (!isOpen) {
        return;
      }
      isOpen = false;
      shared.isStarting = false;
      if (--shared.users > 0) {
        return;
      }
      OPEN.remove(asked, shared);
      shared.server.close();
    }
  }
}
