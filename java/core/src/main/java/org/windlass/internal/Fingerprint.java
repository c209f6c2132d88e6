// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * Computes a 64-bit hash that is the same in every JVM: FNV-1a over 64-bit words, each mixed by the
 * finalizer of SplitMix64.
 */
public final class Fingerprint {
  private long state = 0xcbf29ce484222325L;

  public Fingerprint add(long word) {
    state = (state ^ mix(word)) * 0x100000001b3L;
    return this;
  }

  public Fingerprint add(String text) {
    add(text.length());
    for (int i = 0; i < text.length(); i++) {
      add(text.charAt(i));
    }
    return this;
  }

  public long value() {
    return mix(state);
  }

  private static long mix(long value) {
    long z = value + 0x9e3779b97f4a7c15L;
    z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
    z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
    return z ^ z >>> 31;
  }
}
