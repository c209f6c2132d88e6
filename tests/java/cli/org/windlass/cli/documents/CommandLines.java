// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The simple commands in a block of the shell's, each as its words. */
final class CommandLines {
  private static final Pattern WORD =
      Pattern.compile("(?:[^\\s'\"#&|<>;]|(?<=\\S)#|'[^']*'|\"[^\"]*\")+|#.*|&&|[&|;]|>\\s*\\S+");

  private CommandLines() {}

  static List<List<String>> of(String text) {
    List<List<String>> commands = new ArrayList<>();
    for (String line : text.replace("\\\n", " ").split("\n")) {
      List<String> command = new ArrayList<>();
      for (Matcher word = WORD.matcher(line); word.find(); ) {
        String found = word.group();
        if (found.startsWith("#") || found.startsWith(">")) {
          continue;
        }
        if (List.of("&&", "&", "|", ";").contains(found)) {
          end(command, commands);
          command = new ArrayList<>();
        } else if (!command.isEmpty() || !found.matches("[A-Z_]+=.*")) {
          command.add(found.replaceAll("[\"']", ""));
        }
      }
      end(command, commands);
    }
    return commands;
  }

  private static void end(List<String> command, List<List<String>> commands) {
    if (!command.isEmpty()) {
      commands.add(command);
    }
  }
}
