// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;

/** NullAway does not know which options a command line may leave out. */
class OptionFieldsTest {
  @Test
  void fieldsOfOptionsThatMayBeLeftOutAreNullable() {
    CommandLine line = new CommandLine(new Main());
    Main.addCommands(line);
    CommandSpec all = line.getCommandSpec();
    assertThat(fields(all)).hasSizeGreaterThan(20);
    assertThat(fields(all).filter(OptionFieldsTest::mayBeNull))
        .isNotEmpty()
        .allMatch(arg -> field(arg).getAnnotatedType().isAnnotationPresent(Nullable.class));
  }

  private static Stream<ArgSpec> fields(CommandSpec command) {
    return Stream.concat(
        command.args().stream().filter(arg -> arg.userObject() instanceof Field),
        command.subcommands().values().stream().flatMap(each -> fields(each.getCommandSpec())));
  }

  private static Field field(ArgSpec arg) {
    return (Field) arg.userObject();
  }

  private static boolean mayBeNull(ArgSpec arg) {
    return !arg.required()
        && arg.defaultValue() == null
        && arg.initialValue() == null
        && !arg.type().isPrimitive();
  }
}
