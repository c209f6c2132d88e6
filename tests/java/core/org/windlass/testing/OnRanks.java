// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.ArgumentsProvider;
import org.junit.jupiter.params.provider.ArgumentsSource;
import org.junit.jupiter.params.support.ParameterDeclarations;

/** A test that runs with {@link Ranks} of each launch that takes as many, its one parameter. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ParameterizedTest(name = "{0}")
@ArgumentsSource(OnRanks.Launches.class)
public @interface OnRanks {
  /** How many. */
  int[] value();

  /** The launches of each. */
  final class Launches implements ArgumentsProvider {
    @Override
    public Stream<Arguments> provideArguments(
        ParameterDeclarations parameters, ExtensionContext context) {
      int[] counts = context.getRequiredTestMethod().getAnnotation(OnRanks.class).value();
      return Ranks.each(counts).map(Arguments::of);
    }
  }
}
