// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Texts;

/**
 * What a member says of itself where it comes in.
 *
 * @param protocol how its library uses etcd; goes up with every change of that
 * @param library the version of that library
 * @param who it is, as errors name it
 */
record Statement(int protocol, String library, String who) {
  static final int PROTOCOL = 3;

  static Statement of(Member member) {
    String who = member + " (process " + ProcessHandle.current().pid() + " of " + host() + ")";
    return new Statement(PROTOCOL, member.library(), who);
  }

  private static String host() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    } catch (IOException e) {
      return "a host without a name";
    }
  }

  ByteSequence toBytes() {
    return ByteSequence.from(
        Encoding.bytes(
            out -> {
              out.writeInt(protocol);
              out.writeUTF(library);
              out.writeUTF(who);
            }));
  }

  /** What {@code bytes} say; of protocol -1 where they say nothing. */
  static Statement of(ByteSequence bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes.getBytes()))) {
      return new Statement(
          in.readInt(), Texts.printable(in.readUTF()), Texts.printable(in.readUTF()));
    } catch (IOException e) {
      return new Statement(-1, "?", "someone who says nothing that can be read");
    }
  }
}
