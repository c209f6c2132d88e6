// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;

/**
 * Matches whole tensor names with a glob. {@code *} matches any text, including dots. A capture
 * such as {@code {n}} matches text without a dot; the matched text is available as {@code n}.
 */
public final class NamePattern {
  private static final Pattern SPECIAL = Pattern.compile("\\*|\\{([A-Za-z0-9_]+)}|[{}]");

  private final String glob;
  private final Pattern regex;
  private final List<String> captures;

  private NamePattern(String glob, Pattern regex, List<String> captures) {
    this.glob = glob;
    this.regex = regex;
    this.captures = captures;
  }

  /**
   * Parses a glob.
   *
   * @throws InvalidArgumentException if a brace is not part of a capture, or appears twice
   */
  static NamePattern parse(String glob) {
    return parse(glob, Optional.empty());
  }

  private static NamePattern parse(String glob, Optional<String> star) {
    StringBuilder regex = new StringBuilder();
    List<String> captures = new ArrayList<>();
    Matcher special = SPECIAL.matcher(glob);
    int at = 0;
    while (special.find()) {
      regex.append(Pattern.quote(glob.substring(at, special.start())));
      at = special.end();
      if (special.group().equals("*")) {
        star.ifPresent(captures::add);
        regex.append(star.isPresent() ? "(.*)" : ".*");
      } else {
        String capture = capture(special, glob);
        if (captures.contains(capture)) {
          throw new InvalidArgumentException("{" + capture + "} stands twice");
        }
        captures.add(capture);
        regex.append("([^.]+)");
      }
    }
    regex.append(Pattern.quote(glob.substring(at)));
    return new NamePattern(glob, Pattern.compile(regex.toString(), Pattern.DOTALL), captures);
  }

  /** Returns this pattern with its only {@code *} as a named capture; unchanged otherwise. */
  NamePattern named(String capture) {
    boolean hasOne = glob.indexOf('*') >= 0 && glob.indexOf('*') == glob.lastIndexOf('*');
    return hasOne ? parse(glob, Optional.of(capture)) : this;
  }

  private static String capture(Matcher special, String text) {
    if (special.group(1) == null) {
      throw new InvalidArgumentException(
          "the brace at character " + special.start() + " of \"" + text
              + "\" is no capture's; a capture is {name}");
    }
    return special.group(1);
  }

  List<String> captures() {
    return captures;
  }

  /** Returns the captured texts of a tensor name, keyed by capture; empty if it does not match. */
  Optional<Map<String, String>> match(String name) {
    Matcher matcher = regex.matcher(name);
    if (!matcher.matches()) {
      return Optional.empty();
    }
    Map<String, String> captured = new LinkedHashMap<>();
    for (int i = 0; i < captures.size(); i++) {
      captured.put(captures.get(i), matcher.group(i + 1));
    }
    return Optional.of(captured);
  }

  /** Returns {@code name} with another text for one of its captures. {@code name} must match. */
  public String with(String name, String capture, String text) {
    Matcher matcher = regex.matcher(name);
    if (!matcher.matches()) {
      throw new IllegalArgumentException(name);
    }
    int group = captures.indexOf(capture) + 1;
    return name.substring(0, matcher.start(group)) + text + name.substring(matcher.end(group));
  }

  /**
   * Returns the names of the captures in a rule's new name, such as {@code n} in {@code a.{n}.b}.
   *
   * @throws InvalidArgumentException if the name holds {@code *} or a brace outside a capture
   */
  static Set<String> capturesIn(String template) {
    Set<String> captures = new HashSet<>();
    Matcher special = SPECIAL.matcher(template);
    while (special.find()) {
      if (special.group().equals("*")) {
        throw new InvalidArgumentException("holds *, which a new name cannot");
      }
      captures.add(capture(special, template));
    }
    return captures;
  }

  /** Returns a new name after replacing each capture by its text. */
  public static String fill(String template, Map<String, String> captured) {
    return SPECIAL
        .matcher(template)
        .replaceAll(found -> Matcher.quoteReplacement(captured.get(found.group(1))));
  }
}
