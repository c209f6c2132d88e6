// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/** Moves tiles in the memory of one thread: reads, reduces, casts and writes them. */
final class TileMover {
  /**
   * Largest number of bytes of a source's values in memory at a time, if the values are cast or
   * reordered.
   */
  private static final long READ_BYTES = 512 << 10;

  /**
   * Represents a box of elements of a source that moves to a box of a target.
   *
   * @param index the index of the source among the target's sources
   * @param from the box's first index in the source, for each written dimension
   * @param start the box's first index in the target, for each dimension
   */
  private record Box(int index, SourceFiles source, long[] from, long[] start, long[] shape) {
    Box within(long[] place, long[] extents) {
      return new Box(index, source, sum(from, place), sum(start, place), extents);
    }

    long elements() {
      return TargetTensor.elements(shape);
    }
  }

  /**
   * Holds the values of a box as bytes, and as a tensor over these bytes with the dimensions in
   * written order.
   */
  private record Values(Tensor view, ByteBuffer bytes) {}

  /**
   * Holds the elements of a tile that belong to one part of the target, until they are written.
   *
   * @param piece the box of those elements in the part
   */
  private record Window(TargetFiles.Part part, Runs.Box piece, Room.Piece memory) {}

  private final Team team;
  private final Overflows overflows;
  private final long bytes;
  private final boolean staged;
  private final Room room = new Room();
  private final ByteBuffer scratch =
      ByteBuffer.allocateDirect(FileBox.SCRATCH_BYTES).order(ByteOrder.nativeOrder());
  private long sentBytes;
  private long localBytes;
  private long written;

  /**
   * Creates a mover.
   *
   * @param bytes approximate size of a tile in memory
   * @param staged whether all values pass through memory in the wire dtype
   */
  TileMover(Team team, Overflows overflows, long bytes, boolean staged) {
    this.team = team;
    this.overflows = overflows;
    this.bytes = bytes;
    this.staged = staged;
  }

  long sentBytes() {
    return sentBytes;
  }

  long localBytes() {
    return localBytes;
  }

  long writtenBytes() {
    return written;
  }

  void move(Tiles.Tile tile) {
    // Memory pages that no tile uses are never allocated.
    room.reset(2 * (bytes + READ_BYTES));
    List<Box> boxes = boxes(tile);
    boolean isPlain =
        boxes.size() == 1
            && boxes.get(0).elements() == TargetTensor.elements(tile.shape())
            && boxes.get(0).source().isPlain(staged);
    if (isPlain) {
      moveAsItIs(tile, boxes.get(0));
    } else {
      List<TargetFiles.Part> parts = tile.files().parts();
      for (int next = 0; next < parts.size(); ) {
        next = moveByWindows(tile, boxes, next);
      }
    }
  }

  private static List<Box> boxes(Tiles.Tile tile) {
    List<Box> boxes = new ArrayList<>();
    List<SourceFiles> sources = tile.files().sources();
    for (int i = 0; i < sources.size(); i++) {
      for (TensorMove.Segment segment : sources.get(i).segments()) {
        Box box = box(i, sources.get(i), segment, tile);
        if (box.elements() > 0) {
          boxes.add(box);
        }
      }
    }
    return boxes;
  }

  /** Returns the box of a segment within a tile, with extents 0 if they do not overlap. */
  private static Box box(
      int index, SourceFiles source, TensorMove.Segment segment, Tiles.Tile tile) {
    long[] extents = source.shape();
    long[] start = tile.start().clone();
    long[] shape = tile.shape().clone();
    long[] from = start.clone();
    for (int d = 0; d < start.length; d++) {
      boolean isJoined = d == source.move().dim();
      long first = isJoined ? segment.target() : 0;
      long end = first + (isJoined ? segment.length() : extents[d]);
      start[d] = Math.max(tile.start()[d], first);
      shape[d] = Math.max(Math.min(tile.start()[d] + tile.shape()[d], end) - start[d], 0);
      from[d] = start[d] - first + (isJoined ? segment.source() : 0);
    }
    return new Box(index, source, from, start, shape);
  }

  /** Moves unchanged values. Writes long rows directly from the memory that was read. */
  private void moveAsItIs(Tiles.Tile tile, Box box) {
    Values values = load(box);
    for (TargetFiles.Part part : tile.files().parts()) {
      Runs.Box piece = part.runs().span(box.start(), box.shape());
      List<Runs.Box> held = part.runs().within(box.start(), box.shape());
      if (held.isEmpty()) {
        continue;
      }
      count(part, box, held);
      if (held.size() == 1) {
        FileBox inFile =
            fileBox(part, piece, box.shape(), difference(piece.global(), box.start()));
        if (inFile.hasLongRows()) {
          write(tile, part, inFile, values.bytes());
          continue;
        }
      }
      long mark = room.used();
      Window window = window(part, piece);
      copy(values, box, held, window);
      write(tile, window);
      room.free(mark);
    }
  }

  /**
   * Collects and writes the pieces of several parts, until no further part fits into memory.
   *
   * @param first the index of the first part
   * @return the index after the last part that was written
   */
  private int moveByWindows(Tiles.Tile tile, List<Box> boxes, int first) {
    long mark = room.used();
    List<TargetFiles.Part> parts = tile.files().parts();
    List<Window> windows = new ArrayList<>();
    int next = first;
    for (; next < parts.size() && (windows.isEmpty() || room.used() - mark < bytes); next++) {
      TargetFiles.Part part = parts.get(next);
      long covered = 0;
      for (Box box : boxes) {
        List<Runs.Box> held = part.runs().within(box.start(), box.shape());
        count(part, box, held);
        covered += held.stream().mapToLong(each -> TargetTensor.elements(each.shape())).sum();
      }
      if (covered > 0) {
        Window window = window(part, part.runs().span(tile.start(), tile.shape()));
        if (covered < TargetTensor.elements(window.piece().shape())) {
          window.memory().memory().fill(0);
        }
        windows.add(window);
      }
    }
    if (!windows.isEmpty()) {
      boxes.forEach(box -> collect(box, windows));
      windows.forEach(window -> write(tile, window));
    }
    room.free(mark);
    return next;
  }

  private void collect(Box box, List<Window> windows) {
    List<List<Integer>> order = List.of(box.source().move().axes().order());
    long most = Math.min(READ_BYTES, bytes) / box.source().elementBytes();
    Grid grid = Grid.of(box.shape(), order, 1, most);
    for (long i = 0; i < grid.count(); i++) {
      long[] place = grid.start(i);
      Box some = box.within(place, grid.shape(place));
      long mark = room.used();
      Values values = load(some);
      for (Window window : windows) {
        copy(values, some, window.part().runs().within(some.start(), some.shape()), window);
      }
      room.free(mark);
    }
  }

  private Values load(Box box) {
    SourceFiles source = box.source();
    Axes axes = source.move().axes();
    long[] stored = axes.stored(box.shape());
    DType dtype = source.dtype();
    long elements = box.elements();
    Room.Piece piece = room.take(source.terms() * elements * dtype.bytes());
    source.read(axes.stored(box.from()), stored, piece.bytes(), scratch, team);
    if (source.terms() > 1) {
      Room.Piece folded = room.take(elements * dtype.bytes());
      Tensor terms = piece.as(dtype, SourceFiles.leading(source.terms(), stored));
      fold(
          folded.as(dtype, stored), terms, source.move().source().from().partialOp().get());
      piece = folded;
    }
    DType by = source.wire(staged);
    if (staged || by != dtype) {
      Room.Piece cast = room.take(elements * by.bytes());
      cast.as(by, stored).copyFrom(piece.as(dtype, stored));
      piece = cast;
    }
    return new Values(axes.view(piece.as(by, stored)), piece.bytes());
  }

  /**
   * Reduces a tensor along its first dimension, in the same order and precision as the collectives.
   *
   * @param target receives the result, in the dtype of {@code terms}
   * @param terms the tensor; index i of its first dimension is term i
   */
  private static void fold(Tensor target, Tensor terms, ReduceOp op) {
    int count = (int) terms.size(0);
    int size = (Structs.Tensor.SIZE + 7) & ~7;
    ByteBuffer described = Structs.allocate(count * (size + Long.BYTES));
    long address = NativeMemory.address(described);
    long apart = terms.strides()[0] * terms.dtype().bytes();
    try (Scratch scratch = Scratch.take()) {
      long first = describe(scratch, 0, terms.select(0, 0));
      ByteBuffer model = NativeMemory.buffer(first, Structs.Tensor.SIZE);
      for (int term = 0; term < count; term++) {
        described.put(term * size, model, 0, Structs.Tensor.SIZE);
        described.putLong(term * size + Structs.Tensor.DATA, terms.address() + term * apart);
        described.putLong(count * size + term * Long.BYTES, address + (long) term * size);
      }
      long sources = address + (long) count * size;
      Failures.check(
          Native.wl_tensor_fold(
              describe(scratch, 1, target), sources, count, op.code(), scratch.error()),
          scratch);
    } finally {
      Reference.reachabilityFence(target);
      Reference.reachabilityFence(terms);
      Reference.reachabilityFence(described);
    }
  }

  private static long describe(Scratch scratch, int slot, Tensor tensor) {
    return scratch.tensor(
        slot, tensor.dtype().code(), tensor.address(), tensor.shape(), tensor.strides());
  }

  private Window window(TargetFiles.Part part, Runs.Box piece) {
    long elements = TargetTensor.elements(piece.shape());
    return new Window(part, piece, room.take(elements * part.dtype().bytes()));
  }

  private static void copy(Values values, Box box, List<Runs.Box> held, Window window) {
    Tensor all = window.memory().as(window.part().dtype(), window.piece().shape());
    for (Runs.Box each : held) {
      Tensor to = narrowed(all, difference(each.local(), window.piece().local()), each.shape());
      to.copyFrom(
          narrowed(values.view(), difference(each.global(), box.start()), each.shape()));
    }
  }

  private static Tensor narrowed(Tensor all, long[] start, long[] shape) {
    Tensor view = all;
    for (int d = 0; d < start.length; d++) {
      view = view.narrow(d, start[d], shape[d]);
    }
    return view;
  }

  private void write(Tiles.Tile tile, Window window) {
    long[] shape = window.piece().shape();
    FileBox inFile = fileBox(window.part(), window.piece(), shape, new long[shape.length]);
    write(tile, window.part(), inFile, window.memory().bytes());
  }

  private static FileBox fileBox(
      TargetFiles.Part part, Runs.Box piece, long[] block, long[] place) {
    return new FileBox(
        part.dtype().bytes(), part.runs().shape(), piece.local(), piece.shape(), block, place);
  }

  private void write(
      Tiles.Tile tile, TargetFiles.Part part, FileBox inFile, ByteBuffer memory) {
    TargetTensor target = tile.files().target();
    Overflows.Watch watch = overflows.watch(target);
    for (Output.Place place : part.places()) {
      inFile.write(place, memory, watch, team);
      written += inFile.bytes();
      watch = null;
    }
  }

  /**
   * Counts the bytes that the ranks of a part take from other ranks' files and from their own
   * files.
   */
  private void count(TargetFiles.Part part, Box box, List<Runs.Box> held) {
    Axes axes = box.source().move().axes();
    long wireBytes = box.source().wireBytes();
    for (Runs.Box each : held) {
      long[] from = sum(box.from(), difference(each.global(), box.start()));
      long own = 0;
      for (Runs runs : part.own().get(box.index())) {
        own += runs.elements(axes.stored(from), axes.stored(each.shape()));
      }
      localBytes += own * wireBytes;
      long all = part.places().size() * TargetTensor.elements(each.shape());
      sentBytes += (all - own) * wireBytes;
    }
  }

  private static long[] sum(long[] a, long[] b) {
    long[] sum = a.clone();
    Arrays.setAll(sum, d -> a[d] + b[d]);
    return sum;
  }

  private static long[] difference(long[] a, long[] b) {
    long[] difference = a.clone();
    Arrays.setAll(difference, d -> a[d] - b[d]);
    return difference;
  }
}
