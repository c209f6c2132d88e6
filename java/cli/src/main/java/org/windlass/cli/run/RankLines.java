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
 * Copies the lines of one stream of a rank, on its own thread. Each line is passed on as a whole
 * and with its bytes unchanged, after a prefix with the rank in brackets. A missing end of line is
 * added. A line longer than {@link #LONGEST} is split into several lines.
 */
final class RankLines {
  /** Largest number of bytes of an incomplete line that are kept back until the line ends. */
  static final int LONGEST = 1 << 18;

  private static final int CHUNK = 1 << 14;

  private final InputStream from;
  private final ObjIntConsumer<byte[]> to;
  private final byte[] prefix;
  private final Thread reader;

  /** Bytes of a line whose end is missing. Guarded by {@code this}. */
  private byte[] held = new byte[CHUNK];

  private int length;

  private volatile boolean isOver;

  /** Number of completed reads. While a read is in progress, {@code isWaiting} is true. */
  private volatile long reads;

  private volatile boolean isWaiting;

  /** Starts the thread. {@code to} receives an array of whole lines and its used length. */
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

  /** Reads once. Returns -1 at the end, or if the stream was closed. */
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

  /** Collects lines with a prefix. {@link #bytes} returns the array itself, not a copy. */
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
   * Waits until everything has been passed on, however long the reader takes. Other processes may
   * keep the stream open after the rank has ended. If they write nothing for {@code silence},
   * passes on what was read so far and ends.
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

  /** Waits for at most {@code within}, and returns true if everything is passed on. */
  boolean join(Duration within) throws InterruptedException {
    if (!isOver) {
      // join(0) would wait forever.
      reader.join(Math.max(within.toMillis(), 1));
    }
    return isOver;
  }
}
