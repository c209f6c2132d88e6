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
 * A glob over whole tensor names: {@code *} stands for any text, dots included, and {@code {n}} for
 * some text without a dot, which it captures under that name.
 */
public final class NamePattern {
  private static final Pattern SPECIAL = Pattern.compile("\\*|\\{([A-Za-z0-9_]+)}|[{}]");

  private final Pattern regex;
  private final List<String> captures;

  private NamePattern(Pattern regex, List<String> captures) {
    this.regex = regex;
    this.captures = captures;
  }

  /**
   * Reads a glob.
   *
   * @throws InvalidArgumentException if a brace is no capture's, or a capture stands twice
   */
  static NamePattern parse(String glob) {
    StringBuilder regex = new StringBuilder();
    List<String> captures = new ArrayList<>();
    Matcher special = SPECIAL.matcher(glob);
    int at = 0;
    while (special.find()) {
      regex.append(Pattern.quote(glob.substring(at, special.start())));
      at = special.end();
      if (special.group().equals("*")) {
        regex.append(".*");
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
    return new NamePattern(Pattern.compile(regex.toString(), Pattern.DOTALL), captures);
  }

  private static String capture(Matcher special, String text) {
    if (special.group(1) == null) {
      throw new InvalidArgumentException(
          "the brace at character " + special.start() + " of \"" + text
              + "\" is no capture's; a capture is {name}");
    }
    return special.group(1);
  }

  /** The captures, in order. */
  List<String> captures() {
    return captures;
  }

  /** What a name's captures are, if it matches. */
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

  /** A name that matches, with another text for one capture. */
  public String with(String name, String capture, String text) {
    Matcher matcher = regex.matcher(name);
    if (!matcher.matches()) {
      throw new IllegalArgumentException(name);
    }
    int group = captures.indexOf(capture) + 1;
    return name.substring(0, matcher.start(group)) + text + name.substring(matcher.end(group));
  }

  /**
   * The captures that a new name holds.
   *
   * @throws InvalidArgumentException if a brace is no capture's, or the name holds {@code *}
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

  /** A new name with its captures filled in. */
  public static String fill(String template, Map<String, String> captured) {
    return SPECIAL
        .matcher(template)
        .replaceAll(found -> Matcher.quoteReplacement(captured.get(found.group(1))));
  }
}
