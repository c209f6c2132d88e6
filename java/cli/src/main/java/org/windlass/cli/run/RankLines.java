// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.ObjIntConsumer;

/**
 * The lines of one stream of a rank, read by a thread of their own, each passed on whole behind the
 * rank in brackets, byte for byte. A line that the rank leaves without an end gets one; one that is
 * longer than {@link #LONGEST} goes in pieces that are lines.
 */
final class RankLines {
  /** More of a line is not held back. */
  static final int LONGEST = 1 << 18;

  private static final int CHUNK = 1 << 14;

  private final InputStream from;
  private final ObjIntConsumer<byte[]> to;
  private final byte[] prefix;
  private final Thread reader;

  /** What came of a line that has not ended; guarded by this. */
  private byte[] held = new byte[CHUNK];

  private int length;

  /** Whether nothing more is passed on. */
  private volatile boolean isOver;

  /** Reads that have ended, and whether another is waiting. */
  private volatile long reads;

  private volatile boolean isWaiting;

  /**
   * Reads from now on.
   *
   * @param to gets bytes and how many of them count: whole lines
   */
  RankLines(int rank, InputStream from, ObjIntConsumer<byte[]> to) {
    this.from = from;
    this.to = to;
    this.prefix = ("[" + rank + "] ").getBytes(StandardCharsets.US_ASCII);
    reader = new Thread(this::read, "windlass-rank-" + rank);
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    byte[] chunk = new byte[CHUNK];
    try {
      for (int read = next(chunk); read >= 0; read = next(chunk)) {
        add(chunk, read);
      }
    } finally {
      end();
    }
  }

  /** Reads once; -1 at the end, or where the stream was closed. */
  private int next(byte[] chunk) {
    isWaiting = true;
    try {
      return from.read(chunk);
    } catch (IOException closed) {
      return -1;
    } finally {
      isWaiting = false;
      reads++;
    }
  }

  private synchronized void add(byte[] chunk, int count) {
    if (isOver) {
      return;
    }
    int whole = count;
    while (whole > 0 && chunk[whole - 1] != '\n') {
      whole--;
    }
    hold(chunk, 0, whole);
    if (whole > 0) {
      passOn();
    }
    hold(chunk, whole, count - whole);
    if (length >= LONGEST) {
      passOn();
    }
  }

  private void hold(byte[] chunk, int from, int count) {
    if (length + count > held.length) {
      held = Arrays.copyOf(held, Math.max(length + count, 2 * held.length));
    }
    System.arraycopy(chunk, from, held, length, count);
    length += count;
  }

  /** Passes on all that is held, in one piece. */
  private void passOn() {
    Lines lines = new Lines(length + 16 * prefix.length);
    int start = 0;
    for (int i = 0; i < length; i++) {
      if (held[i] == '\n') {
        lines.add(start, i + 1);
        start = i + 1;
      }
    }
    if (start < length) {
      lines.add(start, length);
      lines.write('\n');
    }
    length = 0;
    to.accept(lines.bytes(), lines.size());
  }

  /** Lines behind their prefix, without a copy of them all. */
  private final class Lines extends ByteArrayOutputStream {
    Lines(int size) {
      super(size);
    }

    void add(int from, int end) {
      write(prefix, 0, prefix.length);
      write(held, from, end - from);
    }

    byte[] bytes() {
      return buf;
    }
  }

  private synchronized void end() {
    try {
      if (!isOver && length > 0) {
        passOn();
      }
    } finally {
      isOver = true;
    }
  }

  /**
   * Waits until all has been passed on, for as long as its reader takes. Where the stream does not
   * end since others than the rank hold it, what there is is passed on, and no more will be.
   *
   * @param silence how long nothing may come from them
   */
  void finish(Duration silence) throws InterruptedException {
    long before = -1;
    while (!join(silence)) {
      long now = reads;
      if (isWaiting && now == before) {
        end();
      }
      before = now;
    }
  }

  /** Whether all of it is passed on within a time. */
  boolean join(Duration within) throws InterruptedException {
    if (!isOver) {
      // 0 would be for ever.
      reader.join(Math.max(within.toMillis(), 1));
    }
    return isOver;
  }
}
