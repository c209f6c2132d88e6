// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.Watch;
import io.etcd.jetcd.common.exception.CompactedException;
import io.etcd.jetcd.common.exception.EtcdException;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.WatchOption;
import java.util.concurrent.CompletableFuture;

/**
 * A look-out for the next change of a key. It ends with a change, and also where one may have gone
 * unseen because a connection broke or etcd has forgotten the revision: whoever waits looks again.
 */
final class Watching implements AutoCloseable {
  private final CompletableFuture<Void> changed = new CompletableFuture<>();
  private final Watch.Watcher watcher;

  /**
   * Looks out.
   *
   * @param revision of etcd, from which on changes count
   */
  Watching(Client client, ByteSequence key, long revision) {
    this(client, key, GetOption.DEFAULT, revision);
  }

  /**
   * Looks out.
   *
   * @param what says whether the key is a prefix
   * @param revision of etcd, from which on changes count
   */
  Watching(Client client, ByteSequence key, GetOption what, long revision) {
    WatchOption option =
        WatchOption.builder()
            .isPrefix(what.isPrefix())
            .withRevision(revision)
            .withRequireLeader(true)
            .build();
    watcher = begun(client, key, option);
  }

  /** Null where the client is closed meanwhile. */
  private Watch.Watcher begun(Client client, ByteSequence key, WatchOption option) {
    try {
      return client
          .getWatchClient()
          .watch(
              key,
              option,
              Watch.listener(
                  response -> changed.complete(null),
                  this::failed,
                  () -> changed.complete(null)));
    } catch (EtcdException e) {
      changed.complete(null);
      return null;
    }
  }

  private void failed(Throwable failure) {
    if (Requests.isPassing(failure) || failure instanceof CompactedException) {
      changed.complete(null);
    } else {
      changed.completeExceptionally(failure);
    }
  }

  CompletableFuture<Void> changed() {
    return changed;
  }

  @Override
  public void close() {
    if (watcher != null) {
      watcher.close();
    }
  }
}
