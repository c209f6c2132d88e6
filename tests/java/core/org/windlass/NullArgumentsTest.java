// SPDX-License-Identifier: Apache-2.0
package org.windlass;

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
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Null for one argument at a time of every public call: a NullPointerException that names it, and
 * the same for a null among what an argument holds.
 */
class NullArgumentsTest {
  /** Documented to take null. */
  private static final Set<String> MAY_BE_NULL =
      Set.of("Tensor.of(owner)", "Communicator.abort(reason)");

  @TempDir static Path folder;
  private static Samples samples;

  @BeforeAll
  static void open() {
    samples = new Samples(folder);
  }

  @AfterAll
  static void close() {
    samples.close();
  }

  private static boolean mayBeNull(PublicApi.Argument argument) {
    boolean ofException =
        Throwable.class.isAssignableFrom(argument.call().getDeclaringClass())
            && Set.of("message", "cause").contains(argument.name());
    return ofException || MAY_BE_NULL.contains(argument.text());
  }

  static Stream<PublicApi.Argument> arguments() {
    return PublicApi.arguments().stream()
        .filter(argument -> !argument.parameter().getType().isPrimitive() && !mayBeNull(argument));
  }

  static Stream<PublicApi.Argument> holders() {
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
  void everyCallIsMet() {
    List<String> calls =
        PublicApi.arguments().stream().map(PublicApi.Argument::text).distinct().toList();
    assertThat(calls).containsAll(MAY_BE_NULL).contains("Region.Box(start)", "Placement.partial(op)");
    assertThat(arguments()).hasSizeGreaterThan(200);
    assertThat(holders()).hasSizeGreaterThan(20);
  }

  @Test
  void parametersHaveTheirNames() {
    assertThat(
            PublicApi.arguments().stream()
                .map(PublicApi.Argument::parameter)
                .filter(parameter -> !parameter.isNamePresent())
                .map(Parameter::toString)
                .collect(Collectors.toList()))
        .isEmpty();
  }
}
