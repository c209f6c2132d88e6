// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.windlass.LocalGroup;

/** Fails a test that has left something of this process in use. */
public final class NothingLeft implements BeforeEachCallback, AfterEachCallback {
  private Resources before;

  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    LocalGroup.of(2).close(); // loads the natives
    Ports.free(); // opens its file, which stays open
    before = Resources.now();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    before.requireNoMoreNow();
  }
}
