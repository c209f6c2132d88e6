// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The public methods that only packages of Windlass use: those with {@code @hidden} in Javadoc. */
public final class HiddenMembers {
  private static final Path ROOT = Path.of(System.getProperty("windlass.root"), "java");

  private static final String ALL = "*";

  /** A comment with the tag, annotations, and a declaration up to the end of its parameters. */
  private static final Pattern HIDDEN =
      Pattern.compile(
          "/\\*\\*(?:(?!\\*/).)*@hidden\\s+\\*/\\s+(?:@\\w+(?:\\([^)]*\\))?\\s+)*"
              + "public [^;{=(]*?(\\w+)\\(([^)]*)\\)",
          Pattern.DOTALL);

  /** The same of a whole class. */
  private static final Pattern HIDDEN_CLASS =
      Pattern.compile(
          "@hidden\\s+\\*/\\s+(?:@\\w+(?:\\([^)]*\\))?\\s+)*"
              + "public (?:final )?(?:class|record|interface) ");

  private HiddenMembers() {}

  /** Whether a method of the class {@code owner}, with so many parameters, is one of them. */
  public static boolean contains(String owner, String method, int parameters) {
    Set<String> members = of(owner.replaceAll("\\$.*", ""));
    return members.contains(ALL) || members.contains(method + "/" + parameters);
  }

  private static Set<String> of(String owner) {
    String name = owner.replace('.', '/') + ".java";
    for (String module : new String[] {"core", "checkpoint", "cuda", "spark", "etcd", "bench"}) {
      Path source = ROOT.resolve(module).resolve("src/main/java").resolve(name);
      if (Files.exists(source)) {
        try {
          String text = Files.readString(source);
          if (HIDDEN_CLASS.matcher(text).find()) {
            return Set.of(ALL);
          }
          return HIDDEN.matcher(text).results()
              .map(HiddenMembers::signature)
              .collect(Collectors.toSet());
        } catch (IOException e) {
          throw new AssertionError(e);
        }
      }
    }
    return Set.of();
  }

  private static String signature(MatchResult found) {
    String plain = found.group(2).replaceAll("<[^<>]*(<[^<>]*>)?[^<>]*>", "");
    long parameters = plain.isBlank() ? 0 : Arrays.stream(plain.split(",")).count();
    return found.group(1) + "/" + parameters;
  }
}
