// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;

/**
 * Converts between rank numbers of a link's communicator and those of its two sides. A side uses
 * the rank numbers of the communicator or the job from which the link was made.
 */
record LinkRanks(String name, Side sending, Side receiving) {
  /**
   * One side of a link.
   *
   * @param mesh ranks of the side, in the side's numbers
   * @param counted for consecutive ranks of the link, their numbers on the side, ascending
   * @param first the number of the rank {@code counted[0]} in the link
   */
  record Side(DeviceMesh mesh, int[] counted, int first) {
    int linked(int rank) {
      return first + Arrays.binarySearch(counted, rank);
    }

    /**
     * Returns the number, on this side, of rank {@code linked} of the link. Returns -1 if that rank
     * is not on this side.
     */
    int own(int linked) {
      int place = linked - first;
      return place >= 0 && place < counted.length ? counted[place] : -1;
    }

    int[] linked() {
      return mesh.ranks().stream().mapToInt(this::linked).sorted().toArray();
    }

    boolean has(int linked) {
      return Arrays.binarySearch(linked(), linked) >= 0;
    }

    /** Returns the side of a job. The job's rank 0 is rank {@code first} of the link. */
    static Side ofJob(int size, int first) {
      return new Side(DeviceMesh.of(size), IntStream.range(0, size).toArray(), first);
    }
  }

  /** Returns the ranks of a link between two jobs with these numbers of ranks, senders first. */
  static LinkRanks ofJobs(String name, int senders, int receivers) {
    return new LinkRanks(name, Side.ofJob(senders, 0), Side.ofJob(receivers, senders));
  }

  /**
   * Returns the ranks of a link within one communicator, whose rank numbers both sides use.
   *
   * @param both the ranks of either side, ascending: rank {@code both[i]} is rank {@code i} of the
   *     link
   */
  static LinkRanks within(String name, DeviceMesh senders, DeviceMesh receivers, int[] both) {
    return new LinkRanks(name, new Side(senders, both, 0), new Side(receivers, both, 0));
  }

  boolean sends(int linked) {
    return sending.has(linked);
  }

  boolean receives(int linked) {
    return receiving.has(linked);
  }

  /** Returns the senders in the link's numbers, ascending. */
  int[] senders() {
    return sending.linked();
  }

  int firstReceiver() {
    return receiving.linked()[0];
  }

  private Side side(boolean isSender) {
    return isSender ? sending : receiving;
  }

  /**
   * Returns {@code layout} with the link's rank numbers in place of those of one side. Throws for a
   * rank that is not on that side.
   */
  Layout linked(String what, boolean isSender, Layout layout) {
    Side side = side(isSender);
    return mapped(
        layout,
        rank -> {
          if (!side.mesh.contains(rank)) {
            throw new InvalidArgumentException(
                what + ": layout " + layout + " holds rank " + rank + ", which is not a "
                    + (isSender ? "sender" : "receiver") + " of link '" + name + "' (" + side.mesh
                    + ")");
          }
          return side.linked(rank);
        });
  }

  /** Returns a layout with its rank numbers converted by {@code other}. */
  private static Layout mapped(Layout layout, IntUnaryOperator other) {
    DeviceMesh mesh = layout.mesh();
    int[] ranks =
        IntStream.range(0, mesh.size()).map(mesh::rankAtPlace).map(other).toArray();
    return new Layout(mesh.ranks(ranks), layout.placements());
  }

  /** Returns a layout's text for messages, with a side's rank numbers instead of the link's. */
  String named(boolean isSender, Layout layout) {
    Side side = side(isSender);
    boolean isOfSide = layout.mesh().ranks().stream().allMatch(rank -> side.own(rank) >= 0);
    return isOfSide ? mapped(layout, side::own).toString() : layout.qualified();
  }

  /**
   * Returns the side's number of rank {@code linked} of the link. The rank must be on that side.
   */
  int counted(boolean isSender, int linked) {
    return side(isSender).own(linked);
  }

  @Override
  public String toString() {
    return "from " + sending.mesh + " to " + receiving.mesh;
  }
}
