// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * A stand-in before {@code org.bytedeco.javacpp.Loader} in the static initialisers that JavaCPP
 * generates into this package, so that {@link NativeLoader} alone decides where natives come from.
 */
final class Loader {
  private Loader() {}

  static void load() {
    NativeLoader.load();
  }
}
