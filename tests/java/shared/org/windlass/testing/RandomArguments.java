// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.lang.reflect.Array;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.error.MismatchException;

/** Arguments of any type, wrong ones among them, and the objects that calls have given. */
public final class RandomArguments {
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
  /** Short, since some are deadlines of waits that nothing else ends. */
  private static final Duration[] DURATIONS = {
    Duration.ZERO,
    Duration.ofMillis(-1),
    Duration.ofNanos(1),
    Duration.ofMillis(5),
    Duration.ofMillis(50)
  };
  private static final int KEPT_PER_TYPE = 12;
  private static final Duration LONGEST = Duration.ofSeconds(1);

  private final Random random;
  private final Path folder;
  private final Map<Class<?>, List<Object>> kept = new HashMap<>();
  private final List<LocalGroup> others = new ArrayList<>();

  public RandomArguments(Random random, Path folder) {
    this.random = random;
    this.folder = folder;
  }

  /** A random number from 0 to {@code bound - 1}. */
  int below(int bound) {
    return random.nextInt(bound);
  }

  /**
   * Keeps what a call gave as an argument, or the object, of calls to come; but no communicator of
   * several ranks or with a long deadline, on which a call waits for peers that never come.
   */
  public void keep(Object object) {
    if (object instanceof LocalGroup group) {
      others.add(group);
    } else if (object instanceof CommunicatorOptions options
        && options.deadline().compareTo(LONGEST) > 0) {
      return;
    } else if (object instanceof Optional<?> optional) {
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

  /** Closes the groups that calls have made. */
  public void close() {
    for (LocalGroup group : others) {
      try {
        group.close();
      } catch (MismatchException e) {
        // What random calls left in it.
      }
    }
  }

  /** Something that is kept and is a {@code type}; null if nothing is. */
  public Object instance(Class<?> type) {
    List<Object> all = new ArrayList<>();
    kept.forEach(
        (key, objects) -> {
          if (type.isAssignableFrom(key)) {
            all.addAll(objects);
          }
        });
    return all.isEmpty() ? null : all.get(random.nextInt(all.size()));
  }

  /** Of a type as it is declared: what a list holds is of the list's own type. */
  public Object of(Type declared) {
    if (declared instanceof ParameterizedType generic) {
      return ofGeneric((Class<?>) generic.getRawType(), generic.getActualTypeArguments());
    } else if (declared instanceof WildcardType wildcard) {
      return of(wildcard.getUpperBounds()[0]);
    } else if (declared instanceof Class<?> type) {
      return ofClass(type);
    }
    return ofClass(String.class);
  }

  private Object ofGeneric(Class<?> raw, Type[] of) {
    if (random.nextInt(25) == 0) {
      return null;
    }
    if (raw == Optional.class) {
      return Optional.ofNullable(random.nextBoolean() ? null : of(of[0]));
    } else if (raw.isAssignableFrom(List.class)) {
      List<Object> list = new ArrayList<>();
      for (int i = random.nextInt(4); i > 0; i--) {
        list.add(of(of[0]));
      }
      return list;
    } else if (raw.isAssignableFrom(TreeMap.class) && of[0] instanceof Class<?> key) {
      Map<Object, Object> map = new TreeMap<>();
      for (int i = random.nextInt(3); i > 0; i--) {
        Object at = ofClass(key);
        if (at instanceof Comparable<?>) {
          map.put(at, of(of[1]));
        }
      }
      return map;
    } else if (raw == Set.class) {
      return new HashSet<>(List.of());
    }
    return ofClass(raw);
  }

  private Object ofClass(Class<?> type) {
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
    return ofClass(type);
  }

  private Object ofInterface(Class<?> type) {
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
                default -> answer(method.getReturnType());
              });
    }
    return known == null && type == Object.class ? "object" : known;
  }

  private Object answer(Class<?> type) {
    return type.isPrimitive() && type != void.class ? ofClass(type) : null;
  }
}
