// SPDX-License-Identifier: Apache-2.0
package org.windlass.message;

import static org.windlass.PointToPoint.ANY_SOURCE;
import static org.windlass.PointToPoint.ANY_TAG;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What each rank of a program began and what it got, and an oracle in plain Java. {@link #check}
 * says whether the receives may have these outcomes:
 *
 * <ul>
 *   <li>A receive gets a message that was sent to its rank, at most once, whole, and with a source
 *       and a tag that it asks for.
 *   <li>It gets the first message of its source that it may get and that no earlier receive got.
 *   <li>A message goes to the first receive of its rank that may get it.
 *   <li>A send of a long message returns only if a receive for it was begun.
 * </ul>
 */
final class MessageHistory {
  /** Bytes up to which a send may return before its receive. */
  private static final long EAGER_BYTES = 16 << 10;

  /** A message. Its data begins with its number. */
  record Sent(int number, int from, int to, int tag, int elements) implements Serializable {}

  /** A receive, and the number of the message that it got; -1 for none. */
  record Posted(int source, int tag, int got) implements Serializable {
    boolean takes(Sent message) {
      return (source == ANY_SOURCE || source == message.from)
          && (tag == ANY_TAG || tag == message.tag);
    }
  }

  /** One rank's part. Only the thread of the rank uses it while the program runs. */
  static final class OfRank implements Serializable {
    private static final long serialVersionUID = 1L;

    final int rank;
    final ArrayList<Sent> sent = new ArrayList<>();
    final ArrayList<Integer> returned = new ArrayList<>();
    final ArrayList<Posted> posted = new ArrayList<>();

    /** Why the rank failed; null if it went through the program. */
    Throwable failure;

    /** Ranks that the failure names. */
    final ArrayList<Integer> named = new ArrayList<>();

    OfRank(int rank) {
      this.rank = rank;
    }

    /** Notes that a receive is begun. Returns its place among those of the rank. */
    int post(int source, int tag) {
      posted.add(new Posted(source, tag, -1));
      return posted.size() - 1;
    }

    void got(int place, int number) {
      Posted before = posted.get(place);
      posted.set(place, new Posted(before.source, before.tag, number));
    }
  }

  private final List<OfRank> ranks;

  MessageHistory(List<OfRank> ranks) {
    this.ranks = ranks;
  }

  /** Throws AssertionError if an outcome is not allowed. {@code isWhole}: nobody failed. */
  void check(boolean isWhole) {
    Map<Integer, Sent> all = new HashMap<>();
    ranks.forEach(each -> each.sent.forEach(message -> all.put(message.number, message)));
    Map<Integer, Integer> places = new HashMap<>(); // of the receive of a message
    for (OfRank receiver : ranks) {
      for (int place = 0; place < receiver.posted.size(); place++) {
        Posted receive = receiver.posted.get(place);
        if (receive.got < 0) {
          require(!isWhole, receiver, receive, "got nothing");
          continue;
        }
        Sent message = all.get(receive.got);
        require(message != null, receiver, receive, "got a message that nobody sent");
        require(message.to == receiver.rank, receiver, receive, "got one for another rank");
        require(receive.takes(message), receiver, receive, "did not ask for " + message);
        require(
            places.put(message.number, place) == null, receiver, receive, "got it a second time");
      }
    }
    for (OfRank receiver : ranks) {
      checkOrder(receiver, places);
    }
    for (OfRank sender : ranks) {
      for (Sent message : sender.sent) {
        boolean isReceived = places.containsKey(message.number);
        require(!isWhole || isReceived, sender, message, "was not received");
        if (message.elements * 8L > EAGER_BYTES && sender.returned.contains(message.number)) {
          boolean isAsked =
              isReceived
                  || ranks.get(message.to).posted.stream()
                      .anyMatch(each -> each.got < 0 && each.takes(message));
          require(isAsked, sender, message, "returned, and nobody receives it");
        }
      }
    }
  }

  private void checkOrder(OfRank receiver, Map<Integer, Integer> places) {
    for (OfRank sender : ranks) {
      List<Sent> messages =
          sender.sent.stream().filter(message -> message.to == receiver.rank).toList();
      for (int i = 0; i < messages.size(); i++) {
        Integer place = places.get(messages.get(i).number);
        if (place == null) {
          continue;
        }
        Posted receive = receiver.posted.get(place);
        for (Sent earlier : messages.subList(0, i)) {
          Integer other = places.get(earlier.number);
          require(
              !receive.takes(earlier) || (other != null && other < place),
              receiver,
              receive,
              "got " + messages.get(i) + " before " + earlier);
        }
        for (Posted before : receiver.posted.subList(0, place)) {
          require(
              !before.takes(messages.get(i)) || before.got >= 0,
              receiver,
              receive,
              "got " + messages.get(i) + ", which the earlier " + before + " waits for");
        }
      }
    }
  }

  private static void require(boolean holds, OfRank rank, Object what, String why) {
    if (!holds) {
      throw new AssertionError("rank " + rank.rank + ": " + what + " " + why, rank.failure);
    }
  }
}
