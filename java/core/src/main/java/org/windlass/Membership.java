// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Leaks;
import org.windlass.internal.rendezvous.OwnStore;

/**
 * The part of a {@link Communicator} that outlives it: its endpoint, freed once the communicator is
 * unreachable.
 */
final class Membership extends Leaks.Resource {
  private final Endpoint endpoint;

  /** Guarded by this. */
  private final List<WeakReference<Communicator>> children = new ArrayList<>();

  /** What is closed with it; null for nothing. */
  private OwnStore kept;

  Membership(String what, Endpoint endpoint) {
    super(what);
    this.endpoint = endpoint;
  }

  /** Closes {@code other}, which may be null, with this. */
  synchronized void keep(OwnStore other) {
    kept = other;
  }

  /** Closes what was kept. */
  synchronized void release() {
    if (kept != null) {
      kept.close();
      kept = null;
    }
  }

  /** Remembers a communicator that came from this one. */
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
