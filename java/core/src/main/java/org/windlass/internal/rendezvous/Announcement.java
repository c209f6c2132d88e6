// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.DataInputStream;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.windlass.error.MismatchException;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Texts;

/**
 * Description of a job. The job writes it into the store, where the other job of the link reads it.
 *
 * @param versions versions that both jobs must have, as text; the first field in every version
 * @param instance identifier of this start of the job
 * @param pid process ID of rank 0
 * @param layout default layout of the job's tensors, as text; empty for none
 * @param options configuration of the communicator of both jobs, if this job is the source
 */
public record Announcement(
    String versions, String job, String instance, long pid, int ranks, String layout,
    Start.Config options, boolean arePythonRanks) {
  private static final int MAGIC = 0x574c4d54; // "WLMT"
  private static final int LONGEST_VERSIONS = 512;

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
          out.writeBoolean(arePythonRanks);
        });
  }

  /**
   * Decodes another job's announcement. Throws Mismatch if the other job has different {@code
   * versions}.
   */
  public static Announcement of(byte[] bytes, String versions) {
    try {
      return Encoding.read(
          bytes,
          in -> {
            String theirs = versions(in);
            if (!theirs.equals(versions)) {
              throw new MismatchException(
                  "the other job has " + Texts.printable(theirs) + "; this one has " + versions
                      + "; run both with one version of Windlass");
            }
            return read(theirs, in);
          });
    } catch (MalformedException e) {
      throw new MismatchException(
          "the other job's description of itself can't be read: " + e.getMessage(), e);
    }
  }

  /** Decodes an announcement without comparing versions. Returns null if it is malformed. */
  static @Nullable Announcement peek(byte[] bytes) {
    try {
      return Encoding.read(
          bytes,
          in -> {
            Announcement job = read(versions(in), in);
            in.readAllBytes(); // what another version adds
            return job;
          });
    } catch (MalformedException e) {
      return null;
    }
  }

  private static String versions(DataInputStream in) throws IOException {
    if (in.readInt() != MAGIC) {
      throw new IOException("it begins otherwise");
    }
    return text(in, LONGEST_VERSIONS);
  }

  private static String text(DataInputStream in, int longest) throws IOException {
    String text = in.readUTF();
    if (text.length() > longest) {
      throw new IOException(
          "it has a text of " + text.length() + " characters where " + longest + " are allowed");
    }
    return text;
  }

  private static Announcement read(String versions, DataInputStream in) throws IOException {
    Announcement read =
        new Announcement(
            versions,
            Texts.printable(text(in, Member.JOB)),
            text(in, Member.JOB),
            in.readLong(),
            in.readInt(),
            in.readUTF(),
            new Start.Config(
                in.readInt(), in.readInt(), in.readInt(), in.readLong(), in.readBoolean()),
            in.readBoolean());
    if (read.ranks < 1 || read.ranks > Member.MOST_RANKS) {
      throw new IOException("it has " + read.ranks + " ranks");
    }
    if (read.options.deadlineNs() < 1) {
      throw new IOException("its deadline is " + read.options.deadlineNs() + " ns");
    }
    return read;
  }

  @Override
  public String toString() {
    return "job '" + job + "' (" + ranks + (ranks == 1 ? " rank" : " ranks")
        + ", rank 0 is process " + pid + ")";
  }
}
