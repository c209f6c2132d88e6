// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.common.exception.ErrorCode;
import io.etcd.jetcd.common.exception.EtcdException;
import io.etcd.jetcd.common.exception.EtcdExceptionFactory;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Refusal;
import org.windlass.internal.store.Waits;

/**
 * What one way in asks an etcd. A request ends by its answer, by its deadline, by an interrupt of
 * the thread that waits for it, or by the end of the way in.
 */
final class Requests {
  private static final String NO_ANSWER = "no answer of ";
  private static final long PAUSE_MS = 50;
  private static final Pattern CAUSE = Pattern.compile("cause=([^\n]*)");

  private final String address;
  private final FailureMaker failures;

  /** What callers wait for. */
  private final Set<CompletableFuture<?>> waiting = ConcurrentHashMap.newKeySet();

  /** Why there are no answers any more; null as long as there are. */
  private volatile Refusal end;

  Requests(String address, FailureMaker failures) {
    this.address = address;
    this.failures = failures;
  }

  /** Ends all calls, those too that come later; what ended them first counts. */
  synchronized void finish(Refusal why) {
    if (end == null) {
      end = why;
      waiting.forEach(wait -> wait.completeExceptionally(why));
    }
  }

  /** The same, for a store that is lost. */
  Refusal lost(String why) {
    finish(new Refusal(Native.WL_PEER_LOST, "the store at " + address + " was lost: " + why));
    return end;
  }

  boolean isOver() {
    return end != null;
  }

  /**
   * What etcd answers to a question, which is asked again where a connection breaks.
   *
   * @param call as errors name it
   */
  <T> T read(String call, Deadline until, Supplier<CompletableFuture<T>> question) {
    while (true) {
      try {
        return answer(call, NO_ANSWER, List.of(), until, question);
      } catch (Unanswered e) {
        pause(call, until);
      }
    }
  }

  /**
   * What etcd answers to a change. Where a connection breaks meanwhile nobody knows whether it was
   * made: then the store is lost for this way in.
   */
  <T> T change(String call, Deadline until, Supplier<CompletableFuture<T>> change) {
    try {
      return answer(call, NO_ANSWER, List.of(), until, change);
    } catch (Unanswered e) {
      throw lost("the connection broke before an answer came: " + e.getMessage())
          .thrown(call, failures);
    }
  }

  /**
   * What {@code event} comes to.
   *
   * @param lacking what is missing where nothing comes
   * @param culprits the ranks from which it is missing
   */
  <T> T await(
      String call,
      String lacking,
      List<Integer> culprits,
      Deadline until,
      CompletableFuture<T> event) {
    try {
      return answer(call, lacking, culprits, until, () -> event);
    } catch (Unanswered e) {
      throw new IllegalStateException(e); // whoever makes such an event sees to that
    }
  }

  /** A connection that broke before an answer came, or an etcd that can't answer now. */
  private static final class Unanswered extends Exception {
    private static final long serialVersionUID = 1L;

    Unanswered(String message) {
      super(message);
    }
  }

  /** Whether it may be well again by itself. */
  static boolean isPassing(Throwable failure) {
    return code(failure) == ErrorCode.UNAVAILABLE;
  }

  /** Whether it tells of a lease that is no more. */
  static boolean isGone(Throwable failure) {
    return code(failure) == ErrorCode.NOT_FOUND;
  }

  private static ErrorCode code(Throwable failure) {
    return EtcdExceptionFactory.toEtcdException(failure).getErrorCode();
  }

  private <T> T answer(
      String call,
      String lacking,
      List<Integer> culprits,
      Deadline until,
      Supplier<CompletableFuture<T>> request)
      throws Unanswered {
    CompletableFuture<T> answer = new CompletableFuture<>();
    CompletableFuture<T> asked = null;
    waiting.add(answer);
    try {
      Refusal ended = end;
      if (ended != null) {
        throw ended.thrown(call, failures);
      }
      asked = begun(request);
      asked.whenComplete(
          (value, failure) -> {
            if (failure == null) {
              answer.complete(value);
            } else {
              answer.completeExceptionally(failure);
            }
          });
      return answer.get(until.leftNs(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw failures.make(
          Native.WL_TIMEOUT,
          call
              + ": "
              + lacking
              + "the store at "
              + address
              + " after "
              + Deadline.text(until.deadline()),
          null,
          "",
          culprits);
    } catch (InterruptedException e) {
      throw Waits.interrupted(call, failures);
    } catch (ExecutionException e) {
      throw thrown(call, e.getCause());
    } finally {
      waiting.remove(answer);
      if (asked != null) {
        asked.cancel(false);
      }
    }
  }

  /** A client that is closed meanwhile says so at once. */
  private static <T> CompletableFuture<T> begun(Supplier<CompletableFuture<T>> request) {
    try {
      return request.get();
    } catch (RejectedExecutionException | EtcdException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private RuntimeException thrown(String call, Throwable cause) throws Unanswered {
    if (cause instanceof Refusal) {
      return ((Refusal) cause).thrown(call, failures);
    }
    Refusal ended = end;
    if (ended != null) {
      return ended.thrown(call, failures);
    }
    EtcdException failure = EtcdExceptionFactory.toEtcdException(cause);
    if (isPassing(failure)) {
      throw new Unanswered(failure.getMessage());
    }
    if (isGone(failure)) {
      return lost(KeptLease.GONE).thrown(call, failures);
    }
    if (failure.getErrorCode() == ErrorCode.DEADLINE_EXCEEDED) {
      return failures.make(
          Native.WL_TIMEOUT,
          call + ": " + NO_ANSWER + "the etcd at " + address + ": " + lastAttempt(told(failure)));
    }
    return failures.make(
        isRefusal(failure) ? Native.WL_RESOURCE : Native.WL_INTERNAL,
        call + ": the etcd at " + address + " answers: " + told(failure),
        failure,
        "",
        List.of());
  }

  /** Such as a user that may not, a full disk, or a request that is too large for that etcd. */
  private static boolean isRefusal(EtcdException failure) {
    return switch (failure.getErrorCode()) {
      case PERMISSION_DENIED, UNAUTHENTICATED, RESOURCE_EXHAUSTED, INVALID_ARGUMENT,
          FAILED_PRECONDITION -> true;
      default -> false;
    };
  }

  /** What broke the last connection, which gRPC puts among much else, with its stack. */
  private static String lastAttempt(String text) {
    Matcher cause = CAUSE.matcher(text);
    return cause.find() ? cause.group(1) : text.lines().findFirst().orElse("");
  }

  /** What it says, and what it was told itself. */
  static String told(Throwable failure) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = failure; each != null; each = each.getCause()) {
      String message = each.getMessage() == null ? each.toString() : each.getMessage();
      if (text.indexOf(message) < 0) {
        text.append(text.length() == 0 ? "" : ": ").append(message);
      }
    }
    return text.toString();
  }

  private void pause(String call, Deadline until) {
    CompletableFuture<Void> over = new CompletableFuture<>();
    over.completeOnTimeout(null, PAUSE_MS, TimeUnit.MILLISECONDS);
    await(call, NO_ANSWER, List.of(), until, over);
  }
}
