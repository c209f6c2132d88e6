// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.util.stream.IntStream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * The layout of a model on consecutive ranks: {@code pp} pipeline stages in sequence, each of
 * {@code dp} replicas, each of {@code tp} ranks. If {@code ep} is above 1, the ranks of a stage
 * also form groups of {@code ep}, in order. The ranks of each group then hold the experts of the
 * stage's layers, each expert whole on one rank.
 *
 * @param pp number of pipeline stages
 * @param dp number of replicas of a stage, from data or context parallelism
 * @param tp number of tensor parallel ranks
 * @param ep number of ranks of a group that shares the experts; divides {@code dp} x {@code tp}
 * @param firstRank lowest rank
 */
public record Parallelism(int pp, int dp, int tp, int ep, int firstRank) {
  public Parallelism {
    if (pp < 1 || dp < 1 || tp < 1 || ep < 1 || firstRank < 0) {
      throw new InvalidArgumentException(
          "pp=" + pp + ",dp=" + dp + ",tp=" + tp + ",ep=" + ep + ": sizes are at least 1");
    }
    if (dp * tp % ep != 0) {
      throw new InvalidArgumentException(
          "ep=" + ep + " does not divide the " + dp * tp + " ranks of a stage");
    }
  }

  /** Parses a parallelism such as {@code pp=4,dp=8,tp=2,ep=16}. Omitted numbers are 1. */
  public static Parallelism parse(String text) {
    int pp = 1;
    int dp = 1;
    int tp = 1;
    int ep = 1;
    for (String part : text.split(",", -1)) {
      if (!part.matches("(pp|dp|tp|ep)=[1-9][0-9]{0,5}")) {
        throw new InvalidArgumentException(
            "parallelism '" + text + "': '" + part + "' is not pp, dp, tp or ep, = and a number");
      }
      int size = Integer.parseInt(part.substring(3));
      switch (part.substring(0, 2)) {
        case "pp" -> pp = size;
        case "dp" -> dp = size;
        case "tp" -> tp = size;
        default -> ep = size;
      }
    }
    return new Parallelism(pp, dp, tp, ep, 0);
  }

  /** Returns this parallelism with another first rank. */
  public Parallelism at(int firstRank) {
    return new Parallelism(pp, dp, tp, ep, firstRank);
  }

  /** Returns the number of ranks of one stage. */
  public int stageRanks() {
    return dp * tp;
  }

  /** Returns the number of ranks of all stages. */
  public int ranks() {
    return pp * stageRanks();
  }

  /**
   * Returns the layout of a tensor of a stage. {@code placement} cuts it among the tensor parallel
   * ranks, and each replica has all of it. If it has fewer units than there are ranks, several
   * ranks hold each unit.
   */
  Layout sharded(int stage, long[] shape, Placement placement) {
    Placement whole = Placement.replicate();
    if (placement instanceof Placement.Shard shard) {
      long units = (shape[shard.dim()] - 1) / shard.unit() + 1;
      if (units < tp && tp % units == 0) {
        int kv = (int) units;
        DeviceMesh mesh = DeviceMesh.of("dp", dp, "kv", kv, "rep", tp / kv);
        return mesh.at(first(stage)).layout(whole, shard, whole);
      }
    }
    return DeviceMesh.of("dp", dp, "tp", tp).at(first(stage)).layout(whole, placement);
  }

  /**
   * Returns the layout of an expert of a stage's layer: whole on one rank of each expert parallel
   * group.
   */
  Layout dealt(int stage, int expert, int experts) {
    int place = expert * ep / experts;
    int[] ranks =
        IntStream.range(0, stageRanks() / ep)
            .map(group -> first(stage) + group * ep + place)
            .toArray();
    return DeviceMesh.of("dp", ranks.length).ranks(ranks).layout(Placement.replicate());
  }

  private int first(int stage) {
    return firstRank + stage * stageRanks();
  }
}
