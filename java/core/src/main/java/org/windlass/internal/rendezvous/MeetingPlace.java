// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProvider;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.StoreServer;

/** Location of a store where jobs meet. */
public sealed interface MeetingPlace {
  /**
   * Connects to the store.
   *
   * @param variables the environment, which may hold credentials
   * @param failures makes what this and all calls throw
   */
  Store connect(
      Member member, Map<String, String> variables, Duration deadline, FailureMaker failures);

  /** Location of a {@link StoreServer}. */
  record Socket(MeetingFile.Place place) implements MeetingPlace {
    @Override
    public Store connect(
        Member member, Map<String, String> variables, Duration deadline, FailureMaker failures) {
      return SocketStore.connect(place.address(), place.token(), member, deadline, failures);
    }
  }

  /**
   * Location of a store of a {@link StoreProvider}.
   *
   * @param address address that begins with a scheme
   * @param name name of the store among those at the address
   */
  record Provided(String address, String name) implements MeetingPlace {
    /** Connects as an observer, as all ranks of jobs that meet do. */
    @Override
    public Store connect(
        Member member, Map<String, String> variables, Duration deadline, FailureMaker failures) {
      Member observer = Member.observer(member.job(), member.library());
      return join(observer, variables, deadline, failures);
    }

    /** Connects as a member. */
    public Store join(
        Member member, Map<String, String> variables, Duration deadline, FailureMaker failures) {
      return StoreProviders.of(address, failures)
          .connect(address, name, member, variables, deadline, failures);
    }
  }
}
