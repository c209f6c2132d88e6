// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.List;
import java.util.Objects;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Texts;

/**
 * What a job says of itself where it meets another.
 *
 * @param versions of all that two jobs have to have alike, as text; it is read first, whatever the
 *     version of the rest
 * @param job its name
 * @param instance tells it from another job of that name, an earlier start of it too
 * @param pid of rank 0's process
 * @param ranks how many it has
 * @param layout how it lays out what it names no layout for, as text; empty for none
 * @param options what the group of both is to be like, where it is the source
 * @param areGuests whether its ranks are guests, whose parts of a plan the other job makes
 */
public record Announcement(
    String versions,
    String job,
    String instance,
    long pid,
    int ranks,
    String layout,
    Start.Config options,
    boolean areGuests) {
  private static final int MAGIC = 0x574c4d54; // "WLMT"

  public Announcement {
    Objects.requireNonNull(versions, "versions");
    Objects.requireNonNull(job, "job");
    Objects.requireNonNull(instance, "instance");
    Objects.requireNonNull(layout, "layout");
    Objects.requireNonNull(options, "options");
  }

  public byte[] toBytes() {
    return Encoding.bytes(
        out -> {
          out.writeInt(MAGIC);
          out.writeUTF(versions);
          out.writeUTF(job);
          out.writeUTF(instance);
          out.writeLong(pid);
          out.writeInt(ranks);
          out.writeUTF(layout);
          out.writeInt(options.firstSequence());
          out.writeInt(options.cores());
          out.writeInt(options.blocks());
          out.writeLong(options.deadlineNs());
          out.writeBoolean(options.adjustThreads());
          out.writeBoolean(areGuests);
        });
  }

  /**
   * What another job says.
   *
   * @param versions those here; Mismatch where it has others
   */
  public static Announcement of(byte[] bytes, String versions, FailureMaker failures) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      String theirs = versions(in);
      if (!theirs.equals(versions)) {
        throw failures.make(
            Native.WL_MISMATCH,
            "the other job has " + Texts.printable(theirs) + "; this one has " + versions
                + "; run both with one version of Windlass");
      }
      return rest(theirs, in);
    } catch (IOException e) {
      throw failures.make(
          Native.WL_MISMATCH,
          "what the other job says of itself can't be read: " + Encoding.why(e),
          e,
          "",
          List.of());
    }
  }

  /** The same of whatever versions; null for what can't be read. */
  static Announcement peek(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return rest(versions(in), in);
    } catch (IOException e) {
      return null;
    }
  }

  private static String versions(DataInputStream in) throws IOException {
    if (in.readInt() != MAGIC) {
      throw new IOException("it begins otherwise");
    }
    return in.readUTF();
  }

  private static Announcement rest(String versions, DataInputStream in) throws IOException {
    Announcement said =
        new Announcement(
            versions,
            Texts.printable(in.readUTF()),
            in.readUTF(),
            in.readLong(),
            in.readInt(),
            in.readUTF(),
            new Start.Config(
                in.readInt(), in.readInt(), in.readInt(), in.readLong(), in.readBoolean()),
            in.readBoolean());
    if (said.ranks < 1 || said.ranks > Member.MOST_RANKS) {
      throw new IOException("it has " + said.ranks + " ranks");
    }
    return said;
  }

  /** Such as {@code job 'trainer' (2 ranks, rank 0 is process 17)}. */
  @Override
  public String toString() {
    return "job '"
        + job
        + "' ("
        + ranks
        + (ranks == 1 ? " rank" : " ranks")
        + ", rank 0 is process "
        + pid
        + ")";
  }
}
