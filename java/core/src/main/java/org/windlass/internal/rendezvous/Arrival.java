// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Texts;

/**
 * What a rank says of itself when it comes to the start of a communicator.
 *
 * @param library the version of its library
 * @param target what its kernels are compiled for
 * @param host tells its machine from others, as it was booted
 * @param machine what that machine is called
 * @param named what its host is called by {@link Host#NAME_VARIABLE}; empty for nothing
 * @param process in which it lives
 * @param cores how many it may use at once
 * @param cpus those that it may use, as the kernel lists them: {@code 0-3,8}
 * @param options what its communicator is asked to be like, as text
 */
record Arrival(
    int rank,
    String library,
    String target,
    String host,
    String machine,
    String named,
    ProcessName process,
    int cores,
    String cpus,
    String options) {
  /** Goes up with every change of what ranks tell one another at the start. */
  static final int PROTOCOL = 5;

  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path HOST_NAME = Path.of("/proc/sys/kernel/hostname");
  private static final Path STATUS = Path.of("/proc/self/status");
  private static final String ALLOWED = "Cpus_allowed_list:";

  /**
   * One of {@code rank}, which lives in this process.
   *
   * @param named what this host is called; empty for nothing
   */
  static Arrival own(
      int rank, ProcessName process, String named, String options, FailureMaker failures) {
    try {
      String cpus =
          Files.readAllLines(STATUS).stream()
              .filter(line -> line.startsWith(ALLOWED))
              .map(line -> line.substring(ALLOWED.length()).strip())
              .findFirst()
              .orElse("");
      return new Arrival(
          rank,
          Native.wl_version(),
          Native.wl_target(),
          ownHost(),
          Files.readString(HOST_NAME).strip(),
          named,
          process,
          Native.wl_allowed_cores(),
          cpus,
          options);
    } catch (IOException e) {
      throw failures.make(
          Native.WL_UNSUPPORTED, "/proc doesn't tell of this host: " + e, e, "", List.of(rank));
    }
  }

  /** What tells this host, as it was booted, from others. */
  static String ownHost() throws IOException {
    return Files.readString(BOOT_ID).strip();
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

  /** What {@code rank} says. */
  static Arrival of(int rank, byte[] bytes, FailureMaker failures) {
    Arrival told = of("rank " + rank, List.of(rank), bytes, failures);
    if (told.rank != rank) {
      throw failures.make(
          Native.WL_MISMATCH,
          "rank " + rank + " says that it is rank " + told.rank + "; start all ranks again",
          null,
          "",
          List.of(rank));
    }
    return told;
  }

  /**
   * What somebody says.
   *
   * @param who as errors name it
   * @param culprits theirs
   */
  static Arrival of(String who, List<Integer> culprits, byte[] bytes, FailureMaker failures) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int protocol = in.readInt();
      String library = Texts.printable(in.readUTF());
      if (protocol != PROTOCOL) {
        throw failures.make(
            Native.WL_MISMATCH,
            who + " runs windlass " + library + ", which starts by protocol " + protocol
                + "; this one runs " + Native.wl_version() + ", by protocol " + PROTOCOL
                + "; use one version everywhere",
            null,
            "",
            culprits);
      }
      return new Arrival(
          in.readInt(),
          library,
          Texts.printable(in.readUTF()),
          in.readUTF(),
          Texts.printable(in.readUTF()),
          Texts.printable(in.readUTF()),
          new ProcessName(in.readInt(), in.readLong(), in.readLong()),
          in.readInt(),
          in.readUTF(),
          Texts.printable(in.readUTF()));
    } catch (IOException e) {
      throw failures.make(
          Native.WL_MISMATCH,
          "what " + who + " says of itself can't be read: " + Encoding.why(e),
          e,
          "",
          culprits);
    }
  }

  /** The cores that it may use; empty where the kernel doesn't say. */
  BitSet mask() {
    BitSet mask = new BitSet();
    for (String range : cpus.split(",")) {
      String[] ends = range.split("-", 2);
      try {
        int first = Integer.parseInt(ends[0]);
        int last = ends.length == 1 ? first : Integer.parseInt(ends[1]);
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
   * How many cores all of them share: what their masks have together, or what a quota leaves of
   * it.
   */
  static int cores(List<Arrival> all) {
    BitSet union = new BitSet();
    int most = 1;
    boolean isBounded = false;
    for (Arrival each : all) {
      BitSet mask = each.mask();
      union.or(mask);
      most = Math.max(most, each.cores);
      isBounded |= each.cores < mask.cardinality();
    }
    return union.isEmpty() || isBounded ? most : union.cardinality();
  }
}
