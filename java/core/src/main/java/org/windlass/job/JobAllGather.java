// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.io.DataInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.internal.rendezvous.AllGather;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.transfer.Until;

/**
 * All-gather of the ranks of two jobs. Rank 0 of this job collects what its ranks say, takes part
 * in the all-gather at the store for all of them, and sends them the result.
 */
final class JobAllGather implements AllGather {
  private final JobRanks ranks;
  private final int first;
  private final StoreAllGather atStore;
  private final Until until;

  /**
   * Makes the part of one rank.
   *
   * @param ranks ranks of this job, with a communicator that has no other use meanwhile
   * @param first rank of this job's rank 0 among those of both jobs
   * @param atStore null on other ranks than rank 0
   */
  JobAllGather(JobRanks ranks, int first, StoreAllGather atStore, Until until) {
    this.ranks = ranks;
    this.first = first;
    this.atStore = atStore;
    this.until = until;
  }

  @Override
  public List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) {
    byte[][] said = ranks.gather(until, own.get(first + ranks.rank()));
    return ranks.fromRank0(
        until,
        JobAllGather::read,
        () -> {
          Map<Integer, byte[]> all = new LinkedHashMap<>();
          for (int rank = 0; rank < said.length; rank++) {
            all.put(first + rank, said[rank]);
          }
          List<byte[]> values = atStore.round(all, isLast, until.left());
          return out -> {
            for (byte[] value : values) {
              Encoding.putArray(out, value);
            }
          };
        });
  }

  private static List<byte[]> read(DataInputStream in) throws IOException {
    List<byte[]> values = new ArrayList<>();
    while (in.available() > 0) {
      values.add(Encoding.array(in));
    }
    return values;
  }

  @Override
  public void quit() {
    if (atStore != null) {
      atStore.quit();
    }
  }
}
