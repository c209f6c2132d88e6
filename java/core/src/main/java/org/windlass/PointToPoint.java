// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.MessageGroup.Part;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.MessageList;
import org.windlass.internal.call.PendingCall;
import org.windlass.internal.memory.Memory;

/**
 * Sends messages from one rank to another. A message needs calls of only two ranks: one sends it,
 * and the other receives it. The order of a rank's messages and its other operations may differ
 * from the order on other ranks.
 *
 * <pre>{@code
 * if (comm.rank() > 0) comm.receive(activations, comm.rank() - 1, 0);
 * compute(activations);
 * if (comm.rank() + 1 < comm.size()) comm.send(activations, comm.rank() + 1, 0);
 * }</pre>
 *
 * <p>A receive takes the first message from its source whose tag it matches. Messages between two
 * ranks with one tag keep their order. Tensors are contiguous tensors of the host. A receive has
 * the dtype of its message, and room for at least as many elements.
 *
 * <p>When a send returns, its tensor may be changed. The send of a message of up to 48 bytes does
 * not wait for the receive. The send of a message of up to 4,096 bytes waits only if many earlier
 * messages have no receive yet. The send of a longer message may wait for its receive. So two ranks
 * that send long messages to each other use {@link #sendReceive}, {@link #group} or asynchronous
 * calls.
 *
 * <p>An asynchronous message waits for no other call of its rank, and no other call waits for it.
 * {@link Operation#cancel} withdraws a receive that has no message yet. The deadline of an
 * asynchronous call begins at the call.
 *
 * <p>All methods end the communicator as its collectives do, and throw:
 *
 * <ul>
 *   <li>{@link MismatchException} if the dtypes differ, or the message is longer than the tensor
 *       that receives it. The exception names both ranks and the tag.
 *   <li>{@link DeadlineExceededException} if the other rank did not call in time.
 *   <li>{@link AbortedException} if the other rank has closed the communicator.
 * </ul>
 *
 * <p>They throw the following, and the communicator stays alive:
 *
 * <ul>
 *   <li>{@link InvalidArgumentException} for a wrong rank or tag, a strided tensor, or a receive
 *       into a read-only tensor or one that overlaps another tensor of the call.
 *   <li>{@link UnsupportedException} for a tensor in device memory, and on targets whose devices
 *       only run collectives.
 * </ul>
 */
public abstract sealed class PointToPoint permits Reductions {
  /** Source of a receive that takes a message from any rank. */
  public static final int ANY_SOURCE = Native.WL_ANY;

  /** Tag of a receive that takes a message with any tag. */
  public static final int ANY_TAG = Native.WL_ANY;

  final Endpoint endpoint;
  final long deadlineNs;

  /** Keeps the native handle alive while an operation runs. */
  final Object owner;

  PointToPoint(Endpoint endpoint, long deadlineNs, @Nullable Object owner) {
    this.endpoint = endpoint;
    this.deadlineNs = deadlineNs;
    this.owner = owner == null ? this : owner;
  }

  /** Returns this rank's number, from 0. */
  public final int rank() {
    return endpoint.rank;
  }

  /** Returns the number of ranks. */
  public final int size() {
    return endpoint.size;
  }

  /**
   * Sends {@code tensor} to rank {@code peer}.
   *
   * @param tag 0 or more; a receive with the same tag takes the message
   */
  public final void send(Tensor tensor, int peer, int tag) {
    Arguments.message("send", true, tensor);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      join(List.of(Part.send(tensor, peer, tag)), list -> tensor);
      return;
    }
    run(thread, Native.WL_OP_SEND, tensor, peer, tag);
    endpoint.end();
    tensor.memory.unpin();
    Reference.reachabilityFence(tensor);
    Reference.reachabilityFence(owner);
  }

  /**
   * Receives a message into {@code tensor}.
   *
   * @param peer the rank that sends, or {@link #ANY_SOURCE}
   * @param tag tag of the message, or {@link #ANY_TAG}
   */
  public final Received receive(Tensor tensor, int peer, int tag) {
    Arguments.message("receive", false, tensor);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return join(List.of(Part.receive(tensor, peer, tag)), list -> received(list, 0));
    }
    MessageList list = run(thread, Native.WL_OP_RECEIVE, tensor, peer, tag);
    Received received = received(list, 0);
    endpoint.end();
    tensor.memory.unpin();
    Reference.reachabilityFence(tensor);
    Reference.reachabilityFence(owner);
    return received;
  }

  /**
   * Sends {@code out} to rank {@code to}, and receives a message from rank {@code from} into {@code
   * in}, at the same time.
   *
   * @param from may be {@link #ANY_SOURCE}
   * @param tag tag of both messages
   */
  public final Received sendReceive(Tensor out, int to, Tensor in, int from, int tag) {
    return run(pair(out, to, in, from, tag), list -> received(list, 1));
  }

  /**
   * Runs sends and receives together. They make progress in any order, so ranks that send to each
   * other in one group do not wait for each other forever. Messages between two ranks are matched
   * in the order of the calls.
   *
   * <pre>{@code
   * comm.group(messages -> {
   *   messages.send(right, next, 0);
   *   messages.send(left, previous, 1);
   *   messages.receive(fromLeft, previous, 0);
   *   messages.receive(fromRight, next, 1);
   * });
   * }</pre>
   *
   * @param messages calls the methods of the group, and no operation of this rank
   * @return the results of the receives, in the order of the calls
   * @throws InvalidArgumentException if a message is wrong, or {@code messages} calls another
   *     operation, such as a collective; nothing was sent
   */
  public final List<Received> group(Consumer<? super MessageGroup> messages) {
    List<Part> parts = collect(messages);
    return parts.isEmpty() ? List.of() : run(parts, list -> received(parts, list));
  }

  /** Begins {@link #send(Tensor, int, int)}, and returns at once. */
  public final Operation<Void> sendAsync(Tensor tensor, int peer, int tag) {
    return new Operation<>(start(List.of(Part.send(tensor, peer, tag)), list -> null));
  }

  /** Begins {@link #receive(Tensor, int, int)}, and returns at once. */
  public final Operation<Received> receiveAsync(Tensor tensor, int peer, int tag) {
    return new Operation<>(
        start(List.of(Part.receive(tensor, peer, tag)), list -> received(list, 0)));
  }

  /** Begins {@link #sendReceive(Tensor, int, Tensor, int, int)}, and returns at once. */
  public final Operation<Received> sendReceiveAsync(
      Tensor out, int to, Tensor in, int from, int tag) {
    return new Operation<>(start(pair(out, to, in, from, tag), list -> received(list, 1)));
  }

  /** Begins {@link #group(Consumer)}, and returns at once. */
  public final Operation<List<Received>> groupAsync(Consumer<? super MessageGroup> messages) {
    List<Part> parts = collect(messages);
    if (parts.isEmpty()) {
      throw new InvalidArgumentException("groupAsync: the group has no messages");
    }
    return new Operation<>(start(parts, list -> received(parts, list)));
  }

  private List<Part> collect(Consumer<? super MessageGroup> messages) {
    Objects.requireNonNull(messages, "messages");
    MessageGroup group = new MessageGroup();
    endpoint.messages.collect(() -> messages.accept(group));
    return List.copyOf(group.parts);
  }

  private static List<Part> pair(Tensor out, int to, Tensor in, int from, int tag) {
    Objects.requireNonNull(out, "out");
    Objects.requireNonNull(in, "in");
    return List.of(Part.send(out, to, tag), Part.receive(in, from, tag));
  }

  /**
   * Runs one message on this thread. After success, the memory of the message is still pinned, and
   * the caller ends the call.
   */
  private MessageList run(Thread thread, int operation, Tensor tensor, int peer, int tag) {
    Endpoint own = endpoint;
    own.begin(thread);
    Memory memory = tensor.memory;
    if (!memory.hold()) {
      own.end();
      throw tensor.closed(Arguments.call(operation), "tensor");
    }
    MessageList list = own.messages.list.clear(1);
    list.add(operation, peer, tag, tensor.dtype.code(), tensor.address, tensor.numel);
    int code = Native.wl_messages(own.handle, list.address(), 1, deadlineNs, own.error);
    if (code != Native.WL_OK) {
      throw own.settle(code, memory, null);
    }
    return list;
  }

  private <T> T run(List<Part> parts, Function<MessageList, T> result) {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return join(parts, result);
    }
    Endpoint own = endpoint;
    own.begin(thread);
    Memory[] pinned;
    try {
      pinned = pin(parts);
    } catch (Throwable e) {
      own.end();
      throw e;
    }
    MessageList list = fill(own.messages.list, parts);
    int code =
        Native.wl_messages(own.handle, list.address(), parts.size(), deadlineNs, own.error);
    if (code != Native.WL_OK) {
      throw own.settle(code, pinned);
    }
    T results = result.apply(list);
    own.end();
    for (Memory each : pinned) {
      each.unpin();
    }
    Reference.reachabilityFence(parts);
    Reference.reachabilityFence(owner);
    return results;
  }

  /** Runs messages for a thread that must not block, or while other calls are queued. */
  private <T> T join(List<Part> parts, Function<MessageList, T> result) {
    return start(parts, result).join();
  }

  private <T extends @Nullable Object> PendingCall<T> start(
      List<Part> parts, Function<MessageList, T> result) {
    endpoint.messages.requireNoGroup(Thread.currentThread());
    Memory[] pinned = pin(parts);
    MessageList list = fill(new MessageList(parts.size()), parts);
    return endpoint.messages.start(
        list, deadlineNs, pinned, new Object[] {parts, owner}, result);
  }

  private static Memory[] pin(List<Part> parts) {
    Memory[] pinned = new Memory[parts.size()];
    for (int i = 0; i < pinned.length; i++) {
      Part part = parts.get(i);
      pinned[i] = part.tensor().memory;
      if (!pinned[i].hold()) {
        while (--i >= 0) {
          pinned[i].unpin();
        }
        throw part.tensor().closed(Arguments.call(part.operation()), "tensor");
      }
    }
    return pinned;
  }

  private static MessageList fill(MessageList list, List<Part> parts) {
    list.clear(parts.size());
    for (Part part : parts) {
      Tensor tensor = part.tensor();
      list.add(
          part.operation(),
          part.peer(),
          part.tag(),
          tensor.dtype.code(),
          tensor.address,
          tensor.numel);
    }
    return list;
  }

  private static Received received(MessageList list, int index) {
    return new Received(list.source(index), list.tag(index), list.received(index));
  }

  private static List<Received> received(List<Part> parts, MessageList list) {
    List<Received> received = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      if (!parts.get(i).sends()) {
        received.add(received(list, i));
      }
    }
    return List.copyOf(received);
  }
}
