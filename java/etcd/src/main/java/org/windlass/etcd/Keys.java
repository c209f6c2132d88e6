// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.options.OptionsUtil;
import java.nio.charset.StandardCharsets;

/**
 * The keys of one store in etcd.
 *
 * <pre>
 * PREFIX/NAME/owner                        who has the store, under a lease of its own
 * PREFIX/NAME/LEASE/member/WHO             each that wants to come in, under its lease
 * PREFIX/NAME/LEASE/admitted/WHO           what the owner has seen there
 * PREFIX/NAME/LEASE/value/KEY              a key of the store
 * PREFIX/NAME/LEASE/size/KEY               how many bytes that counts, as a number
 * </pre>
 *
 * <p>LEASE is the owner's, as hexadecimal digits, which etcd gives out once: what one owner left
 * behind is none of the next one's. What has no lease of its own has the owner's, and so no key
 * outlives those who belong to it.
 */
final class Keys {
  private final String base;

  /**
   * Under an owner's lease.
   *
   * @param root {@code PREFIX/NAME/}
   */
  Keys(String root, long lease) {
    base = root + Long.toHexString(lease) + "/";
  }

  static ByteSequence owner(String root) {
    return bytes(root + "owner");
  }

  /** What all of those begin with who want to come in. */
  ByteSequence members() {
    return member("");
  }

  ByteSequence member(String who) {
    return bytes(base + "member/" + who);
  }

  ByteSequence admitted(String who) {
    return bytes(base + "admitted/" + who);
  }

  /** The place of {@code member}'s admission. */
  ByteSequence admitted(ByteSequence member) {
    return admitted(rest(members(), member));
  }

  ByteSequence value(String key) {
    return bytes(base + "value/" + key);
  }

  /** The key of the store whose value lies at {@code place}. */
  String key(ByteSequence place) {
    return rest(value(""), place);
  }

  ByteSequence size(String key) {
    return bytes(base + "size/" + key);
  }

  /** What is after all that begins with {@code prefix}. */
  static ByteSequence end(ByteSequence prefix) {
    return OptionsUtil.prefixEndOf(prefix);
  }

  /** What comes next after {@code key}. */
  static ByteSequence next(ByteSequence key) {
    return key.concat(ByteSequence.from(new byte[1]));
  }

  private static String rest(ByteSequence prefix, ByteSequence key) {
    return key.substring(prefix.size()).toString(StandardCharsets.UTF_8);
  }

  private static ByteSequence bytes(String text) {
    return ByteSequence.from(text, StandardCharsets.UTF_8);
  }
}
