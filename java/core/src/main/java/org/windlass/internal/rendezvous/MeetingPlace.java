// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProvider;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/** Location of a store where jobs meet, which rank 0 of a job sends to the other ranks. */
public sealed interface MeetingPlace {
  /**
   * Connects to the store.
   *
   * @param variables the environment, which may hold credentials
   * @param failures makes what this and all calls throw
   */
  Store connect(
      Member member, Map<String, String> variables, Duration deadline, FailureMaker failures);

  void write(DataOutput out) throws IOException;

  /** Reads what {@link #write} has written. */
  static MeetingPlace read(DataInput in, FailureMaker failures) throws IOException {
    if (in.readBoolean()) {
      return new Provided(in.readUTF(), in.readUTF());
    }
    byte[] host = new byte[in.readUnsignedByte()];
    in.readFully(host);
    InetAddress address = InetAddress.getByAddress(host);
    InetSocketAddress port = new InetSocketAddress(address, in.readUnsignedShort());
    return new Socket(
        new MeetingFile.Place(port, Token.parse(in.readUTF(), "what rank 0 told", failures)));
  }

  /** Location of a {@link StoreServer}. */
  record Socket(MeetingFile.Place place) implements MeetingPlace {
    @Override
    public Store connect(
        Member member, Map<String, String> variables, Duration deadline, FailureMaker failures) {
      return SocketStore.connect(place.address(), place.token(), member, deadline, failures);
    }

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeBoolean(false);
      byte[] host = place.address().getAddress().getAddress();
      out.writeByte(host.length);
      out.write(host);
      out.writeShort(place.address().getPort());
      out.writeUTF(place.token().digits());
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

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeBoolean(true);
      out.writeUTF(address);
      out.writeUTF(name);
    }
  }
}
