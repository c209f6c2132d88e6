// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * Replaces {@code org.bytedeco.javacpp.Loader} in the code that JavaCPP generates into this
 * package. So only {@link NativeLoader} decides where natives are loaded from.
 */
final class Loader {
  private Loader() {}

  static void load() {
    NativeLoader.load();
  }
}
