// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.Client;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;

/** The owner's part of {@link Entrance}: it says of each member who has come that it saw it. */
final class Admission implements AutoCloseable {
  private final Client client;
  private final Owner owner;
  private final Requests requests;
  private final Lookout lookout;

  /** The revision of etcd that was looked at last. */
  private volatile long seen;

  Admission(Client client, Owner owner, Requests requests) {
    this.client = client;
    this.owner = owner;
    this.requests = requests;
    lookout =
        new Lookout(
            client, owner.keys().members(), this::later, this::admit, this::failed);
  }

  /** Members who have come since. */
  private GetOption later() {
    return GetOption.builder().isPrefix(true).withMinModRevision(seen + 1).build();
  }

  private void admit(GetResponse come) {
    seen = come.getHeader().getRevision();
    PutOption option =
        PutOption.builder().withLeaseId(owner.lease()).withAutoRetry().build();
    for (KeyValue member : come.getKvs()) {
      client
          .getKVClient()
          .put(owner.keys().admitted(member.getKey()), member.getValue(), option)
          .whenComplete(
              (none, failure) -> {
                if (failure != null) {
                  failed(failure);
                }
              });
    }
  }

  private void failed(Throwable failure) {
    requests.lost(Requests.told(failure));
  }

  @Override
  public void close() {
    lookout.close();
  }
}
