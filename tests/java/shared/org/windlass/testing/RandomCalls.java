// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import org.windlass.error.WindlassException;

/**
 * Random calls of some of a module's with random arguments, most of them wrong: each ends soon, with
 * a result or a documented exception.
 */
public final class RandomCalls {
  private static final Duration LONGEST_CALL = Duration.ofSeconds(20);

  /** Calls that gave a result, and all that were made; by name, so that all are seen. */
  private final Set<String> answered = new TreeSet<>();

  private final Set<String> tried = new TreeSet<>();
  private final List<Executable> calls;

  public RandomCalls(List<Executable> calls) {
    this.calls = calls;
  }

  /** Else arguments are so wrong that nothing behind the first check is ever reached. */
  public void requireMostAnswered(int made) {
    System.out.printf(
        "%d random calls; %d of %d methods tried, %d answered%n",
        made, tried.size(), calls.size(), answered.size());
    if (tried.size() <= calls.size() * 3 / 4 || answered.size() <= calls.size() / 2) {
      throw new AssertionError("too few of the methods were tried and answered");
    }
  }

  /** Makes a random call. */
  public void next(int number, RandomArguments arguments) {
    Executable call = calls.get(arguments.below(calls.size()));
    boolean isStatic = Modifier.isStatic(call.getModifiers());
    Object on = null;
    if (call instanceof Method && !isStatic) {
      on = arguments.instance(call.getDeclaringClass());
      if (on == null) {
        return;
      }
    }
    Object[] given =
        Arrays.stream(call.getGenericParameterTypes()).map(arguments::of).toArray(Object[]::new);
    String what =
        "call %d: %s on %s with %s".formatted(number, call, on, Arrays.deepToString(given));
    tried.add(call.toString());
    long start = System.nanoTime();
    try {
      Object result =
          call instanceof Constructor<?> constructor
              ? constructor.newInstance(given)
              : ((Method) call).invoke(on, given);
      answered.add(call.toString());
      arguments.keep(result);
    } catch (InvocationTargetException e) {
      requireDocumented(what, call, e.getCause());
    } catch (ReflectiveOperationException | IllegalArgumentException e) {
      throw new AssertionError(what + ": could not be called", e);
    }
    Duration took = Duration.ofNanos(System.nanoTime() - start);
    if (took.compareTo(LONGEST_CALL) > 0) {
      throw new AssertionError(what + ": took " + took);
    }
  }

  private static void requireDocumented(String what, Executable call, Throwable failure) {
    boolean documented =
        failure instanceof WindlassException
            || failure instanceof CancellationException
            || failure instanceof IOException
                && List.of(call.getExceptionTypes()).contains(IOException.class)
            || failure instanceof NullPointerException && names(call, failure.getMessage());
    String said = failure.getMessage();
    if (!documented || said == null && !(failure instanceof CancellationException)) {
      throw new AssertionError(what + ": " + failure, failure);
    }
    if (failure instanceof WindlassException && failure.getClass().getSimpleName().startsWith("Internal")) {
      throw new AssertionError(what + ": " + failure, failure);
    }
  }

  /** Whether a NullPointerException is the documented one, which names the argument. */
  private static boolean names(Executable call, String message) {
    return message != null
        && Arrays.stream(call.getParameters())
            .map(Parameter::getName)
            .anyMatch(name -> message.matches("\\Q" + name + "\\E([\\[ ].*)?"));
  }
}
