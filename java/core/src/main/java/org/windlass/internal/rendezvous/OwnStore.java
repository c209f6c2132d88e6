// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * Server of a store that this process has at a known address. It is open as long as a communicator
 * is that was started there. Starts that follow one another at the address share it.
 */
public final class OwnStore implements AutoCloseable {
  /** Open stores by the address that was asked for. Guards the fields of each. */
  private static final Map<InetSocketAddress, OwnStore> OPEN = new HashMap<>();

  private final MeetingFile.Place asked;
  private final StoreServer server;
  private int users;
  private boolean isStarting; // a server serves one start at a time

  private OwnStore(MeetingFile.Place asked, StoreServer server) {
    this.asked = asked;
    this.server = server;
  }

  /**
   * Opens a store for a start. Returns the open one at the address if its token is the same, and no
   * other start is in progress there.
   *
   * @param library version of this library, as errors name it
   * @throws WindlassException Resource if the server can't listen at the address
   */
  public static OwnStore open(MeetingFile.Place place, String library) {
    synchronized (OPEN) {
      OwnStore store = OPEN.get(place.address());
      if (store == null || store.isStarting || !store.hasToken(place.token())) {
        StoreServer.Bounds bounds = StoreServer.Bounds.defaults();
        store =
            new OwnStore(
                place, StoreServer.open(place.address(), place.token(), library, bounds));
        OPEN.put(place.address(), store);
      }
      store.users++;
      store.isStarting = true;
      return store;
    }
  }

  private boolean hasToken(Token token) {
    return asked.token().digits().equals(token.digits());
  }

  /** Returns the server's address and token. */
  public MeetingFile.Place place() {
    return new MeetingFile.Place(server.address(), asked.token());
  }

  /** Ends the start. All ranks have met. */
  public void started() {
    synchronized (OPEN) {
      isStarting = false;
    }
  }

  /** Closes the server when each call of {@link #open} has been followed by one of this. */
  @Override
  public void close() {
    synchronized (OPEN) {
      isStarting = false;
      users--;
      if (users == 0) {
        OPEN.remove(asked.address(), this);
        server.close();
      }
    }
  }
}
