// SPDX-License-Identifier: Apache-2.0
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleFinder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import javassist.bytecode.AccessFlag;
import javassist.bytecode.AttributeInfo;
import javassist.bytecode.ClassFile;
import javassist.bytecode.FieldInfo;
import javassist.bytecode.MethodInfo;

/**
 * Writes the classes of exported packages without code and private members: what callers compile
 * against. The same classes give the same bytes.
 *
 * <p>usage: java -cp JAPICMP tests/compatibility/Signatures.java JAR FOLDER...
 *
 * <p>Each FOLDER has the classes of a module.
 */
public final class Signatures {
  private static final List<String> KEPT =
      List.of(
          "Signature", "Exceptions", "ConstantValue", "InnerClasses", "RuntimeVisibleAnnotations",
          "AnnotationDefault", "Record", "PermittedSubclasses");

  private Signatures() {}

  public static void main(String[] arguments) throws IOException {
    try (ZipOutputStream jar = new ZipOutputStream(Files.newOutputStream(Path.of(arguments[0])))) {
      jar.setLevel(Deflater.BEST_COMPRESSION);
      for (String argument : List.of(arguments).subList(1, arguments.length)) {
        Path folder = Path.of(argument);
        Predicate<Path> isPublic = exported(folder);
        try (Stream<Path> files = Files.walk(folder)) {
          for (Path file : files.map(folder::relativize).filter(isPublic).sorted().toList()) {
            ZipEntry entry = new ZipEntry(file.toString());
            entry.setTime(0);
            jar.putNextEntry(entry);
            write(folder.resolve(file), jar);
            jar.closeEntry();
          }
        }
      }
    }
  }

  /**
   * Returns true for classes of packages that the module exports to all. Without a module-info, it
   * exports all of its packages. Classes without a name don't count.
   */
  private static Predicate<Path> exported(Path folder) {
    Set<String> packages =
        ModuleFinder.of(folder).findAll().stream()
            .flatMap(module -> module.descriptor().exports().stream())
            .filter(export -> !export.isQualified())
            .map(export -> export.source().replace('.', '/'))
            .collect(Collectors.toSet());
    return file ->
        file.toString().matches("org/.*[A-Za-z]\\.class")
            && !file.endsWith("package-info.class")
            && (packages.isEmpty() || packages.contains(file.getParent().toString()));
  }

  private static void write(Path file, ZipOutputStream jar) throws IOException {
    ClassFile type;
    try (InputStream in = Files.newInputStream(file)) {
      type = new ClassFile(new DataInputStream(in));
    }
    type.getMethods()
        .removeIf(method -> isHidden(method.getAccessFlags()) || method.isStaticInitializer());
    type.getFields().removeIf(field -> isHidden(field.getAccessFlags()));
    for (MethodInfo method : type.getMethods()) {
      strip(method.getAttributes());
    }
    for (FieldInfo field : type.getFields()) {
      strip(field.getAttributes());
    }
    strip(type.getAttributes());
    type.compact();
    type.write(new DataOutputStream(jar));
  }

  private static boolean isHidden(int flags) {
    return (flags & (AccessFlag.PUBLIC | AccessFlag.PROTECTED)) == 0
        || (flags & AccessFlag.SYNTHETIC) != 0;
  }

  private static void strip(List<AttributeInfo> attributes) {
    attributes.removeIf(attribute -> !KEPT.contains(attribute.getName()));
  }
}
