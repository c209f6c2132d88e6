// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.testing.Mutation;

/** A grammar of layouts as the pages have it, made into one regular expression. */
final class LayoutGrammar {
  /** At least one for each alternative. */
  private static final List<String> LAYOUTS =
      List.of(
          "2:R",
          "2x4:P,S0",
          "dp=2xtp=4:P,S0",
          "1x3@8:R,S1",
          "4@[3,1,9,8]:S0",
          "6@[0-3,8,9]:S1",
          "2:S0*128",
          "2:SS0/3",
          "2:P",
          "2:P:avg",
          "2:P:max",
          "2:P:min",
          "2:P:product",
          "2:P:sum");

  private static final Map<String, String> LEXICAL =
      Map.of(
          "SIZE",
          "\\d+",
          "FIRST",
          "\\d+",
          "RANGE",
          "\\d+(?:-\\d+)?",
          "NAME",
          "\\w+",
          "<dim>",
          "\\d+",
          "<unit>",
          "\\d+",
          "<split>",
          "\\d+",
          "<op>",
          "(?:sum|avg|max|min|product)");

  private final Map<String, String> rules = new HashMap<>();

  LayoutGrammar(String text) {
    for (String line : text.split("\n")) {
      String[] named = line.split(" +", 2);
      String[] columns = named[1].split(" {3,}");
      rules.put(named[0], columns[0]);
      if (columns.length > 1 && columns[1].contains(" = ")) {
        String[] more = columns[1].split(" = ", 2);
        rules.put(more[0], more[1]);
      }
    }
  }

  private String regex(String rule) {
    StringBuilder regex = new StringBuilder();
    Matcher part =
        Pattern.compile("\"([^\"]*)\"|<\\w+>|[A-Z]+:?|[\\[\\]()|*]").matcher(rules.get(rule));
    while (part.find()) {
      String word = part.group();
      regex.append(
          word.startsWith("\"")
              ? Pattern.quote(part.group(1))
              : LEXICAL.containsKey(word)
                  ? LEXICAL.get(word)
                  : rules.containsKey(word)
                      ? "(?:" + regex(word) + ")"
                      : word.equals("[") || word.equals("(")
                          ? "(?:"
                          : word.equals("]") ? ")?" : word);
    }
    return regex.toString();
  }

  /** What the parser takes is by the grammar, and for each alternative it takes one. */
  void check(Block block) {
    assertThat(rules.keySet())
        .as("%s", block)
        .contains("layout", "MESH", "DIM", "RANKS", "PLACEMENT", "op");
    assertThat(rules.get("op").replace(" (default)", "").split(" "))
        .as("%s: op", block)
        .contains("sum", "avg", "max", "min", "product");
    Pattern grammar = Pattern.compile(regex("layout"));
    Random random = new Random(7);
    int taken = 0;
    for (String layout : LAYOUTS) {
      assertThat(isTaken(layout)).as("%s: %s", block, layout).isTrue();
      assertThat(layout).as("%s", block).matches(grammar);
      for (int i = 0; i < 200; i++) {
        String mutated = Mutation.of(layout, random);
        if (isTaken(mutated)) {
          assertThat(mutated).as("%s", block).matches(grammar);
          taken++;
        }
      }
    }
    assertThat(taken).isGreaterThan(50);
  }

  private static boolean isTaken(String layout) {
    try {
      Layout.parse(layout);
      return true;
    } catch (InvalidArgumentException refused) {
      return false;
    }
  }
}
