// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.opentest4j.TestAbortedException;

/** Runs a {@link RandomSeeds} test over its seeds. */
final class SeedRunner implements ParameterResolver, InvocationInterceptor {
  static final String PROPERTY = "windlass.seed";
  static final String SECONDS = "windlass.chance.seconds";
  static final String LONG = "windlass.long";
  static final String VOLUME = "windlass.volume";
  static final String TENTH = "tenth";

  private static final long[] FIXED = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE};

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == long.class;
  }

  /** The first seed. */
  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return Long.getLong(PROPERTY, FIXED[0]);
  }

  @Override
  public void interceptTestMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context)
      throws Throwable {
    Method method = call.getExecutable();
    run(method, (long) call.getArguments().get(0), seed -> invocation.proceed());
    if (Long.getLong(PROPERTY) != null) {
      return;
    }
    Object target = call.getTarget().orElseThrow();
    method.setAccessible(true);
    RandomSeeds asked = method.getAnnotation(RandomSeeds.class);
    int most = Math.max(asked.value(), asked.inLong());
    int least =
        Boolean.getBoolean(LONG)
            ? most
            : TENTH.equals(System.getProperty(VOLUME))
                ? Math.max(asked.value(), most / 10)
                : asked.value();
    long seconds = asked.seconds() == 0 ? 0 : Long.getLong(SECONDS, asked.seconds());
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    Random random = new Random();
    for (int i = 1; i < least || seconds > 0 && System.nanoTime() < end; i++) {
      run(method, i < FIXED.length ? FIXED[i] : random.nextLong(), s -> method.invoke(target, s));
    }
  }

  private interface Body {
    void run(long seed) throws Throwable;
  }

  private static void run(Method method, long seed, Body body) throws Throwable {
    Throwable failure;
    try {
      body.run(seed);
      return;
    } catch (InvocationTargetException thrown) {
      failure = thrown.getCause();
    } catch (Throwable thrown) {
      failure = thrown;
    }
    if (failure instanceof TestAbortedException) {
      throw failure;
    }
    String name = method.getDeclaringClass().getSimpleName() + "#" + method.getName();
    String message =
        "seed %d (-Dtest=%s -D%s=%d runs it again): %s"
            .formatted(seed, name, PROPERTY, seed, failure);
    AssertionError named = new AssertionError(message, failure);
    named.setStackTrace(failure.getStackTrace());
    throw named;
  }
}
