// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.options.GetOption;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Someone who is shown what lies at a key or under a prefix, at first and after each change, until
 * this is closed; changes that come together are shown together. It runs on jetcd's threads and
 * makes none of them wait.
 */
final class Lookout implements AutoCloseable {
  private static final long PAUSE_MS = 50;

  private final Client client;
  private final ByteSequence key;
  private final Supplier<GetOption> option;
  private final Consumer<GetResponse> shown;
  private final Consumer<Throwable> failed;

  private Watching watching;
  private boolean isClosed;

  /**
   * Looks for the first time, by and by.
   *
   * @param option of each look
   * @param failed is told of a failure that doesn't pass by itself, after which nothing is shown
   */
  Lookout(
      Client client,
      ByteSequence key,
      Supplier<GetOption> option,
      Consumer<GetResponse> shown,
      Consumer<Throwable> failed) {
    this.client = client;
    this.key = key;
    this.option = option;
    this.shown = shown;
    this.failed = failed;
    look();
  }

  private synchronized void look() {
    if (!isClosed) {
      client.getKVClient().get(key, option.get()).whenComplete(this::looked);
    }
  }

  private void looked(GetResponse response, Throwable failure) {
    if (failure != null) {
      again(failure);
      return;
    }
    shown.accept(response);
    synchronized (this) {
      if (!isClosed) {
        watching = new Watching(client, key, option.get(), response.getHeader().getRevision() + 1);
        watching.changed().whenComplete((none, end) -> changed(end));
      }
    }
  }

  private void changed(Throwable failure) {
    synchronized (this) {
      if (isClosed) {
        return;
      }
      watching.close();
    }
    if (failure == null) {
      look();
    } else {
      again(failure);
    }
  }

  private void again(Throwable failure) {
    if (Requests.isPassing(failure)) {
      CompletableFuture.delayedExecutor(PAUSE_MS, TimeUnit.MILLISECONDS).execute(this::look);
    } else if (!isClosed()) {
      failed.accept(failure);
    }
  }

  private synchronized boolean isClosed() {
    return isClosed;
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    if (watching != null) {
      watching.close();
    }
  }
}
