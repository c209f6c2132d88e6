// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.rendezvous.OwnStore;

/** Frees the native communicator, and closes the store that its start has opened. Thread-safe. */
final class Membership extends Leaks.Resource {
  private final Endpoint endpoint;
  private final List<WeakReference<Communicator>> children = new ArrayList<>();

  private @Nullable OwnStore store;

  Membership(@Nullable String what, Endpoint endpoint) {
    super(what);
    this.endpoint = endpoint;
  }

  synchronized void keep(@Nullable OwnStore store) {
    this.store = store;
  }

  synchronized void release() {
    if (store != null) {
      store.close();
      store = null;
    }
  }

  synchronized void joined(Communicator child) {
    children.removeIf(reference -> reference.get() == null);
    children.add(new WeakReference<>(child));
  }

  synchronized List<Communicator> children() {
    return children.stream().map(WeakReference::get).filter(Objects::nonNull).toList();
  }

  @Override
  protected boolean isReported() {
    return !endpoint.isOwned();
  }

  @Override
  protected boolean mayWait() {
    return true;
  }

  @Override
  protected void free() {
    endpoint.free();
    release();
  }
}
