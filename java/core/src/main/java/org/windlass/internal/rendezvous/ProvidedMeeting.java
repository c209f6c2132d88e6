// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.Map;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;

/**
 * The owner of a store that another artifact brings along, where jobs meet: what rank 0 of a start
 * is to that start's. It is the job that comes first, as long as it is there; then another's.
 */
final class ProvidedMeeting implements AutoCloseable {
  private static final String JOBS = "jobs";

  /** For an owner that is there to let one in; half of what is left at most. */
  private static final Duration LOOK = Duration.ofSeconds(3);

  private final MeetingPlace.Provided place;
  private final Map<String, String> variables;
  private final String library;
  private final FailureMaker failures;

  /** Where this process is the owner; null elsewhere. */
  private volatile Store own;

  ProvidedMeeting(
      MeetingPlace.Provided place,
      Map<String, String> variables,
      String library,
      FailureMaker failures) {
    this.place = place;
    this.variables = variables;
    this.library = library;
    this.failures = failures;
  }

  /**
   * Where it is, once it has an owner: this process, where none lets it in.
   *
   * @param deadline Timeout where another becomes it, or one that has ended is not known to have
   */
  MeetingPlace find(Duration deadline) {
    Deadline until = Deadline.of(deadline, failures);
    if (own != null && !isThere(own, look(until))) {
      close();
    }
    if (own == null && !hasOwner(look(until))) {
      own = place.join(new Member(JOBS, 0, 1, library), variables, until.left(), failures);
    }
    return place;
  }

  private static Duration look(Deadline until) {
    Duration half = Duration.ofNanos(Math.max(1, until.leftNs() / 2));
    return half.compareTo(LOOK) < 0 ? half : LOOK;
  }

  private static boolean isThere(Store store, Duration deadline) {
    try {
      store.get(JOBS, deadline);
      return true;
    } catch (RuntimeException e) {
      return false; // who connects finds out why
    }
  }

  private boolean hasOwner(Duration deadline) {
    Member observer = Member.observer(JOBS, library);
    try {
      place.connect(observer, variables, deadline, failures).close();
      return true;
    } catch (RuntimeException e) {
      return false; // who would become it finds out why
    }
  }

  @Override
  public void close() {
    Store last = own;
    own = null;
    if (last != null) {
      last.close();
    }
  }
}
