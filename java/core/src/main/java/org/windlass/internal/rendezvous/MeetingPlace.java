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

/** Where the store is at which jobs meet, as rank 0 of a job tells the others, or ranks of one. */
public sealed interface MeetingPlace {
  /**
   * A way in.
   *
   * @param variables the environment, which may have credentials
   * @param failures makes what this and all calls throw; here, what {@link SocketStore#connect} and
   *     {@link StoreProvider#connect} do
   */
  Store connect(
      Member member, Map<String, String> variables, Duration deadline, FailureMaker failures);

  void write(DataOutput out) throws IOException;

  /** What {@link #write} has written. */
  static MeetingPlace read(DataInput in, FailureMaker failures) throws IOException {
    if (in.readBoolean()) {
      return new Provided(in.readUTF(), in.readUTF());
    }
    byte[] host = new byte[in.readUnsignedByte()];
    in.readFully(host);
    InetSocketAddress address = new InetSocketAddress(InetAddress.getByAddress(host), in.readInt());
    return new Socket(
        new MeetingFile.Place(address, Token.parse(in.readUTF(), "what rank 0 told", failures)));
  }

  /** A {@link StoreServer}. */
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
      out.writeInt(place.address().getPort());
      out.writeUTF(place.token().digits());
    }
  }

  /**
   * A store that another artifact brings along.
   *
   * @param address which begins with a scheme
   * @param name tells it from others at that address
   */
  record Provided(String address, String name) implements MeetingPlace {
    /** As an observer, which all ranks of jobs are. */
    @Override
    public Store connect(
        Member member, Map<String, String> variables, Duration deadline, FailureMaker failures) {
      Member observer = Member.observer(member.job(), member.library());
      return join(observer, variables, deadline, failures);
    }

    /** As a member: {@link StoreProvider#connect}. */
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
