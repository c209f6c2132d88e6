// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The calls that users make of a module: public constructors and methods of the public classes of its
 * exported packages.
 */
public final class PublicApi {
  /** One parameter of one of them. */
  public record Argument(Executable call, int index) {
    public Parameter parameter() {
      return call.getParameters()[index];
    }

    public String name() {
      return parameter().getName();
    }

    /** Such as {@code Tensor.narrow(dim)}: that of overloads, too. */
    public String text() {
      String owner = call.getDeclaringClass().getName().replaceAll(".*\\.", "").replace('$', '.');
      String method = call instanceof Method ? "." + call.getName() : "";
      return owner + method + "(" + name() + ")";
    }

    /** Makes the call with {@code value} for this parameter and samples for the others. */
    public Optional<Throwable> failure(SampleValues samples, Object value)
        throws ReflectiveOperationException {
      Parameter[] parameters = call.getParameters();
      Object[] values = new Object[parameters.length];
      for (int i = 0; i < values.length; i++) {
        values[i] = i == index ? value : samples.of(parameters[i]);
      }
      try {
        if (call instanceof Constructor<?> constructor) {
          constructor.newInstance(values);
        } else {
          boolean isStatic = Modifier.isStatic(call.getModifiers());
          Object receiver = isStatic ? null : samples.of(call.getDeclaringClass());
          ((Method) call).invoke(receiver, values);
        }
        return Optional.empty();
      } catch (InvocationTargetException thrown) {
        return Optional.of(thrown.getCause());
      }
    }

    @Override
    public String toString() {
      return text()
          + " of "
          + Arrays.stream(call.getParameterTypes())
              .map(Class::getSimpleName)
              .collect(Collectors.joining(", "));
    }
  }

  private PublicApi() {}

  /** Every parameter of every call of the module that {@code type} is in, in one order. */
  public static List<Argument> arguments(Class<?> type) {
    List<Argument> arguments = new ArrayList<>();
    for (Executable call : calls(type)) {
      for (int i = 0; i < call.getParameterCount(); i++) {
        arguments.add(new Argument(call, i));
      }
    }
    return arguments;
  }

  /** Every call of the module that {@code type} is in, in one order. */
  public static List<Executable> calls(Class<?> type) {
    List<Executable> calls = new ArrayList<>();
    for (Class<?> each : classes(type)) {
      Stream.of(each.getDeclaredConstructors(), each.getDeclaredMethods())
          .flatMap(Arrays::stream)
          .filter(call -> isCalled(each, call))
          .sorted(Comparator.comparing(Executable::toString))
          .forEach(calls::add);
    }
    return calls;
  }

  private static boolean isCalled(Class<?> type, Executable call) {
    int modifiers = call.getModifiers();
    boolean inherited =
        call.getName().equals("equals") || (type.isEnum() && call.getName().equals("valueOf"));
    return Modifier.isPublic(modifiers)
        && !Modifier.isAbstract(modifiers)
        && !call.isSynthetic()
        && !inherited
        && !HiddenMembers.contains(type.getName(), call.getName(), call.getParameterCount());
  }

  /** The public classes of the exported packages of the module that {@code type} is in. */
  public static List<Class<?>> classes(Class<?> type) {
    try {
      Path root = Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
      List<Class<?>> classes = new ArrayList<>();
      for (String exported : exports(root)) {
        try (Stream<Path> files = Files.list(root.resolve(exported.replace('.', '/')))) {
          for (Path file : files.sorted().toList()) {
            String name = file.getFileName().toString();
            if (name.endsWith(".class") && !name.equals("package-info.class")) {
              Class<?> found =
                  Class.forName(exported + "." + name.substring(0, name.length() - 6));
              if (isPublic(found)) {
                classes.add(found);
              }
            }
          }
        }
      }
      return classes;
    } catch (IOException | URISyntaxException | ClassNotFoundException e) {
      throw new AssertionError(e);
    }
  }

  private static List<String> exports(Path root) throws IOException {
    try (InputStream module = Files.newInputStream(root.resolve("module-info.class"))) {
      return ModuleDescriptor.read(module).exports().stream()
          .filter(exports -> !exports.isQualified())
          .map(ModuleDescriptor.Exports::source)
          .sorted()
          .toList();
    }
  }

  private static boolean isPublic(Class<?> type) {
    for (Class<?> c = type; c != null; c = c.getEnclosingClass()) {
      boolean inPublicInterface = c.isMemberClass() && c.getEnclosingClass().isInterface();
      if (!Modifier.isPublic(c.getModifiers()) && !inPublicInterface || c.isAnonymousClass()) {
        return false;
      }
    }
    return true;
  }
}
