// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.job.JobThreads.SOON;

import java.time.Duration;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;

/** One rank's end of the link "policy", which moves one tensor, under a layout. */
public final class JobEnd implements AutoCloseable {
  public static final long[] SHAPE = {12, 5};
  public static final Layout ROWS = DeviceMesh.of(2).layout(Placement.shard(0));
  public static final Layout COLUMNS = DeviceMesh.of(3).layout(Placement.shard(1));
  public static final Layout ALONE = DeviceMesh.of(1).layout(Placement.replicate());

  private final Link link;
  private final Layout layout;
  private final Tensor tensor;
  private final LinkTransfer transfer;
  private final int rank;

  public JobEnd(Job job, Role role, Layout layout) {
    this(job, job.connect("policy", role, SOON), layout);
  }

  public JobEnd(Job job, Link link, Layout layout) {
    this.link = link;
    this.layout = layout;
    rank = job.communicator().rank();
    tensor = allocate(layout, rank);
    LinkTransferBuilder builder = link.transferBuilder();
    if (link.sends()) {
      builder.add("w", SHAPE, tensor, layout);
    } else {
      builder.into("w", SHAPE, tensor, layout);
    }
    try {
      transfer = builder.register(SOON);
    } catch (RuntimeException e) {
      try (link) {
        throw e;
      }
    }
  }

  /** Connects to the other job, and sends or receives version 1. */
  public static void moveOne(Job job, Role role, Layout layout) {
    try (JobEnd end = new JobEnd(job, role, layout)) {
      if (role == Role.SOURCE) {
        end.send(1, SOON);
      } else {
        assertThat(end.receive(SOON)).isEqualTo(1);
      }
    }
  }

  public void send(long version, Duration deadline) {
    tensor.copyFrom(part(layout, rank, version));
    transfer.send(version, deadline);
  }

  public long receive(Duration deadline) {
    long version = transfer.receive(deadline);
    requireHas(version);
    return version;
  }

  public void requireHas(long version) {
    assertThat(transfer.version()).hasValue(version);
    requirePart(transfer.tensor("w"), layout, rank, version);
  }

  @Override
  public void close() {
    transfer.close();
    link.close();
  }

  public Link link() {
    return link;
  }

  public LinkTransfer transfer() {
    return transfer;
  }

  public Tensor tensor() {
    return tensor;
  }

  public int rank() {
    return rank;
  }

  /** The element at (row, column) of the whole tensor in a version. */
  private static float value(long version, long row, long column) {
    return 1000 * version + 10 * row + column;
  }

  /** A rank's part of the whole tensor in a version. */
  public static float[] part(Layout layout, int rank, long version) {
    var region = layout.localRegion(SHAPE, rank);
    float[] values = new float[(int) region.numel()];
    int next = 0;
    var rows = region.intervals(0).get(0);
    var columns = region.intervals(1).get(0);
    for (long row = rows.start(); row < rows.end(); row++) {
      for (long column = columns.start(); column < columns.end(); column++) {
        values[next++] = value(version, row, column);
      }
    }
    return values;
  }

  /** That {@code tensor} has a rank's part of a version. */
  public static void requirePart(Tensor tensor, Layout layout, int rank, long version) {
    float[] found = new float[(int) tensor.numel()];
    tensor.copyTo(found);
    assertThat(found).isEqualTo(part(layout, rank, version));
  }

  /** A rank's part, with nothing in it. */
  public static Tensor allocate(Layout layout, int rank) {
    return Tensor.allocate(DType.F32, layout.localShape(SHAPE, rank));
  }
}
