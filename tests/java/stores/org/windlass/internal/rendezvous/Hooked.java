// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.function.Consumer;

/** Ways into a store on which tests do something at a call. */
final class Hooked {
  private Hooked() {}

  /** The same, where {@code hook} is told of each call first: {@code get KEY}. */
  static Store before(Store store, Consumer<String> hook) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (arguments != null) {
                hook.accept(method.getName() + " " + arguments[0]);
              }
              try {
                return method.invoke(store, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
