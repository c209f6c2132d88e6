// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.windlass.testing.PublicApi;

/** What the public packages of this module may show. */
class LayerRulesTest {
  @Test
  void publicSignaturesShowTheJdkAndPublicPackagesAlone() {
    List<String> shown = new ArrayList<>();
    for (Executable call : PublicApi.calls(Checkpoint.class)) {
      Stream<Class<?>> types = Arrays.stream(call.getParameterTypes());
      if (call instanceof Method method) {
        types = Stream.concat(types, Stream.of(method.getReturnType()));
      }
      types
          .map(type -> type.isArray() ? type.getComponentType() : type)
          .filter(type -> !type.isPrimitive())
          .map(Class::getName)
          .filter(
              name ->
                  !name.matches("java\\..*")
                      && (!name.startsWith("org.windlass.")
                          || name.matches("org\\.windlass\\.(internal|verify)\\..*")))
          .forEach(name -> shown.add(call + " shows " + name));
    }
    assertThat(shown).isEmpty();
  }
}
