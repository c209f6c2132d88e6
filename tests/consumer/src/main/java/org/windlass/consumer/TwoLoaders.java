// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs {@link Exchange} in two class loaders at once, each with every jar of its own. */
public final class TwoLoaders {
  private TwoLoaders() {}

  public static void main(String[] arguments) throws Exception {
    List<URL> jars = new ArrayList<>();
    for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
      jars.add(new File(jar).toURI().toURL());
    }
    ExecutorService threads = Executors.newFixedThreadPool(2);
    List<Future<Class<?>>> runs = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      Callable<Class<?>> run = () -> exchangeIn(jars.toArray(new URL[0]));
      runs.add(threads.submit(run));
    }
    if (runs.get(0).get() == runs.get(1).get()) {
      throw new AssertionError("both ran in one class loader");
    }
    threads.shutdown();
    System.out.println("both exchanged");
  }

  private static Class<?> exchangeIn(URL[] jars) throws Exception {
    // Stays open: what the program loads natively lives as long as its loader.
    URLClassLoader loader = new URLClassLoader(jars, ClassLoader.getPlatformClassLoader());
    Class<?> program = loader.loadClass("org.windlass.consumer.Exchange");
    for (int i = 0; i < 20; i++) {
      program.getMethod("main", String[].class).invoke(null, (Object) new String[0]);
    }
    return program;
  }
}
