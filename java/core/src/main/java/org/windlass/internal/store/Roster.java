// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.windlass.internal.Native;

/** The members of a {@link StoreServer}, by job and rank. One thread at a time calls it. */
final class Roster {
  private final int most;
  private final Set<Session> members = new LinkedHashSet<>();

  /** Sessions by job and rank. */
  private final Map<String, Map<Integer, Session>> ranks = new HashMap<>();

  /** Makes a roster for at most {@code most} members. */
  Roster(int most) {
    this.most = most;
  }

  List<Session> all() {
    return List.copyOf(members);
  }

  boolean isEmpty() {
    return members.isEmpty();
  }

  boolean has(Session session) {
    return members.contains(session);
  }

  /** Returns the session of a rank; null if there is none, or for an observer. */
  Session of(Member member) {
    return ranks.getOrDefault(member.job(), Map.of()).get(member.rank());
  }

  /** Returns why a member can't be added; null if it can. */
  Refusal objection(Member member) {
    if (members.size() >= most) {
      return new Refusal(
          Native.WL_RESOURCE, "the store has " + members.size() + " members, as many as it takes");
    }
    Session same = of(member);
    if (same != null) {
      return new Refusal(
          Native.WL_MISMATCH,
          member + " is connected already, from " + same.peer() + "; two may not have one rank");
    }
    return null;
  }

  /** Adds a session to which there is no objection. */
  void add(Session session) {
    Member member = session.member();
    members.add(session);
    if (!member.isObserver()) {
      ranks.computeIfAbsent(member.job(), any -> new HashMap<>()).put(member.rank(), session);
    }
  }

  /** Removes a session, if it is a member's. */
  void remove(Session session) {
    if (members.remove(session) && !session.member().isObserver()) {
      Map<Integer, Session> job = ranks.get(session.member().job());
      job.remove(session.member().rank());
      if (job.isEmpty()) {
        ranks.remove(session.member().job());
      }
    }
  }
}
