// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/** Moves tiles in the memory of one thread: reads, reduces, casts and writes them. */
final class TileMover {
  /**
   * Represents a box of a target whose values are in memory.
   *
   * @param index the number of the source among those of the target
   * @param from the first indices in the source, in written order
   * @param start the first indices in the target
   * @param shape the extents
   * @param values the values in written order
   * @param bytes the memory of the values
   * @param isWritable whether the memory is the values as the target has them
   */
  private record Filled(
      int index,
      SourceFiles source,
      long[] from,
      long[] start,
      long[] shape,
      Tensor values,
      ByteBuffer bytes,
      boolean isWritable) {}

  /**
   * Represents a box that a part of the target has of a filled box.
   *
   * @param place the first indices in the filled box
   * @param held the box in the part
   */
  private record Cut(Filled box, long[] place, Runs.Box held) {
    long elements() {
      return TargetTensor.elements(held.shape());
    }
  }

  private final Team team;
  private final Overflows overflows;
  private final long bytes;
  private final boolean staged;
  private final Room room = new Room();
  private final ByteBuffer scratch =
      ByteBuffer.allocateDirect(FileBox.SCRATCH_BYTES).order(ByteOrder.nativeOrder());
  private long sentBits;
  private long localBits;

  /**
   * Creates a mover.
   *
   * @param bytes about the size of a tile in memory
   * @param staged whether every tile passes through memory in the wire dtype
   */
  TileMover(Team team, Overflows overflows, long bytes, boolean staged) {
    this.team = team;
    this.overflows = overflows;
    this.bytes = bytes;
    this.staged = staged;
  }

  /** Returns the number of bytes that ranks took from other ranks' files. */
  long sentBytes() {
    return sentBits / Byte.SIZE;
  }

  /** Returns the number of bytes that ranks took from their own files. */
  long localBytes() {
    return localBits / Byte.SIZE;
  }

  /**
   * Moves a tile.
   *
   * @return the number of written bytes
   */
  long move(Tiles.Tile tile) {
    room.reset(bytes);
    List<Filled> boxes = new ArrayList<>();
    List<SourceFiles> sources = tile.files().sources();
    for (int i = 0; i < sources.size(); i++) {
      SourceFiles source = sources.get(i);
      for (TensorMove.Segment segment : source.indices().segments(source.move())) {
        Filled box = fill(i, source, segment, tile);
        if (box != null) {
          boxes.add(box);
        }
      }
    }
    long written = 0;
    for (TargetFiles.Part part : tile.files().parts()) {
      written += write(tile, part, boxes);
    }
    return written;
  }

  /** Fills a box with the values that a segment of a move has in a tile; null if there are none. */
  private @Nullable Filled fill(
      int index, SourceFiles source, TensorMove.Segment segment, Tiles.Tile tile) {
    TensorMove move = source.move();
    long[] extents = source.indices().shape(move.shape());
    long[] start = tile.start().clone();
    long[] shape = tile.shape().clone();
    long[] from = start.clone();
    for (int d = 0; d < start.length; d++) {
      boolean joins = d == move.dim();
      long first = joins ? segment.target() : 0;
      long length = joins ? segment.length() : extents[d];
      start[d] = Math.max(tile.start()[d], first);
      shape[d] = Math.min(tile.start()[d] + tile.shape()[d], first + length) - start[d];
      from[d] = start[d] - first + (joins ? segment.source() : 0);
      if (shape[d] <= 0) {
        return null;
      }
    }
    Axes axes = move.axes();
    DType dtype = source.indices().memory();
    long[] stored = axes.stored(shape);
    long size = TargetTensor.elements(stored) * dtype.bytes();
    Room.Piece piece = room.take(source.terms() * size);
    source.read(axes.stored(from), stored, piece, scratch, team);
    if (source.terms() > 1) {
      long[] all = new long[stored.length + 1];
      all[0] = source.terms();
      System.arraycopy(stored, 0, all, 1, stored.length);
      Room.Piece folded = room.take(size);
      Folds.fold(
          folded.as(dtype, stored),
          piece.as(dtype, all),
          move.source().from().partialOp().orElseThrow());
      piece = folded;
    }
    DType to = tile.files().indices().memory();
    Optional<DType> by = wire(move, dtype, to);
    if (by.isPresent()) {
      Room.Piece cast = room.take(TargetTensor.elements(stored) * by.get().bytes());
      cast.as(by.get(), stored).copyFrom(piece.as(dtype, stored));
      piece = cast;
      dtype = by.get();
    }
    return new Filled(
        index,
        source,
        from,
        start,
        shape,
        axes.view(piece.as(dtype, stored)),
        piece.bytes(),
        !staged && dtype == to && axes.keepOrder());
  }

  /** Returns the dtype to which values are cast before the target's. */
  private Optional<DType> wire(TensorMove move, DType from, DType to) {
    if (staged) {
      return Optional.of(from == DType.U8 ? from : move.effectiveWire());
    }
    return move.wire().filter(wire -> wire != from && wire != to);
  }

  /** Writes what a part of the target has of a tile, and returns the number of written bytes. */
  private long write(Tiles.Tile tile, TargetFiles.Part part, List<Filled> boxes) {
    Runs.Box piece = part.runs().span(tile.start(), tile.shape());
    List<Cut> cuts = cuts(part, boxes);
    if (cuts.isEmpty()) {
      return 0;
    }
    cuts.forEach(cut -> count(part, cut));
    DType dtype = tile.files().indices().memory();
    long elements = TargetTensor.elements(piece.shape());
    Cut first = cuts.get(0);
    ByteBuffer memory = first.box().bytes();
    FileBox inFile =
        new FileBox(
            dtype.bytes(),
            part.runs().shape(),
            piece.local(),
            piece.shape(),
            first.box().shape(),
            first.place());
    long mark = room.used();
    boolean isWritable = first.box().isWritable() && first.elements() == elements;
    if (!isWritable || !inFile.hasLongRows()) {
      Room.Piece window = room.take(elements * dtype.bytes());
      fill(window, dtype, piece, cuts);
      memory = window.bytes();
      long[] zeros = new long[piece.shape().length];
      inFile =
          new FileBox(
              dtype.bytes(),
              part.runs().shape(),
              piece.local(),
              piece.shape(),
              piece.shape(),
              zeros);
    }
    TargetTensor target = tile.files().target();
    Overflows.Watch watch = overflows.watch(target);
    for (Output.Place place : part.places()) {
      inFile.write(place, memory, watch, team);
      watch = null;
    }
    room.free(mark);
    return part.places().size() * elements * dtype.bytes();
  }

  private static List<Cut> cuts(TargetFiles.Part part, List<Filled> boxes) {
    List<Cut> cuts = new ArrayList<>();
    for (Filled box : boxes) {
      for (Runs.Box held : part.runs().within(box.start(), box.shape())) {
        cuts.add(new Cut(box, moved(held.global(), box.start(), -1), held));
      }
    }
    return cuts;
  }

  /** Fills the memory of a part's piece from the boxes. The rest becomes zeros. */
  private static void fill(Room.Piece window, DType dtype, Runs.Box piece, List<Cut> cuts) {
    Tensor all = window.as(dtype, piece.shape());
    long covered = cuts.stream().mapToLong(Cut::elements).sum();
    if (covered < all.numel()) {
      window.memory().fill(0);
    }
    for (Cut cut : cuts) {
      long[] shape = cut.held().shape();
      Tensor to = narrowed(all, moved(cut.held().local(), piece.local(), -1), shape);
      to.copyFrom(narrowed(cut.box().values(), cut.place(), shape));
    }
  }

  private static Tensor narrowed(Tensor all, long[] start, long[] shape) {
    Tensor view = all;
    for (int d = 0; d < start.length; d++) {
      view = view.narrow(d, start[d], shape[d]);
    }
    return view;
  }

  private static long[] moved(long[] start, long[] by, int sign) {
    long[] moved = start.clone();
    Arrays.setAll(moved, d -> start[d] + sign * by[d]);
    return moved;
  }

  /** Counts what the ranks of a part take from files of other ranks, and from their own. */
  private void count(TargetFiles.Part part, Cut cut) {
    Filled box = cut.box();
    Axes axes = box.source().move().axes();
    long[] start = axes.stored(moved(box.from(), cut.place(), 1));
    long[] shape = axes.stored(cut.held().shape());
    long own = 0;
    for (Runs runs : part.own().get(box.index())) {
      own += runs.elements(start, shape);
    }
    long bits = box.source().wireBits();
    localBits += own * bits;
    sentBits += (part.places().size() * cut.elements() - own) * bits;
  }
}
