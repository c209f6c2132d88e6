// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Waits;

/** The steps of one rank, each of them an all-gather that somebody else has, of a {@link Word}. */
final class AllGatherSteps implements StartSteps {
  private final AllGatherStart.AllGather all;
  private final int rank;
  private final int size;
  private final Deadline until;
  private final FailureMaker failures;

  /** Of members whose classes are the same as these. */
  private static final long LOADED = UUID.randomUUID().getMostSignificantBits();

  /** Tells what is said here from what is said of the same rank elsewhere. */
  private final UUID member = new UUID(LOADED, UUID.randomUUID().getLeastSignificantBits());

  /** By which each rank spoke first; null before. */
  private List<UUID> members;

  /** Null before it is known which ranks live on which. */
  private Hosts hosts;

  AllGatherSteps(
      AllGatherStart.AllGather all, int rank, int size, Deadline until, FailureMaker failures) {
    this.all = all;
    this.rank = rank;
    this.size = size;
    this.until = until;
    this.failures = failures;
  }

  UUID member() {
    return member;
  }

  /** That of another rank, which has spoken. */
  UUID member(int other) {
    return members.get(other);
  }

  /** Whether two ranks of one process, which have spoken, find one another in it. */
  boolean areLoadedTogether(int one, int other) {
    return member(one).getMostSignificantBits() == member(other).getMostSignificantBits();
  }

  @Override
  public void settle(Hosts settled) {
    hosts = settled;
  }

  /** Says what {@code own} has for this rank; others of its process speak for themselves. */
  @Override
  public List<byte[]> gather(String step, Map<Integer, byte[]> own, Refused refused) {
    Word word = new Word(Word.NO_START, member, step, own.get(rank), refused);
    List<Word> words = words(told(step, word.toBytes()));
    if (!words.get(rank).member().equals(member)) {
      throw mismatch(rank, "another has said that it is rank " + rank + "; give each its own");
    }
    for (int other = 0; other < size; other++) {
      Word said = words.get(other);
      if (!said.step().equals(step)) {
        throw mismatch(
            other,
            "rank " + other + " is at step " + Texts.printable(said.step()) + " of its start, rank "
                + rank + " at " + step + "; have all ranks start anew together");
      }
      if (members != null && !said.member().equals(members.get(other))) {
        throw mismatch(
            other,
            "rank " + other + " speaks in another start than before; have each rank make one start"
                + " at a time");
      }
    }
    members = words.stream().map(Word::member).toList();
    for (int other = 0; other < size; other++) {
      Refused why = words.get(other).refused();
      if (why != null) {
        throw failures.make(why.code(), why.of(Hosts.rank(hosts, other)), null, "", List.of(other));
      }
    }
    return words.stream().map(Word::value).toList();
  }

  private List<byte[]> told(String step, byte[] word) {
    Duration left = until.left();
    try {
      return all.call(word, left);
    } catch (TimeoutException e) {
      throw failures.make(
          Native.WL_TIMEOUT,
          "some of " + size + " ranks had not come to step " + step
              + " of the start when the deadline of " + Deadline.text(until.deadline())
              + " passed: " + e.getMessage() + "; see which of them run, or give more time",
          e,
          "",
          List.of());
    } catch (InterruptedException e) {
      throw Waits.interrupted("step " + step + " of the start", failures);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw failures.make(
          Native.WL_ABORTED, "step " + step + " of the start: " + e, e, "", List.of());
    }
  }

  private List<Word> words(List<byte[]> told) {
    int count = told == null ? 0 : told.size();
    if (count != size) {
      throw failures.make(
          Native.WL_MISMATCH,
          "an all-gather of " + size + " ranks gave what " + count
              + " have said; give all ranks one size");
    }
    List<Word> words = new ArrayList<>(size);
    for (int other = 0; other < size; other++) {
      try {
        if (told.get(other) == null) {
          throw new MalformedException("there is nothing");
        }
        words.add(Word.of(told.get(other)));
      } catch (MalformedException e) {
        throw mismatch(
            other,
            "what rank " + other + " says at the start can't be read: " + e.getMessage()
                + "; have all ranks call the same, and run one version of windlass on all of them");
      }
    }
    return words;
  }

  private RuntimeException mismatch(int culprit, String message) {
    return failures.make(Native.WL_MISMATCH, message, null, "", List.of(culprit));
  }
}
