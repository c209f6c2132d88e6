// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Texts;

/**
 * A rank's description of itself at the start of a communicator.
 *
 * @param library version of the rank's library
 * @param target target of the rank's kernels
 * @param host id of its machine since the last boot
 * @param machine host name of its machine
 * @param named value of {@link Host#NAME_VARIABLE}; empty if it is not set
 * @param cores number of cores that it may use at once
 * @param cpus cores that it may use, in the kernel's notation: {@code 0-3,8}
 * @param options options of the communicator, as text
 */
record Arrival(
    int rank, String library, String target, String host, String machine, String named,
    ProcessName process, int cores, String cpus, String options) {
  /** Version of the start. Raise it with every change of the data that starting ranks exchange. */
  static final int PROTOCOL = 5;

  private static final String ALLOWED = "Cpus_allowed_list:";

  /** Describes {@code rank}, which lives in this process. */
  static Arrival own(int rank, ProcessName process, String named, String options) {
    String machine = file("/proc/sys/kernel/hostname").strip();
    String cpus =
        file("/proc/self/status")
            .lines()
            .filter(line -> line.startsWith(ALLOWED))
            .map(line -> line.substring(ALLOWED.length()).strip())
            .findFirst()
            .orElse("");
    return new Arrival(
        rank, Native.wl_version(), Native.wl_target(), ownHost(), machine, named, process,
        Native.wl_allowed_cores(), cpus, options);
  }

  /** Returns the id of this machine since its last boot. */
  static String ownHost() {
    return file("/proc/sys/kernel/random/boot_id").strip();
  }

  private static String file(String path) {
    try {
      return Files.readString(Path.of(path));
    } catch (IOException e) {
      throw new UnsupportedException("/proc doesn't identify this host: " + e, e);
    }
  }

  byte[] toBytes() {
    return Encoding.bytes(
        out -> {
          out.writeInt(PROTOCOL);
          out.writeUTF(library);
          out.writeInt(rank);
          out.writeUTF(target);
          out.writeUTF(host);
          out.writeUTF(machine);
          out.writeUTF(named);
          out.writeInt(process.pid());
          out.writeLong(process.started());
          out.writeLong(process.pidNamespace());
          out.writeInt(cores);
          out.writeUTF(cpus);
          out.writeUTF(options);
        });
  }

  /** Decodes the description of {@code rank}. Throws Mismatch if it names another rank. */
  static Arrival of(int rank, byte[] bytes) {
    Arrival arrival = of("rank " + rank, List.of(rank), bytes);
    if (arrival.rank != rank) {
      throw new MismatchException(
          "rank " + rank + " says that it is rank " + arrival.rank + "; start all ranks again",
          List.of(rank));
    }
    return arrival;
  }

  /**
   * Decodes a description.
   *
   * @param who the sender, for messages
   * @param faultyRanks the faulty ranks of an exception
   * @throws org.windlass.error.MismatchException if it is malformed or of another protocol
   */
  static Arrival of(String who, List<Integer> faultyRanks, byte[] bytes) {
    try {
      return Encoding.read(bytes, in -> read(who, faultyRanks, in));
    } catch (MalformedException e) {
      String text = "what " + who + " says of itself can't be read: " + e.getMessage();
      throw new MismatchException(text, e, "", faultyRanks);
    }
  }

  private static Arrival read(String who, List<Integer> faultyRanks, DataInputStream in)
      throws IOException {
    int protocol = in.readInt();
    String library = Texts.printable(in.readUTF());
    if (protocol != PROTOCOL) {
      throw new MismatchException(
          who + " runs windlass " + library + ", which starts by protocol " + protocol
              + "; this one runs " + Native.wl_version() + ", by protocol " + PROTOCOL
              + "; use one version everywhere",
          faultyRanks);
    }
    return new Arrival(
        in.readInt(), library, Texts.printable(in.readUTF()), in.readUTF(),
        Texts.printable(in.readUTF()), Texts.printable(in.readUTF()),
        new ProcessName(in.readInt(), in.readLong(), in.readLong()), in.readInt(), in.readUTF(),
        Texts.printable(in.readUTF()));
  }

  /**
   * Returns the numbers of the cores in {@link #cpus}. Returns no numbers if the text is malformed.
   */
  private BitSet mask() {
    BitSet mask = new BitSet();
    for (String range : cpus.split(",")) {
      String[] ends = range.split("-", 2);
      try {
        int first = Integer.parseInt(ends[0]);
        int last = Integer.parseInt(ends[ends.length - 1]);
        if (first < 0 || last < first || last >= 1 << 16) {
          return new BitSet();
        }
        mask.set(first, last + 1);
      } catch (NumberFormatException e) {
        return new BitSet();
      }
    }
    return mask;
  }

  /**
   * Returns the number of cores that the ranks of a host share: all cores that any of them may use,
   * limited by a quota.
   */
  static int cores(List<Arrival> ranks) {
    BitSet union = new BitSet();
    int most = 1;
    boolean isBounded = false;
    for (Arrival each : ranks) {
      BitSet mask = each.mask();
      union.or(mask);
      most = Math.max(most, each.cores);
      isBounded |= each.cores < mask.cardinality();
    }
    return union.isEmpty() || isBounded ? most : union.cardinality();
  }
}
