// SPDX-License-Identifier: Apache-2.0
package org.windlass.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/**
 * Tensors over memory segments. By reflection, since these tests are compiled for Java 17; and only
 * where the multi-release part is in effect, which takes the jar and Java 22.
 */
class SegmentTest {
  /** Has Segments from the folder of the classes for Java 17, and all else from the tests. */
  private static final class BaseClasses extends URLClassLoader {
    BaseClasses(URL root) {
      super(new URL[] {root}, SegmentTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      return name.equals("org.windlass.Segments")
          ? findClass(name)
          : super.loadClass(name, resolve);
    }
  }

  private static Object arena(String kind) throws ReflectiveOperationException {
    return Class.forName("java.lang.foreign.Arena").getMethod(kind).invoke(null);
  }

  private static Object allocate(Object arena, long bytes) throws ReflectiveOperationException {
    Method allocate =
        Class.forName("java.lang.foreign.SegmentAllocator")
            .getMethod("allocate", long.class, long.class);
    return allocate.invoke(arena, bytes, 64L);
  }

  private static void assumeSegments() {
    try {
      Tensor.ofSegment("text", DType.U8, 1);
    } catch (UnsupportedException e) {
      Assumptions.abort(e.getMessage());
    } catch (InvalidArgumentException e) {
      assertThat(e).hasMessageContaining("segment is a java.lang.String");
    }
  }

  /** Without the multi-release part, whatever the Java. */
  @Test
  void aJarWithoutTheClassesSaysWhatIsMissing() throws Exception {
    URL root = Communicator.class.getProtectionDomain().getCodeSource().getLocation();
    try (URLClassLoader loader = new BaseClasses(root)) {
      Method memory =
          loader.loadClass("org.windlass.Segments").getDeclaredMethod("memory", Object.class);
      memory.setAccessible(true);
      boolean old = Runtime.version().feature() < 22;
      assertThatThrownBy(() -> memory.invoke(null, "text"))
          .cause()
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining(old ? "needs Java 22 or later" : "META-INF/versions/22")
          .hasMessageContaining(old ? "Tensor.of takes" : root.toString());
    }
  }

  @Test
  void aSegmentIsSharedUntilItsArenaCloses() throws Exception {
    assumeSegments();
    Object arena = arena("ofShared");
    Object segment = allocate(arena, 64);
    Tensor tensor = Tensor.ofSegment(segment, DType.F32, 16).fill(2);
    assertThat(tensor.getDouble(15)).isEqualTo(2);
    assertThatThrownBy(() -> Tensor.ofSegment(segment, DType.F32, 17))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("holds 64");
    ((AutoCloseable) arena).close();
    assertThatThrownBy(() -> tensor.getDouble(0)).isInstanceOf(ClosedException.class);
    try (LocalGroup group = LocalGroup.of(1)) {
      assertThatThrownBy(() -> group.communicator(0).broadcast(tensor, 0))
          .isInstanceOf(ClosedException.class);
      assertThat(group.communicator(0).failure()).isEmpty();
    }
  }

  @Test
  void heapSegmentsAreRefused() throws Exception {
    assumeSegments();
    Object heap =
        Class.forName("java.lang.foreign.MemorySegment")
            .getMethod("ofArray", byte[].class)
            .invoke(null, (Object) new byte[8]);
    assertThatThrownBy(() -> Tensor.ofSegment(heap, DType.U8, 8))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("Java heap");
  }
}
