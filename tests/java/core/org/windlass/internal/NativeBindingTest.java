// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The generated binding against the header it was generated from. */
class NativeBindingTest {
  private static final String HEADER = header();

  @Test
  void everyFunctionOfTheHeaderHasOneNativeMethod() {
    List<String> declared = find("WL_API[^;(]*?\\b(wl_\\w+)\\(");
    assertThat(declared).hasSizeGreaterThan(30);
    assertThat(nativeMethods().stream().map(Method::getName)).containsExactlyInAnyOrderElementsOf(declared);
  }

  @Test
  void aCallAllocatesNothing() {
    for (Method method : nativeMethods()) {
      assertThat(method.getParameterTypes())
          .as(method.toString())
          .allMatch(type -> type.isPrimitive() || type == byte[].class || type == double[].class);
    }
    for (String hot : List.of("wl_submit", "wl_put", "wl_transfer_run")) {
      assertThat(nativeMethods().stream().filter(m -> m.getName().equals(hot)).toList())
          .singleElement()
          .satisfies(m -> assertThat(m.getParameterTypes()).allMatch(Class::isPrimitive));
    }
  }

  @Test
  void everyFieldOfEveryStructHasAnOffset() throws ReflectiveOperationException {
    Pattern struct = Pattern.compile("(?s)typedef struct \\w+ \\{(.*?)\\} (wl_(\\w+)_t);");
    Pattern declaration = Pattern.compile("(\\w+)(\\[\\w+\\])?\\s*;");
    List<MatchResult> structs = struct.matcher(HEADER).results().toList();
    assertThat(structs).hasSizeGreaterThanOrEqualTo(14);
    for (MatchResult found : structs) {
      String name = found.group(2);
      Class<?> constants = constants(found.group(3));
      int end = 0;
      int fields = 0;
      for (MatchResult line : declaration.matcher(found.group(1)).results().toList()) {
        String field = line.group(1);
        int offset = NativeStruct.offset(name, field);
        assertThat(offset).as(name + "." + field).isGreaterThanOrEqualTo(end);
        assertThat(constants.getField(field.toUpperCase(Locale.ROOT)).getInt(null))
            .as(name + "." + field)
            .isEqualTo(offset);
        end = offset + 1;
        fields++;
      }
      assertThat(NativeStruct.offset(name, "struct_size")).isZero();
      assertThat(NativeStruct.bytes(name)).isGreaterThanOrEqualTo(end);
      assertThat(constants.getField("SIZE").getInt(null)).isEqualTo(NativeStruct.bytes(name));
      assertThat(constants.getFields()).as(name).hasSize(fields + 1);
    }
    assertThat(Structs.class.getClasses()).hasSameSizeAs(structs);
    assertThatThrownBy(() -> NativeStruct.offset("wl_error_t", "no_such_field"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("wl_error_t.no_such_field");
  }

  @Test
  void theBindingKnowsEveryStructAndHandle() {
    List<String> declared = find("(?s)typedef struct \\w+ (?:\\{.*?\\} )?(\\w+);");
    assertThat(declared).hasSizeGreaterThanOrEqualTo(20);
    assertThat(StructNames.ALL).containsExactlyInAnyOrderElementsOf(declared);
  }

  @Test
  void theLibraryHasTheVersionThatTheBindingWasMadeFrom() {
    assertThat(Native.wl_abi_version()).isEqualTo(Native.WL_ABI_VERSION);
    assertThat(NativeLoader.loadedFrom()).isEqualTo(System.getProperty(NativeLoader.PATH_PROPERTY));
  }

  @Test
  void buffersAndAddressesAreEachOthersView() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
    ByteBuffer view = NativeMemory.buffer(NativeMemory.address(buffer) + 8, 8);
    view.putLong(0, 0x0102030405060708L);
    assertThat(buffer.getLong(8)).isEqualTo(0x0102030405060708L);
    assertThat(NativeMemory.address(buffer.position(16))).isEqualTo(NativeMemory.address(view) - 8);
    assertThatThrownBy(() -> NativeMemory.address(ByteBuffer.allocate(8)))
        .hasMessageContaining("not a direct buffer");
    assertThatThrownBy(() -> NativeMemory.buffer(0, 8)).hasMessageContaining("address 0");
    assertThatThrownBy(() -> NativeMemory.buffer(8, 1L << 31)).hasMessageContaining("2147483648");
  }

  @Test
  void textReachesCAsUtf8() {
    assertThat(NativeMemory.utf8("a\u00e9\ud83d\ude00"))
        .containsExactly('a', 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80, 0);
    assertThatThrownBy(() -> NativeMemory.utf8("a\0b")).isInstanceOf(IllegalArgumentException.class);
  }

  /** The constants of a struct, such as {@code group_config}. */
  private static Class<?> constants(String words) {
    String name =
        Pattern.compile("(?:^|_)(.)")
            .matcher(words)
            .replaceAll(first -> first.group(1).toUpperCase(Locale.ROOT));
    return Arrays.stream(Structs.class.getClasses())
        .filter(type -> type.getSimpleName().equals(name))
        .findFirst()
        .orElseThrow(() -> new AssertionError("Structs has no " + name));
  }

  private static List<Method> nativeMethods() {
    return Arrays.stream(Native.class.getDeclaredMethods())
        .filter(method -> Modifier.isNative(method.getModifiers()))
        .toList();
  }

  private static List<String> find(String pattern) {
    return Pattern.compile(pattern).matcher(HEADER).results().map(found -> found.group(1)).toList();
  }

  private static String header() {
    try {
      Path root = Path.of(System.getProperty("windlass.root"));
      String text = Files.readString(root.resolve("native/include/windlass/windlass.h"));
      return text.replaceAll("(?s)/\\*.*?\\*/", "").replaceAll("#define.*", "");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
