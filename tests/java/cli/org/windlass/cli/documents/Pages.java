// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages of the project: those of its root, and all below docs/. */
public final class Pages {
  /** The checkout. */
  public static final Path ROOT = Path.of(System.getProperty("windlass.root"));

  private static final Pattern FENCE = Pattern.compile("( *)```(.*)");

  private Pages() {}

  /** Their files, in order. */
  public static List<Path> all() throws IOException {
    List<Path> pages = new ArrayList<>();
    try (Stream<Path> root = Files.list(ROOT);
        Stream<Path> docs = Files.walk(ROOT.resolve("docs"))) {
      root.filter(Pages::isPage).sorted().forEach(pages::add);
      docs.filter(Pages::isPage).sorted().forEach(pages::add);
    }
    return pages;
  }

  private static boolean isPage(Path file) {
    return file.toString().endsWith(".md");
  }

  /** The blocks of all pages, in order. */
  static List<Block> blocks() throws IOException {
    List<Block> blocks = new ArrayList<>();
    for (Path page : all()) {
      blocks.addAll(blocks(ROOT.relativize(page).toString(), Files.readAllLines(page)));
    }
    return blocks;
  }

  /** The blocks of a page's lines. */
  static List<Block> blocks(String page, List<String> lines) {
    List<Block> blocks = new ArrayList<>();
    for (int at = 0; at < lines.size(); at++) {
      if (lines.get(at).strip().startsWith("~~~")) {
        throw new AssertionError(
            page + ":" + (at + 1) + ": open and close a block by ```, not by ~~~");
      }
      Matcher fence = FENCE.matcher(lines.get(at));
      if (!fence.matches()) {
        continue;
      }
      int first = at + 1;
      StringBuilder text = new StringBuilder();
      while (++at < lines.size() && !lines.get(at).strip().equals("```")) {
        text.append(without(fence.group(1), lines.get(at))).append('\n');
      }
      if (at == lines.size()) {
        throw new AssertionError(
            page + ":" + first + ": nothing closes this block; add a line ```");
      }
      String[] words = (fence.group(2).strip() + " ").split("\\s+", 2);
      blocks.add(new Block(page, first, words[0], words[1].strip(), text.toString()));
    }
    return blocks;
  }

  /** A block inside a list is indented as that is. */
  private static String without(String indent, String line) {
    return line.startsWith(indent) ? line.substring(indent.length()) : line.stripLeading();
  }
}
