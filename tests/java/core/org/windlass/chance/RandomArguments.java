// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.lang.reflect.Array;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;

/** Arguments of any type, wrong ones among them, and the objects that calls have given. */
final class RandomArguments {
  private static final int[] INTS = {
    -1, 0, 1, 2, 3, 7, 16, 63, 64, 4096, Integer.MAX_VALUE, Integer.MIN_VALUE
  };
  private static final long[] LONGS = {
    -1, 0, 1, 2, 3, 4, 5, 17, 64, 1 << 20, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE
  };
  private static final double[] DOUBLES = {
    0, -0.0, 1, -1.5, 1e300, Double.NaN, Double.POSITIVE_INFINITY, Double.MIN_VALUE
  };
  private static final String[] STRINGS = {
    "", "a", "w", "S0", "S1*64", "2x4:S0,R", "1:R", "4@[0-1,6,4]:P", "2x2@8:SS0/2,S0", "f32", "BF16",
    "push", "direct", "../escape", "/", "a/b", "\ud800", "\0", "\u00e9\u4e2d", "99999999999999999999",
    "rank-00000.safetensors", "layout.json", "x".repeat(300)
  };
  private static final Duration[] DURATIONS = {
    Duration.ZERO,
    Duration.ofMillis(-1),
    Duration.ofNanos(1),
    Duration.ofMillis(5),
    Duration.ofMillis(50),
    Duration.ofSeconds(Long.MAX_VALUE)
  };
  private static final int KEPT_PER_TYPE = 12;

  private final Random random;
  private final Path folder;
  private final Map<Class<?>, List<Object>> kept = new HashMap<>();

  RandomArguments(Random random, Path folder) {
    this.random = random;
    this.folder = folder;
  }

  /** Keeps what a call gave as an argument, or the object, of calls to come. */
  void keep(Object object) {
    if (object instanceof Optional<?> optional) {
      optional.ifPresent(this::keep);
    } else if (object instanceof Collection<?> all) {
      all.stream().limit(4).forEach(this::keep);
    } else if (object != null && object.getClass().getName().startsWith("org.windlass")) {
      List<Object> same = kept.computeIfAbsent(object.getClass(), type -> new ArrayList<>());
      if (same.size() < KEPT_PER_TYPE) {
        same.add(object);
      } else {
        same.set(random.nextInt(KEPT_PER_TYPE), object);
      }
    }
  }

  /** Something that is kept and is a {@code type}; null if nothing is. */
  Object instance(Class<?> type) {
    List<Object> all = new ArrayList<>();
    kept.forEach(
        (key, objects) -> {
          if (type.isAssignableFrom(key)) {
            all.addAll(objects);
          }
        });
    return all.isEmpty() ? null : all.get(random.nextInt(all.size()));
  }

  Object of(Class<?> type) {
    if (!type.isPrimitive() && random.nextInt(25) == 0) {
      return null;
    }
    if (type == int.class || type == Integer.class) {
      return random.nextInt(4) == 0 ? INTS[random.nextInt(INTS.length)] : random.nextInt(4);
    } else if (type == long.class || type == Long.class) {
      return random.nextInt(3) == 0 ? LONGS[random.nextInt(LONGS.length)] : random.nextInt(6);
    } else if (type == double.class) {
      return DOUBLES[random.nextInt(DOUBLES.length)];
    } else if (type == boolean.class) {
      return random.nextBoolean();
    } else if (type == String.class) {
      return STRINGS[random.nextInt(STRINGS.length)];
    } else if (type == Duration.class) {
      return DURATIONS[random.nextInt(DURATIONS.length)];
    } else if (type == Path.class) {
      return folder.resolve(random.nextBoolean() ? "there" : "not-there-" + random.nextInt(5));
    } else if (type == ByteBuffer.class) {
      int bytes = random.nextInt(200);
      return random.nextBoolean() ? ByteBuffer.allocateDirect(bytes) : ByteBuffer.allocate(bytes);
    } else if (type.isEnum()) {
      Object[] constants = type.getEnumConstants();
      return constants[random.nextInt(constants.length)];
    } else if (type.isArray()) {
      Object array = Array.newInstance(type.getComponentType(), random.nextInt(5));
      for (int i = 0; i < Array.getLength(array); i++) {
        Array.set(array, i, element(type.getComponentType()));
      }
      return array;
    }
    return ofInterface(type);
  }

  private Object element(Class<?> type) {
    if (type == byte.class) {
      return (byte) random.nextInt();
    } else if (type == short.class) {
      return (short) random.nextInt();
    } else if (type == float.class) {
      return random.nextFloat();
    }
    return of(type);
  }

  private Object ofInterface(Class<?> type) {
    if (type == List.class || type == Collection.class || type == Iterable.class) {
      List<Object> list = new ArrayList<>();
      for (int i = random.nextInt(4); i > 0; i--) {
        list.add(anything());
      }
      return list;
    } else if (type.isAssignableFrom(TreeMap.class) && type != Object.class) {
      return new TreeMap<>(Map.of("a", "b"));
    } else if (type.isAssignableFrom(TreeSet.class) && type != Object.class) {
      return new TreeSet<>(List.of("a"));
    } else if (type == Optional.class) {
      return Optional.ofNullable(random.nextBoolean() ? null : anything());
    }
    Object known = instance(type);
    if (known == null && type.isInterface() && !type.isSealed()) {
      return Proxy.newProxyInstance(
          type.getClassLoader(),
          new Class<?>[] {type},
          (proxy, method, args) ->
              switch (method.getName()) {
                case "equals" -> proxy == args[0];
                case "hashCode" -> 0;
                case "toString" -> "proxy";
                default -> null;
              });
    }
    return known == null && type == Object.class ? "object" : known;
  }

  private Object anything() {
    return switch (random.nextInt(4)) {
      case 0 -> of(Long.class);
      case 1 -> of(Integer.class);
      case 2 -> of(String.class);
      default -> instance(Object.class);
    };
  }
}
