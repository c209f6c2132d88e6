// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import org.bytedeco.javacpp.annotation.NoException;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.Info;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * Configures how JavaCPP maps windlass.h to {@code Native}. The static methods of {@code Native}
 * have the names of the C ABI. They take every pointer as a plain {@code long} address, so a call
 * allocates nothing. Structs have no classes: {@link NativeStruct} gives their offsets to code that
 * fills or reads one. {@link NativeMemory#utf8} makes a {@code const char*}.
 *
 * <p>The code generated for {@code JNI_OnLoad} is not needed, so export.map hides it. It would
 * start a thread and make a folder in the user's home.
 */
@Properties(
    value =
        @Platform(
            value = {"linux-x86_64", "linux-arm64"},
            include = {"windlass/windlass.h", "jni_support.h"},
            define = "MODIFIED_UTF8_STRING",
            library = NativeConfig.JNI_LIBRARY,
            link = NativeConfig.LIBRARY),
    target = "org.windlass.internal",
    global = "org.windlass.internal.Native")
@NoException
public class NativeConfig implements InfoMapper {
  static final String LIBRARY = "windlass";
  static final String JNI_LIBRARY = "jniwindlass";

  @Override
  public void map(InfoMap infoMap) {
    infoMap.put(new Info("jni_support.h").skip());
    infoMap.put(new Info("WL_API").cppTypes().annotations());

    // With valueTypes and without pointerTypes, the parser maps every level of indirection to
    // `long`, and makes no class for the struct itself.
    infoMap.put(new Info(StructNames.ALL).valueTypes("long").cast().skip());

    infoMap.put(new Info("void").valueTypes("void").pointerTypes("long").cast());
    infoMap.put(new Info("uint8_t").valueTypes("byte").pointerTypes("long").cast());
    infoMap.put(new Info("int32_t").valueTypes("int").pointerTypes("long").cast());
    infoMap.put(new Info("uint32_t").valueTypes("int").pointerTypes("long").cast());
    infoMap.put(new Info("int64_t").valueTypes("long").pointerTypes("long").cast());
    infoMap.put(new Info("uint64_t").valueTypes("long").pointerTypes("long").cast());
    infoMap.put(new Info("float").valueTypes("float").pointerTypes("long").cast());
    infoMap.put(new Info("double").valueTypes("double").pointerTypes("double[]"));
    infoMap.put(new Info("char").valueTypes("byte").pointerTypes("byte[]").cast());

    // Names that the library returns are ASCII.
    text(infoMap, "wl_version", "@Cast(\"const char*\") String", "");
    text(infoMap, "wl_target", "@Cast(\"const char*\") String", "");
    text(infoMap, "wl_isa_path", "@Cast(\"const char*\") String", "");
    text(infoMap, "wl_code_name", "@Cast(\"const char*\") String", "int code");
    text(infoMap, "wl_operation_name", "@Cast(\"const char*\") String", "int operation");
    text(infoMap, "wl_call_name", "@Cast(\"const char*\") String", "int operation");
    text(infoMap, "wl_algorithm_name", "@Cast(\"const char*\") String", "int algorithm");

    String ofKernel = "@Cast(\"const wl_kernel_library_t*\") long library, int kernel";
    text(infoMap, "wl_kernel_name", "@Cast(\"const char*\") String", ofKernel);
    text(infoMap, "wl_kernel_signature", "@Cast(\"const char*\") String", ofKernel);

    // The parser maps a `void**` to a class whatever its Info is.
    text(
        infoMap,
        "wl_memory_alloc",
        "int",
        "@Cast(\"uint64_t\") long bytes, @Cast(\"uint64_t\") long alignment,"
            + " @Cast(\"void**\") long memory, @Cast(\"wl_error_t*\") long error");
    text(
        infoMap,
        "wl_memory_pool_alloc",
        "int",
        "@Cast(\"wl_memory_pool_t*\") long pool, @Cast(\"uint64_t\") long bytes,"
            + " @Cast(\"void**\") long memory, @Cast(\"wl_error_t*\") long error");
    text(
        infoMap,
        "wl_ucx_describe",
        "int",
        "@Cast(\"char*\") long text, @Cast(\"uint64_t\") long room,"
            + " @Cast(\"uint64_t*\") long bytes, @Cast(\"wl_error_t*\") long error");
    text(
        infoMap,
        "wl_ucx_find",
        "int",
        "@Cast(\"const char*\") byte @org.jspecify.annotations.Nullable [] path,"
            + " @Cast(\"wl_error_t*\") long error");
    text(
        infoMap,
        "wl_cuda_grids_use",
        "int",
        "@Cast(\"const char*\") byte @org.jspecify.annotations.Nullable [] table,"
            + " @Cast(\"wl_error_t*\") long error");
    text(
        infoMap,
        "wl_file_map",
        "int",
        "@Cast(\"const char*\") byte[] path, @Cast(\"uint64_t\") long bytes,"
            + " @Cast(\"void**\") long address, @Cast(\"wl_error_t*\") long error");
  }

  private static void text(InfoMap infoMap, String name, String result, String parameters) {
    infoMap.put(
        new Info(name)
            .javaText("public static native " + result + " " + name + "(" + parameters + ");"));
  }
}
