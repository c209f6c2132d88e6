// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Texts;

/**
 * A member's description of itself, which it puts into etcd.
 *
 * @param protocol version of the library's use of etcd
 * @param library version of the member's library
 * @param who the member's name in errors
 */
record Statement(int protocol, String library, String who) {
  static final int PROTOCOL = 6; // number to raise with every change of how the library uses etcd

  static Statement of(Member member) {
    String host = "a host without a name";
    try {
      host = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    } catch (IOException e) {
      // The name {@code who} keeps its default value from above.
    }
    String who = member + " (process " + ProcessHandle.current().pid() + " of " + host + ")";
    return new Statement(PROTOCOL, member.library(), who);
  }

  /**
   * Encodes the statement. {@code lease} is the member's lease; it distinguishes two statements of
   * one rank.
   */
  ByteSequence toBytes(long lease) {
    return ByteSequence.from(
        Encoding.bytes(
            out -> {
              out.writeInt(protocol);
              out.writeUTF(library);
              out.writeUTF(who);
              out.writeLong(lease);
            }));
  }

  /** Decodes a statement. If the bytes are not a statement, the protocol of the result is -1. */
  static Statement of(ByteSequence bytes) {
    try {
      return Encoding.read(
          bytes.getBytes(),
          in -> {
            int protocol = in.readInt();
            String library = Texts.printable(in.readUTF());
            String who = Texts.printable(in.readUTF());
            in.readAllBytes(); // the lease, and what another version adds
            return new Statement(protocol, library, who);
          });
    } catch (MalformedException e) {
      return new Statement(-1, "?", "a member whose statement can't be read");
    }
  }
}
