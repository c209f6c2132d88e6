// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.Store;

/** An all-gather at a store. {@link Round} has its name, size and other ranks. */
public final class StoreAllGather implements AllGather {
  private final Store store;
  private final String name;
  private final int size;
  private final Round.@Nullable Presence others;

  private volatile boolean isOpen;

  public StoreAllGather(Store store, String name, int size, Round.@Nullable Presence others) {
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
