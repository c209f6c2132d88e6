// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;

/**
 * Frames over a socket that never blocks. Its memory grows with the bytes that have arrived, not
 * with the length that a frame announces. After the proof of the token, a {@link Seal} follows each
 * frame. One thread at a time calls it.
 */
final class FrameChannel {
  /** The most bytes of one read or write. */
  private static final int CHUNK = 64 << 10;

  private static final int SMALL = Integer.BYTES + Wire.MEETING_FRAME;

  private final SocketChannel socket;

  /** Bytes that have arrived, up to its position. Those before {@code taken} were handed out. */
  private ByteBuffer in = ByteBuffer.allocate(SMALL);

  private int taken;
  private int longest = Wire.MEETING_FRAME;

  /** Null before both sides have proved the token. */
  private Seal sent;

  private Seal received;

  private final Deque<ByteBuffer> out = new ArrayDeque<>();
  private long queued;

  /** Makes a channel over a socket in non-blocking mode. */
  FrameChannel(SocketChannel socket) {
    this.socket = socket;
  }

  /** From now on frames are of up to {@link Wire#FRAME} bytes and sealed, in both directions. */
  void met(Seal sent, Seal received) {
    longest = Wire.FRAME;
    this.sent = sent;
    this.received = received;
  }

  /** Reads some of what has arrived. Returns false at the end of the stream. */
  boolean fill() throws IOException {
    int left = in.position() - taken;
    if (left == 0 && in.capacity() > CHUNK) {
      in = ByteBuffer.allocate(SMALL);
    } else {
      byte[] bytes = in.array();
      if (left == bytes.length) {
        bytes = Arrays.copyOf(bytes, (int) Math.min(2L * left, Integer.BYTES + longest + Seal.BYTES));
      } else {
        System.arraycopy(bytes, taken, bytes, 0, left);
      }
      in = ByteBuffer.wrap(bytes).position(left);
    }
    taken = 0;
    in.limit(Math.min(in.capacity(), in.position() + CHUNK));
    int read = socket.read(in);
    in.limit(in.capacity());
    return read >= 0;
  }

  /** Returns the next whole frame, valid until the next call; null if there is none. */
  ByteBuffer next() throws MalformedException {
    int left = in.position() - taken;
    if (left < Integer.BYTES) {
      return null;
    }
    int length = in.getInt(taken);
    if (length < 1 || length > longest) {
      throw new MalformedException("a frame of " + length + " bytes, of at most " + longest);
    }
    int end = Integer.BYTES + length;
    int whole = end + (received == null ? 0 : Seal.BYTES);
    if (left < whole) {
      return null;
    }
    if (received != null) {
      received.require(in.slice(taken, end), in.slice(taken + end, Seal.BYTES));
    }
    ByteBuffer frame = in.slice(taken + Integer.BYTES, length);
    taken += whole;
    return frame;
  }

  /** Queues a frame, which may have several parts, for {@link #flush} to write. */
  void send(ByteBuffer... frame) {
    byte[] seal = sent == null ? new byte[0] : sent.next(frame);
    int bytes = seal.length;
    for (ByteBuffer part : frame) {
      bytes += part.remaining();
    }
    if (bytes <= SMALL) {
      ByteBuffer whole = ByteBuffer.allocate(bytes);
      for (ByteBuffer part : frame) {
        whole.put(part);
      }
      out.add(whole.put(seal).flip());
    } else {
      out.addAll(List.of(frame));
      out.add(ByteBuffer.wrap(seal));
    }
    queued += bytes;
  }

  /** Number of bytes that wait to be written. */
  long queued() {
    return queued;
  }

  /** Writes what the socket takes. Returns true if nothing is left. */
  boolean flush() throws IOException {
    for (ByteBuffer head = out.peek(); head != null; head = out.peek()) {
      int end = head.limit();
      head.limit(Math.min(end, head.position() + CHUNK));
      int part = head.remaining();
      int written = socket.write(head);
      head.limit(end);
      queued -= written;
      if (written < part) {
        return false;
      }
      if (!head.hasRemaining()) {
        out.remove();
      }
    }
    return true;
  }

  /** Shows the other side the end of the stream. */
  void shutdownOutput() throws IOException {
    socket.shutdownOutput();
  }

  /** Reads and drops some of what has arrived. Returns false at the end of the stream. */
  boolean discard() throws IOException {
    return socket.read(ByteBuffer.allocate(CHUNK)) >= 0;
  }

  /** Frees what is queued, and closes the socket. */
  void close() {
    out.clear();
    queued = 0;
    try {
      socket.close();
    } catch (IOException e) {
      // The socket is closed either way.
    }
  }
}
