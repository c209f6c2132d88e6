// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;

/**
 * A command that was run in this process.
 *
 * @param status the exit status
 * @param out standard output
 * @param err standard error
 */
public record Cli(int status, String out, String err) {
  /** Runs {@code windlass} with these arguments, each by its text. */
  public static Cli run(Object... arguments) {
    return runInto(new StringWriter(), arguments);
  }

  /** The same; {@code out} has its standard output while it runs, too. */
  static Cli runInto(StringWriter out, Object... arguments) {
    List<String> args = new ArrayList<>();
    for (Object argument : arguments) {
      args.add(argument.toString());
    }
    StringWriter err = new StringWriter();
    int status =
        Main.run(new PrintWriter(out), new PrintWriter(err), args.toArray(new String[0]));
    return new Cli(status, out.toString(), err.toString());
  }
}
