// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.Store;

/** Runs an all-gather at a store. */
public final class StoreAllGather implements AllGather {
  private final Store store;
  private final String name;
  private final int size;
  private final Round.Presence others;

  private volatile boolean isOpen;

  /**
   * Creates an all-gather that no rank has joined.
   *
   * @param name name that distinguishes it from others at the store
   * @param size number of ranks
   * @param others key that exists while missing ranks may still join; null for none
   */
  public StoreAllGather(Store store, String name, int size, Round.Presence others) {
    this.store = store;
    this.name = name;
    this.size = size;
    this.others = others;
  }

  @Override
  public List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) {
    long limitMs = Round.limitMs(limit);
    List<byte[]> said =
        store.gather(new Round(name, size, isLast, limitMs, others, own), () -> isOpen = true);
    isOpen = true;
    return said;
  }

  /** Returns true if rank 0 is known to have joined. */
  public boolean isOpen() {
    return isOpen;
  }

  @Override
  public void quit() {
    store.quit(name);
  }
}
