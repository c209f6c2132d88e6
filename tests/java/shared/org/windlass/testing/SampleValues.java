// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A value of each type that a public call of a module takes or is made on, such that calls with them
 * can be carried out: one rank, two dimensions, two elements along each.
 */
public abstract class SampleValues implements AutoCloseable {
  private final Path folder;
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final Map<String, Supplier<?>> values = new HashMap<>();
  private int paths;

  protected SampleValues(Path folder) {
    this.folder = folder;
    plain();
  }

  /** A value for a parameter: its type's, unless its name asks for another. */
  public Object of(Parameter parameter) {
    String name = parameter.getName();
    Object value = of(parameter.getParameterizedType());
    if (value instanceof Integer && name.matches("ranks|size|split|ranksPerHost")) {
      return 1;
    }
    if (value instanceof Long && name.matches("unit|bucketBytes")) {
      return 1L;
    }
    if (value instanceof long[] && name.matches("counts|.*Counts|.*Offsets")) {
      return new long[1];
    }
    return value;
  }

  public Object of(Type type) {
    Supplier<?> value = values.get(type.getTypeName());
    if (value == null) {
      throw new AssertionError("no sample of " + type.getTypeName() + ": add one here");
    }
    return value.get();
  }

  protected final <T> void put(Class<T> type, Supplier<? extends T> value) {
    values.put(type.getTypeName(), value);
  }

  protected final void generic(String type, Supplier<?> value) {
    values.put(type.replaceAll("\\b(List|Map|Optional)<", "java.util.$1<"), value);
  }

  protected final <T extends AutoCloseable> Supplier<T> once(Supplier<T> make) {
    return new Supplier<>() {
      private T made;

      @Override
      public T get() {
        if (made == null) {
          made = make.get();
          opened.add(made);
        }
        return made;
      }
    };
  }

  protected final <T extends AutoCloseable> Supplier<T> each(Supplier<T> make) {
    return () -> {
      T made = make.get();
      opened.add(made);
      return made;
    };
  }

  /** A path at which nothing is. */
  protected final Path newPath() {
    return folder.resolve("path-" + paths++);
  }

  private void plain() {
    put(boolean.class, () -> false);
    put(int.class, () -> 0);
    put(long.class, () -> 0L);
    put(double.class, () -> 0.0);
    put(String.class, () -> "w");
    put(Object.class, () -> "w");
    put(Object[].class, () -> new Object[] {"b", 1});
    put(int[].class, () -> new int[] {0, 0});
    put(long[].class, () -> new long[] {2, 2});
    put(long[][].class, () -> new long[][] {{0, 2}, {0, 2}});
    put(byte[].class, () -> new byte[4]);
    put(short[].class, () -> new short[4]);
    put(float[].class, () -> new float[4]);
    put(double[].class, () -> new double[4]);
    put(Throwable.class, () -> new IllegalStateException("sample"));
    put(Duration.class, () -> Duration.ofSeconds(1));
    put(ByteBuffer.class, () -> ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder()));
    put(Path.class, this::newPath);
    generic("List<java.lang.Integer>", () -> List.of(0));
    generic("List<java.lang.Long>", () -> List.of(2L, 2L));
    generic("List<java.lang.String>", () -> List.of("a", "b"));
    generic("Map<java.lang.String, java.lang.String>", () -> Map.of("w", "w.safetensors"));
  }

  @Override
  public void close() {
    for (int i = opened.size() - 1; i >= 0; i--) {
      try {
        opened.get(i).close();
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    }
  }
}
