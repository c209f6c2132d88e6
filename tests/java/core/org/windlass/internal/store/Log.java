// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What the logger {@code org.windlass} gets until this is closed, and nobody else. */
public final class Log extends Handler implements AutoCloseable {
  private final Logger logger = Logger.getLogger("org.windlass");
  private final boolean parents = logger.getUseParentHandlers();
  private final SimpleFormatter text = new SimpleFormatter();
  private final List<String> lines = new CopyOnWriteArrayList<>();

  public Log() {
    logger.setUseParentHandlers(false);
    logger.addHandler(this);
  }

  /** Of the store at {@code address}. */
  public List<String> of(String address) {
    return lines.stream().filter(line -> line.contains(address)).toList();
  }

  @Override
  public void publish(LogRecord line) {
    lines.add(text.formatMessage(line));
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(parents);
  }
}
