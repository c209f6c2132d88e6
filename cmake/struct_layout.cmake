# SPDX-License-Identifier: Apache-2.0
# Reads the structs of the C header HEADER and writes what Java needs to fill and read them:
#   LAYOUT                   entries of the JNI library's table: sizes of structs, offsets of fields
#   JAVA/StructLayouts.java  a constant for each entry
#   JAVA/StructNames.java    the names of all structs, and of the types behind handles
# A file whose content would stay the same isn't written.
#
# Each of these takes one line; anything else about structs is an error:
#   typedef struct wl_x {           opens a struct
#   type name;   type name[COUNT];  declares a field
#   } wl_x_t;                       closes the struct
#   typedef struct wl_x wl_x_t;     declares the type behind a handle
#
# usage: cmake -DHEADER=FILE -DLAYOUT=FILE -DJAVA=FOLDER -P struct_layout.cmake
cmake_minimum_required(VERSION 3.25)

function(refuse number line expected)
  message(FATAL_ERROR "${HEADER}:${number}: cannot read '${line}'. "
    "Expected ${expected}, on one line.")
endfunction()

# wl_group_config_t: GroupConfig.
function(class_name struct result)
  string(REGEX REPLACE "^wl_(.*)_t$" "\\1" words "${struct}")
  string(REPLACE "_" ";" words "${words}")
  set(name "")
  foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 first)
    string(SUBSTRING "${word}" 1 -1 others)
    string(TOUPPER "${first}" first)
    string(APPEND name "${first}${others}")
  endforeach()
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

set(origin "// Generated from windlass.h by cmake/struct_layout.cmake.")
set(layout "${origin}\n")
set(names "")
set(classes "")
set(isInComment FALSE)
set(isInStruct FALSE)
set(number 0)
file(READ "${HEADER}" rest)
string(APPEND rest "\n")
while(NOT rest STREQUAL "")
  math(EXPR number "${number} + 1")
  string(FIND "${rest}" "\n" end)
  string(SUBSTRING "${rest}" 0 ${end} line)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)

  if(isInComment)
    string(FIND "${line}" "*/" end)
    if(end EQUAL -1)
      continue()
    endif()
    set(isInComment FALSE)
    math(EXPR end "${end} + 2")
    string(SUBSTRING "${line}" ${end} -1 line)
  endif()
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" line "${line}")
  string(FIND "${line}" "/*" end)
  if(NOT end EQUAL -1)
    set(isInComment TRUE)
    string(SUBSTRING "${line}" 0 ${end} line)
  endif()
  string(STRIP "${line}" line)

  if(line STREQUAL "" OR line MATCHES "^#")
    # Nothing about structs.
  elseif(isInStruct)
    if(line MATCHES "^} (wl_[a-z0-9_]+_t);$")
      set(struct "${CMAKE_MATCH_1}")
      set(isInStruct FALSE)
      list(APPEND names "${struct}")
      string(APPEND layout "{\"${struct}\", sizeof(${struct})},\n")
      class_name("${struct}" class)
      string(APPEND classes "
  /** {@code ${struct}}. */
  public static final class ${class} {
    public static final int SIZE = NativeStruct.bytes(\"${struct}\");
")
      foreach(field IN LISTS fields)
        string(APPEND layout "{\"${struct}.${field}\", offsetof(${struct}, ${field})},\n")
        string(TOUPPER "${field}" constant)
        string(APPEND classes
          "    public static final int ${constant} =\n"
          "        NativeStruct.offset(\"${struct}\", \"${field}\");\n")
      endforeach()
      string(APPEND classes "\n    private ${class}() {}\n  }\n")
    elseif(line MATCHES "^(const )?[a-z0-9_]+\\** ([a-z][a-z0-9_]*)(\\[[A-Za-z0-9_]+\\])?;$")
      list(APPEND fields "${CMAKE_MATCH_2}")
    else()
      refuse(${number} "${line}" "`type name;`, `type name[COUNT];` or `} wl_x_t;`")
    endif()
  elseif(line MATCHES "^typedef struct [a-z0-9_]+ {$")
    set(isInStruct TRUE)
    set(fields "")
  elseif(line MATCHES "^typedef struct [a-z0-9_]+ (wl_[a-z0-9_]+_t);$")
    list(APPEND names "${CMAKE_MATCH_1}")
  elseif(line MATCHES "(^|[^A-Za-z0-9_])(struct|union)([^A-Za-z0-9_]|$)")
    refuse(${number} "${line}" "`typedef struct wl_x {` or `typedef struct wl_x wl_x_t;`")
  endif()
endwhile()
if(isInStruct)
  refuse(${number} "the end of the file" "`} wl_x_t;`")
elseif(classes STREQUAL "")
  message(FATAL_ERROR "${HEADER}: there is no struct. Name the header of the C ABI.")
endif()

list(JOIN names "\",\n    \"" names)
file(CONFIGURE OUTPUT "${LAYOUT}" CONTENT "${layout}" @ONLY)
file(CONFIGURE OUTPUT "${JAVA}/StructNames.java" @ONLY CONTENT "${origin}
package org.windlass.internal;

/** Names of the C ABI's structs, and of the types behind its handles. */
final class StructNames {
  static final String[] ALL = {
    \"${names}\"
  };

  private StructNames() {}
}
")
file(CONFIGURE OUTPUT "${JAVA}/StructLayouts.java" @ONLY CONTENT "${origin}
package org.windlass.internal;

/** Sizes of the C ABI's structs and offsets of their fields, in bytes, from the JNI library. */
abstract class StructLayouts {
  StructLayouts() {}
${classes}}
")
