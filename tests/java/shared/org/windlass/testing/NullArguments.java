// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Array;
import java.lang.reflect.Parameter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Null for one argument at a time of every public call: a NullPointerException that names it, and
 * the same for a null among what an argument holds.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
public abstract class NullArguments {
  private final Class<?> module;
  private final Set<String> mayBeNull;
  private SampleValues samples;

  /**
   * Of the calls of a module.
   *
   * @param module a class of it
   * @param mayBeNull the arguments that are documented to take null
   */
  protected NullArguments(Class<?> module, Set<String> mayBeNull) {
    this.module = module;
    this.mayBeNull = mayBeNull;
  }

  /** The values of the module's types. */
  protected abstract SampleValues samples(Path folder);

  @BeforeAll
  void open(@TempDir Path folder) {
    samples = samples(folder);
  }

  @AfterAll
  void close() {
    samples.close();
  }

  private boolean mayBeNull(PublicApi.Argument argument) {
    boolean ofException =
        Throwable.class.isAssignableFrom(argument.call().getDeclaringClass())
            && Set.of("message", "cause").contains(argument.name());
    return ofException || mayBeNull.contains(argument.text());
  }

  protected final Stream<PublicApi.Argument> arguments() {
    return PublicApi.arguments(module).stream()
        .filter(argument -> !argument.parameter().getType().isPrimitive() && !mayBeNull(argument));
  }

  protected final Stream<PublicApi.Argument> holders() {
    return arguments().filter(argument -> holdsReferences(argument.parameter().getType()));
  }

  private static boolean holdsReferences(Class<?> type) {
    return Iterable.class.isAssignableFrom(type) && !Path.class.isAssignableFrom(type)
        || Map.class.isAssignableFrom(type)
        || (type.isArray() && !type.getComponentType().isPrimitive());
  }

  @ParameterizedTest
  @MethodSource("arguments")
  void nullIsNamed(PublicApi.Argument argument) throws ReflectiveOperationException {
    Throwable failure = argument.failure(samples, null).orElse(null);
    assertThat(failure).as("%s", argument).isInstanceOf(NullPointerException.class);
    // A view says as well which tensor's it is, and what the rank holds of that.
    assertThat(failure.getMessage()).as("%s", argument).matches(argument.name() + "( of tensor '.*)?");
  }

  @ParameterizedTest
  @MethodSource("holders")
  void nullInsideIsNamed(PublicApi.Argument argument) throws ReflectiveOperationException {
    List<Object> withNulls = withNulls(samples.of(argument.parameter()));
    assertThat(withNulls).as("%s", argument).isNotEmpty();
    for (Object value : withNulls) {
      Throwable failure = argument.failure(samples, value).orElse(null);
      assertThat(failure).as("%s", argument).isInstanceOf(NullPointerException.class);
      assertThat(failure.getMessage()).as("%s", argument).matches(argument.name() + "(\\[.*\\]| has the key null)");
    }
  }

  private static List<Object> withNulls(Object sample) {
    if (sample instanceof Map<?, ?> map) {
      Map<Object, Object> value = new LinkedHashMap<>(map);
      value.put("other", null);
      Map<Object, Object> key = new LinkedHashMap<>(map);
      key.put(null, map.values().iterator().next());
      return List.of(value, key);
    }
    if (sample instanceof Iterable<?> iterable) {
      List<Object> list = new ArrayList<>();
      iterable.forEach(list::add);
      list.add(null);
      return List.of(list);
    }
    int length = Array.getLength(sample);
    Object array = Array.newInstance(sample.getClass().getComponentType(), length);
    System.arraycopy(sample, 0, array, 0, length - 1);
    return List.of(array);
  }

  @Test
  void exceptionsToTheRuleAreCallsThatSaySo() {
    assertThat(PublicApi.arguments(module))
        .filteredOn(
            argument ->
                argument.parameter().getAnnotatedType().isAnnotationPresent(Nullable.class))
        .extracting(PublicApi.Argument::text)
        .containsAll(mayBeNull);
  }

  @Test
  void parametersHaveTheirNames() {
    assertThat(
            PublicApi.arguments(module).stream()
                .map(PublicApi.Argument::parameter)
                .filter(parameter -> !parameter.isNamePresent())
                .map(Parameter::toString)
                .collect(Collectors.toList()))
        .isEmpty();
  }
}
