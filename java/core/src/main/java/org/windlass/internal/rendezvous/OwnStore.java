// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.store.StoreServer;

/**
 * One user's share of a store server that runs in this process. A user is a communicator, or a job
 * that connects to others. Users of the same address share the server. The server is open until its
 * last user closes its share.
 */
public final class OwnStore implements AutoCloseable {
  /** Open servers by the requested address. A change of an entry is atomic. */
  private static final Map<InetSocketAddress, Shared> OPEN = new ConcurrentHashMap<>();

  private static final class Shared {
    final StoreServer server;
    final String digits;
    final Set<OwnStore> users = new HashSet<>();
    @Nullable OwnStore starting; // a server serves one start at a time

    Shared(RendezvousFile.Place asked, String library) {
      StoreServer.Bounds bounds = StoreServer.Bounds.defaults();
      server = StoreServer.open(asked.address(), asked.token(), library, bounds);
      digits = asked.token().digits();
    }
  }

  private final RendezvousFile.Place asked;
  private final Shared shared;

  /**
   * Opens a store for a start. Shares a store that is already open at the address, if its token is
   * the same and no other start is in progress there.
   *
   * @throws WindlassException Resource if the server can't listen at the address
   */
  public OwnStore(RendezvousFile.Place place, String library) {
    asked = place;
    shared =
        OPEN.compute(
            place.address(),
            (address, open) -> {
              boolean isFree =
                  open != null && open.starting == null
                      && open.digits.equals(place.token().digits());
              Shared taken = isFree ? open : new Shared(place, library);
              taken.users.add(this);
              taken.starting = this;
              return taken;
            });
  }

  /** Returns the server's address and token. */
  public RendezvousFile.Place place() {
    return new RendezvousFile.Place(shared.server.address(), asked.token());
  }

  /** Records that all ranks have joined, so that another start may use the server. */
  public void started() {
    OPEN.compute(asked.address(), (address, open) -> withoutStart(open));
  }

  /** Closes the server if no other start or job uses it. Idempotent. */
  @Override
  public void close() {
    OPEN.compute(
        asked.address(),
        (address, open) -> {
          withoutStart(open);
          if (!shared.users.remove(this) || !shared.users.isEmpty()) {
            return open;
          }
          shared.server.close();
          return open == shared ? null : open;
        });
  }

  private Shared withoutStart(Shared open) {
    shared.starting = shared.starting == this ? null : shared.starting;
    return open;
  }
}
