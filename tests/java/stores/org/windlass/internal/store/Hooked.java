// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.function.Consumer;

/** Ways into a store on which tests do something at a call. */
public final class Hooked {
  private Hooked() {}

  /** The same, where {@code hook} is told of each call first: {@code get KEY}. */
  public static Store before(Store store, Consumer<String> hook) {
    return of(store, hook, call -> {});
  }

  /** The same, where {@code hook} is told of each call once it is done. */
  public static Store after(Store store, Consumer<String> hook) {
    return of(store, call -> {}, hook);
  }

  private static Store of(Store store, Consumer<String> before, Consumer<String> after) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              String call = method.getName() + " " + (arguments == null ? "" : arguments[0]);
              before.accept(call);
              try {
                Object result = method.invoke(store, arguments);
                after.accept(call);
                return result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
